"""What `replay` and `simulate` share on the command line: what is played, objectives, and the exit code of a run."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from agentx.errors import EXIT_GATE, EXIT_INTERRUPTED, EXIT_OK, BadInput, InvalidMeasurement, Unreachable

if TYPE_CHECKING:
    from agentx.reporter.goodput import Judged
    from agentx.reporter.reporting import Report
    from agentx.results import RunResults

SLO_HELP = "objectives of turns and of the run, as slo in the plan: ttft=5s,ttft_p95=5s,tpot_p95=50ms"


def add_shared(parser: argparse.ArgumentParser) -> None:
    """What both verbs take, apart from the target and the folder, which they describe differently."""
    parser.add_argument("--sessions", type=int, metavar="N", help="how many sessions at a time (load.sessions)")
    parser.add_argument("--slo", dest="slo", action="append", default=[], metavar="NAME=LIMIT,...", help=SLO_HELP)
    parser.add_argument(
        "--set", dest="sets", action="append", default=[], metavar="KEY.PATH=VALUE",
        help="override one key of the plan, or with target.KEY of the target",
    )  # fmt: skip


def sets_of(args: argparse.Namespace) -> list[str]:
    """All overrides of the plan that the options mean. Raises BadInput."""
    sets = list(args.sets)
    sets += [] if args.sessions is None else [f"load.sessions={args.sessions}"]
    sets += [] if args.seed is None else [f"seed={args.seed}"]
    if args.slo:
        from agentx.replayer.slo import as_sets, slo_of

        asked = slo_of(args.slo)
        sets += as_sets([*asked.turns, *asked.runs])
    return sets


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
