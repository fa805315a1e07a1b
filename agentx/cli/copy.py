"""agentx copy: a file of a catalogue to a path of your own, to change it there."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from agentx import catalog
from agentx.errors import BadInput

EPILOG = """examples:
  agentx copy coding-agent mine.yaml
  agentx copy targets/laptop targets/     into a directory, under its own name
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a name, kind/name, or a path")
    parser.add_argument("to", metavar="TO", help="a file, or a directory that exists")
    parser.add_argument("--force", action="store_true", help="overwrite TO")


def run(args: argparse.Namespace) -> int:
    source, to = catalog.find(args.name), Path(args.to)
    content = source.read_bytes()
    if to.is_dir():
        to = to / source.name
    if to.exists() and not args.force:
        raise BadInput("exists already", file=to, hint="--force overwrites it")
    to.write_bytes(content)
    print(f"{source} copied to {to}", file=sys.stderr)
    return 0
