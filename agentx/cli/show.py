"""agentx show: a file of a catalogue, as it is; or the JSON Schema of workload specs or of the report's document."""

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
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a name, kind/name, or a path; or the word schema")
    parser.add_argument("kind", metavar="KIND", nargs="?", help="after schema: workload or report")


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
    from agentx.reporter.document_schema import report_schema

    if name != "schema":
        raise BadInput(f"{name} {kind}: one name at a time", hint="'agentx show schema workload' shows a schema")
    kinds = {"workload": schema, "report": report_schema}
    if kind not in kinds:
        raise BadInput(f"no schema of {kind!r}", hint="there is one of workload, and one of report")
    print(json.dumps(kinds[kind](), indent=1))
    return 0
