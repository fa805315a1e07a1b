"""Each fault of a recorder is found where it is, and a sound recording has none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentx.cli import growth_lint
from agentx.cli.main import main
from agentx.cli.trace_lint import Lint, lint
from agentx.core import Gap, Header, Observed, Output, Piece, Prompt, Segment, Session, Thread, Tool, Turn, TurnEvent
from agentx.trace import TraceWriter

HEADER = Header("x", "scope", provenance={"importer": "test"})
SEGMENTS = {1: Segment(1, "system", 50), **{n: Segment(n, "user", 40) for n in range(2, 40)}}


def turn(index: int, start: float, end: float, **more: Any) -> Turn:
    """A turn that goes on from the one before with forty tokens more."""
    first = (Piece(1, 0, 50), Piece(2, 0, 40))
    fields: dict[str, Any] = {
        "prompt": Prompt((Piece(index + 2, 0, 40),), index - 1, index + 1) if index else Prompt(first),
        "isl": 90 + 40 * index,
        "output": Output(7 + index),
        "after": (index - 1,) if index else (),
        "gap": Gap("tool", 0.5) if index else Gap(),
        "tools": (Tool("Bash"),) if index else (),
        "model": "m",
        "observed": Observed(start, 0.25, end, 20),
    }
    return Turn(index=index, thread=0, **{**fields, **more})


def sound(id: str = "s", turns: int = 6, step: float = 3.17, out: int = 0) -> Session:
    made = tuple(turn(n, n * step, n * step + 2.6, output=Output(7 + n + out)) for n in range(turns))
    return Session(id, made, segments=SEGMENTS, arrival=0.0)


def read(tmp_path: Path, *sessions: Session, header: Header = HEADER) -> Lint:
    with TraceWriter(tmp_path / "a.trace", header) as writer:
        for session in sessions:
            writer.session(session)
    return lint(tmp_path / "a.trace")


def rules(found: Lint) -> list[tuple[str, str]]:
    return [(finding.level, finding.rule) for finding in found.findings.values()]


def test_a_sound_recording_has_no_findings(tmp_path: Path) -> None:
    sessions = [sound(f"s{n}", out=n) for n in range(5)]
    assert rules(read(tmp_path, *sessions)) == []


def last(**more: Any) -> Session:
    """A sound session but for its last turn, which starts at 15.85 s, when the one before has ended at 15.28 s."""
    made = sound()
    return replace(made, turns=(*made.turns[:5], replace(made.turns[5], **more)))


def side(kind: str, spawned: Observed, joined: Observed | None = None, isl: int = 100) -> Session:
    """A turn that starts a subagent, the subagent's turn, and perhaps one that waits for it."""
    first = turn(0, 0.0, 2.6)
    child = Turn(1, 1, Prompt((Piece(1, 0, 50),)), 50, Output(3), (0,), Gap("spawn", 0.1), model="m", observed=spawned)
    turns = [first, child]
    if joined is not None:
        prompt = Prompt((Piece(3, 0, isl - 90),), 0, 2)
        turns.append(Turn(2, 0, prompt, isl, Output(9), (0, 1), Gap("tool", 0.1), model="m", observed=joined))
    return Session("s", tuple(turns), (Thread(0), Thread(1, 0, "subagent")), SEGMENTS)


ONE: list[tuple[str, Callable[[], Session], str]] = [
    ("note", lambda: sound(turns=12, step=3.0), "times are whole seconds: pauses are off by up to a second"),
    ("note", lambda: last(observed=Observed(14.0, 0.1, 18.1, 5)), "two calls of one thread overlap in time"),
    ("note", lambda: last(gap=Gap("human", 8 * 3600.0)), "a pause is longer than six hours"),
    (
        "note",
        lambda: last(isl=80, prompt=Prompt((Piece(1, 0, 50), Piece(9, 0, 10), Piece(10, 0, 10), Piece(11, 0, 10)))),
        "a prompt is shorter than the one before, and no event says why",
    ),
    ("note", lambda: last(model="n"), "the model changes in a thread, and no event says so"),
    (
        "error",
        lambda: last(observed=Observed(15.85, 0.1, 18.1, 500)),
        "more tokens were cached than the prompt has",
    ),
    ("error", lambda: last(observed=Observed(15.85, 4.0, 18.1, 5)), "the first token came after the end"),
    (
        "note",
        lambda: last(gap=Gap("tool", 0.6), extra={"attempts": {"count": 3, "failed": [429, 429]}}),
        "a pause holds failed attempts",
    ),
    (
        "note",
        lambda: side("spawn", Observed(1.0, 0.2, 2.0)),
        "a subagent starts before the reply that started it had ended",
    ),
    (
        "note",
        lambda: side("join", Observed(2.7, 0.2, 9.0), Observed(4.0, 0.2, 5.0)),
        "a turn starts before the subagent that it waits for had ended",
    ),
    (
        "note",
        lambda: replace(sound(), segments={n: replace(each, layer="user") for n, each in SEGMENTS.items()}),
        "tools are called, but no prompt has tools or a system text: it is not what was sent",
    ),
]


@pytest.mark.parametrize(("level", "make", "rule"), ONE)
def test_faults_of_one_session(level: str, make: Callable[[], Session], rule: str, tmp_path: Path) -> None:
    assert rules(read(tmp_path, make())) == [(level, rule)]


@pytest.mark.parametrize(
    "session",
    [
        last(model="n", event=TurnEvent("model_switch")),
        side("spawn", Observed(2.7, 0.2, 9.0), Observed(9.1, 0.2, 10.0)),
        sound(turns=5, step=3.0),  # too few to say
        last(isl=261, prompt=Prompt((Piece(7, 0, 11),), 4, 6)),  # grown by the reply alone
        last(
            isl=251, prompt=Prompt((Piece(7, 0, 40), Piece(8, 0, 1)), 4, 5)
        ),  # a piece was taken back: what else was is not known
        last(isl=251, prompt=Prompt((Piece(7, 0, 1),), 4, 6), event=TurnEvent("think_strip")),
        last(extra={"attempts": {"count": 2, "failed": [429]}}, gap=Gap("tool", 0.2)),  # apart from the pause
    ],
)
def test_what_is_no_fault(session: Session, tmp_path: Path) -> None:
    assert rules(read(tmp_path, session)) == []


GROWN: list[tuple[Callable[[], Session], str]] = [
    # the reply of turn 4 has 11 tokens
    (
        lambda: last(isl=260, prompt=Prompt((Piece(7, 0, 10),), 4, 6)),
        "1 of 5 turns, 10 tokens for 11; first in session s turn 5: 10 for 11",
    ),
    # the first reply has 7 tokens, the subagent's 3
    (
        lambda: side("join", Observed(2.7, 0.2, 9.0), Observed(9.1, 0.2, 10.0), isl=99),
        "1 of 1 turns, 9 tokens for 10; first in session s turn 2: 9 for 10",
    ),
]


@pytest.mark.parametrize(("make", "figures"), GROWN)
def test_prompts_too_short_for_their_replies(make: Callable[[], Session], figures: str, tmp_path: Path) -> None:
    (finding,) = read(tmp_path, make()).findings.values()
    assert (finding.level, finding.rule, finding.first) == ("note", growth_lint.RULE, figures)


def test_copies_of_short_sessions(tmp_path: Path) -> None:
    """Two calls of equal lengths may be an accident, with equal pauses they are a copy."""
    one = sound("a", turns=2)
    other = replace(one.turns[1], gap=Gap("tool", 0.7))
    found = read(tmp_path, one, replace(one, id="b", turns=(one.turns[0], other)), replace(one, id="c"))
    rule = "a short session has the lengths and pauses of another one: a copy"
    assert [(each.rule, each.count, each.first) for each in found.findings.values()] == [(rule, 1, "session c: a")]


def test_what_is_known_of_a_format_is_not_said_to_be_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = [{"what": "side calls are left out", "source": "its documentation"}]
    found = read(tmp_path, sound(), header=replace(HEADER, provenance={"importer": "weka", "known": known}))
    assert rules(found) == [("known", "side calls are left out")]
    assert main(["check", str(tmp_path / "a.trace")]) == 0
    assert capsys.readouterr().out.startswith("known of this format: side calls are left out (its documentation)\n")


def test_copies_resumes_and_forks(tmp_path: Path) -> None:
    """Equal files, or a resume that begins with a copy; four calls in a row may be an accident."""
    resumed = replace(sound("r", turns=8), turns=sound("r", turns=8).turns)
    found = read(tmp_path, sound("a"), sound("b", out=20), resumed, replace(sound("c", turns=4)))
    rule = "a session has 5 calls in a row like another's: a copy, a resume or a fork"
    assert [(each.rule, each.count, each.first) for each in found.findings.values()] == [(rule, 1, "session r: a")]


def test_faults_of_a_file(tmp_path: Path) -> None:
    losses = {"detected": ["t is a subagent's end"], "notes": {"request that was not streamed (type n)": 9, "x": 1},
              "dropped": {"rows": {"exact duplicate": 4}}}  # fmt: skip
    header = replace(HEADER, identity="session", provenance={"importer": "weka", "losses": losses})
    silent = [replace(each, turns=tuple(replace(t, observed=replace(t.observed, ttft=None)) for t in each.turns
                                        if t.observed is not None))
              for each in (sound("a"), sound("b", out=9))]  # fmt: skip
    assert [rule for _, rule in rules(read(tmp_path, *silent, header=header))] == [
        "the time to the first token is known for few turns",
        "identities end with their session: what sessions share cannot be replayed",
        "detected when it was made: t is a subagent's end",
        "noted when it was made: request that was not streamed (type n)",
        "dropped when it was made: exact duplicate",
    ]


def test_one_tenant(tmp_path: Path) -> None:
    """Ten sessions that begin with one shared system text."""
    shared = {1: SEGMENTS[1]}
    own = {n: each for n, each in SEGMENTS.items() if n != 1}
    sessions = [replace(sound(f"s{n}", out=n), segments=own, shared=shared) for n in range(10)]
    assert rules(read(tmp_path, *sessions)) == [("note", "all sessions begin with the same content: one tenant")]
    first = replace(sessions[9].turns[0], prompt=Prompt((Piece(50, 0, 50), Piece(2, 0, 40))))
    other = replace(sessions[9], turns=(first, *sessions[9].turns[1:]), shared={50: Segment(50, "system", 50)})
    assert rules(read(tmp_path, *sessions[:9], other)) == []


def test_what_was_generated_or_written_by_hand_is_not_looked_at(tmp_path: Path) -> None:
    assert rules(read(tmp_path, sound(turns=12, step=3.0), header=replace(HEADER, provenance={}))) == []


def test_check_prints_findings_of_the_file_without_a_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read(tmp_path, sound(turns=12, step=3.0))
    assert main(["check", str(tmp_path / "a.trace")]) == 0
    assert capsys.readouterr().out.splitlines()[0] == (
        "note: times are whole seconds: pauses are off by up to a second: 11 of 11"
    )
