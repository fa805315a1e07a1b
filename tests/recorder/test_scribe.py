"""The writer in its own process: what it was given is written, whoever dies; a slow disk holds nobody up."""

from __future__ import annotations

import io
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.recorder import scribe as scribe_module
from agentx.recorder.capture import recording
from agentx.recorder.capture_reader import CaptureReader, Exchange
from agentx.recorder.copies import Copies, Event, Opened
from agentx.recorder.scribe import ALONE, SLICE, Scribe, _events, _Inbox, _message, _write

CALL = Opened("POST", "/v1/messages?\udcff", [("X-Session-Id", "s"), ("Odd", "\udcff")], "messages", 1)


@contextmanager
def scribe(folder: Path, copies: Copies, warn: Callable[[str], None] = lambda text: None) -> Iterator[Scribe]:
    with recording(folder / "cap", {}, folder / "key") as capture:
        made = Scribe(copies, capture, "none", ["x-mine"], warn)
        made.start()
        yield made


def call(copies: Copies, body: bytes, reply: bytes) -> None:
    copy = copies.open(CALL)
    copy.request(body)
    copy.asked()
    copy.head(200, [("Content-Type", "application/json")])
    copy.data(reply)
    copy.end("done")


def read(folder: Path) -> list[Exchange]:
    return list(CaptureReader(folder / "cap"))


def test_what_it_is_given_is_written_and_counted(tmp_path: Path) -> None:
    copies = Copies()
    with scribe(tmp_path, copies) as made:
        for number in range(20):
            call(copies, b'{"n":%d}' % number, b"x" * 10_000)
        tally = made.stop()
    assert tally is not None
    assert (tally.recorded, tally.incomplete, tally.failures) == (20, 0, 0)
    exchanges = read(tmp_path)
    assert [exchange.body for exchange in exchanges] == [b'{"n":%d}' % number for number in range(20)]
    assert exchanges[0].ids[0][0] == "x-session-id"


def test_a_writer_that_is_killed_is_said_and_traffic_goes_on(tmp_path: Path) -> None:
    copies, warnings, warned = Copies(), list[str](), threading.Event()

    def warn(text: str) -> None:
        warnings.append(text)
        warned.set()

    with scribe(tmp_path, copies, warn) as made:
        made._child.send_signal(signal.SIGKILL)
        made._child.wait()
        while not warned.wait(0.01):  # until the pipe breaks
            call(copies, b"{}", b"x" * 100_000)
        assert made.stop() is None
    assert len(warnings) == 1
    assert "NOT RECORDED" in warnings[0]


def test_a_folder_that_is_gone_before_the_writer_has_begun_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    copies, warnings = Copies(), list[str]()
    with recording(tmp_path / "cap", {}, tmp_path / "key") as capture:
        made = Scribe(copies, capture, "none", (), warnings.append)
        shutil.rmtree(tmp_path / "cap")
        made.start()
        assert made.stop() is None
    assert warnings[0].startswith("agentx record: the capture cannot be written: No such file")
    assert "Traceback" not in capfd.readouterr().err


def test_a_parent_that_is_gone_leaves_a_whole_capture(tmp_path: Path) -> None:
    """The pipe just ends: everything that had gone into it is written."""
    copies = Copies()
    with scribe(tmp_path, copies) as made:
        call(copies, b"{}", b"reply")
        while copies.waiting:  # until it is taken
            threading.Event().wait(0.005)
        made._dead = True  # the parent does not say goodbye
        made.stop()
    assert [exchange.cause for exchange in read(tmp_path)] == ["done"]


SIZES = st.sampled_from([0, 9, ALONE - 1, ALONE, ALONE + 1])
VALUES = st.one_of(SIZES.map(lambda size: b"x" * size), st.integers(0, 2**63), st.none(), st.text(max_size=9))
KINDS = st.sampled_from(["request", "data", "asked"])
EVENTS = st.lists(st.builds(Event, KINDS, st.integers(1, 2**40), st.integers(0, 2**63 - 1), VALUES), max_size=9)


def sent(*batches: list[Event]) -> bytes:
    return b"".join(buffer for events in batches for buffer in _message(events))


@given(st.lists(EVENTS.filter(bool), max_size=3))
def test_events_come_through_the_pipe_as_they_were(batches: list[list[Event]]) -> None:
    assert list(_events(io.BytesIO(sent(*batches)))) == [event for events in batches for event in events]


@given(EVENTS.filter(bool), st.floats(0, 1))
def test_a_pipe_that_is_cut_gives_what_came_before(events: list[Event], share: float) -> None:
    whole = sent(events, events)
    came = list(_events(io.BytesIO(whole[: int(len(whole) * share)])))
    assert came == (events + events)[: len(came)]
    assert len(came) >= (len(events) if share * len(whole) >= len(sent(events)) else 0)


def test_an_opening_comes_through_with_its_odd_bytes() -> None:
    (event,) = _events(io.BytesIO(sent([Event("open", 1, 2, CALL)])))
    assert event.data == CALL


def test_a_large_piece_goes_into_the_pipe_as_it_is() -> None:
    """R14: neither packed nor joined, which would keep the proxy's loop from running while it is copied."""
    piece = b"x" * ALONE
    *message, last = _message([Event("data", 1, 2, piece)])
    assert last is piece
    assert sum(map(len, message)) < 64


@pytest.mark.parametrize("cut", [0, 1, 5, 11])
def test_a_write_that_is_cut_short_is_gone_on_with(monkeypatch: pytest.MonkeyPatch, cut: int) -> None:
    buffers, got = [b"abc", b"", b"defg", b"hijk"], bytearray()

    def put(_: int, data: bytes) -> int:
        got.extend(data[:2])
        return min(2, len(data))

    def put_all(_: int, parts: list[bytes]) -> int:
        got.extend(b"".join(parts)[:cut])
        return cut

    monkeypatch.setattr(scribe_module.os, "write", put)
    monkeypatch.setattr(scribe_module.os, "writev", put_all)
    _write(7, buffers)
    assert bytes(got) == b"abcdefghijk"


def test_what_is_taken_at_once_is_bounded(tmp_path: Path) -> None:
    """R14, R25: while a slice is in hand, all else is still in the queue, whose bound counts it."""
    copies, held = Copies(), list[int]()
    copy = copies.open(CALL)
    for _ in range(100):
        copy.data(b"x" * 100_000)
    with recording(tmp_path / "cap", {}, tmp_path / "key") as capture, open(os.devnull, "wb") as pipe:
        made = Scribe(copies, capture, "none", [], print)

        def send(_: object, buffers: list[bytes]) -> None:
            held.append(sum(map(len, buffers)))
            assert sum(held) + copies.waiting > 10_000_000

        made._send = send  # type: ignore[method-assign]
        made._turn(pipe)
    assert max(held) < SLICE + 100_100
    assert sum(held) > 10_000_000


def test_the_inbox_holds_back_what_it_cannot_hold() -> None:
    inbox, put = _Inbox(), threading.Event()
    event = Event("data", 1, 1, bytes(40 << 20))

    def fill() -> None:
        for _ in range(3):
            inbox.put_event(event)
        put.set()

    thread = threading.Thread(target=fill, daemon=True)
    thread.start()
    while thread.is_alive() and len(inbox._inside) < 2:
        threading.Event().wait(0.001)
    assert not put.wait(0.05)
    assert len(inbox.take()) == 2
    thread.join(5)
    assert put.is_set()
    assert len(inbox.take()) == 1
