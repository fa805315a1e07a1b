"""The fitted target as YAML: complete, with the unit and the source of every constant."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal

from agentx.engine.settings import Timing
from agentx.replayer.calibration import Calibration, Figure
from agentx.yamlspec import seconds

UNITS = (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9))  # unit, how many make a second
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


def span(value: float) -> str:
    """A constant with as many digits as are worth writing, in the unit in which it is a short number."""
    unit, times = next(((unit, times) for unit, times in UNITS if value >= 1 / times), UNITS[-1])
    return f"{Decimal(f'{value * times:.{DIGITS}g}'):f}{unit}" if value else "0ns"


def rounded(timing: Timing) -> Timing:
    """The constants as they are written."""
    return timing.model_copy(update={name: seconds(span(value)) for name, value in timing})


def target_text(found: Calibration) -> str:
    """An `agentx: target/1` file that reads back as the fitted settings, constants rounded."""
    body = found.settings.model_dump(mode="json", exclude_none=True, exclude={"timing"})
    written = {name: f"  {name}: {span(value)}" for name, value in found.settings.timing}
    width = max(map(len, written.values()))
    lines = ["agentx: target/1", *_head(found)]
    lines += [f"{key}: {_flow(value)}" for key, value in body.items() if value != {}]
    lines.append("timing:")
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
            yield f"# Error over {sessions} {name} sessions:"
            yield from (f"#   {_error(figure)}" for figure in figures)


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
    plain = isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w-]*", value) and value not in ("true", "false", "null")
    return str(value) if plain else json.dumps(value)
