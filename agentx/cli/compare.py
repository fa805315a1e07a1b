"""agentx compare: hold runs against each other, and say what is known against it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agentx.errors import EXIT_OK, BadInput

if TYPE_CHECKING:
    from agentx.reporter.compare import Comparison
    from agentx.reporter.compare_recorded import Recorded
    from agentx.reporter.compare_reference import ReferenceComparison

EPILOG = """examples:
  agentx compare before/ after/                                one pair: ratios without intervals
  agentx compare before/ small/ large/                         the first against each of the others
  agentx compare --a a1/ a2/ a3/ --b b1/ b2/ b3/               repeats of two sides: 95 % t-intervals between runs
  agentx compare --a a1/ a2/ a3/ --b b1/ b2/ b3/ --decide      do they decide, or how many hours more
  agentx compare before/ after/ --html pair.html               one file with charts; opens offline
  agentx compare before/ after/ --strict --json > compare.json
  agentx compare run/ --reference inferencex-mi325x-glm-5.2-fp8             beside published figures
  agentx compare b.trace run/                                  a trace beside its replay: was it replayed as recorded

Run repeats in the order A B B A A B: drift of the server then weighs on both sides alike. docs/reference/metrics.md
defines every figure and every finding.
exit codes: 0 done, 2 bad input, 5 with --strict when a finding makes a pair not comparable, or a replay is not as
recorded
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        metavar="RUN",
        nargs="*",
        help="run folders, one for each side; the first is A. Or a trace, and a run that played it",
    )
    parser.add_argument("--a", metavar="RUN", nargs="+", default=[], help="the runs of side A")
    parser.add_argument("--b", metavar="RUN", nargs="+", default=[], help="the runs of side B")
    parser.add_argument("--reference", metavar="NAME", help="published figures ('agentx list references') or a path")
    parser.add_argument("--row", metavar="ROW", help="of the reference (default: those of as many sessions, else all)")
    parser.add_argument("--price", type=float, metavar="USD", help="per GPU and hour (default: each target's own)")
    parser.add_argument(
        "--decide", metavar="FIGURE", nargs="?", const="output_tokens_per_second",
        help="a sequential test over the repeats: which side is higher in FIGURE (default: %(const)s), or how many "
        "more runs it would take",
    )  # fmt: skip
    parser.add_argument("--strict", action="store_true", help="refuse (exit 5) a pair that is not comparable")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON document (schema agentx/compare/1)")
    form.add_argument("--markdown", action="store_true", help="the tables as markdown")
    parser.add_argument("--html", metavar="FILE", help="write a page with charts too: one file, nothing is fetched")


def run(args: argparse.Namespace) -> int:
    if args.reference is not None or args.row is not None:
        found: Comparison | ReferenceComparison | Recorded = _reference(args)
    elif any(_is_trace(Path(name)) for name in args.runs):
        found = _recorded(args)
    else:
        found = _compared(args)
    if args.json:
        print(json.dumps(found.document(), indent=1, allow_nan=False))
    else:
        sys.stdout.write(found.markdown() if args.markdown else found.text())
    return EXIT_OK


def _compared(args: argparse.Namespace) -> Comparison:
    from agentx.reporter.compare import compare

    found = compare(_sides(args), price=args.price, decide_on=args.decide)
    if args.html is not None:
        from agentx.cli.report import write_page
        from agentx.pages.compare_page import compare_page

        write_page(args.html, compare_page(found))
    if args.strict:
        found.check()
    return found


def _is_trace(path: Path) -> bool:
    """A trace, and not a run's folder or the rows that AIPerf left."""
    from agentx.frames import MAGIC

    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(4096)
    return path.suffix == ".trace" or head.startswith(MAGIC) or b'"frame"' in head.split(b"\n", 1)[0]


def _recorded(args: argparse.Namespace) -> Recorded:
    from agentx.reporter.compare_recorded import compare_recorded

    if len(args.runs) != 2 or args.a or args.b:
        raise BadInput("a trace stands beside one run that played it", hint="agentx compare TRACE RUN")
    if args.price is not None or args.decide is not None or args.html is not None:
        raise BadInput("--price, --decide and --html are for runs against runs")
    trace, run = sorted(args.runs, key=lambda name: not _is_trace(Path(name)))
    found = compare_recorded(trace, run)
    if args.strict:
        found.check()
    return found


def _reference(args: argparse.Namespace) -> ReferenceComparison:
    from agentx.reporter.compare_reference import compare_reference

    if args.reference is None:
        raise BadInput("--row is of a reference", hint="--reference NAME says which")
    if len(args.runs) != 1 or args.a or args.b:
        raise BadInput("one run stands beside a reference", hint="agentx compare RUN --reference NAME")
    if args.price is not None:
        raise BadInput("--price is for runs: published figures have their own")
    if args.html is not None:
        raise BadInput("--html is for runs")
    if args.decide is not None:
        raise BadInput("--decide is for repeats of two sides")
    if args.strict:
        raise BadInput("--strict is for runs: the conditions of published figures are never all known")
    return compare_reference(args.runs[0], args.reference, args.row)


def _sides(args: argparse.Namespace) -> list[list[str]]:
    """One list of folders for each side."""
    for folder in args.runs:
        if (Path(folder) / "manifest.json").is_file() and not (Path(folder) / "run.json").exists():
            raise BadInput(
                "this is a capture, which is private and not played",
                file=folder,
                hint="agentx compile makes a trace of it; then: agentx compare TRACE RUN",
            )
    repeated = [side for side in (args.a, args.b) if side]
    if args.runs and repeated:
        raise BadInput("give either RUN RUN ..., one for each side, or --a RUN ... --b RUN ...")
    sides = repeated or [[folder] for folder in args.runs]
    if len(sides) < 2:
        raise BadInput("two runs are needed", hint="agentx compare A B, or --a A1 A2 A3 --b B1 B2 B3")
    return sides
