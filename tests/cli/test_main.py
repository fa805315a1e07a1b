"""The command line: every verb has help with examples, mistakes are one line, exit codes are kept."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from agentx.cli import main as cli
from agentx.errors import InvalidMeasurement


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_has_help_that_ends_with_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main([verb, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert f"agentx {verb}" in text[text.index("example") :]
    assert "\nexit codes: 0 " in text


@pytest.mark.parametrize("words", [[], ["nonsense"], ["inspect"], ["inspect", "--nonsense", "x"]])
def test_wrong_usage_is_exit_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    assert stop.value.code == 2
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InvalidMeasurement("late"), 5, "agentx list: late\n"),
        (KeyboardInterrupt(), 130, "agentx list: interrupted\n"),
        (OSError(28, "No space left on device", "x.trace"), 2, "agentx list: x.trace: No space left on device\n"),
    ],
)
def test_errors_become_one_line_and_a_code(
    error: BaseException,
    code: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(args: object) -> int:
        raise error

    monkeypatch.setattr(import_module("agentx.cli.list"), "run", fail)
    assert cli.main(["list", "workloads"]) == code
    captured = capsys.readouterr()
    assert captured.err == line
    assert captured.out == ""


def test_python_dash_m_works_and_knows_its_version() -> None:
    result = subprocess.run([sys.executable, "-m", "agentx", "--version"], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("agentx ")
