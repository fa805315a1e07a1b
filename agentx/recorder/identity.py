"""Which session, agent and parent a call says it is from: headers first, then the body; the rule that fired is kept.

Everything here is a pseudonym of the capture's key. The rule is in the trace: a header that is not a known one may have
the name of a company or a product, and is not named. What a client does not say stays None; `lineage.py` then goes by
content. The order is that of trust: a client's own header, a gateway's, the body.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

SESSION_HEADERS = (
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "conversation_id",
    "conversation-id",
    "x-session-id",
    "x-opencode-session",
    "x-session-affinity",
    "x-interaction-id",
    "x-client-session-id",
    "x-kilocode-taskid",
    "x-mux-workspace-id",
    "x-coder-chat-id",
    "x-litellm-session-id",
    "x-litellm-trace-id",
    "helicone-session-id",
    "x-dynamo-session-id",
    "x-smg-routing-key",
    "x-correlation-id",
    "baggage:session.id",
)
AGENT_HEADERS = ("x-claude-code-agent-id", "thread-id", "thread_id")
PARENT_HEADERS = ("x-claude-code-parent-agent-id", "x-codex-parent-thread-id")
# Clients whose subagents are sessions of their own, which name the session that started them.
PARENT_SESSION_HEADERS = ("x-parent-session-id", "x-dynamo-parent-session-id")
OF_PROFILE, OF_ANY = "a header of the profile", "x-*-session-id"  # what rules of headers that are not named are called
ANY_SESSION = re.compile(r"x-[a-z0-9-]+-session-id\Z")


@dataclass(frozen=True, slots=True)
class Said:
    """What a call says of itself. `rule` names the header or field that gave the session."""

    session: str | None = None
    agent: str | None = None
    parent: str | None = None
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class OwnHeaders:
    """Headers of a recorder profile that come before the known ones; names in lower case."""

    session: Sequence[str] = ()
    agent: Sequence[str] = ()
    parent: Sequence[str] = ()


def said(ids: Mapping[str, str], body_ids: Sequence[tuple[str, str]], own: OwnHeaders = OwnHeaders()) -> Said:
    """The identity of a call from its header and body pseudonyms."""
    rule, session = _first(ids, (*own.session, *SESSION_HEADERS))
    if rule is not None and rule not in SESSION_HEADERS:
        rule = OF_PROFILE
    if session is None:
        any_of = sorted(name for name in ids if ANY_SESSION.match(name) and "parent" not in name)
        rule, session = (OF_ANY, ids[any_of[0]]) if any_of else (None, None)
    if session is None and body_ids:
        rule, session = body_ids[0]
    agent = _first(ids, (*own.agent, *AGENT_HEADERS))[1]
    parent = _first(ids, (*own.parent, *PARENT_HEADERS))[1]
    outer = _first(ids, PARENT_SESSION_HEADERS)[1]
    if outer is not None and outer != session:
        return Said(outer, session, None, rule)  # the child's own session is an agent of its parent's
    if agent is not None and parent is None and agent == session:
        agent = None  # a client that names its main thread like its session
    return Said(session, agent, parent, rule)


def settled(all_of: Sequence[Said]) -> list[Said]:
    """The same with grandchildren in their root's session: a child session that has children is an agent too."""
    outer = {each.agent: each.session for each in all_of if each.agent is not None and each.agent != each.session}
    return [_rooted(each, outer) for each in all_of]


def _rooted(said: Said, outer: Mapping[str, str | None]) -> Said:
    session, parent, seen = said.session, said.parent, {said.agent}
    while session is not None and outer.get(session) is not None and session not in seen:
        seen.add(session)
        parent, session = parent or session, outer[session]
    return replace(said, session=session, parent=parent)


def _first(ids: Mapping[str, str], names: Sequence[str]) -> tuple[str | None, str | None]:
    return next(((name, ids[name]) for name in names if name in ids), (None, None))


_OLD_USER = re.compile(r"_session_([0-9a-fA-F-]{8,})\Z")


def body_ids(request: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(name, value) of what in a request's body names a conversation, best first."""
    metadata = request.get("metadata")
    if isinstance(metadata, dict):
        user = metadata.get("user_id")
        if isinstance(user, str):
            if match := _OLD_USER.search(user):
                yield "metadata.user_id", match[1]
            else:
                try:
                    session = json.loads(user)["session_id"]
                except (ValueError, KeyError, TypeError, RecursionError):
                    session = None
                if isinstance(session, str):
                    yield "metadata.user_id", session
        for name in ("session_id", "conversation_id"):
            if isinstance(metadata.get(name), str):
                yield f"metadata.{name}", metadata[name]
    conversation = request.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    if isinstance(conversation, str):
        yield "conversation", conversation
    for name in ("prompt_cache_key", "litellm_session_id"):
        if isinstance(request.get(name), str):
            yield name, request[name]
