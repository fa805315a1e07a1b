"""Two runs of the same problems, problem by problem: which were right in both, which were fixed, and which broke.

The variants of a problem are no independent problems: a test and a bound are of one variant each. Over several, p is
the smallest times their number (Bonferroni), and the bound the highest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentx.errors import BadInput
from agentx.quality.results import Outcome, Quality
from agentx.quality.statistics import mcnemar, upper_bound

SCHEMA = "agentx/quality-compare/1"
LEVEL = 0.05  # of the test's p under which a change is not chance
LISTED = 20  # broken problems that are listed for a person


@dataclass(frozen=True, slots=True)
class Compared:
    """`pairs` problems that both runs were asked and answered; `left_out`: failed in one of them, or not asked.
    `lost`: of those left out, the ones that were right before and failed after."""

    pairs: tuple[tuple[Outcome, Outcome], ...]
    left_out: int
    lost: tuple[Outcome, ...] = ()

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
    def parts(self) -> dict[str, Compared]:
        """variant -> its pairs alone, short before long."""
        variants = sorted({one.variant for one, _ in self.pairs}, reverse=True)
        return {
            variant: Compared(tuple(pair for pair in self.pairs if pair[0].variant == variant), 0)
            for variant in variants
        }

    @property
    def p(self) -> float:
        """Of McNemar's exact test, two-sided."""
        parts = self.parts
        if len(parts) > 1:
            return min(1.0, len(parts) * min(part.p for part in parts.values()))
        return mcnemar(len(self.broken), len(self.fixed))

    @property
    def bound(self) -> float | None:
        """The highest share of broken problems that this many can hide, 95 %, one-sided; None where none was right
        before, so that none could break."""
        parts = self.parts
        if len(parts) > 1:
            return max((part.bound for part in parts.values() if part.bound is not None), default=None)
        could = len(self.broken) + len(self.of(True, True))
        return upper_bound(len(self.broken), len(self.pairs)) if could else None

    @property
    def worse(self) -> bool:
        """Whether more broke than were fixed, by more than chance; of several variants, in one of them."""
        parts = self.parts
        if len(parts) > 1:
            return any(part.worse_at(LEVEL / len(parts)) for part in parts.values())
        return self.worse_at(LEVEL)

    def worse_at(self, level: float) -> bool:
        """The same of one variant, at another level."""
        return len(self.broken) > len(self.fixed) and self.p < level


def compare_quality(before: Quality, after: Quality) -> Compared:
    """By problem and variant. Raises BadInput when the two were not asked the same."""
    old = {one.key: one for one in before.outcomes}
    pairs, unpaired, lost = [], 0, []
    for new in after.outcomes:
        one = old.pop(new.key, None)
        if one is None or "failed" in (one.verdict, new.verdict):
            unpaired += 1
            if one is not None and one.verdict == "right":
                lost.append(new)
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
    return Compared(tuple(pairs), unpaired + len(old), tuple(lost))


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
    if found.lost:
        lines.append(f"  FAILED NOW     {len(found.lost):>5}   of these: right before, and no reply after")
    parts = found.parts
    for variant, part in parts.items() if len(parts) > 1 else ():
        lines.append(f"  {variant:<5} {len(part.fixed)} fixed, p = {part.p:.3g}; {_allows(part)}")
    corrected = f", the smaller of {len(parts)} times {len(parts)}" if len(parts) > 1 else ""
    lines.append(f"  McNemar's exact test: p = {found.p:.3g}{corrected}; {_verdict(found)}")
    if len(parts) == 1:
        lines.append(f"  {_allows(found)}")
    for one, other in found.broken[:LISTED]:
        lines.append(f"  broken: {other.id} {other.variant}: {one.answer} was given, now {other.given or 'no answer'}")
    if len(found.broken) > LISTED:
        lines.append(f"  ... and {len(found.broken) - LISTED} more, all in --json")
    return "\n".join(lines) + "\n"


def _allows(found: Compared) -> str:
    if found.bound is None:
        return "none was right before, so none could break: this says nothing"
    return f"{len(found.broken)} broken of {len(found.pairs)} still allow {found.bound * 100:.1f} % (95 %, one-sided)"


def _verdict(found: Compared) -> str:
    if found.worse:
        return "WORSE by more than chance"
    return "no change was seen" if not (found.broken or found.fixed) else "what changed may be chance"


def document(found: Compared, before: Quality, after: Quality) -> dict[str, Any]:
    """Plain values only."""
    return {
        "schema": SCHEMA,
        "before": str(before.folder),
        "after": str(after.folder),
        "problems": len(found.pairs),
        "left_out": found.left_out,
        "failed_now": [{"id": one.id, "variant": one.variant} for one in found.lost],
        "right_in_both": len(found.of(True, True)),
        "right_in_none": len(found.of(False, False)),
        "fixed": [_listed(pair) for pair in found.fixed],
        "broken": [_listed(pair) for pair in found.broken],
        "mcnemar_p": found.p,
        "broken_share_upper_bound": found.bound,
        "worse": found.worse,
        "by_variant": {
            variant: {
                "problems": len(part.pairs),
                "fixed": len(part.fixed),
                "broken": len(part.broken),
                "mcnemar_p": part.p,
                "broken_share_upper_bound": part.bound,
            }
            for variant, part in found.parts.items()
        },
    }


def _listed(pair: tuple[Outcome, Outcome]) -> dict[str, Any]:
    one, other = pair
    return {"id": one.id, "variant": one.variant, "answer": one.answer, "before": one.given, "after": other.given}
