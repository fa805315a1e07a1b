"""agentx check: a workload spec against the numbers it promises, or a trace against the format's rules."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentx import catalog
from agentx.cli.generate import add_sets
from agentx.cli.numbers import count
from agentx.cli.schemas import CHECK
from agentx.errors import EXIT_BAD_INPUT, EXIT_GATE, EXIT_OK

if TYPE_CHECKING:
    from agentx.core import Session
    from agentx.generator.expect import Measured, Verdict
    from agentx.generator.expectation import Expectation
    from agentx.generator.spec import WorkloadSpec

# What is enough to judge: the median of so many calls is within some 1 %, a share of so many sessions within 0.04.
LEAST, MOST, ENOUGH_TURNS = 500, 20_000, 60_000

EPILOG = """examples:
  agentx check coding-agent
  agentx check my.yaml --sessions 5000 --seed 1
  agentx check a.trace
  agentx check a.trace --json

A spec without `expect` is not checked. A trace that was recorded or imported is also looked at for what recorders get
wrong: coarse clocks, copies, overlaps, pauses of many hours, prompts that are not whole, two tokenizers. What no trace
shows but is known of its format is printed apart, with who says so.

exit codes: 0 done; 2 bad input, or a finding that makes a trace's numbers wrong; 3 an expectation of a spec is missed;
130 interrupted
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="SPEC|TRACE", help="a workload's name, a spec's path, or a trace")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the sessions made from a spec (default: %(default)s)"
    )
    enough = f"at least {LEAST} and {ENOUGH_TURNS:,} calls, at most {MOST:,}"
    parser.add_argument("--sessions", type=count, metavar="N", help=f"made from a spec (default: {enough})")
    parser.add_argument("--json", action="store_true", help="one JSON document (schema agentx/check/1)")
    add_sets(parser)


def run(args: argparse.Namespace) -> int:
    is_trace = catalog.is_path(args.what) and not args.what.endswith(".yaml")
    return _trace(Path(args.what), args.json) if is_trace else _spec(args)


def _trace(path: Path, as_json: bool) -> int:
    from agentx.cli.trace_lint import lint

    found = lint(path)
    if as_json:
        counts = {"trace": str(path), "sessions": found.sessions, "turns": found.turns, "errors": found.errors}
        _print_json(counts | {"findings": [asdict(finding) for finding in found.findings.values()]})
        return EXIT_BAD_INPUT if found.errors else EXIT_OK
    for finding in found.findings.values():
        if finding.level == "known":
            print(f"known of this format: {finding.rule} ({finding.first})")
        elif finding.first.startswith("session "):
            print(f"{finding.level}: {finding.rule}: {finding.count} times, first in {finding.first}")
        else:
            print(f"{finding.level}: {finding.rule}{f': {finding.first}' if finding.first else ''}")
    verdict = f"{found.errors} errors" if found.errors else "no errors"
    print(f"{path}: {found.sessions} sessions, {found.turns} turns, {verdict}")
    return EXIT_BAD_INPUT if found.errors else EXIT_OK


def _spec(args: argparse.Namespace) -> int:
    from agentx.generator.expect import Measured, verdicts
    from agentx.generator.shared import shared_layers
    from agentx.generator.spec import load_spec

    path = catalog.resolve("workloads", args.what)
    spec = load_spec(path, sets=args.sets)
    shared_layers(spec, args.seed)  # raises for layers that leave no room
    measured = Measured()
    if not spec.expect:
        if args.json:
            _print_json(_document(path, args.seed, measured, []))
        else:
            print(f"{path.stem}: the spec is well formed; it expects nothing, so its numbers are not checked")
        return EXIT_OK
    found = verdicts(spec.expect, measured, _walk(spec, args, measured))
    if args.json:
        _print_json(_document(path, args.seed, measured, found))
        return EXIT_OK if all(verdict.met for verdict in found) else EXIT_GATE
    _table(found)
    missed = [verdict.statistic for verdict in found if not verdict.met]
    outcome = f"missed: {', '.join(missed)}" if missed else "all met"
    made = f"{measured.counts['sessions']} sessions, {measured.counts['turns']} calls, seed {args.seed}"
    print(f"{path.stem}: {len(found)} expectations, {made}: {outcome}")
    return EXIT_GATE if missed else EXIT_OK


def _document(path: Path, seed: int, measured: Measured, found: list[Verdict]) -> dict[str, Any]:
    """`tolerance` is the greatest difference from the target that meets it."""
    rows = [
        {
            "statistic": each.statistic,
            "target": each.expectation.value,
            "realised": each.realised,
            "tolerance": each.expectation.difference,
            "met": each.met,
            "source": each.expectation.source,
        }
        for each in found
    ]
    counts = {"sessions": measured.counts["sessions"], "turns": measured.counts["turns"]}
    return {"spec": str(path), "seed": seed, **counts, "expectations": rows}


def _print_json(document: dict[str, Any]) -> None:
    print(json.dumps({"schema": CHECK, **document}, indent=2))


def _walk(spec: WorkloadSpec, args: argparse.Namespace, measured: Measured) -> float | None:
    """Make the sessions once, measuring them; the possible reuse if the spec expects one."""
    from tqdm import tqdm

    from agentx import reuse
    from agentx.generator.sessions import sessions

    made = measured.watch(sessions(spec, args.seed, args.sessions or MOST))
    if args.sessions is None:
        made = _enough(made, measured)
    with tqdm(made, unit=" sessions", file=sys.stderr, disable=None, leave=False) as bar:
        if "possible_reuse" in spec.expect:
            return reuse.possible(bar).share
        for _ in bar:
            pass
    return None


def _enough(made: Iterator[Session], measured: Measured) -> Iterator[Session]:
    for each in made:
        yield each
        if measured.counts["sessions"] >= LEAST and measured.counts["turns"] >= ENOUGH_TURNS:
            return


def _table(found: list[Verdict]) -> None:
    rows = [("statistic", "target", "realised", "tolerance", "verdict", "source")]
    for verdict in found:
        expectation = verdict.expectation
        seconds = "_gap_" in verdict.statistic and not verdict.statistic.endswith("_ks")
        cells = (_target(expectation), _shown(verdict.realised, seconds), _shown(expectation.tolerance))
        rows.append((verdict.statistic, *cells, "met" if verdict.met else "MISSED", expectation.source))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _target(expectation: Expectation) -> str:
    """A target; for a distribution its shape, of which the distance should be 0."""
    target = expectation.target
    return _shown(target) if isinstance(target, float | str) else f"as {target.shape_name}"


def _shown(value: float | str | None, seconds: bool = False) -> str:
    if value is None or isinstance(value, str):
        return value or "unknown"
    return (f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}") + "s" * seconds
