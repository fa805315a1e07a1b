"""Objectives and goodput for people, and as a part of the report's document."""

from __future__ import annotations

from typing import Any

from agentx.replayer.slo import Objective, figure_of, limit_text
from agentx.reporter.goodput import Goodput, Judged, Verdict
from agentx.reporter.table import Block, Heading, Lines, Table
from agentx.reporter.text import number, share


def slo_blocks(judged: Judged) -> list[Block]:
    """Nothing where no objective was set."""
    if not judged.asked:
        return []
    found: list[Block] = [Heading("Objectives")]
    if judged.verdicts:
        rows = tuple((str(one.objective), value_text(one), verdict_text(one)) for one in judged.verdicts)
        found.append(Table(("of the run", "value", "verdict"), rows))
    if judged.goodput.objectives:
        found += [_goodput(judged.goodput), Lines(_words(judged.goodput))]
    return found


def value_text(one: Verdict) -> str:
    """The figure in the unit in which limits are written."""
    if one.endless:
        return "no answer"
    if one.value is None:
        return "unknown"
    return figure_text(one.objective.name, one.value)


def figure_text(name: str, value: float) -> str:
    unit = figure_of(name).unit
    if unit == "share":
        return share(value)
    if unit == "rate":
        return number(value)
    return f"{number(value * 1e3)} ms" if value < 1 else f"{number(value)} s"


def verdict_text(one: Verdict) -> str:
    return {True: "met", False: "MISSED", None: "UNKNOWN"}[one.met]


def _goodput(found: Goodput) -> Table:
    rows = (
        ("turns", str(found.due), str(found.met), share(found.share), f"{number(found.per_second, 'n/a')} per s"),
        (
            "sessions", str(found.plays), str(found.plays_met), share(found.session_share),
            f"{number(found.sessions_per_hour, 'n/a')} per hour",
        ),
    )  # fmt: skip
    names = ", ".join(map(str, found.objectives))
    return Table((f"goodput: {names}", "due", "met", "share", "rate"), rows)


def _words(found: Goodput) -> tuple[str, ...]:
    parts = [f"{count} by {name}" for name, count in found.missed_by.items() if count]
    parts += [
        f"{count} {what}"
        for count, what in ((found.failed, "failed"), (found.cut, "cut"), (found.unsent, "due and never sent"))
        if count
    ]
    unknown = f" {found.unknown} unknown: the server did not tell." if found.unknown else ""
    return (f"{found.missed} turns missed: {', '.join(parts) or 'none'}.{unknown}",)


def slo_document(judged: Judged) -> dict[str, Any] | None:
    """None where no objective was set."""
    if not judged.asked:
        return None
    return {
        "objectives": [
            {**_limit(one.objective), "value": one.value, "endless": one.endless, "met": one.met}
            for one in judged.verdicts
        ],
        "goodput": _document(judged.goodput) if judged.goodput.objectives else None,
    }


def _limit(one: Objective) -> dict[str, Any]:
    return {"name": one.name, "limit": one.limit, "limit_text": limit_text(one.name, one.limit)}


def _document(found: Goodput) -> dict[str, Any]:
    return {
        "turn_objectives": [{**_limit(one), "missed_turns": found.missed_by[one.name]} for one in found.objectives],
        "due_turns": found.due,
        "met_turns": found.met,
        "missed_turns": found.missed,
        "unknown_turns": found.unknown,
        "failed_turns": found.failed,
        "cut_turns": found.cut,
        "unsent_due_turns": found.unsent,
        "share": found.share,
        "turns_per_second": found.per_second,
        "plays": found.plays,
        "plays_met": found.plays_met,
        "plays_unknown": found.plays_unknown,
        "session_share": found.session_share,
        "sessions_per_hour": found.sessions_per_hour,
    }
