"""Possible and ideal reuse of a run: recomputed from its folder, over the prompts that the server accepted.

Prompts are taken in the order in which they were sent. What the chat template adds is known for the embedded
engine; for another target it is fitted to the prompt lengths that the server reported (`reuse_fit.py`), and what the
fit leaves is the drift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentx.core import Attempt, Session, Text, TokenIds
from agentx.errors import BadInput
from agentx.results import RunResults, sha256_of
from agentx.reuse import PrefixTree, ReuseTable, TurnReuse, Walk, table
from agentx.reuse_fit import Row, fitted
from agentx.reuse_template import PLAIN, Template, definition_count, template_tokens
from agentx.run_replies import RunReplies
from agentx.trace import read_trace
from agentx.wire.history import TEXT_WIRES, introduced
from agentx.wire.messages import Counts, Shape, counted
from agentx.wire.salting import namespace, salting

AttemptKey = tuple[str, int, int, int]  # session, play, turn, attempt


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """What of the replayed sessions a replay against one server does not keep, or can not salt."""

    models: int
    literal: bool
    arrivals: bool


@dataclass(frozen=True, slots=True)
class RunReuse:
    """Ideal reuse of a run, per attempt and summed, beside what the trace alone would have allowed.

    `drift` is the sum over attempts of |prompt tokens by the server - by our count with the template|, None when the
    server never told. `page` is the server's, 1 where it does not say (`page_known` False).
    """

    ideal: ReuseTable
    possible: ReuseTable
    by_attempt: Mapping[AttemptKey, int]
    template: Template
    template_fitted: bool
    drift: int | None
    page: int
    page_known: bool
    facts: TraceFacts


def key_of(attempt: Attempt) -> AttemptKey:
    return attempt.session, attempt.play, attempt.turn, attempt.attempt


def run_reuse(run: RunResults) -> RunReuse:
    """Recompute what was sent. Raises BadInput when the trace is gone or is another one."""
    sent = sorted((attempt for attempt in run.attempts if _accepted(attempt)), key=lambda attempt: attempt.sent)
    sessions = _sessions(run, {attempt.session for attempt in sent})
    replies = RunReplies(run.attempts, live=run.settings["plan"].get("history", "recorded") != "recorded")
    rows = _rows(run, sent, sessions, replies)
    template, fit = _template(run, [row for _, row, _ in rows])
    told = run.settings.get("server", {}).get("page_size")
    ideal, by_attempt = _ideal(run, sent, sessions, template, replies, page=told or 1)
    return RunReuse(
        ideal=ideal,
        possible=_possible(sent, sessions),
        by_attempt=by_attempt,
        template=template,
        template_fitted=fit,
        drift=_drift(rows, template, sessions),
        page=told or 1,
        page_known=told is not None,
        facts=_facts(run, sent, sessions),
    )


def _facts(run: RunResults, sent: Sequence[Attempt], sessions: Mapping[str, Session]) -> TraceFacts:
    models = {sessions[attempt.session].turns[attempt.turn].model for attempt in sent}
    rate = (run.settings["plan"].get("load") or {}).get("rate") or {}
    recorded = rate.get("kind") == "recorded"  # then they were used
    held = [segments for session in sessions.values() for segments in (session.segments, session.shared)]
    return TraceFacts(
        models=len(models),
        literal=any(isinstance(one.content, Text | TokenIds) for segments in held for one in segments.values()),
        arrivals=not recorded and any(session.arrival is not None for session in sessions.values()),
    )


def _accepted(attempt: Attempt) -> bool:
    """The server took the prompt, so it may be in the cache whatever became of the reply.

    A reply that the server itself ended with an error before any token (a full queue, an overflow) was not taken.
    """
    if attempt.status != 200:
        return False
    return attempt.failure is None or attempt.first is not None or attempt.failure.kind in ("stall", "closed")


def _check_same(run: RunResults) -> None:
    """Raises BadInput when the trace is not the one that was replayed."""
    expected = run.settings.get("trace", {}).get("sha256")
    if expected is not None and sha256_of(run.trace_path) != expected:
        raise BadInput("this is not the trace that was replayed: its sha256 is another one", file=run.trace_path)


def _sessions(run: RunResults, wanted: set[str]) -> dict[str, Session]:
    _check_same(run)
    found = {session.key: session for session in read_trace(run.trace_path) if session.key in wanted}
    if missing := sorted(wanted - found.keys()):
        raise BadInput(f"session {missing[0]!r} of the run is not in this trace", file=run.trace_path)
    return found


def _walks(
    sent: Sequence[Attempt], sessions: Mapping[str, Session], make: Callable[[Session, Attempt], Walk]
) -> Iterator[tuple[Attempt, TurnReuse]]:
    """Every attempt with its reuse, in send order; each play walks the one tree that `make` closes over."""
    walks: dict[tuple[str, int], Walk] = {}
    for attempt in sent:
        play = attempt.session, attempt.play
        if play not in walks:
            walks[play] = make(sessions[attempt.session], attempt)
        yield attempt, walks[play].turn(attempt.turn)


def _ideal(
    run: RunResults,
    sent: Sequence[Attempt],
    sessions: Mapping[str, Session],
    template: Template,
    replies: RunReplies,
    *,
    page: int,
) -> tuple[ReuseTable, dict[AttemptKey, int]]:
    policy, salt = run.settings["plan"]["salt"], run.settings["salt"]
    tree, total, by_attempt = PrefixTree(), ReuseTable(), dict[AttemptKey, int]()

    def make(session: Session, attempt: Attempt) -> Walk:
        of_play = policy, salt, attempt.session, attempt.play
        walk = Walk(
            session,
            tree,
            page=page,
            template=template,
            shape=_shape(run),
            salting=salting(*of_play),
            namespace=namespace(*of_play),
        )
        walk.live = replies.of(walk, attempt.play)
        return walk

    for attempt, reuse in _walks(sent, sessions, make):
        total.add(reuse)
        by_attempt[key_of(attempt)] = sum(reuse.reused)
    return total, by_attempt


def _possible(sent: Sequence[Attempt], sessions: Mapping[str, Session]) -> ReuseTable:
    """By the trace's own identities in the order of this run: a session that is played again meets itself."""
    tree = PrefixTree()
    walks = _walks(sent, sessions, lambda session, _: Walk(session, tree, possible=True))
    return table(reuse for _, reuse in walks)


def _template(run: RunResults, rows: Sequence[Row]) -> tuple[Template, bool]:
    """What the template adds: known, nothing at all (id wires), or fitted; and whether it was fitted."""
    known = run.settings.get("template")
    if known is not None:  # of the embedded engine, whose definitions and calls are known to the byte
        return Template(known["start"], known["per_message"], words=_shape(run) == "tools"), False
    if run.settings["plan"]["wire"] not in TEXT_WIRES:
        return PLAIN, False
    return fitted(rows), True


def _shape(run: RunResults) -> Shape:
    return "tools" if run.settings["plan"].get("messages") == "tools" else "plain"


def _rows(
    run: RunResults, sent: Sequence[Attempt], sessions: Mapping[str, Session], replies: RunReplies
) -> list[tuple[Attempt, Row, Counts]]:
    """Each attempt for which the server told its prompt's length."""
    rows, shape = [], _shape(run)
    for attempt in sent:
        if attempt.prompt_tokens is not None:
            session = sessions[attempt.session]
            counts = counted(session, introduced(session, attempt.turn), shape)
            excess = attempt.prompt_tokens - replies.length(session, attempt.play, attempt.turn)
            definitions = 1 if counts.bare else definition_count(session, counts.definitions)
            row = Row(excess, counts.messages, sum(map(len, counts.calls)), definitions, shape == "tools")
            rows.append((attempt, row, counts))
    return rows


def _drift(
    rows: Sequence[tuple[Attempt, Row, Counts]], template: Template, sessions: Mapping[str, Session]
) -> int | None:
    if not rows:
        return None
    if not template.words:
        return sum(abs(row.left(template)) for _, row, _ in rows)
    known = (template_tokens(template, sessions[attempt.session], counts) for attempt, _, counts in rows)
    return sum(abs(row.excess - tokens) for (_, row, _), tokens in zip(rows, known, strict=True))
