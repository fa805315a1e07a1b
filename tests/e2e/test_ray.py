"""Workers as Ray actors: Ray's own cluster of two nodes on this machine."""

from __future__ import annotations

import asyncio
import json
import os

import pytest

from agentx.core import Gap, Header, Output, Piece, Prompt, Segment, Session, Turn
from agentx.errors import BadInput
from agentx.replayer.run import areplay
from agentx.results import part_path, read_results
from agentx.trace import TraceWriter

ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'agentx-replay[ray]'")
STORE = 80 << 20  # bytes; the least that Ray takes


def session(name: str, turns: int, gap: float = 0.0) -> Session:
    own, made = {1: Segment(1, "system", 60)}, []
    for index in range(turns):
        own[100 + index] = Segment(100 + index, "user", 10)
        prompt = Prompt((Piece(1, 0, 60), Piece(100 + index, 0, 10)))
        made.append(Turn(index, 0, prompt, 70, Output(3), (index - 1,) if index else (), Gap("tool", gap)))
    return Session(name, tuple(made), segments=own)


@pytest.fixture(scope="module")
def cluster():
    """The address of a cluster of two nodes with one CPU each."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=node)
    made.add_node(num_cpus=1, object_store_memory=STORE)
    yield made.address
    made.shutdown()


@pytest.fixture
def trace(tmp_path):
    def write(*sessions: Session):
        path = tmp_path / "t.trace"
        with TraceWriter(path, Header(name="test", scope="test")) as writer:
            for each in sessions:
                writer.session(each)
        return path

    return write


def sent(run):
    return sorted((one.session, one.play, one.turn, one.prompt_tokens) for one in run.attempts)


async def test_actors_on_two_nodes_play_one_plan(cluster, trace, tmp_path):
    path = trace(*(session(f"s{number}", 3) for number in range(6)))
    sets = ["gaps.scale=0", "load.sessions=4", "warmup.turns=1", "measure={sessions: 9}"]
    alone = await areplay(path, out=tmp_path / "alone", sets=sets, salt="x")
    run = await areplay(path, out=tmp_path / "run", sets=sets, salt="x", workers=2, ray=cluster)
    assert run.complete
    assert run.books().balanced
    assert sent(run) == sent(alone)
    assert {attempt.worker for attempt in run.attempts} == {0, 1}
    assert [end["outcome"] for end in run.ends] == ["done", "done"]
    workers = json.loads((tmp_path / "run" / "run.json").read_text())["workers"]
    assert len({worker["pid"] for worker in workers}) == 2
    for worker in workers:  # one machine: its clock is this one's, as far as was measured
        assert abs(worker["clock"]) <= worker["clock_uncertainty"] + 1e-4
        assert 0 < worker["clock_uncertainty"] < 1.0
    assert max(one.sent for one in run.attempts if one.phase == "warmup") < min(
        one.sent for one in run.attempts if one.phase == "measure"
    )


async def test_an_actor_that_dies_takes_only_its_own_plays(cluster, trace, tmp_path):
    out = tmp_path / "run"
    path = trace(*(session(f"s{number}", 8, 0.5) for number in range(4)))

    async def kill():
        while not (part_path(out, 1).exists() and read_results(out).attempts):
            await asyncio.sleep(0.1)
        os.kill(json.loads((out / "run.json").read_text())["workers"][1]["pid"], 9)

    killing = asyncio.ensure_future(kill())
    sets = ["gaps.scale=1", "load.sessions=4"]
    run = await areplay(path, out=out, sets=sets, workers=2, ray=cluster)
    await killing
    assert [worker for worker, _ in run.end["lost"]] == [1]
    books = run.books()
    assert (books.plays, books.done, books.cut, books.balanced) == (4, 2, 2, True)
    assert not run.complete


async def test_more_workers_than_cpus_are_refused(cluster, trace, tmp_path):
    with pytest.raises(BadInput, match=r"has 2 CPUs for 3 workers \(--workers 2\)"):
        await areplay(trace(session("a", 1)), out=tmp_path / "run", sets=["load.sessions=3"], workers=3, ray=cluster)
