"""Possible and ideal reuse of a run: recomputed from its folder, over the prompts that the server accepted.

Prompts are taken in the order in which they were sent. What lies between the two is split by switching on, one after
the other, what makes them differ: history that was dropped to fit, then salt, then recorded replies, then the server's
page, then a cache for each of several servers; each is the difference of two sums, so that they add up. What the chat
template adds is known for the embedded
engine; for another target it is fitted to the prompt lengths that the server reported (`reuse_fit.py`), and what the
fit leaves is the drift.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agentx.capacity import Curve, capacity_curve
from agentx.core import Attempt, Session, Text, TokenIds
from agentx.errors import BadInput
from agentx.prefix_tree import PrefixTree
from agentx.results import AttemptKey, RunResults, key_of, sha256_of
from agentx.reuse import ReuseTable, TurnReuse, Walk, table
from agentx.reuse_fit import Row as Lengths
from agentx.reuse_fit import fitted
from agentx.reuse_template import PLAIN, Template, definition_count
from agentx.room import room_of_run
from agentx.run_replies import RunReplies
from agentx.trace import read_trace
from agentx.turn_kinds import turn_kinds
from agentx.wire.history import TEXT_WIRES, introduced
from agentx.wire.messages import Shape, counted
from agentx.wire.salting import namespace, salting


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """What of the replayed sessions a replay against one server does not keep, or can not salt."""

    models: int
    literal: bool
    arrivals: bool


@dataclass(frozen=True, slots=True)
class PossibleLessIdeal:
    """Possible less ideal tokens by cause; they sum to it. `template`: tokens of the chat template that are reused,
    which the trace does not have: not above 0. `servers`: shared by sessions that went to different servers."""

    truncation: int
    salt: int
    replies: int
    page: int
    template: int
    servers: int = 0

    @property
    def total(self) -> int:
        return self.truncation + self.salt + self.replies + self.page + self.template + self.servers


class Row(NamedTuple):
    """One accepted attempt: its reuse by the trace's identities, and by what was sent; the kinds of its turn and of its
    thread."""

    attempt: Attempt
    possible: TurnReuse
    ideal: TurnReuse
    turn_kind: str
    thread_kind: str


@dataclass(frozen=True, slots=True)
class RunReuse:
    """Ideal reuse of a run, per attempt and summed, beside what the trace alone would have allowed.

    `drift` is the sum over attempts of |prompt tokens by the server - by our count with the template|, None when the
    server never told. `page` is the server's, 1 where it does not say (`page_known` False).
    """

    ideal: ReuseTable
    possible: ReuseTable
    possible_less_ideal: PossibleLessIdeal
    rows: Sequence[Row]
    curve: Curve
    template: Template
    template_fitted: bool
    drift: int | None
    page: int
    page_known: bool
    facts: TraceFacts

    @property
    def by_attempt(self) -> dict[AttemptKey, int]:
        """Ideal reuse of each attempt that the server took, tokens."""
        return {key_of(row.attempt): sum(row.ideal.reused) for row in self.rows}


def run_reuse(run: RunResults) -> RunReuse:
    """Recompute what was sent. Raises BadInput when the trace is gone or is another one."""
    sent = sorted((attempt for attempt in run.attempts if _accepted(attempt)), key=lambda attempt: attempt.sent)
    traced = _sessions(run, {attempt.session for attempt in sent})
    sessions = as_played(run, traced)
    replies = RunReplies(run.attempts, live=run.settings["plan"].get("history", "recorded") != "recorded")
    template, fit = _template(run, sent, sessions, replies)
    told = run.settings.get("server", {}).get("page_size")
    page = told or 1
    could = list(_walked(sent, traced, _by_trace()))
    ideal = list(_walked(sent, sessions, _as_sent(run, template, replies, page)))
    alone = run.addresses > 1
    one = list(_walked(sent, sessions, _as_sent(run, template, replies, page, alone=True))) if alone else ideal
    possible, held = table(could), table(ideal)
    short = possible if sessions is traced else table(_walked(sent, sessions, _by_trace()))
    salted = table(_walked(sent, sessions, _salted(run))) if _salt_matters(run, sent) else short
    together = table(one) if alone else held
    whole = together if page == 1 else table(turn._replace(reused=turn.whole) for turn in one)
    kinds = _kinds(sessions)
    rows = [
        Row(attempt, a, b, *kinds[attempt.session][attempt.turn])
        for attempt, a, b in zip(sent, could, ideal, strict=True)
    ]
    return RunReuse(
        ideal=held,
        possible=possible,
        possible_less_ideal=_less(possible, short, salted, whole, together, held),
        rows=rows,
        curve=capacity_curve(one, page),
        template=template,
        template_fitted=fit,
        drift=_drift(sent, ideal),
        page=page,
        page_known=told is not None,
        facts=_facts(run, sent, sessions),
    )


def _kinds(sessions: Mapping[str, Session]) -> dict[str, list[tuple[str, str]]]:
    """By session: (kind of turn, kind of thread) of each turn."""
    found = {}
    for key, session in sessions.items():
        threads: dict[int, str] = {thread.id: thread.kind for thread in session.threads}
        pairs = zip(turn_kinds(session), session.turns, strict=True)
        found[key] = [(kind, threads.get(turn.thread, "main")) for kind, turn in pairs]
    return found


def _less(
    possible: ReuseTable, short: ReuseTable, salted: ReuseTable, whole: ReuseTable, one: ReuseTable, ideal: ReuseTable
) -> PossibleLessIdeal:
    """`short`: what is possible of the prompts as played; `one`: the ideal of one cache for all servers; `whole`: that
    with a page of one token."""
    template = whole.by_layer().get("template", (0, 0))[1]
    return PossibleLessIdeal(
        truncation=possible.reused - short.reused,
        salt=short.reused - salted.reused,
        replies=salted.reused - (whole.reused - template),
        page=whole.reused - one.reused,
        template=-template,
        servers=one.reused - ideal.reused,
    )


def _salt_matters(run: RunResults, sent: Sequence[Attempt]) -> bool:
    """Whether the salt keeps apart what the trace shares: sessions, or plays of one session."""
    alone = run.settings["plan"]["salt"] in ("session", "field-session")
    return alone or any(attempt.play for attempt in sent)


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


def as_played(run: RunResults, sessions: Mapping[str, Session]) -> Mapping[str, Session]:
    """Sessions of the trace as the run's plan had them played: with prompts shortened to fit, or just as they are."""
    if run.settings["plan"].get("overflow") != "truncate":
        return sessions
    room = room_of_run(run.settings)
    return {key: room.shortened(session) for key, session in sessions.items()}


Make = Callable[[Session, Attempt], Walk]


def _walked(sent: Sequence[Attempt], sessions: Mapping[str, Session], make: Make) -> Iterator[TurnReuse]:
    """The reuse of every attempt, in send order; each play walks the one tree that `make` closes over."""
    left = Counter(attempt.session for attempt in sent)
    walks: dict[str, dict[int, Walk]] = {session: {} for session in left}  # by play
    for attempt in sent:
        mine = walks[attempt.session]
        walk = mine.get(attempt.play)
        if walk is None:
            walk = mine[attempt.play] = make(sessions[attempt.session], attempt)
        yield walk.turn(attempt.turn, attempt.cached.tokens if attempt.cached else None)
        left[attempt.session] -= 1
        if not left[attempt.session]:  # so that memory goes with the sessions that are under way
            for walk in walks.pop(attempt.session).values():
                walk.forget()


def _as_sent(run: RunResults, template: Template, replies: RunReplies, page: int, *, alone: bool = False) -> Make:
    """By the tokens that went out, with the server's page; each of several servers has a tree, or (`alone`) all one."""
    policy, salt = run.settings["plan"]["salt"], run.settings["salt"]
    trees = [PrefixTree() for _ in range(run.addresses)]

    def make(session: Session, attempt: Attempt) -> Walk:
        of_play = policy, salt, attempt.session, attempt.play
        walk = Walk(
            session,
            trees[0 if alone else run.server_of(attempt.lane)],
            page=page,
            template=template,
            shape=_shape(run),
            salting=salting(*of_play),
            namespace=namespace(*of_play),
        )
        walk.live = replies.of(walk, attempt.play)
        return walk

    return make


def _by_trace() -> Make:
    """By the trace's own identities in the order of this run: a session that is played again meets itself."""
    tree = PrefixTree()
    return lambda session, _: Walk(session, tree, possible=True)


def _salted(run: RunResults) -> Make:
    """By the trace's identities, kept apart as the salt keeps them."""
    policy, salt = run.settings["plan"]["salt"], run.settings["salt"]
    tree = PrefixTree()

    def make(session: Session, attempt: Attempt) -> Walk:
        of_play = policy, salt, attempt.session, attempt.play
        return Walk(session, tree, possible=True, salting=salting(*of_play), namespace=namespace(*of_play))

    return make


def _template(
    run: RunResults, sent: Sequence[Attempt], sessions: Mapping[str, Session], replies: RunReplies
) -> tuple[Template, bool]:
    """What the template adds: known, nothing at all (id wires), or fitted; and whether it was fitted."""
    known, shape = run.settings.get("template"), _shape(run)
    if known is not None:  # of the embedded engine, whose definitions and calls are known to the byte
        return Template(known["start"], known["per_message"], words=shape == "tools"), False
    if run.settings["plan"]["wire"] not in TEXT_WIRES:
        return PLAIN, False
    return fitted(
        [_lengths(one, sessions[one.session], replies, shape) for one in sent if one.prompt_tokens is not None]
    ), True


def _shape(run: RunResults) -> Shape:
    return "tools" if run.settings["plan"].get("messages") == "tools" else "plain"


def _lengths(attempt: Attempt, session: Session, replies: RunReplies, shape: Shape) -> Lengths:
    """Of an attempt for which the server told its prompt's length."""
    pieces = introduced(session, attempt.turn)
    counts = counted(session, pieces, shape)
    excess = (attempt.prompt_tokens or 0) - replies.length(session, attempt.play, pieces)
    definitions = 1 if counts.bare else definition_count(session, counts.definitions)
    return Lengths(excess, counts.messages, sum(map(len, counts.calls)), definitions, shape == "tools")


def _drift(sent: Sequence[Attempt], ideal: Sequence[TurnReuse]) -> int | None:
    """Between the server's lengths of prompts and ours."""
    pairs = zip(sent, ideal, strict=True)
    off = [abs(one.prompt_tokens - sum(turn.tokens)) for one, turn in pairs if one.prompt_tokens is not None]
    return sum(off) if off else None
