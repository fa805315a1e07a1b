"""agentx list: what the catalogues hold, a name first on each line; or how forecasts did in the runs of a folder."""

from __future__ import annotations

import argparse
import json
import sys

from agentx import catalog
from agentx.cli.schemas import LIST
from agentx.errors import EXIT_OK, BadInput

EPILOG = """examples:
  agentx list
  agentx list workloads
  agentx list workloads --json
  agentx list forecasts runs/             how the forecasts of the runs in there did, by the target that made them
  AGENTX_PATH=~/agentx agentx list targets        with ~/agentx/replays/targets/*.yaml, yours before the built-in ones
"""


FORECASTS = "forecasts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", nargs="?", choices=(*catalog.KINDS, FORECASTS), help="one catalogue (default: all)")
    parser.add_argument("folder", nargs="?", metavar="DIR", help="of forecasts: where the run folders are")
    parser.add_argument("--json", action="store_true", help="one document (schema agentx/list/1), not of forecasts")


def run(args: argparse.Namespace) -> int:
    if args.kind == FORECASTS:
        if args.json:
            raise BadInput("forecasts are listed as text only", hint="'agentx report RUN --json' has each run's own")
        return _forecasts(args.folder)
    if args.folder is not None:
        raise BadInput(f"{args.folder}: only forecasts are listed from a folder", hint="agentx list forecasts DIR")
    kinds = catalog.KINDS if args.kind is None else (args.kind,)
    found = [entry for kind in kinds for entry in catalog.entries(kind)]
    if args.json:
        entries = [{"name": each.name, "kind": each.kind, "about": each.about} for each in found]
        print(json.dumps({"schema": LIST, "entries": entries}, indent=2))
        return EXIT_OK
    width = max((len(entry.name) for entry in found), default=0)
    for entry in found:
        kind = f"{entry.kind:<10}  " if args.kind is None else ""
        print(f"{entry.name:<{width}}  {kind}{entry.about}".rstrip())
    if not found:
        print(
            f"no {args.kind or 'catalogue entries'} here; $AGENTX_PATH may name directories that hold some",
            file=sys.stderr,
        )
    return EXIT_OK


def _forecasts(folder: str | None) -> int:
    from agentx.reporter.scored import ledger, ledger_text

    if folder is None:
        raise BadInput("where are the runs?", hint="agentx list forecasts DIR")
    print(ledger_text(ledger(folder)), end="")
    return EXIT_OK
