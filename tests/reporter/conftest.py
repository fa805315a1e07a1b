"""Tiny factories for runs made by hand. Sessions are the letters a, b, c ...; times are seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from making import header, linear

from agentx.core import Attempt, Cached, Chunk, Failure, Play, Sample
from agentx.results import TRACE, RunResults, sha256_of
from agentx.trace import TraceWriter

DONE = {"outcome": "done", "at": 100.0}


def make_attempt(
    session: str = "a",
    turn: int = 0,
    *,
    sent: float = 0.0,
    chunks: Sequence[tuple[float, int | None]] = ((1.0, 1), (2.0, 1)),  # (seconds after sent, tokens)
    told: int | None = 2,
    prompt: int | None = 100,
    cached: int | Cached | None = None,
    failed: str | None = None,
    **other: Any,
) -> Attempt:
    """An answered attempt of 100 prompt tokens, its two tokens 1 and 2 seconds after it was sent."""
    times = [sent + at for at, _ in chunks]
    end = times[-1] if times else None
    own: dict[str, Any] = {
        "due": sent,
        "isl": 100,
        "osl": 2,
        "play": 0,
        "thread": 0,
        "lane": 0,
        "first": times[0] if times else None,
        "last": end,
        "end": end,
        "status": 200,
        **other,
    }
    return Attempt(
        session=session,
        turn=turn,
        sent=sent,
        chunks=tuple(Chunk(round(at * 1e6), tokens) for at, tokens in chunks),
        completion_tokens=told,
        prompt_tokens=prompt,
        cached=Cached(total=cached) if isinstance(cached, int) else cached,
        failure=None if failed is None else Failure(failed, f"{failed} happened"),
        **own,
    )


def make_play(session: str = "a", *, turns: int = 1, outcome: str = "done", **other: Any) -> Play:
    own: dict[str, Any] = {"play": 0, "lane": 0, "sent": turns, "completed": turns, "started": 0.0, "ended": 2.0}
    return Play(session=session, turns=turns, outcome=outcome, **{**own, **other})


def make_sample(at: float, endpoint: str = "one", **values: float) -> Sample:
    return Sample(at, endpoint, values)


def make_run(
    attempts: Sequence[Attempt] = (),
    plays: Sequence[Play] = (),
    samples: Sequence[Sample] = (),
    *,
    settings: Mapping[str, Any] | None = None,
    end: Mapping[str, Any] | None = DONE,
    folder: Path = Path("run"),
    **other: Any,
) -> RunResults:
    return RunResults(
        folder=folder,
        settings=settings or {},
        wall=1_700_000_000.0,
        attempts=tuple(attempts),
        plays=tuple(plays),
        samples=tuple(samples),
        end=end,
        **other,
    )


@pytest.fixture(scope="session")
def attempt() -> Callable[..., Attempt]:
    return make_attempt


@pytest.fixture(scope="session")
def play() -> Callable[..., Play]:
    return make_play


@pytest.fixture(scope="session")
def sample() -> Callable[..., Sample]:
    return make_sample


@pytest.fixture(scope="session")
def run() -> Callable[..., RunResults]:
    return make_run


@pytest.fixture
def full(attempt, play, sample, run, tmp_path):
    """A run in which every part of the document is there."""
    with TraceWriter(tmp_path / TRACE, header()) as trace:
        for name in ("a", "b"):
            trace.session(linear(2, id=name))
    settings = {
        "plan": {"wire": "chat", "salt": "run", "history": "recorded"},
        "salt": "x",
        "template": {"start": 0, "per_message": 0},
        "target": {"kind": "engine", "name": "laptop", "gpus": 2},
        "trace": {"name": "test", "sha256": sha256_of(tmp_path / TRACE)},
    }
    made = [
        attempt("a", 0, prompt=75, cached=0, server_ttft=0.9, queue_seconds=0.1),
        attempt("a", 1, sent=3.0, prompt=90, cached=60, osl=9),
        attempt("b", 0, phase="warmup"),
        attempt("a", 1, sent=9.0, failed="http", status=500, attempt=1),
    ]
    samples = [sample(-1, prefill_input=0, prefill_device_hit=0), sample(9, prefill_input=100, prefill_device_hit=60)]
    plays = [play("a", turns=2, outcome="failed", completed=1)]
    return run(made, plays, samples, settings=settings, folder=tmp_path)
