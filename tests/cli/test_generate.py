"""agentx generate: the trace is the only artefact, mistakes are one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentx.cli.main import main
from agentx.trace import read_trace


def test_same_seed_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traces = {}
    for name, seed in (("a", "7"), ("b", "7"), ("c", "8")):
        out = tmp_path / f"{name}.trace"
        assert main(["generate", "coding-agent", "--seed", seed, "--sessions", "3", "-o", str(out)]) == 0
        traces[name] = out.read_bytes()
    assert traces["a"] == traces["b"] != traces["c"]
    out, err = capsys.readouterr()
    assert out == ""
    assert "a.trace: 3 sessions of coding-agent, seed 7" in err


def test_overrides_reach_the_sessions(tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    words = ["generate", "coding-agent", "--set", "turns.user=1", "--set", "turns.loop=2", "--set", "sessions=4"]
    assert main([*words, "-o", str(out)]) == 0
    reader = read_trace(out)
    assert [len(session.turns) for session in reader] == [2, 2, 2, 2]
    assert reader.header.name == "coding-agent"


SPECS = [
    # (text of the spec or None for a missing file, what the line says after the file's name)
    (None, ": no such file"),
    ("", ": the file is empty"),
    ("agentx: workload/9\n", ":1:1: agentx: workload/9 is newer"),
    ("agentx: replay/1\n", ":1:1: agentx: replay/1 is not a workload spec"),
    ("agentx: workload/1\nabout: a\nabout: b\n", ":3:1: duplicate key 'about'"),
    ("agentx: workload/1\nabout: !!python/name:os.system x\n", ":2:8: the YAML tag"),
]


@pytest.mark.parametrize(("text", "says"), SPECS)
def test_bad_specs_are_one_line(
    text: str | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, out = tmp_path / "spec.yaml", tmp_path / "a.trace"
    if text is not None:
        spec.write_text(text)
    assert main(["generate", str(spec), "-o", str(out)]) == 2
    err = capsys.readouterr().err
    assert f"{spec}{says}" in err
    assert err.count("\n") == 1
    assert not out.exists()


def test_all_mistakes_of_a_spec_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "coding-agent", "-o", str(tmp_path / "a"), "--set", "turns.usr=1", "--set", "x=1"]) == 2
    assert capsys.readouterr().err.count("unknown key") == 2


def test_the_spec_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "mine.yaml"
    assert main(["copy", "coding-agent", str(spec)]) == 0
    before = spec.read_bytes()
    assert main(["generate", str(spec), "-o", str(spec)]) == 2
    assert "this is the spec itself (give -o another name)" in capsys.readouterr().err
    assert spec.read_bytes() == before


@pytest.mark.parametrize("sessions", ["0", "-1", "many", "1.5"])
def test_sessions_must_be_a_count(sessions: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["generate", "coding-agent", "-o", "a.trace", f"--sessions={sessions}"])
    assert caught.value.code == 2
    assert f"should be a whole number from 1 to 10^12, not '{sessions}'" in capsys.readouterr().err
