"""What an event of OpenHands says of the conversation: a message of a prompt, a reply of the model, what was forgotten.

Two dialects. Events of its SDK have a `kind`; those before it are an `action` or an `observation`, and an action that
came from a tool call carries the whole response of the model. An event that is none of these says why.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentx.recorder.canonical import Item, call_of, message_items
from agentx.recorder.imports.instants import count, listing, mapping, text
from agentx.recorder.imports.transcripts import shallow
from agentx.recorder.memo import Memo
from agentx.recorder.replies import Usage, usage_of

Json = dict[str, Any]
NO_TRAFFIC = "event without model traffic"
RECALLED = "context that was recalled: what the prompt held of it is not told"
NONE_TOLD = Usage()


@dataclass(frozen=True, slots=True)
class Said:
    """A part of later prompts. `front`: tools and system text, before everything else."""

    items: tuple[Item, ...]
    front: bool = False


@dataclass(frozen=True, slots=True)
class Made:
    """A reply of the model, or one of its calls. `message` has a chat message's shape; `whole`: it is all of it."""

    response: str | None
    message: Json
    usage: Usage = NONE_TOLD
    model: str = ""
    whole: bool = False
    total: Json = field(default_factory=dict)  # tokens of all calls so far, where that is told


@dataclass(frozen=True, slots=True)
class Forgot:
    """Events that no later prompt holds, by id, and what stands for them, before the entry `offset`."""

    ids: frozenset[Any]
    summary: tuple[Item, ...] = ()
    offset: int = 0


Told = Said | Made | Forgot | str


def told(event: Json) -> Told:
    """What an event says; a text says why it is no part of the conversation."""
    if isinstance(event.get("kind"), str):
        return _of_sdk(event["kind"], event)
    if isinstance(event.get("action"), str):
        return _action(event["action"], event)
    if isinstance(event.get("observation"), str):
        return _observation(event["observation"], event)
    return "entry that is no event"


def words(value: Any) -> str:
    """The text of content: a string, a text block, or a list of them."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return text(value, "text") or ""
    return "\n".join(filter(None, (words(part) for part in listing(value))))


def _user(*content: Any) -> Said:
    message = {"role": "user", "content": "\n".join(filter(None, map(words, content)))}
    return Said(shallow(message_items, message))


def _answer(call: Any, content: str) -> Said:
    return Said(shallow(message_items, {"role": "tool", "tool_call_id": call, "content": content}))


def _front(tools: Any, *content: Any) -> Said:
    """Tools and system texts as a request has them."""
    system = [{"type": "text", "text": words(part)} for part in content if words(part)]
    given = [tool for tool in listing(tools) if isinstance(tool, dict)]
    if not system and not given:
        return Said((), front=True)
    request = {"tools": given, "messages": [{"role": "system", "content": system}]}
    return Said(shallow(lambda: call_of("chat", request, Memo()).items), front=True)


# --- the SDK -----------------------------------------------------------------------------------------------------


def _of_sdk(kind: str, event: Json) -> Told:
    if kind == "SystemPromptEvent":
        return _front(event.get("tools"), event.get("system_prompt"), event.get("dynamic_context"))
    if kind == "MessageEvent":
        message = mapping(event.get("llm_message"))
        if event.get("source") == "agent" or message.get("role") == "assistant":
            return Made(text(event, "llm_response_id"), _message(message.get("content"), message))
        return _user(message.get("content"), event.get("extended_content"))
    if kind == "ActionEvent":
        return Made(text(event, "llm_response_id"), _message(event.get("thought"), event, _calls(event)))
    if kind in ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent"):
        return _answer(event.get("tool_call_id"), _result(event))
    if kind == "Condensation":
        return _forgot(event, frozenset(map(str, listing(event.get("forgotten_event_ids")))))
    return NO_TRAFFIC


def _message(content: Any, told: Json, calls: Sequence[Json] = ()) -> Json:
    reasoning = text(told, "reasoning_content") or words([mapping(b).get("thinking") for b in _thoughts(told)])
    return {"content": words(content), "tool_calls": list(calls), **({"reasoning": reasoning} if reasoning else {})}


def _thoughts(told: Json) -> Iterator[Any]:
    yield from listing(told.get("thinking_blocks"))


def _calls(event: Json) -> list[Json]:
    call = mapping(event.get("tool_call"))
    function = mapping(call.get("function")) or call  # of old the call was the chat API's own
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments if arguments is not None else event.get("action"), sort_keys=True)
    name = text(function, "name") or text(event, "tool_name")
    return [{"id": call.get("id") or event.get("tool_call_id"), "function": {"name": name, "arguments": arguments}}]


def _result(event: Json) -> str:
    """What the model saw of a tool's result; without content, all that the observation tells."""
    observation = mapping(event.get("observation"))
    shown = words(observation.get("content")) or words(observation.get("output"))
    if not shown and observation and "content" not in observation:
        shown = json.dumps(observation, sort_keys=True)
    about = mapping(observation.get("metadata"))
    parts = (about.get("prefix"), shown, about.get("suffix"), words(event.get("extended_content")))
    return "\n".join(filter(None, map(words, (*parts, event.get("error"), event.get("rejection_reason")))))


def _forgot(told: Json, ids: frozenset[Any]) -> Forgot:
    summary = text(told, "summary")
    return Forgot(ids, _user(summary).items if summary else (), count(told.get("summary_offset")) or 0)


# --- before the SDK ----------------------------------------------------------------------------------------------


def _action(action: str, event: Json) -> Told:
    args, source = mapping(event.get("args")), event.get("source")
    if action == "system":
        return _front(args.get("tools"), args.get("content"))
    if action == "message" and source == "user":
        return _user(args.get("content"))
    if action == "condensation":
        first, last = args.get("forgotten_events_start_id"), args.get("forgotten_events_end_id")
        ids = listing(args.get("forgotten_event_ids"))
        if type(first) is int and type(last) is int:
            ids = list(range(first, min(last, first + 1_000_000) + 1))
        return _forgot(args, frozenset(map(str, ids)))
    response = mapping(mapping(event.get("tool_call_metadata")).get("model_response"))
    if response:
        return _response(response, event)
    if source != "agent" or action in ("recall", "change_agent_state", "null", "condensation_request"):
        return NO_TRAFFIC
    return Made(None, _unstructured(action, args), whole=True, total=_total(event))


def _response(response: Json, event: Json) -> Made:
    choices = listing(response.get("choices"))
    message = mapping(mapping(choices[0] if choices else None).get("message"))
    return Made(
        text(response, "id"),
        message,
        usage_of("chat", response.get("usage")),
        text(response, "model") or "",
        whole=True,
        total=_total(event),
    )


def _total(event: Json) -> Json:
    return mapping(mapping(event.get("llm_metrics")).get("accumulated_token_usage"))


def _unstructured(action: str, args: Json) -> Json:
    """A reply without a tool call: what it said, or what it asked for as far as the event tells."""
    if action == "message":
        return {"content": words(args.get("content"))}
    asked = {name: value for name, value in args.items() if name != "thought" and value not in (None, "", [])}
    return {"content": "\n".join(filter(None, (words(args.get("thought")), json.dumps(asked, sort_keys=True))))}


def _observation(observation: str, event: Json) -> Told:
    metadata = mapping(event.get("tool_call_metadata"))
    if metadata:
        return _answer(metadata.get("tool_call_id"), words(event.get("content")))
    if observation == "recall":
        return RECALLED
    if observation in ("agent_state_changed", "null", "condense") or not words(event.get("content")):
        return NO_TRAFFIC
    return Said(tuple(replace(item, layer="tool_result") for item in _user(event.get("content")).items))
