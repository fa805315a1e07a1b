"""What slow turns waited for: hand-made runs with the sums in comments."""

from __future__ import annotations

from pathlib import Path

import pytest
from making import header, linear

from agentx.core import Cached
from agentx.replayer.simulate import simulate
from agentx.reporter.blame import Blame, blame
from agentx.reporter.blame_text import blame_blocks, blame_document, clock, sentence
from agentx.reporter.losses import Losses
from agentx.reporter.losses_graves import Grave
from agentx.reporter.reporting import report
from agentx.trace import TraceWriter

NONE = Losses(missing="not asked")


def one(attempt, session, turn, sent, first, isl, cached, **more):
    return attempt(
        session, turn, sent=sent, chunks=[(first - sent, 1), (first - sent + 1, 1)], prompt=isl,
        cached=Cached(total=cached), **more,
    )  # fmt: skip


def parts(found: Blame, at: int = 0):
    turn = found.turns[at]
    return [(part.kind, round(part.seconds, 6), part.attempt and part.attempt.session) for part in turn.parts]


def test_a_wait_behind_others_and_its_own(run, attempt) -> None:
    """Sent at 0; b's first token at 148, c's little one at 150, its own at 203."""
    attempts = [
        one(attempt, "a", 0, 0.0, 203.0, 60_000, 0),
        one(attempt, "b", 4, -5.0, 148.0, 320_000, 8_000),
        one(attempt, "c", 1, 140.0, 150.0, 9_000, 8_990),  # ten tokens: it ended no wait
    ]
    found = blame(run(attempts), NONE, over=200.0)
    assert found.slow == 1
    assert parts(found) == [("behind", 148.0, "b"), ("own", 55.0, "a")]
    assert sentence(found.turns[0], clock(None)) == (
        "session a turn 0: 203 s = 148 s behind session b turn 4 (312,000 tokens computed) + "
        "55 s own (60,000 tokens computed)"
    )


def test_a_queue_that_the_server_tells(run, attempt) -> None:
    """In the queue until 30: behind b until 20, then waiting for room; 10 of its own."""
    attempts = [
        one(attempt, "a", 0, 0.0, 40.0, 50_000, 0, queue_seconds=30.0),
        one(attempt, "b", 0, 0.0, 20.0, 50_000, 0, queue_seconds=0.0),
        one(attempt, "c", 0, 0.0, 35.0, 50_000, 0, queue_seconds=0.0),  # while it was read itself: no wait of its own
    ]
    found = blame(run(attempts), NONE, over=36.0)
    assert parts(found) == [("behind", 20.0, "b"), ("waiting", 10.0, None), ("own", 10.0, "a")]
    assert "10 s waiting in the queue" in sentence(found.turns[0], clock(None))


def test_what_ends_together_shares_the_wait(run, attempt) -> None:
    """b and c got their tokens at once: 30 s by 20,000 and 10,000 tokens."""
    attempts = [
        one(attempt, "a", 0, 0.0, 40.0, 10_000, 0),
        one(attempt, "b", 0, 0.0, 30.0, 20_000, 0),
        one(attempt, "c", 0, 0.0, 30.0, 10_000, 0),
    ]
    found = blame(run(attempts), NONE, over=35.0)
    assert sorted(parts(found)) == [("behind", 10.0, "c"), ("behind", 20.0, "b"), ("own", 10.0, "a")]


def test_parts_sum_to_the_wait_and_say_what_was_evicted(tmp_path: Path) -> None:
    """A run in a small pool: every slow turn's parts sum to its wait, and some name what was evicted for whom."""
    with TraceWriter(tmp_path / "a.trace", header("agents")) as file:
        for name in "abcde":
            file.session(linear(8, id=name, fresh=700))
    sets = ["load.sessions=5", "target.cache.pool=14000", "gaps.scale=0.01"]
    found = report(simulate(tmp_path / "a.trace", out=tmp_path / "run", sets=sets))
    assert found.blame.slow >= 1
    for turn in found.blame.turns:
        assert sum(part.seconds for part in turn.parts) == pytest.approx(turn.ttft)
        assert turn.ttft >= (found.blame.over or 0)
    lost = [each for turn in found.blame.turns for part in turn.parts for each in part.lost]
    assert lost
    assert all(each.cause == "evicted" for each in lost)
    shown = blame_document(found.blame)
    assert shown["slow_turns"] == found.blame.slow
    named = shown["turns"][0]["parts"][-1]
    assert (named["kind"], named["session"]) == ("own", found.blame.turns[0].attempt.session)
    assert "The slowest turns" in found.text()


def test_nothing_to_blame(run, attempt) -> None:
    """No turn got a token, or none told its tokens: no crash, and nothing invented."""
    assert blame(run([]), NONE) == Blame()
    assert blame_blocks(Blame(), None) == []
    silent = attempt("a", 0, sent=0.0, chunks=[(2.0, 1)], prompt=None)
    found = blame(run([silent]), NONE)
    assert parts(found) == [("own", 2.0, "a")]
    assert found.turns[0].parts[0].computed is None
    assert "unknown tokens computed" in sentence(found.turns[0], clock(None))


def test_the_time_of_day() -> None:
    assert clock("2026-11-30T14:00:00Z")(183.0) == "14:03:03"
    assert clock(None)(1843.04) == "1,843.0 s"
    assert Grave("evicted", 5, 1.0, 0).cause == "evicted"
