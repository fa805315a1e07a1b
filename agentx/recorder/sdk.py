"""`record_client`: a client of the openai package that writes a capture of its own calls, where no proxy can stand.

Only the package's public surface is wrapped: `create` and `parse` of chat.completions, completions and responses, on
this one client and on what `with_options` makes of it. A call does what it always did, and its errors are its own;
whatever goes wrong in the copy is counted and said once. What a proxy sees and this cannot: attempts that the package
repeats inside itself, and bytes as they were on the wire.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from agentx.errors import BadInput
from agentx.recorder.copies import Cause, Copy, Opened
from agentx.recorder.sdk_calls import (
    event,
    failure,
    last_event,
    repeatable,
    request_body,
    request_headers,
    result_body,
)
from agentx.recorder.sdk_capture import SdkCapture, capture_of, warn

Client = TypeVar("Client")
# (attributes from the client to the resource, path, wire, methods)
_CALLS = (
    (("chat", "completions"), "/chat/completions", "chat", ("create", "parse")),
    (("completions",), "/completions", "completions", ("create",)),
    (("responses",), "/responses", "responses", ("create", "parse")),
)
_SSE, _JSON = [("content-type", "text/event-stream")], [("content-type", "application/json")]
_MARK = "_agentx_recorded"


def record_client(client: Client, capture: Path | str) -> Client:
    """The same client, whose calls are recorded into the folder `capture` from now on; `agentx compile` reads it.

    `client` is an `openai.OpenAI` or `AsyncOpenAI` (or a subclass). The capture holds prompts and replies: it is
    private. It is closed when the program ends. Raises BadInput for another kind of client, and for a folder that
    cannot be recorded into.
    """
    if not all(hasattr(client, name) for name in ("chat", "responses", "base_url", "with_options")):
        raise BadInput(
            f"a {type(client).__name__} cannot be recorded",
            hint="record_client takes openai.OpenAI or openai.AsyncOpenAI; 'agentx record' takes any client",
        )
    if not hasattr(client, _MARK):
        _wrap(client, capture_of(capture, _base(client)))
    return client


def _base(client: Any) -> str:
    """Where the client's calls go, without a password or a query: these may hold credentials."""
    parts = urlsplit(str(client.base_url))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"


def _wrap(client: Any, capture: SdkCapture) -> None:
    setattr(client, _MARK, True)
    path = urlsplit(_base(client)).path
    for attributes, end, wire, methods in _CALLS:
        resource = functools.reduce(getattr, attributes, client)
        for name in methods:
            call = _Call(client, capture, path + end, wire)
            setattr(resource, name, _recorded(getattr(resource, name), call))
    for name in ("with_options", "copy"):
        setattr(client, name, _copying(getattr(client, name), capture))


def _copying(method: Callable[..., Any], capture: SdkCapture) -> Callable[..., Any]:
    @functools.wraps(method)
    def copied(*args: Any, **arguments: Any) -> Any:
        client = method(*args, **arguments)
        _wrap(client, capture)
        return client

    return copied


def _recorded(method: Callable[..., Any], call: _Call) -> Callable[..., Any]:
    """The method, with a copy of each call. An asynchronous client's gives a coroutine."""

    @functools.wraps(method)
    def recorded(*args: Any, **arguments: Any) -> Any:
        arguments = repeatable(arguments)
        copy = call.begin(arguments)
        try:
            result = method(*args, **arguments)
        except BaseException as error:
            copy.failed(error)
            raise
        return _awaited(result, copy) if inspect.isawaitable(result) else copy.answered(result)

    return recorded


async def _awaited(result: Awaitable[Any], copy: _CallCopy) -> Any:
    try:
        answer = await result
    except BaseException as error:
        copy.failed(error)
        raise
    return copy.answered(answer)


class _Call:
    """Where the copies of one method's calls go."""

    def __init__(self, client: Any, capture: SdkCapture, path: str, wire: str) -> None:
        self._client, self._capture, self._path, self.wire = client, capture, path, wire

    def begin(self, arguments: dict[str, Any]) -> _CallCopy:
        copy = _CallCopy(self.wire)
        copy.guarded(self._open, copy, arguments)
        return copy

    def _open(self, copy: _CallCopy, arguments: dict[str, Any]) -> None:
        body = request_body(arguments)
        headers = request_headers(self._client, arguments)
        copy.copy = self._capture.open(Opened("POST", self._path, headers, self.wire, -1))
        if copy.copy is not None:
            copy.copy.request(body)
            copy.copy.asked()


class _CallCopy:
    """The copy of one call. No method raises: a fault of the recorder's must not become one of the call's."""

    _said = False
    # A program may call from many threads, and the queue is one thread's at a time. The same thread may come again: a
    # stream that is dropped ends its copy wherever it happens to be collected.
    _lock = threading.RLock()

    def __init__(self, wire: str) -> None:
        self._wire = wire
        self.copy: Copy | None = None

    def guarded(self, action: Callable[..., None], *args: Any) -> None:
        try:
            with self._lock:
                action(*args)
        except Exception as error:  # whatever the package's values do, the call goes on
            copy, self.copy = self.copy, None
            if copy is not None:
                with self._lock:
                    copy.end("recorder_stopped", "its copy failed")
            if not _CallCopy._said:
                _CallCopy._said = True
                warn(f"agentx: a call could not be recorded, and went on: {type(error).__name__}: {error}")

    def failed(self, error: BaseException) -> None:
        self.guarded(self._failed, error)

    def answered(self, result: Any) -> Any:
        """The call's result: a stream goes on being copied while it is read."""
        if self.copy is None:
            return result
        if hasattr(result, "parse") and hasattr(result, "http_response"):  # with_raw_response
            return self._raw(result)
        if hasattr(result, "__aiter__") or hasattr(result, "__next__"):
            self.guarded(self._head, _SSE)
            return (_AsyncStream if hasattr(result, "__aiter__") else _Stream)(result, self)
        self.guarded(self._whole, result_body, result)
        return result

    def item(self, item: Any) -> None:
        self.guarded(self._item, item)

    def end(self, cause: Cause, detail: str = "") -> None:
        self.guarded(self._end, cause, detail)

    def _raw(self, result: Any) -> Any:
        """A raw response: its bytes are those of the wire; a stream is copied once it is parsed."""
        if "event-stream" not in str(result.http_response.headers.get("content-type")):
            self.guarded(self._whole, lambda raw: raw.content, result)
            return result
        parse = result.parse

        @functools.wraps(parse)
        def parsed(*args: Any, **arguments: Any) -> Any:
            return self.answered(parse(*args, **arguments))

        result.parse = parsed
        return result

    def _head(self, headers: list[tuple[str, str]], status: int = 200) -> None:
        if self.copy is not None:
            self.copy.head(status, headers)

    def _whole(self, body: Callable[[Any], bytes], result: Any) -> None:
        self._head([*_JSON, *[("x-request-id", id) for id in [getattr(result, "_request_id", None)] if id]])
        if self.copy is not None:
            self.copy.data(body(result))
            self.copy.end("done")

    def _item(self, item: Any) -> None:
        if self.copy is not None:
            self.copy.data(event(self._wire, item))

    def _end(self, cause: Cause, detail: str) -> None:
        if self.copy is None:
            return
        if cause == "done" and (last := last_event(self._wire)):
            self.copy.data(last)
        self.copy.end(cause, detail)
        self.copy = None

    def _failed(self, error: BaseException) -> None:
        if self.copy is None:
            return
        answer = failure(error)
        if answer is None:
            cause: Cause = "upstream_unreachable" if isinstance(error, Exception) else "client_abort"
            self.copy.end(cause, type(error).__name__)
            return
        status, headers, body = answer
        self.copy.head(status, headers)
        self.copy.data(body)
        self.copy.end("done")


class _Wrapped:
    """Stands for a stream of the package: it is an instance of its class, and has all that it has."""

    def __init__(self, stream: Any, copy: _CallCopy) -> None:
        self._stream, self._copy = stream, copy

    @property
    def __class__(self) -> Any:  # isinstance(stream, openai.Stream) holds, as before
        return type(self._stream)

    @__class__.setter
    def __class__(self, value: type) -> None:
        raise TypeError("the class of a recorded stream is that of its stream")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __del__(self) -> None:
        if "_copy" in self.__dict__:
            self._copy.end("client_abort", "the stream was dropped")

    def _broke(self, error: BaseException) -> None:
        self._copy.end("upstream_abort" if isinstance(error, Exception) else "client_abort", type(error).__name__)


class _Stream(_Wrapped):
    def __next__(self) -> Any:
        try:
            item = next(self._stream)
        except StopIteration:
            self._copy.end("done")
            raise
        except BaseException as error:
            self._broke(error)
            raise
        self._copy.item(item)
        return item

    def __iter__(self) -> Iterator[Any]:
        return self

    def __enter__(self) -> _Stream:
        self._stream.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        self._copy.end("client_abort", "the stream was left")
        self._stream.__exit__(*details)

    def close(self) -> None:
        self._copy.end("client_abort", "the stream was closed")
        self._stream.close()


class _AsyncStream(_Wrapped):
    async def __anext__(self) -> Any:
        try:
            item = await self._stream.__anext__()
        except StopAsyncIteration:
            self._copy.end("done")
            raise
        except BaseException as error:
            self._broke(error)
            raise
        self._copy.item(item)
        return item

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __aenter__(self) -> _AsyncStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *details: Any) -> None:
        self._copy.end("client_abort", "the stream was left")
        await self._stream.__aexit__(*details)

    async def close(self) -> None:
        self._copy.end("client_abort", "the stream was closed")
        await self._stream.close()
