"""The problems against a server whose script knows the answers, or not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentx.cli.main import main
from agentx.engine.http_script import Rule, Script
from agentx.engine.server import running
from agentx.engine.settings import EngineSettings
from agentx.errors import BadInput, Unreachable
from agentx.quality.asking import Asking, ask
from agentx.quality.problems import Problem, problems
from agentx.quality.results import NAME
from agentx.replayer.targets import resolve_target

PROBLEMS = list(problems(6, 1, ["short"]))


@contextmanager
def oracle(wrong: frozenset[str] = frozenset(), known: list[Problem] = PROBLEMS) -> Iterator[str]:
    """A server that answers these problems rightly but for some."""
    rules = [
        Rule.model_validate(
            {"contains": one.prompt.split("\n\n")[0], "text": f"So:\nAnswer: {1 if one.id in wrong else one.answer}"}
        )
        for one in known
    ]
    settings = EngineSettings.model_validate({"context": 65_536})
    with running(settings, script=Script(tuple(rules), lambda text: None)) as url:
        yield url


def test_right_and_wrong_answers(tmp_path: Path) -> None:
    with oracle(frozenset(["p0002"])) as url:
        found = ask(resolve_target(url), PROBLEMS, tmp_path / "q", Asking(at_a_time=3), {"seed": 1})
    assert {one.id: one.verdict for one in found.outcomes} == {
        problem.id: "wrong" if problem.id == "p0002" else "right" for problem in PROBLEMS
    }
    assert found.complete
    assert found.about["seed"] == 1
    assert found.about["server"]["model"] == "agentx"
    assert all(one.prompt_tokens for one in found.outcomes)


def test_long_problems(tmp_path: Path) -> None:
    long = list(problems(2, 1, ["long"]))
    with oracle(known=long) as url:
        found = ask(resolve_target(url), long, tmp_path / "q", Asking(), {})
    assert found.count("right", "long") == 2


def test_noise_is_no_answer(tmp_path: Path) -> None:
    """The embedded engine without a script says words of its own."""
    found = ask(resolve_target("laptop"), PROBLEMS[:2], tmp_path / "q", Asking(max_tokens=8), {})
    assert found.count("no_answer") == 2


def test_a_target_that_simulates_acceptance_is_refused(tmp_path: Path) -> None:
    sets = ["speculation={algorithm: EAGLE, steps: 3, draft_tokens: 4, acceptance: {length: 2.5}}"]
    with pytest.raises(BadInput, match="simulates acceptance"):
        ask(resolve_target("laptop", sets), PROBLEMS, tmp_path / "q", Asking(), {})
    assert not (tmp_path / "q").exists()


def test_errors_of_the_server_are_failures(tmp_path: Path) -> None:
    """A context that is too short for every problem: 400, all failed."""
    settings = EngineSettings.model_validate({"context": 40})
    with (
        running(settings) as url,
        pytest.raises(Unreachable, match=r"every problem failed \(6\), the first by status 400"),
    ):
        ask(resolve_target(url), PROBLEMS, tmp_path / "q", Asking(), {})
    assert (tmp_path / "q" / NAME).read_text().count("\n") == 7


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Asked twice, one problem broken after: counts, the comparison, and the gate's exit codes."""
    own = tmp_path / "own.jsonl"
    own.write_text("".join(json.dumps({"question": one.prompt, "answer": one.answer}) + "\n" for one in PROBLEMS))
    for name, wrong in (("a", frozenset[str]()), ("b", frozenset(["p0003"]))):
        with oracle(wrong) as url:
            words = ["quality", "--target", url, "--questions", str(own), "-o", str(tmp_path / name)]
            assert main(words) == 0
    said = capsys.readouterr().out
    assert "short             6          0          0          0" in said
    assert "short             5          1          0          0" in said
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert main(["quality", "--compare", *folders, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["broken"][0]["id"] == "q0004"
    assert main(["quality", "--compare", *folders, "--strict"]) == 3


MISTAKES = [
    (["--target", "laptop"], "-o DIR says where"),
    (["--target", "laptop", "-o", "x", "--problems", "0"], "--problems should be 1 or more, not 0"),
    (["--target", "http://127.0.0.1:9", "-o", "x"], "127.0.0.1:9"),
    (["--compare", "none", "none"], "cannot be read"),
]


@pytest.mark.parametrize(("words", "says"), MISTAKES)
def test_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["quality", *words]) in (2, 4)
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
