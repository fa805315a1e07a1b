"""What carries messages between processes."""

from __future__ import annotations

from multiprocessing import Pipe

from agentx.replayer.messages import Begin, Go, PipeLink


async def test_what_is_told_is_heard_in_order():
    here, there = (PipeLink(end) for end in Pipe())
    here.tell(Go(1.5))
    here.tell(Begin(2.0, 0.5))
    there.tell("and back")
    assert [await there.hear(), await there.hear()] == [Go(1.5), Begin(2.0, 0.5)]
    assert await here.hear() == "and back"
    here.close()
    there.close()


async def test_who_is_gone_is_heard_once_and_can_be_told_nothing():
    here, there = (PipeLink(end) for end in Pipe())
    here.tell("last words")
    here.close()
    here.close()
    assert [await there.hear(), await there.hear()] == ["last words", None]
    there.tell("too late")
