"""The schemas of what verbs make themselves, held against what they print; each kind has a row in the documentation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from making import header, linear
from schema_faults import faults, unseen

from agentx.cli.main import main
from agentx.cli.schemas import check_schema, doctor_schema, kinds, list_schema
from agentx.trace import TraceWriter

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "documents.md"
EXPECTS = "expect={isl_p50: {target: 14400, tolerance: 15%, source: a paper}}"


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    capsys.readouterr()
    main([*words, "--json"])
    value: dict[str, object] = json.loads(capsys.readouterr().out)
    return value


@pytest.mark.parametrize("sets", [["--set", EXPECTS], ["--set", "expect={}"]])
def test_check_of_a_spec(sets: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "check", "coding-agent", "--sessions", "3", *sets)
    assert faults(found, check_schema()) == []
    assert unseen(found, check_schema()) == []


def test_check_of_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with TraceWriter(tmp_path / "a.trace", header()) as writer:
        writer.session(linear(3))
        writer.session(linear(0, id="empty"))  # which is worth a note
    found = printed(capsys, "check", str(tmp_path / "a.trace"))
    assert found["findings"]
    assert faults(found, check_schema()) == []
    assert unseen(found, check_schema()) == []
    (tmp_path / "a.trace").write_bytes((tmp_path / "a.trace").read_bytes()[:-9])
    assert faults(printed(capsys, "check", str(tmp_path / "a.trace")), check_schema()) == []


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["list"], ["list", "references"]):
        found = printed(capsys, *words)
        assert faults(found, list_schema()) == []
        assert unseen(found, list_schema()) == []


def test_doctor_of_a_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "doctor", "sglang-mi325x-glm-5.2-fp8")
    assert faults(found, doctor_schema()) == []
    assert unseen(found, doctor_schema()) == ["document.server"]  # what a server told of itself


def test_every_kind_is_shown_and_documented(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "schema"]) == 0
    assert capsys.readouterr().out.split() == list(kinds())
    page = PAGE.read_text(encoding="utf-8")
    for kind, schema in kinds().items():
        title = schema()["title"]
        assert kind == "workload" or title == f"agentx/{kind}/1"
        assert f"| `{kind}` |" in page
