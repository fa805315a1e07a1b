"""agentx fit: a trace to a workload spec that makes such traffic, with the goodness of each fit."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agentx.errors import EXIT_OK, BadInput

if TYPE_CHECKING:
    from agentx.core import Session
    from agentx.generator.expect import Measured
    from agentx.generator.fit import Fitted
    from agentx.generator.spec import WorkloadSpec

EPILOG = """examples:
  agentx fit a.trace -o mine.yaml
  agentx check mine.yaml                                             does it make what it was fitted to?
  agentx generate mine.yaml -o b.trace && agentx inspect a.trace --compare b.trace

The spec holds distributions and shares, no content and no session of the trace. What the trace cannot tell, and what
the spec does not reproduce, is said on stderr and in the spec.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="TRACE", type=Path, help="a trace, or its JSON Lines form")
    parser.add_argument("-o", "--out", metavar="OUT", type=Path, required=True, help="the spec to write (.yaml)")
    parser.add_argument("--force", action="store_true", help="overwrite OUT")


def run(args: argparse.Namespace) -> int:
    from agentx.generator.spec import load_spec

    if args.out.suffix != ".yaml":
        raise BadInput("a spec's name ends in .yaml", file=args.out, hint="give -o such a name")
    if args.out.exists() and not args.force:  # a spec is edited by hand
        raise BadInput("exists already", file=args.out, hint="--force overwrites it")
    fitted = _fit(args.trace)
    spec = load_spec(args.out, text=fitted.text({}))
    missed = _missed(spec, fitted)
    expect = {name: value for name, value in fitted.expect.items() if name not in missed}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(fitted.text(expect, missed.values()))
    _report(fitted)
    for each in fitted.unknown:
        print(f"agentx fit: not known: {each}", file=sys.stderr)
    for remark in missed.values():
        print(f"agentx fit: {remark}", file=sys.stderr)
    print(f"{args.out}: fitted to {fitted.name}, {len(expect)} expectations met", file=sys.stderr)
    return EXIT_OK


def _fit(path: Path) -> Fitted:
    from tqdm import tqdm

    from agentx import reuse
    from agentx.generator.expect import Measured
    from agentx.generator.fit import fit_spec
    from agentx.generator.fit_seen import Seen
    from agentx.trace import TraceReader

    reader, seen, measured = TraceReader(path), Seen(), Measured()
    with tqdm(iter(reader), unit=" sessions", file=sys.stderr, disable=None, leave=False) as bar:
        possible = reuse.possible(seen.watch(measured.watch(bar))).share
    if reader.tear is not None:
        print(f"agentx fit: {path} is {reader.tear}", file=sys.stderr)
    return fit_spec(seen, measured, possible, reader.header, path.stem)


def _missed(spec: WorkloadSpec, fitted: Fitted) -> dict[str, str]:
    """Statistics that sessions of the spec have otherwise than the source, each with a remark that says so."""
    from agentx import reuse
    from agentx.generator.expect import Measured, verdicts

    measured, table = Measured(), reuse.ReuseTable()
    alike: float | None = None  # possible reuse over as many sessions as the source has
    for turn in reuse.possible_by_turn(_enough(spec, measured)):
        if alike is None and measured.counts["sessions"] > spec.sessions:
            alike = table.share
        table.add(turn)
    missed = {}
    for each in verdicts(fitted.expectations, measured, table.share):
        had, made = each.expectation.value, each.realised
        if each.met:
            continue
        missed[each.statistic] = fitted.not_reproduced(each.statistic, had, made)
        if each.statistic == "possible_reuse" and alike is not None and abs(alike - had) <= each.expectation.difference:
            missed[each.statistic] = (
                f"possible_reuse grows with the number of sessions, so it is not in expect: over {spec.sessions} it is "
                f"{had:.4f} in the source, {alike:.4f} here"
            )
    return missed


def _enough(spec: WorkloadSpec, measured: Measured) -> Iterator[Session]:
    """As many sessions as `agentx check` makes, the very same ones."""
    from tqdm import tqdm

    from agentx.cli.check import ENOUGH_TURNS, LEAST, MOST
    from agentx.generator.sessions import sessions

    with tqdm(sessions(spec, 0, MOST), unit=" sessions", file=sys.stderr, disable=None, leave=False) as bar:
        for session in measured.watch(bar):
            yield session
            if measured.counts["sessions"] >= LEAST and measured.counts["turns"] >= ENOUGH_TURNS:
                return


def _report(fitted: Fitted) -> None:
    rows = [("quantity", "family", "n", "KS")]
    for place, found in fitted.goodness:
        distance = "assumed" if found.ks is None else f"{found.ks:.3f}"
        rows.append((place, found.family, f"{found.n:,}", distance))
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    for row in rows:
        cells = [row[0].ljust(widths[0]), row[1].ljust(widths[1]), row[2].rjust(widths[2]), row[3].rjust(widths[3])]
        print("  ".join(cells).rstrip())
