"""Clients' own files that are laid beside a capture: what the readers of imports learn of tools, users and subagents.

Their calls are not used: the capture has them, exactly. Content is read and forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from agentx.errors import BadInput
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.detect import detect
from agentx.recorder.imports.logged import LoggedFormat, Reading, calls_of, units_of
from agentx.recorder.joining import Beside
from agentx.recorder.keys import CaptureKey

# What is detected -> the module that reads it.
JOINABLE = {
    "otel": "otel",
    "claude-code": "claude_code",
    "claude-bodies": "claude_bodies",
    "codex": "codex",
    "codex-trace": "codex_trace",
    "mini-swe-agent": "mini_swe_agent",
    "openhands-events": "openhands_events",
}


def beside(paths: Sequence[Path]) -> Callable[[CaptureKey], list[Beside]]:
    """What the files say, as soon as the key is known that names sessions and agents.

    Raises BadInput then, for a file of another format, or one that tells of no tool and no user.
    """
    return lambda key: [_read(path, key) for path in paths]


def _read(path: Path, key: CaptureKey) -> Beside:
    name = detect(path)
    if name not in JOINABLE:
        raise BadInput(
            f"a file of {name} says nothing of tools and users beside the calls",
            file=path,
            hint=f"what can be joined: {', '.join(sorted(JOINABLE))}",
        )
    format: LoggedFormat = import_module(f"agentx.recorder.imports.{JOINABLE[name]}").make_format()
    reading = Reading(Books(format.row, fidelity=format.fidelity), key)
    for _ in calls_of(format, units_of(format, [path]), reading):
        pass
    if not reading.tool_times and not reading.runs and not reading.prompts:
        raise BadInput("it tells of no tool and no message of a user", file=path, hint="leave it out")
    return Beside(path, name, reading.tool_times, reading.runs, reading.prompts)
