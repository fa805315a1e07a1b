"""AIPerf's artifacts made by hand: rows whose moments are milliseconds after one moment."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ZERO = 1_800_000_000_000_000_000  # ns since the epoch
UNITS = {
    "time_to_first_token": "ms", "request_latency": "ms", "inter_chunk_latency": "ms", "osl_mismatch_diff_pct": "%",
}  # fmt: skip


def ns(milliseconds: float) -> int:
    return ZERO + round(milliseconds * 1e6)


def row(
    session: str = "s0", turn: int = 0, *, due: float | None = 0.0, start: float = 10.0, end: float = 110.0,
    phase: str = "profiling", error: Any = None, metadata: Mapping[str, Any] | None = None, **metrics: Any,
) -> dict[str, Any]:  # fmt: skip
    """By default a request of 100 ms that failed to tell anything."""
    told = {
        "session_num": 0, "x_request_id": f"r-{session}-{turn}", "x_correlation_id": f"c-{session}",
        "conversation_id": session, "turn_index": turn, "credit_issued_ns": None if due is None else ns(due),
        "request_start_ns": ns(start), "request_end_ns": ns(end), "worker_id": "w", "record_processor_id": "p",
        "benchmark_phase": phase, "was_cancelled": False, "agent_depth": 0, **(metadata or {}),
    }  # fmt: skip
    values = {name: {"value": value, "unit": UNITS.get(name, "tokens")} for name, value in metrics.items()}
    return {"metadata": told, "metrics": values} | ({} if error is None else {"error": error})


def answered(session: str = "s0", turn: int = 0, *, start: float = 10.0, **other: Any) -> dict[str, Any]:
    """First token 40 ms after the start, two more each 30 ms later: 3 chunks, 3 tokens, 100 ms."""
    told = {
        "time_to_first_token": 40.0, "inter_chunk_latency": [30.0, 30.0], "request_latency": 100.0,
        "usage_prompt_tokens": 200, "usage_completion_tokens": 3, "input_sequence_length": 200,
        "output_sequence_length": 3, "osl_mismatch_diff_pct": 0.0, "usage_prompt_cache_read_tokens": 150,
    }  # fmt: skip
    return row(session, turn, start=start, end=start + 101, **{**told, "due": start - 10, **other})


def write_rows(folder: Path, rows: Iterable[Any], name: str = "profile_export.jsonl") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(json.dumps(one) + "\n" for one in rows))
    return folder / name


def summary(**other: Any) -> dict[str, Any]:
    """What AIPerf writes of an agentx run at its end."""
    return {
        "aiperf_version": "1.0.12",
        "request_count": {"unit": "requests", "avg": 2.0},
        "was_cancelled": False,
        "metadata": {
            "scenario": "agentx",
            "submission_valid": False,
            "submission_invalid_reasons": ["unsafe_override"],
        },
        "run_info": {"random_seed": 42},
        "input_config": {
            "models": {"items": [{"name": "glm"}]},
            "endpoint": {"urls": ["http://127.0.0.1:9"], "type": "chat"},
            "datasets": [{"name": "main", "path": "/data/weka", "format": "weka_trace"}],
            "phases": [{"kind": "profiling", "duration": 60.0, "concurrency": 4, "timing_mode": "agentic_replay"}],
        },
        **other,
    }
