"""The GPUs of this machine, as whichever of nvidia-smi, amd-smi and rocm-smi is there tells: names and memory.

A tool that is not there, fails, or writes what is not understood tells nothing. Only nvidia-smi's CSV is fixed by its
own command line; the JSON of amd-smi and rocm-smi is read as their documentation shows it, and was never seen running.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

ANSWER = 20.0  # s that a tool may take
MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Gpu:
    """`used` and `total` are bytes of its memory."""

    name: str
    used: int
    total: int


def gpus_here() -> tuple[str, list[Gpu]] | None:
    """(tool, GPUs); None where no tool tells."""
    for tool, arguments, read in TOOLS:
        path = shutil.which(tool)
        if path is None:
            continue
        text = _output([path, *arguments])
        if text is None:
            continue
        try:
            found = read(text)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):  # not what its documentation shows
            continue
        if found:
            return tool, found
    return None


def _output(argv: list[str]) -> str | None:
    try:
        done = subprocess.run(argv, capture_output=True, timeout=ANSWER, text=True, errors="replace", check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def from_nvidia(text: str) -> list[Gpu]:
    """`nvidia-smi --query-gpu=name,memory.used,memory.total --format=csv,noheader,nounits`: MiB."""
    rows = [line.rsplit(",", 2) for line in text.splitlines() if line.strip()]
    return [Gpu(name.strip(), int(used) * MEGABYTE, int(total) * MEGABYTE) for name, used, total in rows]


def from_amd(text: str) -> list[Gpu]:
    """`amd-smi metric --mem-usage --json`: a list (in newer ones under `gpu_data`), each with `mem_usage`, in MB."""
    data = json.loads(text)
    entries = data["gpu_data"] if isinstance(data, dict) else data
    return [
        Gpu(
            f"GPU {entry['gpu']}",
            int(entry["mem_usage"]["used_vram"]["value"]) * MEGABYTE,
            int(entry["mem_usage"]["total_vram"]["value"]) * MEGABYTE,
        )
        for entry in entries
    ]


def from_rocm(text: str) -> list[Gpu]:
    """`rocm-smi --showproductname --showmeminfo vram --json`: a map of cards, in bytes."""
    cards: Mapping[str, Mapping[str, Any]] = json.loads(text)
    return [
        Gpu(
            str(card.get("Card Series") or card.get("Card series") or name),
            int(card["VRAM Total Used Memory (B)"]),
            int(card["VRAM Total Memory (B)"]),
        )
        for name, card in sorted(cards.items())
        if name.startswith("card")
    ]


TOOLS: tuple[tuple[str, tuple[str, ...], Callable[[str], list[Gpu]]], ...] = (
    ("nvidia-smi", ("--query-gpu=name,memory.used,memory.total", "--format=csv,noheader,nounits"), from_nvidia),
    ("rocm-smi", ("--showproductname", "--showmeminfo", "vram", "--json"), from_rocm),
    ("amd-smi", ("metric", "--mem-usage", "--json"), from_amd),
)
