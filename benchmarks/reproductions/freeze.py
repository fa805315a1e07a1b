"""What is frozen before anything is predicted: the workload's facts, and three constants of the node's timing.

    python -m benchmarks.reproductions.freeze --keep FOLDER

fits `prefill_token_context`, `decode_step` and `decode_request` of sim-mi325x-glm-5.2-fp8 to concurrency 1, 2 and 3 of
InferenceX's curve, by the medians over eight runs, and prints them; they are then written into the target by hand. TTFT
tells the first (mean of the three logarithms: one run each was published, and a cold session moves any of them), TPOT
the other two by a line over the requests that stream at once. No other row of any published table is read here.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import numpy as np

from agentx.engine.settings import EngineSettings, Timing
from agentx.replayer.targets import resolve_target
from agentx.reporter.references import Reference, load_reference
from benchmarks.reproductions.points import Answer, Configuration, Point, run_all
from benchmarks.reproductions.statistics import at

WORKLOAD, NODE, PLAN, CURVE = "claude-code-1m", "sim-mi325x-glm-5.2-fp8", "agentx-c4", "inferencex-mi325x-glm-5.2-fp8"
SEEDS = range(8)  # of the fit; the experiments have others
FITTED = (1, 2, 3)
ROUNDS = 3
STEP = 2.99  # tokens of a verification step: a TPOT times this is one


def lanes(count: int, *sets: str, name: str = "") -> Configuration:
    """So many sessions at a time on the node, with the recipe's limit of running requests: twice as many."""
    load = (f"load.sessions={count}", f"target.scheduler.max_running={2 * count}")
    return Configuration(name or f"c{count}", WORKLOAD, PLAN, NODE, (*load, *sets))


def timing_sets(timing: Timing) -> tuple[str, ...]:
    """The three constants as overrides of the target."""
    return (
        f"target.timing.prefill_token_context={timing.prefill_token_context * 1e9:.3g}ns",
        f"target.timing.decode_step={timing.decode_step * 1e3:.3g}ms",
        f"target.timing.decode_request={timing.decode_request * 1e3:.3g}ms",
    )


def fit(timing: Timing, folder: Path, workers: int) -> Timing:
    """The constants after some rounds of simulate and correct. Prints each round."""
    curve = load_reference(CURVE)
    for number in range(ROUNDS):
        sets = timing_sets(timing)
        points = [Point(lanes(count, *sets), seed) for seed in SEEDS for count in FITTED]
        answers = run_all(points, folder, workers=workers, until=math.inf)
        print(f"round {number}: {', '.join(sets)}", flush=True)
        timing = corrected(timing, curve, answers)
    print(f"fitted: {', '.join(timing_sets(timing))}")
    return timing


def corrected(timing: Timing, curve: Reference, answers: list[Answer[Point]]) -> Timing:
    """One correction of the constants, from what the runs gave and what was published."""
    ratios, streams, steps = [], [], []
    for count in FITTED:
        row = curve.rows[f"c{count}"].figures
        found = [each.figures for each in answers if each.job.configuration.name == f"c{count}"]
        ttft, tpot = (at([each[name] for each in found], 50) for name in ("ttft_mean", "tpot_mean"))
        print(f"  c{count}: TTFT {ttft:.2f} s ({row['ttft_mean_seconds']:.2f}), TPOT {tpot * 1e3:.2f} ms", flush=True)
        ratios.append(math.log(row["ttft_mean_seconds"] / ttft))
        steps.append((row["tpot_mean_seconds"] - tpot) * STEP)
        streams.append(max(1.0, 8 * row["output_tokens_per_second_per_gpu"] * row["tpot_mean_seconds"]))
    slope, level = np.polyfit(streams, steps, 1)
    return timing.model_copy(
        update={
            "prefill_token_context": timing.prefill_token_context * math.exp(sum(ratios) / len(ratios)),
            "decode_request": max(0.0, timing.decode_request + float(slope)),
            "decode_step": max(0.0, timing.decode_step + float(level)),
        }
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, required=True, metavar="FOLDER", help="where simulated points are kept")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    settings = resolve_target(NODE).settings
    assert isinstance(settings, EngineSettings)
    began = time.monotonic()
    fit(settings.timing, args.keep, args.workers)
    print(f"{time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
