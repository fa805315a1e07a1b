"""`agentx inspect`: say what is in a trace. stdout carries the summary, the document or the lines, nothing else."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agentx.errors import EXIT_OK, BadInput

if TYPE_CHECKING:
    from agentx.reporter.inspecting import Inspection

EPILOG = """examples:
  agentx inspect a.trace
  agentx inspect a.trace --json | jq .possible_reuse
  agentx inspect a.trace --compare b.trace              side by side, with distances
  agentx inspect a.trace --html a.html                  one file with plots; nothing is fetched
  agentx inspect a.trace --canonical > a.jsonl          every frame as a line; agentx reads it back
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="TRACE", type=Path, help="a trace, or its JSON Lines form")
    parser.add_argument("--compare", metavar="OTHER", type=Path, help="a second trace, to hold against the first")
    parser.add_argument("--html", metavar="OUT", type=Path, help="write the summary and its plots as one HTML file")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON document (agentx/inspect/1, inspect-compare/1)")
    form.add_argument("--canonical", action="store_true", help="the trace itself as canonical JSON Lines")


def run(args: argparse.Namespace) -> int:
    if args.canonical:
        if args.compare or args.html:
            raise BadInput("--canonical prints the trace itself, without --compare or --html")
        return _canonical(args.trace)
    if args.compare:
        if args.html:
            raise BadInput("--html draws one trace; --compare holds two against each other", hint="choose one of them")
        return _compare(args)
    from agentx.reporter.inspect_text import blocks
    from agentx.reporter.table import as_text

    found = _inspect(args.trace, args.html)
    if args.json:
        print(json.dumps(found.document(), indent=1, allow_nan=False))
    else:
        sys.stdout.write(as_text(blocks(found)))
    return EXIT_OK


def _inspect(path: Path, html: Path | None = None) -> Inspection:
    """Read a trace, tell a torn end, and draw it into `html`."""
    from agentx.reporter import inspecting
    from agentx.reporter.trace_drawing import Drawing
    from agentx.reporter.trace_html import page

    drawing = Drawing() if html else None
    found = inspecting.inspect(path, drawing)
    if found.tear is not None:
        print(f"agentx inspect: {path} is {found.tear}", file=sys.stderr)
    if html and drawing:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(page(found, drawing), encoding="utf-8")
        print(f"agentx inspect: wrote {html}", file=sys.stderr)
    return found


def _compare(args: argparse.Namespace) -> int:
    from agentx.reporter.inspect_compare import blocks, document
    from agentx.reporter.table import as_text

    left, right = _inspect(args.trace), _inspect(args.compare)
    if args.json:
        print(json.dumps(document(left, right), indent=1, allow_nan=False))
    else:
        sys.stdout.write(as_text(blocks(left, right)))
    return EXIT_OK


def _canonical(path: Path) -> int:
    from agentx.trace import TraceReader, canonical

    reader = TraceReader(path)
    for line in canonical(reader):
        sys.stdout.buffer.write(line)
    if reader.tear is not None:
        print(f"agentx inspect: {path} is {reader.tear}", file=sys.stderr)
    return EXIT_OK
