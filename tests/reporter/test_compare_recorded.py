"""A trace beside a replay of it: lengths turn by turn, possible reuse, cached tokens, the chat template."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from making import header, linear

from agentx.core import Cached, Observed, Output, Session, Turn
from agentx.errors import BadInput, InvalidMeasurement
from agentx.replayer.simulate import simulate
from agentx.reporter.compare_recorded import Recorded, compare_recorded
from agentx.results import RunResults, read_results
from agentx.trace import TraceWriter

# The engine's template: a token for the system message, the user's, and two more messages a turn; one asks for a reply.
FRAMES = (3, 5, 7)
CACHED = (0, 70, 86)  # what the recorded server says that it found: of 78, 95 and 112 prompt tokens


def recorded(session: Session, change: Callable[[Turn], Turn] = lambda turn: turn) -> Session:
    """The session with the embedded engine's own template in its recorded lengths, and with what was observed."""
    turns = [
        replace(
            turn,
            isl=turn.isl + FRAMES[turn.index],
            observed=Observed(turn.index * 2.0, 0.25, turn.index * 2.0 + 1.5, CACHED[turn.index], "200"),
        )
        for turn in session.turns
    ]
    return replace(session, turns=tuple(change(turn) for turn in turns))


def played(folder: Path, *sessions: Session, sets: tuple[str, ...] = ()) -> tuple[Path, RunResults]:
    """A trace of the sessions, and what a simulation of it left."""
    with TraceWriter(folder / "a.trace", header("agents")) as writer:
        for session in sessions:
            writer.session(session)
    simulate(folder / "a.trace", out=folder / "run", sets=list(sets))
    return folder / "a.trace", read_results(folder / "run")


def test_a_replay_that_is_as_recorded(tmp_path: Path) -> None:
    found = compare_recorded(*played(tmp_path, recorded(linear(3))))
    assert found.reasons == ()
    found.check()
    assert (found.turns, found.answered) == (3, 3)
    # 65 leading tokens and a user's 10; 15 more a turn; the template's: 78 + 95 + 112.
    assert (found.prompts.recorded, found.prompts.replayed, found.prompts.same) == (285, 285, 3)
    assert (found.replies.recorded, found.replies.replayed, found.replies.same) == (15, 15, 3)
    # A later prompt begins with the prompt before it (75, 90); replies count as computed, so 80 and 95 are possible.
    assert found.possible_tokens == (175, 175)
    assert found.cached.recorded == 156
    assert found.cached.told == 3
    assert found.times["ttft_p50_seconds"][0] == 0.25
    assert found.times["latency_p50_seconds"][0] == 1.5
    text = found.text()
    assert "as recorded  yes: lengths and possible reuse are the recorded ones, turn by turn" in text
    assert found.document()["as_recorded"] is True
    assert "Lengths that differ" not in text


def test_tokens_of_the_template_that_are_sent_twice(tmp_path: Path) -> None:
    """A trace whose parts hold the template's tokens: every prompt of its replay is longer, by what the hint says."""
    found = compare_recorded(*played(tmp_path, linear(3)))
    assert found.reasons == ("3 of 3 prompts have another length",)
    assert [(one.turn, one.replayed - one.recorded) for one in found.differences] == [(2, 7), (1, 5), (0, 3)]
    assert "compile again with --template 1+1" in " ".join(found.text().split())
    assert found.document()["template"] == {"per_message": 1, "start": 1}
    with pytest.raises(InvalidMeasurement, match="not as recorded: 3 of 3 prompts have another length"):
        found.check()
    assert (found.cached.told, found.document()["cached_tokens"]["recorded"]) == (0, None)  # nothing was observed


def _shorter(run: RunResults, **change: object) -> RunResults:
    first, *rest = sorted(run.attempts, key=lambda attempt: attempt.turn)
    return replace(run, attempts=(replace(first, **change), *rest))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"completion_tokens": 4}, "1 of 3 replies have another length"),
        ({"prompt_tokens": 77}, "1 of 3 prompts have another length"),
    ],
)
def test_one_turn_that_differs_is_named(tmp_path: Path, change: dict[str, int], reason: str) -> None:
    trace, run = played(tmp_path, recorded(linear(3)))
    found = compare_recorded(trace, _shorter(run, **change))
    assert found.reasons == (reason,)
    assert found.text().count("session s turn 0:") == 1
    assert found.template is None  # shorter prompts are no template's


def test_cached_tokens_are_the_same_within_one(tmp_path: Path) -> None:
    trace, run = played(tmp_path, recorded(linear(3)))
    attempts = sorted(run.attempts, key=lambda attempt: attempt.turn)
    near = [
        replace(attempt, cached=Cached(tokens))
        for attempt, tokens in zip(attempts, (0, CACHED[1] - 1, CACHED[2] - 2), strict=True)
    ]
    found = compare_recorded(trace, replace(run, attempts=tuple(near)))
    assert (found.cached.same, found.cached.largest) == (2, -2)
    assert found.reasons == ()  # they are the server's, and no reason
    assert "its KV is never reused" in " ".join(found.text().split())


def test_turns_that_were_not_answered(tmp_path: Path) -> None:
    trace, run = played(tmp_path, recorded(linear(3)))
    found = compare_recorded(trace, replace(run, attempts=run.attempts[:2]))
    assert found.reasons == ("1 of 3 turns were not answered",)


def test_a_server_that_tells_nothing(tmp_path: Path) -> None:
    trace, run = played(tmp_path, recorded(linear(3)))
    silent = [
        replace(attempt, prompt_tokens=None, completion_tokens=None, cached=None, chunks=()) for attempt in run.attempts
    ]
    found: Recorded = compare_recorded(trace, replace(run, attempts=tuple(silent)))
    assert found.reasons == ("the server told no length of prompts", "the server told no length of replies")
    assert found.document()["reply_tokens"]["replayed"] is None


def test_another_trace_is_refused(tmp_path: Path) -> None:
    _, run = played(tmp_path, recorded(linear(3)))
    longer = recorded(linear(3), lambda turn: replace(turn, output=Output(6)))
    with TraceWriter(tmp_path / "b.trace", header("agents")) as writer:
        writer.session(longer)
    with pytest.raises(BadInput, match="this is not the trace that"):
        compare_recorded(tmp_path / "b.trace", run)


def test_a_run_that_does_not_say_which_trace_and_played_another(tmp_path: Path) -> None:
    _, run = played(tmp_path, recorded(linear(3)))
    with TraceWriter(tmp_path / "b.trace", header("agents")) as writer:
        writer.session(linear(2))
    settings = {**run.settings, "trace": {}}
    with pytest.raises(BadInput, match="session 's' turn 2 of the run is not in this trace"):
        compare_recorded(tmp_path / "b.trace", replace(run, settings=settings))


def test_every_key_is_documented(tmp_path: Path) -> None:
    reference = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
    section = reference.read_text().split("### A trace beside its replay")[1].split("\n## ")[0]
    found = compare_recorded(*played(tmp_path, linear(3))).document()
    assert [key for key in found if key != "schema" and f"`{key}`" not in section] == []
    assert found["schema"] in section
