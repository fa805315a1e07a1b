"""agentx show: a file of a catalogue, as it is; or the JSON Schema of specs or of what a verb prints with --json."""

from __future__ import annotations

import argparse
import json

from agentx import catalog
from agentx.errors import BadInput

EPILOG = """examples:
  agentx show coding-agent
  agentx show targets/laptop          where a name is in two catalogues
  agentx show schema workload         JSON Schema of workload specs, for editors
  agentx show schema report           JSON Schema of what 'agentx report --json' prints, for programs that read it
  agentx show schema compare          of 'agentx compare --json', and so on
  agentx show schema                  which there are
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a name, kind/name, or a path; or the word schema")
    parser.add_argument("kind", metavar="KIND", nargs="?", help="after schema: which one; none: their names")


def run(args: argparse.Namespace) -> int:
    if args.kind is not None:
        return _schema(args.name, args.kind)
    if args.name == "schema":
        return _kinds()
    path = catalog.find(args.name)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadInput("is not text", file=path, hint="agentx inspect shows a trace") from None
    print(text, end="" if text.endswith("\n") else "\n")
    return 0


def _kinds() -> int:
    from agentx.cli.schemas import kinds

    print("\n".join(kinds()))
    return 0


def _schema(name: str, kind: str) -> int:
    from agentx.cli.schemas import kinds

    if name != "schema":
        raise BadInput(f"{name} {kind}: one name at a time", hint="'agentx show schema workload' shows a schema")
    known = kinds()
    if kind not in known:
        raise BadInput(f"no schema of {kind!r}", hint=f"there is one of {', '.join(known)}")
    print(json.dumps(known[kind](), indent=1))
    return 0
