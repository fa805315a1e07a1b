"""One simulated request and what the engine did with it, read into the same record as one that went over HTTP."""

from __future__ import annotations

from typing import Any

from agentx.core import Attempt, Cached, Chunk, Failure
from agentx.engine.messages import Admitted, Finished, Tokens, told_speculation
from agentx.engine.nodes import ID_BYTES
from agentx.engine.tokenizer import ids_to_list, ids_to_text
from agentx.replayer.exchange import told_failure
from agentx.replayer.moves import Send
from agentx.replayer.wires import Wire
from agentx.room import LOST
from agentx.wire.history import LiveReply, reply_fields
from agentx.wire.openai import merge_cached
from agentx.wire.reply import ServerError


class Flight:
    """Seconds on the run's clock, which is virtual. One step of the engine is one chunk, as one write of a server."""

    __slots__ = (
        "admitted", "end", "failure", "finished", "heard", "ids", "last", "rid", "send", "sent", "status", "times",
        "tokens",
    )  # fmt: skip

    def __init__(self, send: Send, sent: float, rid: str) -> None:
        self.send, self.sent, self.heard, self.rid = send, sent, sent, rid
        self.times: list[float] = []
        self.tokens: list[int] = []
        self.ids = bytearray()
        self.admitted: Admitted | None = None
        self.finished: Finished | None = None
        self.failure: Failure | None = None
        self.last: float | None = None
        self.status: int | None = None  # that of a refusal; 200 goes out with the first token
        self.end = sent

    def take(self, event: Tokens) -> None:
        count = len(event.ids) // ID_BYTES
        self.heard = self.last = event.at
        self.ids += event.ids
        if self.times and self.times[-1] == event.at:
            self.tokens[-1] += count
            return
        self.times.append(event.at)
        self.tokens.append(count)

    def finish(self, event: Finished) -> None:
        """The engine ended it, in one way or another."""
        self.finished, self.end = event, event.at
        if event.status is not None:
            self.fail(told_failure(ServerError(event.status, event.message or "aborted"), "stream"), event.at)

    def fail(self, failure: Failure, at: float) -> None:
        self.failure, self.end = failure, at

    def reply(self, wire: Wire) -> LiveReply | None:
        """What goes into later prompts, where history is live."""
        if not wire.live or self.failure is not None or not self.ids:
            return None
        return LiveReply(self.send.tokens, len(self.ids) // ID_BYTES, ids=tuple(ids_to_list(bytes(self.ids))))

    def attempt(self, wire: Wire) -> Attempt:
        """The record. What a server would not have told is unknown here too."""
        send, finished, admitted = self.send, self.finished, self.admitted
        live = self.reply(wire)
        if live is not None and wire.history == "live":
            live = LiveReply(live.asked, live.tokens, text=ids_to_text(bytes(self.ids)))
        turn = send.session.turns[send.key.turn]
        sent, whole = self.sent, finished is not None
        return Attempt(
            session=send.session.key,
            play=send.play,
            turn=turn.index,
            thread=turn.thread,
            lane=send.lane,
            due=send.due,
            sent=sent,
            isl=turn.isl,
            osl=send.tokens,
            phase=send.phase,
            first_byte=self.times[0] if self.times else None,
            first=self.times[0] if self.times else None,
            last=self.last,
            end=self.end,
            chunks=tuple(
                Chunk(round((at - sent) * 1e6), count) for at, count in zip(self.times, self.tokens, strict=True)
            ),
            prompt_tokens=finished.prompt_tokens if finished else None,
            completion_tokens=finished.completion_tokens if finished else sum(self.tokens) or None,
            cached=_cached(admitted) if whole else None,
            queue_seconds=admitted.queued_seconds if admitted else None,
            status=self._status(),
            failure=self.failure,
            finish=finished.reason if finished and finished.status is None else None,
            rid=self.rid if wire.kind == "generate" else None,
            reply=None if live is None else live.digest,
            extra=_extra(send, finished) | reply_fields(live),
        )

    def _status(self) -> int | None:
        return 200 if self.times or self.finished is not None else self.status


def _cached(admitted: Admitted | None) -> Cached | None:
    if admitted is None:
        return None
    tiers = {"device": admitted.cached_device, "host": admitted.cached_host}
    return merge_cached(None, admitted.cached_device + admitted.cached_host, tiers)


def _extra(send: Send, finished: Finished | None) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    if send.moved:
        extra["moved"] = send.moved
    if send.held:
        extra["held"] = send.held
    if lost := send.session.turns[send.key.turn].extra.get(LOST):
        extra[LOST] = lost
    if finished is not None and finished.retractions:
        extra["retractions"] = finished.retractions
    if finished is not None and finished.verify_steps:
        extra["spec"] = told_speculation(finished.verify_steps, finished.histogram, finished.completion_tokens)
    return extra
