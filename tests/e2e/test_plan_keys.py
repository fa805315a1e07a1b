"""Every key of the plan does something: changing it changes what is sent, when, or what is recorded.

A key without a row in KEYS fails the first test, so none is added that does nothing. All in virtual time.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.core import Gap, Header, Output
from agentx.engine.engine import Engine
from agentx.errors import BadInput
from agentx.replayer.dry_run import dry_run
from agentx.replayer.plan import Measure, Plan, load_plan
from agentx.replayer.simulate import simulate
from agentx.reporter.repeating import repeat
from agentx.reporter.reporting import report
from agentx.trace import TraceWriter
from agentx.yamlspec import Strict
from tests.making import linear

RATE = "load={rate: {per_second: 0.5}}"
START = "start={by: time, min: 0.2, max: 0.6}"
DRAFT = "target.speculation={algorithm: EAGLE, steps: 3, draft_tokens: 4}"
SLOW = "target.timing.prefill_token=20ms"  # the longest prompts take seconds
CURVE = "acceptance={curve: glm-5.2/mtp/thinking-on, steps: 3}"

KEYS = [
    # key, what it stands on, what it is set to -> what differs: sent (turns, in order), words, asked, when, kept
    ("trace", [], "trace={other}", "words"),
    ("target", [], "target=sim-mi325x-glm-5.2-fp8", "when"),
    ("seed", ["order=shuffle"], "seed=1", "sent"),
    ("load.sessions", [], "load.sessions=3", "when"),
    ("load.requests", ["load.sessions=4", SLOW], "load.requests=1", "when"),
    ("load.rate.kind", [RATE], "load.rate.kind=constant", "when"),
    ("load.rate.per_second", [RATE], "load.rate.per_second=2", "when"),
    ("load.rate.cv", ["load={rate: {kind: gamma, per_second: 0.5}}"], "load.rate.cv=3", "when"),
    ("load.rate.to", ["load={rate: {kind: ramp, per_second: 0.2, to: 1, over: 10s}}"], "load.rate.to=2", "when"),
    ("load.rate.over", ["load={rate: {kind: ramp, per_second: 0.2, to: 1, over: 10s}}"], "load.rate.over=1s", "when"),
    ("order", [], "order=shuffle", "sent"),
    ("recycle", ["measure={sessions: 8}"], "recycle=false", "sent"),
    ("start.by", ["load.sessions=2", START], "start.by=turns", "sent"),
    ("start.by", ["load.sessions=2", START], "start.by=equilibrium", "sent"),
    ("start.min", ["load.sessions=2", START], "start.min=0.6", "sent"),
    ("start.max", ["load.sessions=2", START], "start.max=0.2", "sent"),
    ("start.phase", ["load.sessions=3", START], "start.phase=burst", "when"),
    ("warmup.turns", ["load.sessions=2"], "warmup.turns=2", "asked"),
    ("measure", [], "measure={sessions: 2}", "sent"),
    ("measure", [], "measure={turns: 2}", "sent"),
    ("measure", [], "measure=3s", "sent"),
    ("drain", ["measure=1s", SLOW], "drain=0s", "kept"),
    ("gaps.scale", [], "gaps.scale=0.5", "when"),
    ("gaps.tree_idle_cap", [], "gaps.tree_idle_cap=1s", "when"),
    ("gaps.system_idle_cap", [], "gaps.system_idle_cap=1s", "when"),
    ("wire", [], "wire=generate", "words"),  # without a chat template
    ("wire", [], "wire=messages", "asked"),  # no fewest tokens, no end that is ignored
    ("history", [], "history=live", "words"),
    ("history", ["wire=generate"], "history=live-ids", "words"),
    ("messages", [], "messages=tools", "words"),
    ("length", [], "length=max_only", "asked"),
    ("salt", [], "salt=session", "words"),
    ("salt", [], "salt=none", "words"),
    ("salt", [], "salt=field", "asked"),  # the namespace
    ("salt", ["salt=field"], "salt=field-session", "asked"),
    ("overflow", ["target.context=160"], "overflow=end_session", "kept"),
    ("overflow", ["target.context=160"], "overflow=fail", "sent"),
    ("abort", [], "abort=skip", "sent"),
    ("on_failure", [SLOW, "timeouts.stall=1500ms"], "on_failure=continue", "sent"),
    ("on_failure", [SLOW, "timeouts.stall=1500ms"], "on_failure=stop", "sent"),
    ("timeouts.stall", [SLOW], "timeouts.stall=1500ms", "kept"),
    ("acceptance.length", [DRAFT, "acceptance={length: 2, steps: 3}"], "acceptance.length=3", "when"),
    ("acceptance.curve", [DRAFT, CURVE], "acceptance.curve=kimi-k2.5/eagle3/thinking-on", "when"),
    ("acceptance.method", [DRAFT, CURVE], "acceptance.method=multinomial", "when"),
    ("acceptance.tokens", [DRAFT, CURVE], "acceptance.tokens=real-draft-token", "kept"),
    ("slo.turn.ttft", [], "slo.turn.ttft=1us", "kept"),
    ("slo.turn.ttft_from_due", [], "slo.turn.ttft_from_due=1us", "kept"),
    ("slo.turn.tpot", [], "slo.turn.tpot=1us", "kept"),
    ("slo.turn.latency", [], "slo.turn.latency=1us", "kept"),
    ("slo.turn.latency_from_due", [], "slo.turn.latency_from_due=1us", "kept"),
    ("slo.run", [], "slo.run.ttft_p95=1us", "kept"),
]
ELSEWHERE = {"repeats", "acceptance.steps"}  # the two tests behind the table's


def models(annotation: object) -> list[type[Strict]]:
    """The sections that a key may hold."""
    parts = [annotation, *typing.get_args(annotation)]
    return [part for part in parts if isinstance(part, type) and issubclass(part, Strict) and part is not Measure]


def keys(model: type[pydantic.BaseModel], prefix: str = "") -> Iterator[str]:
    for name, info in model.model_fields.items():
        sections = models(info.annotation)
        for section in sections:
            yield from keys(section, f"{prefix}{name}.")
        if not sections:
            yield prefix + name


def test_every_key_has_a_row():
    assert set(keys(Plan)) == {row[0] for row in KEYS} | ELSEWHERE


def varied(number):
    session = linear(3 + number % 3, id=f"s{number}", fresh=30 + 9 * number, reply=9 + number)
    turns = [dataclasses.replace(turn, gap=Gap("tool", 2.0 + turn.index)) for turn in session.turns]
    if number == 1:
        turns[-1] = dataclasses.replace(turns[-1], output=Output(0), reply=None)
    return dataclasses.replace(session, turns=tuple(turns), arrival=4.0 * number)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """`t.trace` of six sessions, and `other.trace` with another scope, hence other words."""
    made = tmp_path_factory.mktemp("keys")
    for name, scope in (("t", "scope"), ("other", "another")):
        with TraceWriter(made / f"{name}.trace", Header(name="t", scope=scope)) as writer:
            for number in range(6):
                writer.session(dataclasses.replace(varied(number), scope=scope))
    return made


@pytest.fixture
def played(folder, tmp_path, monkeypatch):
    """What the engine was given and what came of it, by aspect."""
    count = 0

    def play(sets):
        nonlocal count
        count += 1
        given = []
        submit = Engine.submit

        def spy(engine, request, now):
            given.append((now, request))
            return submit(engine, request, now)

        with monkeypatch.context() as patch:
            patch.setattr(Engine, "submit", spy)
            sets = [one.replace("{other}", str(folder / "other.trace")) for one in sets]
            named = [] if any(one.startswith("trace=") for one in sets) else [f"trace={folder / 't.trace'}"]
            run = simulate(plan=load_plan(), out=tmp_path / str(count), sets=[*named, *sets], salt="x")
        return {
            "sent": [(one.session, one.play, one.turn) for one in sorted(run.attempts, key=lambda one: one.sent)],
            "words": {(request.rid, request.prompt) for _, request in given},
            "asked": [(one.rid, one.max_new, one.min_new, one.ignore_eos, one.namespace) for _, one in given],
            "when": [(now, request.rid) for now, request in given] + [one.end for one in run.attempts],
            "kept": (
                run.plays, [one.failure for one in run.attempts], run.settings["target"], report(run).document()["slo"],
            ),
        }  # fmt: skip

    return play


@pytest.mark.parametrize(("key", "base", "changed", "aspect"), KEYS, ids=[f"{row[0]}-{row[2]}" for row in KEYS])
def test_changing_a_key_changes_something(played, key, base, changed, aspect):
    before, again, after = played(base), played(base), played([*base, changed])
    assert before == again  # so what differs is the key's doing
    assert before[aspect] != after[aspect]
    assert changed.startswith(key)


def test_objectives_change_nothing_of_what_is_sent(played):
    before, after = played([]), played(["slo.turn.ttft=1us", "slo.run.ttft_p95=1us"])
    assert {key: before[key] for key in ("sent", "words", "asked", "when")} == {
        key: after[key] for key in ("sent", "words", "asked", "when")
    }


def test_repeats_are_that_many_runs(folder, tmp_path):
    assert len(repeat(folder / "t.trace", out=tmp_path / "r", sets=["repeats=2"]).runs) == 2


def test_stated_steps_are_held_against_the_server(played):
    assert played([DRAFT, CURVE])["sent"]
    with pytest.raises(BadInput, match="the plan states 2 speculative steps, and the server says that it has 3"):
        played([DRAFT, CURVE, "acceptance.steps=2"])


WORK = st.fixed_dictionaries(
    {
        "load": st.sampled_from(
            ["{sessions: 1}", "{sessions: 4}", "{sessions: 3, requests: 2}", "{requests: 3}",
             "{rate: {per_second: 0.5}}", "{rate: {kind: recorded}}", "{rate: {kind: gamma, per_second: 2, cv: 3}}"]
        ),
        "measure": st.sampled_from(["once", "{sessions: 2}", "{sessions: 9}"]),
        "recycle": st.sampled_from(["true", "false"]),
        "order": st.sampled_from(["file", "shuffle"]),
        "seed": st.integers(0, 3),
        "start": st.sampled_from(
            ["null", "null", "{by: turns, max: 0.7}", "{by: time, phase: burst}", "{by: equilibrium}"]
        ),
        "warmup.turns": st.sampled_from([0, 0, 1, 3]),
        "gaps": st.sampled_from(["{scale: 1}", "{scale: 0}", "{tree_idle_cap: 1s, system_idle_cap: 500ms}"]),
        "wire": st.sampled_from(["chat", "generate", "completions-ids"]),
        "overflow": st.sampled_from(["drop_turn", "end_session"]),
        "abort": st.sampled_from(["replay", "skip"]),
        "length": st.sampled_from(["exact", "max_only"]),
        "salt": st.sampled_from(["run", "session", "field"]),
        "target.context": st.sampled_from([160, 131072]),
    }
)  # fmt: skip


@settings(max_examples=25)
@given(work=WORK)
def test_a_dry_run_tells_the_turns_and_tokens_of_fixed_work(folder, tmp_path_factory, work):
    if "sessions" not in work["load"]:
        work = {**work, "start": "null", "warmup.turns": 0}
    if "recorded" in work["load"]:
        work["order"] = "file"
    sets = [f"{key}={value}" for key, value in work.items()]
    told = dry_run(folder / "t.trace", plan=load_plan(), sets=sets)
    run = simulate(
        folder / "t.trace", plan=load_plan(), sets=sets, out=tmp_path_factory.mktemp("dry") / "run", salt="x"
    )
    measured = [one for one in run.attempts if one.phase == "measure"]
    assert told.fixed
    assert all(one.ok for one in run.attempts)
    assert (told.plays, told.turns) == (len(run.plays), len(measured))
    assert told.warmup_turns == len(run.attempts) - len(measured)
    assert told.prompt_tokens == sum(one.prompt_tokens for one in measured)
    assert told.output_tokens == sum(one.completion_tokens for one in measured)
