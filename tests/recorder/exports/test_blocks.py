"""Numbers of blocks: equal exactly where whole prefixes are."""

from __future__ import annotations

from pathlib import Path

import pytest
from exporting import common, everything, tokens

from agentx.core import Run, Session, Stream
from agentx.recorder.exports.blocks import Numbering


@pytest.mark.parametrize("block", [1, 7, 64])
def test_prompts_share_as_many_numbers_as_whole_blocks(tmp_path: Path, block: int) -> None:
    numbering = Numbering(block)
    found: list[tuple[list, list[int]]] = []
    for session in everything(tmp_path, sessions=3):
        numbering.session(session)
        for turn in session.turns[:12]:
            ids = numbering.ids(session.runs(turn.index))
            assert len(ids) == -(-turn.isl // block)
            found.append((tokens(session, turn.index), ids))
    for one, ids in found:
        for other, others in found:
            shared = common(one, other)
            whole = shared // block if shared < max(len(one), len(other)) else len(ids)
            assert common(ids, others) == whole  # across sessions, too


def test_what_a_session_had_of_its_own_is_forgotten() -> None:
    numbering = Numbering(2)
    own = Run(Stream("f/a", "segment", 9), 0, 2, "user")
    file = Run(Stream("f", "segment", 1), 0, 2, "system")
    numbering.session(Session("a", (), scope="f"))
    assert numbering.ids([file, own, file]) == [0, 1, 2]
    assert numbering.ids([file, own, file]) == [0, 1, 2]
    numbering.session(Session("b", (), scope="f"))
    assert numbering.ids([file]) == [0]
    assert numbering.ids([file, own]) == [0, 3]  # behind own content all is a session's own


def test_a_last_block_that_is_cut_has_a_number_of_its_own_or_none() -> None:
    numbering = Numbering(4)
    stream = Stream("f", "segment", 1)
    assert numbering.ids([Run(stream, 0, 6, "user")]) == [0, 1]
    assert numbering.ids([Run(stream, 0, 8, "user")]) == [0, 2]
    assert numbering.ids([Run(stream, 0, 6, "user")], whole=True) == [0]
    assert numbering.ids([Run(stream, 4, 8, "user")], 0) == [2]  # goes on behind block 0


def test_own_numbers_begin_anew() -> None:
    numbering = Numbering(2, own=True)
    run = Run(Stream("f", "segment", 1), 0, 4, "user")
    for id in ("a", "b"):
        numbering.session(Session(id, (), scope="f"))
        assert numbering.ids([run]) == [0, 1]
