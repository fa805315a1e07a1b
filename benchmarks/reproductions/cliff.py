"""Experiments 1 and 2: GLM-5.2 FP8 on 8 MI325X. The public curve, ProsGrow's pair, and one lane fewer.

Everything that is judged was fixed before the first run: workload and timing (freeze.py), the seeds, the host tier of
2.1 million tokens with write_through. The same seed is the same trace, order and starts in every configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentx.reporter.references import load_reference
from agentx.reporter.table import Block, Heading, Lines, Table
from benchmarks.reproductions.freeze import CURVE, FITTED, lanes
from benchmarks.reproductions.points import Answer, Configuration, Figures, Point
from benchmarks.reproductions.statistics import at, interval, mean, rank, share
from benchmarks.reproductions.verdicts import HIGH, LOW, WORDS, Verdict, judged, shown

PAIR = "prosgrow-mi325x-glm-5.2-fp8"
FIRST_SEED, MANY, SOME = 1000, 100, 20
COUNTS = (1, 2, 3, 4, 5, 6, 8)
JUDGED_HOST = 2_100_000
HOSTS = (500_000, 1_000_000, 1_500_000, JUDGED_HOST, 3_000_000, 4_000_000)
POLICIES = ("write_through", "write_back")
REUSE_WITHIN = 0.02  # of the published 96.6 %, for the host tier's median
NEAR = (0.79, 0.88)  # reuse without a host tier, for the table on a condition
CURVE_FIGURES = {
    "output": "output_tokens_per_second_per_gpu",
    "total": "total_tokens_per_second_per_gpu",
    "ttft_mean": "ttft_mean_seconds",
    "tpot_mean": "tpot_mean_seconds",
}
PAIR_FIGURES = {
    "output": "output_tokens_per_second_per_gpu",
    "ttft_p50": "ttft_p50_seconds",
    "ttft_p90": "ttft_p90_seconds",
    "latency_p50": "latency_p50_seconds",
    "reuse": "reuse_by_counters_share",
}

FEWER = (
    "Where the answer is not c3, the published one is missed. Likely cause: the two published figures are of different "
    "software and harnesses, and the model is harder on three sessions than the node was (see the fitted rows: its "
    "TPOT is above the published one, and some of its hours with three sessions have fallen)."
)

Runs = Mapping[str, Mapping[int, Figures]]
"""Figures by configuration and seed."""


def host(tokens: int, policy: str) -> Configuration:
    """Four lanes with a host tier."""
    sets = (f"target.cache.host.tokens={tokens}", f"target.cache.host.write={policy}")
    return lanes(4, *sets, name=f"c4 host {tokens} {policy}")


JUDGED = host(JUDGED_HOST, "write_through")


def points(most: int = MANY, some: int = SOME) -> list[Point]:
    """All points, those of a seed together, so that an unfinished run has the same seeds everywhere."""
    found = []
    others = [lanes(count) for count in COUNTS if count != 4]
    others += [host(tokens, policy) for tokens in HOSTS for policy in POLICIES]
    for number in range(most):
        each = [lanes(4), JUDGED]
        each += [one for one in others if number < some and one != JUDGED]
        found += [Point(one, FIRST_SEED + number) for one in each]
    return found


def runs_of(answers: Sequence[Answer[Point]]) -> dict[str, dict[int, Figures]]:
    found: dict[str, dict[int, Figures]] = {}
    for answer in answers:
        found.setdefault(answer.job.configuration.name, {})[answer.job.seed] = answer.figures
    return found


def values(runs: Mapping[int, Figures], figure: str) -> list[float]:
    return [each[figure] for each in runs.values() if figure in each]


def blocks(runs: Runs, causes: Mapping[tuple[str, str], str]) -> list[Block]:
    """What experiments 1 and 2 say. `causes` of misses by (row, figure)."""
    return [
        *_summary(runs),
        *_fitted(runs),
        *_curve(runs, causes),
        *_pair(runs, causes),
        *_near(runs),
        *_hosts(runs),
        *_fewer(runs),
    ]


def _summary(runs: Runs) -> list[Block]:
    words = [each.word for _, each in (*curve_verdicts(runs), *pair_verdicts(runs))]
    counts = ", ".join(f"{words.count(word)} {word}" for word in ("pass", "miss", "not informative", "too few runs"))
    return [
        Heading("In short"),
        Lines((f"Of {len(words)} published values that were predicted: {counts}. One cliff, seen from many figures.",)),
    ]


def _fitted(runs: Runs) -> list[Block]:
    curve = load_reference(CURVE)
    rows = []
    for count in FITTED:
        found = runs.get(f"c{count}", {})
        for figure, key in CURVE_FIGURES.items() if found else ():
            sample, published = values(found, figure), curve.rows[f"c{count}"].figures[key]
            place = (f"p{rank(sample, published):.0f}", str(len(sample)))
            rows.append((f"c{count}", WORDS[figure], shown(figure, published), *_band(figure, sample), *place))
    return [
        Heading("Fitted: concurrency 1 to 3 of the curve"),
        Lines(
            (
                "TTFT and TPOT of these rows were fitted, with eight other seeds; nothing here is a prediction. What "
                "lies outside the runs even so is misfit: the published mean TTFT falls from concurrency 1 to 3 while "
                "the model's rises, and some of its hours with three sessions are in the cliff already.",
            )
        ),
        Table(("row", "figure", "published", "median", "p5", "p95", "published at", "runs"), tuple(rows)),
    ]


def _band(figure: str, sample: Sequence[float]) -> tuple[str, str, str]:
    low, middle, high = (shown(figure, at(sample, percent)) for percent in (LOW, 50, HIGH))
    return middle, low, high


def curve_verdicts(runs: Runs) -> list[tuple[str, Verdict]]:
    """(row, verdict) of every published value above concurrency 3."""
    curve, found = load_reference(CURVE), []
    for name, row in curve.rows.items():
        own = runs.get(name.partition("-")[0], {})
        if name in {f"c{count}" for count in FITTED} or not own:
            continue
        found += [
            (name, judged(figure, row.figures[key], values(own, figure)))
            for figure, key in CURVE_FIGURES.items()
            if key in row.figures
        ]
    return found


def pair_verdicts(runs: Runs) -> list[tuple[str, Verdict]]:
    pair, found = load_reference(PAIR), []
    for name, configuration in (("baseline", "c4"), ("optimised", JUDGED.name)):
        own = runs.get(configuration, {})
        row = pair.rows[name].figures
        found += [(name, judged(figure, row[key], values(own, figure))) for figure, key in PAIR_FIGURES.items() if own]
    return found


COLUMNS = ("row", "figure", "published", "median", "p5", "p95", "published at", "runs", "verdict")


def _rows(verdicts: Sequence[tuple[str, Verdict]]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            row,
            WORDS[each.figure],
            *(shown(each.figure, value) for value in (each.published, each.median, each.low, each.high)),
            f"p{each.place:.0f}",
            str(each.n),
            each.word,
        )
        for row, each in verdicts
    )


def _misses(verdicts: Sequence[tuple[str, Verdict]], causes: Mapping[tuple[str, str], str]) -> Lines:
    found = []
    for row, each in verdicts:
        if each.word == "miss":
            cause = causes.get((row, each.figure), causes.get((row, "*"), "no cause found"))
            found.append(f"{row}, {WORDS[each.figure]}: missed, published at p{each.place:.0f}. Likely cause: {cause}")
    return Lines(tuple(found), bullet=True)


def _curve(runs: Runs, causes: Mapping[tuple[str, str], str]) -> list[Block]:
    verdicts = curve_verdicts(runs)
    return [
        Heading("Predicted: concurrency 4, 5, 6 and 8 of the curve"),
        Table(COLUMNS, _rows(verdicts)),
        _misses(verdicts, causes),
    ]


def _pair(runs: Runs, causes: Mapping[tuple[str, str], str]) -> list[Block]:
    verdicts = pair_verdicts(runs)
    tier = values(runs.get(JUDGED.name, {}), "reuse")
    told = []
    if tier:
        off = at(tier, 50) - load_reference(PAIR).rows["optimised"].figures["reuse_by_counters_share"]
        low, high = interval(tier, lambda each: at(each, 50))
        word = "holds" if abs(off) <= REUSE_WITHIN else "missed"
        told.append(
            f"Median reuse with the host tier of {JUDGED_HOST:,} tokens: {100 * at(tier, 50):.1f} % (95 % interval "
            f"{100 * low:.1f} to {100 * high:.1f}), {100 * off:+.1f} points from the published one; the rule of "
            f"{100 * REUSE_WITHIN:.0f} points {word}."
        )
    gains = [
        after["output"] / before["output"]
        for seed, before in runs.get("c4", {}).items()
        if (after := runs.get(JUDGED.name, {}).get(seed)) is not None and before["output"]
    ]
    if gains:
        told.append(
            f"Output with the tier over without, same seed: median x{at(gains, 50):.2f} (p5 x{at(gains, LOW):.2f}, p95 "
            f"x{at(gains, HIGH):.2f}); published x2.99, at p{rank(gains, 2.99):.0f} of {len(gains)} pairs."
        )
    return [
        Heading("Predicted: ProsGrow's pair, concurrency 4 without and with a host tier"),
        Table(COLUMNS, _rows(verdicts)),
        Lines(tuple(told), bullet=True),
        _misses(verdicts, causes),
    ]


def _near(runs: Runs) -> list[Block]:
    base = runs.get("c4", {})
    seeds = [seed for seed, each in base.items() if NEAR[0] <= each.get("reuse", -1.0) <= NEAR[1]]
    rows = []
    pair = load_reference(PAIR)
    for name, configuration in (("baseline", "c4"), ("optimised", JUDGED.name)):
        own = {seed: each for seed, each in runs.get(configuration, {}).items() if seed in seeds}
        for figure, key in PAIR_FIGURES.items() if own else ():
            sample, published = values(own, figure), pair.rows[name].figures[key]
            place = (f"p{rank(sample, published):.0f}", str(len(sample)))
            rows.append((name, WORDS[figure], shown(figure, published), *_band(figure, sample), *place))
    low, high = share(len(seeds), len(base))
    return [
        Heading(f"The same on the condition that reuse without a host tier is {NEAR[0]:.0%} to {NEAR[1]:.0%}"),
        Lines((f"{len(seeds)} of {len(base)} runs are (95 % interval of that share: {low:.0%} to {high:.0%}).",)),
        Table(("row", "figure", "published", "median", "p5", "p95", "published at", "runs"), tuple(rows)),
    ]


def _hosts(runs: Runs) -> list[Block]:
    rows = []
    for tokens in (0, *HOSTS):
        for policy in POLICIES if tokens else ("no host tier",):
            name = host(tokens, policy).name if tokens else "c4"
            found = runs.get(name, {})
            if not found:
                continue
            reuse, output = values(found, "reuse"), values(found, "output")
            rows.append(
                (f"{tokens / 1e6:.1f} M", policy, *_band("reuse", reuse), *_band("output", output), str(len(reuse)))
            )
    columns = ("host tokens", "policy", "reuse, %", "p5", "p95", "output, tok/s/GPU", "p5", "p95", "runs")
    return [
        Heading("Concurrency 4 by the size of the host tier"),
        Lines(("The published run does not tell its size; medians, and the central 90 %.",)),
        Table(columns, tuple(rows)),
    ]


@dataclass(frozen=True, slots=True)
class Contest:
    """One configuration against another on the same seeds: `ratio` of mean output and how often the first wins."""

    n: int
    ratio: float
    low: float
    high: float
    wins: int


def contest(first: Mapping[int, Figures], second: Mapping[int, Figures]) -> Contest | None:
    """Output of the first over the second; None without a common seed."""
    pairs = [(first[seed]["output"], second[seed]["output"]) for seed in sorted(first.keys() & second.keys())]
    if not pairs:
        return None

    def ratio(chosen: Sequence[float]) -> float:
        some = [pairs[int(each)] for each in chosen]
        return mean([one for one, _ in some]) / max(1e-9, mean([other for _, other in some]))

    every = [float(each) for each in range(len(pairs))]
    low, high = interval(every, ratio)
    return Contest(len(pairs), ratio(every), low, high, sum(one > other for one, other in pairs))


def _fewer(runs: Runs) -> list[Block]:
    rows = []
    against = [("c4 without a host tier", "c4")]
    against += [
        (f"c4, {JUDGED_HOST / 1e6:.1f} M host tokens, {each}", host(JUDGED_HOST, each).name) for each in POLICIES
    ]
    for words, name in against:
        found = contest(runs.get("c3", {}), runs.get(name, {}))
        if found is None:
            continue
        low, high = share(found.wins, found.n)
        answer = "c3" if found.low > 1 else words if found.high < 1 else "not settled"
        wins = (f"{found.wins} of {found.n}", f"{low:.0%} to {high:.0%}")
        rows.append((words, f"{found.ratio:.2f}", f"{found.low:.2f} to {found.high:.2f}", *wins, answer))
    return [
        Heading("Experiment 2: does one lane fewer beat a host tier?"),
        Lines(
            (
                "Output of concurrency 3 without a host tier over that of concurrency 4, same seeds, means of all "
                "runs, with intervals of 95 %. Published: 10.94 against 9.05 (x1.21), and against 5.88, 4.14 and 3.03.",
            )
        ),
        Table(("against", "ratio", "interval", "c3 is above in", "interval", "so it is"), tuple(rows)),
        Lines((FEWER,)),
    ]
