"""`/v1/completions` in SGLang 0.5.23's shape: a body in, a `Call` out; a reply's progress in, bytes out. No sockets.

The prompt is text or token ids, and nothing is put around it. The finish reason rides on the last chunk of text.
"""

from __future__ import annotations

import uuid

import pydantic

from agentx.engine.http_calls import (
    Call,
    Rejected,
    StreamOptions,
    checked,
    namespace_of,
    one_choice,
    parse_body,
    prompt_ids,
)
from agentx.engine.http_parts import Parts
from agentx.engine.http_replies import DONE, Progress, dumps, extension, openai_refusal, usage
from agentx.engine.settings import EngineSettings
from agentx.engine.tokenizer import ids_to_list, ids_to_text, text_ids

TOKENS = 16  # what is made when it is not told


class _Completion(pydantic.BaseModel):
    prompt: str | list[int] | list[str] | list[list[int]]
    model: str = "default"
    max_tokens: int | None = pydantic.Field(default=None, gt=0)
    min_tokens: int | None = 0
    ignore_eos: bool = False
    n: int | None = 1
    best_of: int | None = None
    echo: bool | None = False
    suffix: str | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    return_cached_tokens_details: bool = False
    return_spec_tokens_details: bool = False
    return_token_ids: bool = False
    cache_salt: str | None = None
    extra_key: str | None = None
    rid: str | None = None


def completion_call(body: bytes, settings: EngineSettings) -> Call:
    """A `/v1/completions` body. Raises Rejected."""
    asked = parse_body(_Completion, body)
    one_choice(asked.n if asked.best_of in (None, 1) else asked.best_of)
    if asked.echo or asked.suffix:
        raise Rejected(f"this engine does not model {'echo' if asked.echo else 'suffix'}: leave it out.")
    prompt, text = _prompt(asked.prompt)
    options = asked.stream_options or StreamOptions()
    call = Call(
        rid=asked.rid or uuid.uuid4().hex,
        model=asked.model,
        prompt=prompt,
        max_new=TOKENS if asked.max_tokens is None else asked.max_tokens,
        min_new=asked.min_tokens or 0,
        ignore_eos=asked.ignore_eos,
        namespace=namespace_of(asked.cache_salt, asked.extra_key),
        stream=bool(asked.stream),
        include_usage=bool(options.include_usage),
        continuous_usage=bool(options.include_usage and options.continuous_usage_stats),
        cached_details=asked.return_cached_tokens_details,
        spec_details=asked.return_spec_tokens_details,
        output_ids=asked.return_token_ids,
        last=text,
    )
    return checked(call, settings)


def _prompt(prompt: str | list[int] | list[str] | list[list[int]]) -> tuple[bytes, str]:
    """The ids and the text of the one prompt of a request. Raises Rejected for none and for several."""
    one: object = prompt
    if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int):
        if len(prompt) > 1:
            raise Rejected(f"this engine takes one prompt per request, got {len(prompt)}.")
        one = prompt[0]
    if not one:
        raise Rejected("Prompt cannot be empty")
    if isinstance(one, str):
        return text_ids(one), one
    ids = prompt_ids(one)  # type: ignore[arg-type]  # the model has made sure of that
    return ids, ids_to_text(ids)


class CompletionReply:
    """The reply of one `/v1/completions` call, streamed or whole."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._parts = Parts(progress.call.script)

    def start(self) -> bytes:
        """Nothing goes out before the first token."""
        return b""

    def tokens(self, ids: bytes) -> bytes:
        """The tokens of one step; of the last one too, with the reason why it is."""
        progress = self._progress
        told = usage(progress) | {"prompt_tokens_details": None} if progress.call.continuous_usage else None
        return self._event([self._choice(ids)], told)

    def end(self, ids: bytes) -> bytes:
        """The last step, cached tokens by tier, usage, [DONE]."""
        more = extension(self._progress)
        split = self._event([], None, {"sglext": more}) if more else b""
        return self.tokens(ids) + split + self._close()

    def refused(self, status: int, message: str) -> bytes:
        """The request was refused or given up: an error event takes the place of the rest."""
        return openai_refusal(status, message) + self._close()

    def whole(self) -> bytes:
        """The reply that is not streamed."""
        progress = self._progress
        body = self._head() | {
            "choices": [self._choice(bytes(progress.ids))],
            "usage": usage(progress),
            "metadata": {"weight_version": "default"},
        }
        if more := extension(progress):
            body["sglext"] = more
        return dumps(body)

    def _choice(self, ids: bytes) -> dict[str, object]:
        text, reason = "".join(part.text for part in self._parts.feed(ids)), self._progress.reason
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": reason, "matched_stop": None}
        return choice | ({"token_ids": ids_to_list(ids)} if self._progress.call.output_ids else {})

    def _close(self) -> bytes:
        told = usage(self._progress)
        del told["completion_tokens_details"]  # so does SGLang, here only
        return (self._event([], told) if self._progress.call.include_usage else b"") + DONE

    def _event(self, choices: list[object], told: object, more: dict[str, object] | None = None) -> bytes:
        body = self._head() | {"choices": choices, "usage": told} | (more or {})
        return b"data: %b\n\n" % dumps(body)

    def _head(self) -> dict[str, object]:
        call, created = self._progress.call, int(self._progress.received_unix)
        return {"id": call.rid, "object": "text_completion", "created": created, "model": call.model}
