"""A recorded client of the openai package: calls do what they did, and the capture says what was said."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from asking import FAST
from pydantic import BaseModel

from agentx import record_client
from agentx.core import Session
from agentx.engine.http_script import Rule, Script
from agentx.engine.server import running
from agentx.engine.settings import EngineSettings
from agentx.errors import BadInput
from agentx.recorder import sdk_capture
from agentx.recorder.capture_reader import CaptureReader, Exchange
from agentx.recorder.compiling import compile_capture
from agentx.recorder.copies import Copies, Opened
from agentx.recorder.sdk import _CallCopy
from agentx.recorder.sdk_calls import request_body
from agentx.recorder.sdk_capture import close_captures
from agentx.trace import read_trace

KEY = "sk-test-key-0123456789abcdef"
ASK: list[Any] = [{"role": "system", "content": "You are brief."}, {"role": "user", "content": "go on"}]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    rules = [Rule.model_validate({"contains": "json", "text": '{"answer": 4}'})]
    with running(EngineSettings(context=4096, timing=FAST), script=Script(tuple(rules), lambda text: None)) as base:
        yield f"{base}/v1"


@pytest.fixture(autouse=True)
def _keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AGENTX_KEYS", str(tmp_path / "keys"))
    yield
    close_captures()


def client(url: str, folder: Path, **more: Any) -> openai.OpenAI:
    return record_client(openai.OpenAI(base_url=url, api_key=KEY, max_retries=0, **more), folder)


def exchanges(folder: Path) -> list[Exchange]:
    close_captures()
    return list(CaptureReader(folder))


def compiled(folder: Path) -> list[Session]:
    close_captures()
    out = folder.parent / f"{folder.name}.trace"
    compile_capture(folder, out)
    return list(read_trace(out))


def test_a_whole_reply_is_recorded_as_it_was(url: str, tmp_path: Path) -> None:
    reply = client(url, tmp_path / "cap").chat.completions.create(model="m", messages=ASK, max_tokens=4)
    assert reply.usage is not None
    [seen] = exchanges(tmp_path / "cap")
    assert (seen.method, seen.path, seen.wire, seen.status, seen.cause) == (
        "POST", "/v1/chat/completions", "chat", 200, "done",
    )  # fmt: skip
    assert json.loads(seen.body or b"") == {"model": "m", "messages": ASK, "max_tokens": 4}
    assert json.loads(seen.reply)["usage"]["completion_tokens"] == reply.usage.completion_tokens == 4
    assert seen.credential is not None
    assert KEY.encode() not in b"".join(path.read_bytes() for path in (tmp_path / "cap").iterdir() if path.is_file())


def test_a_stream_is_recorded_chunk_by_chunk_and_stays_a_stream(url: str, tmp_path: Path) -> None:
    chat = client(url, tmp_path / "cap").chat.completions
    options: Any = {"include_usage": True}
    with chat.create(model="m", messages=ASK, max_tokens=5, stream=True, stream_options=options) as stream:
        assert isinstance(stream, openai.Stream)
        assert stream.response.status_code == 200  # what the package's stream has, the recorded one has
        chunks = list(stream)
    [seen] = exchanges(tmp_path / "cap")
    assert (seen.cause, len(seen.chunks)) == ("done", len(chunks) + 1)  # and [DONE]
    assert seen.reply.endswith(b"data: [DONE]\n\n")
    [session] = compiled(tmp_path / "cap")
    observed = session.turns[0].observed
    assert observed is not None
    assert observed.ttft is not None
    assert session.turns[0].output.tokens == 5


async def test_the_asynchronous_client_and_its_stream(url: str, tmp_path: Path) -> None:
    async with record_client(openai.AsyncOpenAI(base_url=url, api_key=KEY), tmp_path / "cap") as one:
        whole = one.chat.completions.create(model="m", messages=ASK, max_tokens=2)
        stream = await one.completions.create(model="m", prompt="go on", max_tokens=3, stream=True)
        assert isinstance(stream, openai.AsyncStream)
        count = len([chunk async for chunk in stream])
        await whole
    one_seen, other = exchanges(tmp_path / "cap")
    assert {one_seen.wire, other.wire} == {"chat", "completions"}
    streamed = one_seen if one_seen.wire == "completions" else other
    assert len(streamed.chunks) == count + 1


CALLS: list[tuple[str, Any]] = [
    ("responses, whole", lambda c: c.responses.create(model="m", input="go on", max_output_tokens=4)),
    (
        "responses, a stream",
        lambda c: list(c.responses.create(model="m", input="go", max_output_tokens=4, stream=True)),
    ),
    ("messages from an iterator", lambda c: c.chat.completions.create(model="m", messages=iter(ASK), max_tokens=2)),
    ("extra_body", lambda c: c.chat.completions.create(model="m", messages=ASK, extra_body={"max_tokens": 2})),
    ("the raw response", lambda c: c.chat.completions.with_raw_response.create(model="m", messages=ASK, max_tokens=2)),
    (
        "a stream from a raw response",
        lambda c: list(
            c.chat.completions.with_raw_response.create(model="m", messages=ASK, max_tokens=2, stream=True).parse()
        ),
    ),
    (
        "other options",
        lambda c: c.with_options(timeout=9).chat.completions.create(model="m", messages=ASK, max_tokens=2),
    ),
]


@pytest.mark.parametrize(("what", "call"), CALLS, ids=[what for what, _ in CALLS])
def test_each_public_way_to_call_is_one_turn(url: str, tmp_path: Path, what: str, call: Any) -> None:
    assert call(client(url, tmp_path / "cap"))
    [session] = compiled(tmp_path / "cap")
    assert len(session.turns) == 1
    assert session.turns[0].output.tokens in (2, 4), what


def test_the_packages_own_stream_helper_and_parse(url: str, tmp_path: Path) -> None:
    class Answer(BaseModel):
        answer: int

    chat = client(url, tmp_path / "cap").chat.completions
    with chat.stream(model="m", messages=ASK, max_tokens=3) as stream:
        helped = [event.type for event in stream]
    asked: list[Any] = [{"role": "user", "content": "json please"}]
    parsed = chat.parse(model="m", messages=asked, response_format=Answer).choices[0].message.parsed
    assert parsed == Answer(answer=4)
    assert "chunk" in helped
    assert [turn for session in compiled(tmp_path / "cap") for turn in session.turns]


def test_what_an_sdk_sees_compiles_to_what_a_proxy_sees(url: str, tmp_path: Path) -> None:
    """Two turns by the client itself, and the same two as bodies on the wire."""
    chat = client(url, tmp_path / "cap").chat.completions
    messages = list(ASK)
    for _ in range(2):
        reply = chat.create(model="m", messages=messages, max_tokens=6).choices[0].message
        messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": "and then"}]
    [session] = compiled(tmp_path / "cap")
    assert [turn.prompt.base for turn in session.turns] == [None, 0]
    assert [turn.output.tokens for turn in session.turns] == [6, 6]
    layers = [session.segment(piece.segment).layer for piece in session.pieces(1)]
    assert layers[0] == "system"


FAILURES: list[tuple[str, Any, str, int | None]] = [
    ("an answer that is an error", {"max_tokens": -1}, "done", 400),
    ("no server", {"base_url": "http://127.0.0.1:9/v1"}, "upstream_unreachable", None),
]


@pytest.mark.parametrize(("what", "change", "cause", "status"), FAILURES, ids=[row[0] for row in FAILURES])
def test_errors_are_the_packages_own_and_on_record(
    url: str, tmp_path: Path, what: str, change: dict[str, Any], cause: str, status: int | None
) -> None:
    one = client(change.pop("base_url", url), tmp_path / "cap")
    with pytest.raises(openai.OpenAIError):
        one.chat.completions.create(model="m", messages=ASK, **change)
    [seen] = exchanges(tmp_path / "cap")
    assert (seen.cause, seen.status) == (cause, status)


def test_a_stream_that_is_left_is_an_abort(url: str, tmp_path: Path) -> None:
    one = client(url, tmp_path / "cap")
    stream = one.chat.completions.create(model="m", messages=ASK, max_tokens=50, stream=True)
    next(stream)
    stream.close()
    [seen] = exchanges(tmp_path / "cap")
    assert seen.cause == "client_abort"
    assert len(seen.chunks) == 1


def test_what_cannot_be_copied_goes_on_and_is_said(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = client(url, tmp_path / "cap")

    def broken(*args: Any) -> bytes:
        raise ValueError("no JSON")

    monkeypatch.setattr("agentx.recorder.sdk.request_body", broken)
    for _ in range(2):
        assert one.chat.completions.create(model="m", messages=ASK, max_tokens=2).usage
    assert exchanges(tmp_path / "cap") == []
    assert capsys.readouterr().err.count("could not be recorded") <= 1


def test_a_password_in_the_base_url_is_not_in_the_capture(url: str, tmp_path: Path) -> None:
    place = url.replace("http://", "http://user:hunter2hunter2@") + "?key=hunter3hunter3"
    one = client(place, tmp_path / "cap")
    with pytest.raises(openai.OpenAIError):
        one.chat.completions.create(model="m", messages=ASK, max_tokens=2)
    assert len(exchanges(tmp_path / "cap")) == 1
    assert [path for path in (tmp_path / "cap").iterdir() if b"hunter" in path.read_bytes()] == []


def test_a_folder_that_goes_away_is_said_and_the_calls_go_on(
    url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    one = client(url, tmp_path / "cap")
    assert one.chat.completions.create(model="m", messages=ASK, max_tokens=2).usage
    while not list((tmp_path / "cap").glob("seg-*")):
        pass
    shutil.rmtree(tmp_path / "cap")
    assert one.chat.completions.create(model="m", messages=ASK, max_tokens=2).usage
    sdk_capture.close_captures()
    assert "its file was removed; traffic goes on, and is NOT RECORDED" in capfd.readouterr().err


def test_a_forked_process_records_nothing(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = client(url, tmp_path / "cap")
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert one.chat.completions.create(model="m", messages=ASK, max_tokens=2).usage
    monkeypatch.undo()
    assert exchanges(tmp_path / "cap") == []


def test_two_clients_share_a_capture_and_one_is_recorded_once(url: str, tmp_path: Path) -> None:
    first = client(url, tmp_path / "cap")
    assert record_client(first, tmp_path / "cap") is first
    second = client(url, tmp_path / "cap")
    for one in (first, second):
        one.chat.completions.create(model="m", messages=ASK, max_tokens=2)
    assert len(sdk_capture._open) == 1
    assert len(exchanges(tmp_path / "cap")) == 2


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="a dict cannot be recorded"):
        record_client({}, tmp_path / "cap")
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadInput, match="is a file"):
        record_client(openai.OpenAI(base_url="http://127.0.0.1:9", api_key=KEY), tmp_path / "file")


def test_arguments_that_were_left_out_are_not_in_the_body() -> None:
    body = request_body({"model": "m", "stop": openai.NOT_GIVEN, "seed": openai.omit, "timeout": 3, "text": None})
    assert json.loads(body) == {"model": "m", "text": None}


async def test_a_cancelled_call_is_an_abort(url: str, tmp_path: Path) -> None:
    one = record_client(openai.AsyncOpenAI(base_url=url, api_key=KEY), tmp_path / "cap")
    task = asyncio.ensure_future(one.chat.completions.create(model="m", messages=ASK, max_tokens=2000))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    [seen] = exchanges(tmp_path / "cap")
    assert seen.cause == "client_abort"


def test_threads_that_call_at_one_time_have_numbers_of_their_own() -> None:
    """A synchronous client is often used by many threads: two calls under one number would be mixed."""
    copies, before = Copies(limit=1 << 40), sys.getswitchinterval()

    def begun(one: _CallCopy) -> None:
        one.copy = copies.open(Opened("POST", "/v1/chat/completions", [], "chat", -1))
        one.copy.request(b"ask")

    def call() -> None:
        for _ in range(4000):
            one = _CallCopy("chat")
            one.guarded(begun, one)
            one.end("client_abort")

    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=call) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert len({event.exchange for event in copies.take()}) == 24_000
    assert copies.waiting == 0
    assert (copies.tally.exchanges, copies.tally.request_bytes) == (24_000, 72_000)
    assert copies.tally.ends["client_abort"] == 24_000
