"""Problems with one right answer: a seeded generator of arithmetic word problems, and a user's own questions.

Each generated problem comes twice: short, its facts and nothing else; and long, the same facts strewn over a ledger in
which other people's affairs are told in the same words. A cache that mixes up prompts, or a kernel that is only wrong
for long ones, breaks the second and not the first. Every number is small, and every answer a whole one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agentx.distributions import Bits
from agentx.errors import BadInput

Variant = Literal["short", "long"]
VARIANTS: tuple[Variant, ...] = ("short", "long")
LEDGER = 1000  # lines of the ledger of a long problem: some 10,000 tokens
ASK = "Think as briefly as you can. End with a line that says only `Answer:` and the answer."
_NAMES = (
    "Ada", "Bruno", "Carla", "Dmitri", "Elif", "Femi", "Greta", "Hugo", "Ines", "Jonas", "Kamala", "Liang",
    "Mira", "Noor", "Otto", "Priya", "Quentin", "Rosa", "Sven", "Tamar", "Umar", "Vera", "Wanda", "Xenia",
    "Yusuf", "Zofia",
)  # fmt: skip
_THINGS = (
    "apples", "bolts", "candles", "dowels", "envelopes", "flasks", "gaskets", "hinges", "labels", "notebooks",
    "pencils", "ropes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Problem:
    """`id` is the same in both variants. `answer` is what the reply must end with."""

    id: str
    variant: Variant
    prompt: str
    answer: str


class _Dice:
    """Whole numbers and choices of one problem, the same on every machine."""

    def __init__(self, seed: int, number: int, label: str = "") -> None:
        self._bits = Bits(seed, "quality", number, label)

    def between(self, low: int, high: int) -> int:
        return low + int(self._bits.uniform() * (high - low + 1))

    def of(self, choices: Sequence[str]) -> str:
        return choices[self.between(0, len(choices) - 1)]


Story = tuple[list[str], str, int]  # facts, question, answer


def _bought(dice: _Dice, name: str, thing: str) -> Story:
    """boxes x each - gone"""
    boxes, each, gone = dice.between(12, 98), dice.between(13, 89), dice.between(11, 140)
    facts = [f"{name} bought {boxes} boxes of {thing}.", f"Each of {name}'s boxes holds {each} {thing}.",
             f"{name} gave {gone} {thing} away."]  # fmt: skip
    return facts, f"How many {thing} has {name} left?", boxes * each - gone


def _shared(dice: _Dice, name: str, thing: str) -> Story:
    """(people x share + rest) were there: what does each get, times a price"""
    people, share, price = dice.between(6, 24), dice.between(14, 77), dice.between(3, 29)
    facts = [f"{name} divided {people * share} {thing} equally among {people} people.",
             f"One of {name}'s {thing} is worth {price} dollars."]  # fmt: skip
    return facts, f"How many dollars are the {thing} of one of these people worth?", share * price


def _daily(dice: _Dice, name: str, thing: str) -> Story:
    """start + days x (made - used)"""
    start, days = dice.between(150, 900), dice.between(8, 31)
    made, used = dice.between(40, 99), dice.between(11, 39)
    facts = [f"{name} began with {start} {thing}.", f"Every day {name} makes {made} {thing}.",
             f"Every day {name} uses up {used} {thing}.", f"{name} works for {days} days."]  # fmt: skip
    return facts, f"How many {thing} does {name} have in the end?", start + days * (made - used)


def _weighed(dice: _Dice, name: str, thing: str) -> Story:
    """count x grams + crate, in grams"""
    count, grams, crate = dice.between(21, 87), dice.between(24, 96), dice.between(310, 990)
    facts = [f"{name} packed {count} {thing} into a crate.", f"One of {name}'s {thing} weighs {grams} grams.",
             f"{name}'s empty crate weighs {crate} grams."]  # fmt: skip
    return facts, f"How many grams does {name}'s packed crate weigh?", count * grams + crate


_STORIES: tuple[Callable[[_Dice, str, str], Story], ...] = (_bought, _shared, _daily, _weighed)


def problems(count: int, seed: int, variants: Sequence[Variant] = VARIANTS) -> Iterator[Problem]:
    """`count` problems, each in these variants, one after the other. The same for (count, seed) on every machine."""
    for number in range(count):
        dice = _Dice(seed, number)
        story = _STORIES[number % len(_STORIES)]
        name, thing = dice.of(_NAMES), dice.of(_THINGS)
        facts, question, answer = story(dice, name, thing)
        for variant in variants:
            told = " ".join(facts) if variant == "short" else _ledger(facts, name, _Dice(seed, number, "ledger"))
            yield Problem(f"p{number:04d}", variant, f"{told}\n\n{question} {ASK}", str(answer))


def _ledger(facts: Sequence[str], name: str, dice: _Dice) -> str:
    """The facts in their order among those of others, who never have this name."""
    lines: list[str] = []
    others = [other for other in _NAMES if other != name]
    while len(lines) < LEDGER:
        story = _STORIES[dice.between(0, len(_STORIES) - 1)]
        lines += story(dice, dice.of(others), dice.of(_THINGS))[0]
    places = sorted(dice.between(0, len(lines)) for _ in facts)
    for place, fact in zip(reversed(places), reversed(facts), strict=True):
        lines.insert(place, fact)
    return "A ledger of many people's affairs:\n" + "\n".join(lines)


def own_questions(path: Path) -> list[Problem]:
    """A user's JSON Lines of `question`, `answer` and perhaps `id`. Raises BadInput with the line of a mistake."""
    found, seen = [], set()
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}", file=path) from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        problem = _own(line, number, path)
        if problem.id in seen:
            raise BadInput(f"id {problem.id!r} stands for two questions", file=path, line=number)
        seen.add(problem.id)
        found.append(problem)
    if not found:
        raise BadInput("no question in it", file=path, hint='a line is {"question": "...", "answer": "..."}')
    return found


def _own(line: str, number: int, path: Path) -> Problem:
    hint = 'a line is {"question": "...", "answer": "..."}'
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise BadInput("not JSON", file=path, line=number, hint=hint) from None
    question = value.get("question") if isinstance(value, dict) else None
    answer = value.get("answer") if isinstance(value, dict) else None
    if not isinstance(question, str) or isinstance(answer, bool) or not isinstance(answer, str | int) or answer == "":
        raise BadInput("question and answer are needed, as text", file=path, line=number, hint=hint)
    return Problem(str(value.get("id", f"q{number:04d}")), "short", f"{question}\n\n{ASK}", str(answer))
