"""The slow turns for people, a sentence each, and as plain values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

from agentx.core import Attempt
from agentx.reporter.blame import Blame, Lost, Part, SlowTurn
from agentx.reporter.table import Block, Heading, Lines

SHOWN = 5
_CAUSES = {
    "evicted": "evicted",
    "not_backed_up": "evicted without a copy on the host",
    "host_dropped": "dropped from the host",
}
_SOURCES = {
    "measured": "Evictions are measured, by KV events; for whom is inferred from what was stored next.",
    "modelled": "Evictions are modelled.",
    None: "What was evicted is not known.",
}
_SHORT = 0.02  # share of the wait under which a part is not worth words
When = Callable[[float], str]


def blame_blocks(found: Blame, started: str | None) -> list[Block]:
    """Nothing where no turn got a token."""
    if not found.turns:
        return []
    when = clock(started)
    lines = [sentence(turn, when) for turn in found.turns[:SHOWN]]
    told = all(turn.queue_told for turn in found.turns[:SHOWN])
    source = (
        "The server told when each left its queue." if told else "Waits are inferred from when others were answered."
    )
    lines.append(f"{source} {_SOURCES[found.source]} {found.slow:,d} turns took {found.over:,.3g} s or more.")
    return [Heading("The slowest turns, and what they waited for"), Lines(tuple(lines), bullet=True)]


def clock(started: str | None) -> When:
    """Seconds of the run as the time of day (UTC), or as seconds where there is none: in virtual time."""
    begun = None
    if started is not None:
        begun = datetime.fromisoformat(started.replace("Z", "+00:00")).astimezone(timezone.utc)

    def when(at: float) -> str:
        return f"{at:,.1f} s" if begun is None else f"{begun + timedelta(seconds=at):%H:%M:%S}"

    return when


def sentence(turn: SlowTurn, when: When, largest: int | None = None) -> str:
    """`203 s = 148 s behind session 7 turn 3, … + 55 s own`; with `largest`, so many parts, the longest first."""
    parts = [part for part in turn.parts if part.seconds >= _SHORT * turn.ttft]
    if largest is not None:
        parts = sorted(parts, key=lambda part: -part.seconds)[:largest]
    rest = turn.ttft - sum(part.seconds for part in parts)
    words = [_part(part, when) for part in parts]
    if rest >= 0.0005:
        words.append(f"{seconds(rest)} in {'short' if largest is None else 'other'} waits")
    lag = f" (sent {seconds(turn.lag)} late)" if turn.lag > 0 and turn.lag >= 0.05 * turn.ttft else ""
    return f"{name(turn.attempt)}{lag}: {seconds(turn.ttft)} = {' + '.join(words)}"


def name(attempt: Attempt) -> str:
    play = f" play {attempt.play}" if attempt.play else ""
    return f"session {attempt.session}{play} turn {attempt.turn}"


def _part(part: Part, when: When) -> str:
    if part.kind == "waiting":
        return f"{seconds(part.seconds)} waiting in the queue"
    computed = "unknown tokens computed" if part.computed is None else f"{part.computed:,d} tokens computed"
    lost = "".join(f", {_lost(one, when)}" for one in part.lost[:2])
    if part.kind == "own" or part.attempt is None:
        return f"{seconds(part.seconds)} own ({computed}{lost})"
    return f"{seconds(part.seconds)} behind {name(part.attempt)} ({computed}{lost})"


def _lost(one: Lost, when: When) -> str:
    known, whom = ("measured", " (inferred)") if one.measured else ("modelled", "")
    by = "" if one.by is None else f" by session {one.by.session}{whom}"
    return f"{one.tokens:,d} of them {_CAUSES[one.cause]} {when(one.at)} ({known}){by}"


def seconds(value: float) -> str:
    return f"{value:,.0f} s" if value >= 100 else f"{value:.3g} s"


def blame_document(found: Blame) -> dict[str, Any]:
    """Plain values only."""
    return {
        "slow_over_seconds": found.over,
        "slow_turns": found.slow,
        "turns": [_turn(turn) for turn in found.turns],
    }


def _turn(turn: SlowTurn) -> dict[str, Any]:
    return {
        **_named(turn.attempt),
        "ttft_seconds": turn.ttft,
        "lag_seconds": turn.lag,
        "queue_told": turn.queue_told,
        "parts": [
            {
                "kind": part.kind,
                "seconds": part.seconds,
                **(_named(part.attempt) if part.attempt is not None else dict.fromkeys(("session", "play", "turn"))),
                "computed_tokens": part.computed,
                "lost": [
                    {"tokens": one.tokens, "cause": one.cause, "at_seconds": one.at, "for": _by(one.by)}
                    for one in part.lost
                ],
            }
            for part in turn.parts
        ],
    }


def _by(attempt: Attempt | None) -> dict[str, Any] | None:
    return None if attempt is None else _named(attempt)


def _named(attempt: Attempt) -> dict[str, Any]:
    return {"session": attempt.session, "play": attempt.play, "turn": attempt.turn}
