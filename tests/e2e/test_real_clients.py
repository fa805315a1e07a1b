"""The `openai` and `anthropic` packages through the recorder, against the engine: what they receive is what they would
have received without it, and the trace says what they did. Synchronous and not, streaming and not, with tools, with
retries of their own, and with subagents at work at the same time."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import threading
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import openai
import pytest
from asking import FAST
from talking import Chat, Dialect, Heard, Messages, Responses, awaited

from agentx import catalog, record_client
from agentx.cli.main import main
from agentx.core import Session
from agentx.engine.http_script import Rule, Script
from agentx.engine.server import running
from agentx.engine.settings import EngineSettings
from agentx.recorder.capture_reader import CaptureReader
from agentx.recorder.profile import load_profile
from agentx.recorder.recording import Recording, record
from agentx.recorder.sdk_capture import close_captures
from agentx.replayer.simulate import simulate
from agentx.reporter.compare_recorded import compare_recorded
from agentx.reuse import possible_by_turn
from agentx.trace import read_trace

KEY = "sk-test-0123456789abcdef"
JSON = {"Content-Type": "application/json"}
Make = Callable[..., Any]  # a client of (base URL, options)
Trouble = tuple[int, dict[str, str]] | None  # an answer's status and headers, or none at all


def make_openai(kind: Any) -> Make:
    return lambda url, **more: kind(base_url=f"{url}/v1", api_key=KEY, **more)


def make_anthropic(kind: str) -> Make:
    return lambda url, **more: getattr(pytest.importorskip("anthropic"), kind)(base_url=url, api_key=KEY, **more)


KINDS: list[tuple[str, Dialect, Make]] = [
    ("openai, chat", Chat(), make_openai(openai.OpenAI)),
    ("openai asynchronous, chat", Chat(), make_openai(openai.AsyncOpenAI)),
    ("openai, responses", Responses(), make_openai(openai.OpenAI)),
    ("openai asynchronous, responses", Responses(), make_openai(openai.AsyncOpenAI)),
    ("anthropic", Messages(), make_anthropic("Anthropic")),
    ("anthropic asynchronous", Messages(), make_anthropic("AsyncAnthropic")),
]
RULES = [
    {
        "contains": "start",
        "reasoning": " let me",
        "text": "I look.",
        "calls": [
            {"name": "Bash", "arguments": {"command": "ls é"}},
            {"name": "Read", "arguments": {"command": "a.py"}},
        ],
    },
    {"contains": "second file", "text": "Once more.", "calls": [{"name": "Bash", "arguments": {"command": "wc"}}]},
    {"contains": "third", "text": "Done."},
    {"contains": "and now", "text": "Nothing."},
]


@contextlib.contextmanager
def engine(rules: list[dict[str, Any]]) -> Iterator[str]:
    script = Script(tuple(Rule.model_validate(rule) for rule in rules), pytest.fail)
    with running(EngineSettings(context=8192, timing=FAST), script=script) as url:
        yield url


@contextlib.contextmanager
def recorded(folder: Path, upstream: str) -> Iterator[str]:
    """A recorder in a thread of its own; its URL."""
    profile = load_profile(catalog.resolve("recorders", "sglang"))
    wanted = Recording("sglang", profile, upstream, folder / "cap")
    loop, stop, told = asyncio.new_event_loop(), asyncio.Event(), list[str]()
    started, warned = threading.Event(), list[str]()

    def ready(url: str) -> None:
        told.append(url)
        started.set()

    def serve() -> None:
        loop.run_until_complete(record(wanted, ready=ready, stop=stop, warn=warned.append))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        assert started.wait(20)
        yield told[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        loop.close()
    assert warned == []


@pytest.fixture(autouse=True)
def _keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTX_KEYS", str(tmp_path / "keys"))


def compiled(folder: Path, capsys: pytest.CaptureFixture[str], template: str = "1+1") -> tuple[list[Session], str]:
    """The sessions of the capture, by the command line, and what that said. The engine's chat template is 1+1."""
    assert main(["compile", str(folder / "cap"), "-o", str(folder / "cap.trace"), "--template", template]) == 0
    return list(read_trace(folder / "cap.trace")), capsys.readouterr().err


async def converse(dialect: Dialect, client: Any, stream: bool, **more: Any) -> list[Heard]:
    """An agent: two tools at once, one more, an answer, and another question of its user."""
    talk = [dialect.user("start, please")]
    heard = []
    for brought in (["first: a.py", "second file"], ["third"], None):
        heard.append(await dialect.ask(client, talk, stream, **more))
        talk += heard[-1].back
        if brought is not None:
            talk += dialect.results([(call.id, text) for call, text in zip(heard[-1].calls, brought, strict=True)])
    heard.append(await dialect.ask(client, [*talk, dialect.user("and now?")], stream, **more))
    await awaited(client.close())
    return heard


def check_the_trace(session: Session, heard: list[Heard], stream: bool) -> None:
    """What the agent did and was told."""
    turns = session.turns
    assert [(t.isl, t.output.tokens, t.observed and t.observed.cached) for t in turns] == [h.usage for h in heard]
    assert [turn.gap.kind for turn in turns] == ["unknown", "tool", "tool", "human"]
    assert [turn.gap.provenance for turn in turns[1:]] == ["recorded"] * 3
    assert [[tool.name for tool in turn.tools] for turn in turns] == [[], ["Bash", "Read"], ["Bash"], []]
    assert [turn.prompt.base for turn in turns] == [None, 0, 1, 2]
    assert [turn.after for turn in turns] == [(), (0,), (1,), (2,)]
    assert [turn.event for turn in turns] == [None] * 4
    assert all(turn.observed and (turn.observed.ttft is not None) == stream for turn in turns)
    assert all(turn.observed and turn.observed.status == "200" for turn in turns)
    assert [sorted(turn.extra.keys() & {"attempts", "estimated", "prefix_unknown"}) for turn in turns] == [[]] * 4
    layers = [session.segment(piece.segment).layer for piece in session.pieces(1)]
    assert [layer for at, layer in enumerate(layers) if layer != layers[at - 1]][:5] == [
        "tools", "system", "user", "assistant", "tool_result",
    ]  # fmt: skip


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("name", "dialect", "make"), KINDS, ids=[name for name, _, _ in KINDS])
def test_an_agent_with_tools(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, dialect: Dialect, make: Make, stream: bool
) -> None:
    with engine(RULES) as url:
        direct = asyncio.run(converse(dialect, make(url), stream))
    with engine(RULES) as upstream, recorded(tmp_path, upstream) as url:
        heard = asyncio.run(converse(dialect, make(url), stream))
    assert [turn.content for turn in heard] == [turn.content for turn in direct]
    assert [turn.text for turn in heard] == ["I look.", "Once more.", "Done.", "Nothing."]
    assert [call[1:] for call in heard[0].calls] == [("Bash", {"command": "ls é"}), ("Read", {"command": "a.py"})]
    assert (heard[0].events.count(dialect.deltas) >= 2) == stream
    (session,), said = compiled(tmp_path, capsys)
    assert "exchanges  4 read = 4 used + 0 dropped" in said
    assert session.extra["known_by"] == "linked"
    check_the_trace(session, heard, stream)
    assert main(["check", str(tmp_path / "cap.trace")]) == 0
    assert "error" not in capsys.readouterr().out.replace("no errors", "")
    simulate(tmp_path / "cap.trace", out=tmp_path / "run")
    assert compare_recorded(tmp_path / "cap.trace", tmp_path / "run").reasons == ()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("name", "dialect", "make"), KINDS[:3:2], ids=[name for name, _, _ in KINDS[:3:2]])
def test_a_recorded_client_says_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, dialect: Dialect, make: Make, stream: bool
) -> None:
    """`record_client` inside the program, in place of the proxy."""
    with engine(RULES) as url:
        heard = asyncio.run(converse(dialect, record_client(make(url), tmp_path / "cap"), stream))
        close_captures()
    (session,), _ = compiled(tmp_path, capsys)
    check_the_trace(session, heard, stream)


@pytest.mark.parametrize(
    ("kind", "stream"),
    [(openai.OpenAI, False), (openai.OpenAI, True), (openai.AsyncOpenAI, True)],
    ids=["whole", "stream", "asynchronous stream"],
)
def test_completions(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: Any, stream: bool) -> None:
    """Prompts without messages: each goes on from the one before, as plain text."""

    async def talk(client: Any) -> list[tuple[str, str | None, int, int]]:
        prompt, heard = "start the text " * 40, []
        for ask in ("one ", "two "):
            more = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
            made = await awaited(client.completions.create(model="agentx", prompt=prompt, max_tokens=9, **more))
            if stream:
                chunks = [chunk async for chunk in made] if hasattr(made, "__aiter__") else list(made)
            else:
                chunks = [made]
            choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
            text, usage = "".join(choice.text for choice in choices), chunks[-1].usage
            heard.append((text, choices[-1].finish_reason, usage.prompt_tokens, usage.completion_tokens))
            prompt += text + ask
        await awaited(client.close())
        return heard

    make = make_openai(kind)
    rules = [{"contains": "one", "text": "second"}, {"text": "first"}]
    with engine(rules) as url:
        direct = asyncio.run(talk(make(url)))
    with engine(rules) as upstream, recorded(tmp_path, upstream) as url:
        heard = asyncio.run(talk(make(url, default_headers={"X-Session-Id": "s"})))
    assert heard == direct
    assert [text for text, *_ in heard] == ["first", "second"]
    (session,), _ = compiled(tmp_path, capsys, template="0+0")  # none is applied to such prompts
    assert [(turn.isl, turn.output.tokens) for turn in session.turns] == [(prompt, out) for _, _, prompt, out in heard]
    assert [turn.gap.kind for turn in session.turns] == ["unknown", "unknown"]  # nobody knows who wrote the end
    assert session.extra["known_by"] == "x-session-id"
    # The second prompt is the first, its reply and something more.
    layers = [session.segment(piece.segment).layer for piece in session.pieces(1)]
    assert (session.turns[1].prompt.base, session.turns[1].prompt.keep, layers) == (0, 1, ["user", "assistant", "user"])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_token_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str], stream: bool) -> None:
    """Who keeps ids, as trainers do, sends back the ids of the reply: all that the server had cached is possible."""
    ids, cached = [int.from_bytes(b" abc", "little")] * 100, []
    with running(EngineSettings(context=8192, timing=FAST)) as upstream, recorded(tmp_path, upstream) as url:
        for _ in range(3):
            body = {"input_ids": ids, "sampling_params": {"max_new_tokens": 7}, "stream": stream}
            request = urllib.request.Request(f"{url}/generate", json.dumps(body).encode(), JSON)
            with urllib.request.urlopen(request, timeout=20) as answer:
                text = answer.read().decode()
            reply = json.loads(text.split("data: ")[-2] if stream else text)
            cached.append(reply["meta_info"]["cached_tokens"])
            ids = [*ids, *reply["output_ids"], *[int.from_bytes(b" def", "little")] * 5]
    (session,), _ = compiled(tmp_path, capsys, template="0+0")
    assert session.extra["known_by"] == "linked"
    assert [turn.isl for turn in session.turns] == [100, 112, 124]
    assert [turn.prompt.base for turn in session.turns] == [None, 0, 1]
    possible = [sum(turn.reused) for turn in possible_by_turn([session])]
    assert possible == [0, 107, 119]
    assert [could - did for could, did in zip(possible, cached, strict=True)] == [0, 1, 1]  # a reply's last has no KV


class Flaky(http.server.BaseHTTPRequestHandler):
    """Gives the answers of `first`, one a request, then passes on to `upstream`. None: it closes the connection."""

    protocol_version = "HTTP/1.1"
    upstream = ""
    first: ClassVar[list[Trouble]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.first:
            trouble = self.first.pop(0)
            if trouble is None:
                self.close_connection = True
            else:
                self._answer(
                    trouble[0], trouble[1], b'{"type":"error","error":{"type":"rate_limit_error","message":""}}'
                )
            return
        request = urllib.request.Request(self.upstream + self.path, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            self._answer(200, {"Content-Type": answer.headers["Content-Type"]}, answer.read())

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@contextlib.contextmanager
def flaky(upstream: str, first: Sequence[Trouble]) -> Iterator[str]:
    handler = type("Handler", (Flaky,), {"upstream": upstream, "first": list(first)})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


SOON = {"retry-after-ms": "5"}
TROUBLES: list[tuple[str, bool, list[Trouble], list[Any]]] = [
    ("too many requests", False, [(429, SOON)], [429]),
    ("too many requests, before a stream", True, [(429, SOON)], [429]),
    ("seconds to wait, in the header that all know", True, [(429, {"Retry-After": "0.01"})], [429]),
    ("twice", False, [(503, SOON), (529, SOON)], [503, 529]),
    ("no answer: the recorder says 502", True, [None], ["upstream_unreachable"]),
]


@pytest.mark.parametrize(("what", "stream", "troubles", "failed"), TROUBLES, ids=[what for what, *_ in TROUBLES])
@pytest.mark.parametrize(("name", "dialect", "make"), KINDS[::2], ids=[name for name, _, _ in KINDS[::2]])
def test_the_clients_own_retries_are_attempts_of_one_turn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, dialect: Dialect, make: Make,
    what: str, stream: bool, troubles: list[Trouble], failed: list[Any],
) -> None:  # fmt: skip
    """Nothing is asked of the packages: they retry by themselves, and no trace has more turns for it."""
    with engine(RULES) as behind, flaky(behind, troubles) as upstream, recorded(tmp_path, upstream) as url:
        heard = asyncio.run(converse(dialect, make(url), stream))
    assert [turn.text for turn in heard] == ["I look.", "Once more.", "Done.", "Nothing."]
    (session,), said = compiled(tmp_path, capsys)
    count = len(failed)
    assert f"exchanges  {4 + count} read = 4 used + {count} merged + 0 dropped" in said
    assert [turn.extra.get("attempts") for turn in session.turns] == [
        {"count": 1 + count, "failed": failed}, None, None, None,
    ]  # fmt: skip
    assert [(turn.isl, turn.output.tokens) for turn in session.turns] == [turn.usage[:2] for turn in heard]
    retries = [exchange.header("x-stainless-retry-count") for exchange in CaptureReader(tmp_path / "cap")]
    assert retries[: count + 1] == [str(number) for number in range(count + 1)]


TASKS = [f"explore part {number} of the tree and report all of it" for number in range(2)]
DELEGATES: list[dict[str, Any]] = [
    {
        "contains": "main ask",
        "text": "I delegate.",
        "calls": [{"name": "Task", "arguments": {"command": task}} for task in TASKS],
    },
    {"text": "found it"},
]


async def delegate(dialect: Dialect, client: Any, stream: bool, named: bool) -> None:
    """An agent whose first reply starts two subagents, which work at the same time for two turns each."""

    async def ask(messages: Sequence[dict[str, Any]], system: str, agent: str | None = None) -> Heard:
        headers = {"X-Claude-Code-Session-Id": "s", **({"X-Claude-Code-Agent-Id": agent} if agent else {})}
        return await dialect.ask(
            client, messages, stream, system=system, **({"extra_headers": headers} if named else {})
        )

    async def work(call: Any) -> str:
        talk = [dialect.user(call.arguments["command"])]
        first = await ask(talk, "You explore.", call.id)
        return (await ask([*talk, *first.back, dialect.user("more")], "You explore.", call.id)).text

    talk = [dialect.user("main ask")]
    reply = await ask(talk, "You lead.")
    found = await asyncio.gather(*(work(call) for call in reply.calls))
    results = dialect.results([(call.id, text) for call, text in zip(reply.calls, found, strict=True)])
    await ask([*talk, *reply.back, *results], "You lead.")
    await awaited(client.close())


@pytest.mark.parametrize(
    ("stream", "named", "known_by"),
    [(True, True, "x-claude-code-session-id"), (True, False, "linked"), (False, False, "linked")],
    ids=["headers, streams", "streams", "whole"],
)
@pytest.mark.parametrize(("name", "dialect", "make"), KINDS[1::2], ids=[name for name, _, _ in KINDS[1::2]])
def test_parallel_subagents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, dialect: Dialect, make: Make, stream: bool,
    named: bool, known_by: str,
) -> None:  # fmt: skip
    """R19: one session of three threads, with and without headers; the lead waits for both."""
    with engine(DELEGATES) as upstream, recorded(tmp_path, upstream) as url:
        asyncio.run(delegate(dialect, make(url), stream, named))
    (session,), _ = compiled(tmp_path, capsys)
    assert session.extra["known_by"] == known_by
    assert [thread.kind for thread in session.threads] == ["main", "subagent", "subagent"]
    assert [thread.parent for thread in session.threads] == [None, 0, 0]
    lead, work = [[t for t in session.turns if (t.thread == 0) == main] for main in (True, False)]
    assert (len(lead), len(work)) == (2, 4)
    assert [turn.gap.kind for turn in work if turn.after == (0,)] == ["spawn", "spawn"]
    last = [max(turn.index for turn in work if turn.thread == thread) for thread in (1, 2)]
    assert sorted(lead[-1].after) == [0, *sorted(last)]
    assert [tool.name for tool in lead[-1].tools] == ["Task", "Task"]
    assert lead[-1].gap.kind == "tool"
