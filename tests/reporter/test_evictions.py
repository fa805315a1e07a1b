"""Evictions by KV events: whose blocks left and for whom, from hand-made events beside hand-made requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgpack
import pytest

from agentx.frames import FrameWriter
from agentx.kv_events import KV_EVENTS, VERSION
from agentx.reporter.evictions import evictions_blocks, evictions_document, evictions_of
from agentx.reporter.reporting import report
from agentx.reporter.table import as_text


def stored(blocks: list[int], medium: str = "GPU", size: int = 16) -> dict[str, Any]:
    ids = list(range(size * len(blocks)))
    head = {"type": "BlockStored", "block_hashes": blocks, "parent_block_hash": None, "token_ids": ids}
    return {**head, "block_size": size, "lora_id": None, "medium": medium}


def removed(blocks: list[int], medium: str = "GPU") -> dict[str, Any]:
    return {"type": "BlockRemoved", "block_hashes": blocks, "medium": medium}


def recorded(folder: Path, *batches: tuple[float, list[dict[str, Any]]]) -> None:
    folder.mkdir(exist_ok=True)
    file = FrameWriter(folder / KV_EVENTS)
    file.write("kv-events", {"version": VERSION, "addresses": ["tcp://x"]})
    for seq, (at, events) in enumerate(batches):
        file.write("batch", {"at": at, "publisher": 0, "seq": seq, "payload": msgpack.packb([0.0, events, 0])})
    file.close()


@pytest.fixture
def made(run, attempt, tmp_path: Path):
    """a's prompt is read until 1 and its reply ends at 2; b's is read from 10 to 14."""
    attempts = [
        attempt("a", 0, sent=0.0, chunks=[(1.0, 1), (2.0, 1)]),
        attempt("b", 0, sent=10.0, chunks=[(4.0, 1), (6.0, 1)]),
    ]
    return run(attempts, folder=tmp_path / "run")


def test_whose_and_for_whom(made) -> None:
    recorded(
        made.folder,
        (1.0, [stored([1, 2, 3])]),  # a's prompt
        (2.1, [stored([4])]),  # its reply
        (11.0, [removed([3, 4])]),  # while b's prompt was read
        (12.0, [removed([2]), stored([9])]),  # 9 is b's: its first token is nearest, at 14
        (15.0, [removed([9])]),  # while b was decoding
    )
    found = evictions_of(made)
    assert found is not None
    assert [(one.owner, one.by, one.tier, one.tokens, one.first, one.last) for one in found.rows] == [
        (("a", 0), ("b", 0), "device", 48, 11.0, 12.0),
        (("b", 0), ("b", 0), "device", 16, 15.0, 15.0),
    ]
    text = as_text(evictions_blocks(found))
    assert "inferred" in text
    assert evictions_document(found)["rows"][0]["owner"] == {"session": "a", "play": 0}


def test_what_is_not_known_is_said(made) -> None:
    """A block that nobody is near to, one that was never stored, and tiers apart."""
    recorded(
        made.folder,
        (7.0, [stored([1])]),  # three seconds and more from any moment
        (7.5, [stored([1], "CPU_PINNED")]),
        (8.0, [removed([1, 77])]),  # nothing was in flight
        (9.0, [{"type": "AllBlocksCleared"}]),
        (11.0, [removed([1], "CPU_PINNED")]),  # it was cleared before
    )
    found = evictions_of(made)
    assert found is not None
    assert [(one.owner, one.by, one.tier) for one in found.rows] == [(None, None, "device")]
    assert found.unknown_blocks == 2


def test_the_report_has_them_where_they_were_recorded(made, tmp_path: Path) -> None:
    assert report(made).document()["evictions"] is None
    recorded(made.folder, (1.0, [stored([1])]), (11.0, [removed([1])]))
    found = report(made)
    assert found.document()["evictions"]["rows"][0]["tokens"] == 16
    assert "Evictions, measured" in found.text()


def test_a_recording_that_is_none(made) -> None:
    made.folder.mkdir()
    (made.folder / KV_EVENTS).write_bytes(b"nonsense")
    found = evictions_of(made)
    assert found is not None
    assert found.broken is not None
    assert evictions_blocks(found) == []
