"""agentx inspect: a summary, a document, a comparison, a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from making import header, linear

from agentx.cli.main import main
from agentx.trace import TraceWriter


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    with TraceWriter(tmp_path / "a.trace", header()) as writer:
        writer.session(linear(3))
    return tmp_path / "a.trace"


def test_two_traces_are_compared(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(trace), "--compare", str(trace)]) == 0
    assert "possible reuse" in capsys.readouterr().out
    assert main(["inspect", str(trace), "--compare", str(trace), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["distances"]["isl"]["ks"] == 0.0


def test_a_page_is_written_beside_the_summary(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = trace.parent / "new" / "a.html"
    assert main(["inspect", str(trace), "--html", str(out)]) == 0
    told = capsys.readouterr()
    assert "sessions" in told.out
    assert f"wrote {out}" in told.err
    assert out.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--compare", "{trace}", "--html", "x.html"], "--html draws one trace"),
        (["--canonical", "--html", "x.html"], "--canonical prints the trace itself"),
        (["--compare", "{trace}", "--reach", "0.5"], "which --compare leaves out"),
        (["--compare", "nowhere.trace"], "no such file"),
    ],
)
def test_mistakes_are_one_line(more: list[str], told: str, trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(trace), *(word.format(trace=trace) for word in more)]) == 2
    assert told in capsys.readouterr().err
