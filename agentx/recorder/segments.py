"""The files of a capture: segments that are appended to, rolled over, and cut back after a failed write.

A segment is a file of frames (`frames.py`) that begins with a `capture` frame. A recorder never appends to a segment
of an earlier one, so a tail that a crash tore stays where it is and costs only itself. After a write that failed
half-way the file is cut back to its last whole frame; where even that fails, a new segment is begun.
"""

from __future__ import annotations

import errno
import os
import re
import time
from pathlib import Path
from typing import Any, Literal

from agentx.errors import BadInput
from agentx.frames import encode

VERSION = 1
ROLL = 256 << 20  # bytes after which a new segment is begun
SYNC = 1.0  # s between two fsyncs where the durability is "second"
Durability = Literal["always", "second", "none"]
_NAME = re.compile(r"seg-(\d{6,})\.rec\Z")


def segment_files(folder: Path) -> list[Path]:
    """A capture's segments in their order."""
    found = [(int(match[1]), path) for path in folder.iterdir() if (match := _NAME.match(path.name))]
    return [path for _, path in sorted(found)]


class Segments:
    """Appends blocks of whole frames. `append` raises OSError; afterwards the next one may be tried."""

    def __init__(self, folder: Path, head: dict[str, Any], durability: Durability, roll: int = ROLL) -> None:
        self._folder, self._head, self._durability, self._roll = folder, head, durability, roll
        files = segment_files(folder)
        self._number = int(files[-1].name[4:-4]) if files else 0
        self._file: int | None = None
        self._good = 0  # bytes of the open file that are whole frames
        self._synced = time.monotonic()
        self._dirty = False

    def append(self, frames: bytes) -> None:
        """Write one block of whole frames. Raises OSError when the disk is full, or the file or the disk is gone."""
        self._check_there()
        if self._file is None or self._good > self._roll:
            self._next()
        self._write(frames)
        self._dirty = True
        if self._durability == "always":
            self.sync()

    def _check_there(self) -> None:
        """Raises OSError once the open file was removed: writing into it would go on, and keep nothing."""
        if self._file is not None and os.fstat(self._file).st_nlink == 0:
            os.close(self._file)
            self._file, self._dirty = None, False
            raise OSError(errno.ENOENT, "its file was removed")

    def sync(self) -> None:
        """Force to the disk what was appended. Raises OSError."""
        if self._file is not None and self._dirty and self._durability != "none":
            os.fsync(self._file)
        self._dirty, self._synced = False, time.monotonic()

    def tick(self) -> None:
        """Sync when it is due. Raises OSError."""
        if self._dirty and time.monotonic() - self._synced >= SYNC:
            self.sync()

    def close(self) -> None:
        self._check_there()
        if self._file is not None:
            try:
                self.sync()
            finally:
                os.close(self._file)
                self._file = None

    def _next(self) -> None:
        self.close()
        self._number += 1
        path = self._folder / f"seg-{self._number:06d}.rec"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        self._good = 0
        self._write(encode("capture", {"version": VERSION, "segment": self._number, **self._head}))

    def _write(self, data: bytes) -> None:
        if self._file is None:
            raise OSError("no segment is open")
        view = memoryview(data)
        try:
            while view:
                view = view[_put(self._file, view) :]
        except OSError:
            self._cut_back(self._file)
            raise
        self._good += len(data)

    def _cut_back(self, file: int) -> None:
        """Leave no half frame behind; a segment that cannot be cut, or has no head yet, is given up."""
        try:
            os.ftruncate(file, self._good)
        except OSError:
            self._good = 0
        if self._good == 0:
            os.close(file)
            self._file = None


def _put(file: int, data: memoryview) -> int:
    return os.write(file, data)


def first_frame_problem(body: dict[str, Any], path: Path) -> None:
    """Raises BadInput when a segment's `capture` frame is not one that this version reads."""
    version = body.get("version")
    if not isinstance(version, int):
        raise BadInput("this is not a segment of a capture", file=path)
    if version > VERSION:
        raise BadInput(f"capture version {version} is newer than {VERSION}, which this agentx reads", file=path)
