"""agentx list: what the catalogues hold, a name first on each line."""

from __future__ import annotations

import argparse
import sys

from agentx import catalog

EPILOG = """examples:
  agentx list
  agentx list workloads
  AGENTX_PATH=~/agentx agentx list targets        with ~/agentx/replays/targets/*.yaml, yours before the built-in ones
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", nargs="?", choices=catalog.KINDS, help="one catalogue (default: all)")


def run(args: argparse.Namespace) -> int:
    kinds = catalog.KINDS if args.kind is None else (args.kind,)
    found = [entry for kind in kinds for entry in catalog.entries(kind)]
    width = max((len(entry.name) for entry in found), default=0)
    for entry in found:
        kind = f"{entry.kind:<10}  " if args.kind is None else ""
        print(f"{entry.name:<{width}}  {kind}{entry.about}".rstrip())
    if not found:
        print(
            f"no {args.kind or 'catalogue entries'} here; $AGENTX_PATH may name directories that hold some",
            file=sys.stderr,
        )
    return 0
