"""What the recorder says by itself is one sentence that names the upstream and the reason."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from proxying import Proxied, Reader, StreamWriter, body_of, head_of, post, recorder

ASK = post("/v1/messages", b'{"n":1}')


def said(head: bytes, body: bytes) -> tuple[str, str]:
    """(the header's word, the message), of an answer of the recorder's own."""
    error: dict[str, Any] = json.loads(body)["error"]
    assert f"X-Agentx-Recorder: {error['code']}".encode() in head
    return error["code"], error["message"]


async def test_nobody_listens(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with recorder(tmp_path, port) as rig:
        head, body = await rig.ask(ASK)
        (exchange,) = await rig.exchanges()
    assert head.startswith(b"HTTP/1.1 502 ")
    url = f"http://127.0.0.1:{port}"
    assert said(head, body) == (
        "upstream-unreachable", f"agentx record: the upstream {url} did not answer: Connection refused",
    )  # fmt: skip
    assert (exchange.cause, exchange.detail) == ("upstream_unreachable", "Connection refused")


async def test_a_name_that_nobody_has(tmp_path: Path) -> None:
    async with recorder(tmp_path, "http://no-such-host.invalid") as rig:
        head, body = await rig.ask(ASK)
    code, message = said(head, body)
    assert code == "upstream-unreachable"
    assert message.startswith("agentx record: the upstream http://no-such-host.invalid did not answer: ")
    assert "ssl:" not in message


@pytest.mark.parametrize(
    ("answer", "code", "says"),
    [
        (b"", "upstream-unreachable", "did not answer: it closed the connection"),
        (b"\0\xff no http\r\n\r\n", "upstream-not-http", "answered is not HTTP/1.1: Bad status line"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy", "upstream-not-http", "Content-Length"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * (2 << 20) + b"\r\n\r\n", "upstream-not-http", "more than 1048576 bytes"),
    ],
)
async def test_what_is_no_http(proxied: Proxied, answer: bytes, code: str, says: str) -> None:
    """The next request is answered as if nothing had been."""
    bad = [True]

    async def handler(reader: Reader, writer: StreamWriter) -> None:
        await body_of(reader, await head_of(reader))
        writer.write(answer if bad.pop() else b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        bad.append(False)
        await asyncio.wait_for(writer.drain(), 5)

    async with proxied(handler) as rig:
        head, body = await rig.ask(ASK)
        assert (await rig.ask(ASK))[1] == b"ok"
        exchanges = await rig.exchanges()
    got, message = said(head, body)
    assert got == code
    assert says in message
    assert "\n" not in message
    assert [exchange.cause for exchange in exchanges] == ["upstream_unreachable", "done"]
