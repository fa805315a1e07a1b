"""CPU time of the client per turn, beside a bare aiohttp loop that sends and reads the same bytes in the same run.

    python benchmarks/client_cost.py [--turns N] [--rounds R]

Two cases: prompts of 100 tokens and replies of 50 chunks in one write, 64 streams; sessions that
grow to 90,000 tokens (bodies of 200 KB on average), 16 streams. The server is another process, so only the client's
own CPU time is counted: schedule, body, request, parsing, record. The bar is 1.75 times a
bare loop. There are two: one that stamps every line of data, the least that tells when tokens came, and one that does
not even look at the bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import tempfile
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path
from typing import ClassVar

import aiohttp
from yarl import URL

from agentx.content import Encoder, WordList, lexicon
from agentx.core import Output, Piece, Prompt, Segment, Session, Turn
from agentx.replayer.bodies import Bodies, Wire
from agentx.replayer.client import Silence, open_session
from agentx.replayer.counters import Scraper
from agentx.replayer.drive import Driver
from agentx.replayer.progress import Progress
from agentx.replayer.schedule import Rules, Schedule, Send
from agentx.results import ResultsWriter

BAR = 1.75
CHUNKS = 50


def reply() -> bytes:
    """A whole HTTP response: 50 events as SGLang writes them, with continuous usage."""
    base = {"id": "9f0c3f8e1d4b4bd1", "object": "chat.completion.chunk", "created": 1764500000, "model": "agentx"}
    events = []
    for count in range(1, CHUNKS + 1):
        choice = {"index": 0, "delta": {"content": " Abc"}, "logprobs": None, "finish_reason": None}
        usage = {"prompt_tokens": 100, "completion_tokens": count, "total_tokens": 100 + count}
        events.append({**base, "choices": [choice], "usage": usage})
    events.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})
    details = {"cached_tokens": 64}
    last = {"prompt_tokens": 100, "completion_tokens": CHUNKS, "prompt_tokens_details": details}
    events.append({**base, "choices": [], "usage": last})
    lines = [f"data: {json.dumps(event, separators=(',', ':'))}\n\n" for event in events]
    body = ("".join(lines) + "data: [DONE]\n\n").encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


class Answerer(asyncio.Protocol):
    """Reads requests by their length and answers each at once."""

    def __init__(self, response: bytes) -> None:
        self._response, self._held, self._missing = response, b"", 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._missing -= len(data)
        else:
            self._held += data
            end = self._held.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self._held[:end].lower()
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            self._missing = length - (len(self._held) - end - 4)
            self._held = b""
        if not self._missing:
            self._transport.write(self._response)  # type: ignore[attr-defined]


def serve(pipe: Connection) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        response = reply()
        server = await loop.create_server(lambda: Answerer(response), "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


@contextlib.contextmanager
def server() -> Iterator[str]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}/v1/chat/completions"
    finally:
        process.terminate()


def short_sessions(turns: int) -> Iterator[Session]:
    """Sessions of 40 turns, each turn a prompt of 100 tokens."""
    own = {1: Segment(1, "system", 100)}
    prompt = Prompt((Piece(1, 0, 100),))
    for number in range(turns // 40):
        made = [Turn(at, 0, prompt, 100, Output(CHUNKS), (at - 1,) if at else ()) for at in range(40)]
        yield Session(f"s{number}", tuple(made), segments=own)


def long_sessions(turns: int) -> Iterator[Session]:
    """Sessions of 40 turns that grow from 12,000 to 90,000 tokens: a reply and a tool result of 1,000 tokens a turn."""
    for number in range(turns // 40):
        own = {1: Segment(1, "system", 12_000)}
        made = [Turn(0, 0, Prompt((Piece(1, 0, 12_000),)), 12_000, Output(CHUNKS))]
        for at in range(1, 40):
            reply, result = 2 * at, 2 * at + 1
            own[reply], own[result] = Segment(reply, "assistant", 1000), Segment(result, "tool_result", 1000)
            added = (Piece(reply, 0, 1000), Piece(result, 0, 1000))
            prompt = Prompt(added, at - 1, 2 * at - 1)
            made.append(Turn(at, 0, prompt, 12_000 + 2000 * at, Output(CHUNKS), (at - 1,)))
        yield Session(f"s{number}", tuple(made), segments=own)


async def ours(url: str, sessions: Iterator[Session], lanes: int, kept: list[bytes]) -> float:
    """CPU seconds per turn of the replayer; some of the bodies are kept for the bare loop."""
    with tempfile.TemporaryDirectory() as folder:
        writer = ResultsWriter(Path(folder) / "run", {}, time.time())
        wire = Wire("chat", "agentx")
        async with open_session() as http:
            clock, address = time.monotonic, URL(url)
            bodies = Keeping(Encoder(WordList(lexicon())), wire, policy="run", salt="x")
            driver = Driver(
                schedule=Schedule(sessions, Rules(lanes=lanes)),
                session=http,
                url=lambda send: address,
                wire=wire,
                bodies=bodies,
                headers=lambda send: {"X-Session-ID": send.session.key},
                writer=writer,
                scraper=Scraper(http, [], clock),
                silence=Silence(60.0, clock),
                clock=clock,
                progress=Progress(clock, None, wanted=False),
                run_id="x",
                on_overflow="continue",
            )
            start = time.process_time()
            await driver.run()
            spent = time.process_time() - start
        done = driver.progress.turns
        if driver.progress.failed or not done:
            raise SystemExit(f"{driver.progress.failed} of {done} turns failed")
        kept[:] = bodies.kept
        return spent / done


class Keeping(Bodies):
    """Bodies that keeps the last ones it made."""

    kept: ClassVar[deque[bytes]] = deque(maxlen=200)

    def body(self, send: Send, rid: str | None = None) -> bytes:
        made = super().body(send, rid)
        self.kept.append(made)
        return made


async def by_lines(content: aiohttp.StreamReader) -> None:
    """The least that tells when each token came: a time for every line of data."""
    times = []
    async for line in content:
        if line.startswith(b"data: "):
            times.append(time.monotonic())


async def by_reads(content: aiohttp.StreamReader) -> None:
    """Less than that: the bytes, whatever they are."""
    async for _ in content.iter_any():
        pass


async def bare(
    url: str, bodies: list[bytes], turns: int, lanes: int, read: Callable[[aiohttp.StreamReader], Awaitable[None]]
) -> float:
    """CPU seconds per turn of a loop of aiohttp alone that sends the same bodies."""
    supply = cycle(bodies)
    left = turns

    async def lane(http: aiohttp.ClientSession) -> None:
        nonlocal left
        while left > 0:
            left -= 1
            async with http.post(url, data=next(supply), headers={"Content-Type": "application/json"}) as response:
                await read(response.content)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        start = time.process_time()
        await asyncio.gather(*(lane(http) for _ in range(lanes)))
        return (time.process_time() - start) / turns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    cases = [
        ("prompts of 100 tokens, 64 streams", short_sessions, args.turns, 64),
        ("prompts of 51,000 tokens, 16 streams", long_sessions, args.turns // 2, 16),
    ]
    with server() as url:
        for name, sessions, turns, lanes in cases:
            rounds, bodies = [], list[bytes]()
            for _ in range(args.rounds):
                mine = asyncio.run(ours(url, sessions(turns), lanes, bodies))
                others = [asyncio.run(bare(url, bodies, turns, lanes, read)) for read in (by_lines, by_reads)]
                rounds.append((mine, *others))
            mine, lines, reads = (min(column) for column in zip(*rounds, strict=True))
            print(
                f"{name}: {mine * 1e3:.3f} ms CPU per turn; ratio {mine / lines:.2f} to a loop that stamps lines "
                f"({lines * 1e3:.3f} ms), {mine / reads:.2f} to one that only reads ({reads * 1e3:.3f} ms); bar {BAR}"
            )


if __name__ == "__main__":
    main()
