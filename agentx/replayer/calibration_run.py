"""A run folder as a calibration sees it: what was sent when, what was seen of it, and the cache it was sent to.

Of the run's target the cache, the scheduler and the speculation are used, and never its timing: those of an embedded
engine stand in the folder and would be no fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentx.content import Encoder, WordList, lexicon
from agentx.core import Attempt, Session, TokenIds
from agentx.engine.settings import LAPTOP, EngineSettings
from agentx.engine.tokenizer import MARKERS, WORD, ids_from_list
from agentx.errors import BadInput
from agentx.replayer.calibration_server import settings_of_server
from agentx.results import RunResults, read_results
from agentx.run_reuse import as_played
from agentx.trace import read_trace
from agentx.wire.messages import messages
from agentx.wire.salting import salting

FEWEST = 16  # answered turns; fewer do not tell nine constants apart
HELD_BYTES = 256 << 20  # of prompts that are kept between simulations
GIVEN_UP = ("cut", "stall", "closed")  # failures of attempts that the server was busy with until they ended


@dataclass(frozen=True, slots=True)
class Sent:
    """One request that the server took. Seconds are on the run's clock; None: not told, or not there.

    `after` are the requests for whose end it waited, by their place, and `pause` is how long after the last of them it
    was sent (after the start of the run, where there are none). `reply` tokens were made (or asked for, where it was
    given up `given_up` seconds later), `head` of them came with the first chunk. `measured`: it was answered whole, in
    the measured phase, so that its `ttft` and `tpot` are looked at.
    """

    session: str
    play: int
    turn: int
    sent: float
    reply: int
    head: int = 1
    prompt: int | None = None
    cached: int | None = None
    host: int | None = None
    queue: float | None = None
    ttft: float | None = None
    tpot: float | None = None
    first: float | None = None
    last: float | None = None
    given_up: float | None = None
    measured: bool = False
    after: tuple[int, ...] = ()
    pause: float = 0.0


@dataclass(slots=True)
class CalibrationRun:
    """A run, its `sent` requests in the order of sending, and `settings` with the timing of no run."""

    folder: Path
    settings: EngineSettings
    sent: tuple[Sent, ...]
    notes: tuple[str, ...]
    sessions: Mapping[str, Session]
    plan: Mapping[str, Any]
    salt: str
    followers: list[list[int]]  # by request: those that wait for its end
    _encoder: Encoder = field(default_factory=lambda: Encoder(WordList(lexicon())))
    _prompts: dict[int, bytes] = field(default_factory=dict)
    _held: int = 0

    def prompt(self, index: int) -> bytes:
        """Ids of a request's prompt, as the embedded engine has them."""
        found = self._prompts.get(index)
        if found is None:
            found = self._made(self.sent[index])
            if self._held + len(found) <= HELD_BYTES:
                self._prompts[index] = found
                self._held += len(found)
        return found

    def _made(self, sent: Sent) -> bytes:
        session = self.sessions[sent.session]
        salts = salting(self.plan["salt"], self.salt, sent.session, sent.play)
        chat, parts = self.plan["wire"] in ("chat", "messages"), []
        for message in messages(session, session.pieces(sent.turn)):
            parts += [MARKERS[message.role]] if chat else []
            for piece in message.pieces:
                content = session.segment(piece.segment).content
                if isinstance(content, TokenIds):
                    parts.append(ids_from_list(content.ids[piece.start : piece.stop]))
                    continue
                text = b"".join(self._encoder.piece_text(session, piece, salts))
                parts.append(text.ljust(-(-len(text) // WORD) * WORD))
        return b"".join([*parts, MARKERS["assistant"]] if chat else parts)


def load_calibration_run(folder: Path, target: EngineSettings | None = None) -> CalibrationRun:
    """Read a run. `target` stands for the server's settings where they are not told, its timing for what no run shows.

    Raises BadInput for a folder that is no run, a run without usage, and one that is too short.
    """
    run = read_results(folder)
    taken = sorted((each for each in run.attempts if _taken(each)), key=lambda each: (each.sent, each.session))
    _refuse_poor(folder, run, [_sent(each) for each in taken])
    wanted = {each.session for each in taken}
    traced = {each.key: each for each in read_trace(run.trace_path) if each.key in wanted}
    if missing := sorted(wanted - traced.keys()):
        raise BadInput(f"session {missing[0]!r} of the run is not in this trace", file=run.trace_path)
    sessions = as_played(run, traced)
    waits = waits_of(taken, sessions)
    sent = tuple(
        replace(_sent(each), after=after, pause=pause) for each, (after, pause) in zip(taken, waits, strict=True)
    )
    followers: list[list[int]] = [[] for _ in sent]
    for index, each in enumerate(sent):
        for earlier in each.after:
            followers[earlier].append(index)
    settings, notes = target or _settings(run), tuple(_notes(folder, run, sent))
    return CalibrationRun(
        folder, settings, sent, notes, sessions, run.settings["plan"], run.settings["salt"], followers
    )


def waits_of(taken: Sequence[Attempt], sessions: Mapping[str, Session]) -> list[tuple[tuple[int, ...], float]]:
    """For each attempt, in the order of sending: those that it waited for, and the pause after the last one's end.

    A turn waits for the turns that the trace names; the first ones of a play for the play before it in its lane.
    """
    places: dict[tuple[str, int, int], int] = {}
    lanes: dict[int, dict[tuple[str, int], list[int]]] = {}
    for index, each in enumerate(taken):
        places[each.session, each.play, each.turn] = index
        lanes.setdefault(each.lane, {}).setdefault((each.session, each.play), []).append(index)
    before: dict[tuple[str, int], list[int]] = {}
    for plays in lanes.values():
        before.update(zip(list(plays)[1:], plays.values(), strict=False))
    waits = []
    for each in taken:
        named = [places.get((each.session, each.play, turn)) for turn in sessions[each.session].turns[each.turn].after]
        known = [place for place in named if place is not None] or before.get((each.session, each.play), [])
        after = tuple(place for place in known if _end(taken[place]) <= each.sent)
        since = max((_end(taken[place]) for place in after), default=0.0)
        waits.append((after, each.sent - since))
    return waits


def _end(attempt: Attempt) -> float:
    """When it was over for those who waited; never, if that is not known."""
    found = attempt.last if attempt.last is not None and attempt.failure is None else attempt.end
    return math.inf if found is None else found


def _settings(run: RunResults) -> EngineSettings:
    """What the run says of its target, under a timing that is not its own."""
    record = {key: value for key, value in run.settings["target"].items() if key != "name"}
    if record.get("kind") == "engine":
        return EngineSettings.model_validate({**record, "timing": LAPTOP})
    return settings_of_server(run)


def _taken(attempt: Attempt) -> bool:
    if attempt.status != 200:
        return False
    return attempt.failure is None or attempt.first is not None or attempt.failure.kind in GIVEN_UP


def _sent(attempt: Attempt) -> Sent:
    reply, cached = _tokens(attempt), attempt.cached
    head = sum(chunk.tokens or 0 for chunk in attempt.chunks[:1]) or 1
    ttft = None if attempt.first is None else attempt.first - attempt.sent
    tpot = None
    if reply is not None and attempt.first is not None and attempt.last is not None and reply > head:
        tpot = (attempt.last - attempt.first) / (reply - head) or None
    return Sent(
        attempt.session,
        attempt.play,
        attempt.turn,
        attempt.sent,
        attempt.osl if attempt.failure is not None or reply is None else reply,
        head,
        attempt.prompt_tokens,
        None if cached is None else cached.total,
        None if cached is None else cached.host,
        attempt.queue_seconds,
        ttft,
        tpot,
        attempt.first,
        attempt.last,
        given_up=attempt.end - attempt.sent if attempt.failure is not None and attempt.end is not None else None,
        measured=attempt.ok and attempt.phase == "measure" and ttft is not None and reply is not None,
    )


def _tokens(attempt: Attempt) -> int | None:
    """The reply's tokens by the server's usage, else by its chunks, else unknown."""
    if attempt.completion_tokens is not None:
        return attempt.completion_tokens
    counts = [chunk.tokens for chunk in attempt.chunks]
    return sum(count or 0 for count in counts) if counts and None not in counts else None


def _refuse_poor(folder: Path, run: RunResults, sent: Sequence[Sent]) -> None:
    if run.addresses > 1:
        raise BadInput(f"was played against {run.addresses} servers; the times of one can be fitted", file=folder)
    answered = [each for each in run.attempts if each.ok and each.first is not None]
    if answered and all(_tokens(each) is None for each in answered):
        raise BadInput(
            "the server told no token counts (usage), so what a token takes cannot be known",
            file=folder,
            hint="let it report usage in streams; SGLang and vLLM do when stream_options.include_usage is honoured",
        )
    measured = sum(each.measured for each in sent)
    if measured < FEWEST:
        raise BadInput(
            f"{measured} turns were answered, {FEWEST} or more are needed to tell the constants apart",
            file=folder,
            hint="replay more sessions, or several at a time",
        )


def _notes(folder: Path, run: RunResults, sent: Sequence[Sent]) -> list[str]:
    notes = []
    measured = [each for each in sent if each.measured]
    if run.settings["plan"].get("messages") == "tools":
        notes.append(f"{folder}: tool definitions and calls are played as plain messages, a little shorter.")
    if all(each.cached is None for each in measured):
        notes.append(
            f"{folder}: the server did not tell cached tokens. How much it computed is taken from the engine's cache "
            "rules; whether it reused as much, and so what a new token costs, cannot be known from this run."
        )
    elif all(each.host is None for each in measured):
        notes.append(f"{folder}: cached tokens are not split by tier: what loading back takes cannot be told apart.")
    if all(each.tpot is None for each in measured):
        notes.append(f"{folder}: every reply came in one chunk: what a decode step takes cannot be known.")
    if run.end is None:
        notes.append(f"{folder}: the run was killed; what it holds is used.")
    return notes
