"""Reading JSON sources: what is wrong is said with its place."""

from __future__ import annotations

import hashlib
from array import array
from pathlib import Path

import pytest

from agentx.errors import BadInput
from agentx.frames import MAGIC
from agentx.recorder.imports.source import Line, block_ids, lines, looks_like, parse, parse_file, texts
from agentx.trace_bodies import Invalid


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a": 1', "f.json:3: the JSON is cut in the middle"),
        (b'{"a": "x', "f.json:3: the JSON is cut in the middle"),
        (b'{"a": [1, 2', "f.json:3: the JSON is cut in the middle"),
        (b'{"a": 1\n', "f.json:3: this line is no whole JSON value"),  # more lines follow
        (b'{"a": 1}}', "f.json:3: not JSON: Extra data at column 9"),
        (b"A,B,C\n1,2,3", "f.json:3: not JSON: Expecting value at column 1; it looks like CSV"),
        (b'{"a": NaN}', "f.json:3: not JSON: NaN is not a number"),
        (b'\xff{"a": 1}', "f.json:3: not JSON: 'utf-8' codec"),
        (b"[" * 100_000, "f.json:3: not JSON: maximum recursion"),
        (MAGIC + b"...", "f.json: this is an agentx trace already (agentx inspect reads it)"),
    ],
)
def test_what_is_not_json_is_refused_with_its_line(data: bytes, message: str) -> None:
    with pytest.raises(BadInput) as error:
        parse(data, Path("f.json"), 3)
    assert str(error.value).startswith(message)


def test_in_a_document_the_line_is_the_documents_own() -> None:
    with pytest.raises(BadInput, match=r"^f.json:2: not JSON: Expecting value at column 6"):
        parse(b'{\n"a": ,\n"b": 2}', Path("f.json"))


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({"frame": "header"}, "an agentx trace in its JSON Lines form"),
        ({"requests": [], "block_size": 64}, "a Weka session (agentx import weka)"),
        ({"input_length": 1, "output_length": 1}, "a Mooncake trace (agentx import mooncake)"),
        ({"input_length": 1, "output_length": 1, "chat_id": 1}, "a Bailian trace (agentx import bailian)"),
        ({"b": 1, "a": 2}, "an object with the keys a, b"),
        ([], "a JSON list"),
        (7, "the JSON value 7"),
    ],
)
def test_another_format_is_named(value: object, name: str) -> None:
    assert looks_like(value) == name


def test_good_ids_become_an_array_and_bad_ones_stay_to_be_named() -> None:
    assert parse(b'{"hash_ids": [1, 18446744073709551615]}', Path("f"))["hash_ids"] == array("Q", [1, (1 << 64) - 1])
    assert parse(b'{"hash_ids": [1, -1]}', Path("f"))["hash_ids"] == [1, -1]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, -7], "-7 is not a block id"),
        ([1 << 64], "18446744073709551616 is not a block id"),
        ([1.5], "1.5 is not a block id"),
        ([True], "True is not a block id"),  # a truth value is no number
        (["ab12"], "'ab12' is not a block id"),
        ("1 2", "'1 2' is not a list of block ids"),
    ],
)
def test_a_bad_block_id_is_named(ids: object, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        block_ids({"hash_ids": ids})
    with pytest.raises(Invalid, match="'hash_ids' is missing"):
        block_ids({})


def test_texts_are_a_list_of_texts_or_nothing() -> None:
    assert texts({"a": ["x"]}, "a") == ("x",)
    assert texts({}, "a") == ()
    with pytest.raises(Invalid, match="a: 'x' is not a list of texts"):
        texts({"a": "x"}, "a")


def test_lines_know_their_number_and_place(tmp_path: Path) -> None:
    path, digest = tmp_path / "f.jsonl", hashlib.sha256()
    path.write_bytes(b"{}\n\n  \r\n[1]")
    assert list(lines(path, digest)) == [Line(1, 0, b"{}\n"), Line(4, 8, b"[1]")]
    assert digest.hexdigest() == hashlib.sha256(path.read_bytes()).hexdigest()


def test_missing_and_empty_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        parse_file(tmp_path / "no.json", hashlib.sha256())
    (tmp_path / "empty.json").touch()
    with pytest.raises(BadInput, match="the file is empty"):
        list(lines(tmp_path / "empty.json"))
