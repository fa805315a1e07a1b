"""`report(run or folder) -> Report`: the figures of a run, computed once, in whatever form they are wanted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentx.replayer.health import seldom_collecting
from agentx.replayer.slo import Slo
from agentx.reporter.about import About, about
from agentx.reporter.blame import Blame, blame
from agentx.reporter.blame_text import blame_blocks, blame_document
from agentx.reporter.cache_events import CacheEvents, cache_events_blocks, cache_events_document, cache_events_of
from agentx.reporter.cost import Cost, check_price, cost_blocks, cost_document, cost_of
from agentx.reporter.document import document
from agentx.reporter.evictions import Evictions, evictions_blocks, evictions_document, evictions_of
from agentx.reporter.findings import Finding, findings
from agentx.reporter.foreign import read_run
from agentx.reporter.goodput import Judged, judge, slo_in
from agentx.reporter.goodput_text import slo_blocks, slo_document
from agentx.reporter.losses import Losses, losses_blocks, losses_document, losses_of
from agentx.reporter.machine import Machine, machine_blocks, machine_document, machine_of
from agentx.reporter.metrics import Metrics, measure
from agentx.reporter.reuse_groups import Grouped, grouped, groups_blocks, groups_document
from agentx.reporter.run_capacity import RunCapacity, run_capacity, run_capacity_blocks, run_capacity_document
from agentx.reporter.scored import Scored, scored_blocks, scored_document, scored_of
from agentx.reporter.summary import summary_blocks
from agentx.reporter.table import Block, as_markdown, as_text
from agentx.reporter.text import blocks
from agentx.results import RunResults


@dataclass(frozen=True, slots=True)
class Report:
    """Figures of one run, and what to know before using them."""

    about: About
    metrics: Metrics
    findings: tuple[Finding, ...]
    cost: Cost
    losses: Losses
    grouped: Grouped
    blame: Blame
    capacity: RunCapacity
    judged: Judged
    cache: CacheEvents | None
    evictions: Evictions | None
    machine: Machine | None
    forecast: Scored | None = None

    def summary(self, *, markdown: bool = False) -> str:
        """One screen: at most 40 lines of 100 columns; or the same as markdown, for a pull request."""
        blocks = summary_blocks(self)
        return as_markdown(blocks) if markdown else as_text(blocks)

    def text(self) -> str:
        """All of it for a terminal: ASCII, at most 100 columns."""
        return as_text(self._blocks())

    def markdown(self) -> str:
        """All of it as markdown."""
        return as_markdown(self._blocks())

    def document(self) -> dict[str, Any]:
        """The JSON document (`schema: agentx/report/1`), as plain values."""
        return {**document(self.about, self.metrics, self.findings), **self._further()}

    def _blocks(self) -> list[Block]:
        first = slo_blocks(self.judged)
        return [
            *blocks(self.about, self.metrics, self.findings, first),
            *(scored_blocks(self.forecast) if self.forecast else ()),
            *losses_blocks(self.losses),
            *blame_blocks(self.blame, self.about.started),
            *groups_blocks(self.grouped),
            *run_capacity_blocks(self.capacity),
            *(cache_events_blocks(self.cache) if self.cache else ()),
            *(evictions_blocks(self.evictions) if self.evictions else ()),
            *(machine_blocks(self.machine) if self.machine else ()),
            *cost_blocks(self.cost),
        ]

    def _further(self) -> dict[str, Any]:
        return {
            "losses": losses_document(self.losses),
            "blame": blame_document(self.blame),
            "capacity": run_capacity_document(self.capacity),
            "reuse_by": groups_document(self.grouped),
            "cost": cost_document(self.cost),
            "slo": slo_document(self.judged),
            "evictions": evictions_document(self.evictions) if self.evictions else None,
            "cache_events": cache_events_document(self.cache) if self.cache else None,
            "machine": machine_document(self.machine) if self.machine else None,
            "forecast": scored_document(self.forecast) if self.forecast else None,
        }


@seldom_collecting()  # of many results: a report makes no cycles worth looking for
def report(run: RunResults | Path | str, *, price: float | None = None, slo: Slo | None = None) -> Report:
    """The report of a run or of its folder; `price` in dollars per GPU-hour stands for the target's own, `slo` for
    the objectives of the same names in the run's plan.

    Raises BadInput when the folder is not one, or the price is not above 0.

    A run that was killed, torn or has no answered request is reported too, as such.
    """
    results = run if isinstance(run, RunResults) else read_run(run)
    what, metrics = about(results), measure(results)
    cost = cost_of(results, metrics, check_price(price))
    objectives = slo_in(results).under(slo or Slo())
    losses, window = losses_of(results, metrics), metrics.throughput.window
    return Report(
        what,
        metrics,
        findings(what, metrics),
        cost,
        losses,
        grouped(metrics.reuse),
        blame(results, losses, objectives.turn.ttft),
        run_capacity(results, metrics.reuse.ideal, losses),
        judge(results, metrics, objectives),
        cache_events_of(results, None if window is None else (window.start, window.stop)),
        evictions_of(results, losses.prompts),
        machine_of(results, metrics),
        scored_of(results),
    )
