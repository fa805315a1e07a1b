"""agentx serve: the embedded engine behind SGLang's HTTP, until it is interrupted."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agentx.cli.address import loopback, port

if TYPE_CHECKING:
    from agentx.engine.http_script import Script

HOST = "127.0.0.1"
PORT = 30000  # SGLang's own default
TARGET = "laptop"

EPILOG = """\
examples:
  agentx serve --port 30000                              the built-in target "laptop"
  agentx serve laptop --port 30000 --set cache.pool=8000      with a cache of 8,000 tokens
  agentx serve my-target.yaml --port 0 --log hits.jsonl  any free port; one line per request, with its cache hits
  agentx serve --replies script.yaml                     answers by rules on the last message, tool calls too

The URL is printed on stderr once the server answers. It speaks /v1/chat/completions, /v1/completions, /v1/messages,
/v1/responses, /generate and the routes around them in the shapes of SGLang 0.5.23 (docs/reference/serve.md lists all,
and how rules are written). Ctrl-C ends it.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target",
        nargs="?",
        default=TARGET,
        metavar="TARGET",
        help="name in replays/targets, or a file of kind engine (default: %(default)s)",
    )
    parser.add_argument(
        "--port",
        type=port,
        default=PORT,
        metavar="P",
        help="port to listen on; 0 takes a free one (default: %(default)s)",
    )
    parser.add_argument("--host", default=HOST, help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY.PATH=VALUE",
        help="override one key of the target",
    )
    parser.add_argument(
        "--replies",
        type=Path,
        metavar="FILE",
        help="answer by the rules in this YAML or JSON Lines file; what none matches, by the engine's own words",
    )
    parser.add_argument(
        "--kv-events",
        metavar="ADDRESS",
        help="publish what the cache stores and removes, as SGLang does: tcp://127.0.0.1:5557 (extra kv-events)",
    )
    parser.add_argument("--log", type=Path, metavar="FILE", help="append one JSON line per request that ended")


def run(args: argparse.Namespace) -> int:
    from agentx.catalog import resolve
    from agentx.engine.settings import load_engine

    settings = load_engine(resolve("targets", args.target), sets=args.set)
    script = None if args.replies is None else _script(args.replies)
    if not loopback(args.host):
        print(f"warning: {args.host} can be reached from other machines, and nothing asks for a key", file=sys.stderr)

    import asyncio
    import signal

    from agentx.engine.server import serve

    async def main() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        where = {"host": args.host, "port": args.port, "kv_events": args.kv_events}
        await serve(settings, log=args.log, ready=_announce, stop=stop, script=script, **where)

    asyncio.run(main())
    return 0


def _script(path: Path) -> Script:
    from agentx.engine.http_script import Script, load_rules

    return Script(load_rules(path), lambda message: print(f"note: {path}: {message}", file=sys.stderr, flush=True))


def _announce(url: str) -> None:
    print(f"serving {url}", file=sys.stderr, flush=True)
