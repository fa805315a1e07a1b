"""agentx show: a file of a catalogue, as it is."""

from __future__ import annotations

import argparse

from agentx import catalog
from agentx.errors import BadInput

EPILOG = """examples:
  agentx show coding-agent
  agentx show targets/laptop          where a name is in two catalogues
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a name, kind/name, or a path")


def run(args: argparse.Namespace) -> int:
    path = catalog.find(args.name)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadInput("is not text", file=path, hint="agentx inspect shows a trace") from None
    print(text, end="" if text.endswith("\n") else "\n")
    return 0
