"""The routes of the engine's HTTP server that generate: read a call, give it to the engine (http_live), write what it
answers. SGLang 0.5.23's paths and manners; the sockets are in server.py, the other routes in http_admin.

The headers of a stream wait for its first token, except where SGLang sends them at once: then a refusal is an event
in the stream. A full queue answers every stream with an error event after a 200. A client that goes away ends its
request.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace

from aiohttp import web

from agentx.engine import http_calls, http_generate, http_replies
from agentx.engine.engine import EngineSettings, Refused
from agentx.engine.http_admin import Admin, errors, json_response, read_body
from agentx.engine.http_calls import Call, Rejected
from agentx.engine.http_chat import ChatReply
from agentx.engine.http_completions import CompletionReply, completion_call
from agentx.engine.http_live import Job, LiveEngine
from agentx.engine.http_messages import count_tokens, messages_call
from agentx.engine.http_messages_reply import MessagesReply, messages_error
from agentx.engine.http_replies import Progress, Replies
from agentx.engine.http_responses import responses_call
from agentx.engine.http_responses_reply import ResponsesReply, responses_error
from agentx.engine.http_script import Script
from agentx.wire.sse import sse_event

MAX_BODY = 256 << 20  # bytes: a million token ids are about 11 MB of JSON


@dataclass(frozen=True, slots=True)
class Api:
    """One way to ask for a reply: how bodies are read, how replies and errors look. `eager`: the headers of a stream
    go out before anything is known of its reply."""

    read: Callable[[bytes, EngineSettings], Call]
    replies: Callable[[Progress], Replies]
    error: Callable[[int, str, str], bytes]
    eager: bool = False


APIS = {
    "/v1/chat/completions": Api(http_calls.chat_call, ChatReply, http_replies.openai_error),
    "/v1/completions": Api(completion_call, CompletionReply, http_replies.openai_error),
    "/v1/messages": Api(messages_call, MessagesReply, messages_error, eager=True),
    "/v1/responses": Api(responses_call, ResponsesReply, responses_error, eager=True),
}


class Server:
    """The routes over one engine. `script` answers what its rules match."""

    def __init__(self, live: LiveEngine, script: Script | None = None) -> None:
        self._live, self._script = live, script
        self._settings = live.settings

    def app(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY, middlewares=[errors])
        app.add_routes(
            [
                *(web.post(path, self._route(api)) for path, api in APIS.items()),
                web.post("/v1/messages/count_tokens", self.count_tokens),
                web.post("/generate", self.generate),
                web.put("/generate", self.generate),
                *Admin(self._live).routes(),
            ]
        )
        return app

    def _route(self, api: Api) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                call = api.read(await read_body(request), self._settings)
            except Rejected as error:
                return json_response(api.error(error.status, error.message, error.kind), error.status)
            return await self._answer(request, api, call)

        return handle

    async def _answer(self, request: web.Request, api: Api, call: Call) -> web.StreamResponse:
        try:
            if api.eager:
                http_calls.check_context(call, self._settings)
            job = self._submit(call)
        except (Rejected, Refused) as error:
            if call.stream and (api.eager or isinstance(error, Refused)):
                return await _whole_stream(request, api.replies(_unstarted(call)).refused(error.status, error.message))
            return _refused(api, error)
        async with self._present(job):
            return await (self._stream(request, api, job) if call.stream else self._whole(api, job))

    async def _stream(self, request: web.Request, api: Api, job: Job) -> web.StreamResponse:
        replies = api.replies(job.progress)
        update = None if api.eager else await job.next()
        response = await _begun(request)
        if start := replies.start():
            await response.write(start)
        update = update or await job.next()
        while update.end is None:
            if data := replies.tokens(update.ids):
                await response.write(data)
            update = await job.next()
        if update.end.status is None:
            last = replies.end(update.ids)
        else:
            last = replies.tokens(update.ids) if update.ids else b""
            last += replies.refused(update.end.status, update.end.message or "aborted")
        await response.write(last)
        await response.write_eof()
        return response

    async def _whole(self, api: Api, job: Job) -> web.Response:
        refused = await _end(job)
        return _refused(api, refused) if refused else json_response(api.replies(job.progress).whole())

    async def count_tokens(self, request: web.Request) -> web.Response:
        try:
            return json_response(http_replies.dumps({"input_tokens": count_tokens(await read_body(request))}))
        except Rejected as error:
            return json_response(messages_error(error.status, error.message, error.kind), error.status)

    async def generate(self, request: web.Request) -> web.StreamResponse:
        call = http_calls.generate_call(await read_body(request), self._settings)
        try:
            http_calls.check_context(call, self._settings)
            job = self._submit(call)
        except Rejected as error:
            if call.stream:  # SGLang has sent its 200 by then
                return await _whole_stream(request, http_generate.generate_stream_error(error.status, error.message))
            return json_response(http_generate.generate_error(error.message), error.status)
        except Refused as error:
            if call.stream:
                aborted = http_generate.generate_aborted(_unstarted(call), error.status, error.message)
                return await _whole_stream(request, sse_event(aborted) + http_replies.DONE)
            return _generate_refused(error)
        async with self._present(job):
            return await (self._generate_stream(request, job) if call.stream else self._generate_whole(job))

    async def _generate_stream(self, request: web.Request, job: Job) -> web.StreamResponse:
        stream = http_generate.GenerateStream(job.progress)
        response = await _begun(request)
        update = await job.next()
        while update.end is None:
            await response.write(sse_event(stream.tokens(update.ids)))
            update = await job.next()
        if update.end.status is not None:
            message = update.end.message or "aborted"
            last = http_generate.generate_aborted(job.progress, update.end.status, message)
        else:
            last = stream.tokens(update.ids)
        await response.write(sse_event(last) + http_replies.DONE)
        await response.write_eof()
        return response

    async def _generate_whole(self, job: Job) -> web.Response:
        refused = await _end(job)
        return _generate_refused(refused) if refused else json_response(http_generate.generate_reply(job.progress))

    def _submit(self, call: Call) -> Job:
        """Give a call to the engine, with its reply if a rule has one. Raises Rejected and Refused."""
        if self._script is None or (rule := self._script.find(call.last)) is None:
            return self._live.submit(call)
        reply = self._script.reply(rule, show_reasoning=call.parsed, show_calls=call.tools)
        job = self._live.submit(replace(call, script=reply))
        self._script.use(rule)  # what was refused has not been answered
        return job

    @contextlib.asynccontextmanager
    async def _present(self, job: Job) -> AsyncIterator[None]:
        """While its client waits. aiohttp cancels the handler of one that goes away."""
        try:
            yield
        finally:
            self._live.leave(job)


async def _begun(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    await response.prepare(request)
    return response


async def _whole_stream(request: web.Request, body: bytes) -> web.StreamResponse:
    response = await _begun(request)
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


def _refused(api: Api, error: Rejected | Refused) -> web.Response:
    kind = "BadRequestError" if error.status == 400 else str(error.status)
    return json_response(api.error(error.status, error.message, kind), error.status)


def _generate_refused(error: Refused) -> web.Response:
    if error.status == 400:
        return json_response(http_generate.generate_error(error.message), 400)
    return _refused(APIS["/v1/chat/completions"], error)
