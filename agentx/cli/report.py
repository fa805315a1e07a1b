"""`agentx report RUN`: say what a run measured. stdout carries the report and nothing else."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agentx.cli.playing import SLO_HELP, gate
from agentx.errors import BadInput

if TYPE_CHECKING:
    from agentx.reporter.reporting import Report

EPILOG = """examples:
  agentx report run/                                      one screen: verdict, caveats, the figures that matter
  agentx report run/ --full                               every table
  agentx report run/ --json > report.json
  agentx report run/ --html run.html                      one file with charts; opens offline
  agentx report run/ --export turns.csv                   a row for each request (.parquet too; .json: an aggregate)
  agentx report run/ --price 2.50                         what its tokens cost
  agentx report run/ --slo ttft=5s,ttft_p95=5s            goodput and a verdict; exit code 3 when missed
  agentx report artifacts/                                what AIPerf or agentx-harness left, as far as it goes
  agentx report run/ --markdown | gh pr comment 12 --body-file -

docs/reference/metrics.md defines every figure. A run that was interrupted or torn is reported as far as it goes.
exit codes: 0 done, 2 bad input, 3 objective missed
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", metavar="RUN", help="a run folder, as `agentx replay` wrote it, or artifacts of AIPerf"
    )
    parser.add_argument("--full", action="store_true", help="every table instead of one screen")
    parser.add_argument("--price", type=float, metavar="USD", help="per GPU and hour (default: the target's)")
    parser.add_argument("--slo", dest="slo", action="append", default=[], metavar="NAME=LIMIT,...", help=SLO_HELP)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON document (schema agentx/report/1)")
    form.add_argument("--markdown", action="store_true", help="as markdown, for a pull request")
    parser.add_argument(
        "--export", metavar="FILE", type=Path,
        help="write FILE.csv or FILE.parquet (a row for each request), or FILE.json, with InferenceX's names",
    )  # fmt: skip
    parser.add_argument("--html", metavar="FILE", help="write a page with charts too: one file, nothing is fetched")


def run(args: argparse.Namespace) -> int:
    from agentx.replayer.slo import slo_of
    from agentx.reporter.foreign import read_run
    from agentx.reporter.reporting import report

    results = read_run(args.folder)
    found = report(results, price=args.price, slo=slo_of(args.slo))
    if args.export is not None:
        from agentx.reporter.export import export

        export(found, results, args.export)
    if args.html is not None:
        from agentx.pages.run_page import run_page

        write_page(args.html, run_page(found, results))
    if args.json:
        print(json.dumps(found.document(), indent=1, allow_nan=False))
    else:
        sys.stdout.write(_text(found, full=args.full, markdown=args.markdown))
    return gate(found.judged)


def _text(found: Report, *, full: bool, markdown: bool) -> str:
    if not full:
        return found.summary(markdown=markdown)
    return found.markdown() if markdown else found.text()


def write_page(file: str, text: str) -> None:
    """Write it, and make its folder. Raises BadInput where that cannot be."""
    try:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot be written: {error.strerror}", file=file) from None
