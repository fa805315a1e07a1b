"""A recording of KV events read back: both encodings, gaps, tiers, and sums."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.errors import BadInput
from agentx.frames import FrameWriter
from agentx.kv_events import KV_EVENTS, Cleared, KvBatch, Removed, Stored, _payload, read_kv_events, summarise


def stored(blocks: list[int], tokens: int, *, medium: str | None = "GPU", block: int = 4) -> dict[str, Any]:
    told = {"type": "BlockStored", "block_hashes": blocks, "parent_block_hash": None, "token_ids": list(range(tokens))}
    return {**told, "block_size": block, "lora_id": None} | ({} if medium is None else {"medium": medium})


def removed(blocks: list[int], medium: str | None = "GPU") -> dict[str, Any]:
    return {"type": "BlockRemoved", "block_hashes": blocks} | ({} if medium is None else {"medium": medium})


def recording(folder: Path, *batches: tuple[float, int, int, list[Any]]) -> list[KvBatch]:
    """(at, publisher, seq, events) of each message."""
    with contextlib.closing(FrameWriter(folder / KV_EVENTS)) as file:
        file.write("kv-events", {"version": 1, "addresses": ["tcp://127.0.0.1:1"]})
        for at, publisher, seq, events in batches:
            payload = msgpack.packb([1.5e9 + at, events, publisher])
            file.write("batch", {"at": at, "publisher": publisher, "seq": seq, "payload": payload})
    return list(read_kv_events(folder))


def test_events_are_read_with_their_tiers(tmp_path: Path) -> None:
    (batch,) = recording(
        tmp_path, (2.0, 0, 7, [stored([1, 2], 8), removed([1], "CPU_PINNED"), {"type": "AllBlocksCleared"}])
    )
    assert (batch.at, batch.seq, batch.told, batch.rank, batch.lost, batch.unread) == (2.0, 7, 1.5e9 + 2, 0, 0, 0)
    assert batch.events == (Stored((1, 2), None, tuple(range(8)), 4, "device"), Removed((1,), "host"), Cleared())


@pytest.mark.parametrize(
    ("event", "read"),
    [
        (["BlockStored", [b"\x01"], b"\x00", [5, 6], 2, None, "GPU"], Stored((b"\x01",), b"\x00", (5, 6), 2, "device")),
        (["BlockRemoved", [9]], Removed((9,), "unknown")),  # which tier is not told
        (["AllBlocksCleared"], Cleared()),
        (stored([1], 4, medium="DISK"), Stored((1,), None, (0, 1, 2, 3), 4, "storage")),
        (stored([1], 4, medium="TAPE"), Stored((1,), None, (0, 1, 2, 3), 4, "TAPE")),
        ({**stored([1], 2), "token_ids": [[4, 5], [5, 6]]}, Stored((1,), None, (4, 5), 4, "device", 6)),  # bigrams
        ({**stored([1], 2), "token_ids": [4, [5, 6]]}, None),
        ({**stored([1], 4), "cache_salt": "x"}, Stored((1,), None, (0, 1, 2, 3), 4, "device", None, "x")),
        ({"type": "LoadReport", "running": 3}, None),  # of a kind that is not known
        ({"type": "BlockStored", "block_hashes": 7}, None),
        ([], None),
        (7, None),
    ],
)
def test_both_encodings(tmp_path: Path, event: object, read: object) -> None:
    (batch,) = recording(tmp_path, (0.0, 0, 0, [event]))
    assert (batch.events, batch.unread) == (((read,), 0) if read else ((), 1))


def test_numbers_that_are_missing_are_counted(tmp_path: Path) -> None:
    """By publisher; one that begins anew has lost nothing."""
    batches = recording(
        tmp_path, *[(0.0, *each, []) for each in [(0, 5), (1, 90), (0, 6), (0, 9), (1, 91), (0, 0), (0, 2)]]
    )
    assert [batch.lost for batch in batches] == [0, 0, 0, 2, 0, 0, 1]


def test_sums(tmp_path: Path) -> None:
    batches = recording(
        tmp_path,
        (0.0, 0, 0, [stored([1, 2], 8)]),  # before the window: its sizes are known all the same
        (1.0, 0, 1, [stored([3], 3), stored([1, 2], 8, medium="CPU_PINNED")]),
        (2.0, 0, 2, [removed([1, 3]), removed([77])]),
        (3.0, 0, 4, [{"type": "AllBlocksCleared"}, removed([2])]),
    )
    found = summarise(iter(batches), (0.5, 9.0))
    assert (found.batches, found.lost_batches, found.cleared) == (3, 1, 1)
    assert (dict(found.stored), dict(found.removed)) == ({"device": 3, "host": 8}, {"device": 7})
    assert found.removed_unknown == 2  # 77 was there before, 2 went with all others
    assert summarise(iter(batches)).stored["device"] == 11


@given(st.binary(max_size=60))
def test_any_payload_is_read_without_a_crash(payload: bytes) -> None:
    _, events, _, unread = _payload(payload)
    assert len(events) >= 0 <= unread


def test_no_recording_is_nothing_and_another_file_is_refused(tmp_path: Path) -> None:
    assert list(read_kv_events(tmp_path)) == []
    with contextlib.closing(FrameWriter(tmp_path / KV_EVENTS)) as file:
        file.write("kv-events", {"version": 99})
    with pytest.raises(BadInput, match="not KV events of version 1"):
        list(read_kv_events(tmp_path))
