"""agentx doctor: verdicts, how to mend, one JSON document, exit codes."""

from __future__ import annotations

import json

import pytest

from agentx.cli.main import main
from agentx.engine.server import running
from agentx.engine.settings import EngineSettings
from agentx.errors import EXIT_BAD_INPUT, EXIT_GATE, EXIT_OK, EXIT_UNREACHABLE


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr("agentx.replayer.doctor_requests.IDLE", 0.1)


def test_the_embedded_engine_is_fit(capsys):
    assert main(["doctor", "laptop", "--json", "--set", "target.cache.page=4"]) == EXIT_OK
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["kind"], found["problems"]) == ("agentx/doctor/1", "engine", 0)
    names = {check["name"]: check for check in found["checks"]}
    wanted = {
        "reachable", "version", "context", "page", "pool", "chunk", "stream interval", "acceptance", "file limit",
        "metrics", "clock", "keep-alive", "cache report", "tokens", "chunks", "words",
    }  # fmt: skip
    assert wanted <= set(names)
    prefixes = {name for name in names if name.startswith("prefix at")}
    assert len(prefixes) == 4
    assert {check["verdict"] for check in names.values()} == {"ok"}
    assert names["page"]["said"] == "4 tokens"
    assert found["server"]["page_size"] == 4


def test_a_server_and_a_plan_that_do_not_go_together(capsys):
    with running(EngineSettings()) as url:
        code = main(["doctor", url, "--set", "acceptance={length: 2.5}", "--sessions", "3"])
    said = capsys.readouterr().out
    assert code == EXIT_GATE
    assert f"agentx doctor: {url.removeprefix('http://')} (endpoint)" in said
    assert "problem  acceptance" in said
    assert "66,666 for each of 3 at a time" in said
    assert said.rstrip().endswith("1 problem, 0 warnings, 0 unknown")


def test_several_servers_are_asked_each(capsys, tmp_path):
    with running(EngineSettings()) as one, running(EngineSettings(context=9000)) as other:
        own = tmp_path / "two.yaml"
        own.write_text(f"agentx: target/1\nkind: endpoint\nurls: [{one}, {other}]\n")
        assert main(["doctor", str(own), "--json"]) == EXIT_OK
    found = json.loads(capsys.readouterr().out)
    names = {check["name"]: check for check in found["checks"]}
    assert "differ in context" in names["alike"]["said"]
    assert {f"cache report ({one})", f"cache report ({other})"} <= set(names)
    assert found["server"]["context"] == 9000


def test_a_recipe_is_read_and_not_started(capsys, tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text(
        "agentx: target/1\nkind: launch\ncommand: python3 -m sglang.launch_server --port {port} --enable-moe-ep\n"
    )
    assert main(["doctor", str(own)]) == EXIT_GATE
    said = capsys.readouterr().out
    assert "problem  flags" in said
    assert "-> no version has it: --ep-size N spreads the experts over N GPUs" in said


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["http://127.0.0.1:9"], EXIT_UNREACHABLE, "cannot be reached"),
        (["lapptop"], EXIT_BAD_INPUT, "did you mean 'laptop'"),
        (["laptop", "--plan", "smok"], EXIT_BAD_INPUT, "did you mean 'smoke'"),
        (["laptop", "--set", "target.cache.poool=1"], EXIT_BAD_INPUT, "unknown key"),
    ],
)
def test_what_cannot_be_examined(arguments, code, says, capsys):
    assert main(["doctor", *arguments]) == code
    shown = capsys.readouterr()
    assert says in shown.err
    assert shown.out == ""
