"""Plans: what is accepted, what is refused and how, and what each key changes."""

from __future__ import annotations

import functools
import json
import math
import re
from pathlib import Path

import pydantic
import pytest

from agentx.errors import BadInput
from agentx.replayer.arrivals import RateRule
from agentx.replayer.moves import StartRule
from agentx.replayer.plan import Measure, Plan, Rate, Start, load_plan, split_sets

HEAD = "agentx: replay/1\n"


def plan(text: str = "", *sets: str) -> Plan:
    return load_plan("p.yaml", text=HEAD + text, sets=sets)


def test_every_key_has_a_default():
    assert plan() == load_plan() == Plan()
    assert not plan().recycles  # each session once


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("measure: once", Measure()),
        ("measure: {sessions: 3}", Measure(sessions=3)),
        ("measure: {turns: 3}", Measure(turns=3)),
        ("measure: 10m", Measure(seconds=600.0)),
        ("measure: 500ms", Measure(seconds=0.5)),
    ],
)
def test_how_much_is_measured(text, measure):
    assert plan(text).measure == measure


WRONG = [
    # text, what the one line must say
    ("lood: {sessions: 2}", ["p.yaml:2:1", "lood", "did you mean 'load'"]),
    ("load: {session: 2}", ["p.yaml:2:8", "load.session", "did you mean 'sessions'"]),
    ("load: {sessions: 0}", ["load.sessions", "greater than or equal to 1"]),
    ("load: {requests: 0}", ["load.requests", "greater than or equal to 1"]),
    ("load: {sessions: null}", ["load", "say sessions, requests or rate"]),
    ("load: {sessions: 2, rate: {per_second: 1}}", ["load", "closed loop", "open one"]),
    ("load: {rate: {kind: uniform, per_second: 1}}", ["load.rate.kind", "'poisson'"]),
    ("load: {rate: {kind: poisson}}", ["load.rate", "needs per_second"]),
    ("load: {rate: {kind: recorded, per_second: 2}}", ["load.rate", "takes no per_second"]),
    ("load: {rate: {per_second: 2, cv: 3}}", ["load.rate", "cv belongs to kind gamma"]),
    ("load: {rate: {kind: ramp, per_second: 2, to: 3}}", ["load.rate", "needs both"]),
    ("load: {rate: {kind: poisson, per_second: 2, to: 3, over: 1m}}", ["load.rate", "kind ramp"]),
    ("load: {requests: 2}\nwarmup: {turns: 2}", ["need load.sessions"]),
    ("load: {rate: {per_second: 2}}\nmeasure: {turns: 2}", ["need load.sessions"]),
    ("load: {rate: {kind: recorded}}\norder: shuffle", ["recorded goes with order file"]),
    ("start: {by: luck}", ["p.yaml:2:9", "start.by", "'time', 'turns' or 'equilibrium'"]),
    ("start: {min: 0.7, max: 0.2}", ["start", "min (0.7) is above max (0.2)"]),
    ("start: {max: 1.5}", ["start.max", "less than or equal to 1"]),
    ("start: {phase: all}", ["start.phase", "'spread' or 'burst'"]),
    ("warmup: 10", ["warmup", "keys and values"]),
    ("warmup: {turns: -1}", ["warmup.turns", "greater than or equal to 0"]),
    ("gaps: {system_idle_cap: 10}", ["gaps.system_idle_cap", "unit"]),
    ("measure: 10", ["p.yaml:2:1", "measure", "unit"]),
    ("measure: {hours: 4}", ["measure", "{sessions: N}"]),
    ("measure: {turns: 0}", ["measure", "greater than or equal to 1"]),
    ("measure: {sessions: 0}", ["measure", "greater than or equal to 1"]),
    ("measure: 0s", ["measure", "longer than nothing"]),
    ("order: random", ["order", "'file' or 'shuffle'"]),
    ("gaps: {scale: -1}", ["gaps.scale"]),
    ("gaps: {tree_idle_cap: 300}", ["gaps.tree_idle_cap", "unit"]),
    ("wire: message", ["p.yaml:2:1", "wire", "'chat'"]),
    ("history: alive", ["history", "'recorded', 'live' or 'live-ids'"]),
    ("history: live-ids", ["history live-ids does not go with the wire chat, which takes recorded or live"]),
    ("wire: messages\nhistory: live-ids", ["does not go with the wire messages, which takes recorded or live"]),
    ("wire: generate\nmessages: tools", ["messages: tools does not go with the wire generate, which sends token ids"]),
    ("wire: generate\nhistory: live", ["history live does not go with the wire generate", "recorded or live-ids"]),
    ("wire: chat-ids\nhistory: live", ["does not go with the wire chat-ids"]),
    ("wire: completions-ids\nhistory: live", ["does not go with the wire completions-ids"]),
    ("wire: messages\nsalt: field", ["salt field does not go with the wire messages: it has no cache_salt"]),
    ("timeouts: {stall: 0s}", ["timeouts.stall", "longer than nothing"]),
    ("salt: always", ["salt", "'run'"]),
    ("seed: 1\nseed: 2", ["p.yaml:3:1", "duplicate key"]),
]


@pytest.mark.parametrize(("text", "says"), WRONG)
def test_mistakes_are_named_with_their_place(text, says):
    with pytest.raises(BadInput) as caught:
        plan(text)
    for part in says:
        assert part in str(caught.value)


def test_sessions_are_the_default_only_where_nothing_else_is_said():
    assert plan("load: {requests: 4}").load.sessions is None
    assert plan("load: {sessions: 2, requests: 4}").rules.requests == 4
    assert plan("", "load.requests=4").load == plan().changed(["load.requests=4"]).load
    made = plan("load: {rate: {kind: gamma, per_second: 2, cv: 3}}\nseed: 7").rules
    assert (made.lanes, made.rate) == (None, RateRule("gamma", 2.0, 3.0, seed=7))


def test_overrides():
    assert plan("load: {sessions: 2}", "load.sessions=5", "gaps.scale=0.5").load.sessions == 5
    with pytest.raises(BadInput, match=r"--set gaps\.scail=1"):
        plan("", "gaps.scail=1")


def test_overrides_of_the_target_are_kept_apart():
    sets = ["target.cache.pool=8000", "target=laptop", "seed=1"]
    assert split_sets(sets) == (["target=laptop", "seed=1"], ["cache.pool=8000"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "measure: 90s",
        "load: {requests: 4}",
        "load: {rate: {kind: gamma, per_second: 2.5, cv: 2}, requests: 4}",
        "load: {rate: {kind: ramp, per_second: 1, to: 3, over: 10m}}",
        "measure: {turns: 4}\nstart: {by: turns, max: 0.5}\nwarmup: {turns: 3}",
        "measure: {sessions: 4}\ngaps: {scale: 0.1, tree_idle_cap: 300s}",
    ],
)
def test_a_plan_in_a_run_folder_can_be_loaded_again(text):
    kept = plan(text).model_dump(mode="json")
    assert load_plan("again.yaml", text=HEAD + "\n".join(f"{k}: {json.dumps(v)}" for k, v in kept.items())) == plan(
        text
    )


def test_rules():
    rules = plan("load: {sessions: 4}\nmeasure: 1h\ndrain: 10s\ngaps: {scale: 0.5, tree_idle_cap: 2s}").rules
    assert (rules.lanes, rules.seconds, rules.drain, rules.scale, rules.tree_idle_cap) == (4, 3600, 10, 0.5, 2)
    assert plan("drain: 10s").rules.drain == math.inf  # only a measured time is drained
    assert plan("measure: {sessions: 7}").recycles
    assert not plan("measure: {sessions: 7}\nrecycle: false").recycles


def test_rules_of_start_and_warmup():
    assert (plan().rules.start, plan().rules.warmup) == (None, 0)
    text = "seed: 7\nstart: {by: turns, min: 0.25, max: 0.75, phase: burst}\nwarmup: {turns: 10}\n"
    rules = plan(text + "measure: {turns: 5}\ngaps: {system_idle_cap: 10s}").rules
    assert rules.start == StartRule("turns", 0.25, 0.75, 7)
    assert (rules.phase, rules.warmup, rules.turns, rules.system_idle_cap) == ("burst", 10, 5, 10.0)
    assert plan("measure: {turns: 5}").recycles


def test_a_plan_may_begin_with_another(tmp_path):
    (tmp_path / "base.yaml").write_text("agentx: replay/1\nload: {sessions: 4}\nseed: 3\n")
    (tmp_path / "heir.yaml").write_text("agentx: replay/1\nextends: ./base.yaml\nload: {sessions: 9}\n")
    made = load_plan(tmp_path / "heir.yaml")
    assert (made.load.sessions, made.seed) == (9, 3)
    (tmp_path / "heir.yaml").write_text("agentx: replay/1\nextends: smok\n")
    with pytest.raises(BadInput, match="did you mean 'smoke'"):
        load_plan(tmp_path / "heir.yaml")


def keys(model: type[pydantic.BaseModel], prefix: str = "") -> set[str]:
    found = set()
    for name, info in model.model_fields.items():
        inner = info.annotation
        nested = isinstance(inner, type) and issubclass(inner, pydantic.BaseModel) and inner is not Measure
        found |= keys(inner, f"{prefix}{name}.") if nested else {prefix + name}
    return found


def test_the_reference_names_every_key_and_its_default():
    text = (Path(__file__).parents[2] / "docs/reference/plan.md").read_text()
    table = dict(re.findall(r"^\| `([a-z_.]+)`(?:, `[a-z_.]+`)? \| (.+?) \|", text, re.MULTILINE))
    of_start = {key for key in table if key.startswith(("start.", "load.rate."))}  # sections that are null by default
    assert {"start.by", "start.phase", "start.min"} <= of_start  # and start.max on one line with it
    assert {f"load.rate.{key}" for key in Rate.model_fields} <= of_start
    assert set(table) - of_start == keys(Plan)
    defaults = Plan().model_dump(mode="json")
    assert (table["load.rate.kind"], table["load.rate.cv"]) == ("`poisson`", "`1`")
    assert [Start().by, Start().min, Start().max, Start().phase] == ["time", 0, 1, "spread"]
    for key, told in ((key, told) for key, told in table.items() if key not in of_start):
        value = functools.reduce(dict.__getitem__, key.split("."), defaults)
        if key not in ("trace", "target"):  # their defaults are not of the plan
            assert told == f"`{json.dumps(value)}`".replace('"', "")
