"""A run beside the trace that it played: is what was replayed what was recorded?

Turn by turn, over all answered attempts: the prompt's and the reply's length by the server's usage against the trace's,
and the cached tokens against those that the recorded server told. A replay is *as recorded* when every turn of the
trace was answered, with the recorded lengths, and the possible reuse of what was sent is that of the trace. Cached
tokens and times stand beside it: they are the two servers' own. A prompt of which one token more or less was cached
counts as the same, since servers differ in whether the last token of a reply is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from agentx.core import Attempt, Turn
from agentx.errors import BadInput, InvalidMeasurement
from agentx.reporter.about import RECORDED_HISTORY, about
from agentx.reporter.spread import percentile
from agentx.reporter.table import Block, Facts, Heading, Lines, Table, as_markdown, as_text
from agentx.reporter.text import number
from agentx.reporter.turns import turn_times
from agentx.results import RunResults, read_results, sha256_of
from agentx.reuse import possible
from agentx.reuse_template import Template
from agentx.run_reuse import run_reuse
from agentx.trace import read_trace

SCHEMA = "agentx/compare-recorded/1"
SHOWN = 5  # turns that differ, by name
Key = tuple[str, int]  # session, turn


class Told(NamedTuple):
    """What the trace says of a turn: tokens, and seconds from its arrival; None where the source did not tell."""

    isl: int
    osl: int
    cached: int | None
    ttft: float | None
    latency: float | None


class Difference(NamedTuple):
    """A turn whose length is another one."""

    session: str
    turn: int
    what: str
    recorded: int
    replayed: int


@dataclass(frozen=True, slots=True)
class Lengths:
    """Sums over the `told` answered attempts for which both sides tell; `same` of them agree, `largest` is the greatest
    difference, replayed less recorded."""

    told: int
    same: int
    recorded: int
    replayed: int
    largest: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """A trace and a replay of it. Reuse is a share of prompt tokens, 0 ... 1, None where it is unknown."""

    trace: str
    run: str
    target: str
    turns: int
    answered: int  # turns that were answered at least once
    prompts: Lengths
    replies: Lengths
    cached: Lengths
    possible: tuple[float | None, float | None]
    possible_tokens: tuple[int, int]
    times: Mapping[str, tuple[float | None, float | None]]
    differences: tuple[Difference, ...]
    recorded_history: bool
    template: Template | None  # of the replay's server, where every prompt that differs is longer than recorded

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the replay is not as recorded; none: it is."""
        found = []
        if self.answered < self.turns:
            found.append(f"{self.turns - self.answered:,} of {self.turns:,} turns were not answered")
        for what, each in (("prompts", self.prompts), ("replies", self.replies)):
            if each.same < each.told:
                found.append(f"{each.told - each.same:,} of {each.told:,} {what} have another length")
            if not each.told:
                found.append(f"the server told no length of {what}")
        if not found and self.possible_tokens[0] != self.possible_tokens[1]:
            one, other = self.possible_tokens
            found.append(f"{other:,} tokens could be reused, {one:,} in the trace")
        return tuple(found)

    def text(self) -> str:
        """For a terminal."""
        return as_text(_blocks(self))

    def markdown(self) -> str:
        """The same for a pull request."""
        return as_markdown(_blocks(self))

    def document(self) -> dict[str, Any]:
        """The JSON document, as plain values."""
        return _document(self)

    def check(self) -> None:
        """Raises InvalidMeasurement when the replay is not as recorded."""
        if self.reasons:
            raise InvalidMeasurement(f"not as recorded: {'; '.join(self.reasons)}")


def compare_recorded(trace: Path | str, run: RunResults | Path | str) -> Recorded:
    """A trace (recorded, imported, or any other) beside a replay of it. Raises BadInput for a run of another trace."""
    path = Path(trace)
    results = run if isinstance(run, RunResults) else read_results(run)
    _check_same(path, results)
    told = {(session.key, turn.index): _told(turn) for session in read_trace(path) for turn in session.turns}
    answered = [attempt for attempt in results.attempts if attempt.ok]
    if strange := next((one for one in answered if (one.session, one.turn) not in told), None):
        raise BadInput(f"session {strange.session!r} turn {strange.turn} of the run is not in this trace", file=path)
    prompts = _lengths(answered, told, lambda one: one.isl, lambda attempt: attempt.prompt_tokens)
    reuse, whole = run_reuse(results), possible(read_trace(path))
    differences = _differences(answered, told)
    prompts_off = [one.replayed - one.recorded for one in differences if one.what == "prompt"]
    return Recorded(
        trace=path.name,
        run=results.folder.name,
        target=about(results).target or "unknown target",
        turns=len(told),
        answered=len({(attempt.session, attempt.turn) for attempt in answered}),
        prompts=prompts,
        replies=_lengths(answered, told, lambda one: one.osl, lambda attempt: attempt.completion_tokens),
        cached=_lengths(
            answered, told, lambda one: one.cached, lambda attempt: attempt.cached.tokens if attempt.cached else None, 1
        ),
        possible=(whole.share, reuse.possible.share),
        possible_tokens=(whole.reused, reuse.possible.reused),
        times=_times(answered, told),
        differences=tuple(differences),
        recorded_history=about(results).history == "recorded",
        template=reuse.template if prompts_off and min(prompts_off) > 0 and not _shaped(results) else None,
    )


def _shaped(run: RunResults) -> bool:
    """Whether prompts had definitions and calls of tools, whose template no two numbers say."""
    return about(run).plan.get("messages") == "tools"


def _check_same(path: Path, run: RunResults) -> None:
    settings = run.settings.get("trace")
    played = settings.get("sha256") if isinstance(settings, Mapping) else None
    if played is not None and sha256_of(path) != played:
        raise BadInput(
            f"this is not the trace that {run.folder} played: its sha256 is another one",
            file=path,
            hint=f"the run's own is {run.trace_path}",
        )


def _told(turn: Turn) -> Told:
    seen = turn.observed
    if seen is None:
        return Told(turn.isl, turn.output.tokens, None, None, None)
    took = seen.end - seen.start if seen.end is not None and seen.start is not None else None
    return Told(turn.isl, turn.output.tokens, seen.cached, seen.ttft, took)


def _lengths(
    answered: Iterable[Attempt],
    told: Mapping[Key, Told],
    recorded: Callable[[Told], int | None],
    replayed: Callable[[Attempt], int | None],
    slack: int = 0,
) -> Lengths:
    pairs = [
        (was, now)
        for attempt in answered
        if (was := recorded(told[attempt.session, attempt.turn])) is not None and (now := replayed(attempt)) is not None
    ]
    return Lengths(
        told=len(pairs),
        same=sum(abs(now - was) <= slack for was, now in pairs),
        recorded=sum(was for was, _ in pairs),
        replayed=sum(now for _, now in pairs),
        largest=max((now - was for was, now in pairs), key=abs, default=0),
    )


def _differences(answered: Iterable[Attempt], told: Mapping[Key, Told]) -> list[Difference]:
    """Those of prompts and replies, the largest first."""
    found = []
    for attempt in answered:
        was = told[attempt.session, attempt.turn]
        for what, before, after in (
            ("prompt", was.isl, attempt.prompt_tokens),
            ("reply", was.osl, attempt.completion_tokens),
        ):
            if after is not None and after != before:
                found.append(Difference(attempt.session, attempt.turn, what, before, after))
    return sorted(found, key=lambda one: (-abs(one.replayed - one.recorded), one))


def _times(answered: Sequence[Attempt], told: Mapping[Key, Told]) -> dict[str, tuple[float | None, float | None]]:
    """Medians in seconds, over the turns for which both sides tell."""
    pairs: dict[str, list[tuple[float, float]]] = {"ttft_p50_seconds": [], "latency_p50_seconds": []}
    for now in turn_times(answered):
        was = told[now.attempt.session, now.attempt.turn]
        for name, before, after in (
            ("ttft_p50_seconds", was.ttft, now.ttft),
            ("latency_p50_seconds", was.latency, now.latency),
        ):
            if before is not None and after is not None:
                pairs[name].append((before, after))
    return {name: (_median(a for a, _ in each), _median(b for _, b in each)) for name, each in pairs.items()}


def _median(values: Iterable[float]) -> float | None:
    ordered = sorted(values)
    return percentile(ordered, 50) if ordered else None


def _blocks(found: Recorded) -> list[Block]:
    verdict = "; ".join(found.reasons) or "lengths and possible reuse are the recorded ones, turn by turn"
    facts = [("as recorded", f"{'NO' if found.reasons else 'yes'}: {verdict}")]
    if found.template is not None:
        facts.append(("template", _hint(found.template)))
    made: list[Block] = [
        Heading(f"agentx compare: {found.trace} as recorded, and {found.run} (on {found.target})"),
        Facts(tuple(facts)),
        Heading("Over the answered turns for which both sides tell"),
        Table(("", "recorded", "replayed", "turns", "the same", "largest difference"), tuple(_rows(found))),
    ]
    if found.recorded_history and found.cached.replayed < found.cached.recorded:
        made.append(Lines((RECORDED_HISTORY,)))
    if found.differences:
        lines = [
            f"session {one.session} turn {one.turn}: {one.what} of {one.recorded:,} tokens recorded, "
            f"{one.replayed:,} replayed"
            for one in found.differences[:SHOWN]
        ]
        if (more := len(found.differences) - SHOWN) > 0:
            lines.append(f"and {more:,} more")
        made += [Heading("Lengths that differ"), Lines(tuple(lines), bullet=True)]
    return made


def _hint(template: Template) -> str:
    return (
        "the replay's prompts are longer, as when the tokens of the chat template are sent twice: compile again with "
        f"--template {template.per_message}+{template.start}, which is this server's"
    )


def _rows(found: Recorded) -> Iterable[tuple[str, ...]]:
    yield "turns answered", f"{found.turns:,}", f"{found.answered:,}", "", "", ""
    for name, each in (
        ("prompt tokens", found.prompts),
        ("reply tokens", found.replies),
        ("cached tokens (the same: within one)", found.cached),
    ):
        if each.told:
            sums = (f"{each.recorded:,}", f"{each.replayed:,}", f"{each.told:,}")
            yield name, *sums, f"{each.same:,}", f"{each.largest:+,}" if each.largest else "0"
        else:
            yield name, "unknown", "unknown", "0", "", ""
    one, other = found.possible
    yield "possible reuse", _percent(one), _percent(other), "", "", ""
    for name, label in (("ttft_p50_seconds", "TTFT p50, s"), ("latency_p50_seconds", "latency p50, s")):
        before, after = found.times[name]
        yield label, number(before), number(after), "", "", ""


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.1%}"


def _document(found: Recorded) -> dict[str, Any]:
    def lengths(each: Lengths) -> dict[str, Any]:
        known = each.told > 0
        return {
            "turns": each.told,
            "same": each.same,
            "recorded": each.recorded if known else None,
            "replayed": each.replayed if known else None,
            "largest_difference": each.largest if known else None,
        }

    return {
        "schema": SCHEMA,
        "trace": found.trace,
        "run": found.run,
        "target": found.target,
        "as_recorded": not found.reasons,
        "reasons": list(found.reasons),
        "turns": found.turns,
        "answered": found.answered,
        "prompt_tokens": lengths(found.prompts),
        "reply_tokens": lengths(found.replies),
        "cached_tokens": lengths(found.cached),
        "possible_reuse": {"recorded": found.possible[0], "replayed": found.possible[1]},
        "times": {name: {"recorded": one, "replayed": other} for name, (one, other) in found.times.items()},
        "recorded_history": found.recorded_history,
        "differences": [one._asdict() for one in found.differences],
        "template": None
        if found.template is None
        else {"per_message": found.template.per_message, "start": found.template.start},
    }
