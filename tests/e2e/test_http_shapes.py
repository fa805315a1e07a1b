"""Held to a real SGLang 0.5.23: status, fields, types and order of events of its answers, request by request.

The file was written by benchmarks/fidelity/http_shapes.py from a running server; here the same requests go to the
embedded engine. What differs on purpose is listed, and an entry of the list that no longer differs fails.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from asking import FAST

from agentx.engine.server import running
from agentx.engine.settings import EngineSettings

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "tests/data/http-shapes-v1.jsonl").read_text().splitlines()

ON_PURPOSE = {
    "weight_versions": "weights do not change here",
    "ping": "Anthropic's own servers send it, and clients have to live with it",
    "param": "the message names the field",
    "error type": "400 has the one type that Anthropic documents for it",
}


@pytest.fixture(scope="module")
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("http_shapes", ROOT / "benchmarks/fidelity/http_shapes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def url(program: ModuleType) -> Iterator[str]:
    with running(EngineSettings(context=program.CONTEXT, timing=FAST)) as base:
        yield base


def differences(ours: object, real: object, where: str = "") -> list[str]:
    if isinstance(ours, dict) and isinstance(real, dict):
        found = [f"{where}.{key} {'ours' if key in ours else 'real'} only" for key in ours.keys() ^ real.keys()]
        for key in ours.keys() & real.keys():
            found += differences(ours[key], real[key], f"{where}.{key}")
        return found
    if isinstance(ours, list) and isinstance(real, list) and len(ours) == len(real):
        pairs = enumerate(zip(ours, real, strict=True))
        return [line for index, (one, other) in pairs for line in differences(one, other, f"{where}[{index}]")]
    return [] if ours == real else [f"{where}: {ours} for {real}"]


def known(ours: Any, real: Any, used: set[str]) -> tuple[Any, Any]:
    """Both without what differs on purpose."""
    if isinstance(ours, list) and ["ping", {"type": "ping"}] in ours:
        used.add("ping")
        ours = [event for event in ours if event[0] != "ping"]
    if isinstance(real, dict) and "weight_versions" in real.get("metadata", {}):
        used.add("weight_versions")
        del real["metadata"]["weight_versions"]
    error = real.get("error") if isinstance(real, dict) else None
    if isinstance(error, dict):
        if error.get("param") != ours["error"].get("param"):
            used.add("param")
            error["param"] = ours["error"]["param"]
        if error["type"] == "BadRequestError":
            used.add("error type")
            error["type"] = "invalid_request_error"
    return ours, real


def test_every_answer_has_the_real_shape(program: ModuleType, url: str) -> None:
    assert [(line["path"], line["body"]) for line in map(json.loads, LINES)] == [
        (path, {"model": "tiny", **body} if path != "/abort_request" else body) for path, body in program.CASES
    ]  # stale? run the program again
    wrong, used = [], set[str]()
    for line in map(json.loads, LINES):
        program.ask(url, line["path"], line["body"])  # twice, as there
        status, found = program.ask(url, line["path"], line["body"])
        ours, real = known(found, line["shape"], used)
        told = differences(ours, real)
        if status != line["status"]:
            told.insert(0, f"status {status} for {line['status']}")
        if told:
            wrong.append(f"{line['path']} {json.dumps(line['body'])[:120]}: " + "; ".join(told))
    assert wrong == []
    assert used == set(ON_PURPOSE)
