"""list, show and copy: the catalogues on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentx import catalog
from agentx.cli.main import main


def test_list_puts_a_name_first_on_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "workloads"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [entry.name for entry in catalog.entries("workloads")]
    assert lines[0].startswith("coding-agent  A coding agent")


def test_list_without_a_kind_names_the_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    lines = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert ["coding-agent", "workloads"] in lines
    assert ["laptop", "targets"] in lines


def test_an_empty_catalogue_prints_nothing_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "references"]) == 0
    out, err = capsys.readouterr()
    assert (out, "AGENTX_PATH" in err) == ("", not catalog.entries("references"))


@pytest.mark.parametrize("name", ["coding-agent", "workloads/coding-agent"])
def test_show_prints_the_file(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", name]) == 0
    assert capsys.readouterr().out == catalog.resolve("workloads", "coding-agent").read_text()


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


REFUSED = [
    (["show", "codng-agent"], "nothing is named 'codng-agent' (did you mean 'coding-agent'?"),
    (["show", "workloads/nothing"], "no workload named 'nothing'"),
    (["show", "gone/x.yaml"], "gone/x.yaml: No such file"),
    (["copy", "coding-agent", "gone/dir/x.yaml"], "gone/dir/x.yaml: No such file"),
]


@pytest.mark.parametrize(("words", "says"), REFUSED)
def test_mistakes_are_one_line(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.count("\n") == 1


def test_show_refuses_what_is_not_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.trace"
    path.write_bytes(b"\xff\xfe\x00")
    assert main(["show", str(path)]) == 2
    assert "is not text" in capsys.readouterr().err
