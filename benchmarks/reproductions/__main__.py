"""Run the published results as experiments, and write docs/reproductions.md.

    python -m benchmarks.reproductions --keep FOLDER           experiments 1 to 3, <= 90 minutes on two cores
    python -m benchmarks.reproductions --keep FOLDER --quick   few seeds, under 5 minutes; writes nothing into docs/
    python -m benchmarks.reproductions --keep FOLDER --for 20m stops after that long, with the seeds that are done

Finished points stay in FOLDER, so that a run that was stopped goes on where it was. Experiment 4 needs a real server
and is run apart (live.py); what it measured is in live.json, from which its section is made.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

from agentx import __version__
from agentx.reporter.table import Block, Heading, Lines, Table, as_markdown
from agentx.yamlspec import seconds
from benchmarks.reproductions import cliff, facts, live, node, outline, told, verdicts
from benchmarks.reproductions.causes import CAUSES
from benchmarks.reproductions.points import run_all, spent

ROOT = Path(__file__).parents[2]
DOCUMENT, PICTURE = ROOT / "docs/reproductions.md", ROOT / "docs/reproductions-node.svg"
SLICE_FIGURES = ("requests", "output", "reuse", "ttft_p50", "ttft_p90", "tpot_mean", "latency_p50")
SLICE = cliff.FIRST_SEED  # the seed whose figures are in the document, for the test


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, required=True, metavar="FOLDER", help="where finished points are kept")
    parser.add_argument("--quick", action="store_true", help="two seeds, no picture; prints the document")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--for", dest="lasts", metavar="TIME", help="begin no further point after that long")
    args = parser.parse_args()
    began = time.monotonic()
    until = math.inf if args.lasts is None else began + seconds(args.lasts)
    text, picture = document(args.keep, workers=args.workers, until=until, quick=args.quick)
    if args.quick:
        print(text)
    else:
        DOCUMENT.write_text(text)
        PICTURE.write_text(picture)
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    return 0


def document(keep: Path, *, workers: int, until: float, quick: bool) -> tuple[str, str]:
    """The document, and the picture of experiment 3."""
    most, least = (2, 2) if quick else (cliff.MANY, cliff.SOME)
    stream = run_all(node.stream_points(), keep, workers=workers, until=until)
    found = run_all(node.searches(node.SEEDS[:1] if quick else node.SEEDS), keep, workers=workers, until=until)
    drawn = [] if quick else run_all(node.picture(), keep, workers=workers, until=until)
    points = cliff.points(most, least)
    answers = run_all(points, keep, workers=workers, until=until)
    reported = run_all(told.jobs(1 if quick else told.RUNS), keep, workers=workers, until=until)
    outlined = run_all([outline.Outlined()], keep, workers=1, until=until)
    corpus = run_all([facts.Corpus()], keep, workers=1, until=until)
    cpu = (
        spent(stream) + spent(found) + spent(drawn) + spent(answers) + spent(corpus) + spent(reported) + spent(outlined)
    )
    runs = cliff.runs_of(answers)
    blocks: list[Block] = [*_head(len(answers), len(points), cpu)]
    blocks += facts.blocks(corpus, list(runs.get("c1", {}).values()))
    blocks += [*cliff.blocks(runs, CAUSES), *told.blocks(reported), *outline.blocks(outlined, runs)]
    blocks += node.blocks(stream, found) + node.picture_rows(drawn) + live.blocks()
    blocks += _slice(runs)
    return as_markdown(blocks), node.picture_of(drawn)


def _head(done: int, of: int, cpu: float) -> list[Block]:
    return [
        Lines(("# Published results as experiments",)),
        Lines(
            (
                "Made by `python -m benchmarks.reproductions --keep FOLDER`, not by hand. Every figure without another "
                "name is of the embedded engine in virtual time, a model of a node; no GPU was used. Fitted and "
                "predicted stand apart. A published value passes when it lies in the central 90 % of the runs; "
                f"where those are wider than {verdicts.MOST_POINTS * 100:.0f} points of reuse, or than a factor of "
                f"{verdicts.MOST_RATIO:.0f} in a rate or a time, it is not informative, which is not a pass. A "
                "published value is one run, with conditions that are partly unknown.",
                f"agentx {__version__}, engine rules: SGLang 0.5.23. Seeds {cliff.FIRST_SEED} onwards; a seed is the "
                f"same trace, order and starts in every configuration. Planned: {cliff.MANY} seeds for the pair, "
                f"{cliff.SOME} elsewhere; done: {done} of {of} points of experiments 1 and 2, and the column runs says "
                f"how many stand behind each row. {cpu / 60:.0f} minutes of processor time in all.",
            )
        ),
    ]


def _slice(runs: cliff.Runs) -> list[Block]:
    """Figures of one seed, which the tests simulate again."""
    names = ("c3", "c4", cliff.JUDGED.name)
    rows = [
        (name, *(f"{runs[name][SLICE][figure]:.6g}" for figure in SLICE_FIGURES))
        for name in names
        if SLICE in runs.get(name, {})
    ]
    return [
        Heading(f"One seed, {SLICE}, for the tests"),
        Lines(("The tests simulate these again and compare every digit.",)),
        Table(("configuration", *SLICE_FIGURES), tuple(rows)),
    ]


if __name__ == "__main__":
    raise SystemExit(main())
