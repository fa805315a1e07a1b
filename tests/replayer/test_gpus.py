"""What GPUs are here and what of their memory is used, from tools that write as their documentation shows it."""

from __future__ import annotations

import pytest

from agentx.replayer.gpu_tools import TOOLS
from agentx.replayer.gpus import NAMES, Gpu, gpus_here

MEMORY = '{"used_vram": {"value": 100, "unit": "MB"}, "total_vram": {"value": 196592, "unit": "MB"}}'
CARD = '{"VRAM Total Memory (B)": "2000", "VRAM Total Used Memory (B)": "300", "Card Series": "AMD Instinct MI325X"}'

CASES = [
    # the tool; what it writes when asked for names (by that word), and otherwise; what is found
    (
        ("nvidia-smi", "gpu=name", "NVIDIA B200", "70, 300, 900, 0, 10, 183359"),
        Gpu("NVIDIA B200", 10 << 20, 183359 << 20),
    ),
    (
        (
            "amd-smi",
            "static",
            '[{"gpu": 0, "asic": {"market_name": "MI325X"}}]',
            f'[{{"gpu": 0, "mem_usage": {MEMORY}}}]',
        ),
        Gpu("MI325X", 100 << 20, 196592 << 20),
    ),
    (
        ("amd-smi", "static", "not told", f'{{"gpu_data": [{{"gpu": 0, "mem_usage": {MEMORY}}}]}}'),
        Gpu(None, 100 << 20, 196592 << 20),
    ),
    (
        ("rocm-smi", "productname", f'{{"card0": {CARD}, "system": {{}}}}', f'{{"card0": {CARD}}}'),
        Gpu("AMD Instinct MI325X", 300, 2000),
    ),
]


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Puts tools into a PATH that has no others: one that is asked for names, and writes something else otherwise."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")

    def made(name, names, first, otherwise):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\ncase \"$*\" in *{names}*) echo '{first}';; *) echo '{otherwise}';; esac\n")
        path.chmod(0o755)

    return made


@pytest.mark.parametrize(("tool", "found"), CASES)
def test_each_tool(tools, tool, found):
    tools(*tool)
    assert gpus_here() == (tool[0], [found])


def test_a_tool_that_is_not_understood_is_passed_over(tools, tmp_path):
    assert gpus_here() is None
    tools("nvidia-smi", "gpu=name", "x", "no devices were found")
    tools("rocm-smi", "productname", "x", "WARNING: not JSON")
    assert gpus_here() is None
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    tools("rocm-smi", "productname", "x", f'{{"card0": {CARD}}}')
    assert gpus_here() == ("rocm-smi", [Gpu(None, 300, 2000)])


def test_every_tool_can_be_asked_for_names():
    assert [name for name, _, _ in TOOLS] == list(NAMES)
