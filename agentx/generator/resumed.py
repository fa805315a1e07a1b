"""Resumed sessions: the first prompt holds the messages, replies and tool results of an earlier day."""

from __future__ import annotations

from agentx.core import Layer
from agentx.generator.line import Line
from agentx.generator.quantities import after
from agentx.generator.spec import WorkloadSpec

MAX_PIECES = 2000  # of one history; what is left is its last piece


def history(line: Line, spec: WorkloadSpec) -> None:
    """By chance, append a history; it ends where the drawn length or the context does."""
    if spec.resumed is None or not line.chance("resumed", spec.resumed.share):
        return
    left = min(line.count("resumed_tokens", spec.resumed.tokens), line.room - 2)
    layers: tuple[Layer, ...] = ("user", "assistant")
    pieces = 0
    while left > 0:
        for layer in layers:
            pieces += 1
            tokens = left if pieces >= MAX_PIECES else min(left, _length(line, spec, layer))
            line.append(layer, tokens)
            left -= tokens
        layers = ("tool_result", "assistant")


def _length(line: Line, spec: WorkloadSpec, layer: Layer) -> int:
    if layer == "assistant":
        return line.count("resumed_reply", after(spec.tokens.reply, "tool"))
    shape = spec.tokens.message if layer == "user" else spec.tokens.tool_result
    return line.count(f"resumed_{layer}", shape)
