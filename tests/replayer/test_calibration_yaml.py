"""The target that a calibration writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentx.engine.settings import LAPTOP, EngineSettings, Timing, load_engine
from agentx.replayer.calibration import Calibration, Figure
from agentx.replayer.calibration_fit import Fit
from agentx.replayer.calibration_yaml import rounded, span, target_text

HELD = (Figure("TTFT median", "s", 40, 1.0, 1.03, 0.9, 1.1), Figure("TPOT median", "s", 40, 0.02, 0.0198, 0.02, 0.02))


def found(settings: EngineSettings) -> Calibration:
    names = tuple(name for name in Timing.model_fields if name != "load_back_token")
    fit = Fit(settings.timing, names, {"load_back_token": "no request was told to be loaded back"})
    return Calibration((Path("runs/a"), Path("runs/b")), settings, fit, 9, 3, HELD, HELD, None, ())


def test_it_reads_back_as_the_same_settings() -> None:
    timing = LAPTOP.model_copy(update={"decode_context": 1.23456789e-12, "request": 0.0})
    settings = EngineSettings.model_validate(
        {
            "gpus": 8,
            "cache": {"pool": 4096, "page": 16, "host": {"tokens": 8192, "write": "write_back"}},
            "speculation": {"algorithm": "EAGLE", "steps": 3, "acceptance": {"curve": "glm-5.2/mtp/thinking-on"}},
            "timing": timing,
        }
    )
    back = load_engine("x", text=target_text(found(settings)))
    assert back == settings.model_copy(update={"timing": rounded(timing)})
    assert back.timing.decode_context == pytest.approx(1.235e-12)


SPANS = [
    (0.0, "0ns"),
    (6.129e-5, "61.29us"),
    (0.00899412, "8.994ms"),
    (2.0, "2s"),
    (3.8e-9, "3.8ns"),
    (7.3624e-13, "0.0007362ns"),
]


@pytest.mark.parametrize(("value", "text"), SPANS)
def test_a_constant_is_written_in_its_unit(value: float, text: str) -> None:
    assert span(value) == text


def test_every_constant_has_its_unit_and_source() -> None:
    lines = {line.split(":")[0].strip(): line for line in target_text(found(EngineSettings())).splitlines()}
    assert lines["decode_step"].endswith("# per decode step: fitted to a, b, error of TPOT median -1.0%")
    assert lines["prefill_token"].endswith("# per new prompt token: fitted to a, b, error of TTFT median +3.0%")
    assert lines["load_back_token"].endswith("host tier: not fitted, no request was told to be loaded back")
    assert "3 held out sessions" in target_text(found(EngineSettings()))
