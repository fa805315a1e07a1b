"""agentx list: what the catalogues hold."""

from __future__ import annotations

import json

import pytest

from agentx import catalog
from agentx.cli.main import main


def test_list_puts_a_name_first_on_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "workloads"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [entry.name for entry in catalog.entries("workloads")]
    about = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines}
    assert about["coding-agent"].startswith("A coding agent on small repositories")


def test_list_without_a_kind_names_the_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    lines = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert ["coding-agent", "workloads"] in lines
    assert ["laptop", "targets"] in lines


def test_an_empty_catalogue_prints_nothing_on_stdout(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "entries", lambda kind: [])
    assert main(["list", "references"]) == 0
    out, err = capsys.readouterr()
    assert (out, "AGENTX_PATH" in err) == ("", True)


def test_forecasts_are_listed_from_a_folder(tmp_path, capsys):
    assert main(["list", "forecasts", str(tmp_path)]) == 0
    assert "no run here holds a forecast" in capsys.readouterr().out
    assert main(["list", "forecasts"]) == 2
    assert main(["list", "workloads", str(tmp_path)]) == 2
    assert "only forecasts are listed from a folder" in capsys.readouterr().err


def test_a_catalogue_as_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "targets", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "agentx/list/1"
    assert [each["name"] for each in document["entries"]] == [entry.name for entry in catalog.entries("targets")]
    assert main(["list", "forecasts", "--json"]) == 2
