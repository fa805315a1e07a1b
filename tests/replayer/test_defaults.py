"""What happens when little is said."""

from __future__ import annotations

import pytest

from agentx.core import Gap, Output, Prompt, Session, Turn
from agentx.errors import BadInput
from agentx.replayer.defaults import longest_pauses, pace, trace_path
from agentx.replayer.plan import load_plan
from agentx.trace import read_trace


def session(*turns: tuple[tuple[int, ...], float]) -> Session:
    made = [Turn(at, 0, Prompt(()), 10, Output(1), after, Gap("tool", gap)) for at, (after, gap) in enumerate(turns)]
    return Session("s", tuple(made))


CASES = [
    (session(((), 9.0)), 0.0),  # the first turn comes at once
    (session(((), 0.0), ((0,), 2.0), ((1,), 3.0)), 5.0),
    (session(((), 0.0), ((0,), 2.0), ((0,), 7.0), ((1, 2), 1.0)), 8.0),  # side by side: the longer one
    (session(), 0.0),
]


@pytest.mark.parametrize(("tree", "seconds"), CASES)
def test_the_pauses_of_a_session(tree, seconds):
    assert longest_pauses(tree) == seconds


def test_long_pauses_are_scaled_to_a_minute_and_short_ones_left():
    slow = session(((), 0.0), ((0,), 300.0))
    chosen = pace([slow, slow])
    assert (chosen.scale, chosen.pauses, chosen.sessions) == (0.1, 600.0, 2)
    gaps = load_plan(sets=chosen.sets).gaps
    assert (gaps.scale, gaps.tree_idle_cap) == (0.1, 2.0)
    assert "scaled by 0.1" in str(chosen)
    assert pace([session(((), 0.0), ((0,), 3.0))]).scale == 1.0


def test_a_workloads_name_is_generated(tmp_path):
    path = trace_path("coding-agent", 3, tmp_path)
    assert path.parent == tmp_path
    assert read_trace(path).header.provenance["seed"] == 3


def test_a_path_is_a_path_and_a_wrong_name_is_told(tmp_path):
    assert str(trace_path("a.trace", 0, tmp_path)) == "a.trace"
    with pytest.raises(BadInput, match="did you mean 'coding-agent'"):
        trace_path("codin-agent", 0, tmp_path)
