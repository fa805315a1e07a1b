"""The fitted target as YAML: complete, with the unit and the source of every constant."""

from __future__ import annotations

import json
from collections.abc import Iterator

from agentx.engine.settings import Timing
from agentx.replayer.calibration import Calibration, Figure

DIGITS = 4  # significant ones of a fitted constant: more would be chance
MEANING = {
    "request": "per request before it can be scheduled",
    "prefill_batch": "per prefill batch",
    "prefill_token": "per new prompt token",
    "prefill_token_context": "per new prompt token and token of context before it",
    "decode_step": "per decode step",
    "decode_request": "per decode step and request",
    "decode_context": "per decode step and token of context",
    "speculation_step": "per decode step with speculation",
    "load_back_token": "per token loaded back from the host tier",
}


def rounded(timing: Timing) -> Timing:
    """The constants with as many digits as are worth writing."""
    return timing.model_copy(update={name: float(f"{value:.{DIGITS}g}") for name, value in timing})


def target_text(found: Calibration) -> str:
    """An `agentx: target/1` file that reads back as the fitted settings, constants rounded."""
    settings = found.settings.model_copy(update={"timing": rounded(found.settings.timing)})
    body = settings.model_dump(mode="json")
    timing = body.pop("timing")
    lines = ["agentx: target/1", *_head(found)]
    for key, value in body.items():
        lines.append(f"{key}: {_flow(value)}")
    lines.append("timing:")
    written = {name: f"  {name}: {text}" for name, text in timing.items()}
    width = max(map(len, written.values()))
    lines += [f"{line:<{width}}  # {MEANING[name]}: {_source(found, name)}" for name, line in written.items()]
    return "\n".join(lines) + "\n"


def _head(found: Calibration) -> Iterator[str]:
    runs = ", ".join(folder.name for folder in found.folders)
    yield f"# The embedded engine with a timing that agentx calibrate fitted to {runs}."
    yield "# A model of that server, not a measurement of it. Engine rules: SGLang 0.5.23."
    for name, figures, sessions in (
        ("held out", found.held_out, found.held_sessions),
        ("fitted", found.fitted, found.fitted_sessions),
    ):
        if figures:
            yield f"# Error over {sessions} {name} sessions: {'; '.join(map(_error, figures))}."


def _error(figure: Figure) -> str:
    if figure.unit == "share":
        return f"{figure.name} {figure.error * 100:+.1f} points"
    return f"{figure.name} {figure.error:+.1%}"


def _source(found: Calibration, name: str) -> str:
    if name not in found.fit.fitted:
        return f"not fitted, {found.fit.fixed[name]}"
    runs = ", ".join(folder.name for folder in found.folders)
    figures = found.held_out or found.fitted
    kind = "TPOT" if name.startswith(("decode", "speculation")) else "TTFT"
    error = next((f", error of {each.name} {each.error:+.1%}" for each in figures if each.name == f"{kind} median"), "")
    return f"fitted to {runs}{error}"


def _flow(value: object) -> str:
    """A value in YAML's flow style."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(each)}" for key, each in value.items()) + "}"
    return json.dumps(value)
