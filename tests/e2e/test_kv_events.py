"""KV events over a socket: the embedded engine publishes, a replay records, the report adds up."""

from __future__ import annotations

import builtins
import socket
from pathlib import Path

import pytest
from making import header, linear

from agentx.engine.server import running
from agentx.engine.settings import load_engine
from agentx.errors import BadInput
from agentx.kv_events import KV_EVENTS, Removed, Stored, read_kv_events
from agentx.replayer.run import replay
from agentx.reporter.reporting import report
from agentx.trace import TraceWriter

ENGINE = """
agentx: target/1
kind: engine
context: 4096
cache: {pool: 300, page: 1, host: {tokens: 2000, write: write_through}}
"""


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "a.trace"
    with TraceWriter(path, header()) as writer:
        for name in ("a", "b", "c"):
            writer.session(linear(6, id=name, fresh=20))
    return path


def target(folder: Path, url: str, address: str) -> str:
    path = folder / "target.yaml"
    path.write_text(f"agentx: target/1\nkind: endpoint\nurl: {url}\nkv_events: {address}\n")
    return str(path)


def test_what_the_engine_publishes_is_recorded(trace: Path, tmp_path: Path) -> None:
    pytest.importorskip("zmq")
    address = free_address()
    with running(load_engine("engine", text=ENGINE), kv_events=address) as url:
        run = replay(trace, target=target(tmp_path, url, address), out=tmp_path / "run", sets=["gaps.scale=0"])
    batches = list(read_kv_events(run.folder))
    assert sum(batch.lost + batch.unread for batch in batches) == 0
    assert [batch.seq for batch in batches] == list(range(batches[0].seq, batches[0].seq + len(batches)))
    assert all(batch.at >= 0 for batch in batches)
    events = [event for batch in batches for event in batch.events]
    assert {event.tier for event in events if isinstance(event, Stored | Removed)} == {"device", "host"}
    found = report(run)
    told = {one["tier"]: one for one in found.document()["cache_events"]["by_tier"]}
    assert told["device"]["stored_tokens"] > 300 > told["device"]["removed_tokens"] - told["device"]["stored_tokens"]
    assert told["device"]["removed_tokens"] > 0
    assert "tokens stored" in found.text()


@pytest.mark.parametrize("host", [0, 400])
@pytest.mark.parametrize("wire", ["chat", "generate"])
def test_where_reuse_was_lost_is_measured(trace: Path, tmp_path: Path, wire: str, host: int) -> None:
    """Three sessions that do not fit: of each lost token the server's own events say why."""
    pytest.importorskip("zmq")
    address, text = free_address(), ENGINE.replace("tokens: 2000", f"tokens: {host}")
    with running(load_engine("engine", text=text), kv_events=address) as url:
        sets = ["gaps.scale=0", "load.sessions=3", f"wire={wire}"]
        run = replay(trace, target=target(tmp_path, url, address), out=tmp_path / "run", sets=sets)
    found = report(run)
    losses, told = found.losses, found.document()
    assert (losses.source, losses.unmeasured) == ("measured", None)
    assert losses.total == found.metrics.reuse.missing_to_ideal
    assert losses.of("host_dropped" if host else "evicted") >= 50
    assert losses.of("unexplained") == 0
    assert told["losses"]["evicted_source"] == "measured"
    assert told["evictions"]["owners"] == "exact"
    assert {row["owner"]["session"] for row in told["evictions"]["rows"] if row["owner"]} == {"a", "b", "c"}
    assert "measured" in found.text()


def test_without_a_publisher_the_run_goes_on(trace: Path, tmp_path: Path) -> None:
    pytest.importorskip("zmq")
    address = free_address()
    with running(load_engine("engine", text=ENGINE)) as url:
        run = replay(trace, target=target(tmp_path, url, address), out=tmp_path / "run", sets=["gaps.scale=0"])
    assert run.complete
    assert f"no KV events: the publisher at {address} was not there" in run.notes
    assert "none came in the measured time" in report(run).text()


def test_without_the_extra_it_is_said_before_anything_is_written(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = builtins.__import__

    def missing(name: str, *rest: object, **more: object) -> object:
        if name.split(".")[0] == "zmq":
            raise ImportError(name)
        return plain(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", missing)
    named = target(tmp_path, "http://127.0.0.1:9", "tcp://127.0.0.1:5557")
    with pytest.raises(BadInput, match="pip install 'agentx-replay\\[kv-events\\]'"):
        replay(trace, target=named, out=tmp_path / "run")
    assert not (tmp_path / "run" / KV_EVENTS).exists()
