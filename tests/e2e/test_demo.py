"""agentx demo: real runs, with figures that come from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentx.cli import demo
from agentx.cli.main import main
from agentx.results import read_results


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same demo with fewer and shorter agents."""
    monkeypatch.setattr(demo, "SESSIONS", 4)
    monkeypatch.setattr(demo, "TURNS", 3)


def figures(text: str) -> dict[str, tuple[str, str]]:
    """The table's rows: name -> (small, large)."""
    rows = [line.rsplit(None, 2) for line in text.splitlines() if "%" in line or ", ms" in line or "turns" in line]
    return {name.strip(): (small, large) for name, small, large in rows}


def test_a_larger_cache_gives_back_what_the_small_one_lost(
    quick: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--out", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    table = figures(captured.out)
    small, large = (read_results(tmp_path / name) for name in ("small", "large"))
    for column, run in enumerate((small, large)):
        assert run.books().balanced
        told = sum(attempt.cached.device or 0 for attempt in run.attempts if attempt.cached)
        share = told / sum(attempt.prompt_tokens or 0 for attempt in run.attempts)
        assert table["prompt tokens reused, observed"][column] == f"{share:.1%}"
        assert table["turns answered"][column] == str(run.books().completed)
    observed = [float(cell.rstrip("%")) for cell in table["prompt tokens reused, observed"]]
    assert observed[0] < observed[1]
    assert "4 coding agents with" in captured.err


def test_another_seed_is_another_run(quick: None, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for seed in ("1", "2"):
        assert main(["demo", "--seed", seed]) == 0
        outputs.append(figures(capsys.readouterr().out)["prompt tokens reused, ideal"])
    assert outputs[0] != outputs[1]
