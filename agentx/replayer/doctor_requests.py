"""What the doctor learns by asking a server: cached tokens, chunks, words, idle connections, clocks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime

import aiohttp
from yarl import URL

from agentx.content import WordList, lexicon
from agentx.core import Attempt
from agentx.errors import BadInput
from agentx.replayer.asides import Asides
from agentx.replayer.doctor_check import Check

PROMPT = 256  # tokens; twice as many for the second of drift
REPLY = 24  # tokens whose chunks are counted
IDLE = 8.0  # s for which a connection is left idle: SGLang closes one after 5 s unless it is told otherwise
SKEW = 2.0  # s that a server's clock may be off: its Date header has whole seconds


async def asked_checks(asides: Asides, words: WordList | None, page: int) -> list[Check]:
    """Everything that a few short requests show. None of them is long, and nothing is flushed."""
    first = await asides.ask(PROMPT + page)
    if first.failure is not None:
        said = f"a request of {PROMPT + page} tokens failed by {first.failure.kind}: {first.failure.message}"
        return [Check("requests", "problem", said)]
    again = await asides.ask(PROMPT + page)
    longer = await asides.ask(2 * (PROMPT + page), segment=1, reply=REPLY)
    return [_cached(first, again, page), *_drift(first, longer), _chunks(longer), _words(words)]


def _cached(first: Attempt, again: Attempt, page: int) -> Check:
    cached = again.cached
    if cached is None or cached.total is None:
        mend = "SGLang: --enable-cache-report"
        return Check("cache report", "problem", "replies tell no cached tokens: reuse by request stays unknown", mend)
    before = first.cached.total if first.cached is not None and first.cached.total is not None else 0
    if cached.total < before + page:
        said = f"a prompt that was sent twice met {before} and {cached.total} cached tokens: the cache is not seen"
        mend = "SGLang: --enable-cache-report, and no --disable-radix-cache; behind a router keep sessions together"
        return Check("cache report", "problem", said, mend)
    tiers = "" if cached.device is None else ", by tier"
    return Check("cache report", "ok", f"a prompt sent twice met {before} and {cached.total} cached tokens{tiers}")


def _drift(first: Attempt, longer: Attempt) -> Iterator[Check]:
    """Twice the words must be twice the tokens; what is left over is the template's."""
    if first.prompt_tokens is None or longer.prompt_tokens is None:
        yield Check(
            "tokens", "problem", "replies tell no usage: token counts are not known", "stream_options are asked for"
        )
        return
    drift = (longer.prompt_tokens - first.prompt_tokens) - (longer.isl - first.isl)
    around = first.prompt_tokens - first.isl
    if drift:
        more = longer.isl - first.isl
        said = f"{more} more words were {more + drift} more tokens: lengths will not be exact"
        yield Check("tokens", "warning", said, "wire: generate or chat-ids sends token ids")
    else:
        yield Check("tokens", "ok", f"a word is a token; {around} more are put around a prompt")


def _chunks(attempt: Attempt) -> Check:
    told, tokens = attempt.chunks, attempt.completion_tokens
    if not told or tokens is None:
        return Check("chunks", "warning", "a reply came in one piece, not streamed: there is no time to first token")
    if tokens < attempt.osl:
        said = f"{tokens} of {attempt.osl} tokens came: the server ends replies before they have their length"
        return Check("chunks", "warning", said, "a server that honours ignore_eos and min_tokens")
    return Check("chunks", "ok", f"{tokens} tokens came in {len(told)} reads")


def _words(words: WordList | None) -> Check:
    total = len(lexicon())
    if words is None:
        said = "no /tokenize: how many tokens a word is cannot be confirmed"
        return Check("words", "unknown", said, "wire: chat, and the drift above tells")
    return Check("words", "ok", f"{len(words.words)} of {total} words are one token each")


async def keep_alive_check(base: str, idle: float | None = None) -> Check:
    """Leave a connection idle and see whether the server closes it."""
    idle, url = IDLE if idle is None else idle, URL(base)
    if url.scheme == "https":
        return Check("keep-alive", "unknown", "not looked at over https")
    try:
        reader, writer = await asyncio.open_connection(url.host, url.port)
    except OSError as error:
        return Check("keep-alive", "unknown", f"no second connection: {error.strerror}")
    try:
        path = url.path.rstrip("/") + "/v1/models"
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {url.host}:{url.port}\r\n\r\n".encode())
        await writer.drain()
        seen, began = b"", time.monotonic()
        while True:
            left = idle - (time.monotonic() - began)
            try:
                data = await asyncio.wait_for(reader.read(1 << 16), max(0.0, left))
            except asyncio.TimeoutError:
                return Check("keep-alive", "ok", f"an idle connection was still open after {idle:g} s")
            if not data:
                break
            seen, began = seen + data, time.monotonic()
    except OSError:
        pass  # a reset is a close too
    finally:
        writer.close()
    said = f"the server closed a connection that had been idle for {time.monotonic() - began:.1f} s"
    mend = "SGLANG_TIMEOUT_KEEP_ALIVE=900 in the server's environment; a request that meets a closing one is sent again"
    return Check("keep-alive", "warning", f"{said}: turns after longer gaps begin with a new one", mend)


async def clock_check(session: aiohttp.ClientSession, base: str) -> Check:
    """The server's wall clock by its Date header, against this machine's."""
    before = time.time()
    try:
        async with session.get(f"{base}/v1/models") as response:
            header = response.headers.get("Date")
    except (aiohttp.ClientError, asyncio.TimeoutError):
        header = None
    after = time.time()
    try:
        told = None if header is None else parsedate_to_datetime(header).timestamp()
    except ValueError:
        told = None
    if told is None:
        return Check("clock", "unknown", "the server tells no time")
    off = max(0.0, before - told - 1.0, told - after)
    if off > SKEW:
        said = f"the server's clock is off by {off:.0f} s or more: its log cannot be laid beside a run by time"
        return Check(
            "clock", "warning", said, "NTP on both; times of a run are of this machine's monotonic clock alone"
        )
    return Check("clock", "ok", "the server's clock agrees to within 2 s")


def refused(name: str, error: BadInput) -> Check:
    """A check that ended in an error that the user can act on."""
    return Check(name, "problem", str(error))
