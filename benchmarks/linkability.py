"""What is still linkable in traces of public samples, at each level that leaves content out.

    python benchmarks/linkability.py SAMPLES [--only weka mooncake] [--least 30]
    python benchmarks/linkability.py a.trace

SAMPLES is a folder of files in formats that `agentx import` finds out, such as a clone of kv-cache-tester's `traces`.
All files of one format make one trace, once at each level (of a format that is imported file by file, the largest one).
The figures are those that the import itself prints: the share of runs of reply lengths, and of (prompt, reply) lengths,
that occur once. Beside them is the possible reuse, which a level should leave as it is. Traces of fewer turns than
`least` are left out: in so few everything occurs once. A trace in place of a folder is looked at in the same way. The
table in docs/privacy.md is from here.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import tempfile
from collections import defaultdict
from pathlib import Path

from agentx.cli.main import main as agentx
from agentx.errors import BadInput
from agentx.recorder.imports.detect import detect
from agentx.recorder.keys import CaptureKey
from agentx.recorder.privacy import GRAMS, Linkability
from agentx.recorder.shaping import Shape, Shaping
from agentx.reuse import possible
from agentx.trace import TraceWriter, read_trace

LEVELS: tuple[Shape, ...] = ("shape", "shape-coarse")
WHOLE_FOLDERS = ("claude-bodies", "codex-trace")  # formats whose unit is a folder


def found(samples: Path) -> dict[str, list[Path]]:
    """The files by their format; what is of none is said on the way."""
    formats: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(path for path in samples.rglob("*") if path.is_file() and path.suffix != ".md"):
        try:
            name = detect(path)
        except BadInput:
            continue
        if name not in WHOLE_FOLDERS:
            formats[name].append(path)
    return formats


def imported(format: str, paths: list[Path], level: str, folder: Path) -> Path | None:
    """The trace of the files that can be imported; None when there is none."""
    out = folder / f"{format}.{level}.trace"
    largest = sorted(paths, key=lambda path: (-path.stat().st_size, path))
    for given in (paths, *([path] for path in largest)):
        words = ["import", format, *map(str, given), "-o", str(out), "--level", level]
        with contextlib.redirect_stderr(io.StringIO()):
            code = agentx(words)
        if code == 0:
            return out
    return None


def shaped(trace: Path, level: Shape, folder: Path) -> Path:
    """A trace at a level."""
    shaping, out = Shaping(level, CaptureKey(os.urandom(32))), folder / f"{level}.trace"
    with TraceWriter(out, shaping.header(read_trace(trace).header)) as writer:
        for session in read_trace(trace):
            writer.session(shaping.session(session))
    return out


def row(format: str, level: str, trace: Path, least: int) -> str | None:
    """A row of the table; None for a trace of too few turns."""
    report, turns = Linkability(), 0
    for session in read_trace(trace):
        report.add(session)
        turns += len(session.turns)
    if turns < least:
        return None
    share = possible(read_trace(trace)).share
    grams = [report.unique(n) for n in GRAMS]
    cells = [format, f"{report.sessions:,}", f"{turns:,}", f"`{level}`", *map(_shown, [*grams, report.pairs_unique])]
    return f"| {' | '.join(cells)} | {_shown(share)} |"


def _shown(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description="Linkability of public samples at each level.")
    parser.add_argument("samples", type=Path)
    parser.add_argument("--only", nargs="+", metavar="FORMAT", help="these formats alone")
    parser.add_argument("--least", type=int, default=30, metavar="TURNS", help="(default: %(default)s)")
    args = parser.parse_args()
    names = " | ".join(f"{n} replies" if n > 1 else "1 reply" for n in GRAMS)
    print(f"| format | sessions | turns | level | {names} | prompt and reply | possible reuse |")
    print("|---|---|---|---" + "|---" * (len(GRAMS) + 2) + "|")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["AGENTX_KEYS"] = folder
        if args.samples.is_file():
            for level in LEVELS:
                print(row(args.samples.stem, level, shaped(args.samples, level, Path(folder)), 0), flush=True)
            return
        for format, paths in sorted(found(args.samples).items()):
            if args.only and format not in args.only:
                continue
            for level in LEVELS:
                trace = imported(format, paths, level, Path(folder))
                made = row(format, level, trace, args.least) if trace is not None else None
                if made is not None:
                    print(made, flush=True)


if __name__ == "__main__":
    main()
