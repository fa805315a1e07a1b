"""A run as rows and as an aggregate: each cell is the record's, unknown is empty, and sums agree with the report."""

from __future__ import annotations

import csv
import importlib.util
import json
from pathlib import Path

import pytest

from agentx.cli.main import main
from agentx.core import Cached
from agentx.errors import BadInput
from agentx.reporter.export import aggregate, columns, export, rows
from agentx.reporter.reporting import report


@pytest.fixture
def made(run, attempt, play):
    attempts = [
        attempt("a", 0, prompt=100, cached=Cached(None, 40, 10), queue_seconds=0.5),
        attempt("a", 1, sent=5.0, prompt=120, cached=None),
        attempt("b", 0, sent=6.0, failed="http"),
        attempt("b", 1, sent=7.0, phase="warmup"),
    ]
    return run(attempts, [play("a", turns=2), play("b", turns=1)], settings={"target": {"gpus": 4}})


def test_rows_are_the_records(made) -> None:
    found = [dict(zip(columns(), row, strict=True)) for row in rows(made)]
    assert [(row["session"], row["turn"], row["phase"]) for row in found] == [
        ("a", 0, "measure"), ("a", 1, "measure"), ("b", 0, "measure"), ("b", 1, "warmup"),
    ]  # fmt: skip
    assert (found[0]["cached_tokens"], found[0]["cached_host"], found[0]["cached_storage"]) == (50, 10, None)
    assert (found[0]["ttft"], found[0]["latency"], found[0]["queue_seconds"]) == (1.0, 2.0, 0.5)
    assert found[1]["cached_tokens"] is None
    assert (found[2]["failure"], found[2]["ttft"]) == ("http", None)


def test_csv(made, tmp_path: Path) -> None:
    assert export(report(made), made, tmp_path / "a.csv") == 4
    with (tmp_path / "a.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert found[0]["prompt_tokens"] == "100"
    assert found[1]["cached_tokens"] == ""  # not told, which is not 0
    assert float(found[0]["sent"]) == 0.0


def test_an_aggregate_divides_as_the_report_does(made) -> None:
    found, shown = aggregate(report(made)), report(made).document()
    assert found["num_requests_total"] == 4
    assert (found["num_requests_successful"], found["num_gpus"]) == (2, 4)
    completed = shown["throughput"]["completed"]
    assert found["output_tput_tps"] == completed["output"]["tokens_per_second"]
    assert {
        "num_requests_total",
        "num_requests_successful",
        "qps",
        "duration",
        "num_gpus",
        "input_tput_tps",
        "output_tput_tps",
        "total_tput_tps",
        "tput_per_gpu",
        "theoretical_cache_hit_rate",
        "p90_ttft",
        "p90_intvty",
        "p90_e2e_norm_intvty",
    } <= found.keys()  # names that its readers look for
    assert found["output_tput_per_gpu"] == completed["output"]["tokens_per_second_per_gpu"]
    assert found["p95_ttft"] == shown["latency"]["ttft_seconds"]["p95"]
    assert found["p90_intvty"] == shown["interactivity"]["streaming_tokens_per_second"]["p90"]
    json.dumps(found, allow_nan=False)


def test_nothing_is_null_and_not_0(run) -> None:
    found = aggregate(report(run([])))
    assert found["output_tput_tps"] is found["p50_ttft"] is found["qps"] is found["num_gpus"] is None


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is not None, reason="pyarrow is there")
def test_parquet_without_its_package_is_one_line(made, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"agentx-replay\[parquet\]"):
        export(report(made), made, tmp_path / "a.parquet")


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="pyarrow is not installed")
def test_parquet(made, tmp_path: Path) -> None:
    import pyarrow.parquet

    export(report(made), made, tmp_path / "a.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    assert table.column_names == columns()
    assert table.column("cached_tokens").to_pylist() == [50, None, None, None]
    typed = {
        name: str(table.schema.field(name).type) for name in ("failure", "cached_host", "queue_seconds", "session")
    }
    assert typed == {"failure": "string", "cached_host": "int64", "queue_seconds": "double", "session": "string"}


def test_mistakes(made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadInput, match="the suffix says the form"):
        export(report(made), made, tmp_path / "a.txt")
    assert main(["report", str(tmp_path / "none"), "--export", "x.csv"]) == 2
    assert "no such run folder" in capsys.readouterr().err
