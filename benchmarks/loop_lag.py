"""How long an event loop is not free, seen from inside: a coroutine that wants to run every millisecond.

`lag` is the most by which it came too late. `own` is the most of it that was the process's own doing: what the kernel's
scheduler kept its thread waiting for a CPU (`/proc/thread-self/schedstat`) is taken off, so that other work on the
machine does not count, but waits for Python's lock and for blocking calls do. On SIGUSR1 both are written, in
milliseconds, into the file that $AGENTX_LAG names, and begin anew.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from pathlib import Path

EVERY = 0.001  # s


class Watch:
    def __init__(self) -> None:
        self.lag = self.own = 0.0
        self._stat = os.open("/proc/thread-self/schedstat", os.O_RDONLY)

    def _waited(self) -> float:
        """Seconds that this thread has waited for a CPU so far."""
        return int(os.pread(self._stat, 100, 0).split()[1]) / 1e9

    async def run(self) -> None:
        """Until cancelled."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, self._write)
        while True:
            begun, waited = time.monotonic(), self._waited()
            await asyncio.sleep(EVERY)
            late = time.monotonic() - begun - EVERY
            self.lag = max(self.lag, late)
            self.own = max(self.own, late - (self._waited() - waited))

    def _write(self) -> None:
        path = Path(os.environ["AGENTX_LAG"])
        part = path.with_suffix(".part")
        part.write_text(json.dumps({"lag": self.lag * 1e3, "own": self.own * 1e3}))
        part.rename(path)
        self.lag = self.own = 0.0


def told(pid: int, path: Path) -> dict[str, float]:
    """The figures of a watched process since they were asked for last."""
    path.unlink(missing_ok=True)
    os.kill(pid, signal.SIGUSR1)
    for _ in range(2000):
        if path.exists():
            figures: dict[str, float] = json.loads(path.read_text())
            return figures
        time.sleep(0.005)
    raise SystemExit(f"process {pid} does not say how late its loop is")
