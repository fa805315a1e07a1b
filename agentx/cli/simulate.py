"""agentx simulate: play a trace against the embedded engine in virtual time."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from agentx.cli.playing import add_shared, code_of, interrupted, sets_of

EPILOG = """examples:
  agentx simulate a.trace -o sim/                                       an hour of sessions in seconds
  agentx simulate coding-agent --sessions 4 --set measure=1h            a workload's trace, made for it
  agentx simulate --plan agentx-c4 --target sim-mi325x-glm-5.2-fp8
  agentx simulate a.trace --set target.cache.pool=8000                  the embedded engine with a small cache
  agentx simulate a.trace --sweep target.cache.pool=20000,40000,80000 --sweep load.sessions=2,4 -o sweep/

What is sent is what 'agentx replay' sends for the same trace, plan and salt; what comes back is the embedded engine's
model of a server. The same trace, plan and seed give the same results to the last byte. The report goes to stdout.

A sweep simulates every combination of its knobs: keys of the plan, of the target behind 'target.', or of the workload
behind 'spec.'. It prints one table, and leaves a run folder for each point and sweep.svg: reuse, output per GPU and
TTFT over the first knob, a line for each value of the others.
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
        "--sweep", dest="knobs", action="append", default=[], metavar="KEY=V1,V2,...",
        help="simulate with each of these values; several are combined",
    )  # fmt: skip
    parser.add_argument("--workers", type=int, metavar="N", help="processes of a sweep (default: one for each CPU)")
    parser.add_argument("--json", action="store_true", help="print one JSON document in place of the report")


def run(args: argparse.Namespace) -> int:
    sets = sets_of(args)
    out = None if args.out is None else Path(args.out)
    return _sweep(args, sets, out) if args.knobs else _simulate(args, sets, out)


def _simulate(args: argparse.Namespace, sets: list[str], out: Path | None) -> int:
    from agentx.errors import BadInput
    from agentx.replayer.simulate import simulate

    if args.workers is not None:
        raise BadInput("--workers divides the simulations of a sweep; there is no --sweep")
    result = simulate(
        args.trace, plan=args.plan, target=args.target, out=out, sets=sets, salt=args.salt, progress=True, signals=True
    )
    print(f"agentx simulate: results in {result.folder}", file=sys.stderr)
    from agentx.reporter.reporting import report

    if not result.attempts and not interrupted(result):
        return code_of(result)  # it raises: a report of nothing would hide why
    found = report(result)
    print(json.dumps(found.document(), indent=1) if args.json else found.text())
    return code_of(result, found)


def _sweep(args: argparse.Namespace, sets: list[str], out: Path | None) -> int:
    from agentx.errors import EXIT_OK, BadInput
    from agentx.replayer.folder import default_folder
    from agentx.reporter.sweeping import sweep

    if args.workers is not None and args.workers < 1:
        raise BadInput(f"--workers {args.workers}: at least 1 is needed")
    folder = default_folder("sweep") if out is None else out
    found = sweep(
        args.trace, knobs=args.knobs, out=folder, plan=args.plan, target=args.target, sets=sets, salt=args.salt,
        workers=args.workers, progress=True,
    )  # fmt: skip
    (folder / "sweep.svg").write_text(found.plot(), encoding="utf-8")
    (folder / "sweep.json").write_text(json.dumps(found.document(), indent=1) + "\n")
    print(f"agentx simulate: a run folder for each point, sweep.svg and sweep.json in {folder}", file=sys.stderr)
    print(json.dumps(found.document(), indent=1) if args.json else found.text())
    return EXIT_OK
