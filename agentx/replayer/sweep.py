"""Which runs a sweep is made of: every combination of the values of its knobs, checked before the first is run.

A knob is `KEY=v1,v2,…` with a key of the plan, of the target behind `target.`, or of the workload behind `spec.`; each
value is what `--set KEY=value` takes. Commas inside brackets do not separate.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from agentx import catalog
from agentx.engine.settings import EngineSettings
from agentx.errors import BadInput
from agentx.replayer.order import plan_of, trace_named
from agentx.replayer.plan import Plan, split_sets
from agentx.replayer.targets import DEFAULT_TARGET, resolve_target

SPEC_PREFIX = "spec."
MOST = 1000  # runs of one sweep
_CLOSING = {"{": "}", "[": "]", '"': '"', "'": "'"}


class Knob(NamedTuple):
    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One run: `settings` are (key, value) in the order of the knobs."""

    number: int
    settings: tuple[tuple[str, str], ...]
    seed: int

    @property
    def sets(self) -> list[str]:
        """Overrides of the plan and of the target."""
        return [f"{key}={value}" for key, value in self.settings if not key.startswith(SPEC_PREFIX)]

    @property
    def spec_sets(self) -> tuple[str, ...]:
        """Overrides of the workload's spec."""
        own = [(key.removeprefix(SPEC_PREFIX), value) for key, value in self.settings if key.startswith(SPEC_PREFIX)]
        return tuple(f"{key}={value}" for key, value in own)


def knob_of(text: str) -> Knob:
    """Read one `--sweep`. Raises BadInput."""
    key, equals, rest = text.partition("=")
    key = key.strip()
    if not equals or not all(key.split(".")):
        raise BadInput(f"--sweep {text}: should be KEY=v1,v2,…")
    values = tuple(value.strip() for value in _split(rest))
    if not all(values):
        raise BadInput(f"--sweep {text}: {'no values' if not any(values) else 'an empty value'}")
    if twice := next((value for at, value in enumerate(values) if value in values[:at]), None):
        raise BadInput(f"--sweep {text}: {twice} is there twice")
    return Knob(key, values)


def _split(text: str) -> list[str]:
    parts, inside = [""], ""
    for sign in text:
        if inside and sign == inside[-1]:
            inside = inside[:-1]
        elif sign in _CLOSING and inside[-1:] not in ('"', "'"):
            inside += _CLOSING[sign]
        elif sign == "," and not inside:
            parts.append("")
            continue
        parts[-1] += sign
    return parts


def points_of(
    trace: str | Path | None,
    *,
    plan: Plan | str | Path | None,
    target: str | None,
    sets: Sequence[str],
    knobs: Sequence[Knob],
    simulated: bool = True,
) -> list[Point]:
    """Every combination, the last knob's values first. Raises BadInput for one that could not be run."""
    if not knobs:
        raise BadInput("nothing to sweep", hint="--sweep target.cache.pool=20000,40000")
    keys = [knob.key for knob in knobs]
    if twice := next((key for at, key in enumerate(keys) if key in keys[:at]), None):
        raise BadInput(f"--sweep {twice}: the key is swept twice")
    count = 1
    for knob in knobs:
        count *= len(knob.values)
    if count > MOST:
        raise BadInput(f"a sweep of {count:,} runs is more than {MOST:,}")
    found = []
    for number, values in enumerate(itertools.product(*(knob.values for knob in knobs))):
        point = Point(number, tuple(zip(keys, values, strict=True)), 0)
        try:
            seed = _checked(trace, plan, target, sets, point, simulated)
        except BadInput as error:
            raise BadInput(_as_sweep(str(error), keys)) from None
        found.append(Point(number, point.settings, seed))
    return found


def _checked(
    trace: str | Path | None,
    plan: Plan | str | Path | None,
    target: str | None,
    sets: Sequence[str],
    point: Point,
    simulated: bool,
) -> int:
    """The seed of a point that can be run. Raises BadInput."""
    plan_sets, target_sets = split_sets([*sets, *point.sets])
    known = plan_of(plan, plan_sets)
    name = trace_named(trace, known)
    resolved = resolve_target(target or known.target or DEFAULT_TARGET, target_sets)
    if simulated and not isinstance(resolved.settings, EngineSettings):
        raise BadInput(f"the target {resolved.name} is a server, and only an engine can be simulated")
    if point.spec_sets:
        if not isinstance(name, str) or catalog.is_path(name):
            raise BadInput(f"{point.spec_sets[0]}: {name} is a trace; only a workload has a spec to change")
        from agentx.generator.spec import load_spec

        load_spec(name, sets=point.spec_sets)
    return known.seed


def _as_sweep(message: str, keys: Sequence[str]) -> str:
    """A mistake in a value is named as it was written: behind `--sweep`."""
    for key in keys:
        for prefix in ("target.", SPEC_PREFIX, ""):
            if key.startswith(prefix):
                message = message.replace(f"--set {key.removeprefix(prefix)}=", f"--sweep {key}=")
    return message
