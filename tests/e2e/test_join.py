"""An agent with parallel tools through `agentx record`: with its spans, the compiled pauses are what the spans say."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import openai
import pytest
from asking import FAST
from recording_process import AGENTX, ENVIRONMENT, recording

from agentx.core import GapParts
from agentx.engine.http_script import Rule, Script
from agentx.engine.server import running
from agentx.engine.settings import EngineSettings
from agentx.recorder.pauses import Interval, length
from agentx.trace import read_trace

RULES = [
    {
        "contains": "start",
        "text": "Both.",
        "calls": [{"name": "Bash", "arguments": {"command": "a"}}, {"name": "Read"}],
    },
    {"contains": "Read", "text": "One more.", "calls": [{"name": "Grep", "arguments": {}}]},
    {"contains": "Grep", "text": "Done."},
]
TOOLS: Any = [{"type": "function", "function": {"name": name}} for name in ("Bash", "Read", "Grep")]
BUSY = {"Bash": 0.05, "Read": 0.09, "Grep": 0.03}  # s
ASK = 0.04  # s that the agent's user takes to allow Grep


class Done(NamedTuple):
    """A tool that ran: nanoseconds of the wall clock."""

    call: str
    name: str
    asked: Interval | None
    ran: Interval


def work(call: Any) -> Done:
    begun = time.time_ns()
    name = call.function.name
    asked = None
    if name == "Grep":
        time.sleep(ASK)
        asked, begun = (begun, time.time_ns()), time.time_ns()
    time.sleep(BUSY[name])
    return Done(call.id, name, asked, (begun, time.time_ns()))


def agent(url: str) -> list[list[Done]]:
    """Runs until no tool is called; the tools of each pause."""
    client, talk, pauses = (
        openai.OpenAI(base_url=f"{url}/v1", api_key="none"),
        [{"role": "user", "content": "start"}],
        [],
    )
    while True:
        message = client.chat.completions.create(model="m", messages=talk, tools=TOOLS).choices[0].message  # type: ignore
        if not message.tool_calls:
            return pauses
        with ThreadPoolExecutor(4) as pool:
            pauses.append(list(pool.map(work, message.tool_calls)))
        talk.append(message.model_dump(include={"role", "content", "tool_calls"}))
        talk += [{"role": "tool", "tool_call_id": done.call, "content": done.name} for done in pauses[-1]]


def spans(pauses: list[list[Done]], ahead: int = 0) -> dict[str, Any]:
    """OTLP-JSON as Claude Code writes it, of a machine whose clock is `ahead` nanoseconds ahead."""

    def span(name: str, at: Interval, id: str, parent: str = "", call: str = "") -> dict[str, Any]:
        told = [{"key": "tool_use_id", "value": {"stringValue": call}}] if call else []
        return {"name": f"claude_code.tool{name}", "spanId": id, "parentSpanId": parent, "attributes": told,
                "startTimeUnixNano": str(at[0] + ahead), "endTimeUnixNano": str(at[1] + ahead)}  # fmt: skip

    made = []
    for done in (done for pause in pauses for done in pause):
        begin = done.asked[0] if done.asked else done.ran[0]
        made.append(span("", (begin, done.ran[1]), done.call, call=done.call))
        made.append(span(".execution", done.ran, f"{done.call} e", done.call))
        made += [span(".blocked_on_user", done.asked, f"{done.call} b", done.call)] if done.asked else []
    return {"resourceSpans": [{"scopeSpans": [{"spans": made}]}]}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[Done]]]:
    folder = tmp_path_factory.mktemp("join")
    script = Script(tuple(Rule.model_validate(rule) for rule in RULES), lambda text: None)
    with (
        running(EngineSettings(timing=FAST), script=script) as upstream,
        recording(folder, upstream) as (process, url, _),
    ):
        pauses = agent(url)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    return folder, pauses


def compiled(folder: Path, *options: str) -> tuple[int, str]:
    words = [*AGENTX, "compile", "cap", "-o", "b.trace", *options]
    environment = {**ENVIRONMENT, "AGENTX_KEYS": str(folder / "keys")}
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=folder, env=environment, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("ahead", [0, 7 * 10**9, -86_400 * 10**9])
def test_the_pauses_are_those_of_the_spans(recorded: tuple[Path, list[list[Done]]], ahead: int) -> None:
    folder, pauses = recorded
    assert [len(pause) for pause in pauses] == [2, 1]
    (folder / "spans.json").write_text(json.dumps(spans(pauses, ahead)))
    code, said = compiled(folder, "--join", "spans.json")
    assert code == 0, said
    assert "tool calls of the capture: 3 of 3 found in what was joined; pauses: 2 of 2 explained" in said
    assert ("its clock agrees with the capture's" in said) == (ahead == 0)
    (session,) = read_trace(folder / "b.trace")
    first, second = (turn.gap for turn in session.turns[1:])
    both, (grep,) = pauses
    assert first.parts == GapParts(round(length(done.ran for done in both) / 1e9, 6))
    assert grep.asked is not None
    waited = round((grep.asked[1] - grep.asked[0]) / 1e9, 6)
    assert second.parts == GapParts(round((grep.ran[1] - grep.ran[0]) / 1e9, 6), waited)
    for gap in (first, second):
        assert (gap.kind, gap.provenance) == ("tool", "recorded")
        assert gap.parts is not None
        assert gap.seconds > (gap.parts.tool or 0.0) + (gap.parts.human or 0.0)  # the rest is the client's own time
    times = {tool.name: tool.seconds for turn in session.turns for tool in turn.tools}
    assert times == {done.name: round((done.ran[1] - done.ran[0]) / 1e9, 6) for pause in pauses for done in pause}


def test_without_spans_the_pauses_are_whole(recorded: tuple[Path, list[list[Done]]]) -> None:
    folder, _ = recorded
    assert compiled(folder)[0] == 0
    (session,) = read_trace(folder / "b.trace")
    assert [turn.gap.parts for turn in session.turns] == [None] * 3


def test_another_runs_spans_are_an_error(recorded: tuple[Path, list[list[Done]]]) -> None:
    folder, pauses = recorded
    other = [[done._replace(call=f"other {done.call}") for done in pause] for pause in pauses]
    (folder / "other.json").write_text(json.dumps(spans(other)))
    (folder / "b.trace").unlink(missing_ok=True)
    code, said = compiled(folder, "--join", "other.json")
    assert code == 2
    assert said.count("\n") == 1
    assert "other.json: nothing in it is of this capture: 0 of 3 tool calls, by their ids" in said
    assert not (folder / "b.trace").exists()
