"""The recorder's own answers, where no upstream could answer; each carries the header `X-Agentx-Recorder`.

502: the upstream cannot be reached, or what it says is not HTTP. 426: WebSocket, on which clients fall back to HTTP.
400: no request to a reverse proxy. The body has the shape in which both API families' clients find the message.
"""

from __future__ import annotations

import json
import os

import aiohttp
from aiohttp import web
from yarl import URL

OWN = "X-Agentx-Recorder"


def refusal(request: web.Request) -> web.Response | None:
    """The answer to what is not passed on; None for what is."""
    if request.headers.get("Upgrade", "").lower() == "websocket":
        response = _answer(426, "no-websocket", "WebSocket is not passed on, use HTTP")
        response.headers["Upgrade"] = "HTTP/1.1"
    elif request.method == "CONNECT" or not request.raw_path.startswith("/"):
        response = _answer(400, "not-a-path", "this is a reverse proxy for one upstream, no forward proxy: send paths")
    else:
        return None
    response.force_close()
    return response


def unreachable(upstream: URL, error: Exception) -> tuple[web.Response, str]:
    """The answer for an upstream that gave none, and why in a few words."""
    if isinstance(error, aiohttp.ClientResponseError):
        lines = [line.strip() for line in error.message.splitlines() if line.strip(" ^")]
        why = f"not HTTP/1.1: {' '.join(lines)}"
        return _answer(502, "upstream-not-http", f"what the upstream {upstream} answered is {why}"), why
    why = _why(error)
    return _answer(502, "upstream-unreachable", f"the upstream {upstream} did not answer: {why}"), why


def _why(error: Exception) -> str:
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it closed the connection"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        inner = error.os_error
        # asyncio puts an address in place of the text of a refused connection; a resolver's numbers are below zero
        return os.strerror(inner.errno) if inner.errno and inner.errno > 0 else inner.strerror or str(inner)
    return " ".join(str(error).split()) or type(error).__name__


def _answer(status: int, what: str, message: str) -> web.Response:
    body = {
        "type": "error",
        "error": {"type": "agentx_recorder", "code": what, "message": f"agentx record: {message}"},
    }
    response = web.Response(status=status, body=json.dumps(body).encode(), content_type="application/json")
    response.headers[OWN] = what
    return response
