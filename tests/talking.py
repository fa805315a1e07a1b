"""Conversations that the `openai` and `anthropic` packages hold: one agent, in each of their APIs.

A `Dialect` says the same conversation in the words of one API, and tells what its client received in the same words
for all. Clients may be synchronous or not; streams are read by the packages' own helpers.
"""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Json = dict[str, Any]
SYSTEM = "You are an agent, and careful."
PARAMETERS = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
TOOLS = ("Bash", "Read", "Task")  # public names, which a trace may hold
LIMIT = 300


class Wanted(NamedTuple):
    """A tool call that a client was told of."""

    id: str
    name: str
    arguments: Json


class Usage(NamedTuple):
    """Tokens as the API told them to its client; `prompt` with those that were cached, None where it said nothing."""

    prompt: int
    completion: int
    cached: int | None


@dataclass(frozen=True)
class Heard:
    """What a client received for one turn. `back`: what it sends back in the next prompt."""

    text: str
    calls: tuple[Wanted, ...]
    finish: str
    usage: Usage
    back: list[Json] = field(repr=False, compare=False)
    events: tuple[str, ...] = ()  # the kinds of a stream's events

    @property
    def content(self) -> tuple[Any, ...]:
        """All of it but the ids, which are new in every reply."""
        return self.text, [call[1:] for call in self.calls], self.finish, self.usage, self.events


async def awaited(made: Any) -> Any:
    """What a call of a client gives, synchronous or not."""
    return await made if inspect.isawaitable(made) else made


async def streamed(manager: Any, final: str) -> tuple[Any, tuple[str, ...]]:
    """The end result of a package's stream helper, and the kinds of its events."""
    if hasattr(manager, "__aenter__"):
        async with manager as events:
            kinds = [event.type async for event in events]
            return await getattr(events, final)(), tuple(kinds)
    with manager as events:
        kinds = [event.type for event in events]
        return getattr(events, final)(), tuple(kinds)


class Dialect(ABC):
    """How one API says a conversation. `deltas`: the events in which a call's arguments come."""

    path: str
    deltas: str

    @abstractmethod
    async def ask(self, client: Any, messages: Sequence[Json], stream: bool, **more: Any) -> Heard:
        """One turn of the conversation."""

    @abstractmethod
    def results(self, answers: Sequence[tuple[str, str]]) -> list[Json]:
        """The messages that bring results of tools: (id of the call, text)."""

    def user(self, text: str) -> Json:
        return {"role": "user", "content": text}


class Chat(Dialect):
    path, deltas = "/v1/chat/completions", "tool_calls.function.arguments.delta"

    async def ask(
        self, client: Any, messages: Sequence[Json], stream: bool, system: str = SYSTEM, **more: Any
    ) -> Heard:
        tools = [{"type": "function", "function": {"name": name, "parameters": PARAMETERS}} for name in TOOLS]
        asked = {"model": "agentx", "messages": [{"role": "system", "content": system}, *messages], "tools": tools}
        asked |= {"max_tokens": LIMIT, **more}
        kinds: tuple[str, ...] = ()
        if stream:
            asked["stream_options"] = {"include_usage": True}
            made, kinds = await streamed(client.chat.completions.stream(**asked), "get_final_completion")
        else:
            made = await awaited(client.chat.completions.create(**asked))
        (choice,), usage = made.choices, made.usage
        calls = [
            Wanted(call.id, call.function.name, json.loads(call.function.arguments))
            for call in choice.message.tool_calls or []
        ]
        back = {"role": "assistant", "content": choice.message.content}
        if calls:
            back["tool_calls"] = [_sent_back(call) for call in choice.message.tool_calls]
        told = Usage(usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens_details.cached_tokens)
        return Heard(choice.message.content or "", tuple(calls), choice.finish_reason, told, [back], kinds)

    def results(self, answers: Sequence[tuple[str, str]]) -> list[Json]:
        return [{"role": "tool", "tool_call_id": call, "content": text} for call, text in answers]


def _sent_back(call: Any) -> Json:
    """A call of a reply as a prompt holds it: what the package's helpers add is for its user."""
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.function.name, "arguments": call.function.arguments},
    }


class Responses(Dialect):
    path, deltas = "/v1/responses", "response.function_call_arguments.delta"

    async def ask(
        self, client: Any, messages: Sequence[Json], stream: bool, system: str = SYSTEM, **more: Any
    ) -> Heard:
        tools = [{"type": "function", "name": name, "parameters": PARAMETERS} for name in TOOLS]
        asked = {"model": "agentx", "instructions": system, "input": list(messages), "tools": tools}
        asked |= {"max_output_tokens": LIMIT, **more}
        kinds: tuple[str, ...] = ()
        if stream:
            made, kinds = await streamed(client.responses.stream(**asked), "get_final_response")
        else:
            made = await awaited(client.responses.create(**asked))
        calls = [
            Wanted(item.call_id, item.name, json.loads(item.arguments))
            for item in made.output
            if item.type == "function_call"
        ]
        usage = made.usage
        told = Usage(usage.input_tokens, usage.output_tokens, usage.input_tokens_details.cached_tokens)
        back = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in made.output]
        return Heard(made.output_text, tuple(calls), made.status, told, back, kinds)

    def results(self, answers: Sequence[tuple[str, str]]) -> list[Json]:
        return [{"type": "function_call_output", "call_id": call, "output": text} for call, text in answers]


class Messages(Dialect):
    path, deltas = "/v1/messages", "input_json"

    async def ask(
        self, client: Any, messages: Sequence[Json], stream: bool, system: str = SYSTEM, **more: Any
    ) -> Heard:
        tools = [{"name": name, "input_schema": PARAMETERS} for name in TOOLS]
        asked = {"model": "agentx", "system": system, "messages": list(messages), "tools": tools}
        asked |= {"max_tokens": LIMIT, **more}
        kinds: tuple[str, ...] = ()
        if stream:
            made, kinds = await streamed(client.messages.stream(**asked), "get_final_message")
        else:
            made = await awaited(client.messages.create(**asked))
        calls = [Wanted(block.id, block.name, block.input) for block in made.content if block.type == "tool_use"]
        text = "".join(block.text for block in made.content if block.type == "text")
        cached = made.usage.cache_read_input_tokens
        told = Usage(made.usage.input_tokens + (cached or 0), made.usage.output_tokens, cached)
        back = [{"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in made.content]}]
        return Heard(text, tuple(calls), made.stop_reason, told, back, kinds)

    def results(self, answers: Sequence[tuple[str, str]]) -> list[Json]:
        blocks = [{"type": "tool_result", "tool_use_id": call, "content": text} for call, text in answers]
        return [{"role": "user", "content": blocks}]
