"""The proof that a cache can be seen and emptied: it holds on every wire, and fails with what was seen."""

from __future__ import annotations

import dataclasses
from itertools import count

import pytest

from agentx.cli.main import main
from agentx.core import Header
from agentx.engine.engine import Engine
from agentx.errors import EXIT_INVALID, InvalidMeasurement
from agentx.replayer.run import replay
from agentx.trace import TraceWriter
from tests.making import linear

HOST = ["target.cache.pool=4000", "target.cache.host.tokens=8000", "target.cache.page=4"]


@pytest.fixture
def trace(tmp_path):
    with TraceWriter(tmp_path / "t.trace", Header(name="t", scope="scope")) as writer:
        writer.session(linear(2))
    return tmp_path / "t.trace"


@pytest.mark.parametrize("wire", ["chat", "messages", "generate", "chat-ids", "completions-ids"])
def test_a_cache_that_is_seen_and_emptied(trace, tmp_path, wire):
    sets = ["gaps.scale=0", f"wire={wire}", *HOST, "salt=none"]
    run = replay(trace, out=tmp_path / "run", sets=sets, cold=True)
    assert run.complete
    (note,) = (note for note in run.notes if note.startswith("proved cold"))
    assert "a prompt of 256 tokens, sent twice, met 0 and 25" in note
    assert "and 0 after a flush" in note
    assert run.attempts[0].cached.total == 0
    assert run.samples[0].values["requests"] == 3  # they are in the counters before the run, and not in the run
    assert len(run.attempts) == 2


def test_a_flush_that_empties_nothing(trace, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Engine, "flush", lambda self: True)
    arguments = ["replay", str(trace), "-o", str(tmp_path / "run"), "--cold", "prove", "--set", "gaps.scale=0"]
    assert main(arguments) == EXIT_INVALID
    said = capsys.readouterr().err
    assert (
        "the cache cannot be emptied: a prompt of 256 tokens, sent twice, met 0 and 257 cached tokens, and 257" in said
    )
    assert not (tmp_path / "run").exists()


def test_a_flush_that_is_refused(trace, tmp_path, monkeypatch):
    monkeypatch.setattr(Engine, "flush", lambda self: False)
    monkeypatch.setattr("agentx.replayer.asides.WAIT", 0)
    with pytest.raises(InvalidMeasurement, match="answers 400: Flush cache failed"):
        replay(trace, out=tmp_path / "run", cold=True)


def test_a_cache_that_is_never_hit(trace, tmp_path, monkeypatch):
    submit, number = Engine.submit, count()
    apart = lambda self, request, now: submit(self, dataclasses.replace(request, namespace=f"{next(number)}"), now)  # noqa: E731
    monkeypatch.setattr(Engine, "submit", apart)
    with pytest.raises(InvalidMeasurement, match=r"the cache cannot be seen: .* met 0 and 0 cached tokens"):
        replay(trace, out=tmp_path / "run", cold=True)


def test_a_prompt_that_fails(trace, tmp_path):
    with pytest.raises(InvalidMeasurement, match="not proved cold: a prompt failed by overflow"):
        replay(trace, out=tmp_path / "run", sets=["target.context=200"], cold=True)
