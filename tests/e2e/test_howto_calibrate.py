"""docs/howto-calibrate.md is run, line by line."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest

from agentx.cli import calibrate
from agentx.cli.main import main
from agentx.engine.settings import load_engine

PAGE = Path(__file__).parents[2] / "docs" / "howto-calibrate.md"


def run(words: list[str]) -> int:
    if words[0] != "calibrate":
        return main(words)
    parser = argparse.ArgumentParser()
    calibrate.add_arguments(parser)
    return calibrate.run(parser.parse_args(words[1:]))


def test_its_commands_work_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (script,) = re.findall(r"<!-- run as a test -->\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    for line in script.splitlines():
        program, *words = shlex.split(line)
        assert program == "agentx"
        assert run(words) == 0
    said = capsys.readouterr().out
    assert "Changed: cache.pool 200000 -> 24000." in said
    assert load_engine("node.yaml").timing.prefill_token == pytest.approx(80e-6, rel=0.2)
    assert load_engine("node.yaml").timing.decode_step == pytest.approx(9e-3, rel=0.2)
