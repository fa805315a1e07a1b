"""The cliff finder beside the engine: the same workload, node and plan, by plays in outline and by full simulation."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentx.replayer.order import order_of
from agentx.replayer.outlines import outlines
from agentx.reporter.table import Block, Heading, Lines, Table
from benchmarks.reproductions.cliff import Runs, values
from benchmarks.reproductions.freeze import NODE, PLAN, WORKLOAD, lanes
from benchmarks.reproductions.points import Answer, Figures
from benchmarks.reproductions.statistics import at

COUNTS = (1, 2, 3, 4, 5, 6, 8)
DRAWS = 20
LEAST = 0.87  # of reuse: what has less has fallen, since an unlimited cache has some 97 %


@dataclass(frozen=True, slots=True)
class Outlined:
    """Every number of sessions at a time, all draws: `fallen_N`, `reuse_N`, `output_N` (medians)."""

    draws: int = DRAWS

    @property
    def key(self) -> str:
        return f"outline-{lanes(4).digest()}-{self.draws}"

    def answer(self, folder: Path) -> Figures:
        with tempfile.TemporaryDirectory(prefix="agentx-") as scratch:
            where = Path(scratch)
            order = order_of(WORKLOAD, PLAN, NODE, (), folder=where, scratch=where, salt="")
            plays = outlines(order, self.draws)
        found: Figures = {}
        for count in COUNTS:
            draws = plays.at(count)
            reuse = [each.reuse or 0.0 for each in draws]
            found[f"fallen_{count}"] = sum(each < LEAST for each in reuse) / len(reuse)
            found[f"reuse_{count}"] = at(reuse, 50)
            found[f"output_{count}"] = at([each.rate / plays.settings.gpus for each in draws], 50)
        return found


def blocks(outlined: Sequence[Answer[Outlined]], runs: Runs) -> list[Block]:
    rows = []
    for answer in outlined:
        for count in COUNTS:
            own = runs.get(f"c{count}", {})
            reuse = values(own, "reuse")
            if not reuse:
                continue
            fallen = sum(each < LEAST for each in reuse) / len(reuse)
            each = answer.figures
            rows.append(
                (
                    str(count),
                    *(f"{each[f'fallen_{count}']:.0%}", f"{fallen:.0%}"),
                    *(f"{100 * each[f'reuse_{count}']:.1f}", f"{100 * at(reuse, 50):.1f}"),
                    *(f"{each[f'output_{count}']:.2f}", f"{at(values(own, 'output'), 50):.2f}"),
                    str(len(reuse)),
                )
            )
    columns = ("sessions", "fallen, outline", "engine", "reuse, outline", "engine", "output, outline", "engine", "runs")
    return [
        Heading("The cliff finder beside the engine"),
        Lines(
            (
                f"`agentx simulate --find-cliff` plays in outline ({DRAWS} draws of another seed); here it stands "
                f"beside the simulations of above. Fallen: reuse below {LEAST:.0%}; medians; output in tok/s/GPU. It "
                "finds where the cliff is, and is too dark about what lies beyond.",
            )
        ),
        Table(columns, tuple(rows)),
    ]
