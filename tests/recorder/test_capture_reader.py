"""What a reader refuses, and what it takes note of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentx.errors import BadInput
from agentx.frames import encode
from agentx.recorder.capture_reader import CaptureReader, Chunk

OPEN: dict[str, Any] = {
    "x": 1, "at": 1000, "method": "POST", "path": "/v1/messages", "query": [], "wire": "messages", "headers": [],
    "ids": [], "credential": None, "connection": 0,
}  # fmt: skip
HEAD = ("capture", {"version": 1, "segment": 1, "run": 1})
END: dict[str, Any] = {"x": 1, "at": 9000, "cause": "done", "detail": "", "lost": ""}


def capture(folder: Path, *frames: tuple[str, dict[str, Any]], number: int = 1) -> CaptureReader:
    manifest = {"format": "agentx capture", "version": 1, "id": "a", "key": "b", "runs": []}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / f"seg-{number:06d}.rec").write_bytes(b"".join(encode(kind, body) for kind, body in frames))
    return CaptureReader(folder)


def test_times_are_on_the_wall_clock_of_the_first_anchor(tmp_path: Path) -> None:
    """Durations are the monotonic clock's: a second anchor that NTP moved changes nothing."""
    frames = [
        HEAD,
        ("clock", {"wall": 1_000_000, "mono": 0}),
        ("open", OPEN),
        ("head", {"x": 1, "at": 3000, "status": 200, "headers": []}),
        ("clock", {"wall": 9_000_000, "mono": 4000}),
        ("data", {"x": 1, "data": b"ab", "times": [2, 1, 3, 1]}),
        ("end", END),
    ]
    (exchange,) = capture(tmp_path, *frames)
    assert (exchange.opened, exchange.head, exchange.ended) == (1_001_000, 1_003_000, 1_009_000)
    assert exchange.chunks == (Chunk(1_005_000, 1), Chunk(1_006_000, 1))


def test_runs_do_not_mix(tmp_path: Path) -> None:
    """Number 1 of the second run is another exchange than number 1 of the first, which its recorder's death ended."""
    capture(tmp_path, HEAD, ("open", OPEN))
    second = ("capture", {"version": 1, "segment": 2, "run": 2})
    exchanges = list(capture(tmp_path, second, ("open", OPEN), ("end", END), number=2))
    assert [(exchange.run, exchange.cause) for exchange in exchanges] == [(1, "recorder_crash"), (2, "done")]


def test_a_run_goes_on_over_segments(tmp_path: Path) -> None:
    capture(tmp_path, HEAD, ("open", OPEN), ("part", {"id": 0, "data": b"{}"}))
    more = [("capture", {"version": 1, "segment": 2, "run": 1}), ("request", {"x": 1, "at": 1, "new": [0, 1]})]
    (exchange,) = capture(tmp_path, *more, ("end", END), number=2)
    assert exchange.body == b"{}"


def test_lost_parts_are_said(tmp_path: Path) -> None:
    frames = [HEAD, ("open", OPEN), ("request", {"x": 1, "at": 1, "new": [7, 1]}), ("end", END)]
    (exchange,) = capture(tmp_path, *frames)
    assert (exchange.body, exchange.why) == (None, "parts of the request are lost")


def test_unknown_frames_and_stray_ones(tmp_path: Path) -> None:
    reader = capture(tmp_path, HEAD, ("future", {}), ("end", END), ("open", OPEN), ("end", END))
    assert len(list(reader)) == 1
    assert reader.fragments == 2


REQUEST = ("request", {"x": 1, "at": 1, "new": [0, 1]})


@pytest.mark.parametrize(
    ("frames", "says"),
    [
        ([("open", OPEN)], "not a segment"),
        ([("capture", {"version": 2})], "newer"),
        ([HEAD, ("open", {"x": 1})], "damaged"),
        ([HEAD, ("part", {"id": 0, "z": b"no"}), ("open", OPEN), REQUEST, ("end", END)], "compressed data"),
        ([HEAD, ("open", OPEN), ("data", {"x": 1, "data": b"", "times": [1]}), ("end", END)], "damaged"),
    ],
)
def test_refusals(tmp_path: Path, frames: list[tuple[str, dict[str, Any]]], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        list(capture(tmp_path, *frames))
