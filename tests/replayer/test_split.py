"""How a plan's load is split."""

from __future__ import annotations

import pytest

from agentx.errors import BadInput
from agentx.replayer.plan import Load, Rate
from agentx.replayer.split import Part, check_workers, split_words


@pytest.mark.parametrize(
    ("load", "workers", "words"),
    [
        (Load(sessions=10), 4, ["load.sessions 10 over 4 workers: 3+3+2+2"]),
        (Load(requests=16), 4, ["load.requests 16 over 4 workers: 4+4+4+4"]),
        (  # both are split
            Load(sessions=5, requests=3),
            2,
            ["load.sessions 5 over 2 workers: 3+2", "load.requests 3 over 2 workers: 2+1"],
        ),
        (
            Load(rate=Rate(per_second=2)),
            2,
            ["load.rate over 2 workers: the arrivals of one process, dealt out in turn"],
        ),
        (
            Load(rate=Rate(per_second=2), requests=9),
            2,
            [
                "load.requests 9 over 2 workers: 5+4",
                "load.rate over 2 workers: the arrivals of one process, dealt out by their shares of load.requests",
            ],
        ),
    ],
)
def test_the_split_is_said(load, workers, words):
    assert split_words(load, workers) == words


@pytest.mark.parametrize("count", [1, 4, 10, 257])
@pytest.mark.parametrize("workers", [1, 3, 4])
def test_every_lane_and_every_play_has_one_worker(count, workers):
    parts = [Part(index, workers) for index in range(workers)]
    assert sorted(lane for part in parts for lane in part.numbers(count)) == list(range(count))
    for serial in range(100):
        takers = [part.index for part in parts if part.takes(serial, count)]
        assert takers == [serial % count % workers]


def test_the_first_plays_go_to_the_lanes_that_one_process_gives_them_to():
    parts = [Part(index, 4) for index in range(4)]
    for serial in range(10):
        (taker,) = [part for part in parts if part.takes(serial, 10)]
        assert serial in taker.numbers(10)


@pytest.mark.parametrize(
    ("load", "workers", "message"),
    [
        (Load(sessions=2), 3, r"load\.sessions 2 cannot be split over 3 workers \(--workers 2\)"),
        (Load(sessions=8, requests=2), 3, r"load\.requests 2 cannot be split"),
        (Load(sessions=8), 0, "between 1 and 256"),
        (Load(sessions=8), 257, "between 1 and 256"),
    ],
)
def test_a_worker_with_nothing_to_do_is_refused(load, workers, message):
    with pytest.raises(BadInput, match=message):
        check_workers(load, workers)
