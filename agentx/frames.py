"""The one on-disk framing: magic, length, CRC, msgpack. A torn tail is reported, what lies before it is read.

A file is a sequence of frames and nothing else, so files can be concatenated:

    magic 4 bytes | payload length u32 LE | CRC-32 of the payload u32 LE | payload: msgpack [type, body]

`type` is a short string, `body` a map with string keys. Hostile input is refused by the limits below; a frame
that is cut short or does not match its CRC ends the reading as a `Tear`, which callers show to their user.
"""

from __future__ import annotations

import errno
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgpack

from agentx.errors import AgentxError, BadInput

MAGIC = b"\x93AX1"
MAX_FRAME = 64 << 20  # bytes of one payload
_HEAD = struct.Struct("<4sII")

Frame = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Tear:
    """Where reading stopped before the end of the file: byte `offset`, `lost` bytes after it, and why."""

    offset: int
    lost: int
    reason: str

    def __str__(self) -> str:
        return f"torn at byte {self.offset}: {self.reason}; the {self.lost} bytes after it were not read"


def encode(kind: str, body: dict[str, Any]) -> bytes:
    """One frame as bytes. Raises BadInput when a value does not fit (integers beyond 64 bits, a frame too large)."""
    try:
        payload: bytes = msgpack.packb([kind, body], use_bin_type=True)
    except (OverflowError, ValueError, TypeError) as error:
        raise BadInput(f"a {kind} frame holds a value that cannot be stored: {error}") from None
    if len(payload) > MAX_FRAME:
        raise BadInput(f"a {kind} frame of {len(payload)} bytes is over the limit of {MAX_FRAME} bytes")
    return _HEAD.pack(MAGIC, len(payload), zlib.crc32(payload)) + payload


class FrameReader:
    """Iterates over the frames of a file; afterwards `tear` says whether something at the end was not read."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.tear: Tear | None = None

    def __iter__(self) -> Iterator[Frame]:
        with open_for_reading(self.path) as file:
            size, offset = os.fstat(file.fileno()).st_size, 0
            while head := file.read(_HEAD.size):
                payload, reason = self._payload(file, head)
                frame = None if reason else _unpack(payload)
                if frame is None:
                    self.tear = Tear(offset, max(size - offset, len(head)), reason or "the payload is not a frame")
                    return
                yield frame
                offset += _HEAD.size + len(payload)

    def _payload(self, file: BinaryIO, head: bytes) -> tuple[bytes, str | None]:
        if len(head) < _HEAD.size:
            return b"", "the file ends inside a frame's head"
        magic, length, crc = _HEAD.unpack(head)
        if magic != MAGIC:
            return b"", "no frame begins here"
        if length > MAX_FRAME:
            return b"", f"a frame claims {length} bytes, the limit is {MAX_FRAME}"
        payload = file.read(length)
        if len(payload) < length:
            return b"", "the file ends inside a frame"
        if zlib.crc32(payload) != crc:
            return b"", "a checksum does not match"
        return payload, None


def _unpack(payload: bytes) -> Frame | None:
    try:
        value = msgpack.unpackb(payload, raw=False, strict_map_key=True)
    except (ValueError, msgpack.UnpackException, RecursionError):
        return None
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], dict):
        return value[0], value[1]
    return None


def open_for_reading(path: Path) -> BinaryIO:
    """Open a file that the user named. Raises BadInput when it is missing, a folder, unreadable or empty."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise BadInput("no such file", file=path) from None
    except IsADirectoryError:
        raise BadInput("is a folder, a file is needed", file=path, hint=_way_out(path)) from None
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", file=path) from None
    if os.fstat(file.fileno()).st_size == 0 and path.is_file():
        file.close()
        raise BadInput("the file is empty", file=path)
    return file


def _way_out(folder: Path) -> str | None:
    """What a folder that agentx made is for."""
    if (folder / "run.json").exists():
        return "it is a run: agentx report reads it, and the trace that it played may lie in it"
    if (folder / "manifest.json").exists() and any(folder.glob("*.rec")):
        return "it is a capture: agentx compile makes a trace of it"
    return None


class FrameWriter:
    """Appends frames to a new file. What was written before a failure stays readable.

    Frames leave the process with every `flush`; a killed process loses at most what came after the last one.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("wb", buffering=1 << 16)
        except OSError as error:
            raise BadInput(f"cannot be written: {error.strerror}", file=path) from None

    def write(self, kind: str, body: dict[str, Any]) -> None:
        """Append one frame. Raises WriteFailed when the disk is full or gone, BadInput when the value does not fit."""
        self.write_bytes(encode(kind, body))

    def write_bytes(self, frames: bytes) -> None:
        """Append frames that `encode` made."""
        try:
            self._file.write(frames)
        except OSError as error:
            raise WriteFailed(self.path, error) from None

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError as error:
            raise WriteFailed(self.path, error) from None

    def close(self) -> None:
        try:
            self._file.close()
        except OSError as error:
            raise WriteFailed(self.path, error) from None


class WriteFailed(AgentxError):
    """A record could not be written: the work must stop rather than go on unrecorded."""

    def __init__(self, path: Path, error: OSError) -> None:
        what = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else f"{error.strerror}"
        super().__init__(f"{path}: writing failed: {what}; what was written before is readable")
