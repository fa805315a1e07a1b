"""Judge every shipped workload in full: `python benchmarks/workloads.py [NAME ...]`, seeds 0 and 1, some four minutes.

Prints one line for each spec and seed, with the statistics that missed. Exit code 3 if any is. The tests judge the same
specs on few sessions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO

from agentx import catalog
from agentx.cli.main import main


def judge(name: str, seed: int) -> tuple[int, str]:
    """The exit code of one check, and the last line that it printed."""
    out = StringIO()
    with redirect_stdout(out):
        code = main(["check", name, "--seed", str(seed)])
    return code, out.getvalue().splitlines()[-1]


def lines(names: list[str]) -> Iterator[int]:
    for name in names:
        for seed in (0, 1):
            code, line = judge(name, seed)
            verdict = "MISSED" if code else "met   " if line.endswith("all met") else "-     "  # nothing is expected
            print(verdict, line, flush=True)
            yield code


if __name__ == "__main__":
    chosen = sys.argv[1:] or [entry.name for entry in catalog.entries("workloads")]
    sys.exit(max(lines(chosen)))
