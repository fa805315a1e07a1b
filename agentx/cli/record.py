"""agentx record: a reverse proxy that keeps a private copy of agents' traffic."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentx.cli.address import loopback, port
from agentx.errors import BadInput

if TYPE_CHECKING:
    from agentx.recorder.recording import Recording

HOST = "127.0.0.1"
PORT = 8700

EPILOG = """\
examples:
  agentx record claude-code -o cap/                      Anthropic's API; says which variable to set
  agentx record openai --upstream https://gateway.example/v1beta --port 8700 -o cap/
  agentx record sglang --upstream http://gpu1:30000 -o cap/
  agentx list recorders                                  the profiles

Point the client at the proxy, work as always, end with Ctrl-C; then 'agentx compile cap/ -o b.trace'. The capture is
PRIVATE: it holds prompts and replies. Credentials are passed on and never written. The key of its pseudonyms lies
outside of it, in $AGENTX_KEYS or ~/.local/share/agentx/keys.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", help="name in recorders/ ('agentx list recorders'), or a file")
    parser.add_argument("-o", "--out", required=True, type=Path, metavar="CAPTURE", help="the capture's folder")
    parser.add_argument("--upstream", metavar="URL", help="where the traffic goes (default: the profile's)")
    parser.add_argument(
        "--port", type=port, default=PORT, metavar="P", help="port; 0 takes a free one (default: %(default)s)"
    )
    parser.add_argument("--host", default=HOST, help="address to listen on (default: %(default)s, this machine only)")
    parser.add_argument("--key", type=Path, metavar="FILE", help="where the capture's key lies, outside the capture")
    parser.add_argument(
        "--durability",
        choices=("always", "second", "none"),
        default="second",
        help="when the disk must have it: with every group of 50 ms, at most a second later, or when the system "
        "likes (default: %(default)s); a killed recorder loses at most one group in each case",
    )


def run(args: argparse.Namespace) -> int:
    from agentx.catalog import resolve
    from agentx.recorder.profile import load_profile, upstream_url
    from agentx.recorder.recording import Recording

    path = resolve("recorders", args.profile)
    profile = load_profile(path)
    upstream = args.upstream or profile.upstream
    if upstream is None:
        raise BadInput("the profile has no upstream", file=path, hint="--upstream URL says where the traffic goes")
    try:
        upstream = upstream_url(upstream)
    except ValueError as error:
        raise BadInput(f"--upstream {upstream!r} {error}") from None
    if args.key is not None and args.out.resolve() in args.key.resolve().parents:
        raise BadInput("the key must lie outside the capture", file=args.key)
    if not loopback(args.host):
        _say(f"warning: {args.host} can be reached from other machines: whoever reaches it is passed on and recorded")
    return _record(Recording(path.stem, profile, upstream, args.out, args.host, args.port, args.key, args.durability))


def _record(wanted: Recording) -> int:
    import asyncio
    import gc
    import signal

    from agentx.recorder.recording import record, summary, what_next

    gc.freeze()  # what was imported stays: a collection would look through it for 25 ms while traffic waits

    def ready(url: str) -> None:
        _say(f"recording {url} -> {wanted.upstream} into {wanted.folder} (private)")
        for line in wanted.profile.setup(url):
            _say(f"  {line}")
        _say("  end with Ctrl-C")

    async def main() -> dict[str, Any]:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        return await record(wanted, ready=ready, stop=stop, warn=_say)

    counters = asyncio.run(main())
    for line in [*summary(counters), what_next(counters, wanted)]:
        _say(line)
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
