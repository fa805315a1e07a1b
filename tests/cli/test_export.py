"""`agentx export`: each format from the command line, the books on stderr, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from exporting import linear

from agentx.cli.main import main


@pytest.mark.parametrize("format", ["mooncake", "dag", "sglang", "weka"])
def test_each_format(tmp_path: Path, capsys: pytest.CaptureFixture[str], format: str) -> None:
    trace = linear(tmp_path).path
    out = tmp_path / "out"
    assert main(["export", format, str(trace), "-o", str(out)]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "27 read = 27 used + 0 dropped" in told.err
    assert "what this format cannot hold:" in told.err
    assert out.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mooncake", "{trace}", "-o", "{trace}"], "the output is the input"),
        (["mooncake", "{trace}", "--block", "0", "-o", "{out}"], "--block 0 is not from 1"),
        (["weka", "{out}", "-o", "{trace}.d"], "no such file"),
    ],
)
def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    trace = linear(tmp_path).path
    assert main(["export", *(word.format(trace=trace, out=tmp_path / "out") for word in words)]) == 2
    assert message in capsys.readouterr().err
