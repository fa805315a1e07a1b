"""A published agent, mini-swe-agent, through the recorder: what it sent is what the trace holds and a replay sends.

It runs where the agent is found: `mini` on the PATH, or the path in AGENTX_MINI (`pip install mini-swe-agent`).
"""

from __future__ import annotations

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
from agentx.recorder.weaving import Template
from agentx.reporter.compare_recorded import compare_recorded
from agentx.reuse import possible

MINI = os.environ.get("AGENTX_MINI") or shutil.which("mini")
pytestmark = pytest.mark.skipif(MINI is None, reason="mini-swe-agent is not installed, and AGENTX_MINI names no other")


def bash(text: str, command: str, **match: Any) -> Rule:
    return Rule.model_validate({**match, "text": text, "calls": [{"name": "bash", "arguments": {"command": command}}]})


RULES = (
    bash("I look first.", "ls; seq 1 400", contains="Count the files", times=1),
    bash("Now I count.", "ls | wc -l > answer; cat answer; seq 1000 1600", contains="400", times=1),
    bash("I check it.", "cat answer", contains="1600", times=1),
    bash("Done.", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat answer"),
)


def record(folder: Path, upstream: str) -> None:
    """Run the agent through the recorder."""
    environment = {**os.environ, "AGENTX_KEYS": str(folder / "keys")}
    words = [sys.executable, "-m", "agentx", "record", "litellm", "--upstream", upstream, "--port", "0", "-o", "cap"]
    recorder = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment)
    try:
        assert recorder.stderr is not None
        url = recorder.stderr.readline().split()[1]
        (folder / "work").mkdir()
        own = {
            **os.environ, "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_BASE": f"{url}/v1", "OPENAI_API_KEY": "sk-none-1",
            "MSWEA_COST_TRACKING": "ignore_errors", "MSWEA_CONFIGURED": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }  # fmt: skip
        own.pop("PYTHONPATH", None)
        agent = [str(MINI), "-t", "Count the files here", "-m", "openai/agentx", "-y", "--exit-immediately", "-o", "t"]
        done = subprocess.run(
            agent, cwd=folder / "work", env=own, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout.decode()[-2000:]
    finally:
        recorder.send_signal(signal.SIGINT)
        recorder.communicate(timeout=20)


def test_the_replay_of_a_published_agent_is_what_it_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTX_KEYS", str(tmp_path / "keys"))
    log = tmp_path / "engine.log"
    with running(EngineSettings(), script=Script(RULES, lambda text: None), log=log) as url:
        record(tmp_path, url)
    sent = [json.loads(line) for line in log.read_text().splitlines()]
    lengths = [(each["prompt_tokens"], each["completion_tokens"]) for each in sent]
    assert len(lengths) == len(RULES)
    compile_capture(tmp_path / "cap", tmp_path / "a.trace", template=Template(1, 1))
    [session] = read_trace(tmp_path / "a.trace")
    assert [(turn.isl, turn.output.tokens) for turn in session.turns] == lengths
    assert {tool.name for turn in session.turns for tool in turn.tools} == {"bash"}

    replay(tmp_path / "a.trace", out=tmp_path / "run", sets=["gaps.scale=0"])
    found = compare_recorded(tmp_path / "a.trace", tmp_path / "run")
    assert found.reasons == ()
    assert (found.prompts.told, found.replies.told, found.cached.told) == (len(RULES),) * 3
    # Possible reuse: what the agent's own server found in its cache, but for the last token of each reply, which has no
    # KV, and the markers of roles, which are the template's.
    found = sum(sum(each["cached_tokens"].values()) for each in sent)
    markers = sum(len(session.pieces(turn.index)) + 2 for turn in session.turns)
    reused = possible(read_trace(tmp_path / "a.trace")).reused
    assert abs(reused - found) <= markers
