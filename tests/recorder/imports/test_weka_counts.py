"""What a Weka file shows of how it was counted; what is known of its pipeline is said of its files alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from importing import Json, agent, call, weka, write

from agentx.core import Header
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.weka import import_weka
from agentx.trace import read_trace


def imported(tmp_path: Path, *sessions: Json) -> tuple[Books, Header]:
    paths = [write(tmp_path / f"{number}.json", value) for number, value in enumerate(sessions)]
    books = import_weka(paths, tmp_path / "a.trace")
    return books, read_trace(tmp_path / "a.trace").header


def pipeline(total: int | None = None, **more: int) -> Json:
    """Blocks of four tokens, prompts of 10 and 19; a subagent whose last call has 9 + 2 tokens."""
    told = {} if total is None else {"total_tokens": total}
    inner = [call(0, 8, 3, [10, 11], api_time=1), call(6, 9, 2, [10, 11], api_time=1)]
    return weka([call(0, 10, 4, [1, 2], api_time=2), agent(20, inner, duration_ms=10_000, **told),
                 call(30, 19, 2, [1, 2, 3, 4])])  # fmt: skip


def test_tails_without_an_id(tmp_path: Path) -> None:
    books, _ = imported(tmp_path, pipeline())
    said = "ids are of whole blocks of 4 tokens: 6 tokens at the ends of 4 prompts have none"
    assert said in books.findings  # 2 + 0 + 1 + 3


def test_ids_of_partial_blocks_are_no_finding(tmp_path: Path) -> None:
    books, header = imported(tmp_path, weka([call(0, 10, 4, [1, 2, 3]), call(30, 19, 2, [1, 2, 3, 4])]))
    assert not any("whole blocks" in sentence for sentence in books.findings)
    assert "known" not in header.provenance


@pytest.mark.parametrize(
    ("total", "found"),
    [
        (13, True),  # 1.18 of 9 + 2
        (10, True),
        (11, False),  # the same count
        (None, False),  # not told
        (60, False),  # a sum over all calls, which compares with nothing
    ],
)
def test_totals_of_subagents(tmp_path: Path, total: int | None, found: bool) -> None:
    books, _ = imported(tmp_path, pipeline(total))
    said = [sentence for sentence in books.findings if "the server's tokenizer" in sentence]
    assert bool(said) == found
    if total is not None and found:
        assert f"1 subagents are {total / 11:.2f} to {total / 11:.2f} times" in said[0]


def test_what_is_known_of_the_pipeline_goes_into_the_header(tmp_path: Path) -> None:
    books, header = imported(tmp_path, pipeline())
    whats = [known["what"] for known in header.provenance["known"]]
    assert "gpt-4 encoding" in whats[0]
    assert "0 of 4 calls here stand beside a conversation" in whats[1]
    assert "asked again without one" in whats[2]
    assert all(known["source"].count("/") >= 1 for known in header.provenance["known"])
    assert sum(line.startswith("known of this format: ") for line in books.lines()) == 3


def test_files_with_finer_times_are_of_another_tool(tmp_path: Path) -> None:
    value = pipeline()
    value["requests"][0]["t"] = 0.25
    _, header = imported(tmp_path, value)
    assert "known" not in header.provenance
