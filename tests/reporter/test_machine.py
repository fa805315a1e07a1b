"""Energy over a window, and what is unknown where looks are missing."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest

from agentx.errors import BadInput
from agentx.frames import FrameWriter
from agentx.reporter.machine import Machine, energy, machine_blocks, machine_of
from agentx.reporter.metrics import measure
from agentx.reporter.reporting import report
from agentx.reporter.table import as_text
from agentx.telemetry import TELEMETRY, GpuLook, Look, body_of, read_telemetry


def look(at: float, *watts: float | None, free: int = 40) -> Look:
    return Look(at, 100, free, tuple(GpuLook(each, clock=1000.0, memory_used=7) for each in watts))


CASES = [
    # looks, window, joules
    ([look(0, 100), look(10, 100)], (0, 10), 1000.0),
    ([look(0, 100, 50), look(10, 100, 50)], (2, 4), 300.0),  # both GPUs, in the middle between two looks
    ([look(0, 0), look(10, 100)], (0, 10), 500.0),  # a straight line
    ([look(0, 0), look(10, 100)], (5, 10), 375.0),
    ([look(4, 100)], (0, 10), 1000.0),  # one look stands for what is around it
    ([look(-5, 100), look(15, 100)], (0, 10), 1000.0),  # none inside
    ([look(0, 100), look(200, 100)], (0, 200), None),  # too long without a look
    ([look(0, 100, None), look(10, 100, 100)], (0, 10), None),  # a GPU that does not tell
    ([look(0), look(10)], (0, 10), None),  # no GPUs
    ([look(500, 100)], (0, 10), None),
    ([], (0, 10), None),
]


@pytest.mark.parametrize(("looks", "window", "joules"), CASES)
def test_energy(looks: list[Look], window: tuple[float, float], joules: float | None) -> None:
    assert energy(looks, *window) == (None if joules is None else pytest.approx(joules))


def write(folder: Path, *looks: Look) -> None:
    with contextlib.closing(FrameWriter(folder / TELEMETRY)) as file:
        file.write("telemetry", {"version": 1, "tool": "amd-smi"})
        for each in looks:
            file.write("machine", body_of(each))


def test_of_a_run(attempt, run, tmp_path):  # type: ignore[no-untyped-def]
    made = replace(run([attempt()]), folder=tmp_path)
    assert machine_of(made, measure(made)) is None
    window = measure(made).throughput.window
    write(tmp_path, look(window.start, 200, 300, free=30), look(window.stop, 200, 300, free=60))
    found = machine_of(made, measure(made))
    output = measure(made).throughput.emitted.output.tokens
    assert (found.gpus, found.watts_mean, found.clock_mean) == (2, pytest.approx(500), 1000.0)
    assert found.joules == pytest.approx(500 * window.seconds)
    assert found.joules_per_output_token == pytest.approx(500 * window.seconds / output)
    assert (found.host_memory_total, found.host_memory_max) == (100, 70)
    assert "J per output token" in report(made).text()
    assert report(made).document()["machine"]["clock_mean_mhz"] == 1000.0


def test_without_gpus_it_is_one_line() -> None:
    found = Machine(3, None, None, None, None, None, None, None, None, 24_000_000_000, 7_000_000_000)
    text = as_text(machine_blocks(found))
    assert "at most 7.0 of 24.0 GB in use. Power and clocks of GPUs: unknown." in text


def test_another_file_is_no_telemetry(tmp_path: Path) -> None:
    assert list(read_telemetry(tmp_path)) == []
    with contextlib.closing(FrameWriter(tmp_path / TELEMETRY)) as file:
        file.write("telemetry", {"version": 2})
    with pytest.raises(BadInput, match="no telemetry of version 1"):
        list(read_telemetry(tmp_path))
