"""A recipe is judged without being started: its variables, flags, image, model, host pool and acceptance."""

from __future__ import annotations

import pytest

from agentx import catalog
from agentx.replayer.acceptance import Acceptance
from agentx.replayer.doctor_recipe import GONE, MATTER, recipe_checks
from agentx.replayer.gpus import Gpu
from agentx.replayer.targets import Launch, resolve_target

COMMAND = "python3 -m sglang.launch_server --port {port} --enable-metrics --enable-cache-report"
KEPT = {"SGLANG_TIMEOUT_KEEP_ALIVE": "900"}


def checks(acceptance=None, environ=None, **keys):
    launch = Launch.model_validate({"kind": "launch", "command": COMMAND, "environment": KEPT, **keys})
    return list(recipe_checks(launch, acceptance, {"PATH": "/bin:/usr/bin", **(environ or {})}))


def of(found, name, verdict):
    return [check for check in found if (check.name, check.verdict) == (name, verdict)]


CASES = [
    # what the recipe has otherwise, the check, its verdict, some words, some of how to mend it
    ({"arguments": ["--enable-moe-ep"]}, "flags", "problem", "--enable-moe-ep", "--ep-size N"),
    ({"arguments": ["--enable-ep-moe"]}, "flags", "problem", "--enable-ep-moe", "--ep-size N"),
    ({"arguments": ["--cuda-graph-max-bs=8"]}, "flags", "problem", "--cuda-graph-max-bs", "-decode"),
    ({"arguments": ["--enable-cache-reports"]}, "flags", "warning", "not known", "--enable-cache-report?"),
    ({"arguments": ["--ep-size", "8", "--ep", "8"]}, "flags", "ok", "none", ""),
    (
        {"command": "python3 -m sglang.launch_server --port {port}"},
        "metrics",
        "problem",
        "counters",
        "--enable-metrics",
    ),
    ({"command": "python3 -m sglang.launch_server --port {port}"}, "cache report", "problem", "by request", "--enable"),
    ({"environment": {}}, "keep-alive", "warning", "after 5 s", "900"),
    ({"arguments": ["--disable-radix-cache"]}, "pool", "problem", "nothing is reused", ""),
    ({"arguments": ["--dp-size", "2"]}, "affinity", "problem", "2 replicas", "X-SMG-Routing-Key"),
    ({"arguments": ["--enable-dp-attention"]}, "metrics", "warning", "one rank", "--enable-metrics-for-all-schedulers"),
    ({"arguments": ["--stream-interval=4"]}, "stream interval", "warning", "4 at a time", ""),
    ({"arguments": ["--model-path", "${GONE_VARIABLE}"]}, "variables", "problem", "GONE_VARIABLE", "export GONE_"),
    ({"arguments": ["--model-path", "${GONE_VARIABLE}"]}, "model", "unknown", "GONE_VARIABLE not set", ""),
    ({"arguments": ["--model-path", "/no/model"]}, "model", "warning", "/no/model/config.json", "model_path"),
    ({"command": "no-such-program --port {port}"}, "program", "problem", "not on this machine", ""),
    ({"command": "sh serve --port {port}"}, "flags", "unknown", "does not name sglang", ""),
    ({"command": "serve"}, "recipe", "problem", "no word has {port}", ""),
    ({"image": "sgl@sha256:00"}, "image", "ok", "sgl@sha256:00", ""),
    ({"image": "sgl:latest"}, "image", "warning", "another image tomorrow", "digest"),
    ({"image": "${SGL}"}, "image", "unknown", "not set", ""),
    (
        {"arguments": ["--hicache-size", "900000", "--tp-size=8"]},
        "host pool",
        "problem",
        "needs 7,200,000.0 GB (--hicache-size of 900000 GB x 8 ranks)",
        "smaller",
    ),
    ({"arguments": ["--enable-hierarchical-cache"]}, "host pool", "unknown", "not known", "bytes_per_token"),
    ({"arguments": ["--speculative-algorithm", "EAGLE"]}, "acceptance", "warning", "synthetic words", "(--plan)"),
]


@pytest.mark.parametrize(("keys", "name", "verdict", "says", "mend"), CASES)
def test_each_check(keys, name, verdict, says, mend):
    found = of(checks(**keys), name, verdict)
    assert any(says in check.said and mend in (check.mend or "") for check in found), checks(**keys)


def test_a_good_recipe_has_no_problem(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    found = checks(model_path="${M}", environ={"M": str(tmp_path)})
    assert {check.verdict for check in found if check.name != "GPUs"} == {"ok"}


def test_the_plans_acceptance():
    speculating = ["--speculative-algorithm", "EAGLE", "--speculative-num-steps", "3"]
    (check,) = of(checks(Acceptance(length=2.99), arguments=speculating), "acceptance", "ok")
    assert "SGLANG_SIMULATE_ACC_LEN=2.99" in check.said
    (check,) = of(checks(Acceptance(length=4.5), arguments=speculating), "acceptance", "problem")
    assert "above the 4 tokens" in check.said
    (check,) = of(checks(Acceptance(length=2.99)), "acceptance", "problem")
    assert "decodes without speculation" in check.said
    found = checks(Acceptance(length=2.99), environment={"SGLANG_SIMULATE_ACC_LEN": "2"}, arguments=speculating)
    assert of(found, "recipe", "problem")


@pytest.mark.parametrize("name", [e.name for e in catalog.entries("targets") if e.name.startswith("sglang-")])
def test_shipped_recipes_have_no_wrong_flag(name):
    launch = resolve_target(name).settings
    found = list(recipe_checks(launch, None, {"PATH": "/bin"}))
    assert of(found, "flags", "ok")
    assert not [check for check in found if check.name in ("metrics", "cache report", "keep-alive", "affinity")]
    environ = {"PATH": "/bin", "SGLANG_IMAGE": "a@sha256:1", "GLM_5_2_FP8": "/m", "GLM_5_2_MXFP4": "/m"}
    assert of(list(recipe_checks(launch, None, environ)), "variables", "ok")


def test_no_flag_is_both_gone_and_known():
    assert not set(GONE) & set(MATTER)


GPUS = [
    (None, "unknown", "no nvidia-smi"),
    (("rocm-smi", [Gpu("MI325X", 0, 1)] * 8), "ok", "8 x MI325X by rocm-smi"),
    (("amd-smi", [Gpu(None, 0, 1)] * 4), "problem", "4 x GPU by amd-smi, and the target has 8"),
]


@pytest.mark.parametrize(("here", "verdict", "says"), GPUS)
def test_gpus(here, verdict, says, monkeypatch):
    monkeypatch.setattr("agentx.replayer.doctor_recipe.gpus_here", lambda: here)
    (check,) = of(checks(gpus=8), "GPUs", verdict)
    assert says in check.said
