"""Workers on many machines: the same worker in a Ray actor, its messages by the actor's methods.

An actor plays in a thread of its own; what it says waits in a queue that the coordinator empties by a call that waits,
and its records travel the same way, so that they are in the run folder a moment later and nothing is left on a node.
Each machine has a monotonic clock of its own: how far it is ahead is measured by round trips. The one with the shortest
way there and back says most, and is off by half of it at the most.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import re
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentx.errors import BadInput
from agentx.frames import FrameWriter, encode
from agentx.replayer.messages import Link, Offset, Written
from agentx.replayer.worker import Job, work
from agentx.results import part_path

EXTRA = "agentx-replay[ray]"
CONNECT = 5.0  # s in which the cluster must take a connection
ROUND_TRIPS = 25  # of which the shortest one counts
PATIENCE = 1.0  # s that a call for messages waits for the first
_CALLS = {"play": 1, "say": 1, "listen": 1, "ping": 1}  # threads of an actor: what is told to it stays in order


class Mailbox:
    """The worker's end: what it says waits to be fetched, what it hears comes from another thread."""

    def __init__(self) -> None:
        self.said: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._heard: asyncio.Queue[object] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()

    def tell(self, message: object) -> None:
        self.said.put(message)

    async def hear(self) -> Any:
        return await self._heard.get()

    async def offset(self) -> Offset:
        return Offset(0.0, 0.0)  # only the coordinator asks

    def put(self, message: object) -> None:
        """Let the worker hear this; from any thread."""
        with contextlib.suppress(RuntimeError):  # its loop has ended, as its part has
            self._loop.call_soon_threadsafe(self._heard.put_nowait, message)


class Actor:
    """One worker. Its methods are called over the network, each kind in a thread of its own.

    None of them is a coroutine: Ray would run them all in one loop.
    """

    def __init__(self) -> None:
        self._mailbox: Future[Mailbox] = Future()

    def play(self, job: Job, trace: bytes) -> None:
        """Play a part of the plan to its end."""
        with tempfile.TemporaryDirectory(prefix="agentx-") as folder:
            path = Path(folder) / "trace.trace"
            path.write_bytes(trace)
            asyncio.run(_play(replace(job, facts=replace(job.facts, trace=path)), self._mailbox))

    def say(self, message: object) -> None:
        """Tell the worker something."""
        self._mailbox.result().put(message)

    def listen(self) -> list[object]:
        """What the worker has said since the last call; empty when it was silent for PATIENCE seconds."""
        waiting, said = self._mailbox.result().said, list[object]()
        with contextlib.suppress(queue.Empty):
            said.append(waiting.get(timeout=PATIENCE))
            while True:
                said.append(waiting.get_nowait())
        return said

    def ping(self) -> float:
        return time.monotonic()


async def _play(job: Job, opened: Future[Mailbox]) -> None:
    mailbox = Mailbox()
    opened.set_result(mailbox)
    try:
        await work(job, mailbox, lambda: Shipped(mailbox))
    finally:
        mailbox.tell(None)


class Shipped:
    """Frames that go to the coordinator instead of a file."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox

    def write(self, kind: str, body: dict[str, Any]) -> None:
        self._mailbox.tell(Written(encode(kind, body)))

    def flush(self) -> None:
        return None

    def close(self) -> None:
        return None


class RayLink:
    """The coordinator's end. What the worker has recorded is written to its file here."""

    def __init__(self, ray: Any, actor: Any, path: Path) -> None:
        self._ray, self._actor, self._path = ray, actor, path
        self._said: list[Any] = []
        self._file: FrameWriter | None = None

    def tell(self, message: object) -> None:
        _call(self._actor, "say", message)

    async def hear(self) -> Any:
        while True:
            while not self._said:
                try:
                    self._said = list(reversed(await _call(self._actor, "listen")))
                except self._ray.exceptions.RayError:
                    return None
            message = self._said.pop()
            if not isinstance(message, Written):
                return message
            self._keep(message)

    async def offset(self) -> Offset:
        best = Offset(0.0, float("inf"))
        for _ in range(ROUND_TRIPS):
            before = time.monotonic()
            try:
                there = await _call(self._actor, "ping")
            except self._ray.exceptions.RayError:  # gone: `hear` says so
                break
            after = time.monotonic()
            if (after - before) / 2 < best.uncertainty:
                best = Offset(there - (before + after) / 2, (after - before) / 2)
        return best

    def _keep(self, message: Written) -> None:
        if self._file is None:
            self._file = FrameWriter(self._path)
        self._file.write_bytes(message.frames)
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._ray.kill(self._actor)


@contextlib.asynccontextmanager
async def actors(jobs: Sequence[Job], address: str) -> AsyncIterator[list[Link]]:
    """An actor for each job on the Ray cluster at `address`, spread over its nodes, and a link to each.

    Raises BadInput without Ray, without the cluster, and where it has fewer CPUs than there are workers.
    """
    ray = _ray()
    mine = not ray.is_initialized()
    if mine:
        _connect(ray, address)
    links: list[RayLink] = []
    try:
        cpus = int(ray.cluster_resources().get("CPU", 0))
        if cpus < len(jobs):
            raise BadInput(
                f"the Ray cluster at {address} has {cpus} CPUs for {len(jobs)} workers", hint=f"--workers {cpus}"
            )
        kind = ray.remote(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD", concurrency_groups=_CALLS)(Actor)
        trace = ray.put(jobs[0].facts.trace.read_bytes())
        for job in jobs:
            actor = kind.remote()
            _call(actor, "play", job, trace)
            links.append(RayLink(ray, actor, part_path(job.folder, job.part.index)))
        yield list(links)
    finally:
        for link in links:
            link.close()
        if mine:
            ray.shutdown()


def _call(actor: Any, method: str, *arguments: object) -> Any:
    return getattr(actor, method).options(concurrency_group=method).remote(*arguments)


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise BadInput("--ray needs Ray, which is not installed", hint=f"pip install '{EXTRA}'") from None
    return ray


def _connect(ray: Any, address: str) -> None:
    place = re.fullmatch(r"(?:ray://)?\[?([^\[\]]+?)\]?:(\d{1,5})", address)
    if place is not None:  # Ray itself would try for minutes
        try:
            socket.create_connection((place[1], int(place[2])), timeout=CONNECT).close()
        except (OSError, OverflowError) as error:
            raise BadInput(f"no Ray cluster at {address}: {error}") from None
    try:
        ray.init(address=address, logging_level="ERROR", log_to_driver=True)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise BadInput(f"no Ray cluster at {address}: {str(error).splitlines()[0]}") from None
