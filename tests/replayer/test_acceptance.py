"""The acceptance that a plan states: what is refused, what an engine is set to, what mean is to be expected."""

from __future__ import annotations

import random

import pytest

from agentx.engine.acceptance import Acceptance as Draws
from agentx.engine.settings import load_engine
from agentx.errors import BadInput
from agentx.replayer.acceptance import Acceptance, applied, bound_of, check_server, stated
from agentx.replayer.plan import load_plan
from agentx.replayer.targets import Endpoint, Target

EAGLE = ["speculation={algorithm: EAGLE, steps: 3, draft_tokens: 4}"]
SERVER = {"version": "0.5.23", "speculative_algorithm": "EAGLE", "speculative_num_steps": 3}
NGRAM = {"version": "0.5.23", "speculative_algorithm": "NGRAM", "speculative_num_draft_tokens": 4}


def engine(*sets):
    return Target("t", load_engine("t", text="agentx: target/1\nkind: engine\n", sets=sets))


WRONG = [
    # what is wrong -> what the line says
    ("{}", "say a length, or a curve and steps"),
    ("{length: 2, curve: glm-5.2/mtp/thinking-on, steps: 3}", "say a length, or a curve and steps"),
    ("{curve: glm-5.2/mtp/thinking-on}", "a curve needs steps"),
    ("{curve: glm-5.2/mtp/thinking-of, steps: 3}", "no acceptance curve"),
    ("{curve: glm-5.2/mtp/thinking-on, steps: 99}", "has steps of 1 to"),
    ("{length: 4.2, steps: 3}", "above the 4 tokens that 3 steps can yield"),
    ("{length: 0.5}", "greater than or equal to 1"),
    ("{length: 2, method: geometric}", "'match-expected' or 'multinomial'"),
    ("{length: 2, tokens: real}", "'fixed' or 'real-draft-token'"),
]


@pytest.mark.parametrize(("text", "says"), WRONG)
def test_what_cannot_be_stated(text, says):
    with pytest.raises(BadInput, match=says):
        load_plan(sets=[f"acceptance={text}"])


def test_a_curve_gives_the_length():
    plan = load_plan(sets=["acceptance={curve: glm-5.2/mtp/thinking-on, steps: 3}"])
    assert 2 < plan.acceptance.asked < 4
    assert plan.changed(["seed=1"]).acceptance == plan.acceptance


def test_an_engine_is_set_to_it():
    made = applied(Acceptance(length=2.6, method="multinomial", tokens="real-draft-token"), engine(*EAGLE))
    told = made.settings.speculation.acceptance
    assert (told.length, told.method, told.tokens) == (2.6, "multinomial", "real-draft-token")
    assert applied(None, engine(*EAGLE)) == engine(*EAGLE)
    assert applied(Acceptance(length=1.0), engine()) == engine()  # no draft accepted is what it does
    address = Target("t", Endpoint(kind="endpoint", url="http://h:1"))
    assert applied(Acceptance(length=2.6), address) == address


@pytest.mark.parametrize(
    ("acceptance", "server", "says"),
    [
        (Acceptance(length=2.6), {"version": "0.5.23"}, "decodes without speculation"),
        (Acceptance(length=2.6, steps=4), SERVER, "states 4 speculative steps, and the server says that it has 3"),
        (Acceptance(length=4.5), SERVER, "above the 4 tokens"),
        (Acceptance(length=4.5), NGRAM, "above the 4 tokens"),
        (Acceptance(length=2.6, steps=3), SERVER, None),
        (Acceptance(length=1.0), {"version": "0.5.23"}, None),
        (Acceptance(length=9.0), {"model": "m"}, None),  # it says nothing of itself
        (None, {"version": "0.5.23"}, None),
    ],
)
def test_a_server_that_contradicts_is_refused(acceptance, server, says):
    if says is None:
        check_server(acceptance, server)
        return
    with pytest.raises(BadInput, match=says):
        check_server(acceptance, server)


def test_an_engine_without_speculation_is_refused():
    with pytest.raises(BadInput, match="the engine decodes without speculation"):
        applied(Acceptance(length=2.6), engine())


@pytest.mark.parametrize("method", ["match-expected", "multinomial"])
@pytest.mark.parametrize("length", [1.0, 1.4, 2.6, 3.9, 4.0])
def test_the_mean_is_that_of_the_draws(method, length):
    sets = [f"speculation.acceptance={{length: {length}, method: {method}}}"]
    speculation = engine(*EAGLE, *sets).settings.speculation
    draws = Draws(speculation, seed=random.Random(5).randrange(99))
    mean = sum(draws.draw() for _ in range(20_000)) / 20_000
    assert Acceptance(length=length, method=method).mean(4) == pytest.approx(mean, abs=0.03)


def test_what_a_run_keeps():
    assert stated(None, SERVER) is None
    assert stated(Acceptance(length=2.6), {}) == {"asked": 2.6, "expected": 2.6}
    assert stated(Acceptance(length=2.6, method="multinomial"), {})["expected"] is None  # its bound is not known
    assert stated(Acceptance(length=1.0, method="multinomial"), SERVER)["expected"] == pytest.approx(1.378, abs=0.01)
    assert [bound_of(each) for each in (SERVER, NGRAM, {})] == [4, 4, None]
