"""How near the frozen workload comes to the facts that it was frozen on; no result of a server is among them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentx.generator.sessions import sessions
from agentx.generator.spec import load_spec, spec_text
from agentx.reporter.table import Block, Heading, Lines, Table
from agentx.reuse import ideal
from benchmarks.reproductions.freeze import WORKLOAD
from benchmarks.reproductions.points import Answer, Figures
from benchmarks.reproductions.statistics import at

BUCKETS = {64_000: 0.1203, 128_000: 0.3907, 256_000: 0.6954, 512_000: 0.9001, 1_000_000: 0.9962}
"""Share of the calls whose prompt and reply have at most so many tokens (InferenceX#1632, corpus 052726)."""
POOL = 1_048_576


@dataclass(frozen=True, slots=True)
class Corpus:
    """Figures of the workload's first sessions as they are, played by nobody."""

    sessions: int = 300
    seed: int = 0

    @property
    def key(self) -> str:
        text = f"{spec_text(load_spec(WORKLOAD))}/{self.sessions}"
        return f"corpus-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}-{self.seed}"

    def answer(self, folder: Path) -> Figures:
        made = list(sessions(load_spec(WORKLOAD), self.seed, self.sessions))
        turns = [turn for session in made for turn in session.turns]
        totals = [turn.isl + turn.output.tokens for turn in turns]
        subagents = {
            (session.id, thread.id) for session in made for thread in session.threads if thread.parent is not None
        }
        by_subagent = sum((session.id, turn.thread) in subagents for session in made for turn in session.turns)
        unbounded = ideal(made)
        return {
            "calls": float(len(turns)),
            **{f"within_{most}": sum(total <= most for total in totals) / len(totals) for most in BUCKETS},
            "subagent_share": by_subagent / len(turns),
            "in_per_out": sum(turn.isl for turn in turns) / sum(turn.output.tokens for turn in turns),
            "unbounded": unbounded.share or 0.0,
        }


def blocks(corpus: Sequence[Answer[Corpus]], alone: Sequence[Figures]) -> list[Block]:
    """`alone`: the runs at concurrency 1, of which the peak of what running requests hold is taken."""
    rows: list[tuple[str, ...]] = []
    for answer in corpus:
        each = answer.figures
        rows += [
            (f"calls of at most {most:,} tokens, reply included", f"{share:.1%}", f"{each[f'within_{most}']:.1%}")
            for most, share in BUCKETS.items()
        ]
        rows += [
            ("calls that subagents make", "24.3 %", f"{each['subagent_share']:.1%}"),
            ("prompt tokens a reply token", "110 to 128", f"{each['in_per_out']:.0f}"),
            ("unbounded hit, replies not sent back", "98 to 99 %", f"{each['unbounded']:.1%}"),
        ]
    if alone:
        peaks = [each["peak"] / POOL for each in alone]
        told = f"{at(peaks, 50):.1%} (p5 {at(peaks, 5):.1%}, p95 {at(peaks, 95):.1%})"
        rows.append(("peak of the pool that one session's requests hold in an hour, median", "about 35 %", told))
    return [
        Heading("What is frozen: the workload claude-code-1m"),
        Lines(
            (
                "Frozen on these facts alone; by then a few single-seed runs of drafts had been seen, concurrency 4 "
                "without and with the host tier among them (75.8 and 99.2 % reuse). claude-code-subagents did not meet "
                "them (357 prompt tokens a reply token, 97.2 % unbounded hit as played). SGLang's usage is what is "
                "neither free nor evictable, that is, what running requests hold; so the published 35 % is read as a "
                "peak. The other reading, the mean context of a whole session, was tried before and put aside: "
                "three sessions then fill the pool, and concurrency 3, which is among the fitted rows, would be in the "
                "cliff.",
            )
        ),
        Table(("fact", "published", "workload"), tuple(rows)),
    ]
