"""agentx simulate: play a trace against the embedded engine in virtual time."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

EPILOG = """examples:
  agentx simulate a.trace -o sim/                                       an hour of sessions in seconds
  agentx simulate coding-agent --sessions 4 --set measure=1h            a workload's trace, made for it
  agentx simulate a.trace --plan smoke --target sim-mi325x-glm-5.2-fp8
  agentx simulate a.trace --set target.cache.pool=8000                  the embedded engine with a small cache

What is sent is what 'agentx replay' sends for the same trace, plan and salt; what comes back is the embedded engine's
model of a server. The same trace, plan and seed give the same results to the last byte. The report goes to stdout.
exit codes: 0 done, 2 bad input, 4 every turn failed, 5 measurement invalid, 130 interrupted
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="TRACE", nargs="?", help="a trace, or a workload's name (default: the plan's)")
    parser.add_argument("--plan", metavar="PLAN", help="a plan's name ('agentx list replays') or a path")
    parser.add_argument("--target", metavar="TARGET", help="an engine target's name or a path (default: the plan's)")
    parser.add_argument("-o", "--out", metavar="SIM", help="the run folder to make (default: sim-DATE-TIME)")
    parser.add_argument("--sessions", type=int, metavar="N", help="how many sessions at a time (load.sessions)")
    parser.add_argument("--seed", type=int, metavar="N", help="of the order of play, and of the salt (seed)")
    parser.add_argument("--salt", metavar="S", help="the words of the run with this salt (default: by the seed)")
    parser.add_argument(
        "--set", dest="sets", action="append", default=[], metavar="KEY.PATH=VALUE",
        help="override one key of the plan, or with target.KEY of the target",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    from agentx.replayer.simulate import simulate

    sets = list(args.sets)
    sets += [] if args.sessions is None else [f"load.sessions={args.sessions}"]
    sets += [] if args.seed is None else [f"seed={args.seed}"]
    out = None if args.out is None else Path(args.out)
    result = simulate(
        args.trace, plan=args.plan, target=args.target, out=out, sets=sets, salt=args.salt, progress=True, signals=True
    )
    print(f"agentx simulate: results in {result.folder}", file=sys.stderr)
    from agentx.cli.replay import code_of
    from agentx.reporter.reporting import report

    found = report(result)
    print(found.text())
    return code_of(result, found.findings)
