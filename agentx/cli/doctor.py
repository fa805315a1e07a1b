"""agentx doctor: what stands between a target and a measurement, and how to mend it."""

from __future__ import annotations

import argparse
import json
import textwrap
from typing import TYPE_CHECKING

from agentx.cli.schemas import DOCTOR
from agentx.errors import EXIT_GATE, EXIT_OK

if TYPE_CHECKING:
    from agentx.replayer.doctor import Examination

WIDTH = 100

EPILOG = """examples:
  agentx doctor http://127.0.0.1:30000                       a server that runs
  agentx doctor http://127.0.0.1:30000 --plan agentx-c16     for that plan's sessions and acceptance
  agentx doctor sglang-mi325x-glm-5.2-fp8                    a recipe, without starting it
  agentx doctor laptop --json                                the embedded engine, as one JSON document

A server is sent a few short requests; nothing of it is flushed or changed. Each line is ok, a warning (figures need an
explanation), a problem (they would be wrong or missing) or unknown, and says how to mend it.
exit codes: 0 no problem, 2 bad input, 3 a problem was found, 4 target unreachable
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="TARGET", help="a URL, a target's name or a path")
    parser.add_argument("--plan", metavar="PLAN", help="the plan that it is to be fit for (default: one session)")
    parser.add_argument("--sessions", type=int, metavar="N", help="how many sessions at a time (load.sessions)")
    parser.add_argument("--json", action="store_true", help="one JSON document (schema agentx/doctor/1)")
    parser.add_argument(
        "--set", dest="sets", action="append", default=[], metavar="KEY.PATH=VALUE",
        help="override one key of the plan, or with target.KEY of the target",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    from agentx.replayer.doctor import examine
    from agentx.replayer.order import plan_of
    from agentx.replayer.plan import split_sets
    from agentx.replayer.targets import resolve_target

    sets, own = split_sets(args.sets)
    sets += [] if args.sessions is None else [f"load.sessions={args.sessions}"]
    found = examine(resolve_target(args.target, own), plan_of(args.plan, sets))
    print(json.dumps(document(found), indent=1) if args.json else text(found))
    return EXIT_GATE if found.problems else EXIT_OK


def document(found: Examination) -> dict[str, object]:
    """The findings as one document."""
    return {
        "schema": DOCTOR,
        "target": found.target,
        "kind": found.kind,
        "problems": found.problems,
        "checks": [
            {"name": check.name, "verdict": check.verdict, "said": check.said, "mend": check.mend}
            for check in found.checks
        ],
        "server": found.server,
    }


def text(found: Examination) -> str:
    """The findings for a terminal: verdict, what was looked at, what was seen; below it how to mend it."""
    wide = max(len(check.name) for check in found.checks)
    lines = [f"agentx doctor: {found.target} ({found.kind})"]
    for check in found.checks:
        first = f"  {check.verdict:<8} {check.name:<{wide}}  "
        lines += textwrap.wrap(first + check.said, WIDTH, subsequent_indent=" " * len(first), break_long_words=False)
        if check.mend is not None and check.verdict != "ok":
            indent = " " * len(first) + "-> "
            lines += textwrap.wrap(indent + check.mend, WIDTH, subsequent_indent=" " * len(indent))
    counts = {verdict: sum(check.verdict == verdict for check in found.checks) for verdict in ("problem", "warning")}
    counts["unknown"] = sum(check.verdict == "unknown" for check in found.checks)
    lines.append(
        "  "
        + ", ".join(f"{count} {name}{'' if count == 1 or name == 'unknown' else 's'}" for name, count in counts.items())
    )
    return "\n".join(lines)
