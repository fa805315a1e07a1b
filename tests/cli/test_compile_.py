"""`agentx compile`: options that do not go together are one line, and a scope key is made once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from capturing import Maker, assistant, call_of, chat, chat_reply, tool, user

from agentx.cli.main import main
from agentx.core import GapParts
from agentx.trace import read_trace

MISTAKES = [
    (["--scope", "global"], "--scope global and --scope-key FILE belong together"),
    (["--scope-key", "k"], "--scope global and --scope-key FILE belong together"),
    (["--scope", "global", "--scope-key", "k", "--level", "text"], "text is its own identity"),
]


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    maker = Maker(tmp_path)
    maker.exchange(0, chat([user("hello")]), chat_reply("yes", 10, 3))
    return maker.write()


@pytest.mark.parametrize(("options", "says"), MISTAKES)
def test_mistakes(
    capture: Path, tmp_path: Path, options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compile", str(capture), "-o", str(tmp_path / "b.trace"), "--key", str(tmp_path / "key"), *options]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not (tmp_path / "b.trace").exists()


def test_a_scope_key_is_made_once(capture: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        words = ["compile", str(capture), "-o", str(tmp_path / name), "--key", str(tmp_path / "key")]
        assert main([*words, "--scope", "global", "--scope-key", str(tmp_path / "team.key")]) == 0
    assert (tmp_path / "team.key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert read_trace(tmp_path / "a").header.identity == "global"


@pytest.mark.parametrize(("options", "advised"), [([], True), (["--template", "0+0"], False)])
def test_who_says_nothing_of_a_template_is_told_how_to_learn_it(
    capture: Path, tmp_path: Path, options: list[str], advised: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compile", str(capture), "-o", str(tmp_path / "b.trace"), "--key", str(tmp_path / "key"), *options]
    assert main(words) == 0
    assert (f"agentx compare {tmp_path / 'b.trace'} RUN" in capsys.readouterr().err) == advised


def ran(folder: Path, name: str, call: str, begin: str, end: str) -> Path:
    """One span of a tool, one line of a file."""
    told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": call}
    span = {"name": "tool", "context": {"span_id": name}, "start_time": begin, "end_time": end, "attributes": told}
    (folder / name).write_text(json.dumps(span) + "\n")
    return folder / name


JOINS: list[tuple[list[str], str]] = [
    (["gone.json"], "gone.json: no such file"),
    (["other.jsonl"], "other.jsonl: nothing in it is of this capture: 0 of 1 tool calls, by their ids"),
    (["empty"], "empty: the format cannot be told"),
    (["key"], "key: the format cannot be told"),
]


@pytest.mark.parametrize(("files", "says"), JOINS)
def test_files_that_cannot_be_joined(
    capture: Path, tmp_path: Path, files: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(tmp_path, "other.jsonl", "c9", "2026-06-01T00:00:00Z", "2026-06-01T00:00:01Z")
    (tmp_path / "empty").mkdir()
    names = [str(tmp_path / name) for name in files]
    words = ["compile", str(capture), "-o", str(tmp_path / "b.trace"), "--key", str(tmp_path / "key"), "--join"]
    assert main([*words, *names]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not (tmp_path / "b.trace").exists()


def test_a_folder_is_joined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a folder of many runs, those that are not this one's do no harm; the clock is found by the ids."""
    maker = Maker(tmp_path)
    use = [call_of("c1", "Bash", command="ls")]
    maker.exchange(0, chat([user("look")]), chat_reply(None, 10, 3, tool_calls=use))
    maker.exchange(9, chat([user("look"), assistant(None, *use), tool("c1", "x")]), chat_reply("ok", 20, 3))
    (tmp_path / "spans").mkdir()
    ran(tmp_path / "spans", "a.jsonl", "c9", "2026-06-01T00:00:00Z", "2026-06-01T00:00:01Z")
    ran(tmp_path / "spans", "b.jsonl", "c1", "2026-06-01T01:00:00Z", "2026-06-01T01:00:06.5Z")
    words = ["compile", str(maker.write()), "-o", str(tmp_path / "b.trace"), "--key", str(tmp_path / "key")]
    assert main([*words, "--join", str(tmp_path / "spans")]) == 0
    said = capsys.readouterr().err
    assert "joined spans (otel): 1 of its 2 tool calls used; its clock is " in said
    (session,) = read_trace(tmp_path / "b.trace")
    assert session.turns[1].gap.parts == GapParts(6.5)
