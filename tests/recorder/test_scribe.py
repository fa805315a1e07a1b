"""The writer in its own process: what it was given is written, whoever dies; a slow disk holds nobody up."""

from __future__ import annotations

import io
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agentx.recorder.capture import recording
from agentx.recorder.capture_reader import CaptureReader, Exchange
from agentx.recorder.copies import Copies, Event, Opened
from agentx.recorder.scribe import Scribe, _event, _Inbox, _messages, _packed

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


VALUES = st.one_of(st.binary(max_size=50), st.integers(0, 2**63), st.none(), st.text(max_size=9))


@given(
    st.lists(st.tuples(st.sampled_from(["request", "data", "asked"]), st.integers(1, 2**40), st.integers(0), VALUES))
)
def test_events_come_through_the_pipe_as_they_were(events: list[tuple[object, ...]]) -> None:
    events = [event for event in events if event[2] < 2**63]  # type: ignore[operator]
    pipe = io.BytesIO(b"".join(_packed(event) for event in events) + b"\x09\0\0\0cut")
    assert [_event(value) for value, _ in _messages(pipe)] == [Event(*event) for event in events]  # type: ignore[arg-type]


def test_an_opening_comes_through_with_its_odd_bytes() -> None:
    ((value, size),) = _messages(io.BytesIO(_packed(Event("open", 1, 2, CALL))))
    assert _event(value).data == CALL
    assert size > 20


def test_the_inbox_holds_back_what_it_cannot_hold() -> None:
    inbox, put = _Inbox(), threading.Event()
    event = Event("data", 1, 1, b"")

    def fill() -> None:
        for _ in range(3):
            inbox.put_event(event, 40 << 20)
        put.set()

    thread = threading.Thread(target=fill)
    thread.start()
    while len(inbox._inside) < 2:
        threading.Event().wait(0.001)
    assert not put.wait(0.05)
    assert len(inbox.take()) == 2
    thread.join(5)
    assert put.is_set()
    assert len(inbox.take()) == 1
