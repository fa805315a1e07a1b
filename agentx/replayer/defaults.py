"""What is replayed when little is said: pauses that end in minutes, a trace made from a workload's name.

Without a plan the pauses of a trace are scaled so that those of all sessions, one after the other, sum to at most
PAUSES seconds along each session's longest path, and no session is idle for more than CAP seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from agentx import catalog
from agentx.core import Session

PAUSES = 60.0  # s
CAP = 2.0  # s
LOOKED_AT = 2000  # sessions; a longer trace is judged by its beginning


class Pace(NamedTuple):
    scale: float
    cap: float
    pauses: float  # s, as recorded
    sessions: int

    @property
    def sets(self) -> list[str]:
        """As overrides of a plan."""
        return [f"gaps.scale={self.scale}", f"gaps.tree_idle_cap={self.cap}s"]

    def __str__(self) -> str:
        return (
            f"no plan given: the pauses of {self.sessions} sessions ({self.pauses:,.0f} s) are scaled by "
            f"{self.scale:g} and capped at {self.cap:g} s of idleness; --plan or --set gaps.scale=1 changes that"
        )


def pace(sessions: Iterable[Session]) -> Pace:
    """The scale and cap with which these sessions end in minutes."""
    looked = list(islice((longest_pauses(session) for session in sessions), LOOKED_AT))
    total = sum(looked)
    return Pace(1.0 if total <= PAUSES else float(f"{PAUSES / total:.2g}"), CAP, total, len(looked))


def longest_pauses(session: Session) -> float:
    """Seconds of gaps along the path of a session that has most of them."""
    ends: list[float] = []
    for turn in session.turns:
        gap = turn.gap.seconds if turn.index else 0.0
        ends.append(max((ends[earlier] for earlier in turn.after), default=0.0) + gap)
    return max(ends, default=0.0)


def trace_path(trace: str, seed: int, folder: Path) -> Path:
    """The trace that an argument means: a file, or one generated in `folder` from the workload of that name.

    Raises BadInput for a name that no workload has.
    """
    if catalog.is_path(trace):
        return Path(trace)
    from agentx.generator.spec import load_spec
    from agentx.generator.write import generate

    path = catalog.resolve("workloads", trace)
    return generate(load_spec(path), seed=seed, out=folder / f"{path.stem}.trace", name=path.stem)
