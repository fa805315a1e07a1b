"""agentx show: a file of a catalogue, as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentx import catalog
from agentx.cli.main import main


@pytest.mark.parametrize("name", ["coding-agent", "workloads/coding-agent"])
def test_show_prints_the_file(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", name]) == 0
    assert capsys.readouterr().out == catalog.resolve("workloads", "coding-agent").read_text()


REFUSED = [
    ("codng-agent", "nothing is named 'codng-agent' (did you mean 'coding-agent'"),
    ("workloads/nothing", "no workload named 'nothing'"),
    ("gone/x.yaml", "gone/x.yaml: No such file"),
]


@pytest.mark.parametrize(("name", "says"), REFUSED)
def test_mistakes_are_one_line(name: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", name]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.count("\n") == 1


def test_show_refuses_what_is_not_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.trace"
    path.write_bytes(b"\xff\xfe\x00")
    assert main(["show", str(path)]) == 2
    assert "is not text" in capsys.readouterr().err


def test_show_the_schema_of_a_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "schema", "workload"]) == 0
    assert json.loads(capsys.readouterr().out)["properties"]["agentx"]["const"] == "workload/1"


def test_show_the_schema_of_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "schema", "report"]) == 0
    assert json.loads(capsys.readouterr().out)["properties"]["schema"]["const"] == "agentx/report/1"


@pytest.mark.parametrize(
    ("words", "says"), [(["schema", "plan"], "no schema of 'plan'"), (["a", "b"], "one name at a")]
)
def test_other_second_words_are_refused(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", *words]) == 2
    assert says in capsys.readouterr().err
