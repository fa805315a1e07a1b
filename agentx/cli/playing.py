"""What `replay` and `simulate` share on the command line: what is played, objectives, and the exit code of a run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentx.errors import EXIT_GATE, EXIT_INTERRUPTED, EXIT_OK, BadInput, InvalidMeasurement, Unreachable

if TYPE_CHECKING:
    from agentx.reporter.goodput import Judged
    from agentx.reporter.reporting import Report
    from agentx.results import RunResults

SLO_HELP = "objectives of turns and of the run, as slo in the plan: ttft=5s,ttft_p95=5s,tpot_p95=50ms"


def add_shared(parser: argparse.ArgumentParser) -> None:
    """What both verbs take, apart from the target and the folder, which they describe differently."""
    parser.add_argument("--sessions", type=int, metavar="N", help="how many sessions at a time (load.sessions)")
    parser.add_argument(
        "--order-from", metavar="RUN", help="send in the order of this run of the same trace (lockstep)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document in place of the report")
    parser.add_argument("--slo", dest="slo", action="append", default=[], metavar="NAME=LIMIT,...", help=SLO_HELP)
    parser.add_argument(
        "--repeats", type=int, metavar="N", help="how many runs, in run-1 to run-N of the folder (repeats)"
    )
    parser.add_argument(
        "--sweep", dest="knobs", action="append", default=[], metavar="KEY=V1,V2,...",
        help="a run with each of these values; several are combined",
    )  # fmt: skip
    parser.add_argument(
        "--find",
        metavar="KEY:CONDITION,...",
        help="the highest load that meets conditions: 'rate: ttft_p95 <= 5s', or sessions, or requests",
    )
    parser.add_argument(
        "--set", dest="sets", action="append", default=[], metavar="KEY.PATH=VALUE",
        help="override one key of the plan, or with target.KEY of the target",
    )  # fmt: skip


def sets_of(args: argparse.Namespace) -> list[str]:
    """All overrides of the plan that the options mean. Raises BadInput."""
    sets = list(args.sets)
    sets += [] if args.sessions is None else [f"load.sessions={args.sessions}"]
    sets += [] if args.seed is None else [f"seed={args.seed}"]
    sets += [] if args.repeats is None else [f"repeats={args.repeats}"]
    if args.slo:
        from agentx.replayer.slo import as_sets, slo_of

        asked = slo_of(args.slo)
        sets += as_sets([*asked.turns, *asked.runs])
    return sets


def play_many(args: argparse.Namespace, sets: list[str], simulated: bool, more: Mapping[str, Any]) -> int | None:
    """A search, a sweep or repeats, printed. Returns the exit code; None: one run was asked for.

    `more` is what else `replay` or `simulate` is to be given.
    """
    from agentx.replayer.folder import default_folder
    from agentx.replayer.order import plan_of
    from agentx.replayer.plan import split_sets

    if args.find is not None and args.knobs:
        raise BadInput("--find and --sweep: one of them")
    kind = "find" if args.find is not None else "sweep" if args.knobs else "repeats"
    if kind == "repeats" and plan_of(args.plan, split_sets(sets)[0]).repeats == 1:
        return None
    folder = default_folder(kind) if args.out is None else Path(args.out)
    asked: dict[str, Any] = {
        "out": folder, "plan": args.plan, "target": args.target, "sets": sets, "salt": args.salt, "progress": True,
        "simulated": simulated, "more": more,
    }  # fmt: skip
    run = {"find": _find, "sweep": _sweep, "repeats": _repeat}[kind]
    return run(args, folder, asked)


def _find(args: argparse.Namespace, folder: Path, asked: dict[str, Any]) -> int:
    from agentx.reporter.searching import find

    found = find(args.trace, goal=args.find, **asked)
    _print(args, folder, "find", found.document(), found.text(), found.plot())
    return found.code


def _sweep(args: argparse.Namespace, folder: Path, asked: dict[str, Any]) -> int:
    from agentx.pages.sweep_page import sweep_page
    from agentx.reporter.sweeping import sweep

    workers = getattr(args, "workers", None) if asked["simulated"] else None
    found = sweep(args.trace, knobs=args.knobs, workers=workers, **asked)
    (folder / "sweep.html").write_text(sweep_page(found), encoding="utf-8")
    _print(args, folder, "sweep", found.document(), found.text(), found.plot())
    return EXIT_OK


def _repeat(args: argparse.Namespace, folder: Path, asked: dict[str, Any]) -> int:
    from agentx.reporter.repeating import repeat

    found = repeat(args.trace, **asked)
    _print(args, folder, "repeats", found.document(), found.text(), None)
    return max(code_of(run, each) for run, each in found.runs)


def _print(
    args: argparse.Namespace, folder: Path, kind: str, document: dict[str, Any], text: str, plot: str | None
) -> None:
    """The one form that was asked for to stdout; all of them into the folder."""
    (folder / f"{kind}.json").write_text(json.dumps(document, indent=1, allow_nan=False) + "\n")
    if plot is not None:
        (folder / f"{kind}.svg").write_text(plot, encoding="utf-8")
    also = "".join(f", {path.name}" for path in (folder / f"{kind}.svg", folder / f"{kind}.html") if path.exists())
    print(f"agentx {args.verb}: a folder for each run{also} and {kind}.json in {folder}", file=sys.stderr)
    print(json.dumps(document, indent=1, allow_nan=False) if args.json else text)


def interrupted(result: RunResults) -> bool:
    return result.end is not None and result.end.get("outcome") == "interrupted"


def code_of(result: RunResults, found: Report | None = None) -> int:
    """The exit code of a run that was reported.

    Raises Unreachable when every turn that a server could answer failed, BadInput when nothing was sent at all, and
    InvalidMeasurement when a finding says that the figures must not be used.
    """
    if interrupted(result):
        return EXIT_INTERRUPTED
    if not result.attempts:
        raise BadInput(
            "nothing was sent: the trace holds no turn that the plan and the target allow",
            hint="the target's context and pool must hold a prompt and its reply; agentx inspect TRACE tells lengths",
        )
    answered = [attempt for attempt in result.attempts if attempt.failure is None or attempt.failure.kind != "cut"]
    failures = [attempt.failure for attempt in answered if attempt.failure is not None]
    if failures and len(failures) == len(answered):
        first = failures[0]
        raise Unreachable(f"every turn failed ({len(failures)}), the first by {first.kind}: {first.message}")
    if found is None:
        return EXIT_OK
    if invalid := next((finding for finding in found.findings if finding.invalidates), None):
        raise InvalidMeasurement(f"the measurement is invalid: {invalid.text}")
    return gate(found.judged)


def gate(judged: Judged) -> int:
    """EXIT_GATE with a line on stderr for every objective that is not met."""
    from agentx.reporter.goodput_text import value_text

    for one in judged.missed:
        print(f"agentx: objective missed: {one.objective}: it is {value_text(one)}", file=sys.stderr)
    return EXIT_GATE if judged.missed else EXIT_OK
