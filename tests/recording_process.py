"""`agentx record` as a process of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
AGENTX = [sys.executable, "-m", "agentx"]
COMMAND = [*AGENTX, "record"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
ENVIRONMENT.pop("AGENTX_KEYS", None)


@contextlib.contextmanager
def recording(cwd: Path, upstream: str, *args: str) -> Iterator[tuple[subprocess.Popen[str], str, list[str]]]:
    """The process, the proxy's URL, and what it said at the start."""
    words = [*COMMAND, "sglang", "--upstream", upstream, "--port", "0", "-o", "cap", *args]
    environment = {**ENVIRONMENT, "AGENTX_KEYS": str(cwd / "keys")}
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd, env=environment
    )
    try:
        assert process.stderr is not None
        said = []
        while True:
            said.append(process.stderr.readline())
            assert said[-1], said
            if said[-1].startswith("  export"):
                break
        url = next(line for line in said if line.startswith("recording ")).split()[1]
        yield process, url, said
    finally:
        process.kill()
        process.communicate(timeout=10)
