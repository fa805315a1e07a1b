"""The run folder: what was sent and what came of it, complete enough to recompute what was sent.

    run.json        resolved plan, target, salt, seed, environment, word list, trace (path, sha256), written first
    results.agx     frames: `results` (version, wall clock of second 0), `begun` and `play` (a play's first turn, and
                    its end), `attempt`, `sample`, `note`, `end`
    results-W.agx   the attempts and plays of worker W, and its own `end`, where several workers played
    trace.trace     a copy of the trace, when it is small

Records are flushed one by one: Ctrl-C and kill -9 leave a readable folder, which without `end` is a partial run. A
worker whose file has no `end` was lost; what it had recorded counts. All files are read as one.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from agentx.chunks import Chunks
from agentx.core import Attempt, Cached, Failure, Play, Sample
from agentx.errors import BadInput
from agentx.frames import FrameReader, FrameWriter, Tear, open_for_reading

VERSION = 1
RESULTS, SETTINGS, TRACE = "results.agx", "run.json", "trace.trace"

AttemptKey = tuple[str, int, int, int]  # session, play, turn, attempt


def key_of(attempt: Attempt) -> AttemptKey:
    """Which attempt of a run it is: what figures of the same attempt are joined by."""
    return attempt.session, attempt.play, attempt.turn, attempt.attempt


@dataclass(frozen=True, slots=True)
class Books:
    """Every play and every turn that came in, and where it went. `balanced` says whether nothing is missing."""

    plays: int
    done: int
    failed: int
    cut: int
    turns: int
    completed: int
    turns_failed: int
    turns_unsent: int

    @property
    def balanced(self) -> bool:
        plays = self.done + self.failed + self.cut
        return self.plays == plays and self.turns == self.completed + self.turns_failed + self.turns_unsent


@dataclass(frozen=True)
class RunResults:
    """A run folder that was read. `end` is None for a run that was killed, `tear` tells what could not be read."""

    folder: Path
    settings: Mapping[str, Any]
    wall: float  # seconds since the epoch at second 0 of the run's clock
    attempts: tuple[Attempt, ...]
    plays: tuple[Play, ...]
    samples: tuple[Sample, ...]
    notes: tuple[str, ...] = ()
    end: Mapping[str, Any] | None = None
    tear: Tear | None = None
    unknown: tuple[tuple[str, Mapping[str, Any]], ...] = field(default=())
    workers: tuple[Mapping[str, Any] | None, ...] = ()  # the end of each worker's own file, where several played

    @property
    def ends(self) -> list[Mapping[str, Any]]:
        """What each process that played says of itself at its end; those that were lost say nothing."""
        return [end for end in self.workers or (self.end,) if end is not None]

    @property
    def addresses(self) -> int:
        """How many servers the run's lanes were dealt out to."""
        target = self.settings.get("target")
        urls = target.get("urls") if isinstance(target, Mapping) else None
        return len(urls) if isinstance(urls, list) and urls else 1

    def server_of(self, lane: int) -> int:
        """Which of them, from 0, had the turns of a lane: one rule with the replayer's."""
        return lane % self.addresses

    @property
    def complete(self) -> bool:
        return self.end is not None and self.end.get("outcome") == "done"

    @property
    def trace_path(self) -> Path:
        """The trace that was replayed: the folder's copy, else where it lay. Raises BadInput when neither is known."""
        copy = self.folder / TRACE
        if copy.exists():
            return copy
        trace = self.settings.get("trace")
        if not isinstance(trace, dict) or not isinstance(trace.get("path"), str):
            raise BadInput("does not say which trace was replayed", file=self.folder / SETTINGS)
        return Path(trace["path"])

    def books(self) -> Books:
        """Recounted from the records. A play that has attempts but no record of its end counts as cut."""
        outcomes = Counter(play.outcome for play in self.plays)
        recorded = {(play.session, play.play) for play in self.plays}
        open_plays = {(attempt.session, attempt.play) for attempt in self.attempts} - recorded
        final = {(attempt.session, attempt.play, attempt.turn): attempt.ok for attempt in self.attempts}
        completed, failed = sum(final.values()), sum(not ok for ok in final.values())
        orphans = sum((session, play) in open_plays for session, play, _ in final)
        turns = sum(play.turns for play in self.plays) + orphans
        return Books(
            plays=len(recorded | open_plays),
            done=outcomes["done"],
            failed=outcomes["failed"],
            cut=outcomes["cut"] + len(open_plays),
            turns=turns,
            completed=completed,
            turns_failed=failed,
            turns_unsent=sum(play.turns - play.sent for play in self.plays),
        )


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hex. Raises BadInput when it cannot be read."""
    found = hashlib.sha256()
    with open_for_reading(path) as file:
        while data := file.read(1 << 20):
            found.update(data)
    return found.hexdigest()


class Frames(Protocol):
    """Where records go: a file, or whatever brings them to one."""

    def write(self, kind: str, body: dict[str, Any]) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...


class Records:
    """Writes records as frames. Raises WriteFailed when the disk is full."""

    def __init__(self, file: Frames, head: Mapping[str, Any]) -> None:
        self._file = file
        self._record("results", {"version": VERSION, **head})

    def attempt(self, attempt: Attempt) -> None:
        self._record("attempt", _body(attempt))

    def begun(self, session: str, play: int, lane: int, turns: int, started: float) -> None:
        """A play's first turn is sent: what is known of the play if nothing more comes of it."""
        fields = {"session": session, "play": play, "lane": lane, "turns": turns, "started": started}
        self._record("begun", fields)

    def play(self, play: Play) -> None:
        self._record("play", _body(play))

    def sample(self, sample: Sample) -> None:
        self._record("sample", _body(sample))

    def note(self, text: str) -> None:
        """A finding of the run itself, in words."""
        self._record("note", {"text": text})

    def end(self, outcome: str, at: float, facts: Mapping[str, Any] | None = None) -> None:
        """Close the run. `outcome`: done | interrupted | failed; `facts`: what only the driver knows."""
        self._record("end", {**(facts or {}), "outcome": outcome, "at": at})
        self._file.close()

    def close(self) -> None:
        """Close without an end record, as a kill would."""
        self._file.close()

    def _record(self, kind: str, body: dict[str, Any]) -> None:
        self._file.write(kind, body)
        self._file.flush()


class ResultsWriter(Records):
    """Writes a new run folder. Raises BadInput when it holds results already, WriteFailed when the disk is full."""

    def __init__(self, folder: Path | str, settings: Mapping[str, Any], wall: float) -> None:
        self.folder = Path(folder)
        if (self.folder / RESULTS).exists():
            raise BadInput("holds a run already", file=self.folder, hint="choose another folder or remove it")
        file = FrameWriter(self.folder / RESULTS)
        try:
            (self.folder / SETTINGS).write_text(json.dumps(settings, indent=1, sort_keys=True) + "\n")
        except OSError as error:
            raise BadInput(f"cannot be written: {error.strerror}", file=self.folder / SETTINGS) from None
        super().__init__(file, {"wall": wall})


def part_path(folder: Path, worker: int) -> Path:
    """Where a worker's own records lie."""
    return folder / f"results-{worker}.agx"


def read_results(folder: Path | str) -> RunResults:
    """Read a run folder. Raises BadInput when it is not one, or was written by a newer version."""
    folder = Path(folder)
    settings = _settings(folder)
    head, records, tear = _read(folder / RESULTS)
    if isinstance(workers := settings.get("workers"), list):
        paths = [part_path(folder, number) for number in range(len(workers))]
        parts = [_read(path) for path in paths if path.exists() and path.stat().st_size]
        ends = {part_head.get("worker"): part["end"] for part_head, part, _ in parts}
        records["workers"] = tuple(ends.get(number) for number in range(len(workers)))
        for name, at in (("attempts", _ended), ("plays", _play_ended), ("unknown", None)):
            together = chain(records[name], *(part[name] for _, part, _ in parts))
            records[name] = tuple(together if at is None else sorted(together, key=at))
        tear = tear or next((torn for _, _, torn in parts if torn is not None), None)
    return RunResults(folder=folder, settings=settings, wall=float(head.get("wall", 0.0)), tear=tear, **records)


def _ended(attempt: Attempt) -> float:
    return attempt.sent if attempt.end is None else attempt.end


def _play_ended(play: Play) -> float:
    return play.ended


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any], Tear | None]:
    """The head of a results file, its records by kind, and where it is torn."""
    reader = FrameReader(path)
    frames = iter(reader)
    kind, head = next(frames, ("", {}))
    if kind != "results":
        raise BadInput("this is not a results file", file=path)
    if head.get("version") != VERSION:
        raise BadInput(f"results version {head.get('version')} is not the {VERSION} that this agentx reads", file=path)
    return head, _collect(frames, path), reader.tear


def _settings(folder: Path) -> dict[str, Any]:
    path = folder / SETTINGS
    if folder.is_file():
        raise BadInput("is a file, a run folder is needed", file=folder, hint="'agentx replay -o' makes one")
    if not folder.is_dir():
        raise BadInput("no such run folder", file=folder)
    if not path.exists():
        raise BadInput(f"this folder is not a run: it has no {SETTINGS}", file=folder)
    try:
        settings = json.loads(path.read_text())
    except (ValueError, OSError) as error:
        raise BadInput(f"cannot be read: {error}", file=path) from None
    if not isinstance(settings, dict):
        raise BadInput("is not a JSON object", file=path)
    return settings


def _collect(frames: Iterator[tuple[str, dict[str, Any]]], path: Path) -> dict[str, Any]:
    attempts, plays, samples, notes, unknown = [], [], [], [], []
    begun: dict[tuple[str, int], Play] = {}
    end = None
    for kind, body in frames:
        try:
            if kind == "attempt":
                attempts.append(_attempt(body))
            elif kind == "begun":
                open_play = _open_play(body)
                begun[open_play.session, open_play.play] = open_play
            elif kind == "play":
                plays.append(_value(Play, body))
                begun.pop((plays[-1].session, plays[-1].play), None)
            elif kind == "sample":
                samples.append(_value(Sample, body))
            elif kind == "note":
                notes.append(str(body["text"]))
            elif kind == "end":
                end = body
            else:
                unknown.append((kind, body))
        except (TypeError, KeyError, ValueError, OverflowError) as error:
            raise BadInput(f"a {kind} record is not whole: {error}", file=path) from None
    plays += _cut(begun, attempts)
    return {
        "attempts": tuple(attempts),
        "plays": tuple(plays),
        "samples": tuple(samples),
        "notes": tuple(notes),
        "unknown": tuple(unknown),
        "end": end,
    }


def _open_play(body: dict[str, Any]) -> Play:
    open_play: Play = _value(
        Play, {**body, "outcome": "cut", "sent": 0, "completed": 0, "ended": body["started"], "unrecorded": True}
    )
    return open_play


def _cut(begun: Mapping[tuple[str, int], Play], attempts: Sequence[Attempt]) -> Iterator[Play]:
    """Plays whose end was not recorded, as the records of their turns tell them."""
    turns: dict[tuple[str, int], dict[int, Attempt]] = {}
    for attempt in attempts:
        turns.setdefault((attempt.session, attempt.play), {})[attempt.turn] = attempt
    for key, play in begun.items():
        final = turns.get(key, {})
        ended = max((_ended(attempt) for attempt in final.values()), default=play.started)
        completed = sum(attempt.ok for attempt in final.values())
        yield replace(play, sent=len(final), completed=completed, ended=ended)


_SCALARS = (int, float, str)
_NAMES = {kind: tuple(item.name for item in fields(kind) if item.name != "extra") for kind in (Attempt, Play, Sample)}


def _body(value: Attempt | Play | Sample) -> dict[str, Any]:
    """A record as a plain map: absent fields are left out, unknown ones come back."""
    body = {
        name: content if isinstance(content, _SCALARS) else _plain(content)
        for name in _NAMES[type(value)]
        if (content := getattr(value, name)) is not None and content != ()
    }
    body.update(value.extra)
    return body


def _plain(content: Any) -> Any:
    if isinstance(content, Cached):
        return {item.name: getattr(content, item.name) for item in fields(content)}
    if isinstance(content, Failure):
        return {"kind": content.kind, "message": content.message}
    if isinstance(content, tuple | Chunks):  # chunks, flat: microseconds and tokens in turn
        return [part for chunk in content for part in chunk]
    return dict(content) if isinstance(content, Mapping) else content


def _attempt(body: dict[str, Any]) -> Attempt:
    cached, failure = body.get("cached"), body.get("failure")
    told = {
        **body,
        "chunks": Chunks.read(body.get("chunks", ())),
        "cached": None if cached is None else Cached(**cached),
        "failure": None if failure is None else Failure(**failure),
    }
    attempt: Attempt = _value(Attempt, told)
    return attempt


_PLAIN: dict[str, tuple[type, ...]] = {  # what a field of such an annotation may hold; others: anything
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "int | None": (int, type(None)),
    "float | None": (int, float, type(None)),
    "str | None": (str, type(None)),
}


_TYPES = {
    kind: {item.name: _PLAIN.get(str(item.type), ()) for item in fields(kind) if item.name != "extra"}
    for kind in (Attempt, Play, Sample)
}


def _value(kind: type[Attempt | Play | Sample], body: dict[str, Any]) -> Any:
    types = _TYPES[kind]
    known, extra = {}, {}
    for key, value in body.items():
        allowed = types.get(key)
        if allowed is None:
            extra[key] = value
        elif allowed and type(value) not in allowed:
            raise ValueError(f"{key}: {value!r} is not of type {' or '.join(one.__name__ for one in allowed)}")
        else:
            known[key] = value
    return kind(**known, extra=extra)
