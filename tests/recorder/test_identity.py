"""What a call says it is from: the first rule that fires, and its name."""

from __future__ import annotations

import pytest

from agentx.recorder.identity import OwnHeaders, Said, said, settled


@pytest.mark.parametrize(
    ("ids", "body", "expected"),
    [
        ({}, [], Said()),
        (
            {"x-claude-code-session-id": "s"},
            [("metadata.user_id", "t")],
            Said("s", None, None, "x-claude-code-session-id"),
        ),
        ({}, [("metadata.user_id", "t"), ("prompt_cache_key", "k")], Said("t", None, None, "metadata.user_id")),
        # Claude Code's subagent and its parent
        (
            {"x-claude-code-session-id": "s", "x-claude-code-agent-id": "a", "x-claude-code-parent-agent-id": "p"},
            [],
            Said("s", "a", "p", "x-claude-code-session-id"),
        ),
        # Codex names its main thread like its session
        ({"session_id": "s", "thread-id": "s"}, [], Said("s", None, None, "session_id")),
        ({"session_id": "s", "thread-id": "t", "x-codex-parent-thread-id": "s"}, [], Said("s", "t", "s", "session_id")),
        # a child that is a session of its own: an agent of the session that started it
        ({"x-session-id": "child", "x-parent-session-id": "parent"}, [], Said("parent", "child", None, "x-session-id")),
        # any x-…-session-id, whose name may be a company's: it is not in the trace
        ({"x-vendor-session-id": "v"}, [], Said("v", None, None, "x-*-session-id")),
        ({"x-mine": "m", "x-session-id": "s"}, [], Said("m", None, None, "a header of the profile")),  # it comes first
        ({"x-request-id": "r", "traceparent": "t"}, [], Said()),  # names of calls, not of sessions
    ],
)
def test_rules(ids: dict[str, str], body: list[tuple[str, str]], expected: Said) -> None:
    assert said(ids, body, OwnHeaders(session=("x-mine",))) == expected


def test_grandchildren_are_in_their_roots_session() -> None:
    """Clients whose subagents are sessions name only the session above: the chain is followed to its end."""
    root, child, grandchild = Said("r"), Said("r", "c"), Said("c", "g")
    assert settled([root, child, grandchild]) == [root, child, Said("r", "g", "c")]
    assert settled([Said("a", "b"), Said("b", "a")])[0].session in ("a", "b")  # a circle ends
    assert settled([Said("s", "x"), Said("t", "y")]) == [Said("s", "x"), Said("t", "y")]
