"""A capture: a private folder (0700) of segments, a manifest and a lock, written by one recorder at a time.

    manifest.json     what this is, which key it goes with, and the counters of each recorder that wrote to it
    LOCK              held (flock) while a recorder runs; says who holds it
    seg-000001.rec …  frames; see `writer.py` for what they hold

It holds content: prompts and replies. It is never shared; `agentx compile` makes from it what can be.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentx.errors import BadInput
from agentx.recorder.keys import CaptureKey, key_path, make_key, read_key
from agentx.recorder.segments import VERSION

FORMAT = "agentx capture"
MANIFEST, LOCK = "manifest.json", "LOCK"
PART = f"{MANIFEST}.part"  # the next manifest; while a recorder runs, room for it
ROOM = 4096  # bytes that a run's counters may need


@dataclass(slots=True)
class Capture:
    """An open capture folder. `run` counts the recorders that wrote to it, from 1.

    `lock_fd` holds the lock; a child process that inherits it holds the lock too.
    """

    folder: Path
    manifest: dict[str, Any]
    key: CaptureKey
    lock_fd: int

    @property
    def id(self) -> str:
        return str(self.manifest["id"])

    @property
    def run(self) -> int:
        return len(self.manifest["runs"])

    def note_run(self, values: Mapping[str, Any]) -> None:
        """Add to what the manifest says of this run, and write it. Raises OSError."""
        self.manifest["runs"][-1].update(values)
        write_manifest(self.folder, self.manifest)


@contextmanager
def recording(folder: Path, about: Mapping[str, Any], key_file: Path | None = None) -> Iterator[Capture]:
    """Make or reopen a capture and hold its lock. `about` goes into the manifest's entry of this run.

    Raises BadInput for a folder that is no capture, that another recorder writes to, or that cannot be written.
    """
    _make_folder(folder)
    with _lock(folder) as lock:
        manifest = read_manifest(folder) if (folder / MANIFEST).exists() else None
        if manifest is None:
            _refuse_foreign(folder)
            id = os.urandom(8).hex()
            key = make_key(key_file or key_path(id))
            manifest = {"format": FORMAT, "version": VERSION, "id": id, "key": key.fingerprint, "runs": []}
        else:
            key = read_key(key_file or key_path(manifest["id"]), manifest["key"])
        manifest["runs"].append(dict(about))
        try:
            write_manifest(folder, manifest)
            _keep_room(folder)
        except OSError as error:
            raise BadInput(f"the capture cannot be written: {error.strerror}", file=folder) from None
        yield Capture(folder, manifest, key, lock)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chmod(folder, 0o700)
    except FileExistsError:
        raise BadInput("is a file, a folder is needed for a capture", file=folder) from None
    except OSError as error:
        raise BadInput(f"the capture's folder cannot be used: {error.strerror}", file=folder) from None


def _refuse_foreign(folder: Path) -> None:
    if any(path.name != LOCK for path in folder.iterdir()):
        raise BadInput("the folder holds other files and no capture", file=folder, hint="-o names an empty or new one")


@contextmanager
def _lock(folder: Path) -> Iterator[int]:
    path = folder / LOCK
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise BadInput(f"the capture cannot be written: {error.strerror}", file=path) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 200).decode("utf-8", "replace").strip() or "an unknown process"
            message = f"another recorder writes to this capture: {holder}"
            raise BadInput(message, file=folder, hint="-o names another folder") from None
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        yield handle
    finally:
        os.close(handle)  # gives the lock up; the file stays, because another one may be waiting at it


def read_manifest(folder: Path) -> dict[str, Any]:
    """A capture's manifest. Raises BadInput for what is not a capture, or one of a newer version."""
    path = folder / MANIFEST
    hint = "a capture is the folder that 'agentx record -o' wrote"
    try:
        value = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        there = "this is not a capture: it has no manifest.json" if folder.exists() else "no such folder"
        raise BadInput(there, file=folder, hint=hint) from None
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", file=path) from None
    except (ValueError, RecursionError):
        raise BadInput("the manifest is damaged: it is not JSON", file=path) from None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise BadInput("this is not the manifest of a capture", file=path, hint=hint)
    version = value.get("version")
    if not isinstance(version, int) or version > VERSION:
        message = f"capture version {version} is newer than {VERSION}, which this agentx reads"
        raise BadInput(message, file=path, hint="upgrade agentx")
    if not all(isinstance(value.get(name), str) for name in ("id", "key")) or not isinstance(value.get("runs"), list):
        raise BadInput("the manifest is damaged: a field is missing", file=path)
    return value


def _keep_room(folder: Path) -> None:
    """Take the space of the next manifest now, so that the counters find some on a full disk. Best effort."""
    with suppress(OSError), os.fdopen(os.open(folder / PART, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
        file.write(b" " * ((folder / MANIFEST).stat().st_size + ROOM))


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Replace the manifest as a whole: a reader sees the old or the new one. Raises OSError."""
    path, part = folder / MANIFEST, folder / PART
    text = json.dumps(manifest, indent=2, sort_keys=True) + "\n"
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:  # into the room that is kept for it
        file.write(text.encode())
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
