"""A server of chat completions that does wrong on purpose, in the way that each request is told.

`plan(n)` names what happens to request number n (from 0). It runs in the test's own event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable

from aiohttp import web

WORD = " Abc"


class FaultyServer:
    """What it was asked stays in `bodies`, by request; `connections` counts the ones that were opened."""

    def __init__(self, plan: Callable[[int], str] = lambda n: "ok", *, tokenize: bool = False) -> None:
        self.plan = plan
        self.tokenize = tokenize
        self.bodies: list[dict] = []
        self.headers: list[dict] = []
        self.seen: dict[int, int] = {}  # requests by connection
        self.together = self.waiting = 0

    def app(self) -> web.Application:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_get("/v1/models", self.models)
        app.router.add_post("/v1/chat/completions", self.chat)
        if self.tokenize:
            app.router.add_post("/tokenize", self.tokens)
        return app

    async def models(self, _: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "faulty", "max_model_len": 4096}]})

    async def tokens(self, request: web.Request) -> web.Response:
        """Three-letter words are a token each but those with a z, which are two."""
        prompts = (await request.json())["prompt"]
        return web.json_response({"tokens": [self._ids(prompt) for prompt in prompts]})

    def _ids(self, prompt: str) -> list[int]:
        words = [prompt[at : at + 4] for at in range(0, len(prompt), 4)]
        return [id for word in words for id in ([7, 8] if "z" in word else [int.from_bytes(word.encode(), "big")])]

    async def chat(self, request: web.Request) -> web.StreamResponse:
        number = len(self.bodies)
        body = await request.json()
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        before = self.seen.get(id(request.transport), 0)
        self.seen[id(request.transport)] = before + 1
        fault = self.plan(number)
        answer = getattr(self, f"do_{fault}")
        return await answer(request, body, before)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        return response

    async def do_ok(self, request, body, before):
        response = await self._stream(request)
        for count in range(1, body["max_tokens"] + 1):
            await response.write(content(WORD, count))
            await asyncio.sleep(0)
        await response.write(finish() + usage(body["max_tokens"]) + DONE)
        return response

    async def do_500(self, request, body, before):
        return web.json_response({"error": {"message": "out of luck"}}, status=500)

    async def do_overflow(self, request, body, before):
        message = "The input (9000 tokens) is longer than the model's context length (4096 tokens)."
        return web.json_response({"object": "error", "message": message, "code": 400}, status=400)

    async def do_closed(self, request, body, before):
        response = await self._stream(request)
        await response.write(content(WORD, 1))
        await asyncio.sleep(0.02)
        request.transport.abort()
        return response

    async def do_cut_short(self, request, body, before):
        """A clean end of the body, but no finish and no [DONE]."""
        response = await self._stream(request)
        await response.write(content(WORD, 1))
        return response

    async def do_stall(self, request, body, before):
        response = await self._stream(request)
        await response.write(content(WORD, 1))
        await asyncio.sleep(60)
        return response

    async def do_no_usage(self, request, body, before):
        response = await self._stream(request)
        await response.write(content(WORD) + content(WORD) + finish() + DONE)
        return response

    async def do_utf8(self, request, body, before):
        response = await self._stream(request)
        first = content("é", 1, ascii=False)
        at = first.index("é".encode()) + 1  # in the middle of the character
        await response.write(first[:at])
        await asyncio.sleep(0.03)
        await response.write(first[at:] + content(WORD, body["max_tokens"]) + finish())
        await response.write(usage(body["max_tokens"]) + DONE)
        return response

    async def do_reset(self, request, body, before):
        """The connection is reset (RST, not a clean end) behind the first token."""
        response = await self._stream(request)
        await response.write(content(WORD, 1))
        await asyncio.sleep(0.02)
        at_once = struct.pack("ii", 1, 0)  # linger, for no time
        request.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        request.transport.abort()
        return response

    async def do_busy(self, request, body, before):
        error = {"error": {"message": "slow down"}}
        return web.json_response(error, status=429, headers={"Retry-After": "0.2"})

    async def do_busy_without_a_time(self, request, body, before):
        return web.json_response({"error": {"message": "slow down"}}, status=429)

    async def do_endless(self, request, body, before):
        """A reply that does not keep to its limit, and never ends."""
        response = await self._stream(request)
        with contextlib.suppress(ConnectionError):
            count = 0
            while True:
                count += 100
                await response.write(content(WORD, count) * 100)
                await asyncio.sleep(0)
        return response

    async def do_trickle(self, request, body, before):
        """The same, a token at a time."""
        response = await self._stream(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(content(WORD))
                await asyncio.sleep(0.02)
        return response

    async def do_unbroken(self, request, body, before):
        """Bytes that never become an event."""
        response = await self._stream(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b"x" * (1 << 20))
        return response

    async def do_garbage(self, request, body, before):
        response = await self._stream(request)
        await response.write(b'data: {not json\n\n\xff\xfe\x00: \r\r\ndata: [1, 2]\n\ndata: {"choices": 7}\n\n' + DONE)
        return response

    async def do_garbage_behind_a_token(self, request, body, before):
        response = await self._stream(request)
        await response.write(content(WORD, 1) + b"data: \x80\x81{{{\n\n" + finish() + usage(1) + DONE)
        return response

    async def do_html(self, request, body, before):
        return web.Response(text="<html>502 Bad Gateway</html>", status=502, content_type="text/html")

    async def do_no_http(self, request, body, before):
        """What stands on the port speaks something else."""
        request.transport.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        await asyncio.sleep(0.01)
        request.transport.abort()
        return web.Response()

    async def do_late_role(self, request, body, before):
        response = await self._stream(request)
        await response.write(event({"choices": [{"delta": {"role": "assistant", "content": ""}}]}))
        await asyncio.sleep(0.05)
        await response.write(content(WORD, body["max_tokens"]) + finish() + usage(body["max_tokens"]) + DONE)
        return response

    async def do_reasoning(self, request, body, before):
        """All tokens but one are thoughts, the last one is the answer, 0.05 s behind the first thought."""
        response = await self._stream(request)
        for count in range(1, body["max_tokens"]):
            await response.write(content("hm", count).replace(b'"content"', b'"reasoning_content"'))
            if count == 1:
                await asyncio.sleep(0.05)
        count = body["max_tokens"]
        await response.write(content(WORD, count) + finish() + usage(count) + DONE)
        return response

    async def do_silent_steps(self, request, body, before):
        """Steps whose tokens are no text yet, then all of it."""
        response = await self._stream(request)
        for count in range(1, body["max_tokens"]):
            await response.write(content("", count))
        await asyncio.sleep(0.05)
        await response.write(content(WORD * 25, body["max_tokens"]) + finish() + usage(body["max_tokens"]) + DONE)
        return response

    async def do_silent(self, request, body, before):
        """Not even a head."""
        await asyncio.sleep(60)
        return web.Response()

    async def do_together(self, request, body, before):
        """Nobody is answered before `together` requests are here."""
        self.waiting += 1
        while self.waiting < self.together:
            await asyncio.sleep(0.01)
        return await self.do_ok(request, body, before)

    async def do_no_cache_told(self, request, body, before):
        """A cache report that is always 0."""
        response = await self._stream(request)
        tokens = body["max_tokens"]
        told = {"prompt_tokens": 10, "completion_tokens": tokens, "prompt_tokens_details": {"cached_tokens": 0}}
        await response.write(content(WORD, tokens) + finish() + event({"choices": [], "usage": told}) + DONE)
        return response

    async def do_one_chunk(self, request, body, before):
        response = await self._stream(request)
        tokens = b"".join(content(WORD, count) for count in range(1, body["max_tokens"] + 1))
        await response.write(tokens + finish() + usage(body["max_tokens"]) + DONE)
        return response

    async def do_error_in_200(self, request, body, before):
        response = await self._stream(request)
        await response.write(event({"error": {"message": "The request queue is full.", "code": 503}}) + DONE)
        return response

    async def do_json_error(self, request, body, before):
        return web.json_response({"error": {"message": "no such model", "code": 404}})

    async def do_empty(self, request, body, before):
        response = await self._stream(request)
        await response.write(finish() + usage(0) + DONE)
        return response

    async def do_race(self, request, body, before):
        """An idle connection is closed in the moment in which it is used again."""
        if before:
            request.transport.abort()
            return web.Response()
        return await self.do_ok(request, body, before)

    async def do_drop_new(self, request, body, before):
        """Every connection is closed without an answer."""
        request.transport.abort()
        return web.Response()


DONE = b"data: [DONE]\n\n"


def event(value: object, *, ascii: bool = True) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":"), ensure_ascii=ascii).encode() + b"\n\n"


def content(text: str, count: int | None = None, *, ascii: bool = True) -> bytes:
    told = {} if count is None else {"usage": {"prompt_tokens": 10, "completion_tokens": count}}
    return event({"choices": [{"delta": {"content": text}, "finish_reason": None}], **told}, ascii=ascii)


def finish() -> bytes:
    return event({"choices": [{"delta": {}, "finish_reason": "length"}]})


def usage(tokens: int) -> bytes:
    return event({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": tokens}})


async def started(server: FaultyServer, port: int = 0) -> web.AppRunner:
    """Listen, on a free port unless given."""
    runner = web.AppRunner(server.app(), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    return runner


@contextlib.asynccontextmanager
async def serving(server: FaultyServer) -> AsyncIterator[str]:
    """The server's base URL for as long as the context lasts."""
    runner = await started(server)
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


class Restarting:
    """A server that goes away as the request number `at` comes in, and is back `away` seconds later, its log empty."""

    def __init__(self, at: int, away: float) -> None:
        self.at, self.away = at, away
        self.starts = 0
        self._runner: web.AppRunner | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, port: int = 0) -> str:
        self.starts += 1
        self._runner = await started(FaultyServer(self._plan), port)
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    def _plan(self, number: int) -> str:
        if self.starts == 1 and number == self.at:
            self._task = asyncio.ensure_future(self._restart())
            return "stall"
        return "ok"

    async def _restart(self) -> None:
        port = self._runner.addresses[0][1]
        await self.stop()
        await asyncio.sleep(self.away)
        await self.start(port)

    async def stop(self) -> None:
        await self._runner.cleanup()
