"""`agentx compile`: options that do not go together are one line, and a scope key is made once."""

from __future__ import annotations

from pathlib import Path

import pytest
from capturing import Maker, chat, chat_reply, user

from agentx.cli.main import main
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
