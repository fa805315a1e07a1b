"""A folder that AIPerf wrote (agentx-harness is AIPerf with a scenario), read as a run, as far as it goes.

    profile_export.jsonl            a row for each request: needed
    profile_export_aiperf.json      how the run was set up, and whether it came to its end
    server_metrics_export.jsonl     the server's counters (or .json)
    inputs.json                     how many turns a session has

What these files do not tell stays unknown, and the report says what that is. A conversation is a session, a subagent's
too; it is played once for each correlation id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agentx.core import Attempt, Play
from agentx.errors import BadInput
from agentx.frames import open_for_reading
from agentx.recorder.imports.instants import count, listing, mapping, number
from agentx.recorder.imports.source import parse
from agentx.reporter.findings import counted
from agentx.reporter.foreign_counters import samples_in
from agentx.reporter.foreign_rows import Row, attempts_of, read_rows, second_zero, text
from agentx.reporter.throughput import MEASURED
from agentx.results import SETTINGS, RunResults, read_results

LARGEST = 1 << 28  # bytes of an inputs.json that is read for the number of turns
Json = Mapping[str, Any]


class Artifacts(NamedTuple):
    """Where the files of one AIPerf run lie."""

    rows: Path
    summary: Path
    inputs: Path
    scrapes: Path
    slices: Path

    @property
    def exist(self) -> bool:
        """Whether AIPerf wrote something here."""
        return self.rows.exists() or self.summary.exists()


def artifacts(path: Path) -> Artifacts:
    """Of a folder with AIPerf's own names, or of a file PREFIX.jsonl, as --profile-export-prefix names it."""
    folder, prefix = (path.parent, path.stem) if path.suffix == ".jsonl" else (path, "profile_export")
    if prefix == "profile_export":
        names = ("profile_export_aiperf.json", "server_metrics_export")
    else:
        names = (f"{prefix}.json", f"{prefix}_server_metrics")
    summary, counters = folder / names[0], folder / names[1]
    lines, whole = counters.with_name(f"{counters.name}.jsonl"), counters.with_name(f"{counters.name}.json")
    return Artifacts(folder / f"{prefix}.jsonl", summary, folder / "inputs.json", lines, whole)


def read_run(path: Path | str) -> RunResults:
    """A run folder of agentx, or what AIPerf left. Raises BadInput for what is neither, or is damaged."""
    path = Path(path)
    if (path / SETTINGS).exists():
        return read_results(path)
    if (found := artifacts(path)).exist:
        return read_foreign(found)
    if inner := sorted(path.glob("profile_runs/*/profile_export.jsonl")):
        told = f"AIPerf left {counted(len(inner), 'run')} here"
        raise BadInput(told, file=path, hint=f"take one, such as {inner[0].parent}")
    return read_results(path)


def read_foreign(found: Artifacts) -> RunResults:
    """Raises BadInput, with file and line, where a row or a file is damaged, or the rows are not there."""
    if not found.rows.exists():
        raise BadInput(
            f"AIPerf left no {found.rows.name} here, which has a row for each request",
            file=found.rows.parent,
            hint="--export-level records writes it",
        )
    rows, tear = read_rows(found.rows)
    summary, sizes = _document(found.summary), _sizes(found.inputs)
    zero = second_zero(rows)
    attempts = tuple(attempts_of(rows, zero))
    samples = samples_in(found.scrapes, found.slices, zero)
    plays = tuple(_plays(attempts, sizes))
    unsized, summed = len(plays) < len(_keys(attempts)), not found.scrapes.exists()
    lacks = (*_lacks(rows, summary is not None, unsized), *_lacks_of_server(bool(samples), summed))
    return RunResults(
        folder=found.rows.parent,
        settings=_settings(summary or {}, rows, lacks),
        wall=zero / 1e9,
        attempts=attempts,
        plays=plays,
        samples=samples,
        notes=tuple(_notes(summary or {}, rows)),
        end=_end(summary, attempts),
        tear=tear,
    )


def _document(path: Path) -> Json | None:
    """A JSON object; None where there is no such file."""
    if not path.exists():
        return None
    with open_for_reading(path) as file:
        value = parse(file.read(), path)
    if not isinstance(value, dict):
        raise BadInput("is not a JSON object", file=path)
    return value


def _sizes(path: Path) -> dict[str, int]:
    """Turns by conversation."""
    if not path.exists() or path.stat().st_size > LARGEST:
        return {}
    sessions = map(mapping, listing((_document(path) or {}).get("data")))
    sized = {text(one, "session_id"): len(listing(one.get("payloads"))) for one in sessions}
    return {name: turns for name, turns in sized.items() if name is not None and turns}


def _keys(attempts: Sequence[Attempt]) -> set[tuple[str, int]]:
    return {(one.session, one.play) for one in attempts}


def _plays(attempts: Sequence[Attempt], sizes: Mapping[str, int]) -> Iterator[Play]:
    """Of the conversations whose number of turns is known: done with the last turn, failed with the last one sent."""
    by_play: dict[tuple[str, int], dict[int, Attempt]] = {}
    for one in attempts:
        by_play.setdefault((one.session, one.play), {})[one.turn] = one
    for (session, play), turns in by_play.items():
        size = sizes.get(session, 0)
        if size <= max(turns):
            continue
        last = turns[max(turns)]
        outcome = "failed" if not last.ok and last.failure is not None and last.failure.kind != "cut" else "cut"
        yield Play(
            session=session,
            play=play,
            lane=last.lane,
            outcome="done" if last.ok and last.turn == size - 1 else outcome,
            turns=size,
            sent=len(turns),
            completed=sum(one.ok for one in turns.values()),
            started=min(one.sent for one in turns.values()),
            ended=max(one.end or one.sent for one in turns.values()),
        )


def _end(summary: Json | None, attempts: Sequence[Attempt]) -> dict[str, Any]:
    """AIPerf writes its summary last; without it nobody says how the run ended."""
    at = max(one.end or one.sent for one in attempts)
    if summary is None:
        return {"outcome": "unknown", "at": at}
    return {"outcome": "interrupted" if summary.get("was_cancelled") is True else "done", "at": at}


def _settings(summary: Json, rows: Sequence[Row], lacks: Sequence[str]) -> dict[str, Any]:
    """What of a run's settings is known, by the names that a run of agentx gives to them."""
    config = mapping(summary.get("input_config"))
    endpoint, data = mapping(config.get("endpoint")), mapping(next(iter(listing(config.get("datasets"))), None))
    models = [text(mapping(one), "name") for one in listing(mapping(config.get("models")).get("items"))]
    urls = [url for one in listing(endpoint.get("urls")) if (url := text({"url": one}, "url")) is not None]
    trace = text(data, "path", "name", "format")
    settings: dict[str, Any] = {
        "foreign": _told(summary, len(rows), lacks),
        "target": {key: value for key, value in (
            ("url", urls[0] if urls else None),
            ("urls", urls if len(urls) > 1 else None),
            ("model", models[0] if models else None),
        ) if value is not None},
        "plan": _plan(config, endpoint, rows),
        "seed": count(mapping(summary.get("run_info")).get("random_seed")),
    }  # fmt: skip
    return settings if trace is None else {**settings, "trace": {"name": trace.replace("\\", "/").rsplit("/", 1)[-1]}}


def _plan(config: Json, endpoint: Json, rows: Sequence[Row]) -> dict[str, Any]:
    """The load as AIPerf has it: its concurrency is of sessions where it replays agents, else of requests."""
    phases = map(mapping, listing(config.get("phases")))
    phase = next((one for one in phases if one.get("kind", "profiling") == "profiling"), {})
    agents = phase.get("timing_mode") == "agentic_replay"
    concurrency, seconds = phase.get("concurrency"), number(phase.get("duration"))
    recorded = agents or all(row.recorded for row in rows)
    return {
        "history": "recorded" if recorded else "unknown",
        **({"load": {"sessions" if agents else "requests": concurrency}} if type(concurrency) is int else {}),
        **({"measure": f"{seconds:g}s"} if seconds else {}),
        **({"wire": kind} if (kind := text(endpoint, "type")) else {}),
    }


def _told(summary: Json, rows: int, lacks: Sequence[str]) -> str:
    """The finding: whose artifacts these are, and what they lack."""
    version, scenario = text(summary, "aiperf_version"), text(mapping(summary.get("metadata")), "scenario")
    tool = f"AIPerf{f' {version}' if version else ''}{f' (scenario {scenario})' if scenario else ''}"
    return (
        f"Measured by {tool}, which does not tell {'; '.join(lacks)}. Figures are recomputed from its "
        f"{counted(rows, 'row')}. Its clock of a request starts before the connection is opened and the body is sent, "
        "and a request is due when its credit was issued."
    )


def _lacks(rows: Sequence[Row], summary: bool, unsized: bool) -> Iterator[str]:
    done = [row for row in rows if row.failure is None]
    yield "what was sent (so no possible and ideal reuse)"
    yield "tokens of a chunk"
    yield "how busy the client was"
    yield "GPUs"
    if not summary:
        yield "how the run was set up and whether it came to its end (no profile_export_aiperf.json)"
    if unsized:
        yield "how many turns sessions have (inputs.json would say), so of those there are no jobs"
    for many, what in (
        (sum(row.own_counts for row in done), "the server's token counts of {}: lengths are the client's own"),
        (sum(row.ttft is None for row in done), "the first token of {}"),
        (sum(row.asked is None for row in done), "the length that was asked for of {}"),
        (sum(row.due is None for row in rows), "when {} was due: taken as when it was sent"),
    ):
        if many:
            yield what.format(counted(many, "request"))


def _lacks_of_server(counters: bool, summed: bool) -> Iterator[str]:
    """`summed`: counters are slices that were summed up, and not scrapes."""
    if not counters:
        yield "the server's counters (no server_metrics_export)"
    elif summed:
        yield "what the server counted before the first scrape of the measured phase (its .jsonl would say)"


def _notes(summary: Json, rows: Sequence[Row]) -> Iterator[str]:
    """What else is to be known."""
    measured = [row for row in rows if row.phase == MEASURED]
    told = number(mapping(summary.get("request_count")).get("avg"))
    mine = sum(row.failure is None for row in measured)
    if told is not None and round(told) != mine:
        yield f"The summary counts {told:g} answered requests, the rows {mine}: some are missing, or of another run."
    marks = mapping(summary.get("metadata"))
    if marks.get("submission_valid") is False:
        reasons = [text({"reason": one}, "reason") for one in listing(marks.get("submission_invalid_reasons"))]
        why = ", ".join(filter(None, reasons)) or "no reason is given"
        yield f"AIPerf marks the run as no valid submission ({why})."
    oracle = number(mapping(summary.get("theoretical_prefix_cache_hit")).get("avg"))
    if oracle is not None:
        yield (
            f"By AIPerf's own count {oracle:.1f} % of the prompts' blocks could have been reused: leading blocks that "
            "occur anywhere before in their session, without limits. It is not the ideal of agentx."
        )
    if subagents := len({row.played for row in measured if row.depth}):
        yield f"{counted(subagents, 'conversation')} of subagents, counted as sessions of their own."
