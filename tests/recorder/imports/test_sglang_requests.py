"""SGLang's metrics file, request log and dumps: the same requests, three times."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from logs import Json, lines, take

from agentx.errors import BadInput

IDS = [list(range(100)), [*range(100), *range(500, 560)]]  # a second prompt that goes on from the first
START = 1_796_054_300.0


@dataclass
class GenerateReqInput:
    """As SGLang's class of this name: a record is all that is read."""

    input_ids: list[int]
    rid: str = "r"
    sampling_params: dict[str, Any] = field(default_factory=lambda: {"max_new_tokens": 64})
    routing_key: str | None = "s1"
    text: str | None = None


def meta(number: int, **more: Any) -> Json:
    begin = START + 10 * number
    return {
        "id": f"r{number}",
        "finish_reason": {"type": "stop"},
        "prompt_tokens": len(IDS[number]),
        "completion_tokens": 5 + number,
        "cached_tokens": 64 * number,
        "e2e_latency": 2.0,
        "request_received_ts": begin,
        "first_token_latency": 0.5,
        "request_finished_ts": begin + 2,
        **more,
    }


def metrics(folder: Path) -> Path:
    rows = [{"request_parameters": json.dumps({"rid": f"r{n}", "input_ids": IDS[n], "routing_key": "s1"}), **meta(n)}
            for n in (0, 1)]  # fmt: skip
    return lines(folder / "sglang-request-metrics-20261130_15.log", *rows)


def iso(seconds: float) -> str:
    whole, part = divmod(seconds - START, 1)
    return f"2026-11-30T15:58:{int(whole):02d}.{round(part * 1e6):06d}"


def log(folder: Path, change: Any = lambda obj: obj) -> Path:
    rows: list[str] = []
    for n in (0, 1):
        obj, headers = change({"rid": f"r{n}", "input_ids": IDS[n], "text": None}), {"x-smg-routing-key": "s1"}
        at = START + 10 * n
        openai = {"timestamp": iso(at), "event": "request.received.openai", "obj": {"messages": []}}
        came = {"timestamp": iso(at), "event": "request.received", "rid": f"r{n}", "obj": obj, "headers": headers}
        out = {"text": "hi", "meta_info": {k: v for k, v in meta(n).items() if "_ts" not in k and "latency" not in k}}
        done = {"timestamp": iso(at + 2), "event": "request.finished", "rid": f"r{n}", "out": out}
        rows += [f"[2026-11-30 15:58:29] {json.dumps(row)}" for row in (openai, came, done)]
    return lines(folder / "host_0.log", *rows, "[2026-11-30 15:58:29] Prefill batch, #new-seq: 1")


def dump(folder: Path) -> Path:
    requests = [(GenerateReqInput(IDS[n], f"r{n}"), {"text": "hi", "meta_info": meta(n)}, START + 10 * n,
                 START + 10 * n + 2) for n in (0, 1)]  # fmt: skip
    path = folder / "crash_dump.pkl"
    path.write_bytes(pickle.dumps({"server_args": GenerateReqInput([1]), "requests": requests}))
    return path


@pytest.mark.parametrize(
    ("module", "write", "ttft"),
    [("sglang_metrics", metrics, 0.5), ("sglang_log", log, None), ("sglang_dump", dump, 0.5)],
)
def test_three_files_tell_the_same(tmp_path: Path, module: str, write: Any, ttft: float | None) -> None:
    taken = take(module, write(tmp_path))
    (session,) = taken.sessions
    first, second = session.turns
    assert taken.lengths() == [(100, 5), (160, 6)]
    assert (second.after, second.gap.kind, second.gap.seconds, second.thread) == ((0,), "unknown", 8.0, 0)
    assert first.observed is not None
    assert second.observed is not None
    assert (first.observed.start, first.observed.ttft, first.observed.end) == (0.0, ttft, 2.0)
    assert second.observed.cached == 64
    assert taken.header.provenance["fidelity"]["timing"] == ("start-end" if ttft is None else "ttft")
    assert session.pieces(1)[0] == session.pieces(0)[0]  # all hundred of them, not just the whole blocks


def test_ids_that_the_log_cut_are_known_to_the_cut(tmp_path: Path) -> None:
    """Level 2 keeps the head and the tail of a long prompt: what is between is not the same in two of them."""

    def cut(obj: Json) -> Json:
        return {**obj, "input_ids": [*obj["input_ids"][:64], "...", *obj["input_ids"][-20:]]}

    taken = take("sglang_log", log(tmp_path, cut))
    assert taken.lengths() == [(100, 5), (160, 6)]
    assert taken.books.notes["prompt that the log cut in the middle: what is behind the cut occurs nowhere else"] == 2
    (session,) = taken.sessions
    assert session.pieces(1)[0] == session.pieces(0)[0]._replace(stop=64)
    assert sum(piece.tokens for piece in session.pieces(1)) == 160


@pytest.mark.parametrize("text", [None, "x" * 1024 + " ... " + "y" * 1024])
def test_below_level_2_there_are_only_lengths(tmp_path: Path, text: str | None) -> None:
    taken = take("sglang_log", log(tmp_path, lambda obj: {"rid": obj["rid"], "text": text}))
    assert taken.lengths() == [(100, 5), (160, 6)]
    assert taken.books.notes["prompt that is not in the file: only its length is known"] == 2


def test_text_is_used_where_ids_are_not(tmp_path: Path) -> None:
    def rendered(obj: Json) -> Json:
        return {
            "rid": obj["rid"],
            "text": "You are an agent. " * 20 + ("And more. " * 20 if obj["rid"] == "r1" else ""),
        }

    (session,) = take("sglang_log", log(tmp_path, rendered)).sessions
    assert session.pieces(1)[0].segment == session.pieces(0)[0].segment


def test_requests_that_never_end_and_lines_of_others(tmp_path: Path) -> None:
    path = log(tmp_path)
    extra = {"timestamp": iso(START), "event": "request.received", "rid": "lost", "obj": {}}
    path.write_text(path.read_text() + json.dumps(extra) + "\n" + json.dumps({**extra, "event": "request.finished"}) +
                    "\n" + json.dumps({**extra, "rid": "open"}) + "\n")  # fmt: skip
    taken = take("sglang_log", path)
    assert len(taken.turns) == 2
    dropped = taken.books.rows.dropped
    assert dropped["request that was never done"] == 1
    assert dropped["line that is about no request"] == 1
    assert dropped["request without an answer in the file"] == 1


def test_a_dump_that_runs_something_is_data_too(tmp_path: Path) -> None:
    path = tmp_path / "a.pkl"
    path.write_bytes(b"(S'x'\nios\nsystem\n.")
    with pytest.raises(BadInput, match="the dump is refused: the opcode INST is not of data"):
        take("sglang_dump", path)


@pytest.mark.parametrize("value", [[], {}, {"requests": []}, {"requests": [3, (1, 2), ("a", "b", "c")]}])
def test_a_dump_without_calls(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps(value))
    with pytest.raises(BadInput, match="0 model calls"):
        take("sglang_dump", path)


def test_an_aborted_request(tmp_path: Path) -> None:
    row = {"request_parameters": json.dumps({"input_ids": IDS[0]}), **meta(0, finish_reason={"type": "abort"})}
    (turn,) = take("sglang_metrics", lines(tmp_path / "a.log", row)).turns
    assert turn.observed is not None
    assert turn.observed.status == "client_abort"
