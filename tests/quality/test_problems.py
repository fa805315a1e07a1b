"""Problems are the same everywhere, right by recount, and the long ones hold the facts of the short ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentx.errors import BadInput
from agentx.quality.problems import ASK, LEDGER, own_questions, problems


def recount(prompt: str) -> int:
    """The answer by reading the facts, as a person would."""
    numbers = [int(each) for each in re.findall(r"\d+", prompt)]
    if "boxes of" in prompt:
        boxes, each, gone = numbers
        return boxes * each - gone
    if "equally among" in prompt:
        whole, people, price = numbers
        return whole // people * price
    if "Every day" in prompt:
        start, made, used, days = numbers
        return start + days * (made - used)
    count, grams, crate = numbers
    return count * grams + crate


def test_answers_are_right() -> None:
    found = list(problems(64, 0, ["short"]))
    assert [int(problem.answer) for problem in found] == [recount(problem.prompt) for problem in found]
    assert len({problem.prompt for problem in found}) == 64
    assert all(problem.prompt.endswith(ASK) for problem in found)


def test_a_long_problem_holds_the_facts_of_the_short_one_and_no_other_of_that_name() -> None:
    found = list(problems(12, 5))
    for short, long in zip(found[::2], found[1::2], strict=True):
        assert (short.id, short.answer) == (long.id, long.answer)
        facts = re.findall(r"[^.]+\.", short.prompt.split("\n\n")[0])
        lines = long.prompt.split("\n\n")[0].splitlines()[1:]
        name = next(word for word in re.findall(r"[A-Z][a-z]+", facts[-1]) if word not in ("Each", "Every", "One"))
        places = [lines.index(fact.strip()) for fact in facts]
        assert places == sorted(places)
        assert len(lines) >= LEDGER
        assert sum(re.search(rf"\b{name}\b", line) is not None for line in lines) == len(facts)


def test_the_same_seed_gives_the_same_problems() -> None:
    assert list(problems(8, 3)) == list(problems(8, 3))
    assert list(problems(8, 3)) != list(problems(8, 4))
    first = next(problems(1, 0, ["short"]))
    assert first.prompt.startswith("Umar bought 16 boxes of labels. Each of Umar's boxes holds 31 labels.")


OWN = [
    ('{"question": "2+2?", "answer": 4}', [("q0001", "4")]),
    ('\n{"id": 7, "question": "a", "answer": "b"}\n', [("7", "b")]),
]


@pytest.mark.parametrize(("text", "want"), OWN)
def test_own_questions(tmp_path: Path, text: str, want: list[tuple[str, str]]) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(text)
    assert [(problem.id, problem.answer) for problem in own_questions(path)] == want


MISTAKES = [
    ("", "no question in it"),
    ("{", "q.jsonl:1: not JSON"),
    ('{"question": "a"}', "q.jsonl:1: question and answer are needed"),
    ('{"question": "a", "answer": true}', "question and answer are needed"),
    ('{"id": 1, "question": "a", "answer": "b"}\n{"id": 1, "question": "c", "answer": "d"}', "q.jsonl:2: id '1'"),
]


@pytest.mark.parametrize(("text", "says"), MISTAKES)
def test_mistakes(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        own_questions(path)
    assert says in str(caught.value)


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        own_questions(tmp_path / "none.jsonl")
