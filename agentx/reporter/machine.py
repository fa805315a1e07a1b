"""What the machine did in the measured time: power, clocks and memory of its GPUs, and the memory of the host.

Energy is the power of all its GPUs over the window, a straight line from look to look; the first and the last look
stand for what lies before and behind them. It is unknown where a look is missing for longer than GAP seconds, or a GPU
does not tell its power. All GPUs of the machine count, in use or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from agentx.errors import BadInput
from agentx.reporter.metrics import Metrics
from agentx.reporter.table import Block, Heading, Lines
from agentx.results import RunResults
from agentx.telemetry import TELEMETRY, GpuLook, Look, read_telemetry

GAP = 60.0  # s without a look of which nothing is said


@dataclass(frozen=True, slots=True)
class Machine:
    """None: not told. `watts_mean` of all `gpus` together; `joules` over the window, and over each output token that
    came in it; `clock_mean` in MHz and `busy_mean` in percent, over GPUs and looks; `gpu_memory_max` of the fullest GPU
    and `host_memory_max` in use at most, in bytes; `pcie_mean` of a GPU, in megabits per second."""

    looks: int
    gpus: int | None
    watts_mean: float | None
    joules: float | None
    joules_per_output_token: float | None
    clock_mean: float | None
    busy_mean: float | None
    pcie_mean: float | None
    gpu_memory_max: int | None
    host_memory_total: int | None
    host_memory_max: int | None


def machine_of(run: RunResults, metrics: Metrics) -> Machine | None:
    """None where nothing was recorded, or not in the window."""
    window = metrics.throughput.window
    if window is None or not (run.folder / TELEMETRY).exists():
        return None
    try:
        looks = list(read_telemetry(run.folder))
    except BadInput:
        return None
    inside = [look for look in looks if window.holds(look.at)] or _nearest(looks, window.start, window.stop)
    if not inside:
        return None
    joules = energy(looks, window.start, window.stop)
    output = metrics.throughput.emitted.output
    counts = {len(look.gpus) for look in inside}
    used = [
        look.memory_total - look.memory_free for look in inside if look.memory_total and look.memory_free is not None
    ]
    return Machine(
        looks=len(inside),
        gpus=max(counts) or None,
        watts_mean=None if joules is None or window.seconds <= 0 else joules / window.seconds,
        joules=joules,
        joules_per_output_token=joules / output.tokens if joules is not None and output.tokens else None,
        clock_mean=_mean(inside, lambda gpu: gpu.clock),
        busy_mean=_mean(inside, lambda gpu: gpu.busy),
        pcie_mean=_mean(inside, lambda gpu: gpu.pcie),
        gpu_memory_max=max((gpu.memory_used for look in inside for gpu in look.gpus if gpu.memory_used), default=None),
        host_memory_total=inside[-1].memory_total,
        host_memory_max=max(used, default=None),
    )


def energy(looks: Sequence[Look], start: float, stop: float) -> float | None:
    """Joules of all GPUs between two seconds of the run's clock."""
    told = [(look.at, watts) for look in looks if (watts := look.watts) is not None]
    close = [(at, watts) for at, watts in told if start - GAP <= at <= stop + GAP]
    if not close or any(look.gpus and look.watts is None for look in looks if start <= look.at <= stop):
        return None
    points = [(start - GAP, close[0][1]), *close, (stop + GAP, close[-1][1])]
    total = 0.0
    for (at, watts), (then, after) in pairwise(points):
        low, high = max(at, start), min(then, stop)
        if low >= high:
            continue
        if high - low > GAP:
            return None
        slope = (after - watts) / (then - at)
        total += (high - low) * (watts + slope * ((low + high) / 2 - at))
    return total


def _nearest(looks: Sequence[Look], start: float, stop: float) -> list[Look]:
    """For a window that is shorter than the time between looks: those around it."""
    before = [look for look in looks if look.at < start][-1:]
    after = [look for look in looks if look.at > stop][:1]
    return [look for look in (*before, *after) if start - GAP <= look.at <= stop + GAP]


def _mean(looks: Sequence[Look], of: Callable[[GpuLook], float | None]) -> float | None:
    told = [value for look in looks for gpu in look.gpus if (value := of(gpu)) is not None]
    return sum(told) / len(told) if told else None


def machine_document(found: Machine) -> dict[str, Any]:
    told = asdict(found)
    names = {"watts_mean": "watts_mean", "clock_mean": "clock_mean_mhz", "busy_mean": "busy_mean_percent"}
    names |= {"pcie_mean": "pcie_mean_megabits_per_second", "gpu_memory_max": "gpu_memory_max_bytes"}
    names |= {"host_memory_total": "host_memory_total_bytes", "host_memory_max": "host_memory_max_bytes"}
    return {names.get(name, name): value for name, value in told.items()}


def machine_blocks(found: Machine) -> list[Block]:
    host = []
    if found.host_memory_max is not None and found.host_memory_total is not None:
        most, all_of_it = found.host_memory_max / 1e9, found.host_memory_total / 1e9
        host = [f"Memory of this host: at most {most:,.1f} of {all_of_it:,.1f} GB in use."]
    if found.gpus is None:
        return [Heading("Machine"), Lines((" ".join([*host, "Power and clocks of GPUs: unknown."]),))]
    power = "power unknown" if found.watts_mean is None else f"{found.watts_mean:,.0f} W together on average"
    each = found.joules_per_output_token
    cost = "" if each is None else f", {each:,.2f} J per output token"
    words = [f"{found.gpus} GPUs: {power}{cost}."]
    more = [
        (found.clock_mean, "clock {:,.0f} MHz"),
        (found.busy_mean, "busy {:.0f}%"),
        (found.pcie_mean, "PCIe {:,.0f} Mbit/s each"),
        (None if found.gpu_memory_max is None else found.gpu_memory_max / 1e9, "{:,.1f} GB on the fullest"),
    ]
    parts = [shape.format(value) for value, shape in more if value is not None]
    words += [f"They had {', '.join(parts)}."] if parts else []
    return [Heading("Machine"), Lines((*words, *host))]
