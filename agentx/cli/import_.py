"""`agentx import`: traces and logs that people already have become agentx traces."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agentx.cli.compile_ import level_options, outcome, scope_key
from agentx.errors import EXIT_OK, BadInput

if TYPE_CHECKING:
    from agentx.core import Identity
    from agentx.recorder.compiling import Level
    from agentx.recorder.imports.books import Books
    from agentx.recorder.shaping import Shaping

# format -> (module under recorder/imports, what its files are): sources of lengths, or of public text
FORMATS: dict[str, tuple[str, str]] = {
    "trie": ("trie", "rows of lengths of Applied Compute's inference benchmark, JSON Lines"),
    "azure": ("azure", "Azure LLM inference trace, CSV"),
    "burstgpt": ("burstgpt", "BurstGPT, CSV"),
    "bailian": ("bailian", "Bailian (Qwen) traces: chats with block hashes, JSON Lines"),
    "tracelab": ("tracelab", "TraceLab: recorded rounds, JSON Lines, or its session runner's CSV"),
    "trtllm": ("trtllm", "TensorRT-LLM scaffolding traces, JSON"),
    "chats": ("chats", "conversations with text, as vLLM's multi-turn benchmark plays them, or ShareGPT, JSON"),
    "mlperf": ("mlperf", "MLPerf agentic inference: messages with text, JSON Lines"),
    "dynamo": ("dynamo", "Dynamo request and agent traces: lengths and block hashes, JSON Lines, also compressed"),
}
# the same of logs that hold private content: they go the way of recordings, by privacy levels
LOGS: dict[str, tuple[str, str]] = {
    "claude-bodies": ("claude_bodies", "Claude Code's raw API bodies, a folder; with its OTel spans where given"),
    "codex-trace": ("codex_trace", "Codex rollout-trace bundles, folders"),
    "claude-code": ("claude_code", "Claude Code's session files, JSON Lines"),
    "codex": ("codex", "Codex's session files, JSON Lines"),
    "har": ("har", "HAR files"),
    "mitmproxy": ("mitmproxy", "mitmproxy flow files"),
    "sglang-metrics": ("sglang_metrics", "SGLang --export-metrics-to-file, JSON Lines"),
    "sglang-log": ("sglang_log", "SGLang --log-requests --log-requests-format json"),
    "sglang-dump": ("sglang_dump", "SGLang's request and crash dumps, pickles that are read without being run"),
    "otel": ("otel", "OpenTelemetry spans: OpenInference and GenAI conventions, JSON"),
    "litellm": ("litellm", "LiteLLM's standard logging payloads, JSON"),
    "aiperf": ("aiperf", "AIPerf's raw export, JSON Lines"),
    "mini-swe-agent": ("mini_swe_agent", "mini-swe-agent's trajectories, JSON"),
    "openhands": ("openhands", "OpenHands' completion logs, JSON files"),
    "openhands-events": ("openhands_events", "OpenHands' conversations and trajectories: events, folders or JSON"),
}
TEXTS = frozenset({"chats", "mlperf"})  # of which the text is public and goes into the trace
OWN = {
    "weka": "sessions of kv-cache-tester or SemiAnalysis, JSON files or folders of them",
    "mooncake": "one file of lengths and block hashes, JSON Lines",
}


def _listed(formats: dict[str, str]) -> str:
    return "\n".join(f"  {name:<15} {what}" for name, what in formats.items())


EPILOG = f"""traces, of lengths or of public text:
{_listed({**OWN, **{name: what for name, (_, what) in FORMATS.items()}})}

logs with content, made traces without it (--level):
{_listed({name: what for name, (_, what) in LOGS.items()})}

examples:
  agentx import traces/trace_0277.json -o one.trace      the format is found out
  agentx import weka traces/ -o claude.trace             a folder of Weka sessions, one trace
  agentx import mooncake seconds.jsonl --unit s -o conv.trace
  agentx import claude-code ~/.claude/projects -o mine.trace
  agentx import har session.har -o mine.trace --level shape-coarse

The books (rows read = used + merged + dropped) and what the source cannot tell go to stderr.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [FORMAT] PATH [PATH ...] -o OUT [options]"
    parser.add_argument("what", nargs="+", metavar="PATH", help="files, or folders of them; a format's name before")
    parser.add_argument("-o", "--out", required=True, type=Path, metavar="OUT", help="the trace to write")
    logs = parser.add_argument_group("logs (of the levels, shape and shape-coarse are for all formats)")
    level_options(logs)
    mooncake = parser.add_argument_group("mooncake")
    mooncake.add_argument("--unit", choices=("s", "ms"), help="unit of timestamp and delay (default: detected)")
    mooncake.add_argument(
        "--rows",
        choices=("cumulative", "delta"),
        help="what the rows of a session hold: whole prompts, or what is new in each (default: detected)",
    )
    mooncake.add_argument("--block", type=int, metavar="N", help="tokens of a block (default: 512)")


def run(args: argparse.Namespace) -> int:
    format, paths = _format(args.what)
    for path in paths:
        if path.resolve() == args.out.resolve():
            raise BadInput("the output is one of the inputs", file=args.out, hint="-o names another file")
    _check_options(format, args)
    if format in LOGS:
        return _log(format, paths, args)
    shaping = _shaping(format, args)
    if format == "weka":
        books = _weka(paths, args.out, shaping)
    elif format == "mooncake":
        books = _mooncake(paths, args, shaping)
    else:
        books = _files(format, paths, args.out, shaping)
    level = f", level {args.level}" if args.level is not None else ""
    print("\n".join([*books.lines(), *shaping.linkability.lines(), f"wrote {args.out}{level}"]), file=sys.stderr)
    return EXIT_OK


def _format(what: Sequence[str]) -> tuple[str, list[Path]]:
    """The format that was named, or is found out, and the paths."""
    names = {**OWN, **FORMATS, **LOGS}
    if what[0] in names and (len(what) > 1 or not Path(what[0]).exists()):
        if len(what) == 1:
            raise BadInput(f"import {what[0]}: which files?", hint=f"agentx import {what[0]} PATH -o OUT")
        return what[0], [Path(path) for path in what[1:]]
    paths = [Path(path) for path in what]
    if len(what) > 1 and not paths[0].exists() and not paths[0].suffix:
        raise BadInput(f"{what[0]!r} is neither a format nor a file", hint=f"formats: {', '.join(sorted(names))}")
    from agentx.recorder.imports.detect import detect

    found = {detect(path) for path in paths}
    if len(found) > 1:
        raise BadInput(f"several formats at once: {', '.join(sorted(found))}", hint="import them one by one")
    print(f"detected: {found.copy().pop()}", file=sys.stderr)
    return found.pop(), paths


def _check_options(format: str, args: argparse.Namespace) -> None:
    """Raises BadInput for an option that means nothing to this format."""
    own = {"unit": args.unit, "rows": args.rows, "block": args.block}
    log = {name: getattr(args, name) for name in ("template", "scope", "scope_key")}
    for name, value in {**({} if format == "mooncake" else own), **({} if format in LOGS else log)}.items():
        if value is not None:
            raise BadInput(
                f"--{name.replace('_', '-')} means nothing to {format}",
                hint="leave it out, or see: agentx import --help",
            )


def _shaping(format: str, args: argparse.Namespace) -> Shaping:
    """How an import of lengths, or of public text, is written. Raises BadInput for a level that it has not."""
    from agentx.recorder.keys import imports_key
    from agentx.recorder.shaping import Shaping

    if args.level == "text":
        hint = "its text is public and kept without a level" if format in TEXTS else "it has lengths alone"
        raise BadInput(f"--level text means nothing to {format}", hint=f"{hint}; shape and shape-coarse leave it out")
    if args.level is None and args.key is not None:
        raise BadInput(f"--key without --level means nothing to {format}", hint="the key is for a level")
    return Shaping(args.level, imports_key(args.key) if args.level is not None else None)


def _log(format: str, paths: list[Path], args: argparse.Namespace) -> int:
    from importlib import import_module

    from agentx.recorder.imports.logged import import_calls
    from agentx.recorder.weaving import Template

    made = import_module(f"agentx.recorder.imports.{LOGS[format][0]}").make_format()
    level: Level = args.level or "shape"
    template = Template(*(args.template or (0, 0)))
    scope: Identity = args.scope or "file"
    across = scope_key(args)
    with _bar("call") as tick:
        done = import_calls(made, paths, args.out, level, args.key, template, scope, across, tick)
    print("\n".join(outcome(done, args.out, level)), file=sys.stderr)
    return EXIT_OK


def _weka(paths: list[Path], out: Path, shaping: Shaping) -> Books:
    from agentx.recorder.imports.weka import import_weka

    with _bar("file") as tick:
        return import_weka(paths, out, lambda _: tick(), shaping)


def _mooncake(paths: list[Path], args: argparse.Namespace, shaping: Shaping) -> Books:
    from agentx.recorder.imports.mooncake import BLOCK, import_mooncake

    block = BLOCK if args.block is None else args.block
    if not 1 <= block <= 1 << 20:
        raise BadInput(f"--block {block} is not from 1 to {1 << 20}")
    if len(paths) > 1:
        raise BadInput("one file of Mooncake rows at a time", file=paths[1])
    with _bar("row") as tick:
        return import_mooncake(
            paths[0],
            args.out,
            unit=args.unit,
            rows=args.rows,
            block=block,
            progress=lambda _: tick(),
            shaping=shaping,
        )


def _files(format: str, paths: list[Path], out: Path, shaping: Shaping) -> Books:
    from importlib import import_module

    from agentx.recorder.imports.running import import_files

    made = import_module(f"agentx.recorder.imports.{FORMATS[format][0]}").make_format()
    with _bar("session") as tick:
        return import_files(made, paths, out, tick, shaping)


@contextmanager
def _bar(unit: str) -> Iterator[Callable[[], object]]:
    """A progress bar on stderr; nothing where that is no terminal."""
    from tqdm import tqdm

    with tqdm(unit=unit, disable=None, leave=False) as bar:
        yield bar.update
