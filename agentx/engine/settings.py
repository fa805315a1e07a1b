"""What a target of kind `engine` can say: the YAML of the embedded engine, checked.

Every mistake is one line. The rules that need two values (a page that divides the pool, an acceptance length within
its bound) are here too, so that an `EngineSettings` that exists can be run.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

import pydantic
from pydantic import Field

from agentx import catalog
from agentx.engine.curves import acceptance_length
from agentx.errors import BadInput
from agentx.yamlspec import Strict, document, duration_text, load, seconds


def _span_text(value: float) -> str:
    """Text that reads back as the same value, in nanoseconds where it is short of a whole one."""
    for text in (duration_text(value), f"{value * 1e9:.12g}ns"):
        if "e" not in text and seconds(text) == value:
            return text
    return f"{Decimal(repr(value)):f}s"


Span = Annotated[
    float,
    pydantic.BeforeValidator(seconds),
    Field(ge=0),
    pydantic.PlainSerializer(_span_text, return_type=str, when_used="json"),
]
"""Float seconds, written with a unit (ns, us, ms, s); constants per token are far below a nanosecond."""


class Host(Strict):
    """The host tier: its size in tokens (0: none), when pages are copied to it, the fewest that are loaded back."""

    tokens: int = Field(default=0, ge=0)
    write: Literal["write_through", "write_through_selective", "write_back"] = "write_through"
    load_back_threshold: int = Field(default=10, ge=1)


class Cache(Strict):
    pool: int = Field(default=200_000, ge=1)
    page: int = Field(default=1, ge=1, le=4096)
    policy: Literal["lru", "lfu", "slru", "fifo"] = "lru"
    bigram: bool = False
    bytes_per_token: int | None = Field(default=None, ge=1)
    host: Host = Host()

    @pydantic.model_validator(mode="after")
    def _pages(self) -> Cache:
        if self.page > self.pool:
            raise ValueError(f"a pool of {self.pool} tokens is smaller than a page of {self.page}")
        if self.pool % self.page:
            raise ValueError(f"a page of {self.page} tokens does not divide the pool of {self.pool}")
        if self.host.tokens % self.page:
            raise ValueError(f"a page of {self.page} tokens does not divide the host tier of {self.host.tokens}")
        return self


class Scheduling(Strict):
    """`chunk` is SGLang's chunked prefill size, `queue` its limit of waiting requests (null: none)."""

    policy: Literal["fcfs"] = "fcfs"
    chunk: int = Field(default=8192, ge=1)
    max_prefill: int = Field(default=16_384, ge=1)
    max_running: int = Field(default=64, ge=1)
    queue: int | None = Field(default=None, ge=1)


class Acceptance(Strict):
    """`length` is tokens per verification step; a named `curve` gives it by the number of `speculation.steps`."""

    curve: str | None = None
    length: float = Field(default=1.0, ge=1.0)
    method: Literal["match-expected", "multinomial"] = "match-expected"
    tokens: Literal["fixed", "real-draft-token"] = "fixed"


def ahead(steps: int, draft_tokens: int) -> int:
    """Tokens that speculation allocates ahead: twice the longest draft (SGLang's overlap double buffer)."""
    return 2 * max(steps, draft_tokens)


class Speculation(Strict):
    """Simulated speculative decoding: no draft is computed, only how many tokens each step accepts is drawn."""

    algorithm: Literal["EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM"] | None = None
    steps: int = Field(default=0, ge=0)
    draft_tokens: int = Field(default=0, ge=0)
    acceptance: Acceptance = Acceptance()

    @property
    def bound(self) -> int:
        """Most tokens that one step can accept, the target's own included."""
        if self.algorithm is None:
            return 1
        return self.draft_tokens if self.algorithm == "NGRAM" else self.steps + 1

    @property
    def reserve(self) -> int:
        """Tokens that a request has allocated ahead of what is committed, in each decode step."""
        return 0 if self.algorithm is None else ahead(self.steps, self.draft_tokens)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _curve(cls, data: Any) -> Any:
        """The length that a named curve has for the number of steps."""
        acceptance = data.get("acceptance") if isinstance(data, dict) else None
        name = acceptance.get("curve") if isinstance(acceptance, dict) else None
        steps = data.get("steps", 0) if isinstance(data, dict) else 0
        if not isinstance(acceptance, dict) or not isinstance(name, str) or not isinstance(steps, int):
            return data  # nothing to look up, or a mistake that the fields themselves report
        if data.get("algorithm") in (None, "NGRAM"):
            raise ValueError(f"the acceptance curve {name!r} needs an algorithm with steps: EAGLE, NEXTN, ...")
        try:
            length = acceptance_length(name, steps)
        except BadInput as error:
            raise ValueError(str(error)) from None
        if acceptance.get("length", length) != length:
            raise ValueError(f"acceptance has a length and a curve ({name!r}: {length:g}): say one of them")
        return {**data, "acceptance": {**acceptance, "length": length}}

    @pydantic.model_validator(mode="after")
    def _bounds(self) -> Speculation:
        if self.algorithm == "NGRAM" and not self.draft_tokens:
            raise ValueError("NGRAM speculation needs draft_tokens of 1 or more")
        if self.algorithm not in (None, "NGRAM") and not self.steps:
            raise ValueError(f"{self.algorithm} speculation needs steps of 1 or more")
        if self.acceptance.length > self.bound:
            what = "without speculation" if self.algorithm is None else f"of {self.algorithm}"
            raise ValueError(f"acceptance length {self.acceptance.length:g} is above the bound {what}: {self.bound}")
        return self


class Timing(Strict):
    """How long things take. A timing that is given is given whole: a constant left out is an error, not a guess."""

    request: Span
    """s per request before it can be scheduled (HTTP, tokenizer); does not occupy the engine."""
    prefill_batch: Span
    """s per prefill batch."""
    prefill_token: Span
    """s per new prompt token."""
    prefill_token_context: Span
    """s per new prompt token and token of context before it (attention)."""
    decode_step: Span
    """s per decode step."""
    decode_request: Span
    """s per decode step and request in the batch."""
    decode_context: Span
    """s per decode step and token of context in the batch."""
    speculation_step: Span
    """s that drafting and verifying add to a decode step."""
    load_back_token: Span
    """s per token that is loaded back from the host tier."""


LAPTOP = Timing.model_validate(
    {
        "request": "500us", "prefill_batch": "1ms", "prefill_token": "5us", "prefill_token_context": "0.01ns",
        "decode_step": "3ms", "decode_request": "20us", "decode_context": "0.2ns", "speculation_step": "500us",
        "load_back_token": "500ns",
    }
)  # fmt: skip
"""Chosen, not measured: a demo with a few sessions ends in seconds and still shows what reuse is worth."""


class Price(Strict):
    gpu_hour: float | None = Field(default=None, ge=0)


class EngineSettings(Strict):
    """The embedded engine; one `agentx: target/1` file of kind `engine`."""

    kind: Literal["engine"] = "engine"
    context: int = Field(default=131_072, ge=8)
    gpus: int = Field(default=1, ge=1)
    price: Price = Price()
    cache: Cache = Cache()
    scheduler: Scheduling = Scheduling()
    speculation: Speculation = Speculation()
    timing: Timing = LAPTOP

    @pydantic.model_validator(mode="after")
    def _fits(self) -> EngineSettings:
        if self.longest_prompt < 2:
            raise ValueError(f"a pool of {self.cache.pool} tokens with pages of {self.cache.page} holds no request")
        if self.scheduler.chunk < self.cache.page:
            raise ValueError(f"a chunk of {self.scheduler.chunk} tokens is smaller than a page of {self.cache.page}")
        return self

    @property
    def longest_request(self) -> int:
        """Tokens, prompt and reply, that one request can have."""
        return min(self.context, self.cache.pool) - 1

    @property
    def longest_prompt(self) -> int:
        """A prompt must be shorter than this (SGLang keeps five tokens free)."""
        return self.longest_request - 5


def load_engine(source: pathlib.Path | str, *, text: str | None = None, sets: Sequence[str] = ()) -> EngineSettings:
    """The engine target in a file (or in `text`). Raises BadInput with one line per mistake."""
    kind = "engine" if text is not None else document(source).get("kind", "engine")
    if kind in ("endpoint", "launch"):
        raise BadInput(f"kind {kind}: a target of kind engine is needed here", file=source)
    return load(EngineSettings, source, kind="target", text=text, sets=sets, extended=base_of)


def base_of(name: str, heir: pathlib.Path) -> pathlib.Path:
    """The file that `extends: name` means in the file `heir`: a path is relative to it."""
    return heir.parent / name if catalog.is_path(name) else catalog.resolve("targets", name)
