"""What the GPUs' tools write, as their documentation shows it; anything else tells nothing."""

from __future__ import annotations

import pytest

from agentx.replayer import gpus
from agentx.replayer.gpus import Gpu, from_amd, from_nvidia, from_rocm, gpus_here

AMD = '{"gpu": 0, "mem_usage": {"used_vram": {"value": 100, "unit": "MB"}, "total_vram": {"value": 196592}}}'
ROCM = """{"card0": {"VRAM Total Memory (B)": "206141652992", "VRAM Total Used Memory (B)": "297000",
  "Card Series": "AMD Instinct MI325X"}, "system": {}}"""

CASES = [
    (from_nvidia, "NVIDIA B200, 10, 183359\n", [Gpu("NVIDIA B200", 10 << 20, 183359 << 20)]),
    (from_amd, f"[{AMD}]", [Gpu("GPU 0", 100 << 20, 196592 << 20)]),
    (from_amd, f'{{"gpu_data": [{AMD}]}}', [Gpu("GPU 0", 100 << 20, 196592 << 20)]),
    (from_rocm, ROCM, [Gpu("AMD Instinct MI325X", 297000, 206141652992)]),
]


@pytest.mark.parametrize(("read", "text", "found"), CASES)
def test_each_tool(read, text, found):
    assert read(text) == found


def tool(folder, name, script):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_the_first_tool_that_tells(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(gpus, "ANSWER", 5.0)
    tool(tmp_path, "nvidia-smi", "exit 9")  # no driver
    tool(tmp_path, "rocm-smi", "echo 'WARNING: not JSON'")
    assert gpus_here() is None
    tool(tmp_path, "amd-smi", f"echo '[{AMD}]'")
    assert gpus_here() == ("amd-smi", [Gpu("GPU 0", 100 << 20, 196592 << 20)])
