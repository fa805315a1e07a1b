"""What a quality run leaves: `quality.jsonl` in its folder, a head and one line a problem, written as they end."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from agentx.errors import BadInput
from agentx.quality.answers import Verdict

NAME, SCHEMA = "quality.jsonl", "agentx/quality/1"
Key = tuple[str, str]  # a problem's id, and its variant


@dataclass(frozen=True, slots=True)
class Outcome:
    """One problem's reply. `prompt_digest` tells whether another run asked the same."""

    id: str
    variant: str
    prompt_digest: str
    answer: str
    verdict: Verdict
    given: str | None
    reply: str
    finish: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    error: str | None = None

    @property
    def key(self) -> Key:
        return self.id, self.variant


@dataclass(frozen=True, slots=True)
class Quality:
    """One run: `about` it (target, server, problems, settings), and its outcomes. `complete`: all that were asked."""

    folder: Path
    about: dict[str, Any]
    outcomes: tuple[Outcome, ...]

    @property
    def complete(self) -> bool:
        return len(self.outcomes) == self.about.get("asked")

    def count(self, verdict: Verdict, variant: str | None = None) -> int:
        return sum(one.verdict == verdict and variant in (None, one.variant) for one in self.outcomes)

    @property
    def variants(self) -> list[str]:
        return sorted({one.variant for one in self.outcomes}, reverse=True)  # short before long


def head_line(about: dict[str, Any]) -> str:
    return json.dumps({"schema": SCHEMA, **about}) + "\n"


def outcome_line(outcome: Outcome) -> str:
    return json.dumps(asdict(outcome), ensure_ascii=False) + "\n"


def read_quality(folder: Path) -> Quality:
    """A run; a last line that was torn is left out. Raises BadInput for what is none."""
    path = folder / NAME if folder.is_dir() else folder
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}",
            file=path,
            hint="agentx quality --target URL -o DIR makes one",
        ) from None
    about = _line(lines[0]) if lines else None
    if about is None or about.get("schema") != SCHEMA:
        raise BadInput(f"this is no quality run: its first line has no schema {SCHEMA}", file=path)
    outcomes = []
    for number, line in enumerate(lines[1:], start=2):
        value = _line(line)
        if value is None and number == len(lines):
            break
        outcomes.append(_outcome(value, number, path))
    return Quality(folder, about, tuple(outcomes))


def _line(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _outcome(value: dict[str, Any] | None, number: int, path: Path) -> Outcome:
    try:
        outcome = Outcome(**(value or {}))
    except TypeError:
        raise BadInput("the line is damaged", file=path, line=number) from None
    if outcome.verdict not in get_args(Verdict):
        raise BadInput(f"{outcome.verdict!r} is no verdict", file=path, line=number)
    return outcome
