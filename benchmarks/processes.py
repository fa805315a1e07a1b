"""What a command costs with all the processes that it starts: CPU, memory, time. From /proc, so on Linux only.

CPU of a process is the last that was seen of it, or what its parent reaped, whichever sums to more. Memory is the sum
of proportional set sizes: a page that three processes share counts a third in each.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LOOK = 0.2  # s between looks
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """`started`: on the monotonic clock. `cpu`, `wall`: seconds. `peak`: MB. `processes`: the most at a time."""

    started: float
    cpu: float
    wall: float
    peak: float
    processes: int


def run(
    command: Sequence[str],
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    codes: Sequence[int] = (0,),
) -> Cost:
    """Run to the end, output into `log`. Raises SystemExit with the log's end where it ends with none of `codes`."""
    with log.open("w") as out:
        started = time.monotonic()
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **(env or {})}, cwd=cwd
        )
        seen: dict[int, float] = {}
        peak, most = 0.0, 0
        while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            tree = [process.pid, *_descendants(process.pid)]
            for pid in tree:
                with contextlib.suppress(OSError, IndexError):
                    seen[pid] = _cpu(pid)
            peak, most = max(peak, sum(map(_memory, tree))), max(most, len(tree))
            time.sleep(LOOK)
        wall = time.monotonic() - started
    _, status, usage = ended
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in codes:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-40:])
        raise SystemExit(f"{' '.join(command)}\nended with {process.returncode}:\n{tail}")
    return Cost(started, max(sum(seen.values()), usage.ru_utime + usage.ru_stime), wall, peak, most)


def _descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, IndexError):
                children.setdefault(int(_stat(int(entry))[1]), []).append(int(entry))
    found, front = [], [root]
    while front:
        front = [child for pid in front for child in children.get(pid, ())]
        found += front
    return found


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on: what stands before it may hold spaces."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _cpu(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS


def _memory(pid: int) -> float:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0
