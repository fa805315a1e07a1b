"""The workload spec refuses what makes no sense, and survives its own text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from specs import EVERYTHING, made

from agentx import catalog
from agentx.errors import BadInput
from agentx.generator.expectation import Expectation
from agentx.generator.quantities import Counts
from agentx.generator.shared import shared_layers
from agentx.generator.spec import WorkloadSpec, load_spec, spec_text

SMALL = """\
agentx: workload/1
context_limit: 5000
layers: {tools: 100, system: 50, repos: {count: 3, tokens: {uniform: {low: 200, high: 400}}, zipf: 1}}
turns: {user: 3, loop: {geometric: {mean: 3}}, parallel: {geometric: {mean: 1.5}}}
tokens:
  first_message: 80
  message: 20
  tool_result: {lognormal: {median: 60, sigma: 1}}
  reply: {lognormal: {median: 30, sigma: 0.5}}
  reasoning: {uniform: {low: 0, high: 10}}
gaps:
  human: {lognormal: {median: 30s, sigma: 1}}
  tools:
    shell: {weight: 0.7, time: {lognormal: {median: 400ms, sigma: 2}, max: 1m}}
    read: {weight: 0.3, time: 30ms}
"""


def small(*sets: str) -> WorkloadSpec:
    return load_spec("small.yaml", text=SMALL, sets=sets)


AGENT = "{weight: 1, prompt: 5, turns: 2, report: 5}"
SUBAGENTS = f"subagents={{share: 0.1, types: {{a: {AGENT}}}}}"
REFUSED = [
    # (overrides, what the line says)
    ("turns.usr=3", "turns.usr: unknown key, did you mean 'user'?"),
    ("gaps.human=30", "gaps.human: a duration needs a unit: write 30s or 30ms"),
    ("gaps.human={lognormal: {median: 30, sigma: 1}}", "a duration needs a unit"),
    ("tokens.reply={lognormal: {median: 30, sigma: -1}}", "tokens.reply.lognormal.sigma: should be greater than"),
    ("tokens.reply={fixed: 3, min: 9, max: 4}", "tokens.reply: min 9 is more than max 4"),
    ("tokens.reply={mixture: [{weight: 0.5, fixed: 1}]}", "tokens.reply.mixture: the weights sum to 0.5, not 1"),
    ("tokens.reply=true", "tokens.reply: should be something other than true or false, not true"),
    (
        "tokens.reply={uniform: {low: true, high: 9}}",
        "tokens.reply.uniform.low: should be something other than true or",
    ),
    ("tokens.reply={quantiles: {0.5: true, 0.9: 4}}", "tokens.reply.quantiles: should be something other than true or"),
    ("layers.tools=false", "layers.tools: should be something other than true or false, not false"),
    ("models={weights: {a: true}}", "models.weights: should be something other than true or false"),
    ("tokens.reply=-4", "tokens.reply: should be greater than or equal to 0"),
    ("gaps.tools.read.weight=0.5", "gaps.tools: the weights sum to 1.2, not 1"),
    ("gaps.tools={}", "gaps.tools"),
    ("turns.user=0", "turns.user is always 0: the spec makes no turn"),
    ("turns.loop={fixed: 7, max: 0}", "turns.loop is always 0: the spec makes no turn"),
    ("sessions=0", "sessions: should be greater than or equal to 1"),
    ("layers.tools=6000", "layers.tools + layers.system are 6050 tokens, context_limit is 5000: no turn fits"),
    ("layers.repos.count=0", "layers.repos.count"),
    ("layers.documents={count: 3, tokens: 5, each: -1}", "layers.documents.each: should be greater than or equal to "),
    ("layers.files={count: 3, tokens: 6000}", "the shortest of layers.files are 6150 tokens, context_limit is 5000"),
    ("layers.files={count: 3}", "layers.files.tokens: is missing"),
    ("tokens.reply={by_gap: {tool: 5}}", "tokens.reply.by_gap.human: is missing"),
    ("tokens.reply={by_gap: {tool: 5, human: 5, humn: 5}}", "tokens.reply.by_gap.humn: unknown key, did you mean 'hu"),
    ("tokens.reply={gamma: {shape: 0, scale: 5}}", "tokens.reply.gamma.shape: should be greater than or equal to 0.0"),
    ("tokens.strip_reasoning=sometimes", "tokens.strip_reasoning: should be a valid boolean"),
    (f"{SUBAGENTS} + subagents.types.a.spawns=0.1", "'a' spawns subagents without a limit: give depth"),
    (f"{SUBAGENTS} + subagents.types.a.tools=9000", "subagents.types.a.tools + subagents.types.a.sys"),
    (f"{SUBAGENTS} + subagents.types.b={AGENT}", "subagents: the weights sum to 2, not 1"),
    (f"{SUBAGENTS} + subagents.share=1.5", "subagents.share: should be less than or equal to 1"),
    (f"{SUBAGENTS} + subagents.depth=9", "subagents.depth: should be less than or equal to 8"),
    (f"{SUBAGENTS} + subagents.run=parallell", "subagents.run: should be 'parallel' or 'serial'"),
    ("subagents={share: 0.1, types: {}}", "subagents.types"),
    ("compaction={trigger: 2000, summary: 3000}", "compaction: summary has a median of 3000 tokens, trigger one of 2"),
    ("compaction={trigger: 200, summary: 100}", "compaction leaves 250 tokens (kept layers 150, summary 100), its tr"),
    ("compaction={trigger: 2000, summary: 100, keep: [user]}", "compaction.keep.0: should be 'tools', 'system' or 's"),
    ("compaction={trigger: 2000, summary: 100, share: 0}", "compaction.share: should be greater than 0"),
    ("resumed={share: 2, tokens: 5}", "resumed.share: should be less than or equal to 1"),
    ("resets={share: many}", "resets.share: should be a valid number"),
    ("pull_backs={share: 0.1, lost: 1.5}", "pull_backs.lost: should be less than or equal to 1"),
    ("pull_backs={share: 0.1}", "pull_backs.lost: is missing"),
    ("aborts={share: 0.1, kept: {uniform: {low: 0.5, high: 0.1}}}", "aborts.kept.uniform: low 0.5 is more than high "),
    ("side_calls={t: {at: begin, prompt: 5, reply: 5}}", "side_calls.t.at: should be 'start', 'message' or 'compacti"),
    ("side_calls={t: {at: start, context: whole, system: 9, prompt: 5, reply: 5}}", "side_calls.t: system is for con"),
    ("models={weights: {a: 0.5}}", "models: the weights sum to 0.5, not 1"),
    ("models={weights: {a: 1}, switch: 0.1}", "models: a switch needs a second model to go to"),
    ("models={weights: {a: 1.5, b: -0.5}}", "models: a weight is below 0"),
    ("groups={size: 0}", "groups.size: should be greater than or equal to 1"),
    ("arrivals={kind: poisson}", "arrivals: poisson needs per_second and no steps"),
    ("arrivals={kind: gamma, per_second: 1}", "arrivals: gamma needs cv; without bursts it is poisson"),
    ("arrivals={kind: poisson, per_second: 1, cv: 2}", "arrivals: poisson has no cv; gamma has"),
    ("arrivals={kind: poisson, per_second: 0}", "arrivals.per_second: should be greater than 0"),
    ("arrivals={kind: schedule}", "arrivals: a schedule needs steps, and one with a rate above 0"),
    ("arrivals={kind: schedule, steps: [{lasts: 5, per_second: 1}]}", "arrivals.steps.0.lasts: a duration needs a un"),
    ("arrivals={kind: schedule, steps: [{lasts: 0s, per_second: 1}]}", "arrivals.steps.0.lasts: should be greater th"),
    ("expect={isl_ks: {target: 3, tolerance: 0.1, source: x}}", "isl_ks.target should be a distribution"),
    ("expect={isl_p50: {target: {fixed: 3}, tolerance: 1, source: x}}", "isl_p50.target should be a number or a dura"),
    ("expect={isl_ks: {target: {fixed: 3}, tolerance: 5%, source: x}}", "isl_ks.tolerance should be the largest dist"),
    ("expect={isl_ks: {target: {normal: {mean: 3}}, tolerance: 1, source: x}}", "expect.isl_ks.target.normal.sd: is "),
    ("expect={reuse: {target: 3, tolerance: 1, source: x}}", "unknown statistic 'reuse' (known: possible_reuse"),
    ("expect={isl_p50: {target: 3, tolerance: 15%}}", "expect.isl_p50.source: is missing"),
    ("expect={isl_p500: {target: 3, tolerance: 1, source: x}}", "unknown statistic 'isl_p500'"),
    ("expect={isl_p50: {target: 3s, tolerance: 1s, source: x}}", "isl_p50.target should be a number without a unit"),
    ("expect={human_gap_p50: {target: 3, tolerance: 1, source: x}}", "human_gap_p50.target should be a duration"),
    ("expect={isl_p50: {target: 3, tolerance: some, source: x}}", "should be a duration"),
    ("expect={isl_p50: {target: 3, tolerance: -1, source: x}}", "tolerance -1.0 is below 0"),
]


@pytest.mark.parametrize(("override", "says"), REFUSED)
def test_refused(override: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        small(*override.split(" + "))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_documents_longer_than_the_limit_are_refused() -> None:
    with pytest.raises(BadInput, match=r"document 0 are 5049 tokens together.*give layers.documents.tokens a max"):
        shared_layers(small("layers={tools: 49, documents: {count: 1, tokens: 5000}}"), seed=0)


def test_repository_contexts_longer_than_the_limit_are_refused_before_anything_is_written() -> None:
    with pytest.raises(BadInput, match=r"repository context \d are \d+ tokens together, context_limit is 300"):
        shared_layers(small("context_limit=300"), seed=0)


def test_a_spec_survives_its_own_text() -> None:
    for spec in (small(), made(EVERYTHING), load_spec(catalog.resolve("workloads", "coding-agent"))):
        again = load_spec("again", text=spec_text(spec))
        assert again == spec
        assert spec_text(again) == spec_text(spec)


DIFFERENCES = [
    # (target, tolerance, seconds or tokens that the realised value may differ)
    (200, "15%", 30.0),
    (200, 5, 5.0),
    ("2s", "10%", 0.2),
    ("2s", "100ms", 0.1),
    (0.965, 0.02, 0.02),
]


@pytest.mark.parametrize(("target", "tolerance", "difference"), DIFFERENCES)
def test_tolerances(target: Any, tolerance: Any, difference: float) -> None:
    expectation = Expectation(target=target, tolerance=tolerance, source="x")
    assert expectation.difference == pytest.approx(difference)


def save(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text("agentx: workload/1\n" + text)
    return path


def test_a_variant_says_only_what_is_different(tmp_path: Path) -> None:
    text = "extends: coding-agent\ncontext_limit: 64000\ntokens: {reply: {fixed: 5}}\nlayers: {repos: null}\n"
    variant, base = (
        load_spec(save(tmp_path, "mine.yaml", text)),
        load_spec(catalog.resolve("workloads", "coding-agent")),
    )
    assert variant.context_limit == 64000
    assert variant.tokens.reply == Counts(fixed=5)
    assert variant.tokens.tool_result == base.tokens.tool_result
    assert (variant.layers.tools, variant.layers.repos) == (2000, None)
    assert (variant.expect, variant.about) == ({}, "")  # a promise is made by who says it
    assert load_spec("again", text=spec_text(variant)) == variant


def test_a_path_is_relative_to_the_file_and_tables_of_names_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    save(tmp_path, "a.yaml", SMALL.split("\n", 1)[1])
    save(tmp_path, "in/b.yaml", "extends: ../a.yaml\ngaps: {tools: {web: {weight: 1, time: 3s}}}\n")
    spec = load_spec(save(tmp_path, "in/c.yaml", "extends: b.yaml\nturns: {user: 7}\n"), sets=["turns.user=9"])
    assert list(spec.gaps.tools) == ["web"]
    assert spec.turns.user == Counts(fixed=9)
    assert spec.gaps.human == small().gaps.human


def test_a_change_of_one_alias_leaves_the_others(tmp_path: Path) -> None:
    pools = "repos: &pool {count: 3, tokens: 50}, documents: *pool"
    save(tmp_path, "a.yaml", re.sub("repos: .*}", pools + "}", SMALL.split("\n", 1)[1], count=1))
    spec = load_spec(save(tmp_path, "b.yaml", "extends: a.yaml\nlayers: {repos: {count: 9}}\n"))
    assert (spec.layers.repos and spec.layers.repos.count, spec.layers.documents and spec.layers.documents.count) == (
        9,
        3,
    )


def test_a_mistake_is_named_in_the_file_that_has_it(tmp_path: Path) -> None:
    base = save(tmp_path, "a.yaml", SMALL.split("\n", 1)[1].replace("system: 50", "sistem: 50"))
    heir = save(tmp_path, "b.yaml", "extends: a.yaml\nturns:\n  usr: 7\n")
    with pytest.raises(BadInput) as caught:
        load_spec(heir, sets=["turns.loop=-1"])
    assert sorted(str(caught.value).splitlines()) == [
        "--set turns.loop=-1: turns.loop: should be greater than or equal to 0, not -1",
        f"{base}:3:22: layers.sistem: unknown key, did you mean 'system'?",
        f"{heir}:4:3: turns.usr: unknown key, did you mean 'user'?",
    ]


CIRCLES = [
    # files by name and what each extends; the first is loaded; what its one line says
    ({"a.yaml": "a.yaml"}, "a.yaml:2:1: extends: {0}/a.yaml extends {0}/a.yaml: that is a circle"),
    (
        {"a.yaml": "b.yaml", "b.yaml": "./a.yaml"},
        "b.yaml:2:1: extends: {0}/a.yaml extends {0}/b.yaml extends {0}/a",
    ),
    ({"a.yaml": "gone.yaml"}, "a.yaml:2:1: extends: {0}/gone.yaml: no such file"),
    ({"a.yaml": "coding-agnet"}, "a.yaml:2:1: extends: no workload named 'coding-agnet' (did you mean 'coding-agent'"),
    ({"a.yaml": "[x]"}, "a.yaml:2:1: extends: should be a name or a path, not a list"),
]


@pytest.mark.parametrize(("files", "says"), CIRCLES)
def test_extends_that_lead_nowhere(files: dict[str, str], says: str, tmp_path: Path) -> None:
    for name, extends in files.items():
        save(tmp_path, name, f"extends: {extends}\n")
    with pytest.raises(BadInput) as caught:
        load_spec(tmp_path / next(iter(files)))
    assert says.format(tmp_path).replace("./a", "a") in str(caught.value).replace("/./", "/")
    assert "\n" not in str(caught.value)
