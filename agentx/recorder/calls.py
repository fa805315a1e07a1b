"""The waist of recording: one model call as its source tells it, whether that is a capture or another tool's log.

A source says what was asked, what was answered, when, and what names the conversation; what is a retry, which turn
goes on from which, and what content shares, is found from these in the same way for all (`attempts.py`,
`lineage.py`, `weaving.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from agentx.recorder.canonical import Call, Item, NotACall, read_call
from agentx.recorder.capture_reader import Exchange, Pairs
from agentx.recorder.decoding import Undecodable, decoded
from agentx.recorder.memo import Memo
from agentx.recorder.replies import Reply, read_reply


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One model call. Times are nanoseconds since the epoch; `timed` false: they only say the order.

    `order`: arrival, then what tells equal arrivals apart. `ids`: (identity header, pseudonym) pairs, the first of a
    name counts. `kind`: the role of a subagent. `retries`: which attempt the client says that it is, from 0.
    """

    order: tuple[int, int, int]
    ended: int
    wire: str
    request: Call
    reply: Reply
    ids: Pairs = ()
    credential: str | None = None
    kind: str | None = None
    retries: int = 0
    cause: str = "done"
    status: int | None = None
    timed: bool = True


def of_exchange(exchange: Exchange, memo: Memo[tuple[Item, ...]]) -> ModelCall | str:
    """A recorded exchange as a model call, or why it is none."""
    if exchange.wire is None:
        return "no model call: another path"
    if exchange.cause == "refused":
        return "refused by the recorder"
    if exchange.cause == "recorder_crash":
        return "its end is not on record: the recorder was killed, or its disk was full"
    if exchange.body is None or exchange.asked is None or exchange.why == "the request was cut":
        return f"the request is not on record: {exchange.why or 'it was cut'}"
    try:
        coding = exchange.header("content-encoding") or ""
        parts = (decoded(exchange.body, coding),) if coding not in ("", "identity") else exchange.parts
        request = read_call(exchange.wire, parts, memo)
    except NotACall as error:
        return f"no model call: {error}"
    except Undecodable as error:
        return f"the request cannot be decoded: {error}"
    retries = exchange.header("x-stainless-retry-count") or ""
    return ModelCall(
        order=(exchange.opened, exchange.run, exchange.number),
        ended=exchange.ended if exchange.ended is not None else exchange.opened,
        wire=exchange.wire,
        request=request,
        reply=read_reply(exchange.wire, exchange),
        ids=exchange.ids,
        credential=exchange.credential,
        kind=exchange.header("x-openai-subagent"),
        retries=int(retries) if retries.isdecimal() and len(retries) < 6 else 0,
        cause=exchange.cause,
        status=exchange.status,
    )
