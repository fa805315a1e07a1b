"""Files that another file names: only those that lie in the same folder, under plain names, are read."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from agentx.recorder.imports.logged import MAX_DOCUMENT


def named_file(folder: Path, name: Any) -> Path | None:
    """The file of this relative name in `folder`; None for no name, one that leads outside, or no plain file."""
    if not isinstance(name, str) or not name or "\\" in name or "\0" in name or len(name) > 1000:
        return None
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts:
        return None
    path = folder.joinpath(*parts)
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):
        return None
    return path if inside and path.is_file() else None


def named_bytes(folder: Path, name: Any) -> bytes | None:
    """Its bytes; None where there is none, or more than a document may have."""
    path = named_file(folder, name)
    if path is None or path.stat().st_size > MAX_DOCUMENT:
        return None
    return path.read_bytes()
