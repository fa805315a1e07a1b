"""From another tool's file to a trace that is inspected and cut, by the command line alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from importing import agent, call, row, weka, write

from agentx.cli.main import main
from agentx.trace import read_trace


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A Weka session of three turns with a subagent."""
    spawned = agent(6.0, [call(0, 8, 2, [20, 21]), call(2, 12, 2, [20, 21, 22])], duration_ms=4000)
    rows = [call(0, 10, 3, [1, 2]), spawned, call(7, 20, 4, range(1, 6)), call(9, 28, 1, range(1, 8))]
    return write(tmp_path / "in.json", weka(rows, tool_tokens=3, system_tokens=2))


def test_a_weka_session_is_imported_inspected_and_cut(
    session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.trace"
    assert main(["import", "weka", str(session), "-o", str(out)]) == 0
    told = capsys.readouterr()
    assert told.out == ""  # the artefact is the file
    assert "requests  5 read = 5 used + 0 dropped" in told.err
    assert "detected: t is a subagent's end, its requests' t are relative (1 subagents)" in told.err
    assert "what this source cannot tell:" in told.err

    assert main(["inspect", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["sessions"], found["turns"], found["threads"]["subagent"]) == (1, 5, 1)
    assert found["isl"]["max"] == 28
    assert found["layers"]["tools"]["tokens"] == 3 * 3

    assert main(["cut", str(out), "--turns", "3", "-o", str(tmp_path / "b.jsonl")]) == 0
    assert "turns     5 read = 3 kept + 2 dropped" in capsys.readouterr().err
    (left,) = read_trace(tmp_path / "b.jsonl")
    assert [turn.isl for turn in left.turns] == [10, 8, 12]


def test_canonical_lines_are_read_back(session: Path, tmp_path: Path, capfdbinary: Any) -> None:
    out = tmp_path / "a.trace"
    main(["import", "weka", str(session), "-o", str(out)])
    assert main(["inspect", str(out), "--canonical"]) == 0
    (tmp_path / "b.jsonl").write_bytes(capfdbinary.readouterr().out)
    assert list(read_trace(tmp_path / "b.jsonl")) == list(read_trace(out))


def test_a_mooncake_file_is_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "in.jsonl", row(600, 5, [0, 1], timestamp=0), row(512, 5, [0], timestamp=2))
    assert main(["import", "mooncake", str(source), "-o", str(tmp_path / "a.trace"), "--unit", "s"]) == 0
    assert "detected: times are read as s, as told" in capsys.readouterr().err
    assert [each.arrival for each in read_trace(tmp_path / "a.trace")] == [0.0, 2.0]
    assert main(["inspect", str(tmp_path / "a.trace")]) == 0
    assert "2 sessions over 2.0 s" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "name", "content", "message"),
    [
        (["import", "weka"], "no.json", None, "no.json: no such file"),
        (["import", "weka"], "x.json", "", "x.json: the file is empty"),
        (["import", "weka"], "x.json", '{"id": "s", "requests": [', "x.json:1: the JSON is cut in the middle"),
        (["import", "weka"], "x.json", json.dumps(weka([call(0, 4, 1, [-1])])), "request 1: hash_ids: -1"),
        (["import", "weka"], "x.json", json.dumps(row(4, 1, [0])), "looks like a Mooncake trace"),
        (
            ["import", "weka"],
            "x.json",
            json.dumps(weka([])),
            "x.json: 0 model calls that can be used (1 without requests",
        ),
        (["import", "mooncake"], "no.jsonl", None, "no.jsonl: no such file"),
        (["import", "mooncake"], "x.jsonl", "", "x.jsonl: the file is empty"),
        (["import", "mooncake"], "x.jsonl", '{"input_length": 4', "x.jsonl:1: the JSON is cut in the middle"),
        (
            ["import", "mooncake"],
            "x.jsonl",
            '{"input_length": 4, "hash_ids": [0]}',
            "x.jsonl:1: the field 'output_length'",
        ),
        (["import", "mooncake"], "x.jsonl", json.dumps(row(4, 1, [-1])), "x.jsonl:1: hash_ids: -1 is not a block id"),
        (["import", "mooncake", "--block", "0"], "x.jsonl", json.dumps(row(4, 1, [1])), "--block 0 is not from 1"),
        (["cut", "--turns", "1"], "x.trace", "TIMESTAMP,in,out\n", "x.trace: this is not an agentx trace"),
        (["cut"], "x.trace", "", "nothing to cut by (give --sessions, --turns or --max-context)"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    words: list[str],
    name: str,
    content: str | None,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    assert main([*words, str(tmp_path / name), "-o", str(tmp_path / "out.trace")]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert message in told.err
    assert not (tmp_path / "out.trace").exists()
    assert not (tmp_path / "out.trace.part").exists()


@pytest.mark.parametrize("words", [["inspect"], ["inspect", "--json"], ["inspect", "--canonical"]])
def test_what_is_no_trace_is_refused(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "x.jsonl", row(4, 1, [0]))
    assert main([*words, str(path)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert 'x.jsonl:1: not an agentx trace: this line has no "frame"' in told.err


@pytest.mark.parametrize(
    "words", [["import", "weka", "in.json"], ["import", "mooncake", "in.json"], ["cut", "in.json", "--turns", "1"]]
)
def test_the_input_is_never_overwritten(
    words: list[str], session: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(session.parent)
    before = session.read_bytes()
    assert main([*words, "-o", "./in.json"]) == 2
    assert session.read_bytes() == before
    assert "the output is" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["import", "weka", "x"], ["import", "sharegpt", "x"], ["cut", "x", "--turns", "0", "-o", "y"]]
)
def test_wrong_usage_is_exit_2(words: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2


def test_the_trace_of_the_documentation_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    (tmp_path / "a.jsonl").write_text(text.split("```json\n")[1].split("```")[0])
    assert main(["inspect", str(tmp_path / "a.jsonl"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["name"], found["turns"], found["isl"]["max"]) == ("by-hand", 2, 1240)
    assert found["possible_reuse"] == pytest.approx((900 + 40) / (900 + 1240))
