"""`agentx import`: traces that people already have become agentx traces."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agentx.errors import EXIT_OK, BadInput

if TYPE_CHECKING:
    from agentx.recorder.imports.books import Books

EPILOG = """examples:
  agentx import weka traces/ -o claude.trace            a folder of Weka sessions, one trace
  agentx import weka trace_0277.json -o one.trace
  agentx import mooncake conversation.jsonl -o conv.trace
  agentx import mooncake seconds.jsonl --unit s -o conv.trace
  agentx import azure code.csv -o code.trace

The books (rows read = used + merged + dropped) and what the source cannot tell go to stderr.
"""

# format -> (module under recorder/imports, what its files are); those of a file or a folder, without options
FORMATS: dict[str, tuple[str, str]] = {
    "trie": ("trie", "rows of lengths of Applied Compute's inference benchmark, JSON Lines"),
    "azure": ("azure", "Azure LLM inference trace, CSV"),
    "burstgpt": ("burstgpt", "BurstGPT, CSV"),
    "bailian": ("bailian", "Bailian (Qwen) traces: chats with block hashes, JSON Lines"),
    "tracelab": ("tracelab", "TraceLab: recorded rounds, JSON Lines, or its session runner's CSV"),
    "trtllm": ("trtllm", "TensorRT-LLM scaffolding traces, JSON"),
    "chats": ("chats", "conversations with text, as vLLM's multi-turn benchmark plays them, or ShareGPT, JSON"),
    "mlperf": ("mlperf", "MLPerf agentic inference: messages with text, JSON Lines"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    formats = parser.add_subparsers(dest="format", required=True, metavar="FORMAT")
    weka = formats.add_parser("weka", help="sessions of kv-cache-tester or SemiAnalysis, files or folders of them")
    weka.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a .json or .jsonl file, or a folder of them")
    weka.set_defaults(convert=_weka)
    mooncake = formats.add_parser("mooncake", help="JSON Lines of lengths and block hashes")
    mooncake.add_argument("paths", nargs=1, type=Path, metavar="FILE")
    mooncake.add_argument("--unit", choices=("s", "ms"), help="unit of timestamp and delay (default: detected)")
    mooncake.add_argument(
        "--rows",
        choices=("cumulative", "delta"),
        help="what the rows of a session hold: whole prompts, or what is new in each (default: detected)",
    )
    mooncake.add_argument("--block", type=int, default=512, metavar="N", help="tokens of a block (default: 512)")
    mooncake.set_defaults(convert=_mooncake)
    others = [formats.add_parser(name, help=what) for name, (_, what) in FORMATS.items()]
    for each in others:
        each.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file, or a folder of them")
        each.set_defaults(convert=_files)
    for each in (weka, mooncake, *others):
        each.add_argument("-o", "--out", required=True, type=Path, metavar="OUT", help="the trace to write")


def run(args: argparse.Namespace) -> int:
    convert: Callable[[argparse.Namespace], Books] = args.convert
    for path in args.paths:
        if path.resolve() == args.out.resolve():
            raise BadInput("the output is one of the inputs", file=args.out, hint="-o names another file")
    books = convert(args)
    print("\n".join([*books.lines(), f"wrote {args.out}"]), file=sys.stderr)
    return EXIT_OK


def _weka(args: argparse.Namespace) -> Books:
    from agentx.recorder.imports.weka import import_weka

    with _bar("file") as tick:
        return import_weka(args.paths, args.out, lambda _: tick())


def _mooncake(args: argparse.Namespace) -> Books:
    from agentx.recorder.imports.mooncake import import_mooncake

    if not 1 <= args.block <= 1 << 20:
        raise BadInput(f"--block {args.block} is not from 1 to {1 << 20}")
    with _bar("row") as tick:
        return import_mooncake(
            args.paths[0], args.out, unit=args.unit, rows=args.rows, block=args.block, progress=lambda _: tick()
        )


def _files(args: argparse.Namespace) -> Books:
    from importlib import import_module

    from agentx.recorder.imports.running import import_files

    format = import_module(f"agentx.recorder.imports.{FORMATS[args.format][0]}").make_format()
    with _bar("session") as tick:
        return import_files(format, args.paths, args.out, tick)


@contextmanager
def _bar(unit: str) -> Iterator[Callable[[], object]]:
    """A progress bar on stderr; nothing where that is no terminal."""
    from tqdm import tqdm

    with tqdm(unit=unit, disable=None, leave=False) as bar:
        yield bar.update
