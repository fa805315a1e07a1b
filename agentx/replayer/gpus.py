"""The GPUs of this machine and how much of their memory is used, by whichever tool is there (`gpu_tools.py`).

A tool that is not there, fails, or writes what is not understood tells nothing. Names are asked for apart; the JSON of
amd-smi and rocm-smi is read as their documentation shows it, and was never seen running.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from agentx.replayer.gpu_tools import TOOLS

ANSWER = 20.0  # s that a tool may take
_ODD = (ValueError, KeyError, TypeError, IndexError, AttributeError)  # output that is not what its documentation shows

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Gpu:
    """`used` and `total` are bytes of its memory; `name` None: not told."""

    name: str | None
    used: int
    total: int


def gpus_here() -> tuple[str, list[Gpu]] | None:
    """(tool, GPUs); None where no tool tells their memory."""
    for tool, arguments, read in TOOLS:
        path = shutil.which(tool)
        looks = None if path is None else _asked([path, *arguments], read)
        told = [(look.memory_used, look.memory_total) for look in looks or ()]
        memory = [(used, total) for used, total in told if used is not None and total is not None]
        if path is None or not memory or len(memory) < len(told):
            continue
        asking, reading = NAMES[tool]
        names = _asked([path, *asking], reading) or []
        known = names if len(names) == len(memory) else [None] * len(memory)
        return tool, [Gpu(name, used, total) for name, (used, total) in zip(known, memory, strict=True)]
    return None


def _asked(argv: list[str], read: Callable[[str], T]) -> T | None:
    try:
        done = subprocess.run(argv, capture_output=True, timeout=ANSWER, text=True, errors="replace", check=False)
        return read(done.stdout) if done.returncode == 0 else None
    except (OSError, subprocess.TimeoutExpired, *_ODD):
        return None


def _lines(text: str) -> list[str | None]:
    """`nvidia-smi --query-gpu=name --format=csv,noheader`."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def _asics(text: str) -> list[str | None]:
    """`amd-smi static --asic --json`: a list, in newer ones under `gpu_data`."""
    data = json.loads(text)
    entries: list[dict[str, Any]] = data["gpu_data"] if isinstance(data, dict) else data
    return [str(entry["asic"]["market_name"]) for entry in sorted(entries, key=lambda one: int(one["gpu"]))]


def _cards(text: str) -> list[str | None]:
    """`rocm-smi --showproductname --json`: a map of cards."""
    found = {
        int(name[4:]): {key.lower(): str(value) for key, value in card.items()}
        for name, card in json.loads(text).items()
        if re.fullmatch(r"card\d+", name)
    }
    return [found[number].get("card series") for number in sorted(found)]


NAMES: dict[str, tuple[tuple[str, ...], Callable[[str], list[str | None]]]] = {
    "nvidia-smi": (("--query-gpu=name", "--format=csv,noheader"), _lines),
    "amd-smi": (("static", "--asic", "--json"), _asics),
    "rocm-smi": (("--showproductname", "--json"), _cards),
}
