"""A replay over HTTP and a simulation of the same plan: how far they may be apart where sessions run side by side.

Where traffic is sequential they are equal, turn by turn: tests/replayer/test_simulate.py.
"""

from __future__ import annotations

import dataclasses

import pytest

from agentx.core import Gap, Header
from agentx.replayer.plan import load_plan
from agentx.replayer.run import replay
from agentx.replayer.simulate import simulate
from agentx.reporter.reporting import report
from agentx.trace import TraceWriter
from tests.making import linear

POINTS, RATE = 0.01, 0.05  # of reuse; of output tokens per second
LATE = 0.02  # s: a client whose event loop is later than this measures itself

PARALLEL = [
    # keys, what they are about
    (["target.cache.pool=60000"], "all fit"),
    (["target.cache.pool=15000", "target.cache.host.tokens=30000"], "evicted, and loaded back from the host"),
    (["start={by: time, min: 0.25, max: 0.75}", "warmup={turns: 2}", "measure={turns: 6}"], "from the middle, warm"),
]


@pytest.mark.parametrize(("sets", "about"), PARALLEL)
def test_they_agree_where_sessions_run_in_parallel(tmp_path, sets, about):
    with TraceWriter(tmp_path / "t.trace", Header(name="t", scope="scope")) as writer:
        for number in range(8):
            session = linear(10, id=f"s{number}", fresh=400 + 20 * number, reply=20)
            turns = [
                dataclasses.replace(turn, gap=Gap("tool", 0.02 * (1 + (number + turn.index) % 5)))
                for turn in session.turns
            ]
            writer.session(dataclasses.replace(session, turns=tuple(turns)))
    keys = ["load.sessions=4", "measure={sessions: 8}", "target.timing.decode_step=8ms", *sets]
    runs = [
        play(tmp_path / "t.trace", plan=load_plan(), out=tmp_path / play.__name__, sets=keys, salt="x")
        for play in (replay, simulate)
    ]
    (real, real_rate, late), (virtual, virtual_rate, _) = map(figures, runs)
    assert abs(virtual - real) <= POINTS, about
    assert late or abs(virtual_rate / real_rate - 1) <= RATE, about
    assert runs[0].books() == runs[1].books()


def figures(run):
    """(reuse of the measured turns, output tokens per second, whether the client was late)."""
    metrics = report(run).metrics
    flow = metrics.throughput.emitted
    lag = metrics.client.loop_lag_p99
    return metrics.reuse.by_request.share, flow.per_second(flow.output), lag is not None and lag > LATE
