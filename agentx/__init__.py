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
    "generate": "agentx.generator.write",
    "load_spec": "agentx.generator.spec",
    "load_plan": "agentx.replayer.plan",
    "replay": "agentx.replayer.run",
    "areplay": "agentx.replayer.run",
    "report": "agentx.reporter.reporting",
    "simulate": "agentx.replayer.simulate",
    "compare": "agentx.reporter.compare",
    "compile_capture": "agentx.recorder.compiling",
    "record_client": "agentx.recorder.sdk",
    "Report": "agentx.reporter.reporting",
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
    from agentx.core import Attempt as Attempt
    from agentx.core import Session as Session
    from agentx.core import Turn as Turn
    from agentx.errors import AgentxError as AgentxError
    from agentx.generator.spec import load_spec as load_spec
    from agentx.generator.write import generate as generate
    from agentx.recorder.compiling import compile_capture as compile_capture
    from agentx.recorder.sdk import record_client as record_client
    from agentx.replayer.plan import load_plan as load_plan
    from agentx.replayer.run import areplay as areplay
    from agentx.replayer.run import replay as replay
    from agentx.replayer.simulate import simulate as simulate
    from agentx.reporter.compare import compare as compare
    from agentx.reporter.reporting import Report as Report
    from agentx.reporter.reporting import report as report
    from agentx.results import RunResults as RunResults
    from agentx.results import read_results as read_results
    from agentx.reuse import possible as possible_reuse  # noqa: F401  resolved by name above
    from agentx.trace import TraceReader as TraceReader
    from agentx.trace import TraceWriter as TraceWriter
    from agentx.trace import read_trace as read_trace
