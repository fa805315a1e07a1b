"""`agentx inspect`: say what is in a trace. stdout carries the summary, the document or the lines, nothing else."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from agentx.errors import EXIT_OK

EPILOG = """examples:
  agentx inspect a.trace
  agentx inspect a.trace --json | jq .possible_reuse
  agentx inspect a.trace --canonical > a.jsonl          every frame as a line; agentx reads it back
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="TRACE", type=Path, help="a trace, or its JSON Lines form")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON document (schema agentx/inspect/1)")
    form.add_argument("--canonical", action="store_true", help="the trace itself as canonical JSON Lines")


def run(args: argparse.Namespace) -> int:
    if args.canonical:
        return _canonical(args.trace)
    from agentx.reporter.inspect_text import blocks
    from agentx.reporter.inspecting import inspect
    from agentx.reporter.table import as_text

    found = inspect(args.trace)
    if found.tear is not None:
        print(f"agentx inspect: {args.trace} is {found.tear}", file=sys.stderr)
    if args.json:
        print(json.dumps(found.document(), indent=1, allow_nan=False))
    else:
        sys.stdout.write(as_text(blocks(found)))
    return EXIT_OK


def _canonical(path: Path) -> int:
    from agentx.trace import TraceReader, canonical

    reader = TraceReader(path)
    for line in canonical(reader):
        sys.stdout.buffer.write(line)
    if reader.tear is not None:
        print(f"agentx inspect: {path} is {reader.tear}", file=sys.stderr)
    return EXIT_OK
