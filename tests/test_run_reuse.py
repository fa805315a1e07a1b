"""Ideal reuse of a run is recomputed from its folder: order, salts, plays, template and page count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from making import header, linear

from agentx.core import Attempt, Failure, Session
from agentx.errors import BadInput
from agentx.results import TRACE, RunResults
from agentx.reuse_template import Template
from agentx.run_reuse import run_reuse
from agentx.trace import TraceWriter


def attempt(session: str, turn: int, sent: float, *, play: int = 0, told: int | None = None, **more: Any) -> Attempt:
    values: dict[str, Any] = {"status": 200, "prompt_tokens": told, **more}
    return Attempt(session, play, turn, 0, 0, due=sent, sent=sent, isl=0, osl=5, **values)


def run_of(folder: Path, sessions: list[Session], attempts: list[Attempt], **settings: Any) -> RunResults:
    with TraceWriter(folder / TRACE, header()) as trace:
        for session in sessions:
            trace.session(session)
    plan: Mapping[str, Any] = {"wire": settings.pop("wire", "chat"), "salt": settings.pop("policy", "run")}
    return RunResults(folder, {"plan": plan, "salt": "x", **settings}, 0.0, tuple(attempts), (), ())


PLAIN = {"template": {"start": 0, "per_message": 0}}


def reused(run: RunResults) -> list[int]:
    """Ideal reuse of each attempt, in the order of the run's records."""
    by_attempt = run_reuse(run).by_attempt
    return [by_attempt.get((a.session, a.play, a.turn, a.attempt), -1) for a in run.attempts]


@pytest.mark.parametrize(
    ("attempts", "policy", "expected"),
    [
        ([attempt("a", 0, 0.0), attempt("a", 1, 1.0)], "run", [0, 75]),  # recorded history: the reply does not count
        ([attempt("a", 1, 1.0), attempt("a", 0, 0.0)], "run", [75, 0]),  # send order, not record order
        ([attempt("a", 1, 0.0), attempt("a", 0, 1.0)], "run", [0, 74]),  # a longer prompt came first
        ([attempt("a", 0, 0.0), attempt("b", 0, 1.0)], "run", [0, 65]),  # sessions share tools and system
        ([attempt("a", 0, 0.0), attempt("b", 0, 1.0)], "session", [0, 0]),  # each session stands alone
        ([attempt("a", 0, 0.0), attempt("b", 0, 1.0)], "field", [0, 65]),  # one namespace for the run
        ([attempt("a", 0, 0.0), attempt("b", 0, 1.0)], "field-session", [0, 0]),  # one for each play
        ([attempt("a", 0, 0.0), attempt("a", 0, 1.0, play=1)], "run", [0, 65]),  # again: only shared layers
        ([attempt("a", 0, 0.0), attempt("a", 0, 1.0, attempt=1)], "run", [0, 74]),  # a retry meets itself
        ([attempt("a", 0, 0.0, status=503), attempt("a", 1, 1.0)], "run", [-1, 0]),  # refused: never in a cache
        ([attempt("a", 0, 0.0, failure=Failure("stream"), first_byte=0.1), attempt("a", 1, 1.0)], "run", [-1, 0]),
        ([attempt("a", 0, 0.0, failure=Failure("stream"), first=0.1), attempt("a", 1, 1.0)], "run", [0, 75]),
        ([attempt("a", 0, 0.0, failure=Failure("stall"), first_byte=0.1), attempt("a", 1, 1.0)], "run", [0, 75]),
    ],
)
def test_order_salt_and_outcome_decide(
    tmp_path: Path, attempts: list[Attempt], policy: str, expected: list[int]
) -> None:
    sessions = [linear(2, id="a"), linear(2, id="b")]
    assert reused(run_of(tmp_path, sessions, attempts, policy=policy, **PLAIN)) == expected


def test_the_embedded_template_is_one_marker_a_message_and_one_for_the_reply(tmp_path: Path) -> None:
    """system + user + reply marker; the second prompt's assistant message begins with that marker."""
    run = run_of(
        tmp_path,
        [linear(2)],
        [attempt("s", 0, 0.0, told=78), attempt("s", 1, 1.0, told=95)],
        template={"start": 1, "per_message": 1},
    )
    reuse = run_reuse(run)
    assert reused(run) == [0, 78]
    assert (reuse.ideal.tokens, reuse.ideal.template, reuse.drift) == (78 + 95, 3 + 5, 0)
    assert not reuse.template_fitted


@pytest.mark.parametrize(
    ("told", "template", "drift"),
    [
        ([75 + 3 + 2 * 5, 90 + 3 + 4 * 5, 105 + 3 + 6 * 5], Template(3, 5), 0),  # exact
        ([75 + 3 + 2 * 5, 90 + 3 + 4 * 5, 105 + 4 + 6 * 5], Template(3, 5), 1),  # one token is not the template's
        ([None, None, None], Template(0, 0), None),  # the server never told
    ],
)
def test_another_targets_template_is_fitted(
    tmp_path: Path, told: list[int | None], template: Template, drift: int | None
) -> None:
    attempts = [attempt("s", turn, float(turn), told=count) for turn, count in enumerate(told)]
    reuse = run_reuse(run_of(tmp_path, [linear(3)], attempts))
    assert (reuse.template, reuse.template_fitted, reuse.drift) == (template, True, drift)


def test_prompts_of_one_shape_leave_the_split_open_but_not_the_sum(tmp_path: Path) -> None:
    reuse = run_reuse(run_of(tmp_path, [linear(1)], [attempt("s", 0, 0.0, told=75 + 9)]))
    assert reuse.template == Template(1, 4)
    assert reuse.drift == 0


def test_id_wires_have_no_template(tmp_path: Path) -> None:
    reuse = run_reuse(run_of(tmp_path, [linear(1)], [attempt("s", 0, 0.0, told=80)], wire="generate"))
    assert (reuse.template, reuse.drift) == (Template(), 5)


@pytest.mark.parametrize(
    ("server", "page", "known", "expected"), [({"page_size": 16}, 16, True, 64), ({}, 1, False, 75)]
)
def test_the_servers_page_rounds_down(
    tmp_path: Path, server: dict[str, int], page: int, known: bool, expected: int
) -> None:
    attempts = [attempt("s", 0, 0.0), attempt("s", 1, 1.0)]
    reuse = run_reuse(run_of(tmp_path, [linear(2)], attempts, server=server, **PLAIN))
    assert (reuse.page, reuse.page_known, reuse.ideal.reused) == (page, known, expected)


def test_possible_counts_replies_and_goes_by_the_trace(tmp_path: Path) -> None:
    """By the trace a second play is the same session again."""
    attempts = [attempt("s", 0, 0.0), attempt("s", 1, 1.0), attempt("s", 0, 2.0, play=1)]
    reuse = run_reuse(run_of(tmp_path, [linear(2)], attempts, **PLAIN))
    assert (reuse.possible.reused, reuse.ideal.reused) == (0 + 80 + 74, 0 + 75 + 65)


def test_another_trace_is_refused(tmp_path: Path) -> None:
    run = run_of(tmp_path, [linear(1)], [attempt("gone", 0, 0.0)])
    with pytest.raises(BadInput, match="session 'gone' of the run is not in this trace"):
        run_reuse(run)


def test_a_trace_that_was_exchanged_is_refused(tmp_path: Path) -> None:
    run = run_of(tmp_path, [linear(1)], [attempt("s", 0, 0.0)], trace={"path": "x", "sha256": "00"})
    with pytest.raises(BadInput, match="not the trace that was replayed"):
        run_reuse(run)


def test_a_run_without_accepted_prompts_has_no_share(tmp_path: Path) -> None:
    run = run_of(tmp_path, [linear(1)], [replace(attempt("s", 0, 0.0), status=None, failure=Failure("refused"))])
    assert run_reuse(run).ideal.share is None
