"""Answers are taken strictly: what stands behind the last `Answer:` of a reply, and nothing else.

A reply without one is no answer, which is not the same as a wrong one: a model that was cut off, or that does not do as
it is told, says nothing of the cache. Numbers are compared as numbers, other answers as words.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Literal

Verdict = Literal["right", "wrong", "no_answer", "failed"]
VERDICTS: tuple[Verdict, ...] = ("right", "wrong", "no_answer", "failed")
_LAST = re.compile(r"(?im)^[\s*_`#>-]*answer\s*:[\s*_`$]*(.*?)[\s*_`$.]*$")
_NUMBER = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?")


def answered(reply: str) -> str | None:
    """What a reply gives as its answer; None when it gives none."""
    found = _LAST.findall(reply)
    return found[-1].strip() or None if found else None


def verdict(reply: str, answer: str) -> Verdict:
    """Whether a reply gives the right answer."""
    given = answered(reply)
    if given is None:
        return "no_answer"
    return "right" if _plain(given) == _plain(answer) else "wrong"


def _plain(text: str) -> Decimal | str:
    number = _NUMBER.fullmatch(text)
    if number is not None:
        try:
            return Decimal(text.replace(",", ""))
        except InvalidOperation:
            pass
    return " ".join(text.casefold().split())
