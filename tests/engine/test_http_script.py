"""Rules in order, first match wins, a count runs out; every mistake in a file of rules is one line with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentx.engine.http_parts import scripted
from agentx.engine.http_script import Rule, Script, load_rules
from agentx.errors import BadInput


def script(*rules: dict[str, object]) -> tuple[Script, list[str]]:
    told: list[str] = []
    return Script(tuple(Rule.model_validate({"text": "x", **rule}) for rule in rules), told.append), told


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("run it", 0),
        ("please run it", 1),  # not at the beginning
        ("ls", 2),
        ("RUN", 3),  # the rule without conditions
        ("run it with both", 0),
        ("ab\nrun", 1),
        ("zz both 7", 4),  # contains and regex
        ("zz both", 3),
    ],
)
def test_the_first_rule_that_matches(message: str, expected: int) -> None:
    rules, told = script(
        {"regex": "^run"},
        {"contains": "run"},
        {"regex": "ls$"},
        {"regex": "^[^z]|h$"},
        {"contains": "both", "regex": r"\d"},
    )
    assert rules.find(message) == expected
    assert told == []


def test_a_count_runs_out_when_it_is_used() -> None:
    rules, told = script({"contains": "a", "times": 2})
    for _ in range(5):
        assert rules.find("a") == 0  # looking does not use it up
    for _ in range(2):
        rules.use(0)
    assert rules.find("a") is None
    assert rules.find("b" * 200) is None
    assert len(told) == 1  # said once
    assert "'a'" in told[0]


def test_a_long_message_is_said_short() -> None:
    rules, told = script({"contains": "a"})
    rules.find("b" * 50_000)
    assert len(told[0]) < 200


def test_yaml_and_json_lines_say_the_same(tmp_path: Path) -> None:
    yaml, lines = tmp_path / "r.yaml", tmp_path / "r.jsonl"
    yaml.write_text(
        "agentx: replies/1\nrules:\n"
        "  - contains: run\n    times: 1\n    reasoning: hm\n"
        "    calls: [{name: bash, arguments: {command: ls, n: 3}}]\n  - text: done 😀\n"
    )
    lines.write_text(
        '{"contains": "run", "times": 1, "reasoning": "hm", '
        '"calls": [{"name": "bash", "arguments": {"command": "ls", "n": 3}}]}\n\n{"text": "done \\ud83d\\ude00"}\n'
    )
    rules = load_rules(yaml)
    assert load_rules(lines) == rules
    reply = rules[0].reply(show_reasoning=True, show_calls=True)
    assert reply == scripted(reasoning="hm", calls=[("bash", {"command": "ls", "n": 3})])
    assert reply.names == ("bash",)


HEAD = "agentx: replies/1\n"


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("", "", "empty"),
        ("agentx: workload/1\n", ":1:1", "replies"),
        (HEAD, "", "rules: is missing"),
        (HEAD + "rules: []\n", ":2:1", "no rules"),
        (HEAD + "rules: 7\n", ":2:1", "rules"),
        (HEAD + "rules:\n- contains: a\n  txt: b\n", ":4:3", "did you mean 'text'"),
        (HEAD + "rules:\n- contains: a\n", ":3:3", "text, reasoning or calls"),
        (HEAD + "rules:\n- text: ''\n", ":3:3", "at least 1"),
        (HEAD + "rules:\n- text: a\n  regex: '('\n", ":4:3", "regular expression"),
        (HEAD + "rules:\n- {text: a, times: 0}\n", ":3:13", "greater than or equal to 1"),
        (HEAD + "rules:\n- {calls: [{name: f, args: {}}]}\n", ":3:22", "did you mean 'arguments'"),
        (HEAD + "rules:\n- text: [\n", ":4", ""),
    ],
)
def test_a_mistake_in_yaml_has_its_place(tmp_path: Path, text: str, place: str, says: str) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(text)
    with pytest.raises(BadInput) as caught:
        load_rules(file)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{file}{place}")
    assert says in line


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        (b"", "", "no rules"),
        (b"\n  \n", "", "no rules"),
        (b'{"text": "a"}\n{"text": }\n', ":2:10", "not JSON"),
        (b'{"text": "a"}\n\n{"txt": "a"}\n', ":3", "txt: unknown key (known: calls, contains"),
        (b'{"contains": "a"}', ":1", "text, reasoning or calls"),
        (b'{"text": "a", "regex": "["}', ":1", "regular expression"),
        (b'{"text": 7}', ":1", "text: should be a valid string"),
        (b"[]", ":1", "keys and values"),
        (b"[" * 100_000, ":1", "too deep"),
        (b'{"text": "a", "times": ' + b"9" * 5000 + b"}", ":1", "too long"),
        (b'{"text": "\xff"}', "", "UTF-8"),
    ],
)
def test_a_mistake_in_json_lines_has_its_line(tmp_path: Path, text: bytes, place: str, says: str) -> None:
    file = tmp_path / "r.jsonl"
    file.write_bytes(text)
    with pytest.raises(BadInput) as caught:
        load_rules(file)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{file}{place}: ")
    assert says in line


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for name in ("r.yaml", "r.jsonl"):
        with pytest.raises(BadInput, match=name):
            load_rules(tmp_path / name)
