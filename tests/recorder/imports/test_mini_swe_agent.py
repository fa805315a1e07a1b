"""mini-swe-agent's trajectories of both ages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from logs import Json, take, written

from agentx.errors import BadInput


def said(role: str, words: str, when: float | None = None, **more: Any) -> Json:
    extra = {"extra": {"timestamp": 1_796_054_000.0 + when, **more}} if when is not None else {}
    return {"role": role, "content": words, **extra}


OLD = [said("system", "you are an agent"), said("user", "fix it"), said("assistant", "ls"), said("user", "a b"),
       said("assistant", "done"), said("user", "")]  # fmt: skip


def new() -> Json:
    usage = {"prompt_tokens": 300, "completion_tokens": 12}
    later = {"prompt_tokens": 340, "completion_tokens": 7}
    messages = [
        said("system", "you are an agent", 0), said("user", "fix it", 0),
        said("assistant", "ls", 4, response={"id": "r1", "model": "m", "usage": usage}),
        said("user", "a b", 5.5), said("assistant", "done", 8, response={"usage": later}), said("exit", "bye", 9),
    ]  # fmt: skip
    return {"trajectory_format": "mini-swe-agent-1.1", "info": {"config": {"model": {"model_name": "m"}}},
            "messages": messages}  # fmt: skip


def test_a_bare_list_has_neither_times_nor_usage(tmp_path: Path) -> None:
    taken = take("mini_swe_agent", written(tmp_path / "a.traj.json", OLD))
    (session,) = taken.sessions
    assert session.arrival is None
    told = taken.header.provenance["fidelity"]
    assert (told["timing"], told["usage"], told["gaps"]) == ("ordinal", "estimated", "none")
    assert [turn.extra["estimated"] for turn in session.turns] == [["isl", "osl"]] * 2
    second = session.turns[1]
    assert second.observed is None
    assert (second.gap.kind, second.gap.seconds, second.gap.provenance) == ("tool", 0.0, "inferred")
    assert (taken.books.rows.read, taken.books.rows.used, taken.books.rows.merged) == (6, 2, 4)


def test_newer_files_have_both(tmp_path: Path) -> None:
    taken = take("mini_swe_agent", written(tmp_path / "a.traj.json", new()))
    first, second = taken.turns
    assert taken.lengths() == [(300, 12), (340, 7)]
    assert (second.gap.kind, second.gap.seconds, second.prompt.base) == ("tool", 1.5, 0)
    assert first.observed is not None
    assert (first.observed.start, first.observed.end) == (0.0, 4.0)


def test_each_file_is_a_session(tmp_path: Path) -> None:
    written(tmp_path / "t" / "a.traj.json", new())
    written(tmp_path / "t" / "sub" / "b.traj.json", new())
    taken = take("mini_swe_agent", tmp_path / "t", folder=tmp_path)
    assert len(taken.sessions) == 2
    assert len(taken.sessions[0].shared) > 0  # equal content is equal in both


@pytest.mark.parametrize(
    ("value", "why"),
    [({"a": 1}, "not a trajectory"), (3, "not a trajectory"), ([], "0 model calls"), ([said("user", "x")], "0 model")],
)
def test_what_is_none(tmp_path: Path, value: Any, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        take("mini_swe_agent", written(tmp_path / "a.traj.json", value))
