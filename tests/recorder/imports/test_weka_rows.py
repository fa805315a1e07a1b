"""Weka files as they are read: what is refused, and with which place."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from importing import agent, call, weka, write

from agentx.errors import BadInput
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.weka_rows import WekaSession, read_sessions, weka_files


def read(path: Path, books: Books | None = None) -> list[WekaSession]:
    return list(read_sessions(path, books or Books(), hashlib.sha256()))


def test_a_session_is_read_whole(tmp_path: Path) -> None:
    inner = call(0, 4, 2, [7], type="s", ttft=0.25)
    value = weka(
        [call(0, 8, 3, [1, 2]), agent(9, [inner], duration_ms=2500, status="completed", tool_tokens=2)],
        tool_tokens=5,
        system_tokens=1,
    )
    (session,) = read(write(tmp_path / "a.json", value))
    assert (session.id, session.block, session.tools, session.system) == ("s", 4, 5, 1)
    assert [(request.isl, request.out, list(request.ids)) for request in session.requests] == [(8, 3, [1, 2])]
    (found,) = session.agents
    assert (found.name, found.type, found.duration, found.status, found.tools) == ("a1", "Explore", 2.5, "completed", 2)
    assert (found.before, found.requests[0].ttft, found.requests[0].model) == (1, 0.25, "m")


def changed(**fields: Any) -> dict[str, Any]:
    """A session whose second request has other fields; None removes one."""
    row = {**call(1, 4, 1, [1]), **fields}
    return weka([call(0, 4, 1, [1]), {key: value for key, value in row.items() if value is not None}])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (changed(hash_ids=[1, -2]), "request 2: hash_ids: -2 is not a block id"),
        (changed(hash_ids=None), "request 2: the field 'hash_ids' is missing"),
        (changed(out=None), "request 2: the field 'out' is missing"),
        (changed(t=None), "request 2: the field 't' is missing"),
        (changed(type="x"), "request 2: type: 'x' is not one of n s"),
        (changed(out="5"), "request 2: out: '5' is not a whole number"),
        (changed(**{"in": -1}), "request 2: in: -1 is not a whole number"),
        (changed(t="soon"), "request 2: t: 'soon' is not a number of seconds"),
        (changed(api_time=-0.5), "request 2: api_time: -0.5 is below 0"),
        (changed(input_types="text"), "request 2: input_types: 'text' is not a list of texts"),
        (weka([7]), "request 1: 7 is not an object"),
        (weka([agent(1, [call(0, 4, 1, [-3])])]), "request 1 (subagent): request 1: hash_ids: -3"),
        (weka([agent(1, [agent(1, [])])]), "request 1 (subagent): request 1: type: 'subagent' is not one of n s"),
        (weka([], block_size=0), "block_size: 0 is not a whole number from 1"),
        (weka([], hash_id_scope="global"), "hash_id_scope: 'global' is not 'local'"),
        (weka({}), "requests: {} is not a list"),
        ({"requests": []}, "the field 'id' is missing"),
        ([1], "not a Weka session: this looks like a JSON list"),
        ({"input_length": 1, "output_length": 1}, "this looks like a Mooncake trace (agentx import mooncake)"),
    ],
)
def test_what_is_no_session_is_refused_with_its_place(tmp_path: Path, value: Any, message: str) -> None:
    path = write(tmp_path / "a.json", value)
    with pytest.raises(BadInput) as error:
        read(path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)


def test_unknown_keys_are_counted_and_left_out(tmp_path: Path) -> None:
    books = Books()
    read(write(tmp_path / "a.json", weka([call(0, 4, 1, [1], colour="red")], mood=1, totals={})), books)
    assert books.notes == {
        "key 'colour' is not part of the format: left out": 1,
        "key 'mood' is not part of the format: left out": 1,
        "request that was not streamed (type n): its pause may hold a streamed twin that was lost": 1,
    }


def test_json_lines_hold_a_session_a_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", weka([], id="x"), weka([], id="y"))
    assert [session.id for session in read(path)] == ["x", "y"]
    with pytest.raises(BadInput, match=r"a.jsonl:2: request 1: the field"):
        read(write(path, weka([]), weka([{"type": "n"}])))


def test_folders_stand_for_their_files_by_name(tmp_path: Path) -> None:
    for name in ("b.json", "a.json", "c.jsonl", "notes.txt"):
        (tmp_path / name).touch()
    assert [path.name for path in weka_files([tmp_path, tmp_path / "a.json"])] == [
        "a.json",
        "b.json",
        "c.jsonl",
        "a.json",
    ]
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match=r"the folder holds no \.json"):
        weka_files([tmp_path / "empty"])
