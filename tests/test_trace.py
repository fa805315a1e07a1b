"""The trace format: both forms, lossless; torn files; concatenation; every rule refused with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import SHARED, header, linear, sessions

from agentx.core import Header, Segment, Session
from agentx.errors import BadInput
from agentx.frames import encode
from agentx.trace import TraceReader, TraceWriter, Unknown, canonical, read_trace

DATA = Path(__file__).parent / "data"


def write(path: Path, *items: object) -> Path:
    with TraceWriter(path, header()) as trace:
        for item in items:
            trace.write(item)  # type: ignore[arg-type]
    return path


def text_of(path: Path) -> bytes:
    return b"".join(canonical(read_trace(path)))


@given(st.lists(st.just(0), max_size=3).flatmap(lambda n: st.tuples(*[sessions(f"s{i}") for i in range(len(n))])))
def test_both_forms_give_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, made: tuple[Session, ...]
) -> None:
    folder = tmp_path_factory.mktemp("trace")
    binary = write(folder / "a.trace", *made, Unknown("future", {"x": b"\x00\xff", "y": [1.5, None]}))
    lines = folder / "a.jsonl"
    lines.write_bytes(text_of(binary))
    for path in (binary, lines):
        for session, original in zip(read_trace(path), made, strict=True):
            for name in ("id", "turns", "threads", "segments", "arrival", "extra", "end_extra", "unknown"):
                assert getattr(session, name) == getattr(original, name)
    assert text_of(lines) == text_of(binary)
    again = folder / "b.trace"
    with TraceWriter(again, read_trace(lines).header) as trace:
        for item in list(read_trace(lines).items())[1:]:
            trace.write(item)
    assert text_of(again) == text_of(binary)


def test_the_golden_file_of_version_1_reads_as_it_always_did() -> None:
    """Never regenerate: what was once written must always be readable."""
    assert text_of(DATA / "trace-v1.trace") == (DATA / "trace-v1.jsonl").read_bytes()
    assert text_of(DATA / "trace-v1.jsonl") == (DATA / "trace-v1.jsonl").read_bytes()


def test_unknown_fields_survive_at_every_depth() -> None:
    body = (DATA / "trace-v1.jsonl").read_text()
    for marker in ("x-header", "x-segment", "x-opaque", "x-session", "x-thread", "x-turn", "x-gap", "x-tool"):
        assert marker in body
    assert '"frame":"x-frame"' in body


def test_unknown_frames_keep_their_place(tmp_path: Path) -> None:
    lines = text_of(write(tmp_path / "a.trace", linear(2))).splitlines()
    path = tmp_path / "b.jsonl"
    first = next(number for number, line in enumerate(lines) if b'"frame":"turn"' in line)
    path.write_bytes(b"\n".join([*lines[: first + 1], b'{"frame":"z","n":1}', *lines[first + 1 :], b""]))
    assert text_of(path) == path.read_bytes()


def test_canonical_lines_have_sorted_keys_and_no_spaces(tmp_path: Path) -> None:
    for line in text_of(write(tmp_path / "a.trace", linear(2))).splitlines():
        assert line.decode() == json.dumps(json.loads(line), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@given(st.integers(1, 2000))
def test_a_torn_file_is_read_up_to_the_tear(tmp_path_factory: pytest.TempPathFactory, lost: int) -> None:
    folder = tmp_path_factory.mktemp("torn")
    whole = write(folder / "a.trace", linear(4, id="a"), linear(4, id="b")).read_bytes()
    first = len(write(folder / "f.trace", linear(4, id="a")).read_bytes())
    cut = folder / "c.trace"
    cut.write_bytes(whole[: max(len(encode("header", {})) + 200, len(whole) - lost)])
    reader = read_trace(cut)
    read = list(reader)
    assert reader.tear is not None or cut.stat().st_size == first
    again = write(folder / "again.trace", *read)  # a rewrite keeps what it knows of the tear
    assert [session.complete for session in read_trace(again)] == [session.complete for session in read]
    for session in read:
        whole_one = linear(4, id=session.id)
        assert session.turns == whole_one.turns[: len(session.turns)]
        assert not session.complete or (session.id, len(session.turns)) == ("a", 4)


def test_a_cut_line_is_a_tear_and_a_broken_one_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    good = text_of(write(tmp_path / "a.trace", linear(2, id="a"), linear(2, id="b")))
    path.write_bytes(good[:-5])
    reader = read_trace(path)
    assert [(session.id, session.complete) for session in reader] == [("a", True), ("b", False)]
    assert "cut short" in str(reader.tear)
    lines = good.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b'{"frame":"turn",\n', *lines[3:]]))
    with pytest.raises(BadInput, match=r"a\.jsonl:4: this line is not JSON"):
        list(read_trace(path))


def test_joined_files_are_different_scopes(tmp_path: Path) -> None:
    one = write(tmp_path / "a.trace", linear(1)).read_bytes()
    path = tmp_path / "twice.trace"
    path.write_bytes(one + one)
    read = list(read_trace(path))
    assert [session.key for session in read] == ["s", "s@1"]
    assert len({session.stream(session.segment(1)).scope for session in read}) == 2


@pytest.mark.parametrize(("identity", "scopes"), [("session", 2), ("file", 1), ("global", 1)])
def test_opaque_blocks_are_compared_as_far_as_the_header_says(tmp_path: Path, identity: str, scopes: int) -> None:
    path = tmp_path / "a.trace"
    with TraceWriter(path, header(identity=identity)) as trace:
        trace.session(linear(1, id="a"))
        trace.session(linear(1, id="b"))
    assert len({session.blocks_scope for session in read_trace(path)}) == scopes


def test_shared_segments_are_written_once_and_before_their_use(tmp_path: Path) -> None:
    kinds = [
        json.loads(line)["frame"]
        for line in text_of(write(tmp_path / "a.trace", linear(1), linear(1, id="b"))).splitlines()
    ]
    assert kinds[:4] == ["header", "segment", "segment", "session"]
    assert kinds.count("segment") == 2 + 2 * 2  # tools and system once, user and reply in each session


HEADER = {"frame": "header", "version": 1, "name": "n", "scope": "s"}
SEGMENT = {"frame": "segment", "id": 1, "layer": "user", "tokens": 5}
SESSION = {"frame": "session", "id": "a"}
TURN = {"frame": "turn", "index": 0, "thread": 0, "isl": 5, "output": {"visible": 1}, "prompt": {"append": [[1, 0, 5]]}}
END = {"frame": "end", "turns": 1}
OPAQUE = {"block": 64, "runs": [[1, 0, 5]]}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([SESSION], "the first frame is 'session', not a header"),
        ([{**HEADER, "version": 2}], "version 2 is newer than 1"),  # a newer major version
        ([{**HEADER, "version": "1"}], "version: '1' is not a whole number"),
        ([{"frame": "header", "version": 1, "scope": "s"}], "the field 'name' is missing"),
        ([{**HEADER, "identity": "galaxy"}], "identity: 'galaxy' is not one of session file global"),
        ([HEADER, {**SEGMENT, "layer": "toolz"}], "layer: 'toolz' is not one of tools"),
        ([HEADER, {**SEGMENT, "tokens": -1}], "tokens: -1 is not a whole number from 0"),
        ([HEADER, {**SEGMENT, "tokens": 1 << 41}], "tokens: 2199023255552 is not a whole number"),  # a stated limit
        ([HEADER, {**SEGMENT, "tokens": True}], "tokens: True is not"),
        ([HEADER, SEGMENT, {**SEGMENT, "tokens": 6}], "segment 1 is defined a second time, and differently"),
        ([HEADER, {**SEGMENT, "text": "a", "ids": [1]}], "its content is given twice: text and ids"),
        ([HEADER, {**SEGMENT, "opaque": OPAQUE, "tokens": 6}], "its opaque runs hold 5 tokens, not 6"),
        (
            [HEADER, {**SEGMENT, "opaque": {"block": 64, "runs": [[-1, 0, 5]]}}],
            "block id: -1 is not",
        ),  # negative hash id
        ([HEADER, {**SEGMENT, "opaque": {"block": 64, "runs": [[1, 64, 5]]}}], "offset: 64 is not"),
        ([HEADER, {**SEGMENT, "opaque": {"block": 64, "runs": [[1, 5]]}}], "is not \\[block id, offset, tokens\\]"),
        ([HEADER, TURN], "a turn outside a session"),
        ([HEADER, END], "an end frame outside a session"),
        ([HEADER, SESSION, SESSION], "session 'a' has no end frame"),
        ([HEADER, SESSION, HEADER], "session 'a' has no end frame"),
        ([HEADER, SESSION, {"frame": "end", "turns": 0}, SESSION], "the session id 'a' occurs twice"),
        ([HEADER, {**SESSION, "id": "a@1"}, {**END, "turns": 0}, HEADER, SESSION, {**END, "turns": 0}], "'a@1' occurs"),
        ([HEADER, {**SESSION, "id": "\ud800"}], "id: .* is not text that UTF-8 can hold"),
        ([HEADER, {**SESSION, "arrival": 10**400}], "arrival: 1000.* is not a number of seconds"),
        ([HEADER, {"frame": "x", "y": {"$bytes": 5}}], "this line is not JSON"),
        ([HEADER, {"frame": "x", "y": {"$bytes": "!!"}}], "this line is not JSON"),
        ([HEADER, SESSION, SEGMENT, TURN, {"frame": "end", "turns": 2}], "counts 2 turns, 1 were read"),
        ([HEADER, SESSION, TURN], "turn 0: segment 1 is not defined before its use"),
        ([HEADER, SESSION, SEGMENT, {**TURN, "index": 3}], "numbered in order, 0 was expected"),
        ([HEADER, SESSION, SEGMENT, {**TURN, "thread": 5}], "turn 0: no thread 5"),
        ([HEADER, SESSION, SEGMENT, {**TURN, "after": [0]}], "after 0, which is not an earlier turn"),
        ([HEADER, SESSION, SEGMENT, {**TURN, "prompt": {"append": [[1, 0, 6]]}}], "piece \\[0, 6\\) of segment 1"),
        ([HEADER, SESSION, SEGMENT, {**TURN, "prompt": {"append": [[1, 3, 3]]}}], "is empty or starts below 0"),
        ([HEADER, SESSION, SEGMENT, {**TURN, "prompt": {"keep": 2}}], "keeps 2 pieces of no turn"),
        ([HEADER, SESSION, SEGMENT, TURN, {**TURN, "index": 1, "prompt": {"base": 0, "keep": 2}}], "the base has 1"),
        ([HEADER, SESSION, SEGMENT, {**TURN, "gap": {"seconds": -1}}], "gap: -1.0 seconds is below 0"),
        ([HEADER, SESSION, SEGMENT, {**TURN, "gap": {"parts": {"tool": -1}}}], "gap: parts of -1.0 and None seconds"),
        ([HEADER, SESSION, SEGMENT, {**TURN, "gap": {"kind": "nap"}}], "kind: 'nap' is not one of tool human"),
        ([HEADER, {"frame": "session", "id": "a", "threads": [{"id": 1, "parent": 2}]}], "parent 2 is not an earlier"),
        ([{"no": "frame"}], 'this line has no "frame"'),
        ([[1, 2]], "not an agentx trace"),
    ],
)
def test_what_breaks_a_rule_is_one_line_with_its_place(tmp_path: Path, lines: list[object], message: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(BadInput, match=message) as caught:
        list(read_trace(path))
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"hello\n", b"PK\x03\x04", b"[1]\n", b"\xff\xfe", b"\x93AX1", b"\n\n"])
def test_other_files_are_not_traces(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.trace"
    path.write_bytes(content)
    with pytest.raises(BadInput, match="not an agentx trace"):
        list(read_trace(path))


def test_blank_lines_and_a_byte_order_mark_may_come_first(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf\n\n\n\n\n" + json.dumps(HEADER).encode() + b"\n")
    assert read_trace(path).header.name == "n"


def test_numbers_that_json_has_not_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({**HEADER, "x": 1})[:-1] + ', "y": NaN}\n')
    with pytest.raises(BadInput, match="NaN is not a number"):
        list(read_trace(path))


def test_header_can_be_asked_for_before_reading(tmp_path: Path) -> None:
    path = write(tmp_path / "a.trace", linear(1))
    reader = TraceReader(path)
    assert reader.header == Header("test", "scope")
    assert len(list(reader)) == 1


def test_memory_is_bounded_by_one_session(tmp_path: Path) -> None:
    """A session's own segments are not known to the next one."""
    path = tmp_path / "a.jsonl"
    made = [HEADER, SESSION, SEGMENT, TURN, END, {**SESSION, "id": "b"}, TURN]
    path.write_text("".join(json.dumps(line) + "\n" for line in made))
    with pytest.raises(BadInput, match="session 'b': turn 0: segment 1 is not defined"):
        list(read_trace(path))


def test_shared_segments_can_be_given_first(tmp_path: Path) -> None:
    path = write(tmp_path / "a.trace", *SHARED.values(), linear(1))
    assert sum(isinstance(item, Segment) for item in read_trace(path).items()) == 3
