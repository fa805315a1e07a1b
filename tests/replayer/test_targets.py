"""Targets: what an argument means, what goes with requests, and what is never kept."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pydantic
import pytest

from agentx import catalog
from agentx.engine.settings import EngineSettings
from agentx.errors import BadInput
from agentx.replayer.dry_run import dry_run
from agentx.replayer.launch_recipe import host_pool, stated_facts, variables_of
from agentx.replayer.targets import (
    Endpoint,
    Launch,
    Server,
    is_secret,
    request_headers,
    resolve_target,
    session_headers,
)

FILE = """agentx: target/1
kind: endpoint
url: http://gpu-node:30000/v1
model: glm
key_env: MY_KEY
headers: {X-SMG-Routing-Key: '{session}', X-Team: infra, X-Api-Key: hunter2}
gpus: 8
"""


@pytest.fixture
def endpoint(tmp_path) -> Endpoint:
    path = tmp_path / "node.yaml"
    path.write_text(FILE)
    target = resolve_target(str(path))
    assert target.name == "node"
    assert isinstance(target.settings, Endpoint)
    return target.settings


def test_a_url_is_an_endpoint():
    target = resolve_target("http://127.0.0.1:30000/v1/", ["model=m", "gpus=2"])
    assert isinstance(target.settings, Endpoint)
    assert (target.name, target.settings.model, target.settings.gpus) == ("127.0.0.1:30000", "m", 2)
    assert target.settings.base == "http://127.0.0.1:30000"
    assert target.settings.metrics_urls == ["http://127.0.0.1:30000/metrics"]


def test_a_name_is_looked_up_and_overrides_reach_it():
    target = resolve_target("laptop", ["cache.pool=8000"])
    assert isinstance(target.settings, EngineSettings)
    assert target.settings.cache.pool == 8000
    assert target.record()["kind"] == "engine"


WRONG = [
    ("ftp://x", "http://127.0.0.1:30000"),
    ("http://", "http://127.0.0.1:30000"),
    ("http://user:secret@host", "password"),
    ("http://host/?key=1", "query"),
    ("lapptop", "did you mean 'laptop'"),
    ("./missing.yaml", "no such file"),
]


@pytest.mark.parametrize(("name", "says"), WRONG)
def test_what_is_no_target(name, says):
    with pytest.raises(BadInput, match=says) as caught:
        resolve_target(name)
    assert "secret@" not in str(caught.value).replace(name, "")


def test_headers(endpoint):
    assert request_headers(endpoint, {"MY_KEY": "abc"}) == {
        "Authorization": "Bearer abc",
        "X-Team": "infra",
        "X-Api-Key": "hunter2",
    }
    assert session_headers(endpoint, "a", 0) == {"X-Session-ID": "a", "X-SMG-Routing-Key": "a"}
    assert session_headers(endpoint, "a", 2)["X-Session-ID"] == "a#2"
    assert session_headers(endpoint, "é\n{session}", 0)["X-Session-ID"] == "%C3%A9%0A%7Bsession%7D"  # one plain line


def test_a_key_that_is_not_set_is_an_error(endpoint):
    with pytest.raises(BadInput, match="MY_KEY is not set"):
        request_headers(endpoint, {})


def test_no_secret_is_kept(endpoint, tmp_path):
    kept = resolve_target(str(tmp_path / "node.yaml")).record()
    assert "hunter2" not in json.dumps(kept)
    assert kept["headers"]["X-Team"] == "infra"


SEVERAL = [
    (
        "urls: [http://a:1/v1, http://b:2]",
        ["http://a:1", "http://b:2"],
        ["http://a:1/metrics", "http://b:2/metrics"],
        {},
    ),
    (  # a router, and the servers behind it
        "url: http://r:1\nmetrics: [http://a:1/metrics, http://b:1/metrics]",
        ["http://r:1"],
        ["http://a:1/metrics", "http://b:1/metrics"],
        {},
    ),
    (
        "url: http://r:1\nmetrics: {prefill: [http://p:1/metrics], decode: [http://d:1/metrics]}",
        ["http://r:1"],
        ["http://p:1/metrics", "http://d:1/metrics"],
        {"http://p:1/metrics": "prefill", "http://d:1/metrics": "decode"},
    ),
]


@pytest.mark.parametrize(("lines", "bases", "metrics", "roles"), SEVERAL)
def test_several_addresses(tmp_path, lines, bases, metrics, roles):
    path = tmp_path / "many.yaml"
    path.write_text(f"agentx: target/1\nkind: endpoint\n{lines}\n")
    found = resolve_target(str(path)).settings
    assert (found.bases, found.metrics_urls, found.roles) == (bases, metrics, roles)


NOWHERE = [
    ("gpus: 8", "say url, the address of the server, or urls"),
    ("url: http://a\nurls: [http://b]", "say url"),
    ("urls: [http://a:1, http://a:1/v1]", "urls: one of them stands there twice"),
    ("url: http://a\nmetrics: {prefil: [http://a/metrics]}", r"4:11: metrics.prefil: should be 'prefill' or 'decode'"),
    ("url: http://a\nmetrics: http://a/metrics", "metrics: should be a valid list, not 'http"),
    ("url: http://a\nmetrics: [5]", "metrics.0: should be a URL"),
]


@pytest.mark.parametrize(("lines", "says"), NOWHERE)
def test_addresses_that_cannot_be_used(tmp_path, lines, says):
    path = tmp_path / "wrong.yaml"
    path.write_text(f"agentx: target/1\nkind: endpoint\n{lines}\n")
    with pytest.raises(BadInput, match=says) as error:
        resolve_target(str(path))
    assert "\n" not in str(error.value)


WRONG_LAUNCHES = [
    ("kind: launch", "command: is missing"),
    ("kind: launch\ncommand: 5", "command: should be a valid string, not 5"),
    ("kind: launch\ncommand: {a: b}", "command: should be a valid string, not keys and values"),
    ("kind: launch\ncommand: [x, [y]]", r"command.1: should be a valid string, not a list"),
    ("kind: launch\ncommand: x\nenvironment: {A: true}", "environment: should be something other than true or false"),
    ("kind: launch\ncommand: x\nport: 0", "port: should be greater than or equal to 1, not 0"),
    ("kind: launch\ncommand: x\nready: {timeout: 5}", "a duration needs a unit"),
    ("kind: lauch\ncommand: x", "kind: should be engine, endpoint or launch, not 'lauch'"),
]


@pytest.mark.parametrize(("lines", "says"), WRONG_LAUNCHES)
def test_recipes_that_cannot_be_read(tmp_path, lines, says):
    path = tmp_path / "wrong.yaml"
    path.write_text(f"agentx: target/1\n{lines}\n")
    with pytest.raises(BadInput, match=says) as error:
        resolve_target(str(path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("HF_TOKEN", True), ("OPENAI_API_KEY", True), ("--api-key", True), ("Cookie", True),
        ("api_key", True), ("tokenizer_path", False), ("max_tokens_per_step", False),
        ("SGLANG_SIMULATE_ACC_TOKEN_MODE", False), ("--max-total-tokens", False), ("X-SMG-Routing-Key", False),
    ],
)  # fmt: skip
def test_which_names_are_secrets(name, secret):
    assert is_secret(name) == secret


LAUNCHED = [entry.name for entry in catalog.entries("targets") if entry.name.startswith("sglang-")]


@pytest.mark.parametrize("name", LAUNCHED)
def test_a_shipped_recipe_loads_and_can_be_run_dry(name, tmp_path):
    settings = resolve_target(name).settings
    assert isinstance(settings, Launch)
    assert variables_of(settings)[-1].startswith("GLM_5_2") or "SGLANG_IMAGE" in variables_of(settings)
    found = dry_run("coding-agent", target=name, sets=["measure.sessions=1", "target.price.gpu_hour=2"])
    assert found.turns > 0
    assert found.dollars is not None


def test_the_host_variant_is_the_recipe_with_a_host_tier():
    plain, host = (resolve_target(f"sglang-mi325x-glm-5.2-fp8{variant}").settings for variant in ("", "-host"))
    assert host.model_copy(update={"arguments": []}) == plain
    assert host_pool(plain) is None
    assert host_pool(host).needed == 211 * 10**9 * 8
    assert stated_facts(host)["max_total_num_tokens"] == stated_facts(host)["context"] == 2**20


def keys(model: type[pydantic.BaseModel], prefix: str = "") -> set[str]:
    found = set()
    for name, info in model.model_fields.items():
        inner = info.annotation
        nested = isinstance(inner, type) and issubclass(inner, pydantic.BaseModel)
        found |= keys(inner, f"{prefix}{name}.") if nested else {prefix + name}
    return found


def test_the_reference_names_every_key():
    text = (Path(__file__).parents[2] / "docs/reference/target.md").read_text()
    listed = {
        heading: {
            key
            for cell in re.findall(r"^\| (`[a-z_.]+`(?:, `[a-z_.]+`)*) \|", part, re.MULTILINE)
            for key in re.findall(r"`(.+?)`", cell)
        }
        for heading, _, part in (section.partition("\n") for section in text.split("\n## ")[1:])
    }
    shared = listed["Any server: `endpoint` and `launch`"]
    assert shared == keys(Server) | {"kind"}
    assert shared | listed["`endpoint`"] == keys(Endpoint)
    assert shared | listed["`launch`"] == keys(Launch)
    assert listed["`engine`"] | {"kind"} == keys(EngineSettings)
