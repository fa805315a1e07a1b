"""Bodies of Anthropic's `/v1/messages`: JSON bytes in, a `Call` out. No sockets.

A conversation becomes the chat messages that say the same, so that its token ids do not depend on the API: the system
prompt is the first message, each tool result a message of its own, in order; thinking, text and tool calls of an
assistant message are one message. Texts within a message are joined as they are.
"""

from __future__ import annotations

import uuid
from typing import Any, Literal

import pydantic

from agentx.engine.http_calls import Call, Rejected, check_limit, parse_body, rendered, said
from agentx.engine.settings import EngineSettings
from agentx.engine.tokenizer import compact

_Blocks = list[dict[str, Any]]


class _Message(pydantic.BaseModel):
    role: Literal["user", "assistant", "system"]
    content: str | _Blocks


class _Conversation(pydantic.BaseModel):
    model: str
    messages: list[_Message]
    system: str | _Blocks | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: dict[str, Any] | None = None


class _Messages(_Conversation):
    max_tokens: int = pydantic.Field(gt=0)
    stream: bool | None = False


def messages_call(body: bytes, settings: EngineSettings) -> Call:
    """A `/v1/messages` body; `check_context` is still to be asked. Raises Rejected."""
    asked = parse_body(_Messages, body)
    check_limit(asked.max_tokens, settings)
    chat, tools = _chat(asked), _tools(asked)
    return Call(
        rid=f"msg_{uuid.uuid4().hex}",
        model=asked.model,
        prompt=rendered(chat, tools),
        max_new=asked.max_tokens,
        min_new=0,
        ignore_eos=False,
        namespace="",
        stream=bool(asked.stream),
        last=said(chat),
        parsed=True,
        tools=bool(tools),
    )


def count_tokens(body: bytes) -> int:
    """Prompt tokens of a `/v1/messages/count_tokens` body. Raises Rejected."""
    asked = parse_body(_Conversation, body)
    return len(rendered(_chat(asked), _tools(asked))) // 4


def _chat(asked: _Conversation) -> list[dict[str, Any]]:
    if not asked.messages:
        raise Rejected("Messages cannot be empty.")
    system = _text(asked.system, "system") if asked.system else ""
    chat: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    for number, message in enumerate(asked.messages):
        if isinstance(message.content, str):
            chat.append({"role": message.role, "content": message.content})
        elif message.role == "assistant":
            chat.append(_assistant(message.content, f"messages.{number}"))
        else:
            chat += _user(message.role, message.content, f"messages.{number}")
    return chat


def _user(role: str, blocks: _Blocks, where: str) -> list[dict[str, Any]]:
    """Tool results stand alone, in the order in which they come; texts between them are one message."""
    chat: list[dict[str, Any]] = []
    open_text = False
    for block in blocks:
        if block.get("type") == "tool_result":
            chat.append({"role": "tool", "content": _text(block.get("content"), where)})
            open_text = False
        elif open_text:
            chat[-1]["content"] += _text([block], where)
        else:
            chat.append({"role": role, "content": _text([block], where)})
            open_text = True
    return chat


def _assistant(blocks: _Blocks, where: str) -> dict[str, Any]:
    reasoning, texts, calls = [], [], []
    for block in blocks:
        kind = block.get("type")
        if kind == "thinking":
            reasoning.append(str(block.get("thinking") or ""))
        elif kind == "tool_use":
            function = {"name": block.get("name"), "arguments": compact(block.get("input") or {})}
            calls.append({"type": "function", "function": function})
        else:
            texts.append(_text([block], where))
    return {
        "role": "assistant",
        "content": "".join(texts),
        "reasoning_content": "".join(reasoning),
        "tool_calls": calls,
    }


def _text(content: object, where: str) -> str:
    """Text, or the text of text blocks. Raises Rejected for any other block."""
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for block in content if isinstance(content, list) else [content]:
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(block, dict) or kind != "text" or not isinstance(block.get("text"), str):
            raise Rejected(f"{where}: this engine reads text, thinking, tool_use and tool_result, not {kind!r}")
        texts.append(block["text"])
    return "".join(texts)


def _tools(asked: _Conversation) -> list[dict[str, Any]]:
    """The tools as chat has them; those that Anthropic's own servers run have no schema and are left out."""
    choice = (asked.tool_choice or {}).get("type")
    if choice == "none":
        return []
    tools = [
        {
            "type": "function",
            "function": {
                "name": tool.get("name"),
                "description": tool.get("description"),
                "parameters": tool.get("input_schema"),
            },
        }
        for tool in asked.tools or []
        if tool.get("type") in (None, "custom")
    ]
    if choice in ("any", "tool") and not tools:
        raise Rejected(f"tool_choice={choice!r} requires at least one custom tool")
    return tools
