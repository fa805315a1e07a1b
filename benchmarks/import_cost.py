"""What an import costs, next to parsing the same bytes as JSON and doing nothing with them.

    python benchmarks/import_cost.py [--sessions 50] [--turns 40] [--context 100000]

The files are made here: Weka sessions that grow to `context` tokens, one file each, and the same prompts as one
Mooncake file whose sessions are interleaved row by row. Each import runs in a process of its own; the ratio counts,
as both sides ran on the same machine. Peak memory is that of the importing process, its interpreter included.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

WEKA_BLOCK, MOONCAKE_BLOCK = 64, 512


def prompts(session: int, turns: int, context: int, block: int) -> Iterator[tuple[int, list[int]]]:
    """(tokens, block ids) of a growing context; every session has ids of its own."""
    first = session * (context // block + 1)
    for turn in range(1, turns + 1):
        tokens = context * turn // turns
        yield tokens, list(range(first, first + -(-tokens // block)))


def weka_files(folder: Path, args: argparse.Namespace) -> None:
    for number in range(args.sessions):
        requests: list[dict[str, Any]] = []
        for turn, (tokens, ids) in enumerate(prompts(number, args.turns, args.context, WEKA_BLOCK)):
            times = {"t": 30.0 * turn, "api_time": 10.5, "type": "n", "model": "m", "stop": "tool_use"}
            hashed = {"in": tokens, "out": 400, "hash_ids": ids[: tokens // WEKA_BLOCK]}
            requests.append({**times, **hashed, "input_types": ["tool_result"]})
        session = {"id": f"s{number}", "block_size": WEKA_BLOCK, "tool_tokens": 9000, "system_tokens": 2000}
        (folder / f"{number:04}.json").write_text(json.dumps({**session, "requests": requests}))


def mooncake_file(path: Path, args: argparse.Namespace) -> None:
    sessions = [prompts(number, args.turns, args.context, MOONCAKE_BLOCK) for number in range(args.sessions)]
    with path.open("w") as file:
        for turn, row in enumerate(zip(*sessions, strict=True)):
            for number, (tokens, ids) in enumerate(row):
                lengths = {"input_length": tokens, "output_length": 400, "hash_ids": ids}
                file.write(json.dumps({**lengths, "timestamp": 30_000 * turn, "session_id": f"s{number}"}) + "\n")


def measured(what: str, source: Path) -> dict[str, float]:
    """One job of `child` in its own process."""
    command = [sys.executable, __file__, "--child", what, str(source)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(result.stdout))


def child(what: str, source: Path) -> None:
    from agentx.recorder.imports.mooncake import import_mooncake
    from agentx.recorder.imports.weka import import_weka

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.trace"
        began = time.process_time()
        if what == "weka":
            import_weka([source], out)
        elif what == "mooncake":
            import_mooncake(source, out)
        elif source.is_dir():
            for path in source.iterdir():
                json.loads(path.read_bytes())
        else:
            with source.open("rb") as lines:
                for line in lines:
                    json.loads(line)
        took = time.process_time() - began
        size = out.stat().st_size if out.exists() else 0
    print(json.dumps({"cpu": took, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "size": size}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--context", type=int, default=100_000)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child[0], Path(args.child[1]))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "weka"
        folder.mkdir()
        weka_files(folder, args)
        mooncake_file(Path(name) / "mooncake.jsonl", args)
        names = ("MB in", "MB out", "json s", "import s", "ratio", "turns/s", "peak MB")
        widths = (8, 8, 9, 10, 7, 9, 9)
        print(line("format", names, widths))
        for what, source in (("weka", folder), ("mooncake", Path(name) / "mooncake.jsonl")):
            files = list(source.iterdir()) if source.is_dir() else [source]
            size = sum(path.stat().st_size for path in files) / 1e6
            bare, made = measured("json", source), measured(what, source)
            cells = (f"{size:.1f}", f"{made['size'] / 1e6:.2f}", f"{bare['cpu']:.2f}", f"{made['cpu']:.2f}")
            ratio = f"{made['cpu'] / bare['cpu']:.2f}"
            rate = f"{args.sessions * args.turns / made['cpu']:,.0f}"
            print(line(what, (*cells, ratio, rate, f"{made['peak']:.0f}"), widths))


def line(first: str, cells: Sequence[str], widths: Sequence[int]) -> str:
    return f"{first:<10}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


if __name__ == "__main__":
    main()
