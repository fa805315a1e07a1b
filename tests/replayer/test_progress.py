"""The line beside the bar."""

from __future__ import annotations

from agentx.core import Attempt, Cached, Failure
from agentx.replayer.progress import Progress, VirtualBar


def attempt(end: float, tokens: int | None, prompt: int | None = None, cached: Cached | None = None, ok: bool = True):
    return Attempt(
        "s", 0, 0, 0, 0, 0.0, 0.0, 1, 1, end=end, completion_tokens=tokens, prompt_tokens=prompt, cached=cached,
        failure=None if ok else Failure("http"),
    )  # fmt: skip


def test_the_rate_is_of_the_last_seconds_and_reuse_of_all():
    now = 0.0
    progress = Progress(lambda: now, None, wanted=False)
    assert progress.text(0) == "0 live, 0 turns, 0 tok/s, reuse unknown"
    progress.count(attempt(1.0, 100, 50, Cached(25)))
    progress.count(attempt(2.0, 300, 50, Cached(50)))
    now = 4.0
    assert progress.text(3) == "3 live, 2 turns, 100 tok/s, reuse 75.0%"
    progress.count(attempt(4.0, None, ok=False))
    now = 11.5  # the first one is more than ten seconds ago
    assert progress.text(1) == "1 live, 3 turns, 1 failed, 30 tok/s, reuse 75.0%"


def test_reuse_that_nobody_told_is_unknown():
    progress = Progress(lambda: 1.0, None, wanted=False)
    progress.count(attempt(1.0, 10, 50, Cached()))
    assert progress.text(0).endswith("reuse unknown")


def test_no_bar_without_a_terminal():
    progress = Progress(lambda: 0.0, 3, wanted=True)
    assert not progress.visible
    progress.count_play()
    progress.close()


def test_a_bar_of_virtual_seconds_for_whoever_watches_a_terminal(monkeypatch, capsys):
    with VirtualBar(3600.0) as bar:
        bar.show(1800.0)
    assert capsys.readouterr().err == ""  # no terminal, no bar
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with VirtualBar(3600.0) as bar:
        bar.show(900.4)
        bar.show(1800.0)
        assert bar._bar.n == 1800
    err = capsys.readouterr().err
    assert "/3600" in err
    assert "virtual s" in err
    with VirtualBar(3600.0, wanted=False) as bar:
        bar.show(1.0)
    assert capsys.readouterr().err == ""
