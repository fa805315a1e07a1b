"""Experiment 4: the cliff in small on a real SGLang, foretold by a model that saw one to three sessions only.

    python -m benchmarks.reproductions.live FOLDER --calibrate URL                1, 2 and 3 sessions, and the model
    python -m benchmarks.reproductions.live FOLDER --predict URL --sessions 4 6 8     forecasts first, then the runs
    python -m benchmarks.reproductions.live FOLDER --predict URL --sessions 4 8 --host 36000 --name host
    python -m benchmarks.reproductions.live FOLDER --collect                          into live.json beside this file

The server is one that nobody else uses, with a small pool and contexts of some thousand tokens; `--host` says how many
tokens its host tier has. Every forecast is in its run's folder before the run's first request is sent.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from agentx.cutting import Limits, cut
from agentx.generator.spec import load_spec
from agentx.generator.write import generate
from agentx.replayer.calibration import calibrate
from agentx.replayer.calibration_yaml import target_text
from agentx.replayer.run import replay
from agentx.reporter.forecasts import as_yaml, make_forecast
from agentx.reporter.scored import FORECAST, ledger

KEPT = Path(__file__).with_name("live.json")
SEED, DRAWS = 11, 20
FEW, REPEATS = (1, 2, 3), 2
PLAN = "agentx: replay/1\nsalt: session\nlength: exact\ngaps: {scale: 0.05, tree_idle_cap: 1s}\n"


def work(folder: Path) -> Path:
    """The trace: eight sessions of coding-agent, six turns each at most, contexts below 9,000 tokens."""
    path = folder / "work.trace"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        whole = generate(load_spec("coding-agent"), seed=SEED, sessions=60, out=folder / "whole.trace")
        cut(whole, path, Limits(sessions=8, turns=6, max_context=9000))
        (folder / "plan.yaml").write_text(PLAN)
    return path


def fit(folder: Path, url: str) -> None:
    """Runs of one to three sessions at a time, and the model that they give."""
    trace = work(folder)
    runs = []
    for lanes in FEW:
        out = folder / f"fit-{lanes}"
        if not out.exists():
            replay(trace, plan=folder / "plan.yaml", target=url, out=out, sets=[f"load.sessions={lanes}"])
        runs.append(out)
    (folder / "model.yaml").write_text(target_text(calibrate(runs)))


def foretell(folder: Path, url: str, name: str, sessions: list[int], sets: list[str]) -> None:
    """The forecasts of all runs, then the runs."""
    trace, model = work(folder), str(folder / "model.yaml")
    (folder / "forecasts").mkdir(exist_ok=True)
    for lanes in sessions:
        path = folder / "forecasts" / f"{name}-{lanes}.yaml"
        if not path.exists():
            more = [f"load.sessions={lanes}", *sets]
            found = make_forecast(trace, plan=folder / "plan.yaml", target=model, sets=more, draws=DRAWS)
            path.write_text(as_yaml(found))
    for lanes in sessions:
        for number in range(REPEATS):
            out = folder / "runs" / f"{name}-{lanes}-{number}"
            if not out.exists():
                replay(trace, plan=folder / "plan.yaml", target=url, out=out, sets=[f"load.sessions={lanes}"])
                (out / FORECAST).write_bytes((folder / "forecasts" / f"{name}-{lanes}.yaml").read_bytes())


def collect(folder: Path) -> list[dict[str, Any]]:
    """One row for each figure of each run, and what stands in the model."""
    return [
        {
            "run": scored.run,
            "figure": each.name,
            **each.expected.model_dump(),
            "observed": each.observed,
            "inside": each.inside,
        }
        for scored in ledger(folder / "runs")
        for each in scored.scores
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--calibrate", metavar="URL")
    parser.add_argument("--predict", metavar="URL")
    parser.add_argument("--sessions", type=int, nargs="+", default=[4, 6, 8])
    parser.add_argument("--host", type=int, default=0, metavar="TOKENS")
    parser.add_argument("--name", default="plain")
    parser.add_argument("--collect", action="store_true")
    args = parser.parse_args()
    began = time.monotonic()
    if args.calibrate:
        fit(args.folder, args.calibrate)
    if args.predict:
        sets = [f"target.cache.host.tokens={args.host}"] if args.host else []
        foretell(args.folder, args.predict, args.name, args.sessions, sets)
    if args.collect:
        KEPT.write_text(json.dumps(collect(args.folder), indent=1) + "\n")
    print(f"{time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
