"""What nvidia-smi, amd-smi and rocm-smi tell of the GPUs at one moment: their output in, `GpuLook` out.

None of the three was seen running: nvidia-smi's CSV is fixed by its command line, the JSON of the others is read as
their documentation and published outputs show it. A value that is not a number there (`N/A`) is not told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from agentx.telemetry import GpuLook

MEGABYTE = 1 << 20
NOT_TOLD = 0xFFFF  # what a 16-bit sensor of AMD reads when there is none
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")

_NVIDIA = "power.draw,clocks.sm,clocks.mem,utilization.gpu,memory.used,memory.total"
Read = Callable[[str], list[GpuLook]]


def from_nvidia(text: str) -> list[GpuLook]:
    """`--query-gpu=power.draw,clocks.sm,clocks.mem,utilization.gpu,memory.used,memory.total` as CSV without units: W,
    MHz, MHz, %, MiB, MiB. It has no PCIe traffic there."""
    rows = [[number(cell) for cell in line.split(",")] for line in text.splitlines() if line.strip()]
    return [
        GpuLook(
            watts=row[0],
            clock=row[1],
            memory_clock=row[2],
            busy=row[3],
            memory_used=_bytes(row[4]),
            memory_total=_bytes(row[5]),
        )
        for row in rows
    ]


def from_amd(text: str) -> list[GpuLook]:
    """`amd-smi metric --power --clock --usage --mem-usage --pcie --json`: a list, in newer ones under `gpu_data`, whose
    values are `{value, unit}` or bare; in front of it there may be a warning."""
    begins = min((at for at in (text.find("["), text.find("{")) if at >= 0), default=0)
    data = json.loads(text[begins:])
    entries = data["gpu_data"] if isinstance(data, dict) else data
    return [_amd_gpu(entry) for entry in sorted(entries, key=lambda one: int(one.get("gpu", 0)))]


def _amd_gpu(entry: Mapping[str, Any]) -> GpuLook:
    power, usage, memory, clock, pcie = (
        part if isinstance(part := entry.get(name), Mapping) else {}
        for name in ("power", "usage", "mem_usage", "clock", "pcie")
    )
    names = ("socket_power", "current_socket_power", "average_socket_power")
    told = (_sensor(power.get(name)) for name in names)
    return GpuLook(
        watts=next((value for value in told if value is not None), None),
        clock=_sensor((clock.get("gfx_0") or clock.get("gfx") or {}).get("clk")),
        memory_clock=_sensor((clock.get("mem_0") or clock.get("mem") or {}).get("clk")),
        busy=_sensor(usage.get("gfx_activity")),
        memory_used=_bytes(_sensor(memory.get("used_vram"), NOT_TOLD << 16)),
        memory_total=_bytes(_sensor(memory.get("total_vram"), NOT_TOLD << 16)),
        pcie=_sensor(pcie.get("bandwidth"), NOT_TOLD << 16),
    )


def from_rocm(text: str) -> list[GpuLook]:
    """`rocm-smi --showpower --showclocks --showuse --showmeminfo vram --json`: a map of cards, values as text."""
    cards: Mapping[str, Mapping[str, Any]] = json.loads(text[max(0, text.find("{")) :])
    named = sorted((int(name[4:]), card) for name, card in cards.items() if re.fullmatch(r"card\d+", name))
    return [_rocm_gpu(card) for _, card in named]


def _rocm_gpu(card: Mapping[str, Any]) -> GpuLook:
    def told(*beginnings: str) -> float | None:
        for name, value in card.items():
            if name.lower().startswith(beginnings):
                return number(value)
        return None

    used, total = told("vram total used memory (b)"), told("vram total memory (b)")
    return GpuLook(
        watts=told("current socket graphics package power", "average graphics package power", "socket power"),
        clock=told("sclk clock speed"),
        memory_clock=told("mclk clock speed"),
        busy=told("gpu use (%)"),
        memory_used=None if used is None else int(used),
        memory_total=None if total is None else int(total),
    )


TOOLS: tuple[tuple[str, tuple[str, ...], Read], ...] = (
    ("nvidia-smi", (f"--query-gpu={_NVIDIA}", "--format=csv,noheader,nounits"), from_nvidia),
    ("amd-smi", ("metric", "--power", "--clock", "--usage", "--mem-usage", "--pcie", "--json"), from_amd),
    ("rocm-smi", ("--showpower", "--showclocks", "--showuse", "--showmeminfo", "vram", "--json"), from_rocm),
)


def number(value: object) -> float | None:
    """The number in a value: `250`, `"250.0"`, `"(1330Mhz)"`; None for one that has none."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    found = _NUMBER.search(str(value))
    return float(found.group()) if found else None


def _sensor(value: object, most: int = NOT_TOLD) -> float | None:
    found = number(value.get("value") if isinstance(value, Mapping) else value)
    return found if found is not None and 0 <= found < most else None


def _bytes(megabytes: float | None) -> int | None:
    return None if megabytes is None else int(megabytes * MEGABYTE)
