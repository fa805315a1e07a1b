"""A run for notebooks and for other tools: one row for each request as CSV or Parquet, or an aggregate of few numbers.

The aggregate has InferenceX's names, for those who keep such files. What those names mean there and here differ in
places, so the file says which: rates are over (last end - first start) of answered requests, and the total counts
cached prompt tokens.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agentx.errors import BadInput
from agentx.frames import WriteFailed
from agentx.reporter.foreign_rows import UNTOLD
from agentx.reporter.reporting import Report
from agentx.reporter.turns import turn_times
from agentx.results import RunResults

FORMS = (".csv", ".parquet", ".json")
_PLAIN = (
    "session", "play", "turn", "thread", "attempt", "lane", "worker", "phase", "due", "sent", "first_byte", "first",
    "last", "end", "isl", "osl", "prompt_tokens", "completion_tokens", "queue_seconds", "server_ttft", "status",
    "finish",
)  # fmt: skip
_TEXTS = ("session", "phase", "finish", "failure", "failure_message")
_TIMES = (
    "due", "sent", "first_byte", "first", "last", "end", "queue_seconds", "server_ttft", "ttft", "ttft_from_due",
    "tpot", "latency",
)  # fmt: skip
Cell = str | int | float | None


def export(report: Report, run: RunResults, path: Path) -> int:
    """Write `path`, whose suffix says what: .csv, .parquet (a row a request), .json (an aggregate). Returns the rows.

    Raises BadInput for another suffix and for a missing pyarrow, WriteFailed when it cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in FORMS:
        raise BadInput(f"--export {path}: the suffix says the form", hint=f"there are {', '.join(FORMS)}")
    writers: dict[str, Callable[[], int]] = {
        ".csv": lambda: _csv(run, path),
        ".parquet": lambda: _parquet(run, path),
        ".json": lambda: _aggregate(report, path),
    }
    try:
        return writers[suffix]()
    except OSError as error:
        raise WriteFailed(path, error) from None


def columns() -> list[str]:
    """Names in the order of the columns; times are seconds of the run's clock."""
    return [
        *_PLAIN, "cached_tokens", "cached_device", "cached_host", "cached_storage", "ttft", "ttft_from_due",
        "tpot", "latency", "failure", "failure_message",
    ]  # fmt: skip


def rows(run: RunResults) -> Iterator[list[Cell]]:
    """A row for each attempt, in the order of their ends; None where it is not known."""
    for each in turn_times(run.attempts):
        one, times, cached = each.attempt, each if each.attempt.ok else None, each.attempt.cached
        untold = one.extra.get(UNTOLD, ())
        yield [
            *(None if name in untold else getattr(one, name) for name in _PLAIN),
            None if cached is None else cached.tokens,
            *((None,) * 3 if cached is None else (cached.device, cached.host, cached.storage)),
            *((None,) * 4 if times is None else (times.ttft, times.ttft_from_due, times.tpot, times.latency)),
            *((None, None) if one.failure is None else (one.failure.kind, one.failure.message)),
        ]


def _csv(run: RunResults, path: Path) -> int:
    """Empty cells for what is not known."""
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns())
        for row in rows(run):
            writer.writerow(row)
            count += 1
    return count


def _parquet(run: RunResults, path: Path) -> int:
    try:
        import pyarrow  # type: ignore[import-not-found, unused-ignore]  # an extra
        import pyarrow.parquet  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise BadInput(
            "Parquet needs pyarrow", hint="pip install 'agentx-replay[parquet]', or --export FILE.csv"
        ) from None
    table = list(rows(run))
    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    made = {
        name: pyarrow.array([row[place] for row in table], types[_type(name)]) for place, name in enumerate(columns())
    }
    pyarrow.parquet.write_table(pyarrow.table(made), path)
    return len(table)


def _type(column: str) -> type[str | int | float]:
    """Of a column, also where nothing in it is known: files of several runs are read as one table."""
    return str if column in _TEXTS else float if column in _TIMES else int


def _aggregate(report: Report, path: Path) -> int:
    path.write_text(json.dumps(aggregate(report), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return 1


def aggregate(report: Report) -> dict[str, Any]:
    """One object of InferenceX's names. Latencies in seconds; unknown is null."""
    metrics, about = report.metrics, report.about
    flow, gpus = metrics.throughput.completed, metrics.throughput.gpus
    output = flow.per_second(flow.output)
    computed, cached = flow.per_second(flow.input_computed), flow.per_second(flow.input_cached)
    given = None if computed is None or cached is None else computed + cached
    total = None if given is None or output is None else given + output
    found: dict[str, Any] = {
        "schema": "agentx/inferencex-aggregate/1",
        "note": "named as InferenceX names them, defined by agentx: rates are of answered requests of the measured "
        "phase over (last end - first start); total_tput_tps counts cached prompt tokens",
        "model": about.model,
        "num_gpus": gpus,
        "num_requests_total": metrics.attempts + sum(metrics.other_phases.values()),
        "num_requests_successful": metrics.completed,
        "duration": flow.seconds,
        "qps": metrics.completed / flow.seconds if flow.seconds else None,
        "input_tput_tps": given,
        "output_tput_tps": output,
        "total_tput_tps": total,
        "output_tput_per_gpu": _each(output, gpus),
        "tput_per_gpu": _each(total, gpus),
        "server_cache_hit_rate": None if metrics.reuse.counters is None else metrics.reuse.counters.share,
        "theoretical_cache_hit_rate": None if metrics.reuse.ideal is None else metrics.reuse.ideal.possible_share,
    }
    spreads = {
        "ttft": metrics.latency.ttft, "tpot": metrics.latency.tpot, "itl": metrics.latency.inter_token,
        "e2el": metrics.latency.latency,
    }  # fmt: skip
    for name, spread in spreads.items():
        found[f"mean_{name}"] = None if spread is None else spread.mean
        for percent in (50, 90, 95, 99):
            found[f"p{percent}_{name}"] = None if spread is None else spread.at(percent)
    for name, rates in (
        ("intvty", metrics.interactivity.streaming),
        ("e2e_norm_intvty", metrics.interactivity.end_to_end),
    ):
        for percent in (50, 90, 99):
            found[f"p{percent}_{name}"] = None if rates is None else rates.at(percent)
    return found


def _each(rate: float | None, gpus: int | None) -> float | None:
    return None if rate is None or gpus is None else rate / gpus
