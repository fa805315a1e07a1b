"""mitmproxy flows: written here by a small encoder, read whole, torn and hostile."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logs import take

from agentx.errors import BadInput
from agentx.recorder.imports.mitmproxy import Damaged, netstring

KEY = "sk-test-0123456789abcdef"


def encoded(value: Any) -> bytes:
    if value is None:
        kind, data = b"~", b""
    elif value is True or value is False:
        kind, data = b"!", b"true" if value else b"false"
    elif isinstance(value, int):
        kind, data = b"#", str(value).encode()
    elif isinstance(value, float):
        kind, data = b"^", repr(value).encode()
    elif isinstance(value, bytes):
        kind, data = b",", value
    elif isinstance(value, str):
        kind, data = b";", value.encode()
    elif isinstance(value, list | tuple):
        kind, data = b"]", b"".join(map(encoded, value))
    else:
        kind, data = b"}", b"".join(encoded(k) + encoded(v) for k, v in value.items())
    return b"%d:%b%b" % (len(data), data, kind)


def flow(start: float, body: Any, reply: bytes | None, took: float = 2.0, **more: Any) -> bytes:
    headers = [(b"Authorization", f"Bearer {KEY}".encode()), (b"X-Session-Id", b"s1")]
    request = {"method": b"POST", "path": b"/v1/chat/completions?key=" + KEY.encode(), "headers": headers,
               "content": json.dumps(body).encode(), "timestamp_start": start, **more.pop("request", {})}  # fmt: skip
    response = {"status_code": 200, "headers": more.pop("headers", []), "content": reply,
                "timestamp_start": start + 1, "timestamp_end": start + took}  # fmt: skip
    return encoded({"version": 21, "type": "http", "request": request, "response": response, "error": None, **more})


def answer(words: str, prompt: int, out: int) -> bytes:
    message = {"role": "assistant", "content": words}
    usage = {"prompt_tokens": prompt, "completion_tokens": out}
    return json.dumps({"id": "c", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}).encode()


TALK = [{"role": "user", "content": "hello there, please help"}]
MORE = [*TALK, {"role": "assistant", "content": "gladly"}, {"role": "user", "content": "thanks"}]


def two() -> bytes:
    zipped = gzip.compress(answer("welcome", 60, 6))
    return flow(100.0, {"model": "m", "messages": TALK}, answer("gladly", 40, 4)) + flow(
        110.0, {"model": "m", "messages": MORE}, zipped, headers=[(b"content-encoding", b"gzip")]
    )


def test_flows_become_turns(tmp_path: Path) -> None:
    (tmp_path / "a.mitm").write_bytes(two())
    taken = take("mitmproxy", tmp_path / "a.mitm")
    assert taken.lengths() == [(40, 4), (60, 6)]
    second = taken.turns[1]
    assert (second.after, second.gap.kind, second.gap.seconds, second.prompt.base) == ((0,), "human", 8.0, 0)
    assert second.observed is not None
    assert (second.observed.start, second.observed.end, second.observed.ttft) == (10.0, 12.0, None)
    assert KEY.encode() not in taken.data  # R20: neither header nor query


def test_a_torn_file_gives_what_is_before(tmp_path: Path) -> None:
    data = two()
    (tmp_path / "a.mitm").write_bytes(data + data[:-30])
    taken = take("mitmproxy", tmp_path / "a.mitm")
    assert taken.books.rows.read == 3
    assert any("torn behind 3 flows" in each for each in taken.books.findings)


def test_a_reply_that_was_streamed_without_being_stored_is_dropped(tmp_path: Path) -> None:
    """R24: no content is no empty reply."""
    (tmp_path / "a.mitm").write_bytes(two() + flow(120.0, {"model": "m", "messages": TALK}, None))
    taken = take("mitmproxy", tmp_path / "a.mitm")
    assert [reason for reason in taken.books.rows.dropped if "stores it only when told" in reason]


def test_other_flows_are_counted(tmp_path: Path) -> None:
    other = flow(1.0, {}, b"{}", request={"path": b"/health"}) + encoded({"type": "tcp"}) + encoded([1])
    (tmp_path / "a.mitm").write_bytes(two() + other)
    taken = take("mitmproxy", tmp_path / "a.mitm")
    assert taken.books.rows.dropped == {"no model call: another path or method": 1, "no HTTP flow": 2}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"hello", "no length at byte 0"),
        (b"99999999999999:x,", "no length at byte 0"),  # a length of too many digits
        (b"9999999999:x,", "goes beyond the end"),
        (b"1:x?", "no type at byte 3"),
        (b"4:1:a,}", "has no pairs"),
        (encoded({"a": 1}).replace(b"1:a;", b"1:9#"), "has no pairs"),
        (b"3:abc#", "a number that is none"),
        (b"60:" + b"9" * 60 + b"#", "more than 40 digits"),
    ],
)
def test_what_is_no_flow_file_is_refused(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "a.mitm").write_bytes(data)
    with pytest.raises(BadInput, match=f"not a mitmproxy flow file: .*{why}"):
        take("mitmproxy", tmp_path / "a.mitm")


def test_deep_nesting_is_refused() -> None:
    data = b"0:]"
    for _ in range(40):
        data = b"%d:%b]" % (len(data), data)
    with pytest.raises(Damaged, match="deeper than 32"):
        netstring(data)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.binary(max_size=8) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(PLAIN)
def test_what_is_encoded_is_read_back(value: Any) -> None:
    data = encoded(value)
    assert netstring(data) == (value, len(data))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_damage(data: bytes) -> None:
    try:
        _, end = netstring(data)
    except Damaged:
        return
    assert 0 < end <= len(data)
