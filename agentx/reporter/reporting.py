"""`report(run or folder) -> Report`: the figures of a run, computed once, in whatever form they are wanted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentx.reporter.about import About, about
from agentx.reporter.document import document
from agentx.reporter.findings import Finding, findings
from agentx.reporter.metrics import Metrics, measure
from agentx.reporter.table import as_markdown, as_text
from agentx.reporter.text import blocks
from agentx.results import RunResults, read_results


@dataclass(frozen=True, slots=True)
class Report:
    """Figures of one run, and what to know before using them."""

    about: About
    metrics: Metrics
    findings: tuple[Finding, ...]

    def text(self) -> str:
        """For a terminal: ASCII, at most 100 columns."""
        return as_text(blocks(self.about, self.metrics, self.findings))

    def markdown(self) -> str:
        """The same for a pull request."""
        return as_markdown(blocks(self.about, self.metrics, self.findings))

    def document(self) -> dict[str, Any]:
        """The JSON document (`schema: agentx/report/1`), as plain values."""
        return document(self.about, self.metrics, self.findings)


def report(run: RunResults | Path | str) -> Report:
    """The report of a run or of its folder. Raises BadInput when the folder is not one.

    A run that was killed, torn or has no answered request is reported too, as such.
    """
    results = run if isinstance(run, RunResults) else read_results(run)
    what, metrics = about(results), measure(results)
    return Report(what, metrics, findings(what, metrics))
