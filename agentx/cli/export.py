"""`agentx export`: a trace becomes a file that other tools read."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agentx.errors import EXIT_OK, BadInput

if TYPE_CHECKING:
    from agentx.recorder.imports.books import Books
    from agentx.trace import TraceReader

EPILOG = """examples:
  agentx export mooncake a.trace -o a.jsonl                     sessions of delta rows, as AIPerf reads them
  agentx export mooncake a.trace --rows cumulative -o a.jsonl   whole prompts: nothing but the text is lost
  agentx export weka a.trace -o sessions/                       one JSON file for each session
  agentx export dag a.trace -o a.dag.jsonl                      AIPerf's dag_jsonl, with text and subagents
  agentx export sglang a.trace -o a.json                        SGLang's agentic-trace dataset

An export only converts. The books (sessions and turns read = used + dropped) and what the format cannot hold go to
stderr.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    formats = parser.add_subparsers(dest="format", required=True, metavar="FORMAT")
    mooncake = formats.add_parser("mooncake", help="JSON Lines of lengths and block hashes")
    mooncake.add_argument(
        "--rows",
        choices=("delta", "cumulative"),
        default="delta",
        help="what a row holds: what is new in it, or the whole prompt (default: delta)",
    )
    mooncake.add_argument("--block", type=int, default=512, metavar="N", help="tokens of a block (default: 512)")
    mooncake.set_defaults(convert=_mooncake)
    weka = formats.add_parser("weka", help="a folder of Weka sessions (kv-cache-tester, AIPerf)")
    weka.set_defaults(convert=_weka)
    dag = formats.add_parser("dag", help="AIPerf's dag_jsonl: conversations with text that spawn others")
    dag.set_defaults(convert=_dag)
    sglang = formats.add_parser("sglang", help="SGLang's agentic-trace dataset: conversations with text")
    sglang.set_defaults(convert=_sglang)
    for each in (mooncake, weka, dag, sglang):
        each.add_argument("trace", type=Path, metavar="TRACE", help="the trace to convert")
        each.add_argument("-o", "--out", required=True, type=Path, metavar="OUT", help="the file or folder to write")


def run(args: argparse.Namespace) -> int:
    from tqdm import tqdm

    from agentx.trace import read_trace

    if args.trace.resolve() == args.out.resolve():
        raise BadInput("the output is the input", file=args.out, hint="-o names another file")
    convert: Callable[[argparse.Namespace, TraceReader, Callable[[], object]], Books] = args.convert
    with tqdm(unit=" sessions", disable=None, leave=False) as bar:
        books = convert(args, read_trace(args.trace), bar.update)
    print("\n".join([*books.lines(), f"wrote {args.out}"]), file=sys.stderr)
    return EXIT_OK


def _mooncake(args: argparse.Namespace, reader: TraceReader, tick: Callable[[], object]) -> Books:
    from agentx.recorder.exports.writing import export_mooncake

    if not 1 <= args.block <= 1 << 20:
        raise BadInput(f"--block {args.block} is not from 1 to {1 << 20}")
    return export_mooncake(reader, args.out, rows=args.rows, block=args.block, tick=tick)


def _weka(args: argparse.Namespace, reader: TraceReader, tick: Callable[[], object]) -> Books:
    from agentx.recorder.exports.writing import export_weka

    return export_weka(reader, args.out, tick=tick)


def _dag(args: argparse.Namespace, reader: TraceReader, tick: Callable[[], object]) -> Books:
    from agentx.recorder.exports.writing import export_dag

    return export_dag(reader, args.out, tick=tick)


def _sglang(args: argparse.Namespace, reader: TraceReader, tick: Callable[[], object]) -> Books:
    from agentx.recorder.exports.writing import export_sglang

    return export_sglang(reader, args.out, tick=tick)
