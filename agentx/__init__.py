"""agentx: synthesise, record and replay agent sessions, and account for every reused token.

The public names, resolved when first asked for; everything else is found by its module's path.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "AgentxError": "agentx.errors",
    "Attempt": "agentx.core",
    "Session": "agentx.core",
    "Turn": "agentx.core",
    "read_trace": "agentx.trace",
    "TraceReader": "agentx.trace",
    "TraceWriter": "agentx.trace",
    "read_results": "agentx.results",
    "RunResults": "agentx.results",
    "possible_reuse": "agentx.reuse:possible",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'agentx' has no attribute {name!r}")
    module, _, attribute = home.partition(":")
    value = getattr(import_module(module), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from agentx.core import Attempt, Session, Turn
    from agentx.errors import AgentxError
    from agentx.results import RunResults, read_results
    from agentx.reuse import possible as possible_reuse
    from agentx.trace import TraceReader, TraceWriter, read_trace
