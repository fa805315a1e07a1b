"""The routes of the engine's HTTP server that do not generate: tokens, health, what the engine is and how it does.

SGLang 0.5.23's paths. `/health` answers at once and does not touch the cache (SGLang's runs a prefill of one token).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timezone

import pydantic
from aiohttp import web

from agentx import __version__
from agentx.engine import http_calls, http_replies
from agentx.engine.facts import told
from agentx.engine.http_calls import Rejected
from agentx.engine.http_live import LiveEngine
from agentx.engine.http_metrics import engine_families
from agentx.engine.tokenizer import ids_to_list, ids_to_text
from agentx.wire.metrics import encode_metrics

FLUSHED = "Cache flushed.\n"
BUSY = "Flush cache failed: there are requests in the engine.\n"


class _Abort(pydantic.BaseModel):
    rid: str = ""
    abort_all: bool = False


class Admin:
    """These routes over one engine."""

    def __init__(self, live: LiveEngine) -> None:
        self._live = live
        self._settings = live.settings

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/models", self.models),
            *(web.post(path, self.tokenize) for path in ("/tokenize", "/v1/tokenize")),
            *(web.post(path, self.detokenize) for path in ("/detokenize", "/v1/detokenize")),
            *(web.get(path, self.ready) for path in ("/ready", "/health", "/health_generate")),
            *(web.get(path, self.server_info) for path in ("/server_info", "/get_server_info")),
            *(web.get(path, self.model_info) for path in ("/model_info", "/get_model_info")),
            web.get("/flush_cache", self.flush_cache),
            web.post("/flush_cache", self.flush_cache),
            web.post("/abort_request", self.abort_request),
            web.get("/v1/loads", self.loads),
            web.get("/metrics", self.metrics),
        ]

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
        return json_response(http_replies.dumps({"object": "list", "data": [card]}))

    async def tokenize(self, request: web.Request) -> web.Response:
        ids = http_calls.tokenize_call(await read_body(request))
        if isinstance(ids, bytes):
            tokens: object = ids_to_list(ids)
            count: object = len(ids) // 4
        else:
            tokens, count = [ids_to_list(run) for run in ids], [len(run) // 4 for run in ids]
        body = {"tokens": tokens, "count": count, "max_model_len": self._settings.context}
        return json_response(http_replies.dumps(body))

    async def detokenize(self, request: web.Request) -> web.Response:
        ids = http_calls.detokenize_call(await read_body(request))
        return json_response(http_replies.dumps({"text": ids_to_text(ids)}))

    async def ready(self, _: web.Request) -> web.Response:
        return web.Response()

    async def server_info(self, _: web.Request) -> web.Response:
        settings, counters = self._settings, self._live.engine.counters()
        info = {
            "model_path": self._live.model,
            "served_model_name": self._live.model,
            **told(settings),
            "enable_metrics": True,
            "settings": settings.model_dump(mode="json"),
            "internal_states": [
                {"num_running_reqs": counters.running, "num_queue_reqs": counters.queued, "used": counters.used}
            ],
        }
        return json_response(http_replies.dumps(info))

    async def model_info(self, _: web.Request) -> web.Response:
        info = {"model_path": self._live.model, "served_model_name": self._live.model, "is_generation": True}
        return json_response(http_replies.dumps(info))

    async def flush_cache(self, request: web.Request) -> web.Response:
        """`timeout` is how many seconds to wait for an idle engine, 0 unless given."""
        try:
            timeout = float(request.query.get("timeout", "0"))
        except ValueError:
            raise Rejected("timeout: should be a number of seconds", kind="Bad Request") from None
        deadline = time.monotonic() + timeout
        while not (flushed := self._live.flush()) and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        return web.Response(text=FLUSHED if flushed else BUSY, status=200 if flushed else 400)

    async def metrics(self, _: web.Request) -> web.Response:
        families = engine_families(self._live.engine.counters(), self._settings, self._live.model)
        body = encode_metrics([*families, *self._live.metrics.families()])
        return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def abort_request(self, request: web.Request) -> web.Response:
        """End a request by its id, or all; an id that is not known, and none, do nothing."""
        asked = http_calls.parse_body(_Abort, await read_body(request))
        if asked.abort_all or asked.rid:
            self._live.abort(None if asked.abort_all else asked.rid)
        return web.Response()

    async def loads(self, request: web.Request) -> web.Response:
        """What the engine has to do. `include` names sections, `dp_rank` the one rank that there is."""
        if request.query.get("format", "json") != "json":
            raise Rejected("format: only json; /metrics has the same figures for Prometheus", kind="Bad Request")
        include = {name.strip() for name in request.query.get("include", "all").split(",")}
        loads = [self._load(include)] if request.query.get("dp_rank", "0") == "0" else []
        body = {
            "timestamp": datetime.now(timezone.utc).isoformat(),
            "version": f"agentx {__version__}",
            "accelerator": None,
            "num_accelerators": self._settings.gpus,
            "loads": loads,
        }
        return json_response(http_replies.dumps(body))

    def _load(self, include: set[str]) -> dict[str, object]:
        counters, waiting = self._live.engine.counters(), self._live.waiting_tokens
        last = counters.totals.last_prefill_hit + counters.totals.last_prefill_input
        hit_rate = counters.totals.last_prefill_hit / last if last else 0.0
        load: dict[str, object] = {
            "timestamp": time.time(),
            "dp_rank": 0,
            "num_running_reqs": counters.running,
            "num_waiting_reqs": counters.queued,
            "num_waiting_uncached_tokens": int(waiting * (1 - hit_rate)),  # SGLang's estimate too
            "num_used_tokens": counters.used,
            "num_total_tokens": counters.used + waiting,
            "max_total_num_tokens": counters.pool,
            "max_running_requests": self._settings.scheduler.max_running,
            "token_usage": round(counters.token_usage, 4),
            "cache_hit_rate": round(hit_rate, 4),
        }
        if include & {"all", "memory"}:
            load["memory"] = {"token_capacity": counters.pool}
        if include & {"all", "spec"} and counters.accept_length is not None:
            load["speculative"] = {"accept_length": counters.accept_length}
        if include & {"all", "queues"}:
            load["queues"] = {"waiting": counters.queued}
        return load


@web.middleware
async def errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """What a route raises, as the body that SGLang's OpenAI routes give."""
    try:
        return await handler(request)
    except Rejected as error:
        return json_response(http_replies.openai_error(error.status, error.message, error.kind), error.status)
    except web.HTTPException as error:  # unknown path, wrong method, body too large: as FastAPI says it
        return json_response(http_replies.dumps({"detail": error.reason}), error.status)


async def read_body(request: web.Request) -> bytes:
    """The body of a request. Raises Rejected for one that does not say that it is JSON."""
    if request.content_type != "application/json":
        message = "Unsupported Media Type: Only 'application/json' is allowed"
        raise Rejected(f"header.content-type: {message}", kind="Bad Request")
    return await request.read()


def json_response(body: bytes, status: int = 200) -> web.Response:
    """A response of JSON."""
    return web.Response(body=body, status=status, content_type="application/json")
