"""What the workers of a run and their coordinator say to each other, and what carries it.

Nothing is said about single turns: a worker decides those alone. All times are seconds on the run's clock, but for
`Go.start`, which is that clock's second 0 on the monotonic clock of the worker's own machine.
"""

from __future__ import annotations

import asyncio
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Protocol

from agentx.replayer.found import Found


class Ready(NamedTuple):
    """The worker can begin. `node`: the machine that it runs on."""

    pid: int
    node: str
    version: str


class Go(NamedTuple):
    """Second 0 of the run's clock."""

    start: float


class Warm(NamedTuple):
    """All lanes of the worker are warm; `nearest` is the distance to its first turn."""

    nearest: float


class Begin(NamedTuple):
    """The run begins at `at`; the first turn of all is `first` away."""

    at: float
    first: float


class Idle(NamedTuple):
    """Nothing is in flight since `since`, and nothing is due before `until`; None: something is in flight."""

    since: float | None
    until: float


class Pass(NamedTuple):
    """All timers move forward by so much, none before `to`: the whole system was idle for too long."""

    by: float
    to: float


class Stop(NamedTuple):
    """Send nothing more and cut what is in flight."""

    why: str
    interrupted: bool = False


class Stopped(NamedTuple):
    """The worker has stopped, and so must all."""

    why: str


class Broken(NamedTuple):
    """Something that cannot go on, in one line for the user."""

    error: str


class Counted(NamedTuple):
    """What the worker has done so far, for the bar."""

    live: int
    plays: int
    turns: int
    failed: int
    tokens: int
    prompt: int
    cached: int | None


class Over(NamedTuple):
    """The worker has played its part and written it down. `found`: the trace's sessions, as far as it read."""

    found: Found
    empty: int


class Written(NamedTuple):
    """Frames of the worker's records, where it has no file of its own to write them into."""

    frames: bytes


class Offset(NamedTuple):
    """By how many seconds the clock at the other end is ahead of this one, give or take `uncertainty`."""

    seconds: float
    uncertainty: float


class Link(Protocol):
    """One end of what carries messages."""

    def tell(self, message: object) -> None:
        """Does not wait; to somebody who is gone, does nothing."""

    async def hear(self) -> Any:
        """The next message; None: the other one is gone."""

    async def offset(self) -> Offset:
        """How the monotonic clocks at the two ends are to each other."""


class PipeLink:
    """A pipe between processes of one machine. Made inside the event loop that reads it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._heard: asyncio.Queue[Any] = asyncio.Queue()
        asyncio.get_running_loop().add_reader(connection.fileno(), self._read)

    def tell(self, message: object) -> None:
        try:
            self._connection.send(message)
        except OSError:  # gone: `hear` will say so
            return

    async def hear(self) -> Any:
        return await self._heard.get()

    async def offset(self) -> Offset:
        return Offset(0.0, 0.0)  # processes of one machine share its clock

    def _read(self) -> None:
        try:
            while self._connection.poll():
                self._heard.put_nowait(self._connection.recv())
        except (EOFError, OSError):
            self.close()
            self._heard.put_nowait(None)

    def close(self) -> None:
        if not self._connection.closed:
            asyncio.get_running_loop().remove_reader(self._connection.fileno())
            self._connection.close()
