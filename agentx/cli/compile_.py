"""agentx compile: a private capture to a trace that can be shared."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentx.errors import EXIT_OK, BadInput

if TYPE_CHECKING:
    from agentx.core import Identity
    from agentx.recorder.compiling import Compiled, Level
    from agentx.recorder.keys import CaptureKey

EPILOG = """\
examples:
  agentx compile cap/ -o b.trace                         lengths, identities and times; no text, no names
  agentx compile cap/ -o b.trace --level shape-coarse    lengths on powers of two, times on one digit
  agentx compile cap/ -o b.trace --template 1+1          the embedded engine's template: a token per message, one more
  agentx compile cap/ -o b.trace --scope global --scope-key team.key   tools and system texts known across traces
  agentx compile cap/ -o b.trace --join spans.json       pauses taken apart: tools, their user, the client
  agentx compile cap/ -o b.trace --level text            redacted text: known secrets are gone, content is not

The books (exchanges read = used + merged + dropped), what the capture cannot tell, and what is still linkable in the
result go to stderr. The same capture, key and level give the same bytes.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("capture", type=Path, metavar="CAPTURE", help="the folder that 'agentx record' wrote")
    parser.add_argument("-o", "--out", required=True, type=Path, metavar="OUT", help="the trace (.trace, or .jsonl)")
    parser.add_argument(
        "--join",
        nargs="+",
        type=Path,
        default=[],
        metavar="FILE",
        help="the client's own files of the same run, which tell a pause's tools from its user: OpenTelemetry spans, "
        "Claude Code's and Codex's session files, mini-swe-agent's trajectories",
    )
    level_options(parser)


def level_options(parser: Any) -> None:
    """What a trace may say of content, for a parser or a group of one; what is not given is None."""
    parser.add_argument(
        "--level",
        choices=("shape", "shape-coarse", "text"),
        help="what the trace may say: exact lengths and times, coarse ones, or redacted text too (default: shape)",
    )
    parser.add_argument(
        "--template",
        type=_template,
        metavar="N+M",
        help="tokens that the recorded server's chat template adds to each message and to a prompt, left out of the "
        "parts so that a replay does not send them twice (default: 0+0, not known)",
    )
    parser.add_argument(
        "--scope",
        choices=("session", "file", "global"),
        help="how far equal content is recognised: in one session, in the whole trace, or (tools and system texts) in "
        "all traces that are made with one --scope-key (default: file)",
    )
    parser.add_argument(
        "--scope-key", type=Path, metavar="FILE", help="the key of --scope global; it is made where there is none"
    )
    parser.add_argument("--key", type=Path, metavar="FILE", help="the key of identities, where it is not in its place")


def run(args: argparse.Namespace) -> int:
    from tqdm import tqdm

    from agentx.recorder.compiling import compile_capture
    from agentx.recorder.imports.beside import beside
    from agentx.recorder.weaving import Template

    across = scope_key(args)
    if args.capture.resolve() in [args.out.resolve(), *args.out.resolve().parents]:
        raise BadInput("the trace must lie outside the capture", file=args.out, hint="a capture is never shared")
    level: Level = args.level or "shape"
    scope: Identity = args.scope or "file"
    with tqdm(unit="exchange", disable=None, leave=False) as bar:
        template = Template(*(args.template or (0, 0)))
        done = compile_capture(
            args.capture, args.out, level, args.key, template, scope, across, bar.update, beside(args.join)
        )
    print("\n".join([*outcome(done, args.out, level), *_advice(args)]), file=sys.stderr)
    return EXIT_OK


def _advice(args: argparse.Namespace) -> list[str]:
    """What a replay will show where nobody said what the recorded server's template added."""
    if args.template is not None:
        return []
    return [
        "no --template: the parts hold the chat template's tokens, and a replay's server adds its own again; then",
        f"  agentx compare {args.out} RUN   says which N+M fits",
    ]


def outcome(done: Compiled, out: Path, level: str) -> list[str]:
    """What was done, in lines: the books, what is still linkable, what was redacted."""
    joined = done.joined.lines() if done.joined is not None else []
    lines = [*done.books.lines(), *joined, *done.linkability.lines()]
    if done.redacted is not None:
        found = ", ".join(f"{count:,} {kind}" for kind, count in sorted(done.redacted.items())) or "none found"
        lines.append(f"redacted: {found}; no known secret pattern is left, which does not make the text anonymous")
    return [*lines, f"wrote {out}: {done.sessions:,} sessions, {done.turns:,} turns, level {level}"]


def scope_key(args: argparse.Namespace) -> CaptureKey | None:
    """The key by which several traces know one text. Raises BadInput for options that do not go together."""
    from agentx.recorder.keys import make_key, read_secret

    if (args.scope == "global") != (args.scope_key is not None):
        raise BadInput("--scope global and --scope-key FILE belong together")
    if args.scope_key is None:
        return None
    if args.level == "text":
        raise BadInput("--scope global goes with the levels shape and shape-coarse: text is its own identity")
    return read_secret(args.scope_key) if args.scope_key.exists() else make_key(args.scope_key)


def _template(text: str) -> tuple[int, int]:
    message, plus, prompt = text.partition("+")
    if not (plus and message.isdecimal() and prompt.isdecimal() and max(int(message), int(prompt)) <= 1000):
        raise argparse.ArgumentTypeError(f"should be two numbers such as 5+3, not {text!r}")
    return int(message), int(prompt)
