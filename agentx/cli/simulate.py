"""agentx simulate: play a trace against the embedded engine in virtual time."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from agentx.cli.playing import add_shared, code_of, interrupted, play_many, sets_of
from agentx.errors import EXIT_OK, BadInput

EPILOG = """examples:
  agentx simulate a.trace -o sim/                                       an hour of sessions in seconds
  agentx simulate coding-agent --sessions 4 --set measure=1h            a workload's trace, made for it
  agentx simulate --plan agentx-c4 --target sim-mi325x-glm-5.2-fp8
  agentx simulate a.trace --set target.cache.pool=8000                  the embedded engine with a small cache
  agentx simulate --plan node-aggregate --target sim-mi325x-glm-5.2-fp8 --find 'rate: ttft_p95 <= 5s' -o find/
  agentx simulate claude-code-1m --target sim-mi325x-glm-5.2-fp8 --find-cliff    where the pool falls off
  agentx simulate a.trace --plan p.yaml --target mine.yaml --forecast f.yaml       before the run on the node
  agentx simulate a.trace --sweep target.cache.pool=20000,40000,80000 --sweep load.sessions=2,4 -o sweep/

What is sent is what 'agentx replay' sends for the same trace, plan and salt; what comes back is the embedded engine's
model of a server. The same trace, plan and seed give the same results to the last byte. The report's summary goes to
stdout; 'agentx report SIM --full' has every table.

A sweep simulates every combination of its knobs: keys of the plan, of the target behind 'target.', or of the workload
behind 'spec.'. It prints one table, and leaves a run folder for each point and sweep.svg: reuse, output per GPU and
TTFT over the first knob, a line for each value of the others. A search tries loads until it knows between which two the
limit lies. Both go on where they were when they are started again with the same folder. --find-cliff plays the plan in
outline (without one: an hour of agentx-c1) and writes no folder. --forecast FILE simulates a run several times, with a
timing that is a little off in each, and writes what to expect; 'agentx replay --forecast FILE' is scored by it.
exit codes: 0 done, 2 bad input, 3 objective missed, 4 every turn failed, 5 measurement invalid, 130 interrupted
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="TRACE", nargs="?", help="a trace, or a workload's name (default: the plan's)")
    parser.add_argument("--plan", metavar="PLAN", help="a plan's name ('agentx list replays') or a path")
    parser.add_argument("--target", metavar="TARGET", help="an engine target's name or a path (default: the plan's)")
    parser.add_argument("-o", "--out", metavar="SIM", help="the folder to make (default: sim-DATE-TIME)")
    add_shared(parser)
    parser.add_argument("--seed", type=int, metavar="N", help="of the order of play, and of the salt (seed)")
    parser.add_argument("--salt", metavar="S", help="the words of the run with this salt (default: by the seed)")
    parser.add_argument(
        "--find-cliff", action="store_true",
        help="say at how many sessions at a time the pool falls off, and what memory or one session fewer would do",
    )  # fmt: skip
    parser.add_argument(
        "--forecast", metavar="FILE",
        help="write what a run with these arguments is expected to give, with intervals, for 'replay --forecast'",
    )  # fmt: skip
    parser.add_argument(
        "--draws", type=int, metavar="N", help="plays in outline of --find-cliff (20), simulations of --forecast (12)"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes of a sweep (default: one for each CPU)")


def run(args: argparse.Namespace) -> int:
    sets = sets_of(args)
    if args.workers is not None and not args.knobs:
        raise BadInput("--workers divides the simulations of a sweep; there is no --sweep")
    if args.workers is not None and args.workers < 1:
        raise BadInput(f"--workers {args.workers}: at least 1 is needed")
    if args.find_cliff or args.forecast is not None:
        return _foresee(args, sets)
    if args.draws is not None:
        raise BadInput(f"--draws {args.draws}: it is how many plays --find-cliff or --forecast makes; neither is there")
    code = play_many(args, sets, simulated=True, more={"order_from": args.order_from})
    return _simulate(args, sets) if code is None else code


def _simulate(args: argparse.Namespace, sets: list[str]) -> int:
    from agentx.replayer.simulate import simulate

    out = None if args.out is None else Path(args.out)
    result = simulate(
        args.trace,
        plan=args.plan,
        target=args.target,
        out=out,
        sets=sets,
        salt=args.salt,
        order_from=args.order_from,
        progress=True,
        signals=True,
    )
    print(f"agentx simulate: results in {result.folder}", file=sys.stderr)
    from agentx.reporter.reporting import report

    if not result.attempts and not interrupted(result):
        return code_of(result)  # it raises: a report of nothing would hide why
    found = report(result)
    sys.stdout.write(json.dumps(found.document(), indent=1) + "\n" if args.json else found.summary())
    return code_of(result, found)


def _foresee(args: argparse.Namespace, sets: list[str]) -> int:
    """--find-cliff and --forecast: many plays, and no folder."""
    if args.find_cliff and args.forecast is not None:
        raise BadInput("--find-cliff and --forecast: one of them")
    if args.knobs or args.find is not None or args.out is not None:
        raise BadInput("--find-cliff and --forecast leave no run: they take no --sweep, no --find and no folder")
    if args.draws is not None and args.draws < 1:
        raise BadInput(f"--draws {args.draws}: at least 1 is needed")
    return _cliff(args, sets) if args.find_cliff else _forecast(args, sets)


def _cliff(args: argparse.Namespace, sets: list[str]) -> int:
    from agentx.reporter.cliff import DRAWS, find_cliff

    draws = DRAWS if args.draws is None else args.draws
    found = find_cliff(args.trace, plan=args.plan, target=args.target, sets=sets, draws=draws)
    print(json.dumps(found.document(), indent=1) if args.json else found.text())
    return EXIT_OK


def _forecast(args: argparse.Namespace, sets: list[str]) -> int:
    from agentx.reporter.forecasts import DRAWS, as_yaml, make_forecast

    path = Path(args.forecast)
    if path.exists():
        raise BadInput("is there already, and a forecast is not written over", file=path)
    draws = DRAWS if args.draws is None else args.draws
    found = make_forecast(args.trace, plan=args.plan, target=args.target, sets=sets, draws=draws)
    try:
        path.write_text(as_yaml(found))
    except OSError as error:
        raise BadInput(f"cannot be written: {error.strerror}", file=path) from None
    print(json.dumps(found.model_dump(), indent=1) if args.json else as_yaml(found), end="")
    print(f"agentx simulate: the forecast is in {path}", file=sys.stderr)
    return EXIT_OK
