"""`agentx cut`: a smaller trace, for a smaller server or a shorter run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from agentx.cli.numbers import count
from agentx.errors import EXIT_OK, BadInput

EPILOG = """examples:
  agentx cut a.trace --sessions 20 -o b.trace
  agentx cut a.trace --turns 30 --max-context 30000 -o b.trace
  agentx cut by-hand.jsonl --sessions 1 -o one.trace

What is left keeps its identities. What was dropped, and why, goes to stderr.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="TRACE", type=Path, help="a trace, or its JSON Lines form")
    parser.add_argument("-o", "--out", metavar="OUT", type=Path, required=True, help="the trace to write")
    parser.add_argument("--sessions", type=count, metavar="N", help="keep the first N sessions")
    parser.add_argument("--turns", type=count, metavar="N", help="keep the first N turns of each session")
    parser.add_argument(
        "--max-context",
        type=count,
        metavar="TOKENS",
        help="end a thread, and what waits for it, before the first turn of more tokens (prompt and reply)",
    )


def run(args: argparse.Namespace) -> int:
    from agentx.cutting import Limits, cut

    limits = Limits(args.sessions, args.turns, args.max_context)
    if limits == Limits():
        raise BadInput("nothing to cut by", hint="give --sessions, --turns or --max-context")
    if args.out.exists() and args.trace.exists() and args.out.samefile(args.trace):
        raise BadInput("the output is the input", file=args.out, hint="give -o another name")
    report = cut(args.trace, args.out, limits)
    print("\n".join([*report.lines(), f"wrote {args.out}"]), file=sys.stderr)
    return EXIT_OK
