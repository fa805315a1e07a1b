"""Targets: what an argument means, what goes with requests, and what is never kept."""

from __future__ import annotations

import json

import pytest

from agentx.engine.settings import EngineSettings
from agentx.errors import BadInput
from agentx.replayer.targets import Endpoint, request_headers, resolve_target, session_headers

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
