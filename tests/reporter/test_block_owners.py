"""Whose blocks left, by prompts and events made by hand: pages of two tokens."""

from __future__ import annotations

import numpy as np
import pytest

from agentx.kv_events import KvBatch, Removed, Stored
from agentx.reporter.block_owners import NOBODY, SHARED, owners_of, removals
from agentx.reporter.block_removers import Prompt, Removers
from agentx.reporter.evictions import evictions_blocks, evictions_document, evictions_of
from agentx.reporter.stored_blocks import blocks_of, places, root_place
from agentx.reporter.table import as_text

A, B = (1, 2, 3, 4), (1, 2, 7, 8)  # two prompts of which the first page is one
BATCHES = [
    (1.0, [Stored((1, 2), None, A, 2, "device")]),  # a's prompt
    (
        2.0,
        [Stored((3,), 2, (5, 6), 2, "device"), Stored((8, 9), None, (50, 51, 52, 53), 2, "device")],
    ),  # its reply; else
    (11.0, [Removed((3, 9), "device"), Stored((4,), 1, (7, 8), 2, "device")]),  # b's prompt, in one message
    (20.0, [Removed((4,), "device")]),  # nothing is stored then; c is under way
    (21.0, [Removed((2, 1), "device")]),
]


@pytest.fixture
def made(attempt):
    """a's prompt is read from 0 to 1, b's from 10 to 11; c decodes from 15 to 25 and was not told of."""
    batches = (KvBatch(at, 0, seq, None, 0, tuple(events), 0) for seq, (at, events) in enumerate(BATCHES))
    (blocks,) = blocks_of(batches, 0.0).values()

    def prompt(name, ids, sent, **times):
        where = places(np.array(ids, dtype=np.uint32), 2, root_place(""))
        return Prompt(attempt(name, 0, sent=sent, **times), where, blocks)

    return [
        prompt("a", A, 0.0),
        prompt("b", B, 10.0),
        prompt("c", (70, 71), 15.0, chunks=[(1.0, 1), (10.0, 1)]),
    ]


def test_owners_by_prompts_and_replies(made) -> None:
    blocks = made[0].blocks
    owners = owners_of(blocks, made)
    of = dict(zip(blocks.rows.place.tolist(), owners.of[owners.index].tolist(), strict=True))
    a, b = (one.where.tolist() for one in made[:2])
    reply = places(np.array([5, 6], dtype=np.uint32), 2, a[1], start=4)[0]
    stranger = places(np.array([50, 51, 52, 53], dtype=np.uint32), 2, root_place("")).tolist()
    assert [of[place] for place in (a[0], a[1], b[1], int(reply))] == [SHARED, 0, 1, 0]
    assert [of[place] for place in stranger] == [NOBODY, NOBODY]
    assert owners.plays == [("a", 0), ("b", 0), ("c", 0)]


def test_what_left_whose_it_was_and_for_whom(made) -> None:
    found = sorted(removals(made), key=lambda one: (one.at, str(one.owner)))
    assert [(one.owner, one.shared, one.tokens, one.at, one.by) for one in found] == [
        (("a", 0), False, 2, 11.0, 1),  # the reply, for b, whose prompt the same message stores
        (None, False, 2, 11.0, 1),  # of nobody in this run
        (("b", 0), False, 2, 20.0, 2),  # for c, which is under way
        (("a", 0), False, 2, 21.0, 2),
        (None, True, 2, 21.0, 2),
    ]


def test_the_table_of_evictions(made, run, tmp_path) -> None:
    (tmp_path / "kv-events.agx").touch()
    found = evictions_of(run([one.attempt for one in made], folder=tmp_path), made)
    assert found.exact
    rows = evictions_document(found)["rows"]
    assert sum(row["tokens"] for row in rows) == 10
    assert [row["owner"] for row in rows if row["shared"]] == [None]
    text = as_text(evictions_blocks(found))
    assert "several" in text
    assert "whose they were by the prompts" in " ".join(text.split())


def test_a_request_does_not_make_room_against_itself(made) -> None:
    """Of what b lost with event 3, which its own message tells: the next request that was under way."""
    removers = Removers(made[0].blocks, made)
    assert removers.of(3) == 1
    assert removers.of(3, but=1) is None  # a had ended long before
