"""From what was seen in a trace to the parts of a spec. Each part is plain data; its leaves may carry a remark.

A leaf is a `Fit` (a distribution and how well it fits), a `Noted` value, or a bare one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentx.generator.fit_families import Fit, distance, fit
from agentx.generator.fit_layers import MAX_POOL, Shared, pool
from agentx.generator.fit_seen import FULL, MAIN, Ended, Seen

TYPES = 12  # tool classes and subagent types that are told apart; the rest is one more
APART = 0.12  # distance from which two samples are two distributions


@dataclass(frozen=True, slots=True)
class Noted:
    """A value of a spec, and a remark beside it."""

    value: Any
    remark: str


Part = dict[str, Any]


def share(part: float, whole: float) -> float:
    return float(f"{part / whole:.4g}") if whole else 0.0


# --- layers --------------------------------------------------------------------------------------------------------


def layers(seen: Seen, shared: Shared) -> Part:
    """Tools and system prompt, the pool of contexts, the sessions' own files, documents."""
    part: Part = {}
    if shared.tools:
        part["tools"] = Noted(shared.tools, "the same in all sessions")
    if shared.system:
        part["system"] = Noted(shared.system, "the same in all sessions")
    mine = [context for context in shared.contexts if context is not None]
    files = list(seen.values["files"])
    sizes = list(seen.values["file"])
    if mine and not shared.known and not (seen.values["compaction summary"] or seen.counts["resets"]):
        files, sizes = files or [0.0] * len(mine), [*sizes, *(tokens for _, tokens in mine)]
        files = [count + 1 for count in files]
    elif mine:
        part["repos"] = _pool(mine, shared.known)
        if len(mine) < len(shared.contexts):
            part["repos"]["share"] = round(len(mine) / len(shared.contexts), 6)
    if files:
        files += [0.0] * (len(seen.fronts.fronts) - len(files))
        part["files"] = {"count": fit(files), "tokens": fit(sizes, least=1)}
    if picked := [document for message in [*shared.documents, *seen.fronts.later] for document in message]:
        each = [float(len(message)) for message in [*shared.documents, *seen.fronts.later]]
        part["documents"] = {**_pool(picked, known=True), "each": fit(each)}
    return part


def _pool(picked: Sequence[tuple[Any, int]], known: bool) -> Part:
    """A pool, from one pick of it after another."""
    count, zipf = pool([identity for identity, _ in picked]) if known else (MAX_POOL, 0.0)
    lengths = [float(tokens) for tokens in dict(picked).values()]
    why = f"{len(lengths)} were seen in {len(picked)} choices" if known else "not known to be shared"
    return {"count": Noted(count, why), "tokens": fit(lengths, least=1), "zipf": round(zipf, 2)}


# --- turns ---------------------------------------------------------------------------------------------------------


def uncensored(values: Sequence[tuple[float, bool]]) -> list[float]:
    """Values of which some, marked, were cut short, as a sample of the same size of what they would have been.

    Each value that was cut gives its weight to the larger ones (Efron 1967, which is Kaplan and Meier's estimate).
    """
    ordered = sorted(values)
    weight, sample = 1.0, []
    for place, (value, cut) in enumerate(ordered):
        left = len(ordered) - place
        if cut and left > 1:
            weight *= left / (left - 1)
        else:
            sample.append((value, weight))
    total, level = sum(each for _, each in sample), 0.0
    result: list[float] = []
    for value, each in sample:
        level += each / total * len(ordered)
        result += [value] * max(0, round(level) - len(result))
    return result


def full(ends: Sequence[Ended], longest: int) -> bool:
    """Whether so many of the sessions ended near the longest context that it is a limit; not if all are alike."""
    near = sum(each.last >= FULL * longest for each in ends)
    calls = {sum(loop.calls for loop in each.loops) for each in ends}
    return len(ends) >= 30 and near >= max(3, 0.02 * len(ends)) and len(calls) > 1


def turns(seen: Seen) -> Part:
    ends, longest = seen.ends, seen.longest
    limited = full(ends, longest)
    users, loops = [], []
    for end in ends:
        stopped = limited and end.last >= FULL * longest
        users.append((float(len(end.loops)), stopped))
        for place, loop in enumerate(end.loops):
            loops.append((float(loop.calls), loop.cut or (stopped and place == len(end.loops) - 1)))
    return {
        "user": fit(uncensored(users), least=1, otherwise=1),
        "loop": fit(uncensored(loops), least=1, otherwise=1),
        "parallel": fit(seen.values[f"{MAIN}/parallel"], least=1, otherwise=1),
    }


def by_gap(seen: Seen, who: str, quantity: str, least: int) -> Any:
    """One distribution, or one for each kind of gap where they differ."""
    tool, human = (seen.values[f"{who}/{quantity}/{after}"] for after in ("tool", "human"))
    together = fit([*tool, *human], least=least, otherwise=least)
    if len(tool) < 20 or len(human) < 20 or not _differ(tool, human):
        return together
    return {"by_gap": {"tool": fit(tool, least=least), "human": fit(human, least=least)}}


def _differ(left: Sequence[float], right: Sequence[float]) -> bool:
    """Whether two samples are further apart than APART, and than chance would have them (1 % point)."""
    a, b = sorted(left), sorted(right)
    chance = 1.63 * math.sqrt(1 / len(a) + 1 / len(b))
    return distance(a, b) > max(APART, chance)


def tokens(seen: Seen, shared: Shared) -> Part:
    reasoning = any(any(seen.values[f"{MAIN}/reasoning/{after}"]) for after in ("tool", "human"))
    first = seen.values["first message"]
    if not seen.fronts.labelled:  # what sessions share is in it
        lengths = [0 if context is None else context[1] for context in shared.contexts]
        common = shared.tools + shared.system
        first = [max(1.0, value - context - common) for value, context in zip(first, lengths, strict=True)]
    part: Part = {
        "first_message": fit(first, least=1, otherwise=1),
        "message": fit(seen.values["message"], least=1, otherwise=1),
        "tool_result": fit(seen.values[f"{MAIN}/result"], least=1, otherwise=1),
        "reply": by_gap(seen, MAIN, "reply", 1),
    }
    if reasoning:
        part["reasoning"] = by_gap(seen, MAIN, "reasoning", 0)
    if seen.counts["stripped"]:
        part["strip_reasoning"] = True
    return part


def gaps(seen: Seen) -> Part:
    counts = {key.removeprefix("tool/"): n for key, n in seen.counts.items() if key.startswith("tool/")}
    names = sorted(counts, key=lambda name: (-counts[name], name))
    told, rest = names[:TYPES], names[TYPES:]
    total = sum(counts.values())
    classes: Part = {}
    for name in told:
        classes[name] = _tool(seen, [name], counts[name] / total)
    if rest:
        classes["other"] = _tool(seen, rest, sum(counts[name] for name in rest) / total)
    if not classes:
        classes["none"] = {"weight": Noted(1, "assumed: the trace has no tool call"), "time": "1s"}
    to_one(classes)
    return {"human": fit(seen.values["human gap"], "seconds", otherwise=30), "tools": classes}


def _tool(seen: Seen, names: Sequence[str], weight: float) -> Part:
    times = [value for name in names for value in seen.values[f"tool/{name}/time"]]
    part: Part = {"weight": weight, "time": fit(times, "seconds", otherwise=1)}
    mine = [value for name in names for value in seen.values[f"tool/{name}/result"]]
    everyone = seen.values[f"{MAIN}/result"]
    if 30 <= len(mine) < len(everyone) and _differ(mine, everyone):
        part["result"] = fit(mine, least=1)
    return part


def to_one(classes: Part) -> None:
    """Round the weights of named classes so that they sum to 1."""
    for part in classes.values():
        if not isinstance(part["weight"], Noted):
            part["weight"] = max(1e-6, round(part["weight"], 6))
    weights = [part["weight"] for part in classes.values() if not isinstance(part["weight"], Noted)]
    first = next(iter(classes.values()))
    if weights:
        first["weight"] = round(first["weight"] + 1 - sum(weights), 6)


def fits(part: Any, path: str = "") -> list[tuple[str, Fit]]:
    """All distributions of a part, with their places."""
    if isinstance(part, Fit):
        return [(path, part)]
    if not isinstance(part, dict):
        return []
    return [found for key, value in part.items() for found in fits(value, f"{path}.{key}" if path else str(key))]
