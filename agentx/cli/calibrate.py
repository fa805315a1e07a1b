"""agentx calibrate: fit the embedded engine's timing to runs of a server, and say how far it is off."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentx.errors import EXIT_OK, BadInput

if TYPE_CHECKING:
    from agentx.engine.settings import EngineSettings
    from agentx.replayer.calibration import Calibration, Figure
    from agentx.reporter.table import Block

EPILOG = """examples:
  agentx calibrate run/ -o node.yaml
  agentx calibrate run-a/ run-b/ -o node.yaml                     several runs of one server
  agentx calibrate run/ -o node.yaml --predict run-with-host-tier/
  agentx calibrate run/ -o node.yaml --target my-server.yaml      where the server does not tell its cache
  agentx replay a.trace --target node.yaml

Whole sessions are held out and the error on them is printed. TTFT and TPOT hang on where in a decode step a request
comes: "by chance" is what the figure is in single plays of the same requests.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", type=Path, help="run folders of one server")
    parser.add_argument("-o", "--out", metavar="TARGET", type=Path, required=True, help="the target file to write")
    parser.add_argument("--force", action="store_true", help="overwrite TARGET")
    parser.add_argument("--predict", metavar="RUN", type=Path, help="a run of the same server with another cache")
    parser.add_argument(
        "--hold-out", metavar="SHARE", type=float, default=0.25, help="of the sessions (default: %(default)s; 0: none)"
    )
    parser.add_argument(
        "--target", metavar="TARGET", help="a target of kind engine that describes the server's cache and scheduler"
    )


def run(args: argparse.Namespace) -> int:
    from agentx.replayer.calibration import calibrate
    from agentx.replayer.calibration_yaml import target_text
    from agentx.reporter.table import as_text

    if args.out.exists() and not args.force:
        raise BadInput("exists already", file=args.out, hint="--force overwrites it")
    args.out.parent.mkdir(parents=True, exist_ok=True)  # what cannot be is known before the minutes of fitting
    found = calibrate(
        args.runs, predict=args.predict, hold_out=args.hold_out, target=_described(args.target), told=_say
    )
    args.out.write_text(target_text(found), encoding="utf-8")
    _say(f"target written to {args.out}")
    sys.stdout.write(as_text(blocks(found)))
    return EXIT_OK


def _described(name: str | None) -> EngineSettings | None:
    if name is None:
        return None
    from agentx import catalog
    from agentx.engine.settings import load_engine

    return load_engine(catalog.resolve("targets", name))


def _say(line: str) -> None:
    print(f"agentx calibrate: {line}", file=sys.stderr)


def blocks(found: Calibration) -> list[Block]:
    """The report: constants, errors on fitted and held-out sessions, the prediction, what is not known."""
    from agentx.reporter.table import Heading, Lines

    held = f"{found.held_sessions} held-out sessions"
    parts: list[Block] = [Heading("Constants"), _constants(found)]
    if found.held_out:
        parts += [Heading(f"Error on {held}, which the fit never saw"), _figures(found.held_out)]
    else:
        parts.append(Lines(("No session was held out: the errors below are of what was fitted, and no test.",)))
    parts += [Heading(f"Error on {found.fitted_sessions} fitted sessions"), _figures(found.fitted)]
    if found.prediction is not None:
        changed = "; ".join(f"{key} {before} -> {after}" for key, before, after in found.prediction.changed)
        parts.append(Heading(f"Prediction of {found.prediction.folder}, which the fit never saw"))
        parts.append(Lines((f"Changed: {changed or 'nothing'}. The pauses of its agents are those of that run.",)))
        parts.append(_figures(found.prediction.figures))
    parts.append(
        Lines((*found.notes, "Figures of a model of SGLang's rules (engine rules: SGLang 0.5.23)."), bullet=True)
    )
    return parts


def _constants(found: Calibration) -> Block:
    from agentx.replayer.calibration_yaml import span
    from agentx.reporter.table import Table

    rows = [(name, span(value), found.fit.fixed.get(name, "fitted")) for name, value in found.settings.timing]
    return Table(("constant", "value", "how"), tuple(rows))


def _figures(figures: Sequence[Figure]) -> Block:
    from agentx.reporter.table import Table

    return Table(("figure", "n", "observed", "simulated", "error", "by chance"), tuple(map(_row, figures)))


def _row(figure: Figure) -> tuple[str, ...]:
    if figure.unit == "share":
        values = [f"{value:.1%}" for value in (figure.observed, figure.simulated, figure.lowest, figure.highest)]
        error = f"{figure.error * 100:+.1f} points"
    else:
        values = [f"{value * 1e3:,.4g}" for value in (figure.observed, figure.simulated, figure.lowest, figure.highest)]
        error = f"{figure.error:+.1%}"
    unit = "" if figure.unit == "share" else ", ms"
    return figure.name + unit, f"{figure.n:,}", values[0], values[1], error, f"{values[2]} to {values[3]}"
