"""The driver with a server that the test plays: its exchanges are filled in without sockets."""

from __future__ import annotations

import asyncio
import time

import pytest

from agentx.content import Encoder, WordList, lexicon
from agentx.core import Failure, Gap, Output, Piece, Prompt, Segment, Session, TokenIds, Turn
from agentx.replayer import drive
from agentx.replayer.bodies import Bodies, Wire
from agentx.replayer.client import Silence
from agentx.replayer.counters import Scraper
from agentx.replayer.drive import Driver
from agentx.replayer.progress import Progress
from agentx.replayer.schedule import Rules, Schedule
from agentx.results import ResultsWriter, read_results

OK = (
    b'data: {"choices":[{"delta":{"content":" Abc"},"finish_reason":null}]}\n\n'
    b'data: {"choices":[{"delta":{},"finish_reason":"length"}]}\n\ndata: [DONE]\n\n'
)


def session(name: str, turns: int = 2, content: TokenIds | None = None) -> Session:
    made = [Turn(at, 0, Prompt((Piece(1, 0, 8),)), 8, Output(1), (at - 1,) if at else (), Gap()) for at in range(turns)]
    return Session(name, tuple(made), segments={1: Segment(1, "user", 8, content)})


@pytest.fixture
def play(monkeypatch, tmp_path):
    """A function that plays sessions against `answer(exchange)`; gives the driver and what was recorded."""

    async def run(sessions, answer, *, meanwhile=None, **rules):
        async def exchange_with(session, url, body, headers, exchange, clock):
            exchange.sent = clock()
            await answer(exchange)
            exchange.end = clock()

        monkeypatch.setattr(drive, "exchange_with", exchange_with)
        wire, clock = Wire("chat", "m"), time.monotonic
        writer = ResultsWriter(tmp_path / "run", {}, 0.0)
        driver = Driver(
            schedule=Schedule(iter(sessions), Rules(**rules)),
            session=None,
            url=lambda send: None,
            wire=wire,
            bodies=Bodies(Encoder(WordList(lexicon())), wire, policy="none", salt=""),
            headers=lambda send: {},
            writer=writer,
            scraper=Scraper(None, [], clock),
            silence=Silence(60.0, clock),
            clock=clock,
            progress=Progress(clock, None, wanted=False),
            run_id="r",
            on_overflow="continue",
        )
        if meanwhile is not None:
            asyncio.get_running_loop().call_later(0.01, meanwhile, driver)
        try:
            await driver.run()
        finally:
            driver.schedule.check_integrity()
            writer.close()
        return driver, read_results(tmp_path / "run")

    return run


async def answers(exchange):
    exchange.status = 200
    exchange.receive(exchange.sent, OK)


async def never(exchange):
    await asyncio.Event().wait()


async def test_all_turns_are_recorded_in_the_order_of_their_ends(play):
    driver, run = await play([session("a"), session("b")], answers, lanes=2)
    assert sorted((attempt.session, attempt.turn) for attempt in run.attempts) == [
        ("a", 0),
        ("a", 1),
        ("b", 0),
        ("b", 1),
    ]
    assert [attempt.end for attempt in run.attempts] == sorted(attempt.end for attempt in run.attempts)
    assert run.books().balanced
    assert driver.error is None


async def test_an_interruption_cuts_what_is_in_flight(play):
    _, run = await play(
        [session("a"), session("b")], never, lanes=2, meanwhile=lambda driver: driver.stop("enough", interrupted=True)
    )
    assert [attempt.failure for attempt in run.attempts] == [Failure("cut", "the run ended first")] * 2
    assert [play.outcome for play in run.plays] == ["cut", "cut"]
    assert run.books().balanced


async def test_a_turn_that_is_cut_before_its_task_began_is_recorded_too(play, monkeypatch):
    real = Schedule.next

    def stopping(self, now):
        step = real(self, now)
        if isinstance(step, list):
            self.stop(now, "in the same moment")
        return step

    monkeypatch.setattr(Schedule, "next", stopping)
    _, run = await play([session("a")], answers)
    (attempt,) = run.attempts
    assert attempt.failure == Failure("cut", "the run ended first")
    assert attempt.sent == attempt.end > 0
    assert run.books().balanced


async def test_an_input_that_cannot_be_sent_stops_the_run_and_is_in_the_books(play):
    sessions = [session("a"), session("b", content=TokenIds(tuple(range(8))))]
    driver, run = await play(sessions, answers)
    assert "token ids" in str(driver.error)
    assert [(attempt.session, attempt.failure and attempt.failure.kind) for attempt in run.attempts] == [
        ("a", None), ("a", None), ("b", "input"),
    ]  # fmt: skip
    assert run.books().balanced


async def test_a_bug_in_a_turn_is_raised_and_never_waited_for(play):
    async def broken(exchange):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await play([session("a")], broken)


async def test_replies_that_end_together_leave_time_to_read_others(play, monkeypatch):
    """The loop goes round between a few of them: what came for others in the meantime gets its time then."""
    land, rounds, landed = Driver._land, [0], []

    async def count():
        while True:
            await asyncio.sleep(0)
            rounds[0] += 1

    def noted(self, send, exchange):
        landed.append(rounds[0])
        land(self, send, exchange)

    monkeypatch.setattr(Driver, "_land", noted)
    counting = asyncio.ensure_future(count())
    _, run = await play([session(f"s{n}", 1) for n in range(20)], answers, lanes=20)
    counting.cancel()
    assert len(run.attempts) == 20
    assert max(landed.count(at) for at in set(landed)) <= drive.AT_A_TIME
