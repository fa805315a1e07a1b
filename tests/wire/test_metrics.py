"""Exposition text: SGLang's as it is served, hostile labels, and a round trip."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from agentx.wire.metrics import Family, Sample, encode_metrics, parse_metrics, total

SERVED = """\
# HELP sglang:prompt_tokens_total Number of prefill tokens processed.
# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{engine_type="unified",model_name="tiny",is_streaming="True"} 45012.0
sglang:prompt_tokens_total{engine_type="unified",model_name="tiny",is_streaming="False"} 8.0
sglang:cached_tokens_total{cache_source="device",model_name="tiny"} 1e3
sglang:num_retracted_reqs{pid="77",} 0
go_gc 1 1700000000000
bucket{le="+Inf"} +Inf
this is not a sample
broken{a="b 1
sglang:bad{a="b"} x

"""


def test_what_is_served_is_read() -> None:
    samples = parse_metrics(SERVED)
    assert [sample.name for sample in samples] == [
        "sglang:prompt_tokens_total",
        "sglang:prompt_tokens_total",
        "sglang:cached_tokens_total",
        "sglang:num_retracted_reqs",
        "go_gc",
        "bucket",
    ]
    assert samples[0].labels == {"engine_type": "unified", "model_name": "tiny", "is_streaming": "True"}
    assert samples[3].labels == {"pid": "77"}
    assert samples[4].value == 1
    assert samples[5].value == math.inf


def test_total_sums_and_an_absent_series_is_unknown() -> None:
    samples = parse_metrics(SERVED)
    assert total(samples, "sglang:prompt_tokens_total") == 45020
    assert total(samples, "sglang:prompt_tokens_total", is_streaming="False") == 8
    assert total(samples, "sglang:cached_tokens_total", cache_source="host") is None
    assert total(samples, "sglang:evicted_tokens_total") is None


def test_crlf_is_tolerated() -> None:
    assert parse_metrics('a{b="c"} 1\r\nd 2\r\n') == [Sample("a", 1.0, {"b": "c"}), Sample("d", 2.0)]


@given(
    value=st.floats(allow_nan=False),
    labels=st.dictionaries(
        st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,5}", fullmatch=True), st.text(max_size=12), max_size=3
    ),
)
def test_round_trip(value: float, labels: dict[str, str]) -> None:
    sample = Sample("sglang:x_total", value, labels)
    encoded = encode_metrics([Family("sglang:x_total", "counter", "back\\slash\nand line", [sample])])
    assert parse_metrics(encoded.decode("utf-8")) == [sample]
