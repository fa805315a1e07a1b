"""A capture that a program writes of its own calls: the proxy's queue and writer, open until the program ends.

One per folder and process, shared by all clients that record into it. A process that was forked records nothing: the
writer's threads are its parent's.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from agentx.recorder.capture import recording
from agentx.recorder.copies import Copies, Copy, Opened
from agentx.recorder.recording import closed
from agentx.recorder.scribe import Scribe

_open: dict[Path, SdkCapture] = {}
_lock = threading.Lock()


class SdkCapture:
    """An open capture. Raises BadInput for a folder that cannot be recorded into."""

    def __init__(self, folder: Path, upstream: str) -> None:
        self._stack = ExitStack()
        about = {
            "profile": "sdk",
            "upstream": upstream,
            "durability": "second",
            "identity": {"session": [], "agent": [], "parent": []},
            "closed": False,
            "started": time.time_ns(),
        }
        self._capture = self._stack.enter_context(recording(folder, about))
        self._copies = Copies()
        self._scribe = Scribe(self._copies, self._capture, "second", (), warn)
        self._scribe.start()
        self._process = os.getpid()

    def open(self, opened: Opened) -> Copy | None:
        """The copy of one call; None in a process that was forked."""
        return self._copies.open(opened) if os.getpid() == self._process else None

    def close(self) -> None:
        """Write all that waits, and the counters into the manifest."""
        if os.getpid() != self._process:
            return
        counters: dict[str, Any] = closed(self._scribe, self._copies)
        try:
            self._capture.note_run({"counters": counters, "ended": time.time_ns(), "closed": True})
        except OSError as error:
            warn(f"agentx: the capture's manifest cannot be written: {error.strerror or error}")
        self._stack.close()


def warn(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def capture_of(folder: Path | str, upstream: str) -> SdkCapture:
    """The open capture in a folder, which is made or gone on with. Raises BadInput."""
    path = Path(folder).resolve()
    with _lock:
        if path not in _open:
            if not _open:
                atexit.register(close_captures)
            _open[path] = SdkCapture(path, upstream)
        return _open[path]


def close_captures() -> None:
    """End all recordings of this process: what a program does that compiles its capture itself. Else at its exit."""
    atexit.unregister(close_captures)
    with _lock:
        captures = list(_open.values())
        _open.clear()
    for capture in captures:
        capture.close()
