"""Bodies of OpenAI's `/v1/responses`: JSON bytes in, a `Call` out. No sockets.

Input items become the chat messages that say the same, so that their token ids do not depend on the API: instructions
are the first message, and a run of reasoning, message and function_call items is one assistant message, until a second
message or reasoning begins the next. Nothing is stored, as in SGLang 0.5.23 without its response store.
"""

from __future__ import annotations

import uuid
from typing import Any

import pydantic

from agentx.engine.http_calls import Call, Rejected, limit_of, parse_body, rendered, said
from agentx.engine.settings import EngineSettings
from agentx.engine.tokenizer import compact

HEADROOM = 2  # tokens that SGLang takes off max_output_tokens
_STORELESS = "this engine stores no responses: send the whole conversation as input."
_TEXTS = ("input_text", "output_text", "text")


class _Responses(pydantic.BaseModel):
    input: str | list[dict[str, Any]]
    model: str = "default"
    instructions: str | None = None
    max_output_tokens: int | None = None
    tools: list[dict[str, Any]] = []
    tool_choice: str | dict[str, Any] = "auto"
    stream: bool | None = False
    background: bool | None = False
    previous_response_id: str | None = None
    parallel_tool_calls: bool | None = True
    reasoning: dict[str, Any] | None = None
    store: bool | None = True
    temperature: float | None = None
    text: dict[str, Any] | None = None
    top_p: float | None = None
    truncation: str | None = "disabled"
    user: str | None = None
    metadata: dict[str, Any] | None = None


def responses_call(body: bytes, settings: EngineSettings) -> Call:
    """A `/v1/responses` body; `check_context` is still to be asked. Raises Rejected."""
    asked = parse_body(_Responses, body)
    if asked.previous_response_id is not None or asked.background:
        what = "background" if asked.background else "previous_response_id"
        raise Rejected(f"{what}: {_STORELESS}")
    chat = _chat(asked)
    tools = [] if asked.tool_choice == "none" else _tools(asked.tools)
    prompt = rendered(chat, tools)
    limit = asked.max_output_tokens
    return Call(
        rid=f"resp_{uuid.uuid4().hex}",
        model=asked.model,
        prompt=prompt,
        max_new=limit_of(None if limit is None else limit - HEADROOM, prompt, settings),
        min_new=0,
        ignore_eos=False,
        namespace="",
        stream=bool(asked.stream),
        last=said(chat),
        parsed=True,
        tools=bool(tools),
        told=_told(asked),
    )


def _told(asked: _Responses) -> dict[str, object]:
    """What a response object repeats of its request."""
    reasoning = asked.reasoning or {}
    return {
        "parallel_tool_calls": asked.parallel_tool_calls is not False,
        "tool_choice": asked.tool_choice,
        "tools": asked.tools,
        "instructions": asked.instructions,
        "max_output_tokens": asked.max_output_tokens,
        "previous_response_id": None,
        "reasoning": {"effort": reasoning.get("effort"), "summary": None},
        "store": asked.store,
        "temperature": asked.temperature,
        "text": asked.text,
        "top_p": asked.top_p,
        "truncation": asked.truncation,
        "user": asked.user,
        "metadata": asked.metadata or {},
    }


def _chat(asked: _Responses) -> list[dict[str, Any]]:
    chat: list[dict[str, Any]] = []
    if asked.instructions:
        chat.append({"role": "system", "content": asked.instructions})
    if isinstance(asked.input, str):
        chat.append({"role": "user", "content": asked.input})
        return chat
    for number, item in enumerate(asked.input):
        _add(chat, item, f"input.{number}")
    return chat


def _add(chat: list[dict[str, Any]], item: dict[str, Any], where: str) -> None:
    kind = item.get("type") or "message"
    if kind == "message":
        content = _text(item.get("content"), where)
        if item.get("role") == "assistant":
            _turn(chat, unless=("content", "tool_calls"))["content"] = content
        else:
            chat.append({"role": item.get("role"), "content": content})
    elif kind == "reasoning":
        reasoning = _reasoning(item, where)
        if reasoning:
            _turn(chat, unless=("content", "tool_calls", "reasoning_content"))["reasoning_content"] = reasoning
    elif kind in ("function_call", "custom_tool_call"):
        arguments = item.get("arguments") if kind == "function_call" else {"input": item.get("input")}
        text = arguments if isinstance(arguments, str) else compact(arguments or {})
        call = {"type": "function", "function": {"name": item.get("name"), "arguments": text}}
        _turn(chat, unless=())["tool_calls"].append(call)
    elif kind in ("function_call_output", "custom_tool_call_output"):
        chat.append({"role": "tool", "content": _text(item.get("output"), where)})
    else:
        raise Rejected(f"{where}: Unsupported Responses API input item type: {kind!r}")


def _turn(chat: list[dict[str, Any]], *, unless: tuple[str, ...]) -> dict[str, Any]:
    """The assistant message at the end, or a new one when there is none or it has one of `unless` already."""
    last = chat[-1] if chat else {}
    if last.get("role") != "assistant" or any(last[key] for key in unless):
        chat.append({"role": "assistant", "content": "", "reasoning_content": "", "tool_calls": []})
    return chat[-1]


def _reasoning(item: dict[str, Any], where: str) -> str:
    """The summary, or the text when there is none; a reasoning that is only encrypted says nothing."""
    for key in ("summary", "content"):
        parts = item.get(key)
        if isinstance(parts, list) and parts:
            texts = [part.get("text") if isinstance(part, dict) else None for part in parts]
            if not all(isinstance(text, str) for text in texts):
                raise Rejected(f"{where}.{key}: parts must have text")
            return "".join(map(str, texts))
    return ""


def _text(content: object, where: str) -> str:
    """Text, or the text of text parts. Raises Rejected for anything else."""
    if isinstance(content, str):
        return content
    texts = []
    for part in content if isinstance(content, list) else [content]:
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(part, dict) or kind not in _TEXTS or not isinstance(part.get("text"), str):
            raise Rejected(f"{where}: content must be text, got a part of type {kind!r}")
        texts.append(part["text"])
    return "".join(texts)


def _tools(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Functions and custom tools as chat has them; those that OpenAI's own servers run are left out."""
    return [
        {"type": "function", "function": {key: tool.get(key) for key in ("name", "description", "parameters")}}
        for tool in tools
        if tool.get("type") in ("function", "custom")
    ]
