"""Answers by script: rules on what the last message says, tried in order; the first that matches is the reply.

A file of rules is YAML (`agentx: replies/1`, then `rules:`) or JSON Lines, one rule a line. Every mistake in it is
named with its line. A message that no rule matches is answered by the engine's own words, and that is said once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pydantic
from pydantic import Field

from agentx.engine.http_parts import Scripted, scripted
from agentx.errors import BadInput
from agentx.yamlspec import Strict, load

KIND = "replies"

Text = Annotated[str, Field(min_length=1)]


class ToolCall(Strict):
    name: Text
    arguments: dict[str, Any] = Field(default_factory=dict)


class Rule(Strict):
    """Matches a message that has `contains` in it and `regex` somewhere in it; without either, every message."""

    contains: Text | None = None
    regex: Text | None = None
    times: int | None = Field(default=None, ge=1)
    """How often it answers; null: always."""
    text: Text | None = None
    reasoning: Text | None = None
    calls: tuple[ToolCall, ...] = ()

    @pydantic.field_validator("regex")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        return value

    @pydantic.model_validator(mode="after")
    def _says_something(self) -> Rule:
        if self.text is None and self.reasoning is None and not self.calls:
            raise ValueError("a rule needs text, reasoning or calls")
        return self

    def matches(self, message: str) -> bool:
        if self.contains is not None and self.contains not in message:
            return False
        return self.regex is None or re.search(self.regex, message) is not None

    def reply(self, *, show_reasoning: bool, show_calls: bool) -> Scripted:
        return scripted(
            self.text or "",
            reasoning=self.reasoning or "",
            calls=[(call.name, call.arguments) for call in self.calls],
            show_reasoning=show_reasoning,
            show_calls=show_calls,
        )


class Rules(Strict):
    """A file of rules."""

    rules: tuple[Rule, ...]

    @pydantic.field_validator("rules")
    @classmethod
    def _some(cls, value: tuple[Rule, ...]) -> tuple[Rule, ...]:
        if not value:
            raise ValueError("no rules")
        return value


class Script:
    """Rules and how often each has answered. `say` is told, once, of a message that no rule matches."""

    def __init__(self, rules: tuple[Rule, ...], say: Callable[[str], None]) -> None:
        self._rules = rules
        self._left = [rule.times for rule in rules]
        self._say: Callable[[str], None] | None = say

    def find(self, message: str) -> int | None:
        """The number of the rule that answers a message; `use` has to follow when it does."""
        for number, rule in enumerate(self._rules):
            if self._left[number] != 0 and rule.matches(message):
                return number
        if self._say is not None:
            self._say(f"no rule matches the last message {_short(message)}: the engine answers in its own words")
            self._say = None
        return None

    def reply(self, number: int, *, show_reasoning: bool, show_calls: bool) -> Scripted:
        return self._rules[number].reply(show_reasoning=show_reasoning, show_calls=show_calls)

    def use(self, number: int) -> None:
        left = self._left[number]
        if left is not None:
            self._left[number] = left - 1


def load_rules(path: Path) -> tuple[Rule, ...]:
    """The rules of a YAML or, when its name ends in .jsonl, a JSON Lines file. Raises BadInput with the line."""
    if path.suffix != ".jsonl":
        return load(Rules, path, kind=KIND).rules
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror or error}", file=path) from error
    except UnicodeDecodeError as error:
        raise BadInput(f"not UTF-8 text: {error.reason} at byte {error.start}", file=path) from error
    rules = tuple(_rule(line, path, number) for number, line in enumerate(lines, 1) if line.strip())
    if not rules:
        raise BadInput("no rules", file=path)
    return rules


def _rule(line: str, path: Path, number: int) -> Rule:
    try:
        return Rule.model_validate(json.loads(line))
    except json.JSONDecodeError as error:
        raise BadInput(f"not JSON: {error.msg}", file=path, line=number, column=error.colno) from None
    except (ValueError, RecursionError) as error:
        raise BadInput(_what(error), file=path, line=number) from None


def _what(error: Exception) -> str:
    if not isinstance(error, pydantic.ValidationError):
        return "not JSON that can be read: too deep, or a number too long"
    first = error.errors(include_url=False)[0]
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "model_type":
        return "a rule should be keys and values"
    if first["type"] == "extra_forbidden":
        return f"{key}: unknown key (known: {', '.join(sorted(Rule.model_fields))})"
    message = str(first.get("ctx", {}).get("error") or first["msg"].removeprefix("Input "))
    return f"{key}: {message}" if key else message


def _short(text: str) -> str:
    shown = text if len(text) <= 80 else text[:39] + "…" + text[-40:]
    return repr(shown)
