"""First values of the timing constants, by regression on each request's own record.

Time to first token, less queueing where the server told it, on: one, new tokens, (new token, context before it) pairs,
tokens loaded back. Seconds of a decode step (time of the reply over its steps, less the prefills of others that fell
into it) on: one, requests and tokens of context that were decoding meanwhile. Errors count relative to the value, the
large ones little; no constant is negative. These only start the search, which simulates what a line cannot say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agentx.engine.settings import Timing
from agentx.replayer.calibration_play import Played
from agentx.replayer.calibration_run import CalibrationRun, Sent

Floats = npt.NDArray[np.float64]

PREFILL = ("request", "prefill_batch", "prefill_token", "prefill_token_context", "load_back_token")
DECODE = ("decode_step", "decode_request", "decode_context", "speculation_step")
_ROUNDS = 12  # of reweighting
_LEAST = 0.2  # share of a reply's time that decoding has, however much prefill seems to fall into it


@dataclass(frozen=True, slots=True)
class Start:
    """First values by constant, and each one's `unit`: the value at which it alone would explain a typical request.

    `fixed` says why a constant is not among them: these runs cannot show it.
    """

    values: dict[str, float]
    units: dict[str, float]
    fixed: dict[str, str]


def start(runs: Sequence[CalibrationRun], train: Sequence[set[int]], played: Sequence[Sequence[Played]]) -> Start:
    """Regressions over the requests `train` of each run. `played`: what the engine's cache says each one hit."""
    prefill = np.array([row for each in zip(runs, train, played, strict=True) for row in _prefill_rows(*each)])
    values, units, fixed = _solved(PREFILL[:1] + PREFILL[2:], prefill)
    if not prefill[:, 4].any():
        for table in (values, units):
            table.pop("load_back_token")
        fixed["load_back_token"] = "no request was told to be loaded back"
    # A fixed time per request and one per batch look alike to a request that is alone.
    values["request"] = values["prefill_batch"] = values["request"] / 2
    units["prefill_batch"] = units["request"]
    decode = [row for run, chosen in zip(runs, train, strict=True) for row in _decode_rows(run, chosen, values)]
    if not decode:
        return Start(values, units, fixed | dict.fromkeys(DECODE, "no reply showed a decode step"))
    rows = np.array(decode)
    names, columns = list(DECODE), rows
    for name, why in _alike(rows).items():
        at = names.index(name)
        names.pop(at)
        columns = np.delete(columns, at + 1, axis=1)
        fixed[name] = why
    more = _solved(tuple(names), columns)
    return Start(values | more[0], units | more[1], fixed | more[2])


def _alike(rows: Floats) -> dict[str, str]:
    """Constants of a decode step whose column no run tells apart from the constant one."""
    same: dict[str, str] = {}
    if np.ptp(rows[:, 2]) < 0.05:
        same["decode_request"] = "replies never overlapped: it is in decode_step"
    if not rows[:, 4].any():
        same["speculation_step"] = "there was no speculation"
    elif rows[:, 4].all():
        same["speculation_step"] = "every step had speculation: it is in decode_step"
    return same


def _prefill_rows(run: CalibrationRun, train: set[int], played: Sequence[Played]) -> list[list[float]]:
    """[TTFT less queue, 1, new tokens, pairs, tokens loaded back] of each request."""
    rows = []
    for index in sorted(train):
        sent, model = run.sent[index], played[index]
        prompt = sent.prompt or model.prompt
        if sent.ttft is None or prompt is None:
            continue
        hit = min((model.cached or 0) if sent.cached is None else sent.cached, prompt - 1)
        new = prompt - hit
        seconds = max(sent.ttft - (sent.queue or 0.0), 0.1 * sent.ttft)
        rows.append([seconds, 1.0, new, new * (hit + prompt - 1) / 2, sent.host or 0.0])
    return rows


def _decode_rows(run: CalibrationRun, train: set[int], values: dict[str, float]) -> list[list[float]]:
    """[seconds of a step, 1, requests, tokens of context, 1 with speculation] of each reply."""
    shown = [each for each in run.sent if each.first is not None and each.last is not None and each.last > each.first]
    if not shown:
        return []
    first, last = np.array([[each.first, each.last] for each in shown], dtype=float).T
    context = np.array([(each.prompt or 0) + each.reply / 2 for each in shown])
    busy = np.array([_service(each, values) for each in shown])
    speculation = run.settings.speculation
    length = speculation.acceptance.length if speculation.algorithm else 1.0
    chosen, rows = {id(run.sent[index]) for index in train}, []
    for at, each in enumerate(shown):
        steps = (each.reply - each.head) / length
        if id(each) not in chosen or each.tpot is None or steps < 1:
            continue
        whole = last[at] - first[at]
        share = np.clip(np.minimum(last, last[at]) - np.maximum(first, first[at]), 0.0, None) / whole
        stalls = float(busy[(first > first[at]) & (first < last[at])].sum())
        seconds = max(whole - stalls, _LEAST * whole) / steps
        rows.append([seconds, 1.0, share.sum(), float(share @ context), float(speculation.algorithm is not None)])
    return rows


def _service(sent: Sent, values: dict[str, float]) -> float:
    """Seconds of prefill of one request, by the first fit."""
    prompt = sent.prompt or 0
    hit = min(sent.cached or 0, max(prompt - 1, 0))
    new = prompt - hit
    pairs = new * (hit + prompt) / 2
    return values["prefill_batch"] + values["prefill_token"] * new + values["prefill_token_context"] * pairs


def _solved(names: Sequence[str], rows: Floats) -> tuple[dict[str, float], dict[str, float], dict[str, str]]:
    """(values, units, nothing fixed) of the columns behind the first, which is what they explain."""
    target, columns = rows[:, 0], rows[:, 1:]
    found = nonnegative(columns, target)
    typical = float(np.median(target))
    sizes = [float(np.median(column[column > 0])) if (column > 0).any() else 1.0 for column in columns.T]
    units = {name: typical / size for name, size in zip(names, sizes, strict=True)}
    return dict(zip(names, map(float, found), strict=True)), units, {}


def nonnegative(columns: Floats, target: Floats) -> Floats:
    """Least absolute relative errors with no negative coefficient: reweighted least squares over a shrinking set."""
    scale = np.abs(columns).max(axis=0)
    live = scale > 0
    safe = np.where(live, scale, 1.0)
    weights = np.ones(len(target))
    found = np.zeros(columns.shape[1])
    relative = (columns / safe) / target[:, None]
    for _ in range(_ROUNDS):
        active = live.copy()
        while active.any():
            part, *_ = np.linalg.lstsq(relative[:, active] * weights[:, None], weights, rcond=None)
            if (part >= 0).all():
                break
            places = np.flatnonzero(active)
            active[places[int(np.argmin(part))]] = False
        found = np.zeros(columns.shape[1])
        if active.any():
            found[active] = part
        errors = np.abs(relative @ found - 1.0)
        weights = 1.0 / np.sqrt(np.maximum(errors, 1e-3))
    return np.asarray(found / safe)


def timing_of(values: dict[str, float], base: Timing) -> Timing:
    """The whole timing: what was fitted, and the rest as in `base`."""
    return base.model_copy(update=values)
