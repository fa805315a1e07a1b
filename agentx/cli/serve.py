"""agentx serve: the embedded engine behind SGLang's HTTP, until it is interrupted."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HOST = "127.0.0.1"
PORT = 30000  # SGLang's own default
TARGET = "laptop"

EPILOG = """\
examples:
  agentx serve --port 30000                              the built-in target "laptop"
  agentx serve laptop --port 30000 --set cache.pool=8000      with a cache of 8,000 tokens
  agentx serve my-target.yaml --port 0 --log hits.jsonl  any free port; one line per request, with its cache hits

The URL is printed on stderr once the server answers. It speaks /v1/chat/completions, /generate, /v1/models, /tokenize,
/server_info, /flush_cache, /metrics and /ready in the shapes of SGLang 0.5.23. Ctrl-C ends it.
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
        type=_port,
        default=PORT,
        metavar="P",
        help="port to listen on; 0 takes a free one (default: %(default)s)",
    )
    parser.add_argument("--host", default=HOST, help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override one key of the target; may be repeated",
    )
    parser.add_argument("--log", type=Path, metavar="FILE", help="append one JSON line per request that ended")


def run(args: argparse.Namespace) -> int:
    from agentx.catalog import resolve
    from agentx.engine.settings import load_engine

    settings = load_engine(resolve("targets", args.target), sets=args.set)
    if not _loopback(args.host):
        print(f"warning: {args.host} can be reached from other machines, and nothing asks for a key", file=sys.stderr)

    import asyncio
    import signal

    from agentx.engine.server import serve

    async def main() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await serve(settings, host=args.host, port=args.port, log=args.log, ready=_announce, stop=stop)

    asyncio.run(main())
    return 0


def _announce(url: str) -> None:
    print(f"serving {url}", file=sys.stderr, flush=True)


def _loopback(host: str) -> bool:
    import ipaddress

    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _port(text: str) -> int:
    port = int(text) if text.isdecimal() else -1
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"should be a port from 0 to 65535, not {text!r}")
    return port
