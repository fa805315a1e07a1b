"""Which simulations a sweep is made of, and what it is refused for before any of them runs."""

from __future__ import annotations

import pytest

from agentx.errors import BadInput
from agentx.replayer.sweep import Knob, knob_of, points_of

KNOBS = [
    ("load.sessions=2,4", Knob("load.sessions", ("2", "4"))),
    (" seed = 1 , 2 ", Knob("seed", ("1", "2"))),
    ("measure={sessions: 2},{turns: 3, x: [1,2]},1h", Knob("measure", ("{sessions: 2}", "{turns: 3, x: [1,2]}", "1h"))),
    ('target.name="a,b",c', Knob("target.name", ('"a,b"', "c"))),
    ("target.cache.pool=1", Knob("target.cache.pool", ("1",))),
]


@pytest.mark.parametrize(("text", "knob"), KNOBS)
def test_knobs(text, knob):
    assert knob_of(text) == knob


WRONG = [
    ("seed", "--sweep seed: should be KEY=v1,v2"),
    ("=1,2", "should be KEY=v1,v2"),
    ("a..b=1", "should be KEY=v1,v2"),
    ("seed=", "--sweep seed=: no values"),
    ("seed=1,,2", "--sweep seed=1,,2: an empty value"),
    ("seed=1,2,1", "--sweep seed=1,2,1: 1 is there twice"),
]


@pytest.mark.parametrize(("text", "says"), WRONG)
def test_knobs_that_are_none(text, says):
    with pytest.raises(BadInput) as caught:
        knob_of(text)
    assert says in str(caught.value)


def points(*knobs, trace="coding-agent", plan=None, target=None, sets=()):
    return points_of(trace, plan=plan, target=target, sets=sets, knobs=[knob_of(text) for text in knobs])


def test_every_combination_the_last_knob_first():
    found = points("load.sessions=2,4", "target.cache.pool=8000,9000", "spec.turns.loop=3", "seed=5,6")
    assert [point.number for point in found] == list(range(8))
    assert found[1].settings == (
        ("load.sessions", "2"), ("target.cache.pool", "8000"), ("spec.turns.loop", "3"), ("seed", "6"),
    )  # fmt: skip
    assert found[1].sets == ["load.sessions=2", "target.cache.pool=8000", "seed=6"]
    assert found[1].spec_sets == ("turns.loop=3",)
    assert [point.seed for point in found[:4]] == [5, 6, 5, 6]


REFUSED = [
    # knobs, arguments, what the one line says
    ([], {}, "nothing to sweep"),
    (["seed=1,2", "seed=3"], {}, "--sweep seed: the key is swept twice"),
    (["load.sesions=1"], {}, "--sweep load.sesions=1: load.sesions: unknown key, did you mean 'sessions'?"),
    (["load.sessions=1,0"], {}, "--sweep load.sessions=0: load.sessions: should be greater"),
    (["target.cache.poool=1"], {}, "--sweep target.cache.poool=1: cache.poool: unknown key, did you mean 'pool'?"),
    (["target.cache.page=7"], {}, "a page of 7 tokens does not divide the pool"),
    (["spec.trns=1"], {}, "--sweep spec.trns=1: trns: unknown key, did you mean 'turns'?"),
    (["spec.turns.loop=1"], {"trace": "a.trace"}, "a.trace is a trace; only a workload has a spec"),
    (["seed=1"], {"trace": None}, "no trace to replay"),
    (["seed=1"], {"trace": "codin-agent", "plan": "smok"}, "did you mean 'smoke'"),
    (["seed=1"], {"target": "http://127.0.0.1:1"}, "is a server, and only an engine can be simulated"),
    (
        [f"seed={','.join(map(str, range(40)))}", f"drain={','.join(f'{n}s' for n in range(40))}"],
        {},
        "a sweep of 1,600",
    ),
]


@pytest.mark.parametrize(("knobs", "arguments", "says"), REFUSED)
def test_what_is_refused_before_the_first_simulation(knobs, arguments, says):
    with pytest.raises(BadInput) as caught:
        points(*knobs, **arguments)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
