"""Segments roll, sync when they must, and lose no more than the group whose write failed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from agentx.errors import BadInput
from agentx.frames import FrameReader, encode
from agentx.recorder import segments as module
from agentx.recorder.segments import VERSION, Segments, first_frame_problem, segment_files


def names(path: Path) -> list[str]:
    reader = FrameReader(path)
    found = [kind for kind, _ in reader]
    assert reader.tear is None
    return found


def test_a_full_segment_is_followed_by_a_new_one(tmp_path: Path) -> None:
    segments = Segments(tmp_path, {"run": 1}, "none", roll=100)
    for _ in range(4):
        segments.append(encode("x", {"data": b"." * 60}))
    segments.close()
    files = segment_files(tmp_path)
    assert [path.name for path in files] == ["seg-000001.rec", "seg-000002.rec", "seg-000003.rec", "seg-000004.rec"]
    assert all(names(path) == ["capture", "x"] for path in files)
    assert files[0].stat().st_mode & 0o777 == 0o600


def test_an_earlier_run_is_never_appended_to(tmp_path: Path) -> None:
    for run in (1, 2):
        segments = Segments(tmp_path, {"run": run}, "none")
        segments.append(encode("x", {}))
        segments.close()
    assert [next(iter(FrameReader(path)))[1]["run"] for path in segment_files(tmp_path)] == [1, 2]


@pytest.mark.parametrize("close", [False, True])
def test_a_file_that_was_removed_is_a_failure(tmp_path: Path, close: bool) -> None:
    """Writing into it would go well, and keep nothing."""
    segments = Segments(tmp_path, {}, "none")
    segments.append(encode("gone", {}))
    (tmp_path / "seg-000001.rec").unlink()
    with pytest.raises(OSError, match="removed"):
        segments.close() if close else segments.append(encode("lost", {}))
    segments.append(encode("later", {}))
    segments.close()
    assert [names(path) for path in segment_files(tmp_path)] == [["capture", "later"]]


@pytest.mark.parametrize("written", [0, 5])
def test_a_failed_write_is_cut_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int) -> None:
    """The disk fills half-way through a frame: what was there before stays whole, and the next write goes on."""
    segments = Segments(tmp_path, {}, "none")
    segments.append(encode("good", {}))
    real, left = os.write, [written]

    def full(file: int, data: memoryview) -> int:
        if left[0] == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        left[0] = 0
        return real(file, data[:written])

    with monkeypatch.context() as patch:
        patch.setattr(module, "_put", full)
        with pytest.raises(OSError, match="No space"):
            segments.append(encode("lost", {}))
    segments.append(encode("later", {}))
    segments.close()
    (path,) = segment_files(tmp_path)
    assert names(path) == ["capture", "good", "later"]


def test_a_disk_that_is_full_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segments = Segments(tmp_path, {}, "always")

    def full(file: int, data: memoryview) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module, "_put", full)
        for _ in range(2):
            with pytest.raises(OSError, match="No space"):
                segments.append(encode("lost", {}))
    segments.append(encode("later", {}))
    segments.close()
    assert names(segment_files(tmp_path)[-1]) == ["capture", "later"]


@pytest.mark.parametrize(("durability", "syncs"), [("always", 3), ("second", 1), ("none", 0)])
def test_how_often_the_disk_is_forced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: module.Durability, syncs: int
) -> None:
    calls: list[int] = []
    now = [0.0]
    monkeypatch.setattr(module.os, "fsync", calls.append)
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    segments = Segments(tmp_path, {}, durability)
    for _ in range(3):  # three groups within a second, then one look a second later
        segments.append(encode("x", {}))
        segments.tick()
        now[0] += 0.3
    now[0] += 1.0
    segments.tick()
    assert len(calls) == syncs
    segments.close()


@pytest.mark.parametrize(("body", "says"), [({"version": VERSION + 1}, "newer"), ({}, "not a segment")])
def test_what_is_not_read(tmp_path: Path, body: dict[str, object], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        first_frame_problem(body, tmp_path)
