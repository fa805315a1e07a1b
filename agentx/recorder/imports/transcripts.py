"""Transcripts: logs of a conversation's messages, from which the prompts of its model calls are put together.

A transcript holds what was said, not what was sent: tools and often the system prompt are missing. What the first call
of a line of context has beyond its visible messages is its *head*, one stretch of known length and unknown content.
Two sessions share as much of their heads as their first calls had cached, where they say the same of themselves
(program, version, model) and had the same number of tokens cached; that is inferred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentx.recorder.canonical import Item
from agentx.recorder.replies import Usage
from agentx.recorder.weaving import BYTES_PER_TOKEN


def shallow(make: Callable[..., Iterable[Item]], *values: Any) -> tuple[Item, ...]:
    """The items that `make` gives; none for what is nested too deeply to be compared."""
    try:
        return tuple(make(*values))
    except RecursionError:
        return ()


@dataclass(slots=True)
class Heads:
    """The heads of the lines of context of one import, by a name of each line."""

    program: str
    known: dict[str, tuple[Item, ...]] = field(default_factory=dict)

    def of(self, line: str, variant: str, visible: Sequence[Item], usage: Usage) -> tuple[Item, ...]:
        """The head of `line`, made from its first call. `variant`: what programs with equal heads have in common."""
        if line not in self.known:
            self.known[line] = self._made(line, variant, visible, usage)
        return self.known[line]

    def _made(self, line: str, variant: str, visible: Sequence[Item], usage: Usage) -> tuple[Item, ...]:
        seen = sum(item.tokens if item.tokens is not None else item.weight / BYTES_PER_TOKEN for item in visible)
        tokens = max((usage.prompt or 0) - round(seen), 0)
        shared = min(usage.cached or 0, tokens)
        parts = ((f"{self.program} {variant} {shared}", shared), (f"{self.program} {line}", tokens - shared))
        return tuple(
            Item("system", b"head:" + name.encode("utf-8", "surrogatepass"), size, tokens=size)
            for name, size in parts
            if size
        )
