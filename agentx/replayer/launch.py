"""A server that a run starts: its recipe is run, waited for and recorded, and all its processes are ended behind it.

Between the replay and the server stands `launch_guard.py`, which ends the server also when the replay is killed. The
server writes to `launch.log` in the run folder. When it has ended, the run waits until the GPUs' memory is as free as
it was before, as far as a tool tells, so that the next run does not start beside the last one's remains.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from yarl import URL

from agentx.errors import BadInput, Unreachable
from agentx.replayer import launch_guard
from agentx.replayer.gpus import gpus_here
from agentx.replayer.launch_recipe import Recipe, check_host_pool, recipe_of
from agentx.replayer.targets import Endpoint, Launch, Server
from agentx.yamlspec import duration_text

LOG = "launch.log"
LOOK = 0.25  # s between looks at a server that starts
ANSWER = 5.0  # s that a look may take
SAYS = "agentx: "  # begins lines of the log that are not the server's
LAST_LINES = 15  # of the log, in the message when a server does not start
LAST_BYTES = 1 << 16
FREE = 120.0  # s that GPUs may take to free their memory
SLACK = 1 << 30  # bytes that may stay in use on a GPU above what was
Say = Callable[[str], None]


@dataclass(slots=True)
class Launched:
    """A server that runs. `facts` are for the run folder; `ended` is its exit code once it has one."""

    endpoint: Endpoint
    facts: dict[str, Any]
    process: asyncio.subprocess.Process
    log: Path

    @property
    def ended(self) -> int | None:
        return self.process.returncode


@contextlib.asynccontextmanager
async def launched(launch: Launch, *, folder: Path, simulated: Mapping[str, str], tell: Say) -> AsyncIterator[Launched]:
    """The server of a recipe, ready, until the block is left.

    `simulated`: variables of the plan's acceptance. `tell` hears how it goes on. Raises BadInput, and Unreachable for
    one that does not come up.
    """
    check_host_pool(launch)
    port = launch.port or free_port()
    recipe = recipe_of(launch, port=port, simulated=simulated)
    await _refuse_taken(recipe)
    before, began = await asyncio.to_thread(gpus_here), time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / LOG

    def say(text: str) -> None:  # the log tells of the end, when the run's own record is closed
        tell(text)
        with log.open("a", encoding="utf-8") as stream:
            stream.write(f"{SAYS}{text}\n")

    process = await _start(launch, recipe, log)
    try:
        say(f"{recipe.argv[0]} was started, and writes to {log}")
        await _ready(launch, recipe, process, log)
        took = time.monotonic() - began
        say(f"the server is ready after {took:.0f} s")
        facts = {
            **recipe.kept,
            "image_digest": await asyncio.to_thread(image_digest, recipe.image),  # which may only now be here
            "model_config_sha256": config_digest(recipe.model_path),
            "gpus": None if before is None else [{"name": gpu.name, "memory": gpu.total} for gpu in before[1]],
            "gpu_tool": None if before is None else before[0],
            "ready_seconds": round(took, 1),
        }
        yield Launched(_endpoint(launch, recipe), facts, process, log)
    finally:
        await _stop(launch, process, say)
        if before is not None:
            say(await _freed([gpu.used for gpu in before[1]]))


def free_port() -> int:
    """A port of this machine that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _endpoint(launch: Launch, recipe: Recipe) -> Endpoint:
    shared = {name: getattr(launch, name) for name in Server.model_fields}
    return Endpoint(kind="endpoint", url=recipe.url, **shared)


async def _refuse_taken(recipe: Recipe) -> None:
    """Raises BadInput where something listens already: it would be measured instead."""
    url = URL(recipe.url)
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(url.host, url.port), ANSWER)
    except (OSError, asyncio.TimeoutError):
        return
    writer.close()
    raise BadInput(f"port {url.port} is taken: another server runs there", hint="stop it, or leave port out")


async def _start(launch: Launch, recipe: Recipe, log: Path) -> asyncio.subprocess.Process:
    order = json.dumps({"argv": recipe.argv, "cwd": recipe.cwd, "grace": launch.grace, "stop": recipe.stop})
    with log.open("ab") as stream:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", launch_guard.__file__, order,
            stdin=asyncio.subprocess.PIPE, stdout=stream, stderr=stream,
            env={**os.environ, **recipe.environment}, start_new_session=True,
        )  # fmt: skip


async def _ready(launch: Launch, recipe: Recipe, process: asyncio.subprocess.Process, log: Path) -> None:
    """Until the server answers. Raises Unreachable with the end of its log."""
    url = str(launch.ready.url or f"{recipe.url.removesuffix('/v1')}/ready")
    stop = time.monotonic() + launch.ready.timeout
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER)) as session:
        while (status := await _status(session, url)) != 200:
            if status in (404, 405) and launch.ready.url is None:
                url = url.removesuffix("/ready") + "/health"
            if process.returncode is not None:
                raise Unreachable(f"the server ended with {process.returncode} before it was ready; {last_lines(log)}")
            if time.monotonic() >= stop:
                waited = duration_text(launch.ready.timeout)
                raise Unreachable(f"{url} did not answer 200 within {waited}; {last_lines(log)}")
            await asyncio.sleep(LOOK)


async def _status(session: aiohttp.ClientSession, url: str) -> int | None:
    try:
        async with session.get(url) as response:
            return response.status
    except (aiohttp.ClientError, asyncio.TimeoutError):
        return None


def last_lines(log: Path) -> str:
    """The end of a server's log, for a message."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - LAST_BYTES))
            text = stream.read().decode(errors="replace")
    except OSError as error:
        return f"{log} cannot be read: {error.strerror}"
    own = [line.rstrip() for line in text.splitlines() if line.strip() and not line.startswith(SAYS)]
    lines = own[-LAST_LINES:]
    if not lines:
        return f"it wrote nothing to {log}"
    return "\n".join([f"the end of {log}:", *(f"    {line}" for line in lines)])


async def _stop(launch: Launch, process: asyncio.subprocess.Process, say: Say) -> None:
    """End the process group and wait for it; the guard kills what does not end."""
    if process.returncode is None:
        say("stopping the server")
    if process.stdin is not None:
        process.stdin.close()
    longest = launch.grace + 3 * launch_guard.LAST
    try:
        await asyncio.wait_for(process.wait(), longest)
    except asyncio.TimeoutError:
        say(f"the server did not end within {longest:.0f} s: see which of its processes still run")


async def _freed(before: list[int]) -> str:
    """Wait until no GPU uses much more memory than before; what to say of it."""
    began = time.monotonic()
    while True:
        now = await asyncio.to_thread(gpus_here)
        if now is None or len(now[1]) != len(before):
            return "whether the GPUs' memory is free again is not known"
        waited = time.monotonic() - began
        held = max(gpu.used - used for gpu, used in zip(now[1], before, strict=True))
        if held <= SLACK:
            return f"the GPUs' memory is free again after {waited:.0f} s"
        if waited >= FREE:
            return (
                f"a GPU still uses {held / 1e9:.1f} GB more than before the run, {waited:.0f} s after the server ended"
            )
        await asyncio.sleep(1.0)


def image_digest(image: str | None) -> str | None:
    """What identifies a container image: the digest in its name, else what docker or podman tell; None: unknown."""
    if image is None:
        return None
    if "@" in image:
        return image.partition("@")[2]
    import subprocess

    for tool in ("docker", "podman"):
        path = shutil.which(tool)
        if path is None:
            continue
        form = "{{if .RepoDigests}}{{index .RepoDigests 0}}{{else}}{{.Id}}{{end}}"
        try:
            done = subprocess.run(
                [path, "image", "inspect", "--format", form, image],
                capture_output=True, text=True, timeout=ANSWER, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0 and done.stdout.strip():
            return done.stdout.strip().rpartition("@")[2]
    return None


def config_digest(model_path: str | None) -> str | None:
    """sha256 of the model's config.json; None where it cannot be read here."""
    if model_path is None:
        return None
    try:
        return hashlib.sha256((Path(model_path) / "config.json").read_bytes()).hexdigest()
    except OSError:
        return None
