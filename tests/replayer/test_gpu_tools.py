"""Outputs of the GPU tools, made by hand after their documentation: none of them runs where these tests do."""

from __future__ import annotations

import contextlib
import json

import pytest

from agentx.replayer.gpu_tools import TOOLS, from_amd, from_nvidia, from_rocm, number
from agentx.replayer.telemetry_recorder import _ODD
from agentx.telemetry import GpuLook

MB = 1 << 20

NVIDIA = """\
412.31, 1980, 2619, 97, 71042, 81559
[N/A], 345, 2619, [Not Supported], 3, 81559
"""

AMD = [
    {
        "gpu": 1,
        "usage": {"gfx_activity": {"value": 0, "unit": "%"}},
        "power": {"average_socket_power": {"value": 90, "unit": "W"}},
        "clock": {"gfx_0": {"clk": "N/A"}},
        "mem_usage": {"total_vram": {"value": 262128, "unit": "MB"}, "used_vram": {"value": 285, "unit": "MB"}},
        "pcie": {"bandwidth": "N/A"},
    },
    {
        "gpu": 0,
        "usage": {"gfx_activity": {"value": 98, "unit": "%"}, "umc_activity": {"value": 41, "unit": "%"}},
        "power": {"socket_power": {"value": 742, "unit": "W"}, "gfx_voltage": "N/A"},
        "clock": {
            "gfx_0": {"clk": {"value": 2100, "unit": "MHz"}, "min_clk": {"value": 500, "unit": "MHz"}},
            "mem_0": {"clk": {"value": 1300, "unit": "MHz"}},
        },
        "mem_usage": {"total_vram": {"value": 262128, "unit": "MB"}, "used_vram": {"value": 240000, "unit": "MB"}},
        "pcie": {"width": 16, "speed": {"value": 32, "unit": "GT/s"}, "bandwidth": {"value": 81920, "unit": "Mb/s"}},
    },
]
OF_AMD = [
    GpuLook(742.0, 2100.0, 1300.0, 98.0, 240000 * MB, 262128 * MB, 81920.0),
    GpuLook(90.0, None, None, 0.0, 285 * MB, 262128 * MB, None),
]

ROCM = {
    "card10": {"Current Socket Graphics Package Power (W)": "139.0", "GPU use (%)": "0"},
    "card2": {
        "Average Graphics Package Power (W)": "250.0",
        "sclk clock speed:": "(1330Mhz)",
        "sclk clock level:": "1",
        "mclk clock speed:": "(1200Mhz)",
        "GPU use (%)": "95",
        "VRAM Total Memory (B)": "68702699520",
        "VRAM Total Used Memory (B)": "10960896",
    },
    "system": {"Driver version": "6.10.5"},
}


def test_nvidia() -> None:
    assert from_nvidia(NVIDIA) == [
        GpuLook(412.31, 1980.0, 2619.0, 97.0, 71042 * MB, 81559 * MB),
        GpuLook(None, 345.0, 2619.0, None, 3 * MB, 81559 * MB),
    ]


@pytest.mark.parametrize(
    "text", [json.dumps(AMD), json.dumps({"gpu_data": AMD}), "WARNING: not in the render group\n" + json.dumps(AMD)]
)
def test_amd(text: str) -> None:
    assert from_amd(text) == OF_AMD


def test_a_sensor_that_reads_its_highest_value_is_none() -> None:
    (gpu,) = from_amd(json.dumps([{"gpu": 0, "power": {"socket_power": 65535}, "usage": "N/A"}]))
    assert gpu == GpuLook()


def test_rocm() -> None:
    assert from_rocm(json.dumps(ROCM)) == [
        GpuLook(250.0, 1330.0, 1200.0, 95.0, 10960896, 68702699520),
        GpuLook(watts=139.0, busy=0.0),
    ]


@pytest.mark.parametrize("read", [read for _, _, read in TOOLS])
@pytest.mark.parametrize("text", ["", "no devices were found", "[[]]", '{"gpu_data": 7}', "1,2"])
def test_what_is_not_understood_raises_what_the_recorder_expects(read: object, text: str) -> None:
    with contextlib.suppress(_ODD):
        assert read(text) == [] or text  # type: ignore[operator]


@pytest.mark.parametrize(
    ("value", "expected"),
    [("(1330Mhz)", 1330.0), ("N/A", None), (None, None), (True, None), (7, 7.0)],
)
def test_numbers(value: object, expected: float | None) -> None:
    assert number(value) == expected
