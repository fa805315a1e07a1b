"""The wires: to which path a request goes, how it is put around a prompt, and how its reply is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentx.wire import anthropic, openai, sglang
from agentx.wire.history import TEXT_WIRES, History, LiveReply, WireKind
from agentx.wire.messages import Shape
from agentx.wire.reply import Reply

PATHS: dict[WireKind, str] = {
    "chat": "/v1/chat/completions",
    "chat-ids": "/v1/chat/completions",
    "completions-ids": "/v1/completions",
    "generate": "/generate",
    "messages": "/v1/messages",
}


@dataclass(frozen=True, slots=True)
class Wire:
    """How a prompt becomes a request. `exact`: the server is to make exactly as many tokens as were recorded."""

    kind: WireKind
    model: str
    exact: bool = True
    history: History = "recorded"
    shape: Shape = "plain"

    @property
    def path(self) -> str:
        return PATHS[self.kind]

    @property
    def text(self) -> bool:
        """Whether prompts are messages of text; else they are token ids."""
        return self.kind in TEXT_WIRES

    @property
    def live(self) -> bool:
        return self.history != "recorded"

    @property
    def cumulative(self) -> bool:
        """Whether each event of a stream repeats the reply so far."""
        return self.kind == "generate"

    def parts(self, tokens: int) -> list[bytes]:
        """A request without a prompt: what comes before it, in parts, and last what comes behind."""
        fewest, ids = tokens if self.exact else None, self.history == "live-ids"
        if self.kind == "messages":
            return anthropic.messages_parts(model=self.model, max_tokens=tokens)
        if self.kind == "generate":
            return sglang.generate_request([], max_new_tokens=tokens, min_new_tokens=fewest, ignore_eos=True)
        asked = {"model": self.model, "max_tokens": tokens, "min_tokens": fewest, "ignore_eos": True}
        if self.kind == "chat":
            return openai.chat_request([], **asked)  # type: ignore[arg-type]
        request = openai.chat_ids_request if self.kind == "chat-ids" else openai.completions_request
        return request([], **asked, output_ids=ids)  # type: ignore[arg-type]

    def read_stream(self, events: Sequence[bytes]) -> Reply:
        """The reply of a stream; with what was generated where later prompts need it."""
        if self.kind == "generate":
            return sglang.parse_generate_stream(events)
        parse = anthropic.parse_messages_stream if self.kind == "messages" else openai.parse_chat_stream
        return parse(events, text=self.live)

    def read_whole(self, body: bytes) -> Reply:
        """The reply of a server that does not stream."""
        if self.kind == "generate":
            return sglang.parse_generate(body)
        return anthropic.parse_messages(body) if self.kind == "messages" else openai.parse_chat(body)

    def live_reply(self, asked: int, reply: Reply) -> LiveReply | None:
        """What of a reply goes into later prompts; None when it did not tell."""
        if self.history == "live-ids" and reply.output_ids:
            return LiveReply(asked, len(reply.output_ids), ids=reply.output_ids)
        if self.history == "live" and reply.text and reply.completion_tokens:
            return LiveReply(asked, reply.completion_tokens, text=reply.text)
        return None
