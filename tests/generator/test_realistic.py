"""Realistic content: exact lengths, the same in every process, no long prefixes by accident, one line without Faker."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from specs import EVERYTHING, FIXED, made

from agentx.content import embedded_ids
from agentx.core import LAYERS, Segment, Session, Text
from agentx.errors import BadInput
from agentx.generator import realistic
from agentx.generator.write import generate
from agentx.trace import TraceReader, read_trace

pytest.importorskip("faker")


def dressed(path: Path, text: str = EVERYTHING, sessions: int = 8, **more: int) -> TraceReader:
    spec = made(text, "content=realistic")
    return read_trace(generate(spec, seed=3, sessions=sessions, out=path, **more))  # type: ignore[arg-type]


def used(session: Session) -> dict[int, Segment]:
    ids = {piece.segment for turn in session.turns for piece in turn.prompt.append}
    return {id: session.segment(id) for id in ids | {t.reply for t in session.turns if t.reply is not None}}


def text_of(segment: Segment) -> str:
    assert isinstance(segment.content, Text)
    return segment.content.text


@given(st.sampled_from(LAYERS), st.integers(0, 3000), st.integers(0, 1 << 40))
def test_a_text_has_exactly_the_tokens_that_were_drawn(layer: str, tokens: int, id: int) -> None:
    segment = Segment(id, layer, tokens)  # type: ignore[arg-type]
    text = realistic.text(realistic.names(), 5, "s1", segment)
    assert text.isascii()
    assert len(text) == 4 * tokens
    assert len(embedded_ids(text)) == tokens
    assert text == realistic.text(realistic.names(), 5, "s1", segment)


def test_seed_place_and_segment_make_another_text() -> None:
    segment = Segment(1, "tool_result", 200)
    texts = {
        realistic.text(realistic.names(), seed, place, each)
        for seed in (0, 1)
        for place in ("s0", "s1", "file")
        for each in (segment, Segment(2, "tool_result", 200))
    }
    assert len(texts) == 12


def test_only_the_content_differs_from_the_plain_trace(tmp_path: Path) -> None:
    reader = dressed(tmp_path / "a.trace")
    plain = read_trace(generate(made(EVERYTHING), seed=3, sessions=8, out=tmp_path / "plain.trace"))
    for session, other in zip(reader, plain, strict=True):
        assert session.turns == other.turns
        assert session.threads == other.threads
        for id, segment in used(session).items():
            assert (segment.layer, segment.tokens) == (other.segment(id).layer, other.segment(id).tokens)
            assert len(text_of(segment)) == 4 * segment.tokens
    assert reader.header.content == "text"
    assert reader.header.provenance["faker"] == realistic.needed()
    assert plain.header.content == "synthetic"


def test_what_sessions_share_is_one_text(tmp_path: Path) -> None:
    first, second = list(dressed(tmp_path / "a.trace", FIXED, 2))
    assert first.runs(0)[:2] == second.runs(0)[:2]  # tools and system prompt
    assert first.runs(0)[2] != second.runs(0)[2]


def test_several_processes_write_the_same_bytes(tmp_path: Path) -> None:
    one = dressed(tmp_path / "one.trace", sessions=20)
    two = dressed(tmp_path / "two.trace", sessions=20, workers=2)
    assert one.path.read_bytes() == two.path.read_bytes()


def test_no_two_segments_share_a_long_prefix_by_accident(tmp_path: Path) -> None:
    texts: set[str] = set()
    for session in dressed(tmp_path / "a.trace", sessions=40):
        texts |= {text_of(segment) for segment in used(session).values()}
    ordered = sorted(text for text in texts if len(text) >= 80)  # shorter ones can be one another's beginning
    assert len(ordered) > 1000
    shares = [next(at for at in range(80) if a[at] != b[at]) for a, b in pairwise(ordered)]
    assert max(shares) < 64  # 16 tokens
    assert sum(shares) / len(shares) < 16


def test_a_trace_has_all_kinds_of_text(tmp_path: Path) -> None:
    seen = Counter[str]()
    marks = ("diff --git", "def ", "GET /", " PASSED", "SELECT", "Subject: ", "-rw-r--r--", "cursor", "opened by")
    for session in dressed(tmp_path / "a.trace", sessions=60):
        for segment in used(session).values():
            seen.update(mark for mark in marks if mark in text_of(segment))
    assert all(seen[mark] for mark in marks), seen


def test_without_faker_there_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faker", None)
    with pytest.raises(
        BadInput, match=r"needs Faker, which is not installed \(pip install 'agentx-replay\[realistic\]'\)"
    ):
        dressed(tmp_path / "a.trace")
    assert not (tmp_path / "a.trace").exists()


def test_faker_is_loaded_only_when_it_is_asked_for() -> None:
    code = "import sys, agentx.generator.write; print('faker' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
