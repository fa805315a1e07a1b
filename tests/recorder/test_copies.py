"""The queue never waits: what has no room is dropped, and counted."""

from __future__ import annotations

import pytest

from agentx.recorder.copies import Copies, Opened

CALL = Opened("POST", "/v1/messages", [], "messages", 1)
OTHER = Opened("GET", "/health", [], None, 1)


def test_events_come_out_in_order() -> None:
    copies = Copies()
    copy = copies.open(CALL)
    copy.request(b"ask")
    copy.asked()
    copy.head(200, [])
    copy.data(b"answer")
    copy.end("done")
    events = copies.take()
    assert [event.kind for event in events] == ["open", "request", "asked", "head", "data", "end"]
    assert [event.data for event in events[1:5]] == [b"ask", None, (200, []), b"answer"]
    assert [event.at for event in events] == sorted(event.at for event in events)
    assert copies.waiting == 0


def test_what_is_no_model_call_is_only_measured() -> None:
    copies = Copies()
    copies.open(OTHER).data(b"12345")
    assert copies.take()[1].data == 5
    assert (copies.tally.dropped_bytes, copies.tally.response_bytes) == (0, 5)


def test_a_full_queue_drops_bodies_then_everything() -> None:
    """Lengths are still noted at first; after twice the limit whole exchanges are only counted."""
    copies = Copies(limit=1000)
    copy = copies.open(CALL)
    copy.data(b"x" * 700)
    copy.data(b"y" * 700)
    assert [event.data for event in list(copies.take())[1:]] == [b"x" * 700, 700]
    assert copies.tally.dropped_bytes == 700
    copy.data(b"z" * 700)
    for _ in range(20):
        copy.head(200, [])
    assert copies.waiting > 2000
    copy.data(b"w")
    copies.open(CALL).end("done")
    assert copies.tally.unrecorded == 1
    assert copies.tally.exchanges == 2
    assert [event.exchange for event in copies.take()] == [1] * 21


def test_only_the_first_end_counts() -> None:
    copies = Copies()
    copy = copies.open(CALL)
    copy.end("upstream_abort", "reset")
    copy.end("client_abort")
    assert dict(copies.tally.ends) == {"upstream_abort": 1}
    assert len(copies.take()) == 2


@pytest.mark.parametrize(
    ("last", "cause"),
    [
        (b"data: [DONE]\n\n", "done"),
        (b'event: message_stop\ndata: {"type":"message_stop"}\n\n', "done"),
        (b'data: {"choices":[]}\n\n', "client_abort"),
        (b"data: [DONE]\n\n" + b"x" * 200, "client_abort"),
    ],
)
def test_leaving_after_the_last_event_is_no_abort(last: bytes, cause: str) -> None:
    copies = Copies()
    copy = copies.open(CALL)
    copy.data(last)
    copy.end("client_abort")
    assert dict(copies.tally.ends) == {cause: 1}
