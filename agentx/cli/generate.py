"""agentx generate: a workload spec to a trace."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from agentx import catalog
from agentx.cli.numbers import count
from agentx.errors import BadInput

EPILOG = """examples:
  agentx generate coding-agent --seed 7 -o a.trace
  agentx generate coding-agent --sessions 10 -o a.jsonl              readable: JSON Lines
  agentx generate coding-agent --sessions 100000 --workers 4 -o big.trace
  agentx generate my.yaml --set context_limit=64000 --set layers.repos.count=3 -o b.trace

The same spec, seed and number of sessions give the same bytes on every machine.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC", help="a workload's name ('agentx list workloads') or a path")
    parser.add_argument("-o", "--out", metavar="OUT", required=True, help="the trace to write (.trace, or .jsonl)")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="which of the population's traces (default: %(default)s)"
    )
    parser.add_argument("--sessions", type=count, metavar="N", help="how many sessions (default: what the spec says)")
    parser.add_argument("--workers", type=count, default=1, metavar="N", help="processes; the bytes are the same")
    add_sets(parser)


def add_sets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", dest="sets", action="append", default=[], metavar="KEY.PATH=VALUE", help="override one key of the spec"
    )


def run(args: argparse.Namespace) -> int:
    from agentx.generator.spec import load_spec
    from agentx.generator.write import generate

    path = catalog.resolve("workloads", args.spec)
    spec = load_spec(path, sets=args.sets)
    out = Path(args.out)
    if out.exists() and out.samefile(path):
        raise BadInput("this is the spec itself", file=out, hint="give -o another name")
    sessions = args.sessions or spec.sessions
    generate(spec, seed=args.seed, sessions=sessions, out=out, name=path.stem, workers=args.workers, progress=True)
    print(f"{out}: {sessions} sessions of {path.stem}, seed {args.seed}", file=sys.stderr)
    return 0
