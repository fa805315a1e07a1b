"""From what was seen in a trace to the parts of a spec that befall sessions: subagents, side calls, compaction, resets,
pull-backs, aborts, models, arrivals. A part is None where the trace shows none of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from agentx.generator.fit_families import drawn, fit
from agentx.generator.fit_layers import Shared
from agentx.generator.fit_parts import Noted, Part, by_gap, share, to_one
from agentx.generator.fit_seen import MAIN, Seen

FAR = 3.0  # first messages that are so many times as long are of another kind


def subagents(seen: Seen) -> Part | None:
    if not seen.types or not any(end.spawns for end in seen.ends):
        return None
    sessions, each = delegation([(end.steps, end.spawns) for end in seen.ends])
    total = sum(sum(models.values()) for models in seen.types.values())
    types = {name: _agent_type(seen, name, sum(models.values()) / total) for name, models in seen.types.items()}
    to_one(types)
    part: Part = {
        "sessions": Noted(
            sessions, f"{sum(end.spawns > 0 for end in seen.ends)} of {len(seen.ends)} sessions started any"
        ),
        "share": each,
        "count": fit(seen.values["spawn count"], least=1),
    }
    if seen.counts["several"] and seen.counts["serial"] > 0.5 * seen.counts["several"]:
        part["run"] = "serial"
    if seen.depth > 1:
        part["depth"] = min(8, seen.depth)
    return {**part, "types": types}


def delegation(sessions: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """(share of the sessions that delegate at all, share of their steps that do), from (steps, delegations) of each.

    By expectation and maximisation: a session without a delegation may be one that had too few steps for it.
    """
    able, each = 0.5, 0.05
    spawns = sum(count for _, count in sessions)
    for _ in range(200):
        chances = [
            1.0 if count else able * (1 - each) ** steps / (able * (1 - each) ** steps + 1 - able)
            for steps, count in sessions
        ]
        able = min(0.9999, max(1e-4, sum(chances) / len(sessions)))
        tried = sum(chance * steps for chance, (steps, _) in zip(chances, sessions, strict=True))
        each = min(1.0, spawns / max(tried, 1e-9))
    return (1.0 if able > 0.98 else float(f"{able:.4g}")), max(1e-6, float(f"{each:.4g}"))


def _agent_type(seen: Seen, name: str, weight: float) -> Part:
    who = f"type {name}"
    values = seen.values
    tools, system = (int(_middle(values[f"{who}/{layer}"])) for layer in ("tools", "system"))
    lead = [a + b for a, b in zip(values[f"{who}/tools"], values[f"{who}/system"], strict=True)]
    prompts = [max(1.0, p + both - tools - system) for p, both in zip(values[f"{who}/prompt"], lead, strict=True)]
    part: Part = {
        "weight": weight,
        "tools": tools,
        "system": system,
        "prompt": fit(prompts, least=1),
        "turns": fit(values[f"{who}/calls"], least=1),
        "report": fit(values[f"{who}/report"], least=1),
    }
    if values[f"{who}/result"]:
        part["tool_result"] = fit(values[f"{who}/result"], least=1)
    if values[f"{who}/reply/tool"] or values[f"{who}/reply/human"]:
        part["reply"] = by_gap(seen, who, "reply", 1)
        if any(values[f"{who}/reasoning/tool"]) or any(values[f"{who}/reasoning/human"]):
            part["reasoning"] = by_gap(seen, who, "reasoning", 0)
    if values[f"{who}/parallel"]:
        part["parallel"] = fit(values[f"{who}/parallel"], least=1)
    steps = sum(seen.counts[f"{who}/steps on level {depth}"] for depth in range(1, min(8, seen.depth)))
    if seen.counts[f"{who}/spawns"] and steps:
        part["spawns"] = min(1.0, share(seen.counts[f"{who}/spawns"], steps))
    model, often = seen.types[name].most_common(1)[0]
    if model and model != seen.models.most_common(1)[0][0] and often > 0.5 * sum(seen.types[name].values()):
        part["model"] = model
    return part


def _middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0


def side_calls(seen: Seen) -> Part | None:
    part: Part = {}
    compactions = len(seen.values["compaction summary"])
    for name, side in sorted(seen.sides.items()):
        at = side.occasions.most_common(1)[0][0]
        chances = {"start": len(seen.ends), "message": seen.counts["messages"], "compaction": compactions}[at]
        count = len(side.prompts)
        whole = side.whole > count / 2
        part[name] = {
            "at": at,
            "share": min(1.0, max(1e-6, share(count, chances))) if chances else 1.0,
            "context": "whole" if whole else "none",
            "prompt": fit(side.prompts, least=1),
            "reply": fit(side.replies, least=1),
        }
        if not whole and (system := int(_middle(side.systems))):
            part[name]["system"] = system
        if side.joined > count / 2:
            part[name]["waits"] = True
        model = side.models.most_common(1)[0][0]
        if model and side.others > count / 2:
            part[name]["model"] = model
    return part or None


# --- events --------------------------------------------------------------------------------------------------------


def compaction(seen: Seen, shared: Shared) -> Part | None:
    triggers = seen.values["compaction trigger"]
    if not triggers:
        return None
    trigger = fit(triggers, least=1)
    usual = _middle(triggers)
    done = sum(end.compacted for end in seen.ends)
    reached = sum(end.compacted or end.longest >= usual for end in seen.ends)
    front = shared.tools + shared.system
    keep = ["tools", "system"]
    if any(context is not None for context in shared.contexts) and _middle(seen.values["compaction kept"]) > front:
        keep.append("shared")
    elif _middle(seen.values["compaction kept"]) < front:
        keep = []
    part: Part = {
        "trigger": trigger,
        "share": Noted(max(1e-4, share(done, max(1, reached))), f"{done} of {reached} sessions that got there"),
        "keep": keep,
        "summary": fit(seen.values["compaction summary"], least=1),
    }
    return part if min(drawn(trigger.shape, "tokens")) > 0 else None


def resumed(seen: Seen) -> Part | None:
    history = seen.values["history"]
    if not history:
        return None
    sessions = len(seen.values["first message"])
    note = f"{len(history)} of {sessions} sessions open with replies of old"
    return {"share": Noted(share(len(history), sessions), note), "tokens": fit(history, least=1)}


def split_resumed(spec: Part) -> None:
    """First messages of two kinds, one far longer: the long ones are resumed sessions whose parts are not told."""
    first = spec["tokens"]["first_message"]
    if spec["resumed"] is not None or first.family != "lognormals" or len(first.shape["mixture"]) < 2:
        return
    low, high = first.shape["mixture"]
    short, long = low["lognormal"], high["lognormal"]
    if long["median"] < FAR * short["median"]:
        return
    limit = {"max": first.shape["max"]}
    spec["tokens"]["first_message"] = Noted({"lognormal": short, **limit}, f"the shorter of two kinds; {first.told}")
    history = {"lognormal": {**long, "median": long["median"] - short["median"]}, **limit}
    spec["resumed"] = {
        "share": Noted(high["weight"], "first prompts of the longer kind"),
        "tokens": Noted(history, first.told),
    }


def groups(seen: Seen) -> Part | None:
    size = seen.fronts.group()
    return {"size": Noted(min(size, 100_000), "sessions that open with the same message")} if size else None


def resets(seen: Seen) -> Part | None:
    count = seen.counts["resets"]
    return {"share": Noted(share(count, seen.counts["messages"]), f"{count} later messages")} if count else None


def pull_backs(seen: Seen) -> Part | None:
    count, steps = seen.counts["pull backs"], seen.counts["tool steps"]
    if not count or not steps:
        return None
    part: Part = {
        "share": Noted(min(1.0, share(count, steps)), f"{count} of {steps} steps"),
        "lost": fit(seen.values["lost"], "share"),
    }
    if seen.counts["rewritten"]:
        part["rewritten"] = share(seen.counts["rewritten"], count)
    return part


def aborts(seen: Seen) -> Part | None:
    count = seen.counts["aborts"]
    if not count:
        return None
    replies = [value for after in ("tool", "human") for value in seen.values[f"{MAIN}/reply/{after}"]]
    usual = sum(replies) / len(replies) if replies else 0.0
    come = sum(seen.values["aborted reply"]) / count
    part: Part = {"share": Noted(share(count, seen.counts["calls"]), f"{count} calls")}
    if come and usual:
        part["kept"] = {"uniform": {"low": 0, "high": min(1.0, float(f"{2 * come / usual:.3g}"))}}
    return part


def models(seen: Seen) -> Part | None:
    if set(seen.models) <= {""}:
        return None
    total = sum(seen.models.values())
    weights = {name or "unknown": round(count / total, 6) for name, count in seen.models.most_common()}
    first = next(iter(weights))
    weights[first] = round(weights[first] + 1 - sum(weights.values()), 6)
    part: Part = {"weights": weights}
    if len(weights) > 1 and seen.counts["switches"]:
        part["switch"] = share(seen.counts["switches"], seen.counts["messages"])
    return part


def arrivals(seen: Seen) -> Part | None:
    times = sorted(seen.arrivals)
    if len(times) < 3 or times[-1] <= times[0]:
        return None
    waits = [later - earlier for earlier, later in pairwise(times)]
    mean = sum(waits) / len(waits)
    cv = math.sqrt(sum((wait - mean) ** 2 for wait in waits) / len(waits)) / mean
    rate = float(f"{min(1e6, 1 / mean):.4g}")
    if abs(cv - 1) <= max(0.1, 2 / math.sqrt(len(waits))):
        return {"kind": "poisson", "per_second": Noted(rate, f"intervals vary by {cv:.2f}, as independent arrivals do")}
    return {"kind": "gamma", "per_second": rate, "cv": min(100.0, max(0.01, float(f"{cv:.3g}")))}
