"""The embedded engine as an HTTP server: the one place of the engine that has sockets.

`serve` runs in an event loop until it is told to stop; `running` does the same in a thread, for tests and demos.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

from aiohttp import web

from agentx.engine.engine import EngineSettings
from agentx.engine.http_live import LiveEngine, Log
from agentx.engine.http_routes import Server
from agentx.engine.http_script import Script
from agentx.engine.kv_publisher import KvPublisher
from agentx.errors import BadInput

MODEL = "agentx"
KEEP_ALIVE = 900.0  # s: longer than a tool runs, so that a turn does not pay for a new connection
GRACE = 0.2  # s that open replies get when the server stops


async def serve(
    settings: EngineSettings,
    *,
    host: str,
    port: int,
    log: Path | None,
    ready: Callable[[str], None],
    stop: asyncio.Event,
    script: Script | None = None,
    kv_events: str | None = None,
) -> None:
    """Serve until `stop` is set; `ready` is told the base URL once the server answers. Port 0 takes a free one.

    `log` gets one JSON line per request, as it ends; `script` answers what its rules match; at `kv_events` is published
    what the cache stores and removes. Raises BadInput for an address that cannot be used and for a log that cannot be
    written: a request is answered and recorded, or the server ends.
    """
    with contextlib.ExitStack() as stack:
        publisher = None
        if kv_events is not None:
            publisher = KvPublisher(kv_events, settings.cache.page, bigram=settings.cache.bigram)
            stack.callback(publisher.close)
        live = LiveEngine(settings, model=MODEL, log=_opened(log, stack), publisher=publisher)
        runner = web.AppRunner(
            Server(live, script).app(),
            handler_cancellation=True,
            keepalive_timeout=KEEP_ALIVE,
            shutdown_timeout=GRACE,
            access_log=None,
        )
        await runner.setup()
        stepping = asyncio.ensure_future(live.run())
        stopping = asyncio.ensure_future(stop.wait())
        try:
            ready(await _listen(runner, host, port))
            await asyncio.wait({stepping, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if stepping.done():
                _raise(stepping, log)
        finally:
            for task in (stepping, stopping):
                task.cancel()
            await asyncio.gather(stepping, stopping, return_exceptions=True)
            await runner.cleanup()
            with contextlib.suppress(OSError):  # the log has said so already
                live.close()


@contextlib.contextmanager
def running(
    settings: EngineSettings,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    log: Path | None = None,
    script: Script | None = None,
    kv_events: str | None = None,
) -> Iterator[str]:
    """A server in a thread of its own for as long as the context lasts; gives its base URL.

    Raises what `serve` raises, at the start or, when the server died underway, at the end.
    """
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, str]] = Future()
    ended: Future[None] = Future()

    async def main() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()

        def ready(url: str) -> None:
            started.set_result((loop, stop, url))

        await serve(settings, host=host, port=port, log=log, ready=ready, stop=stop, script=script, kv_events=kv_events)

    def run() -> None:
        try:
            asyncio.run(main())
            ended.set_result(None)
        except BaseException as error:  # carried over to the thread that asked, whatever it is
            (ended if started.done() else started).set_exception(error)

    thread = threading.Thread(target=run, name="agentx-engine", daemon=True)
    thread.start()
    loop, stop, url = started.result()
    try:
        yield url
    finally:
        with contextlib.suppress(RuntimeError):  # its loop is closed when it died underway
            loop.call_soon_threadsafe(stop.set)
        thread.join()
    ended.result()


def _raise(stepping: asyncio.Future[None], log: Path | None) -> None:
    """Why the engine stopped by itself: a full disk under the log, or a bug."""
    try:
        stepping.result()
    except OSError as error:
        raise BadInput(f"the log cannot be written: {error.strerror or error}", file=log) from error


async def _listen(runner: web.AppRunner, host: str, port: int) -> str:
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        raise BadInput(
            f"cannot listen on {host} port {port}: {error.strerror or error}", hint="--port 0 takes a free port"
        ) from error
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{runner.addresses[0][1]}"


def _opened(log: Path | None, stack: contextlib.ExitStack) -> Log | None:
    if log is None:
        return None
    try:
        file = stack.enter_context(log.open("ab", buffering=0))
    except OSError as error:
        raise BadInput(f"cannot be written: {error.strerror or error}", file=log) from error

    def write(line: bytes) -> None:
        file.write(line)

    return write
