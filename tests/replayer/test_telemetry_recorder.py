"""The recorder looks in a thread, and says what it cannot have."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from agentx.replayer import telemetry_recorder
from agentx.replayer.telemetry_recorder import TelemetryRecorder, host_memory
from agentx.telemetry import TELEMETRY, GpuLook, read_telemetry


def tool(folder: Path, name: str, text: str, code: int = 0) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {code}\n")
    path.chmod(0o755)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands are looked up: the tools of this test, and the shell's own."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(
        telemetry_recorder.shutil, "which", lambda name: str(tmp_path / name) if (tmp_path / name).exists() else None
    )
    return tmp_path


def recorded(folder: Path, *, gpus: bool = True) -> list[str]:
    recorder = TelemetryRecorder(folder, lambda: 7.0, gpus=gpus, every=100.0)
    recorder.start()
    return recorder.stop()


def test_looks_at_begin_and_end(path: Path) -> None:
    tool(path, "nvidia-smi", "300.5, 1000, 2000, 50, 10, 80")
    assert recorded(path) == []
    looks = list(read_telemetry(path))
    assert [(look.at, look.watts) for look in looks] == [(7.0, 300.5)] * 2
    assert looks[0].gpus == (GpuLook(300.5, 1000.0, 2000.0, 50.0, 10 << 20, 80 << 20),)


def test_without_a_tool_there_is_one_line(path: Path) -> None:
    assert recorded(path) == ["no power or clocks: none of nvidia-smi, amd-smi and rocm-smi is on this machine"]
    assert [look.gpus for look in read_telemetry(path)] == [(), ()]


@pytest.mark.parametrize(("text", "code"), [("Failed to initialize NVML", 9), ("what is this", 0)])
def test_a_tool_that_tells_nothing_is_named(path: Path, text: str, code: int) -> None:
    tool(path, "nvidia-smi", text, code)
    told = recorded(path)
    assert told in ([], ["no power or clocks: nvidia-smi tells nothing that is understood"])
    assert told or all(look.watts is None for look in read_telemetry(path))


def test_gpus_of_another_machine_are_not_looked_at(path: Path) -> None:
    tool(path, "nvidia-smi", "300.5, 1000, 2000, 50, 10, 80")
    assert recorded(path, gpus=False) == []
    assert [look.gpus for look in read_telemetry(path)] == [(), ()]


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / TELEMETRY).mkdir()
    (note,) = recorded(tmp_path, gpus=False)
    assert note.startswith("telemetry could not be written")
    assert not [thread for thread in threading.enumerate() if thread.name == "agentx-telemetry"]


def test_host_memory(tmp_path: Path) -> None:
    file = tmp_path / "meminfo"
    file.write_text("MemTotal:       1000 kB\nMemFree:   10 kB\nMemAvailable:    400 kB\n")
    assert host_memory(file) == (1_024_000, 409_600)
    file.write_text("MemTotal:       x kB\n")
    assert host_memory(file) == (None, None)
    assert host_memory(tmp_path / "none") == (None, None)
