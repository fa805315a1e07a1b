"""How a run is getting on: a bar on stderr for whoever watches a terminal, and its state for whoever asks."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentx.core import Attempt
from agentx.replayer.messages import Counted

if TYPE_CHECKING:
    from agentx.replayer.client import Clock

BAR = "{n_fmt} of {total_fmt} sessions, {elapsed}{postfix}"
RECENT = 10.0  # s over which the shown rate is taken
LAST = 500  # turns over which the shown time to the first token is taken


@dataclass(slots=True)
class Watch:
    """A place from which a running replay can be asked how it is, from any thread. Plain values; None: not known."""

    ask: Callable[[], dict[str, Any]] = lambda: {"state": "starting"}

    def of(self, progress: Progress, live: Callable[[], int], lag: Callable[[], Mapping[str, Any]] | None) -> None:
        """From now on this is asked: `live` requests in flight, and the loop's lag where it is this process's."""
        self.ask = lambda: {**progress.state(live()), "loop_lag_p99_seconds": None if lag is None else lag()["p99"]}


class Progress:
    """Live turns, output tokens per second and observed reuse. Not shown without a terminal."""

    def __init__(self, clock: Clock, plays: int | None, *, wanted: bool = True) -> None:
        self.visible = wanted and sys.stderr.isatty()
        self._clock = clock
        self._recent: deque[tuple[float, int]] = deque()  # (end, tokens)
        self._prompt = self._cached = self._tokens = self._plays = self.turns = self.failed = 0
        self._told = False
        self._ttfts: deque[float] = deque(maxlen=LAST)
        self._total = plays
        self._others: dict[int, Counted] = {}
        if self.visible:
            from tqdm import tqdm

            self._bar = tqdm(total=plays, file=sys.stderr, bar_format=BAR)

    def count(self, attempt: Attempt) -> None:
        self.turns += 1
        self.failed += not attempt.ok
        if attempt.first is not None:
            self._ttfts.append(attempt.first - attempt.sent)
        if attempt.completion_tokens and attempt.end is not None:
            self._recent.append((attempt.end, attempt.completion_tokens))
            self._tokens += attempt.completion_tokens
        if attempt.cached is not None and attempt.cached.total is not None and attempt.prompt_tokens is not None:
            self._told = True
            self._prompt += attempt.prompt_tokens
            self._cached += attempt.cached.total

    def count_play(self) -> None:
        self._plays += 1
        if self.visible:
            self._bar.update()

    def counted(self, live: int) -> Counted:
        """All so far, for a coordinator that shows the bar."""
        cached = self._cached if self._told else None
        return Counted(live, self._plays, self.turns, self.failed, self._tokens, self._prompt, cached)

    def hear(self, worker: int, now: Counted) -> None:
        """What a worker has counted so far."""
        before = self._others.get(worker, Counted(0, 0, 0, 0, 0, 0, None))
        self._others[worker] = now
        self.turns += now.turns - before.turns
        self.failed += now.failed - before.failed
        self._prompt += now.prompt - before.prompt
        self._cached += (now.cached or 0) - (before.cached or 0)
        self._told = self._told or now.cached is not None
        self._recent.append((self._clock(), now.tokens - before.tokens))
        if self.visible:
            self._bar.update(now.plays - before.plays)
            self.show(self.live())

    def live(self) -> int:
        """Requests that the workers had in flight when they last said so."""
        return sum(each.live for each in list(self._others.values()))

    def show(self, live: int) -> None:
        self._bar.set_postfix_str(self.text(live))

    def state(self, live: int) -> dict[str, Any]:
        """What a page shows: of the last seconds and turns, and of all so far."""
        ordered = sorted(self._ttfts)
        return {
            "state": "running",
            "seconds": self._clock(),
            "in_flight": live,
            "turns": self.turns,
            "failed": self.failed,
            "plays": self._plays + sum(each.plays for each in self._others.values()),
            "plays_expected": self._total,
            "output_tokens_per_second": self._rate(self._clock()),
            "reuse": self._cached / self._prompt if self._told and self._prompt else None,
            "ttft_p50_seconds": ordered[len(ordered) // 2] if ordered else None,
            "ttft_p95_seconds": ordered[len(ordered) * 95 // 100] if ordered else None,
        }

    def _rate(self, now: float) -> float:
        recent = [tokens for at, tokens in list(self._recent) if at >= now - RECENT]
        return sum(recent) / max(min(now, RECENT), 1e-3)

    def text(self, live: int) -> str:
        """The line beside the bar."""
        now = self._clock()
        while self._recent and self._recent[0][0] < now - RECENT:
            self._recent.popleft()
        rate = self._rate(now)
        reuse = f"{self._cached / self._prompt:.1%}" if self._told and self._prompt else "unknown"
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{live} live, {self.turns} turns{failed}, {rate:,.0f} tok/s, reuse {reuse}"

    def close(self) -> None:
        if self.visible:
            self.show(0)
            self._bar.close()
            self.visible = False


class VirtualBar:
    """A simulation's seconds as they pass, of `seconds` (None: not known beforehand). Not shown without a terminal."""

    def __init__(self, seconds: float | None, *, wanted: bool = True) -> None:
        self._bar = None
        if wanted and sys.stderr.isatty():
            from tqdm import tqdm

            total = None if seconds is None else round(seconds)
            self._bar = tqdm(total=total, file=sys.stderr, unit=" virtual s", leave=False)

    def show(self, now: float) -> None:
        if self._bar is not None:
            self._bar.update(round(now) - self._bar.n)

    def __enter__(self) -> VirtualBar:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._bar is not None:
            self._bar.close()
