"""What a request will answer: the ids that it was given, then the engine's own words, up to what was asked for."""

from __future__ import annotations

import pytest

from agentx.engine.jobs import Job
from agentx.engine.messages import Request
from agentx.engine.replies import FIXED, seed_of, words

PROMPT = b" abc def"
GIVEN = b" one two"
OWN = words(seed_of(PROMPT), 3)


@pytest.mark.parametrize(
    ("more", "max_new", "forced", "reply", "reason"),
    [
        ({}, 9, False, GIVEN, "stop"),  # it ends where the given ids end
        ({}, 2, False, GIVEN, "length"),  # no room for the end
        ({}, 1, False, GIVEN[:4], "length"),
        ({"min_new": 3}, 9, False, GIVEN + OWN[:4], "stop"),
        ({"ignore_eos": True}, 4, False, GIVEN + OWN[:8], "length"),
        ({"ignore_eos": True}, 4, True, GIVEN + OWN[:8], "length"),  # what was given is not overwritten
        ({"reply": b"", "ignore_eos": True}, 3, False, OWN, "length"),
        ({"reply": b"", "ignore_eos": True}, 3, True, OWN[:4] + FIXED * 2, "length"),
    ],
)
def test_given_ids(more: dict[str, object], max_new: int, forced: bool, reply: bytes, reason: str) -> None:
    request = Request("r", PROMPT, max_new, **{"reply": GIVEN, **more})  # type: ignore[arg-type]
    job = Job(request, max_new, 0.0, forced=forced, bound=1)
    assert job.advance(99) == reply
    assert (job.done, job.finished(1.0).reason) == (True, reason)
