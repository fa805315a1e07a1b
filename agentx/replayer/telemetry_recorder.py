"""Looks at the machine every few seconds through a run: the host's memory, and the GPUs where one of their tools is
there. In a thread, whose tools are processes of their own: nothing here waits for it, and what it cannot have it says.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from agentx.errors import BadInput
from agentx.frames import FrameWriter, WriteFailed
from agentx.replayer.gpu_tools import TOOLS, Read
from agentx.telemetry import TELEMETRY, VERSION, GpuLook, Look, body_of

EVERY = 5.0  # s between looks
ANSWER = 10.0  # s that a tool may take
FAILURES = 3  # looks in a row without an answer, after which a tool is not asked again
MEMINFO = Path("/proc/meminfo")
_ODD = (ValueError, KeyError, TypeError, IndexError, AttributeError)  # output that is not what its documentation shows


class TelemetryRecorder:
    """Into a run folder; `clock` is the run's. `gpus`: whether the GPUs of this machine are those of the run."""

    def __init__(self, folder: Path, clock: Callable[[], float], *, gpus: bool, every: float = EVERY) -> None:
        self._path, self._clock, self._every = folder / TELEMETRY, clock, every
        self._tool = _tool() if gpus else None
        self._wanted = gpus
        self._missed = self._seen = 0
        self._failed: str | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="agentx-telemetry", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> list[str]:
        """Take a last look, and end. Returns what is to be said."""
        self._stop.set()
        self._thread.join(2 * ANSWER)
        if self._failed:
            return [f"telemetry could not be written: {self._failed}"]
        if self._wanted and self._tool is None:
            return ["no power or clocks: none of nvidia-smi, amd-smi and rocm-smi is on this machine"]
        if self._tool is not None and not self._seen:
            return [f"no power or clocks: {self._tool[0]} tells nothing that is understood"]
        return []

    def _run(self) -> None:
        try:
            with contextlib.closing(FrameWriter(self._path)) as file:
                file.write("telemetry", {"version": VERSION, "tool": self._tool[0] if self._tool else None})
                while True:
                    file.write("machine", body_of(self._look()))
                    file.flush()
                    if self._stop.wait(self._every):
                        file.write("machine", body_of(self._look()))
                        return
        except (WriteFailed, BadInput, OSError) as error:
            self._failed = str(error)

    def _look(self) -> Look:
        gpus = self._gpus()
        total, free = host_memory()
        return Look(self._clock(), total, free, tuple(gpus))

    def _gpus(self) -> list[GpuLook]:
        if self._tool is None or (self._missed >= FAILURES and not self._seen):
            return []
        _, argv, read = self._tool
        found: list[GpuLook] = []
        with contextlib.suppress(OSError, subprocess.TimeoutExpired, *_ODD):
            done = subprocess.run(argv, capture_output=True, timeout=ANSWER, text=True, errors="replace", check=False)
            found = read(done.stdout) if done.returncode == 0 else []
        self._missed = 0 if found else self._missed + 1
        self._seen += bool(found)
        return found


def _tool() -> tuple[str, list[str], Read] | None:
    """The first of the tools that is there: its name, how it is called, how it is read."""
    for name, arguments, read in TOOLS:
        if (path := shutil.which(name)) is not None:
            return name, [path, *arguments], read
    return None


def host_memory(path: Path = MEMINFO) -> tuple[int | None, int | None]:
    """Bytes of the machine's memory: all, and what programs could still have; None where Linux does not tell."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None, None
    told = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}

    def kilobytes(name: str) -> int | None:
        words = told.get(name) or []
        return int(words[0]) * 1024 if words and words[0].isdecimal() else None

    return kilobytes("MemTotal"), kilobytes("MemAvailable")
