"""agentx show: a file of a catalogue, as it is; or the JSON Schema of a kind of spec."""

from __future__ import annotations

import argparse
import json

from agentx import catalog
from agentx.errors import BadInput

EPILOG = """examples:
  agentx show coding-agent
  agentx show targets/laptop          where a name is in two catalogues
  agentx show schema workload         JSON Schema of workload specs, for editors
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a name, kind/name, or a path; or the word schema")
    parser.add_argument("kind", metavar="KIND", nargs="?", help="after schema: workload")


def run(args: argparse.Namespace) -> int:
    if args.kind is not None:
        return _schema(args.name, args.kind)
    path = catalog.find(args.name)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadInput("is not text", file=path, hint="agentx inspect shows a trace") from None
    print(text, end="" if text.endswith("\n") else "\n")
    return 0


def _schema(name: str, kind: str) -> int:
    from agentx.generator.schema import schema

    if name != "schema":
        raise BadInput(f"{name} {kind}: one name at a time", hint="'agentx show schema workload' shows a schema")
    if kind != "workload":
        raise BadInput(f"no schema of {kind!r}", hint="there is one of workload")
    print(json.dumps(schema(), indent=1))
    return 0
