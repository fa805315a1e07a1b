"""Two runs of the same problems, problem by problem: which were right in both, which were fixed, and which broke."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentx.errors import BadInput
from agentx.quality.results import Outcome, Quality
from agentx.quality.statistics import mcnemar, upper_bound

LEVEL = 0.05  # of the test's p under which a change is not chance
LISTED = 20  # broken problems that are listed for a person


@dataclass(frozen=True, slots=True)
class Compared:
    """`pairs` problems that both runs were asked and answered; `left_out`: failed in one of them, or not asked."""

    pairs: tuple[tuple[Outcome, Outcome], ...]
    left_out: int

    def of(self, before: bool, after: bool) -> list[tuple[Outcome, Outcome]]:
        """The pairs that were right before, and after."""
        return [(a, b) for a, b in self.pairs if (a.verdict == "right", b.verdict == "right") == (before, after)]

    @property
    def broken(self) -> list[tuple[Outcome, Outcome]]:
        return self.of(True, False)

    @property
    def fixed(self) -> list[tuple[Outcome, Outcome]]:
        return self.of(False, True)

    @property
    def p(self) -> float:
        """Of McNemar's exact test, two-sided."""
        return mcnemar(len(self.broken), len(self.fixed))

    @property
    def bound(self) -> float | None:
        """The highest share of broken problems that this many can hide, 95 %, one-sided; None without a pair."""
        return upper_bound(len(self.broken), len(self.pairs)) if self.pairs else None

    @property
    def worse(self) -> bool:
        """Whether more broke than were fixed, by more than chance."""
        return len(self.broken) > len(self.fixed) and self.p < LEVEL


def compare_quality(before: Quality, after: Quality) -> Compared:
    """By problem and variant. Raises BadInput when the two were not asked the same."""
    old = {one.key: one for one in before.outcomes}
    pairs, unpaired = [], 0
    for new in after.outcomes:
        one = old.pop(new.key, None)
        if one is None or "failed" in (one.verdict, new.verdict):
            unpaired += 1
        elif one.prompt_digest != new.prompt_digest:
            raise BadInput(
                f"problem {new.id} ({new.variant}) is another one in {before.folder}",
                file=after.folder,
                hint="both runs need the same --seed, or the same questions",
            )
        else:
            pairs.append((one, new))
    if not pairs:
        raise BadInput(f"no problem was answered both here and in {before.folder}", file=after.folder)
    return Compared(tuple(pairs), unpaired + len(old))


def text(found: Compared, before: Quality, after: Quality) -> str:
    """For a terminal."""
    n, both = len(found.pairs), len(found.of(True, True))
    lines = [
        f"agentx quality: {after.folder} against {before.folder}, {n} problems answered in both",
        f"  right in both  {both:>5}",
        f"  fixed          {len(found.fixed):>5}",
        f"  BROKEN         {len(found.broken):>5}",
        f"  right in none  {len(found.of(False, False)):>5}",
    ]
    if found.left_out:
        lines.append(f"  left out       {found.left_out:>5}   failed or asked in one of them only")
    lines.append(f"  McNemar's exact test: p = {found.p:.3g}; {_verdict(found)}")
    bound = found.bound
    if bound is not None:
        lines.append(f"  {len(found.broken)} broken of {n} still allow {bound * 100:.1f} % (95 %, one-sided)")
    for one, other in found.broken[:LISTED]:
        lines.append(f"  broken: {other.id} {other.variant}: {one.answer} was given, now {other.given or 'no answer'}")
    if len(found.broken) > LISTED:
        lines.append(f"  ... and {len(found.broken) - LISTED} more, all in --json")
    return "\n".join(lines) + "\n"


def _verdict(found: Compared) -> str:
    if found.worse:
        return "WORSE by more than chance"
    return "no change was seen" if not (found.broken or found.fixed) else "what changed may be chance"


def document(found: Compared, before: Quality, after: Quality) -> dict[str, Any]:
    """Plain values only."""
    return {
        "schema": "agentx/quality-compare/1",
        "before": str(before.folder),
        "after": str(after.folder),
        "problems": len(found.pairs),
        "left_out": found.left_out,
        "right_in_both": len(found.of(True, True)),
        "right_in_none": len(found.of(False, False)),
        "fixed": [_listed(pair) for pair in found.fixed],
        "broken": [_listed(pair) for pair in found.broken],
        "mcnemar_p": found.p,
        "broken_share_upper_bound": found.bound,
        "worse": found.worse,
    }


def _listed(pair: tuple[Outcome, Outcome]) -> dict[str, Any]:
    one, other = pair
    return {"id": one.id, "variant": one.variant, "answer": one.answer, "before": one.given, "after": other.given}
