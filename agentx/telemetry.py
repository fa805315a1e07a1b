"""Power, clocks, memory and PCIe of a machine through a run, as its own tools told them.

telemetry.agx   frames: `telemetry` (version, tool), then `machine` for each look: at (seconds on the run's clock),
                memory_total and memory_free (bytes of the host, None: not told), gpus (one map each, see `GpuLook`)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from agentx.errors import BadInput
from agentx.frames import FrameReader

VERSION = 1
TELEMETRY = "telemetry.agx"


@dataclass(frozen=True, slots=True)
class GpuLook:
    """One GPU at one moment; None: its tool does not tell.

    `watts` of its socket; `clock`, `memory_clock` in MHz; `busy` in percent of the time since the look before, as the
    tool has it; `memory_used`, `memory_total` in bytes; `pcie` in megabits per second.
    """

    watts: float | None = None
    clock: float | None = None
    memory_clock: float | None = None
    busy: float | None = None
    memory_used: int | None = None
    memory_total: int | None = None
    pcie: float | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """The machine at `at` seconds of the run's clock. `memory_free`: what its programs could still have."""

    at: float
    memory_total: int | None
    memory_free: int | None
    gpus: tuple[GpuLook, ...]

    @property
    def watts(self) -> float | None:
        """Of all GPUs together; None unless each is told."""
        told = [gpu.watts for gpu in self.gpus if gpu.watts is not None]
        return sum(told) if told and len(told) == len(self.gpus) else None


_FIELDS = tuple(field.name for field in fields(GpuLook))


def body_of(look: Look) -> dict[str, Any]:
    """A look as a frame's body."""
    gpus = [{name: value for name in _FIELDS if (value := getattr(gpu, name)) is not None} for gpu in look.gpus]
    return {"at": look.at, "memory_total": look.memory_total, "memory_free": look.memory_free, "gpus": gpus}


def read_telemetry(folder: Path | str) -> Iterator[Look]:
    """The looks of a run folder, in order; none where there was no telemetry. Raises BadInput for another file."""
    path = Path(folder) / TELEMETRY
    if not path.exists():
        return
    frames = iter(FrameReader(path))
    kind, head = next(frames, ("", {}))
    if kind != "telemetry" or head.get("version") != VERSION:
        raise BadInput(f"this is no telemetry of version {VERSION}", file=path)
    yield from (_look(body) for kind, body in frames if kind == "machine")


def _look(body: Mapping[str, Any]) -> Look:
    gpus = tuple(GpuLook(**{name: gpu.get(name) for name in _FIELDS}) for gpu in body.get("gpus") or ())
    return Look(float(body["at"]), body.get("memory_total"), body.get("memory_free"), gpus)
