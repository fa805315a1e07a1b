"""Each rule of the linter finds what breaks it, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agentx.cli.trace_lint import Lint, lint
from agentx.core import Gap, Header, Observed, Output, Piece, Prompt, Segment, Session, Thread, Tool, Turn, TurnEvent
from agentx.trace import TraceWriter

PROMPTS = (Prompt((Piece(1, 0, 10),)), Prompt((Piece(2, 0, 5), Piece(3, 0, 7)), 0, 1))
SOUND = Session(
    id="s",
    turns=(
        Turn(0, 0, PROMPTS[0], 10, Output(5), reply=2),
        Turn(1, 0, PROMPTS[1], 22, Output(4), (0,), Gap("tool", 2.0), (Tool("shell", 2.0),), reply=4),
        Turn(2, 0, Prompt((Piece(4, 0, 4),), 1, 2), 19, Output(1), (1,)),  # keeps two of three pieces
    ),
    segments={
        1: Segment(1, "user", 10),
        2: Segment(2, "assistant", 5),
        3: Segment(3, "tool_result", 7),
        4: Segment(4, "assistant", 4),
    },
)


def read(tmp_path: Path, *sessions: Session, cut: int = 0) -> Lint:
    path = tmp_path / "a.trace"
    with TraceWriter(path, Header("x", "scope")) as writer:
        for session in sessions:
            writer.session(session)
    if cut:
        path.write_bytes(path.read_bytes()[:-cut])
    return lint(path)


def test_a_sound_trace_has_no_findings(tmp_path: Path) -> None:
    found = read(tmp_path, SOUND, replace(SOUND, id="t"))
    assert (found.sessions, found.turns, found.findings, found.errors) == (2, 6, {}, 0)


def last(**change: object) -> Session:
    return replace(SOUND, turns=(*SOUND.turns[:2], replace(SOUND.turns[2], **change)))


def test_tokens_of_the_chat_template_are_no_finding(tmp_path: Path) -> None:
    """Where a trace says what the template added, a prompt's pieces may be that much less than its isl."""
    for more, found in ((4, 0), (5, 1)):  # a token for each of three pieces, and one for the prompt
        path = tmp_path / f"{more}.trace"
        with TraceWriter(path, Header("x", "scope", provenance={"template": {"message": 1, "prompt": 1}})) as writer:
            turn = SOUND.turns[2]
            writer.session(replace(SOUND, turns=(*SOUND.turns[:2], replace(turn, isl=turn.isl + more))))
        assert len(lint(path).findings) == found


BROKEN: list[tuple[str, Callable[[], Session], str]] = [
    ("error", lambda: last(isl=18), "a prompt's pieces hold more tokens than its isl"),
    ("note", lambda: last(isl=20), "a prompt's pieces hold fewer tokens than its isl"),
    ("note", lambda: last(output=Output(0)), "a turn's reply has no tokens"),
    ("error", lambda: last(output=Output(5), reply=4), "a reply's segment is shorter than the reply"),
    ("note", lambda: last(after=()), "a later turn of a thread waits for nothing"),
    ("error", lambda: last(observed=Observed(3.0, None, 2.0)), "a turn was observed to end before it started"),
    (
        "note",
        lambda: last(gap=Gap("tool", 1.0), tools=(Tool("shell", 1.5),)),
        "a tool ran longer than the gap that waited for it",
    ),
    ("note", lambda: last(event=TurnEvent("compaction", 10, 8, 3)), "a compaction leaves more than there was"),
    ("note", lambda: last(event=TurnEvent("compaction", 90, 8, 12)), "a compaction leaves more than its prompt holds"),
    ("note", lambda: replace(SOUND, turns=()), "a session has no turn"),
    ("error", lambda: last(prompt=Prompt(()), isl=0), "a prompt is empty"),
]


@pytest.mark.parametrize(("level", "make", "rule"), BROKEN)
def test_each_rule(level: str, make: Callable[[], Session], rule: str, tmp_path: Path) -> None:
    found = read(tmp_path, make())
    assert [(finding.level, finding.rule, finding.count) for finding in found.findings.values()] == [(level, rule, 1)]
    assert next(iter(found.findings.values())).first.startswith("session s")


def test_a_tool_that_ran_as_long_as_its_subagent(tmp_path: Path) -> None:
    """The gap runs from the subagent's end, its work is inside the tool's time."""
    zero, one, two = SOUND.turns
    threads = (Thread(0), Thread(1, parent=0, kind="subagent"))
    two = replace(two, after=(0, 1), gap=Gap("tool", 1.0), tools=(Tool("Task", 60.0),))
    made = replace(SOUND, threads=threads, turns=(zero, replace(one, thread=1), two))
    assert "a tool ran longer than the gap that waited for it" not in read(tmp_path, made).findings


SOUND_EVENTS = [
    {"output": Output(0), "event": TurnEvent("abort")},  # nothing had come yet
    {"event": TurnEvent("compaction", 90, 8, 11)},
    {"event": TurnEvent("compaction", None, None, None)},  # the source does not tell
]


@pytest.mark.parametrize("change", SOUND_EVENTS)
def test_events_that_are_no_findings(change: dict[str, object], tmp_path: Path) -> None:
    assert read(tmp_path, last(**change)).findings == {}


def test_equal_findings_are_counted(tmp_path: Path) -> None:
    found = read(tmp_path, last(isl=18), replace(last(isl=18), id="t"))
    assert found.errors == 2
    assert len(found.findings) == 1


def test_a_torn_end(tmp_path: Path) -> None:
    found = read(tmp_path, SOUND, replace(SOUND, id="t"), cut=3)
    assert set(found.findings) == {"a session is cut short", "the end of the file is torn"}
    assert found.sessions == 2
