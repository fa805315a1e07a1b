"""docs/howto-record.md is run: its clients talk to the engine through the recorder that it starts, and then what the
recorder says comes next."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agentx.engine.http_script import Rule, Script
from agentx.engine.server import running
from agentx.engine.settings import EngineSettings
from agentx.trace import read_trace

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "howto-record.md"
AGENTX = [sys.executable, "-m", "agentx"]
RULES = [
    {"contains": "which files", "text": "I look.", "calls": [{"name": "Bash", "arguments": {"command": "ls"}}]},
    {"text": "Two."},
]


def blocks(language: str) -> list[str]:
    return re.findall(rf"<!-- run as a test -->\n```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def ran(words: list[str], cwd: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_clients_are_recorded_and_what_comes_next_works(tmp_path: Path) -> None:
    pytest.importorskip("anthropic")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "AGENTX_KEYS": str(tmp_path / "keys")}
    script = Script(tuple(Rule.model_validate(rule) for rule in RULES), pytest.fail)
    with running(EngineSettings(), script=script) as upstream:
        words = [*AGENTX, "record", "sglang", "--upstream", upstream, "--port", "0", "-o", "cap/"]
        recorder = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment)
        assert recorder.stderr is not None
        try:
            own = {**environment, "OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none"}
            while not (line := recorder.stderr.readline()).startswith("  end with"):
                assert line, "the recorder ended"
                if line.startswith("  export "):
                    name, value = line.removeprefix("  export ").strip().split("=", 1)
                    own[name] = value
            said = [ran([sys.executable, "-c", program], tmp_path, own) for program in blocks("python")]
        finally:
            recorder.send_signal(signal.SIGINT)
            _, err = recorder.communicate(timeout=20)
    assert said == ["I look.\nTwo.\n", "tool_use\nend_turn\n"]
    assert "calls       5 to a model, 5 answered" in err
    words = shlex.split(err.splitlines()[-1].removeprefix("next: "))
    assert words == ["agentx", "compile", "cap", "-o", "cap.trace"]
    ran([*AGENTX, *words[1:]], tmp_path, environment)
    sessions = list(read_trace(tmp_path / "cap.trace"))
    assert sorted(session.extra["known_by"] for session in sessions) == ["linked", "linked", "x-session-id"]
    assert sorted([turn.gap.kind for turn in session.turns] for session in sessions) == [
        ["unknown"], ["unknown", "tool"], ["unknown", "tool"],
    ]  # fmt: skip
