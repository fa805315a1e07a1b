"""agentx copy: a file of a catalogue to a path of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentx import catalog
from agentx.cli.main import main


def test_copy_refuses_to_overwrite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = tmp_path / "coding-agent.yaml"
    assert main(["copy", "coding-agent", str(tmp_path)]) == 0
    assert to.read_bytes() == catalog.resolve("workloads", "coding-agent").read_bytes()
    to.write_text("mine")
    assert main(["copy", "coding-agent", str(to)]) == 2
    assert to.read_text() == "mine"
    assert "exists already (--force overwrites it)" in capsys.readouterr().err
    assert main(["copy", "coding-agent", str(to), "--force"]) == 0
    assert to.read_text() != "mine"


def test_a_directory_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["copy", "coding-agent", "gone/dir/x.yaml"]) == 2
    assert "gone/dir/x.yaml: No such file" in capsys.readouterr().err
