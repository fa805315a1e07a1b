"""The routes of the engine's HTTP server: read a call (http_calls), give it to the engine (http_live), write what comes
back (http_replies). SGLang 0.5.23's paths and manners; the sockets are in server.py.

The headers of a chat stream wait for its first token, a full queue answers a stream with an error event after a 200,
and a client that goes away ends its request. `/health` answers at once and does not touch the cache (SGLang's runs a
prefill of one token).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from aiohttp import web

from agentx import __version__
from agentx.engine import http_calls, http_replies
from agentx.engine.engine import Refused
from agentx.engine.http_calls import Call, Rejected
from agentx.engine.http_live import Job, LiveEngine
from agentx.engine.http_metrics import engine_families
from agentx.engine.tokenizer import ids_to_list, ids_to_text
from agentx.wire.metrics import encode_metrics
from agentx.wire.sse import sse_event

RULES = "SGLang 0.5.23"
MAX_BODY = 256 << 20  # bytes: a million token ids are about 11 MB of JSON
FLUSHED = "Cache flushed.\n"
BUSY = "Flush cache failed: there are requests in the engine.\n"


class Server:
    """The routes over one engine."""

    def __init__(self, live: LiveEngine) -> None:
        self._live = live
        self._settings = live.settings

    def app(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY, middlewares=[_errors])
        app.add_routes(
            [
                web.post("/v1/chat/completions", self.chat),
                web.post("/generate", self.generate),
                web.put("/generate", self.generate),
                web.get("/v1/models", self.models),
                *(web.post(path, self.tokenize) for path in ("/tokenize", "/v1/tokenize")),
                *(web.post(path, self.detokenize) for path in ("/detokenize", "/v1/detokenize")),
                *(web.get(path, self.ready) for path in ("/ready", "/health", "/health_generate")),
                *(web.get(path, self.server_info) for path in ("/server_info", "/get_server_info")),
                *(web.get(path, self.model_info) for path in ("/model_info", "/get_model_info")),
                web.get("/flush_cache", self.flush_cache),
                web.post("/flush_cache", self.flush_cache),
                web.get("/metrics", self.metrics),
            ]
        )
        return app

    # -- generation

    async def chat(self, request: web.Request) -> web.StreamResponse:
        call = http_calls.chat_call(await _body(request), self._settings)
        try:
            job = self._live.submit(call)
        except Refused as error:
            if call.stream:
                refused = http_replies.ChatStream(_unstarted(call)).refused(error.status, error.message)
                return await _whole_stream(request, refused)
            return _refused(error)
        async with self._present(job):
            return await (self._chat_stream(request, job) if call.stream else self._chat_whole(job))

    async def _chat_stream(self, request: web.Request, job: Job) -> web.StreamResponse:
        stream = http_replies.ChatStream(job.progress)
        update = await job.next()
        response = await _stream(request)
        while update.end is None:
            await response.write(stream.tokens(update.ids))
            update = await job.next()
        last = stream.tokens(update.ids) if update.ids else b""
        if update.end.status is not None:
            last += stream.refused(update.end.status, update.end.message or "aborted")
        else:
            last += stream.end()
        await response.write(last)
        await response.write_eof()
        return response

    async def _chat_whole(self, job: Job) -> web.Response:
        refused = await _end(job)
        return _refused(refused) if refused else _json(http_replies.chat_reply(job.progress))

    async def generate(self, request: web.Request) -> web.StreamResponse:
        call = http_calls.generate_call(await _body(request), self._settings)
        try:
            http_calls.check_context(call, self._settings)
            job = self._live.submit(call)
        except Rejected as error:
            if call.stream:  # SGLang has sent its 200 by then
                return await _whole_stream(request, http_replies.generate_stream_error(error.status, error.message))
            return _json(http_replies.generate_error(error.message), error.status)
        except Refused as error:
            if call.stream:
                aborted = http_replies.generate_aborted(_unstarted(call), error.status, error.message)
                return await _whole_stream(request, sse_event(aborted) + http_replies.DONE)
            return _generate_refused(error)
        async with self._present(job):
            return await (self._generate_stream(request, job) if call.stream else self._generate_whole(job))

    async def _generate_stream(self, request: web.Request, job: Job) -> web.StreamResponse:
        stream = http_replies.GenerateStream(job.progress)
        response = await _stream(request)
        update = await job.next()
        while update.end is None:
            await response.write(sse_event(stream.tokens(update.ids)))
            update = await job.next()
        if update.end.status is not None:
            message = update.end.message or "aborted"
            last = http_replies.generate_aborted(job.progress, update.end.status, message)
        else:
            last = stream.tokens(update.ids)
        await response.write(sse_event(last) + http_replies.DONE)
        await response.write_eof()
        return response

    async def _generate_whole(self, job: Job) -> web.Response:
        refused = await _end(job)
        return _generate_refused(refused) if refused else _json(http_replies.generate_reply(job.progress))

    @contextlib.asynccontextmanager
    async def _present(self, job: Job) -> AsyncIterator[None]:
        """While its client waits. aiohttp cancels the handler of one that goes away."""
        try:
            yield
        finally:
            self._live.leave(job)

    # -- everything else

    async def models(self, _: web.Request) -> web.Response:
        card = {
            "id": self._live.model,
            "object": "model",
            "created": int(time.time()),
            "owned_by": "agentx",
            "root": self._live.model,
            "parent": None,
            "max_model_len": self._settings.context,
        }
        return _json(http_replies.dumps({"object": "list", "data": [card]}))

    async def tokenize(self, request: web.Request) -> web.Response:
        ids = http_calls.tokenize_call(await _body(request))
        if isinstance(ids, bytes):
            tokens: object = ids_to_list(ids)
            count: object = len(ids) // 4
        else:
            tokens, count = [ids_to_list(run) for run in ids], [len(run) // 4 for run in ids]
        body = {"tokens": tokens, "count": count, "max_model_len": self._settings.context}
        return _json(http_replies.dumps(body))

    async def detokenize(self, request: web.Request) -> web.Response:
        ids = http_calls.detokenize_call(await _body(request))
        return _json(http_replies.dumps({"text": ids_to_text(ids)}))

    async def ready(self, _: web.Request) -> web.Response:
        return web.Response()

    async def server_info(self, _: web.Request) -> web.Response:
        settings, counters = self._settings, self._live.engine.counters()
        info = {
            "model_path": self._live.model,
            "served_model_name": self._live.model,
            "version": f"agentx {__version__}",
            "engine_rules": RULES,
            "context_length": settings.context,
            "page_size": settings.cache.page,
            "max_total_num_tokens": counters.pool,
            "max_running_requests": settings.scheduler.max_running,
            "max_queued_requests": settings.scheduler.queue,
            "chunked_prefill_size": settings.scheduler.chunk,
            "schedule_policy": settings.scheduler.policy,
            "radix_eviction_policy": settings.cache.policy,
            "enable_hierarchical_cache": settings.cache.host.tokens > 0,
            "hicache_write_policy": settings.cache.host.write,
            "speculative_algorithm": settings.speculation.algorithm,
            "enable_cache_report": True,
            "enable_metrics": True,
            "settings": settings.model_dump(mode="json"),
            "internal_states": [
                {"num_running_reqs": counters.running, "num_queue_reqs": counters.queued, "used": counters.used}
            ],
        }
        return _json(http_replies.dumps(info))

    async def model_info(self, _: web.Request) -> web.Response:
        info = {"model_path": self._live.model, "served_model_name": self._live.model, "is_generation": True}
        return _json(http_replies.dumps(info))

    async def flush_cache(self, request: web.Request) -> web.Response:
        """`timeout` is how many seconds to wait for an idle engine, 0 unless given."""
        try:
            timeout = float(request.query.get("timeout", "0"))
        except ValueError:
            raise Rejected("timeout: should be a number of seconds", kind="Bad Request") from None
        deadline = time.monotonic() + timeout
        while not (flushed := self._live.engine.flush()) and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        return web.Response(text=FLUSHED if flushed else BUSY, status=200 if flushed else 400)

    async def metrics(self, _: web.Request) -> web.Response:
        families = engine_families(self._live.engine.counters(), self._settings, self._live.model)
        body = encode_metrics([*families, *self._live.metrics.families()])
        return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


@web.middleware
async def _errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except Rejected as error:
        return _json(http_replies.openai_error(error.status, error.message, error.kind), error.status)
    except web.HTTPException as error:  # unknown path, wrong method, body too large: as FastAPI says it
        return _json(http_replies.dumps({"detail": error.reason}), error.status)


async def _body(request: web.Request) -> bytes:
    if request.content_type != "application/json":
        message = "Unsupported Media Type: Only 'application/json' is allowed"
        raise Rejected(f"header.content-type: {message}", kind="Bad Request")
    return await request.read()


async def _stream(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    await response.prepare(request)
    return response


async def _whole_stream(request: web.Request, body: bytes) -> web.StreamResponse:
    response = await _stream(request)
    await response.write(body)
    await response.write_eof()
    return response


async def _end(job: Job) -> Refused | None:
    """Wait for the end of a reply; what the engine says when it gave the request up."""
    while (update := await job.next()).end is None:
        pass
    end = update.end
    return None if end.status is None else Refused(end.status, end.message or "aborted")


def _unstarted(call: Call) -> http_replies.Progress:
    return http_replies.Progress(call, time.monotonic(), time.time(), refused=True)


def _json(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type="application/json")


def _refused(error: Refused) -> web.Response:
    kind = "BadRequestError" if error.status == 400 else str(error.status)
    return _json(http_replies.openai_error(error.status, error.message, kind), error.status)


def _generate_refused(error: Refused) -> web.Response:
    if error.status == 400:
        return _json(http_replies.generate_error(error.message), 400)
    return _refused(error)
