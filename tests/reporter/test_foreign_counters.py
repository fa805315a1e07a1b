from __future__ import annotations

import json

import pytest
from making_aiperf import ZERO, ns

from agentx.errors import BadInput
from agentx.reporter.foreign_counters import samples_in

URL = "http://one/metrics"


def read(tmp_path, *, lines=None, whole=None):
    scrapes, slices = tmp_path / "s.jsonl", tmp_path / "s.json"
    if lines is not None:
        scrapes.write_text("".join(json.dumps(line) + "\n" for line in lines))
    if whole is not None:
        slices.write_text(json.dumps(whole))
    return samples_in(scrapes, slices, ZERO)


def series(points, kind="counter", **labels):
    """Slices of a second, each with what a counter rose by, or a gauge's average."""
    name = "total" if kind == "counter" else "avg"
    slices = [
        {"start_ns": ns(1000 * at), "end_ns": ns(1000 * (at + 1)), name: value} for at, value in enumerate(points)
    ]
    return {"endpoint_url": URL, "labels": labels, "stats": {}, "timeslices": slices}


def family(*held, kind="counter"):
    return {"type": kind, "series": list(held)}


def test_slices_are_summed_up_from_zero(tmp_path):
    whole = {
        "metrics": {
            "sglang:prompt_tokens": family(series([100, 0, 20])),
            "sglang:cached_tokens": family(series([60, 5, 5], cache_source="device")),
            "sglang:max_total_num_tokens": family(series([900, 900, 900], "gauge"), kind="gauge"),
            "sglang:something_else": family(series([1, 1, 1])),
        }
    }
    found = read(tmp_path, whole=whole)
    assert [sample.at for sample in found] == [0.0, 1.0, 2.0, 3.0]
    assert [sample.values["prompt_tokens"] for sample in found] == [0, 100, 100, 120]
    assert [sample.values["cached_device"] for sample in found] == [0, 60, 65, 70]
    assert {sample.extra["gauges"]["pool"] for sample in found} == {900}
    assert set(found[-1].values) == {"prompt_tokens", "cached_device"}


def test_the_ranks_of_one_server_are_counted_once(tmp_path):
    both = family(series([7], tp_rank="0"), series([7], tp_rank="1"))
    assert read(tmp_path, whole={"metrics": {"sglang:prompt_tokens": both}})[-1].values == {"prompt_tokens": 7}


def test_a_series_that_begins_later_stood_at_zero(tmp_path):
    late = series([4])
    for slice in late["timeslices"]:
        slice["start_ns"], slice["end_ns"] = ns(1000), ns(2000)
    metrics = {"sglang:prompt_tokens": family(series([5, 5])), "sglang:num_requests": family(late)}
    found = read(tmp_path, whole={"metrics": metrics})
    assert [sample.values["requests"] for sample in found] == [0, 0, 4]


def test_scrapes_keep_their_values_and_moments(tmp_path):
    def scrape(at, tokens):
        return {
            "timestamp_ns": ns(at), "endpoint_url": URL,
            "metrics": {
                "sglang:prompt_tokens": [{"labels": {"engine_type": "prefill"}, "value": tokens}],
                "sglang:e2e_request_latency_seconds": [{"buckets": {"1": 2}, "sum": 1.0, "count": 2}],
            },
        }  # fmt: skip

    found = read(tmp_path, lines=[scrape(500, 1000), scrape(1500, 1300)], whole={"metrics": {}})
    assert [(sample.at, sample.values["prompt_tokens"]) for sample in found] == [(0.5, 1000), (1.5, 1300)]
    assert (found[0].endpoint, found[0].extra["role"]) == (URL, "prefill")


def test_without_an_export_there_are_none(tmp_path):
    assert read(tmp_path) == ()


@pytest.mark.parametrize(
    ("lines", "whole", "place"),
    [
        ([{"timestamp_ns": 1}], None, "s.jsonl:1: this is no scrape"),
        (None, [], "s.json: this is no export of server metrics"),
    ],
)
def test_another_files_content_is_named(tmp_path, lines, whole, place):
    with pytest.raises(BadInput) as error:
        read(tmp_path, lines=lines, whole=whole)
    assert place in str(error.value)


@pytest.mark.parametrize("odd", [5, [], {"series": 3}, {"type": "counter", "series": [4, {"timeslices": [{}]}]}])
def test_odd_shapes_tell_nothing(tmp_path, odd):
    assert read(tmp_path, whole={"metrics": {"sglang:prompt_tokens": odd}}) == ()
