"""Whichever server a run is played against is there for as long as the run, and says how it came."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from agentx.core import Header
from agentx.errors import BadInput
from agentx.replayer.client import open_session
from agentx.replayer.order import order_of
from agentx.replayer.serving import serving
from agentx.trace import TraceWriter
from tests.making import linear

ROOT = Path(__file__).parents[2]


@pytest.fixture
def order(tmp_path):
    with TraceWriter(tmp_path / "t.trace", Header(name="t", scope="scope")) as writer:
        writer.session(linear(2))

    def made(target, *sets):
        trace = tmp_path / "t.trace"
        return order_of(trace, None, target, list(sets), folder=tmp_path / "run", scratch=tmp_path, salt="s")

    return made


async def test_a_server_that_was_there(order):
    async with serving(order("http://127.0.0.1:9"), progress=False) as served:
        assert served.endpoint.base == "http://127.0.0.1:9"
        assert (served.facts, served.notes, served.ending()) == ({}, [], [])
        await served.prepare(None, order("http://127.0.0.1:9"), {}, None)  # nothing is asked of it


async def test_an_embedded_engine(order):
    async with serving(order("laptop"), progress=False) as served:
        assert served.endpoint.gpus == 1
        assert served.facts == {}


async def test_a_launched_one(order, tmp_path, capsys):
    own = tmp_path / "own.yaml"
    own.write_text(
        f"agentx: target/1\nkind: launch\ncommand: [{sys.executable}, -m, agentx, serve, --port, '{{port}}']\n"
        f"environment: {{PYTHONPATH: {ROOT}}}\ngpus: 4\nkv_events: tcp://127.0.0.1:5557\nmodel: named\n"
        "headers: {X: '{session}'}\n"
    )
    async with serving(order(str(own), "acceptance={length: 1.5}"), progress=False) as served:
        assert (served.endpoint.gpus, served.endpoint.model, served.endpoint.headers) == (
            4,
            "named",
            {"X": "{session}"},
        )
        assert served.endpoint.kv_events == ["tcp://127.0.0.1:5557"]
        assert served.facts["launch"]["environment"]["SGLANG_SIMULATE_ACC_LEN"] == "1.5"
        assert served.ending() == []
        launched = served.launched
    assert launched.ended is not None
    assert capsys.readouterr().err == ""
    assert "stopping the server" in launched.log.read_text()


NGRAM = {"version": "0.5.19", "speculative_algorithm": "NGRAM", "model": "m"}


async def test_acceptance_that_the_launched_server_cannot_have(order, tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text(
        f"agentx: target/1\nkind: launch\ncommand: [{sys.executable}, -m, agentx, serve, --port, '{{port}}']\n"
        f"environment: {{PYTHONPATH: {ROOT}}}\njit_warmup: false\n"
    )
    asked = order(str(own), "acceptance={length: 2, tokens: real-draft-token}")
    async with serving(asked, progress=False) as served, open_session() as session:
        with pytest.raises(BadInput, match="needs a chain of drafts"):
            await served.prepare(session, asked, NGRAM, None)
        before, eagle = len(served.notes), {**NGRAM, "speculative_algorithm": "EAGLE"}
        await served.prepare(session, asked, {**eagle, "speculative_eagle_topk": 1}, None)
        (note,) = served.notes[before:]
        assert note.endswith("SGLANG_SIMULATE_ACC_TOKEN_MODE=real-draft-token")
        await served.prepare(session, asked, {**eagle, "version": "0.5.9"}, None)
        assert served.notes[-1].endswith("whether it reads all three is not known")
    told = json.loads((tmp_path / "run" / "server_info.json").read_text())
    assert told["settings"]["cache"]["pool"] == told["max_total_num_tokens"] == 200000
