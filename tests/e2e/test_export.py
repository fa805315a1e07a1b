"""AIPerf's own readers take the exported files: same conversations, turns and lengths. Skipped where it is absent."""

from __future__ import annotations

from pathlib import Path

import pytest
from exporting import everything

from agentx.recorder.exports.writing import export_dag, export_mooncake, export_weka

pytest.importorskip("aiperf")


def test_dag_jsonl(tmp_path: Path) -> None:
    from aiperf.dataset.loader.dag_jsonl import DagJsonlLoader

    reader = everything(tmp_path)
    export_dag(reader, tmp_path / "out.dag.jsonl")
    loader = DagJsonlLoader(tmp_path / "out.dag.jsonl")
    found = loader.load()
    asked = sorted(max(1, turn.output.tokens) for session in reader for turn in session.turns)
    assert sorted(turn.max_tokens for each in found for turn in each.turns) == asked
    assert loader.root_session_ids() == {session.id for session in reader}


def test_mooncake_rows(tmp_path: Path) -> None:
    from aiperf.dataset.loader.models import MooncakeTrace

    reader = everything(tmp_path)
    export_mooncake(reader, tmp_path / "out.jsonl", block=16)
    lengths, history = [], dict[str, int]()
    for line in (tmp_path / "out.jsonl").read_text().splitlines():
        row = MooncakeTrace.model_validate_json(line)
        isl = history.get(row.session_id, 0) + row.input_length
        history[row.session_id] = isl + row.output_length
        lengths.append((isl, row.output_length))
    assert sorted(lengths) == sorted((turn.isl, turn.output.tokens) for each in reader for turn in each.turns)


def test_weka_sessions(tmp_path: Path) -> None:
    from aiperf.dataset.loader.weka_trace_models import WekaTrace

    reader = everything(tmp_path)
    export_weka(reader, tmp_path / "out")
    for session, file in zip(reader, sorted((tmp_path / "out").iterdir()), strict=True):
        trace = WekaTrace.model_validate_json(file.read_text())
        calls = [call for entry in trace.requests for call in getattr(entry, "requests", [entry])]
        assert sorted((call.input_length, call.output_length) for call in calls) == sorted(
            (turn.isl, turn.output.tokens) for turn in session.turns
        )
