"""The transport of workers on Ray, without Ray: what its ends do, with actors that the test plays."""

from __future__ import annotations

import asyncio
import sys
import time
import types

import pytest

from agentx.errors import BadInput
from agentx.frames import FrameReader, encode
from agentx.replayer.messages import Go, Written
from agentx.replayer.ray_workers import Actor, Mailbox, RayLink, Shipped, actors


class RayError(Exception):
    pass


class FakeRay:
    class exceptions:
        RayError = RayError

    def __init__(self) -> None:
        self.killed: list[object] = []

    def kill(self, actor: object) -> None:
        self.killed.append(actor)


class Remote:
    """An actor's method as the coordinator sees it."""

    def __init__(self, answer) -> None:
        self._answer = answer

    def options(self, concurrency_group):
        return self

    def remote(self, *arguments):
        return asyncio.ensure_future(self._later(arguments))

    async def _later(self, arguments):
        return self._answer(*arguments)


class FakeActor:
    def __init__(self, *rounds, ahead: float = 0.0) -> None:
        self.told: list[object] = []
        self._rounds = list(rounds)
        self.say = Remote(self.told.append)
        self.listen = Remote(self._listen)
        self.ping = Remote(lambda: time.monotonic() + ahead)

    def _listen(self):
        if not self._rounds:
            raise RayError("the actor died")
        return self._rounds.pop(0)


async def test_messages_are_heard_in_order_records_are_written_and_death_is_heard(tmp_path):
    record = Written(encode("attempt", {"turn": 1}))
    over = Go(9.0)
    ray, actor = FakeRay(), FakeActor([record, "first"], [], ["second", record, over])
    link = RayLink(ray, actor, tmp_path / "part.agx")
    link.tell(Go(1.0))
    heard = [await link.hear() for _ in range(4)]
    assert heard == ["first", "second", over, None]
    assert actor.told == [Go(1.0)]
    assert list(FrameReader(tmp_path / "part.agx")) == [("attempt", {"turn": 1})] * 2  # on disk before it is closed
    link.close()
    assert ray.killed == [actor]


async def test_an_offset_is_known_to_half_a_round_trip(tmp_path):
    link = RayLink(FakeRay(), FakeActor(ahead=1000.0), tmp_path / "part.agx")
    found = await link.offset()
    assert found.seconds == pytest.approx(1000.0, abs=found.uncertainty + 1e-9)
    assert 0 < found.uncertainty < 1.0


async def test_a_mailbox_carries_both_ways_from_any_thread():
    mailbox = Mailbox()
    Shipped(mailbox).write("note", {"text": "x"})
    mailbox.tell("done")
    assert [mailbox.said.get(), mailbox.said.get()] == [Written(encode("note", {"text": "x"})), "done"]
    await asyncio.get_running_loop().run_in_executor(None, mailbox.put, Go(2.0))
    assert await mailbox.hear() == Go(2.0)


def test_an_actor_gives_what_its_worker_has_said_at_once():
    actor, opened = Actor(), None

    async def make():
        return Mailbox()

    opened = asyncio.run(make())
    actor._mailbox.set_result(opened)
    opened.tell(1)
    opened.tell(2)
    assert actor.listen() == [1, 2]
    actor.say("to a worker that is over")  # is not an error


async def test_without_ray_it_says_how_to_have_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BadInput, match=r"--ray needs Ray.*pip install 'agentx-replay\[ray\]'"):
        async with actors([], "auto"):
            pass


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9", "127.0.0.1:99999"])
async def test_a_cluster_that_is_not_there_is_said_at_once(monkeypatch, address):
    nothing = types.SimpleNamespace(is_initialized=lambda: False)
    monkeypatch.setitem(sys.modules, "ray", nothing)
    with pytest.raises(BadInput, match=f"no Ray cluster at {address}"):
        async with actors([], address):
            pass
