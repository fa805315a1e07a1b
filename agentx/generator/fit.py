"""A trace becomes a workload spec: the families of its distributions, its layers, and what befalls its sessions.

The way back from `sessions.py`. What a trace cannot tell is said (`Fitted.unknown`) and left out or assumed; the spec
is valid all the same. It expects the statistics of its source, so `agentx check` says whether it makes such traffic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agentx.core import Header
from agentx.errors import BadInput
from agentx.generator import fit_events as events
from agentx.generator import fit_parts as parts
from agentx.generator.expect import Measured
from agentx.generator.expectation import Expectation
from agentx.generator.fit_families import Fit, seconds_text
from agentx.generator.fit_layers import Shared
from agentx.generator.fit_parts import Noted, Part
from agentx.generator.fit_seen import Seen
from agentx.generator.fit_text import as_yaml

FEW_SESSIONS = 20  # below: how sessions differ is not known
_TOLERANCES = {  # statistic -> its tolerance; a reader of the spec may tighten them
    **{f"{name}_p50": "10%" for name in ("turns", "main_turns", "isl", "osl", "leading", "first_isl", "last_isl")},
    **{f"{name}_p90": "25%" for name in ("turns", "isl", "osl", "fresh", "tool_gap", "human_gap")},
    **{f"{name}_p50": "10%" for name in ("loop", "fresh", "tools", "tool_gap", "human_gap")},
    **{f"{name}_p50": "10%" for name in ("compaction_before", "compaction_after", "fan_out")},
    **{f"subagent_{name}_p50": "10%" for name in ("turns", "isl", "osl")},
    "loop_mean": "10%",
    "subagent_share": 0.05,
    "subagent_sessions": 0.05,
    "side_share": 0.03,
    "compaction_share": 0.04,
    "pull_back_share": 0.01,
    "tool_share": 0.03,
    "single_turn_share": 0.05,
    "abort_share": 0.01,
    "possible_reuse": 0.01,
}
SMALL = 10  # counts below this may be off by one


@dataclass(frozen=True, slots=True)
class Fitted:
    """A spec as data with remarks, its statistics to expect, and what its source could not tell."""

    name: str
    spec: Part
    expect: dict[str, float]
    unknown: tuple[str, ...]

    @property
    def goodness(self) -> list[tuple[str, Fit]]:
        """Every distribution with its place in the spec."""
        return parts.fits(self.spec)

    @property
    def expectations(self) -> dict[str, Expectation]:
        """All statistics, as a spec expects them."""
        made = {name: _expectation(name, value, self.name) for name, value in self.expect.items()}
        return {name: Expectation.model_validate(each) for name, each in made.items()}

    def not_reproduced(self, name: str, had: float, made: float | None) -> str:
        """The remark on a statistic that is otherwise in the source."""
        return f"not reproduced: {name} is {_shown(name, had)} in the source, {_shown(name, made)} here"

    def text(self, expect: Mapping[str, float], remarks: Iterable[str] = ()) -> str:
        """The spec as YAML, with what it is to expect, and remarks at its end."""
        head = [
            f"Fitted by agentx fit to {self.name}: {self.spec['sessions']} sessions.",
            "Beside each distribution: its family, its distance from the source (KS), and the number of values.",
            *(f"Not known: {each}." for each in self.unknown),
        ]
        promised = {name: _expectation(name, value, self.name) for name, value in expect.items()}
        return as_yaml(head, {**self.spec, **({"expect": promised} if promised else {})}, list(remarks))


def fit_spec(seen: Seen, measured: Measured, possible_reuse: float | None, header: Header, name: str) -> Fitted:
    """The spec of what was seen. Raises BadInput for a trace without a turn."""
    if not seen.ends and not seen.types:
        raise BadInput(f"{name} has no turn: nothing can be fitted", hint="agentx inspect says what is in it")
    shared = seen.fronts.shared()
    limited = parts.full(seen.ends, seen.longest)
    spec: Part = {
        "agentx": "workload/1",
        "about": f"fitted to the trace {name}",
        "sessions": max(1, seen.counts["sessions"]),
        "context_limit": _limit(seen, limited),
        "layers": parts.layers(seen, shared),
        "turns": parts.turns(seen),
        "tokens": parts.tokens(seen, shared),
        "gaps": parts.gaps(seen),
        "subagents": events.subagents(seen),
        "compaction": events.compaction(seen, shared),
        "resumed": events.resumed(seen),
        "resets": events.resets(seen),
        "pull_backs": events.pull_backs(seen),
        "aborts": events.aborts(seen),
        "side_calls": events.side_calls(seen),
        "models": events.models(seen),
        "groups": events.groups(seen),
        "arrivals": events.arrivals(seen),
    }
    events.split_resumed(spec)
    spec = {key: value for key, value in spec.items() if value is not None and value != {}}
    unknown = tuple(_unknown(seen, shared, header))
    return Fitted(name, spec, _statistics(measured, possible_reuse, seen, shared), unknown)


def _limit(seen: Seen, limited: bool) -> Noted:
    if limited:
        return Noted(seen.longest, "the longest context; sessions end at it")
    room = 2 if len(seen.ends) < FEW_SESSIONS else 1.25
    tokens = -(-int(room * seen.longest) // 1000) * 1000
    return Noted(tokens, f"no session shows a limit: {room:g} times the longest context of {seen.longest}")


def _unknown(seen: Seen, shared: Shared, header: Header) -> list[str]:
    told = []
    if len(seen.ends) == 1:
        told.append("how sessions differ: the trace has one")
    elif len(seen.ends) < FEW_SESSIONS:
        told.append(f"how sessions differ, but roughly: the trace has {len(seen.ends)}")
    if not shared.known and any(shared.contexts):
        why = "the trace has one session" if len(seen.ends) < 2 else "its identities hold inside one session"
        told.append(
            f"what sessions share, since {why}: each has its leading tokens for itself (layers.files, or "
            "layers.repos); if they are one agent's, move these tokens to layers.tools and layers.system"
        )
    if header.content == "opaque":
        told.append("content, so layers are as the importer inferred them")
    if not seen.values["message"]:
        told.append("later user messages and the waits for them: no session has any")
    if not any(key.startswith("tool/") for key in seen.counts):
        told.append("tool calls and their results: no turn follows any")
    if seen.types and not any(end.spawns for end in seen.ends):
        told.append("which turns start subagents: no turn waits for one, so they are left out")
    if seen.counts["without turns"]:
        told.append(f"{seen.counts['without turns']} sessions without a turn")
    return told


def _statistics(measured: Measured, possible_reuse: float | None, seen: Seen, shared: Shared) -> dict[str, float]:
    """The source's statistics that a spec may be held to: those that occur, with more than nothing."""
    found: dict[str, float] = {}
    for name in _TOLERANCES:
        value = possible_reuse if name == "possible_reuse" else measured.statistic(name)
        if value is not None and (value > 0 or name.endswith("reuse")):
            found[name] = value
    if not (shared.tools or shared.system):
        found.pop("leading_p50", None)  # here they are contexts of the sessions' own
    if measured.counts["after_tools"] < 0.9 * seen.counts["tool steps"]:  # calls without names are not counted there
        for name in [each for each in found if each.split("_")[0] in ("loop", "fresh", "tools", "tool")]:
            del found[name]
    return found


def tolerance(name: str, value: float) -> Any:
    """How far a statistic may be off."""
    counted = name.split("_")[0] in ("turns", "main", "loop", "tools", "fan") or name == "subagent_turns_p50"
    return 1.0 if counted and value < SMALL else _TOLERANCES[name]


def _expectation(name: str, value: float, source: str) -> Part:
    return {"target": _shown(name, value), "tolerance": tolerance(name, value), "source": f"the trace {source}"}


def _shown(name: str, value: float | None) -> Any:
    if value is None:
        return "unknown"
    short = float(f"{value:.5g}")
    if "_gap_" in name:
        return seconds_text(short)
    return int(short) if short == int(short) else short
