"""How the conditions of two sides differ: trace, plan, target, server, engine rules. Each difference is named by key.

What the server was set to is often the very thing that is compared, so it is told and breaks nothing. What changes the
work itself does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agentx.reporter.compare_caveats import Caveat, Side
from agentx.reporter.compare_figures import Measured
from agentx.reporter.compare_statistics import MINIMUM

WORK = (  # keys of the plan that change what is sent, or when
    "load", "measure", "wire", "history", "length", "gaps", "start", "warmup", "order", "recycle", "overflow", "abort",
    "salt", "acceptance",
)  # fmt: skip
SHOWN = 6  # differences that one sentence names
_NAMES = (
    "name",
    "url",
    "price",
    "headers",
    "key_env",
    "metrics",
    "kind",
    "gpus",
    "model",
)  # told elsewhere, or no matter


def condition_caveats(a: Side, b: Side) -> tuple[Caveat, ...]:
    """Of the first run of each side, after the check that a side's runs are alike."""
    first, second = a.runs[0], b.runs[0]
    alike = [caveat for side in (a, b) for caveat in _within(side)]
    between = (
        *_trace(first, second),
        *_rules(first, second),
        *_plan(first, second, _reseeded(a, b)),
        *_server(first, second),
    )
    return (*alike, *between, *_acceptance(a, b), *_lockstep(a, b), *_salt(a, b))


def same_trace(runs: Iterable[Measured]) -> bool:
    """Whether all replayed one trace, by its content."""
    digests = {one.about.trace_sha256 for one in runs}
    return len(digests) == 1 and None not in digests


def flat(value: object, prefix: str = "") -> dict[str, Any]:
    """Nested keys as `a.b.c`."""
    if not isinstance(value, Mapping):
        return {prefix: value}
    found: dict[str, Any] = {}
    for key, inner in value.items():
        found |= flat(inner, f"{prefix}.{key}" if prefix else str(key))
    return found


def differences(first: object, second: object) -> dict[str, tuple[Any, Any]]:
    """key -> (there, here) of nested maps, sorted by key; an absent key is None."""
    left, right = (flat(one if isinstance(one, Mapping) else {}) for one in (first, second))
    keys = sorted(left.keys() | right.keys())
    return {key: (left.get(key), right.get(key)) for key in keys if left.get(key) != right.get(key)}


def _listed(found: Mapping[str, tuple[Any, Any]]) -> str:
    shown = [f"{key} {_word(left)} / {_word(right)}" for key, (left, right) in list(found.items())[:SHOWN]]
    more = len(found) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _word(value: object) -> str:
    return "unset" if value is None else str(value)


def _within(side: Side) -> Iterator[Caveat]:
    """Repeats of a side that were not of one configuration."""
    for number, one in enumerate(side.runs[1:], 2):
        found = {
            **differences(side.runs[0].about.plan, one.about.plan),
            **differences(_target(side.runs[0]), _target(one)),
            **differences(_told(side.runs[0]), _told(one)),
        }
        found = {key: pair for key, pair in found.items() if key.split(".")[0] not in ("seed", "slo")}
        if found:
            text = f"{side.label}1 and {side.label}{number} are no repeats of each other: {_listed(found)}."
            yield Caveat("repeats", text, float(len(found)), "keys", breaks=True)


def _trace(first: Measured, second: Measured) -> Iterator[Caveat]:
    if not same_trace((first, second)):
        digests = [(one.about.trace_sha256 or "unknown")[:12] for one in (first, second)]
        yield Caveat(
            "traces",
            f"Different traces ({digests[0]}, {digests[1]}): turns cannot be paired, the distributions are compared.",
            breaks=True,
        )


def _rules(first: Measured, second: Measured) -> Iterator[Caveat]:
    rules = [one.about.engine_rules for one in (first, second)]
    if rules[0] != rules[1]:
        told = " / ".join(rule or "a server of its own" for rule in rules)
        yield Caveat("engine_rules", f"The engine rules differ: {told}.", breaks=True)
    simulated = [bool(one.run.settings.get("simulated")) for one in (first, second)]
    if simulated[0] != simulated[1]:
        yield Caveat("simulated", "One run was simulated in virtual time, the other was replayed.", breaks=True)


def _reseeded(a: Side, b: Side) -> bool:
    """Whether every repeat of both sides drew anew: then what a seed does is in the spread between runs."""
    seeds = [[one.about.plan.get("seed") for one in side.runs] for side in (a, b)]
    return all(len(own) >= MINIMUM and len(set(own)) == len(own) for own in seeds)


def _plan(first: Measured, second: Measured, reseeded: bool) -> Iterator[Caveat]:
    found = differences(first.about.plan, second.about.plan)
    found = {key: pair for key, pair in found.items() if key.split(".")[0] not in ("trace", "target", "slo")}
    drawn = not reseeded and any(
        one.about.plan.get("order") == "shuffle" or one.about.plan.get("start") for one in (first, second)
    )
    work = {key: pair for key, pair in found.items() if key.split(".")[0] in WORK or (key == "seed" and drawn)}
    rest = {key: pair for key, pair in found.items() if key not in work and key != "seed"}
    if work:
        yield Caveat("plan", f"The plans make different work: {_listed(work)}.", float(len(work)), "keys", breaks=True)
    if rest:
        yield Caveat("plan_other", f"The plans differ: {_listed(rest)}.", float(len(rest)), "keys")


def _told(one: Measured) -> dict[str, Any]:
    server = one.run.settings.get("server")
    return dict(server) if isinstance(server, Mapping) else {}


def _target(one: Measured) -> dict[str, Any]:
    target = one.run.settings.get("target")
    return {key: value for key, value in target.items() if key not in _NAMES} if isinstance(target, Mapping) else {}


def _launched(one: Measured) -> dict[str, Any]:
    """What tells two launches of one recipe apart: what its image, its model and its machine really were."""
    launch = one.run.settings.get("launch")
    kept = launch if isinstance(launch, Mapping) else {}
    return {key: kept.get(key) for key in ("image_digest", "model_config_sha256", "gpus") if key in kept}


def _server(first: Measured, second: Measured) -> Iterator[Caveat]:
    left, right = _told(first), _told(second)
    versions = left.pop("version", None), right.pop("version", None)
    if versions[0] != versions[1]:
        yield Caveat("server_version", f"Server versions: {_word(versions[0])} / {_word(versions[1])}.")
    if first.about.model != second.about.model:
        text = f"Models: {first.about.model or 'unknown'} / {second.about.model or 'unknown'}."
        yield Caveat("model", text, breaks=True)
    if first.about.gpus != second.about.gpus:
        yield Caveat("gpus", f"GPUs: {first.about.gpus or 'unknown'} / {second.about.gpus or 'unknown'}.")
    for told in (left, right):
        told.pop("engine_rules", None), told.pop("model", None)
    for kind, noun, found in (
        ("server_flags", "What the servers say of themselves differs", differences(left, right)),
        ("target", "The targets differ", differences(_target(first), _target(second))),
        ("launched", "What was launched differs", differences(_launched(first), _launched(second))),
    ):
        if found:
            yield Caveat(kind, f"{noun}: {_listed(found)}.", float(len(found)), "keys")
    silent = [label for label, told in (("the first", left), ("the second", right)) if not told]
    if silent:
        text = f"Of {' and '.join(silent)} side's server nothing is known: its version and flags may differ."
        yield Caveat("server_unknown", text)


def synthetic_acceptance(one: Measured) -> bool:
    """Whether the run's speculation was drawn from a model instead of a draft's real proposals."""
    speculation = flat(one.run.settings.get("target") or {}).get("speculation.algorithm")
    return bool(one.about.plan.get("acceptance")) or (one.about.engine_rules is not None and speculation is not None)


def _acceptance(a: Side, b: Side) -> Iterator[Caveat]:
    labels = [side.label for side in (a, b) if any(synthetic_acceptance(one) for one in side.runs)]
    if labels:
        text = f"Speculative acceptance was simulated in {' and '.join(labels)}: speed is of an assumed draft."
        yield Caveat("synthetic_acceptance", text)


def _lockstep(a: Side, b: Side) -> Iterator[Caveat]:
    """Whose order the runs of a side were sent in, where it was another run's."""
    held: dict[str, str] = {}
    orders = set()
    for side in (a, b):
        for one in side.runs:
            kept = one.run.settings.get("order_from")
            name = str(kept["run"]) if isinstance(kept, Mapping) and "run" in kept else None
            orders.add(name or one.name)
            if name is not None:
                held[side.label] = name
    if held:
        told = " and ".join(f"{label} in that of {name}" for label, name in held.items())
        one_order = "Speed made no order there, so a difference of reuse is the cache's."
        several = "Not all are in one order, so speed may be in a difference of reuse."
        text = f"Sent in another run's order: {told}. {one_order if len(orders) == 1 else several}"
        yield Caveat("lockstep", text)


def _salt(a: Side, b: Side) -> Iterator[Caveat]:
    """The same words to one server that runs on: the later run finds the earlier one's cache."""
    seen: dict[tuple[str, str], str] = {}
    for side in (a, b):
        for one in side.runs:
            target = one.run.settings.get("target")
            url = target.get("url") if isinstance(target, Mapping) else None
            if one.about.salt is None or not isinstance(url, str):
                continue
            other = seen.setdefault((url, one.about.salt), one.name)
            if other != one.name:
                text = f"{other} and {one.name} sent the same words (salt {one.about.salt}) to one address."
                yield Caveat("same_salt", f"{text} Unless it was flushed between them, the later one began warm.")
