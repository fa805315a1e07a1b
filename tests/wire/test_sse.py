"""The event parser, held to the cases that broke other parsers, each cut in every way."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.wire.sse import SseEvent, SseParser, sse_event

CASES: list[tuple[str, bytes, list[bytes]]] = [
    ("plain", b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
    ("crlf", b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
    ("lone cr", b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
    ("cr of one read, lf of the next", b"data: 1\r\n\r\n", [b"1"]),
    ("cr then lf cr lf", b"data: 1\r" + b"\n\r\n", [b"1"]),
    ("crlf inside of an event is no blank line, cut or not", b"data: 1\r\ndata: 2\r\n\r\n", [b"1\n2"]),
    ("mixed ends", b"data: a\r\n\ndata: b\n\r\ndata: c\r\r\n", [b"a", b"b", b"c"]),
    ("no space after the colon", b'data:{"x":1}\n\n', [b'{"x":1}']),
    ("only one space is removed", b"data:  two\n\n", [b" two"]),
    ("leading BOM", b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
    ("BOM later is no field", b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [b"a"]),
    ("comments and keep-alives", b": ping\n\ndata: a\n: in between\n\n:\n\n", [b"a"]),
    ("lines join with LF", b"data: a\ndata: b\n\n", [b"a\nb"]),
    ("empty data is an event", b"data:\n\ndata\n\n", [b"", b""]),
    ("blank lines dispatch nothing", b"\n\n\ndata: a\n\n\n\n", [b"a"]),
    (
        "U+0085, U+2028 and an emoji are data",
        'data: {"t":"a\u0085b\u2028c\U0001f600"}\n\n'.encode(),
        ['{"t":"a\u0085b\u2028c\U0001f600"}'.encode()],
    ),
    ("vertical tab, form feed, FS are data", b"data: a\x0bb\x0cc\x1cd\n\n", [b"a\x0bb\x0cc\x1cd"]),
    ("unterminated last event", b"data: a\n\ndata: b\n", [b"a"]),
    ("unterminated last line", b"data: a\n\ndata: [DONE]", [b"a"]),
    ("ten events in one write", b"".join(b"data: %d\n\n" % n for n in range(10)), [b"%d" % n for n in range(10)]),
    ("unknown fields", b"retry: 10\nfoo: bar\ndata: a\n\n", [b"a"]),
    ("not UTF-8", b"data: \xff\xfe\n\n", [b"\xff\xfe"]),
]


def parse(raw: bytes, cuts: list[int]) -> tuple[list[SseEvent], bool]:
    parser = SseParser()
    events = []
    at = 0
    for size in cuts:
        events += parser.feed(raw[at : at + size])
        at += size
    events += parser.feed(raw[at:])
    return events, parser.close()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
@pytest.mark.parametrize(("name", "raw", "expected"), CASES, ids=[case[0] for case in CASES])
def test_any_chunking_gives_the_same_events(name: str, raw: bytes, expected: list[bytes], size: int) -> None:
    """R5 to R10."""
    events, _ = parse(raw, [size] * (len(raw) // size))
    assert [event.data for event in events] == expected


@pytest.mark.parametrize(("name", "raw", "expected"), CASES, ids=[case[0] for case in CASES])
def test_one_cut_anywhere(name: str, raw: bytes, expected: list[bytes]) -> None:
    for cut in range(len(raw) + 1):
        events, _ = parse(raw, [cut])
        assert [event.data for event in events] == expected, cut


def test_event_name_lasts_one_event_and_id_lasts_on() -> None:
    raw = b"event: delta\nid: 7\ndata: a\n\ndata: b\n\nid: x\0y\ndata: c\n\nevent: lost\n\ndata: d\n\n"
    events, _ = parse(raw, [])
    assert events == [
        SseEvent("delta", b"a", "7"),
        SseEvent("message", b"b", "7"),
        SseEvent("message", b"c", "7"),
        SseEvent("message", b"d", "7"),
    ]


@pytest.mark.parametrize(
    ("raw", "dropped"),
    [
        (b"data: a\n\n", False),
        (b"data: a\n", True),  # its blank line never came
        (b"dat", True),
        (b": comment\n", False),
        (b"data: a\r\n\r", False),
    ],
)
def test_close_tells_a_cut_stream(raw: bytes, dropped: bool) -> None:
    assert parse(raw, [])[1] is dropped


def test_a_long_line_in_tiny_reads() -> None:
    raw = sse_event(b"x" * 300_000)
    events, _ = parse(raw, [1] * len(raw))  # quadratic work would take minutes here
    assert [len(event.data) for event in events] == [300_000]


@given(
    events=st.lists(st.binary(max_size=40), max_size=6),
    ending=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    cuts=st.lists(st.integers(0, 9), max_size=60),
)
def test_what_is_encoded_comes_back(events: list[bytes], ending: bytes, cuts: list[int]) -> None:
    raw = b"".join(map(sse_event, events)).replace(b"\n", ending)
    parsed, dropped = parse(raw, cuts)
    assert [event.data for event in parsed] == [re.sub(b"\r\n|\r", b"\n", data) for data in events]
    assert not dropped


@given(raw=st.binary(max_size=200), cuts=st.lists(st.integers(0, 20), max_size=30))
def test_chunking_never_matters(raw: bytes, cuts: list[int]) -> None:
    assert parse(raw, cuts) == parse(raw, [])
