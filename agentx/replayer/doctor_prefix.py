"""Prefix stability: whether a server's chat template keeps earlier turns as they were when later ones come.

A cache can give a turn what its prompt shares with the one before it. In a trace that is the whole prompt before;
on the wire it is what the template leaves unchanged. So a small conversation is rendered turn by turn by the server
itself, and each rendering is compared with the one before it: at tool turns, and at user messages, where many templates
take the reasoning out of earlier replies. The last tokens of a rendering open the reply (its role, often the
beginning of thinking) and may be written otherwise once the reply stands there: up to OPENING of them are not counted
against a template.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import aiohttp

from agentx.replayer.doctor_check import Check

ANSWER = aiohttp.ClientTimeout(total=60)
OPENING = 8  # tokens that may open a reply: a marker, a role, a line end, a thinking tag with its own line ends

Message = dict[str, Any]

_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "description": "Read a file of the project",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
    }
]
_SYSTEM = "You work on a small project. Read before you write, and say what you changed."


class Shape(NamedTuple):
    """One way to send a conversation: as plain messages, as replays send it, or with tools and reasoning."""

    name: str
    tools: list[dict[str, Any]] | None
    turns: list[tuple[str, list[Message]]]  # (what the turn waited for, its messages)


def shapes() -> list[Shape]:
    """The conversations: a user message, a tool turn, a second one, a user message, a tool turn."""
    return [
        Shape("plain messages", None, list(_turns(_plain))),
        Shape("tools and reasoning", _TOOLS, list(_turns(_tooled))),
    ]


def _turns(step: Any) -> Iterator[tuple[str, list[Message]]]:
    said: list[Message] = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": "Why does it fail?"}]
    yield "user", list(said)
    for number, kind in enumerate(("tool", "tool", "user", "tool")):
        said += step(number, kind)
        yield kind, list(said)


def _plain(number: int, kind: str) -> list[Message]:
    follows = f"read_file gave line {number} of it" if kind == "tool" else f"Then mend it, for the {number}. time."
    return [{"role": "assistant", "content": f"I look at part {number}."}, {"role": "user", "content": follows}]


def _tooled(number: int, kind: str) -> list[Message]:
    thought = f"Step {number}: the file tells more than the message does."
    if kind == "user":
        reply: Message = {"role": "assistant", "content": "It was line 3.", "reasoning_content": thought}
        return [reply, {"role": "user", "content": "Then mend it."}]
    call = {"name": "read_file", "arguments": json.dumps({"path": f"part-{number}.txt"})}
    reply = {
        "role": "assistant",
        "content": "",
        "reasoning_content": thought,
        "tool_calls": [{"id": f"call_{number}", "type": "function", "function": call}],
    }
    return [reply, {"role": "tool", "tool_call_id": f"call_{number}", "content": f"line {number}"}]


async def prefix_checks(session: aiohttp.ClientSession, base: str, model: str) -> list[Check]:
    """One check for the tool turns and one for the user turns of each shape."""
    found: list[Check] = []
    for shape in shapes():
        rendered: list[list[int]] = []
        for _, messages in shape.turns:
            ids = await _rendered(session, base, model, messages, shape.tools)
            if isinstance(ids, str):
                found.append(Check(f"prefix, {shape.name}", "unknown", ids, _MEND_UNSEEN))
                break
            rendered.append(ids)
        else:
            found += compared(shape, rendered)
    return found


_MEND_UNSEEN = (
    "a server with /tokenize for messages (SGLang 0.5.16 and later have it), or wire: generate with token ids"
)
_MEND = (
    "wire: generate, chat-ids or completions-ids with history: live-ids sends token ids, which no template changes; "
    "or a template that keeps what it has rendered (of some models with chat_template_kwargs such as clear_thinking)"
)


def compared(shape: Shape, rendered: Sequence[Sequence[int]]) -> Iterator[Check]:
    """What the renderings of a conversation's turns say, by what the turns waited for."""
    steps = [
        (kind, place, len(before), common(before, after))
        for place, ((kind, _), before, after) in enumerate(
            zip(shape.turns[1:], rendered, rendered[1:], strict=False), start=2
        )
    ]
    for wanted in ("tool", "user"):
        of_kind = [step for step in steps if step[0] == wanted]
        worst = min(of_kind, key=lambda step: step[3] - step[2])
        _, place, length, kept = worst
        name = f"prefix at {wanted} turns, {shape.name}"
        if length - kept <= OPENING:
            said = f"turn {place} keeps {kept} of the {length} tokens before it, as the trace does"
            yield Check(name, "ok", said if kept == length else f"{said}, but for how a reply opens")
        else:
            said = (
                f"turn {place} keeps {kept} of the {length} tokens before it, where the trace keeps all: the template "
                f"writes {length - kept} of them anew"
            )
            yield Check(name, "problem", said, _MEND)


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many leading tokens are the same."""
    for place, (first, second) in enumerate(zip(one, other, strict=False)):
        if first != second:
            return place
    return min(len(one), len(other))


async def _rendered(
    session: aiohttp.ClientSession, base: str, model: str, messages: list[Message], tools: list[dict[str, Any]] | None
) -> list[int] | str:
    """Token ids of a conversation by the server's own template, or why there are none."""
    body: dict[str, Any] = {"model": model, "messages": messages}
    if tools is not None:
        body["tools"] = tools
    answer = await _posted(session, f"{base}/tokenize", body)
    if ids := _ids(answer.get("tokens") if isinstance(answer, dict) else None):
        return ids
    # SGLang's chat without a stream gives the ids of its prompt, which takes a reply of one token.
    asked = {**body, "max_tokens": 1, "return_prompt_token_ids": True}
    answer = await _posted(session, f"{base}/v1/chat/completions", asked)
    choices = answer.get("choices") if isinstance(answer, dict) else None
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    if ids := _ids(first.get("prompt_token_ids")):
        return ids
    return "the server renders no conversation to token ids" + (f": {answer}" if isinstance(answer, str) else "")


def _ids(found: Any) -> list[int]:
    """Token ids; none for anything else."""
    return found if isinstance(found, list) and all(isinstance(each, int) for each in found) else []


async def _posted(session: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> Any:
    """The JSON of a 200; else words on what came instead."""
    try:
        async with session.post(url, json=body, timeout=ANSWER) as response:
            if response.status == 200:
                return await response.json(content_type=None)
            return f"{url} answers {response.status}: {(await response.text(errors='replace'))[:200]}"
    except (aiohttp.ClientError, asyncio.TimeoutError, ValueError) as error:
        return f"{url}: {error or type(error).__name__}"
