"""What was run and whether it is whole, read from the run's settings as far as they go.

Settings are written by the replayer; older or foreign ones may lack any key, which is then unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from agentx.engine.facts import RULES
from agentx.results import RunResults

RECORDED_HISTORY = (
    "Recorded history was replayed: what the server itself generated is never sent back, so its KV is never reused."
)


@dataclass(frozen=True, slots=True)
class About:
    """None: the run does not say. `state`: done | interrupted | failed | partial (killed, or torn in the middle)."""

    state: str
    reason: str | None
    torn: str | None
    started: str | None
    trace: str | None
    trace_sha256: str | None
    target: str | None
    target_kind: str | None
    model: str | None
    gpus: int | None
    engine_rules: str | None
    plan: Mapping[str, Any]
    wire: str | None
    history: str | None
    seed: int | None
    salt: str | None
    notes: tuple[str, ...]
    servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # what each of several told, by its address
    addresses: int = 1  # that the target gave turns to
    foreign: str | None = None  # whose artifacts these are where agentx did not measure, and what they lack
    lost: tuple[tuple[int, float], ...] = ()  # workers that went away, and at which second of the run

    @property
    def title(self) -> str:
        """What was run on what, as headings say it."""
        return f"{self.trace or 'unknown trace'} on {self.target or 'unknown target'}"

    @property
    def marked(self) -> str:
        """The title, and for a run of the embedded engine that its figures are a model's."""
        return self.title + (f", a model: engine rules {self.engine_rules}" if self.engine_rules else "")

    @property
    def whole(self) -> bool:
        return self.state == "done"


def about(run: RunResults) -> About:
    """Everything but the figures."""
    plan, target, trace, server = (_map(run.settings.get(key)) for key in ("plan", "target", "trace", "server"))
    kind = _text(target.get("kind"))
    gpus = target.get("gpus")
    return About(
        state=_state(run),
        reason=_text((run.end or {}).get("reason")),
        torn=None if run.tear is None else str(run.tear),
        started=_moment(run.wall),
        trace=_text(trace.get("name")) or _base(trace.get("path")),
        trace_sha256=_text(trace.get("sha256")),
        target=_text(target.get("name")) or _url(target) or kind,
        target_kind=kind,
        model=_text(target.get("model")) or _text(server.get("model")),
        gpus=gpus if isinstance(gpus, int) and gpus > 0 else None,
        engine_rules=_engine_rules(kind, server),
        plan=plan,
        wire=_text(plan.get("wire")),
        history=_text(plan.get("history")),
        seed=plan.get("seed", run.settings.get("seed")),
        salt=_text(run.settings.get("salt")),
        notes=run.notes,
        addresses=run.addresses,
        foreign=_text(run.settings.get("foreign")),
        servers={url: _map(told) for url, told in _map(run.settings.get("servers")).items()},
        lost=tuple((worker, at) for worker, at in (run.end or {}).get("lost", ())),
    )


def _state(run: RunResults) -> str:
    if run.tear is not None or run.end is None:
        return "partial"
    return str(run.end.get("outcome", "partial"))


def _engine_rules(kind: str | None, server: Mapping[str, Any]) -> str | None:
    """The stamp of the embedded engine's model: by the target's kind, or because the server says that it is one."""
    told = _text(server.get("engine_rules"))
    return told or (RULES if kind == "engine" else None)


def _moment(wall: float) -> str | None:
    if wall <= 0:
        return None
    return datetime.fromtimestamp(wall, timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")


def _url(target: Mapping[str, Any]) -> str | None:
    """The first of its addresses, without what may stand in it before an @."""
    urls = target.get("urls")
    first = _text(target.get("url")) or (_text(urls[0]) if isinstance(urls, list | tuple) and urls else None)
    return None if first is None else re.sub(r"//[^/@]*@", "//", first)


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _base(path: object) -> str | None:
    """The file's name without its folder: two machines write the same report."""
    return path.replace("\\", "/").rsplit("/", 1)[-1] if isinstance(path, str) and path else None
