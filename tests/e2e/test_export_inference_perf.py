"""inference-perf's own replay takes the exported Weka sessions: same sessions, calls, lengths. Skipped where absent."""

from __future__ import annotations

from pathlib import Path

import pytest
from exporting import everything

from agentx.recorder.exports.writing import export_weka

pytest.importorskip("inference_perf")


class Letters:
    """A tokenizer that needs no download: a letter is a token. inference-perf makes its words from it."""

    all_special_ids: tuple[int, ...] = ()

    def get_tokenizer(self) -> Letters:
        return self

    def encode(self, text: str, **_: object) -> list[int]:
        return [ord(letter) % 1000 for letter in text[:20_000]]

    def decode(self, ids: list[int], **_: object) -> str:
        return " ".join(map(str, ids))

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def __len__(self) -> int:
        return 1000


def test_weka_sessions(tmp_path: Path) -> None:
    from inference_perf.config import APIConfig, DataConfig
    from inference_perf.datagen.replay.weka_trace_replay_datagen import WekaTraceReplayDataGenerator

    reader = everything(tmp_path)
    export_weka(reader, tmp_path / "out")
    data = {"type": "weka_trace_replay", "weka_trace_replay": {"trace_directory": str(tmp_path / "out")}}
    theirs = WekaTraceReplayDataGenerator(APIConfig(type="chat"), DataConfig.model_validate(data), Letters())
    ours = {session.id: session for session in reader}
    traces = {trace.id: trace for trace in theirs._load_weka_traces()}
    assert traces.keys() == ours.keys() == {session.source_id for session in theirs.sessions}
    for name, trace in traces.items():
        calls = [(call.prompt_tokens, call.completion_tokens) for call in theirs._reconstruct_raw_calls(trace)]
        assert sorted(calls) == sorted((turn.isl, turn.output.tokens) for turn in ours[name].turns)
    for session in theirs.sessions:  # what it would play
        replies = [event.call.expected_output_tokens for event in session.graph.events.values()]
        assert sorted(replies) == sorted(turn.output.tokens for turn in ours[session.source_id].turns)
