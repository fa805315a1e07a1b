"""Request bodies of the engine's HTTP server, checked: JSON bytes in, a `Call` or a `Rejected` out. No sockets.

The limits and their wording are those of SGLang 0.5.23, so that a client that knows one knows the other.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pydantic

from agentx.engine.http_parts import Scripted
from agentx.engine.settings import EngineSettings
from agentx.engine.tokenizer import chat_ids, ids_from_list, ids_to_text, message_text, text_ids

GENERATE_TOKENS = 128  # what /generate makes when it is not told (SGLang's sampling default)

Body = TypeVar("Body", bound=pydantic.BaseModel)


class Rejected(Exception):
    """A request that cannot run: HTTP status, message, and the `type` that OpenAI's error shape carries."""

    def __init__(self, message: str, *, status: int = 400, kind: str = "BadRequestError") -> None:
        super().__init__(message)
        self.message, self.status, self.kind = message, status, kind


@dataclass(frozen=True, slots=True)
class Call:
    """One request to generate: `prompt` is token ids as bytes, four per token.

    `output_ids`: the reply's ids are told; `last` is what its last message says; `parsed` and `tools`: whether
    reasoning and tool calls are shown as such in its reply; `script` is the reply if it is known beforehand,
    `told` what the reply has to repeat of the request.
    """

    rid: str
    model: str
    prompt: bytes
    max_new: int
    min_new: int
    ignore_eos: bool
    namespace: str
    stream: bool
    include_usage: bool = False
    continuous_usage: bool = False
    cached_details: bool = False
    spec_details: bool = False
    output_ids: bool = False
    last: str = ""
    parsed: bool = False
    tools: bool = False
    script: Scripted | None = None
    told: Mapping[str, object] = field(default_factory=dict)

    @property
    def prompt_tokens(self) -> int:
        return len(self.prompt) // 4


class StreamOptions(pydantic.BaseModel):
    include_usage: bool | None = False
    continuous_usage_stats: bool | None = False


class _Chat(pydantic.BaseModel):
    messages: list[dict[str, Any]]
    model: str = "default"
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    input_ids: list[int] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    min_tokens: int | None = None
    ignore_eos: bool = False
    n: int | None = 1
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    return_cached_tokens_details: bool = False
    return_spec_tokens_details: bool = False
    return_output_ids_in_sglext: bool = False
    cache_salt: str | None = None
    extra_key: str | None = None
    rid: str | None = None


class _Sampling(pydantic.BaseModel):
    max_new_tokens: int | None = GENERATE_TOKENS
    min_new_tokens: int | None = 0
    ignore_eos: bool = False
    n: int | None = 1


class _Generate(pydantic.BaseModel):
    text: str | None = None
    input_ids: list[int] | None = None
    sampling_params: _Sampling = _Sampling()
    stream: bool = False
    cache_salt: str | None = None
    extra_key: str | None = None
    rid: str | None = None


class _Tokenize(pydantic.BaseModel):
    prompt: str | list[str] | None = None
    messages: list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None


class _Detokenize(pydantic.BaseModel):
    tokens: list[int]


def chat_call(body: bytes, settings: EngineSettings) -> Call:
    """A `/v1/chat/completions` body. Raises Rejected."""
    chat = parse_body(_Chat, body)
    tools = [] if chat.tool_choice == "none" else chat.tools or []
    prompt = prompt_ids(chat.input_ids) if chat.input_ids is not None else rendered(chat.messages, tools)
    options = chat.stream_options or StreamOptions()
    limit = chat.max_tokens if chat.max_completion_tokens is None else chat.max_completion_tokens
    check_limit(limit, settings)
    one_choice(chat.n)
    call = Call(
        rid=chat.rid or uuid.uuid4().hex,
        model=chat.model,
        prompt=prompt,
        max_new=limit_of(limit, prompt, settings),
        min_new=chat.min_tokens or 0,
        ignore_eos=chat.ignore_eos,
        namespace=namespace_of(chat.cache_salt, chat.extra_key),
        stream=bool(chat.stream),
        include_usage=bool(options.include_usage),
        # As in SGLang, counts on every chunk are a refinement of usage that was asked for.
        continuous_usage=bool(options.include_usage and options.continuous_usage_stats),
        cached_details=chat.return_cached_tokens_details,
        spec_details=chat.return_spec_tokens_details,
        output_ids=chat.return_output_ids_in_sglext,
        last=said(chat.messages),
        parsed=True,
        tools=bool(tools),
    )
    return checked(call, settings)


def generate_call(body: bytes, settings: EngineSettings) -> Call:
    """A `/generate` body that can be read. Raises Rejected; `check_context` is still to be asked."""
    generate = parse_body(_Generate, body)
    if (generate.text is None) == (generate.input_ids is None):
        raise Rejected("Either text or input_ids should be provided, and not both.")
    prompt = text_ids(generate.text) if generate.text is not None else prompt_ids(generate.input_ids)
    sampling = generate.sampling_params
    one_choice(sampling.n)
    return Call(
        rid=generate.rid or uuid.uuid4().hex,
        model="",
        prompt=prompt,
        max_new=limit_of(sampling.max_new_tokens, prompt, settings),
        min_new=sampling.min_new_tokens or 0,
        ignore_eos=sampling.ignore_eos,
        namespace=namespace_of(generate.cache_salt, generate.extra_key),
        stream=generate.stream,
        last=generate.text if generate.text is not None else ids_to_text(prompt),
    )


def check_context(call: Call, settings: EngineSettings) -> None:
    """Raises Rejected for what SGLang's front end refuses before it asks the scheduler."""
    tokens, context = call.prompt_tokens, settings.context
    if call.min_new < 0:
        raise Rejected(f"min_new_tokens must be in [0, max_new_tokens], got {call.min_new}.")
    if call.max_new < 0:
        raise Rejected(f"max_new_tokens must be at least 0, got {call.max_new}.")
    if call.min_new > call.max_new:
        raise Rejected(f"min_new_tokens must be in [0, max_new_tokens({call.max_new})], got {call.min_new}.")
    if tokens == 0:
        raise Rejected("The input is empty.")
    if tokens >= context:
        raise Rejected(f"The input ({tokens} tokens) is longer than the model's context length ({context} tokens).")
    if tokens + call.max_new > context:
        raise Rejected(
            f"Requested token count exceeds the model's maximum context length of {context} tokens. "
            f"You requested a total of {tokens + call.max_new} tokens: {tokens} tokens from the input messages and "
            f"{call.max_new} tokens for the completion. Please reduce the number of tokens in the input messages or "
            "the completion to fit within the limit."
        )


def tokenize_call(body: bytes) -> list[bytes] | bytes:
    """The ids that a `/tokenize` body asks for: one run, or one per prompt of a list. Raises Rejected."""
    call = parse_body(_Tokenize, body)
    if (call.prompt is None) == (call.messages is None):
        raise Rejected("Exactly one of 'prompt' or 'messages' must be provided.")
    if call.messages is not None:
        return rendered(call.messages, call.tools)
    if isinstance(call.prompt, list):
        return [text_ids(prompt) for prompt in call.prompt]
    return text_ids(call.prompt or "")


def detokenize_call(body: bytes) -> bytes:
    """The ids in a `/detokenize` body. Raises Rejected."""
    return prompt_ids(parse_body(_Detokenize, body).tokens)


def checked(call: Call, settings: EngineSettings) -> Call:
    """`call`, if the context can hold it. Raises Rejected."""
    check_context(call, settings)
    return call


def check_limit(limit: int | None, settings: EngineSettings) -> None:
    """Raises Rejected for a reply that no context holds, whatever the prompt: chat looks at that first."""
    if limit is not None and limit > settings.context:
        raise Rejected(
            f"max_completion_tokens is too large: {limit}.This model supports at most {settings.context} completion "
            "tokens."
        )


def parse_body(model: type[Body], body: bytes) -> Body:
    """A body as `model`. Raises Rejected, which names the first field that is wrong."""
    try:
        return model.model_validate_json(body)
    except pydantic.ValidationError as error:
        first, more = error.errors(include_url=False, include_input=False)[0], error.error_count() - 1
        where = ".".join(map(str, first["loc"]))
        message = f"{where}: {first['msg']}" if where else first["msg"]
        raise Rejected(message + (f" (and {more} more)" if more else ""), kind="Bad Request") from error


def rendered(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None) -> bytes:
    """The ids of a conversation. Raises Rejected for one that has no messages or one that cannot be read."""
    if not messages:
        raise Rejected("Messages cannot be empty.")
    try:
        return chat_ids(messages, tools or ())
    except ValueError as error:
        raise Rejected(f"messages: {error}", kind="Bad Request") from error


def said(messages: Sequence[Mapping[str, Any]]) -> str:
    """What the last message says; nothing when it says nothing that can be read."""
    try:
        return message_text(messages[-1]) if messages else ""
    except ValueError:
        return ""


def prompt_ids(ids: list[int] | None) -> bytes:
    """Numbers as ids. Raises Rejected."""
    try:
        return ids_from_list(ids or [])
    except ValueError as error:
        raise Rejected(str(error)) from error


def one_choice(n: int | None) -> None:
    """Raises Rejected for more than one."""
    if n not in (None, 1):
        raise Rejected(f"this engine makes one choice per request: n must be 1, got {n}.")


def limit_of(asked: int | None, prompt: bytes, settings: EngineSettings) -> int:
    """Without a limit a reply may fill the context (SGLang leaves one token free)."""
    return asked if asked is not None else max(0, settings.context - len(prompt) // 4 - 1)


def namespace_of(salt: str | None, key: str | None) -> str:
    """The cache's namespace of a request; both empty is the common one."""
    return f"{salt or ''}\0{key or ''}" if salt or key else ""
