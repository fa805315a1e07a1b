"""Published agents through the recorder: what they sent is what the trace holds and a replay sends.

mini-swe-agent runs where it is found: `mini` on the PATH, or the path in AGENTX_MINI (`pip install mini-swe-agent`).
The OpenAI Agents SDK runs by this Python where it has it, or by the one in AGENTX_AGENTS (`pip install openai-agents`).
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentx import read_trace, replay
from agentx.engine.http_script import Rule, Script
from agentx.engine.server import running
from agentx.engine.settings import EngineSettings
from agentx.recorder.compiling import compile_capture
from agentx.recorder.imports.beside import beside
from agentx.recorder.weaving import Template
from agentx.reporter.compare_recorded import compare_recorded
from agentx.reuse import possible

MINI = os.environ.get("AGENTX_MINI") or shutil.which("mini")


def _agents_python() -> str | None:
    if named := os.environ.get("AGENTX_AGENTS"):
        return named
    try:
        importlib.metadata.version("openai-agents")
    except importlib.metadata.PackageNotFoundError:
        return None
    return sys.executable


AGENTS = _agents_python()


def bash(text: str, command: str, **match: Any) -> Rule:
    return Rule.model_validate({**match, "text": text, "calls": [{"name": "bash", "arguments": {"command": command}}]})


RULES = (
    bash("I look first.", "ls; seq 1 400", contains="Count the files", times=1),
    bash("Now I count.", "ls | wc -l > answer; cat answer; seq 1000 1600", contains="400", times=1),
    bash("I check it.", "cat answer", contains="1600", times=1),
    bash("Done.", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat answer"),
)


def record(folder: Path, upstream: str, agent: list[str], **more: str) -> None:
    """Run the agent through the recorder, in a folder of its own."""
    environment = {**os.environ, "AGENTX_KEYS": str(folder / "keys")}
    words = [sys.executable, "-m", "agentx", "record", "sglang", "--upstream", upstream, "--port", "0", "-o", "cap"]
    recorder = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment)
    try:
        assert recorder.stderr is not None
        url = recorder.stderr.readline().split()[1]
        (folder / "work").mkdir()
        own = {**os.environ, "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_BASE": f"{url}/v1", "OPENAI_API_KEY": "none"}
        own.pop("PYTHONPATH", None)
        own |= more
        done = subprocess.run(
            agent, cwd=folder / "work", env=own, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False
        )
        assert done.returncode == 0, (done.stdout + done.stderr).decode()[-2000:]
    finally:
        recorder.send_signal(signal.SIGINT)
        recorder.communicate(timeout=20)


@pytest.mark.skipif(MINI is None, reason="mini-swe-agent is not installed, and AGENTX_MINI names no other")
def test_the_replay_of_mini_swe_agent_is_what_it_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTX_KEYS", str(tmp_path / "keys"))
    log = tmp_path / "engine.log"
    agent = [str(MINI), "-t", "Count the files here", "-m", "openai/agentx", "-y", "--exit-immediately", "-o", "t"]
    more = {"MSWEA_COST_TRACKING": "ignore_errors", "MSWEA_CONFIGURED": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with running(EngineSettings(), script=Script(RULES, lambda text: None), log=log) as url:
        record(tmp_path, url, agent, **more)
    sent = [json.loads(line) for line in log.read_text().splitlines()]
    lengths = [(each["prompt_tokens"], each["completion_tokens"]) for each in sent]
    assert len(lengths) == len(RULES)
    compile_capture(tmp_path / "cap", tmp_path / "a.trace", template=Template(1, 1))
    [session] = read_trace(tmp_path / "a.trace")
    assert [(turn.isl, turn.output.tokens) for turn in session.turns] == lengths
    assert {tool.name for turn in session.turns for tool in turn.tools} == {"bash"}
    joined = compile_capture(tmp_path / "cap", tmp_path / "b.trace", beside=beside([tmp_path / "work" / "t"])).joined
    assert joined is not None
    assert (joined.calls, joined.found, joined.pauses, joined.explained) == (4, 4, 3, 3)
    [told] = read_trace(tmp_path / "b.trace")
    for turn in told.turns[1:]:
        assert turn.gap.parts is not None
        assert 0 < (turn.gap.parts.tool or 0) < turn.gap.seconds

    replay(tmp_path / "a.trace", out=tmp_path / "run", sets=["gaps.scale=0"])
    compared = compare_recorded(tmp_path / "a.trace", tmp_path / "run")
    assert compared.reasons == ()
    assert (compared.prompts.told, compared.replies.told, compared.cached.told) == (len(RULES),) * 3
    # Possible reuse: what the agent's own server found in its cache, but for the last token of each reply, which has no
    # KV, and the markers of roles, which are the template's.
    found = sum(sum(each["cached_tokens"].values()) for each in sent)
    markers = sum(len(session.pieces(turn.index)) + 2 for turn in session.turns)
    reused = possible(read_trace(tmp_path / "a.trace")).reused
    assert abs(reused - found) <= markers


DELEGATION = [
    {
        "contains": "research part",
        "text": "I look.",
        "calls": [{"name": "list_files", "arguments": {"path": "src"}}],
    },
    {
        "contains": "plan it",
        "text": "I delegate.",
        "calls": [{"name": "research", "arguments": {"input": f"research part {part}"}} for part in ("one", "two")],
    },
    {"text": "Found a.py and b.py."},
]
LEAD = """
import asyncio, sys
from agents import Agent, Runner, function_tool, set_default_openai_api, set_tracing_disabled

@function_tool
def list_files(path: str) -> str:
    "List the files of a folder."
    return "a.py b.py in " + path

async def main():
    set_tracing_disabled(True)
    set_default_openai_api(sys.argv[1])
    helper = Agent(name="Researcher", instructions="You research.", tools=[list_files], model="agentx")
    tool = helper.as_tool(tool_name="research", tool_description="Research something")
    lead = Agent(name="Lead", instructions="You lead.", tools=[tool], model="agentx")
    print((await Runner.run(lead, "plan it")).final_output)

asyncio.run(main())
"""


@pytest.mark.skipif(AGENTS is None, reason="openai-agents is not installed, and AGENTX_AGENTS names no other Python")
@pytest.mark.parametrize("wire", ["responses", "chat_completions"])
def test_agents_that_are_tools_of_an_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wire: str) -> None:
    """The OpenAI Agents SDK: two agents work at the same time as tools of a third. No header names any of them."""
    monkeypatch.setenv("AGENTX_KEYS", str(tmp_path / "keys"))
    script = Script(tuple(Rule.model_validate(rule) for rule in DELEGATION), pytest.fail)
    with running(EngineSettings(), script=script) as url:
        record(tmp_path, url, [str(AGENTS), "-c", LEAD, wire])
    compile_capture(tmp_path / "cap", tmp_path / "a.trace", template=Template(1, 1))
    [session] = read_trace(tmp_path / "a.trace")
    assert [thread.kind for thread in session.threads] == ["main", "subagent", "subagent"]
    assert [len([turn for turn in session.turns if turn.thread == thread]) for thread in range(3)] == [2, 2, 2]
    last = session.turns[-1]
    assert (last.thread, last.gap.kind, len(last.tools), len(last.after)) == (0, "tool", 2, 3)
    replay(tmp_path / "a.trace", out=tmp_path / "run", sets=["gaps.scale=0"])
    assert compare_recorded(tmp_path / "a.trace", tmp_path / "run").reasons == ()
