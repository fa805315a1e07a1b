"""`agentx inspect`: say what is in a trace. stdout carries the summary, the document or the lines, nothing else."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agentx.cli.numbers import count
from agentx.errors import EXIT_OK, BadInput

if TYPE_CHECKING:
    from agentx.reporter.inspecting import Inspection

EPILOG = """examples:
  agentx inspect a.trace
  agentx inspect a.trace --json | jq .possible_reuse
  agentx inspect a.trace --compare b.trace              side by side, with distances
  agentx inspect a.trace --html a.html                  one file with plots; nothing is fetched
  agentx inspect a.trace --at-once 64 --reach 0.9       how large a cache must be for 64 sessions at a time
  agentx inspect a.trace --kv-bytes 70272 --ranks 8     the same in GB: bytes of KV per token and rank
  agentx inspect a.trace --canonical > a.jsonl          every frame as a line; agentx reads it back
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="TRACE", type=Path, help="a trace, or its JSON Lines form")
    parser.add_argument("--compare", metavar="OTHER", type=Path, help="a second trace, to hold against the first")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write the summary and its plots as one HTML file")
    cache = parser.add_argument_group("the capacity curve: how much a cache of each size could reuse")
    cache.add_argument("--at-once", metavar="N", type=count, help="sessions at a time (default: as they arrive, or 16)")
    cache.add_argument("--page", metavar="P", type=count, default=1, help="tokens of a page (default: %(default)s)")
    cache.add_argument(
        "--reach", metavar="SHARE", type=_share, action="append", default=[], help="0 to 1: what it needs"
    )
    cache.add_argument("--kv-bytes", metavar="B", type=count, help="bytes of KV per token on one rank, to print GB")
    cache.add_argument(
        "--ranks", metavar="R", type=count, default=1, help="ranks that hold a copy or part (default: %(default)s)"
    )
    cache.add_argument(
        "--engine", action="store_true", help="run the engine's cache at eight sizes too (--html: always)"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON document (agentx/inspect/1, inspect-compare/1)")
    form.add_argument("--canonical", action="store_true", help="the trace itself as canonical JSON Lines")


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share above 0, up to 1")
    return share


def run(args: argparse.Namespace) -> int:
    if args.canonical:
        if args.compare or args.html:
            raise BadInput("--canonical prints the trace itself, without --compare or --html")
        return _canonical(args.trace)
    if args.compare:
        if args.html:
            raise BadInput("--html draws one trace; --compare holds two against each other", hint="choose one of them")
        if args.reach or args.kv_bytes or args.engine:
            raise BadInput("--reach, --kv-bytes and --engine are about the capacity curve, which --compare leaves out")
        return _compare(args)
    from agentx.reporter.inspect_text import blocks
    from agentx.reporter.sparks import glyphs
    from agentx.reporter.table import as_text

    found = _inspect(args, args.trace, args.html)
    if args.json:
        print(json.dumps(found.document(), indent=1, allow_nan=False))
    else:
        sys.stdout.write(as_text(blocks(found, glyphs(sys.stdout.encoding))))
    return EXIT_OK


def _inspect(args: argparse.Namespace, path: Path, html: Path | None = None) -> Inspection:
    """Read a trace, tell a torn end, and draw it into `html`."""
    from agentx.reporter import inspecting
    from agentx.reporter.trace_drawing import Drawing
    from agentx.reporter.trace_html import page

    drawing = Drawing() if html else None
    found = inspecting.inspect(path, drawing, at_once=args.at_once, page=args.page)
    found.reach = tuple(args.reach)
    found.kv_bytes = None if args.kv_bytes is None else args.kv_bytes * args.ranks
    if found.tear is not None:
        print(f"agentx inspect: {path} is {found.tear}", file=sys.stderr)
    if args.engine or html:
        _engine(args, path, found)
    if html and drawing:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(page(found, drawing), encoding="utf-8")
        print(f"agentx inspect: wrote {html}", file=sys.stderr)
    return found


def _engine(args: argparse.Namespace, path: Path, found: Inspection) -> None:
    """The engine's cache at eight capacities, unless that takes minutes and was not asked for."""
    from agentx.reporter.capacity_engine import ENOUGH, capacities, engine_reuse

    curve = found.curve
    if curve is None or not curve.tokens:
        return
    if curve.tokens > ENOUGH and not args.engine:
        left = f"{curve.tokens:,} prompt tokens are many for the engine's cache: --engine draws it all the same"
        print(f"agentx inspect: {left}", file=sys.stderr)
        return
    sizes = capacities(curve)
    found.engine = tuple(zip(sizes, engine_reuse(path, sizes, args.page, args.at_once), strict=True))


def _compare(args: argparse.Namespace) -> int:
    from agentx.reporter.inspect_compare import blocks, document
    from agentx.reporter.table import as_text

    left, right = _inspect(args, args.trace), _inspect(args, args.compare)
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
