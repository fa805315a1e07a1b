from __future__ import annotations

import json

import pytest
from making_aiperf import answered, row, write_rows

from agentx.core import Cached, Chunk
from agentx.errors import BadInput
from agentx.reporter.foreign_rows import UNTOLD, attempts_of, read_rows, second_zero


def attempts(tmp_path, *rows):
    read, tear = read_rows(write_rows(tmp_path, rows))
    assert tear is None
    return list(attempts_of(read, second_zero(read)))


def test_every_time_is_seconds_of_the_runs_clock(tmp_path):
    """The earliest moment is a credit, at 0 ms; the request starts at 10 ms, its tokens come at 50, 80 and 110 ms."""
    (one,) = attempts(tmp_path, answered())
    assert (one.due, one.sent) == (0.0, 0.01)
    assert [one.first, one.last, one.end] == pytest.approx([0.05, 0.11, 0.111])
    assert one.chunks == (Chunk(40_000, None), Chunk(70_000, None), Chunk(100_000, None))
    assert (one.session, one.play, one.turn, one.phase, one.rid) == ("s0", 0, 0, "measure", "r-s0-0")
    assert (one.prompt_tokens, one.completion_tokens, one.osl, one.cached) == (200, 3, 3, Cached(total=150))
    assert one.ok
    assert (one.status, one.extra) == (None, {})


def test_what_a_row_does_not_tell_is_unknown(tmp_path):
    (one,) = attempts(tmp_path, row(due=None))
    assert (one.first, one.last, one.cached, one.prompt_tokens, one.completion_tokens) == (None,) * 5
    assert one.chunks == ()
    assert one.extra == {UNTOLD: ["isl", "osl"]}
    assert one.due == one.sent  # nothing else can be told of it


def test_no_cached_tokens_is_not_the_same_as_none_told(tmp_path):
    zero, silent = attempts(
        tmp_path,
        answered(start=10, usage_prompt_cache_read_tokens=0),
        answered(turn=1, start=500, usage_prompt_cache_read_tokens=None),
    )
    assert zero.cached == Cached(total=0)
    assert silent.cached is None


def test_what_was_asked_for_follows_from_the_difference(tmp_path):
    """3 came, 70 % fewer than 10; 12 came, 20 % more than 10."""
    short, long = attempts(
        tmp_path,
        answered(start=10, osl_mismatch_diff_pct=-70.0),
        answered(turn=1, start=500, osl_mismatch_diff_pct=20.0, output_sequence_length=12, usage_completion_tokens=12),
    )
    assert (short.osl, long.osl) == (10, 10)


def test_without_usage_the_clients_own_counts_stand_in_and_are_marked(tmp_path):
    silent = answered(usage_prompt_tokens=None, usage_completion_tokens=None, input_sequence_length=7)
    for name in ("usage_prompt_tokens", "usage_completion_tokens"):
        del silent["metrics"][name]
    (found,), _ = read_rows(write_rows(tmp_path, [silent]))
    assert (found.prompt, found.completion, found.own_counts) == (7, 3, True)


def test_a_reply_in_one_chunk_has_its_tokens(tmp_path):
    (one,) = attempts(tmp_path, answered(inter_chunk_latency=None, request_latency=40.0))
    assert one.chunks == (Chunk(40_000, 3),)


@pytest.mark.parametrize(
    ("error", "metadata", "kind", "status"),
    [
        ({"code": 503, "type": "Service Unavailable", "message": "busy"}, {}, "http", 503),
        ({"code": 400, "message": "maximum context length is 10 tokens"}, {}, "overflow", 400),
        ({"type": "ClientConnectorError", "message": "no"}, {}, "refused", None),
        ({"type": "ServerTimeoutError", "message": "slow"}, {}, "stall", None),
        ({"type": "ServerDisconnectedError", "message": "gone"}, {}, "closed", None),
        ({"type": "SSEResponseError", "message": "an error event", "code": 502}, {}, "http", 502),
        ({"type": "InvalidInferenceResultError", "message": "empty"}, {}, "protocol", None),
        ({"code": 499, "type": "RequestCancellationError", "message": "cancelled"}, {}, "cut", None),
        (None, {"was_cancelled": True}, "cut", None),
        ({"code": 400, "message": "too long"}, {"context_overflow_skip": True}, "overflow", 400),
        ("no object at all", {}, "protocol", None),
    ],
)
def test_a_failure_has_a_kind(tmp_path, error, metadata, kind, status):
    (one,) = attempts(tmp_path, row(error=error, metadata=metadata))
    assert one.failure is not None
    assert (one.failure.kind, one.status) == (kind, status)


def test_a_failed_prompt_has_the_length_that_the_client_counted(tmp_path):
    (one,) = attempts(tmp_path, row(error={"message": "broke"}, error_isl=17))
    assert (one.isl, one.prompt_tokens, one.extra) == (17, None, {UNTOLD: ["osl"]})


def test_plays_lanes_turns_and_tries(tmp_path):
    """s0 is played twice, by two correlation ids; its subagent shares the lane; a turn sent again is a try."""
    found = attempts(
        tmp_path,
        answered("s0", 3, start=10, phase="warmup", metadata={"root_correlation_id": "c-s0"}),
        answered("s0", 3, start=200, metadata={"root_correlation_id": "c-s0"}),
        answered("s0::sa:x", 0, start=300, metadata={"root_correlation_id": "c-s0", "agent_depth": 1}),
        answered("s0", 0, start=400, metadata={"x_correlation_id": "later"}),
        answered("s1", 0, start=500, metadata={"turn_index": None}),
        answered("s1", 0, start=600, metadata={"turn_index": None}),
    )
    keys = [(one.session, one.play, one.turn, one.attempt, one.lane) for one in found]
    assert keys == [
        ("s0", 0, 3, 0, 0), ("s0", 0, 3, 1, 0), ("s0::sa:x", 0, 0, 0, 0), ("s0", 1, 0, 0, 1),
        ("s1", 0, 0, 0, 2), ("s1", 0, 1, 0, 2),
    ]  # fmt: skip
    assert [one.phase for one in found[:2]] == ["warmup", "measure"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("[]", "no row of AIPerf's record export"),
        ('{"metadata": {}}', "no request_start_ns"),
        ("{", "no whole JSON value"),
        (json.dumps(row(start=5, end=4)), "is before request_start_ns"),
        (json.dumps(row(metadata={"request_start_ns": "soon"})), "'soon' is not a moment"),
        (json.dumps(answered(time_to_first_token=-1)), "-1 is not a number of milliseconds"),
        (json.dumps(answered(time_to_first_token=1e300)), "1e+300 is not a number of milliseconds"),
        (json.dumps(answered(usage_prompt_tokens=-5)), "-5 is not a number of tokens"),
        (json.dumps(answered(usage_prompt_tokens=1.5)), "1.5 is not a number of tokens"),
        (json.dumps(answered(inter_chunk_latency=[1, None])), "None is not a number of milliseconds"),
        (json.dumps(answered(inter_chunk_latency=3)), "is not a list"),
        (json.dumps(answered()).replace('"ms"', '"sec"'), "is in 'sec'"),
        (json.dumps(answered()).replace("40.0", "NaN"), "NaN is not a number"),
    ],
)
def test_a_damaged_row_is_named_with_its_line(tmp_path, line, words):
    path = write_rows(tmp_path, [answered()])
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(BadInput) as error:
        read_rows(path)
    assert f"{path}:2: " in str(error.value)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_row_cut_by_a_kill_leaves_the_others(tmp_path):
    path = write_rows(tmp_path, [answered(), answered(turn=1)])
    path.write_bytes(path.read_bytes()[:-20])
    rows, tear = read_rows(path)
    assert len(rows) == 1
    assert tear is not None
    assert "its last row is not whole" in str(tear)


def test_no_rows_at_all_is_said(tmp_path):
    path = write_rows(tmp_path, [])
    path.write_text("\n\n")
    with pytest.raises(BadInput, match="holds no request"):
        read_rows(path)
