"""One request and what came back of it, as it came: times and bytes. Read into an Attempt when it is over.

While a reply streams, what is read is only stamped and kept. The first token is the first event with content,
reasoning or a tool call; what one read brought has one time and is one chunk. What the server did not say stays None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentx.core import Attempt, Chunk, Failure
from agentx.replayer.moves import Send
from agentx.replayer.wires import Wire
from agentx.room import LOST
from agentx.wire import openai, sglang
from agentx.wire.history import LiveReply, reply_fields
from agentx.wire.reply import Reply, ServerError, parse_error
from agentx.wire.sse import SseParser

MAX_MESSAGE = 500  # characters of a server's error that are kept
LONGEST = 2 << 20, 4096, 16  # bytes of a reply: in all cases, for each token asked, for their square if cumulative
SHORTEN = 2048  # bytes; events of a cumulative stream that are longer are cut to what is read of them
_BEGINS, _UNFINISHED = b"\n\ndata: ", b'"finish_reason":null'
# How SGLang words a request that does not fit (facts of 0.5.23; vLLM shares the second).
_OVERFLOWS = ("longer than the model's context", "maximum context length", "exceeds the maximum allowed length")


@dataclass(slots=True)
class Exchange:
    """Filled in by the client. Times are seconds on the run's clock. `asked`: tokens of the reply at most."""

    sent: float = 0.0
    heard: float = 0.0  # last sign of life
    first_byte: float | None = None
    end: float | None = None
    status: int | None = None
    times: list[float] = field(default_factory=list)  # when the read came that completed each event
    events: list[bytes] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)  # what came before the first event: all, where there is no stream
    cumulative: bool = False  # each event repeats the reply so far
    whole: bool = False  # every event is kept: what was generated goes into later prompts
    failure: Failure | None = None
    asked: int | None = None
    hold: float = 0.0  # s for which the server wants to be left alone
    free: float | None = None  # when they were over
    rid: str | None = None
    reused: bool = False  # the connection had been used before
    retries: int = 0  # requests that met a connection which the server was just closing
    _parser: SseParser = field(default_factory=SseParser)
    _bytes: int = 0  # of the body

    def receive(self, at: float, data: bytes) -> bool:
        """Bytes of the body, read at `at`. Returns False for a body that seems to have no end: it has failed."""
        self.heard = at
        self._bytes += len(data)
        if not self.events:
            self.raw.append(data)
        if not self.whole:
            data = thin(data, sglang.has_token if self.cumulative else openai.has_token)
        found = self._parser.feed(data)
        if self.cumulative and found and self.events:
            self.events[-1] = shorten(self.events[-1])  # only the last one will be read whole
        self.times += [at] * len(found)
        self.events += [event.data for event in found]
        if self.asked is not None and self._bytes > longest(self.asked, self.cumulative):
            self.fail("endless", f"{self._bytes} bytes came of a reply of at most {self.asked} tokens")
        return self.failure is None

    def fail(self, kind: str, message: str = "") -> None:
        """The first failure is the cause; later ones are its consequences."""
        self.failure = self.failure or Failure(kind, message[:MAX_MESSAGE])


def longest(asked: int, cumulative: bool) -> int:
    """Bytes that no reply of so many tokens has, whatever stands around them."""
    always, token, square = LONGEST
    return always + token * asked + (square * asked * asked if cumulative else 0)


def thin(data: bytes, has_token: Callable[[bytes], bool]) -> bytes:
    """What one read brought, without the events that its last whole token event makes superfluous.

    Events of one read share a time, and counts are cumulative, so of a run of token events only the last one tells
    something; what else a stream says (an error, the finish, the usage) it says behind its last token.
    """
    sign = data.rfind(_UNFINISHED, 0, data.rfind(b"\n\n") + 1)
    last = data.rfind(_BEGINS, 0, sign + 1)
    first = 0 if data.startswith(_BEGINS[2:]) else data.find(_BEGINS) + 2
    if last <= first or not has_token(data[last : data.find(b"\n\n", sign)]):
        return data
    return data[:first] + data[last + 2 :]


def attempt_of(send: Send, exchange: Exchange, wire: Wire, worker: int = 0) -> tuple[Attempt, LiveReply | None]:
    """The record of one request, and the reply that goes into later prompts where history is live."""
    turn = send.session.turns[send.key.turn]
    reply = _reply(exchange, wire)
    failure = _failure(exchange, reply)
    live = wire.live_reply(send.tokens, reply) if failure is None else None
    chunks, first, last = _chunks(exchange.times or [exchange.end or 0.0], reply)
    attempt = Attempt(
        session=send.session.key,
        play=send.play,
        turn=turn.index,
        thread=turn.thread,
        lane=send.lane,
        due=send.due,
        sent=exchange.sent,
        isl=turn.isl,
        osl=send.tokens,
        worker=worker,
        phase=send.phase,
        first_byte=exchange.first_byte,
        first=first,
        last=last,
        end=exchange.end,
        chunks=tuple(Chunk(round((at - exchange.sent) * 1e6), tokens) for at, tokens in chunks),
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        cached=reply.cached,
        queue_seconds=reply.queue_seconds,
        server_ttft=reply.server_first_token_seconds,
        status=exchange.status,
        failure=failure,
        finish=reply.finish_reason,
        rid=exchange.rid,
        reply=None if live is None else live.digest,
        extra=_extra(send, exchange, reply) | reply_fields(live),
    )
    return attempt, live


def _reply(exchange: Exchange, wire: Wire) -> Reply:
    events, raw = exchange.events, exchange.raw
    if exchange.status != 200 or not raw:
        return Reply()
    if not events:  # no stream: a server that answers as a whole, or with an error in a 200
        return wire.read_whole(b"".join(raw))
    return wire.read_stream(events)


def _failure(exchange: Exchange, reply: Reply) -> Failure | None:
    if exchange.status is not None and exchange.status != 200:
        return told_failure(parse_error(b"".join(exchange.raw), exchange.status), "http")
    whole = reply.done or reply.finish_reason is not None
    if exchange.failure is not None and not (exchange.failure.kind == "closed" and whole):
        return exchange.failure
    if reply.error is not None:
        return told_failure(reply.error, "stream" if exchange.events else "protocol")
    if not whole:
        return Failure("closed", "the stream ended without a finish reason and without [DONE]")
    if not any(reply.carries) and not reply.completion_tokens:
        return Failure("empty", "the reply has no token")
    return None


def told_failure(error: ServerError, kind: str) -> Failure:
    """What an error that the server told means; `kind` where it is not one of those that have their own."""
    if any(words in error.message for words in _OVERFLOWS):
        kind = "overflow"
    message = error.message if error.code is None else f"{error.code}: {error.message}"
    return Failure(kind, message[:MAX_MESSAGE])


def _chunks(times: Sequence[float], reply: Reply) -> tuple[list[tuple[float, int | None]], float | None, float | None]:
    """(time, tokens) of each read that brought a token, and the first and the last of those times."""
    chunks: list[tuple[float, int | None]] = []
    known, sure = 0, True
    for at, carries, count in zip(times, reply.carries, reply.token_counts, strict=False):
        if not carries:
            continue
        tokens = None if count is None or not sure else count - known
        known, sure = (known, False) if count is None else (count, True)
        if chunks and chunks[-1][0] == at:
            before = chunks.pop()[1]
            tokens = None if before is None or tokens is None else before + tokens
        chunks.append((at, tokens))
    if not chunks:
        return chunks, None, None
    return chunks, chunks[0][0], chunks[-1][0]


def _extra(send: Send, exchange: Exchange, reply: Reply) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    if send.moved:
        extra["moved"] = send.moved
    if send.held:
        extra["held"] = send.held
    if lost := send.session.turns[send.key.turn].extra.get(LOST):
        extra[LOST] = lost
    if exchange.retries:
        extra["reconnects"] = exchange.retries
    if exchange.hold:
        extra["held"] = exchange.hold
    if reply.spec:
        extra["spec"] = dict(reply.spec)
    return extra


def shorten(data: bytes) -> bytes:
    """An event of a cumulative stream, cut to its figures: only the last event is ever read whole."""
    at = data.rfind(b'"meta_info"') if len(data) > SHORTEN else -1
    return data if at < 0 else b'{"text":"~",' + data[at:]
