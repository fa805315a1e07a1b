"""How one plan is split over workers: who has which lanes, how many requests in flight, and which plays.

Worker w of n has the lanes w, w + n, w + 2n ..., and of `requests` its share. All workers walk through the same
sequence of plays and count them alike, so a play has the same number, and the same words, with any number of workers;
each takes those that fall to its lanes in turn. Arrivals are not drawn anew: each worker takes its own of the one
process. So which session goes to which worker hangs on the plan, the trace and n alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentx.errors import BadInput
from agentx.replayer.plan import Load

MOST_WORKERS = 256


@dataclass(frozen=True, slots=True)
class Part:
    """The part of worker `index` of `of`."""

    index: int = 0
    of: int = 1

    @property
    def alone(self) -> bool:
        return self.of == 1

    def numbers(self, count: int) -> range:
        """Of `count` lanes, its own."""
        return range(self.index, count, self.of)

    def takes(self, serial: int, slots: int) -> bool:
        """Whether the play with this number falls to it, where `slots` are filled in turn."""
        return serial % slots % self.of == self.index


def check_workers(load: Load, workers: int) -> None:
    """Raises BadInput where a worker would have nothing to do."""
    if not 1 <= workers <= MOST_WORKERS:
        raise BadInput(f"--workers {workers} is not between 1 and {MOST_WORKERS}")
    for name, count in (("sessions", load.sessions), ("requests", load.requests)):
        if count is not None and count < workers:
            raise BadInput(f"load.{name} {count} cannot be split over {workers} workers", hint=f"--workers {count}")


def split_words(load: Load, workers: int) -> list[str]:
    """How the load is split, for people."""
    shares = [Part(index, workers) for index in range(workers)]
    words = [
        f"load.{name} {count} over {workers} workers: {'+'.join(str(len(part.numbers(count))) for part in shares)}"
        for name, count in (("sessions", load.sessions), ("requests", load.requests))
        if count is not None
    ]
    if load.rate is not None:
        turn = "in turn" if load.requests is None else "by their shares of load.requests"
        words.append(f"load.rate over {workers} workers: the arrivals of one process, dealt out {turn}")
    return words
