"""Imports of lengths and of public text at a level: no text, no names, no digests, and what was shared stays shared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from importing import agent, call, row, weka, write

from agentx.cli.main import main
from agentx.core import Header, Output, Piece, Prompt, Segment, Session, Text, Thread, Tool, Turn
from agentx.recorder.imports.mooncake import import_mooncake
from agentx.recorder.imports.weka import import_weka
from agentx.recorder.keys import CaptureKey
from agentx.recorder.privacy import power_of_two
from agentx.recorder.shaping import Shape, Shaping
from agentx.reuse import possible
from agentx.trace import read_trace

KEY = CaptureKey(b"k" * 32)
SECRET = "marmalade"


def texts(*said: str) -> dict[int, Segment]:
    return {id: Segment(id, "user", 8, Text(text), {"place": SECRET}) for id, text in enumerate(said)}


def told(id: str, segments: dict[int, Segment]) -> Session:
    prompt = Prompt(tuple(Piece(each, 0, 8) for each in segments))
    turn = Turn(
        0, 0, prompt, 8 * len(segments), Output(3), model=f"{SECRET}-model",
        tools=(Tool("Bash"), Tool(f"{SECRET}-tool")), extra={"stop": "end_turn", "source": SECRET},
    )  # fmt: skip
    return Session(id, (turn,), (Thread(0, type=SECRET, extra={"agent": SECRET}),), segments, extra={"source": SECRET})


def test_a_shape_has_no_text_and_no_names() -> None:
    shaping = Shaping("shape", KEY)
    one, two = (shaping.session(told(SECRET + id, texts("hello", said))) for id, said in (("a", "b"), ("b", "c")))
    assert SECRET not in repr((one, two))
    assert "hello" not in repr((one, two))
    assert [session.id for session in (one, two)] == ["s0001", "s0002"]
    assert [tool.name for tool in one.turns[0].tools] == ["Bash", "tool-1"]
    assert one.turns[0].extra == {"stop": "end_turn"}
    assert one.segments[0] == two.segments[0]  # the same text is one identity
    assert len({one.segments[0].content, one.segments[1].content, two.segments[1].content}) == 3


def test_a_header_says_its_level_and_no_digest() -> None:
    given = Header(SECRET, "x", content="text", provenance={"importer": "mlperf", "sources": ["0af3"]})
    made = Shaping("shape-coarse", KEY).header(given)
    assert (made.name, made.content, dict(made.provenance)) == (
        "mlperf", "opaque", {"importer": "mlperf", "level": "shape-coarse"}
    )  # fmt: skip
    assert Shaping().header(given) is given
    scopes = {Shaping("shape", key).scope("x") for key in (KEY, CaptureKey(b"j" * 32), None)}
    assert len(scopes) == 3
    assert Shaping().scope("x") == "x"


def sessions() -> list[dict[str, object]]:
    """A main line that grows by odd numbers of tokens, and a subagent."""
    inner = [call(0, 8, 3, [10, 11], api_time=1), call(6, 15, 2, [10, 11, 12], api_time=1)]
    return [weka([call(0, 21, 3, range(5)), agent(30, inner, duration_ms=10_000), call(40, 35, 5, range(8)),
                  call(60, 47, 1, range(11))])]  # fmt: skip


@pytest.mark.parametrize("level", [None, "shape", "shape-coarse"])
def test_levels_of_weka_sessions(tmp_path: Path, level: Shape | None) -> None:
    path, shaping = write(tmp_path / "a.jsonl", *sessions()), Shaping(level, KEY if level else None)
    import_weka([path], tmp_path / "a.trace", shaping=shaping)
    header, (session,) = read_trace(tmp_path / "a.trace").header, list(read_trace(tmp_path / "a.trace"))
    assert header.provenance.get("level") == level
    assert ("sources" in header.provenance) == (level is None)
    assert shaping.linkability.sessions == 1
    assert shaping.linkability.unique(1) == (0.4 if level == "shape-coarse" else 0.6)  # 4 4 2 4 1, or 3 5 3 2 1 of it
    if level == "shape-coarse":
        assert all(turn.observed is None for turn in session.turns)
        assert all(each.tokens == power_of_two(each.tokens) for each in session.segments.values())
    else:
        assert [turn.isl for turn in session.turns if turn.thread == 0] == [21, 35, 47]
    import_weka([path], tmp_path / "b.trace", shaping=Shaping(level, KEY if level else None))
    assert (tmp_path / "a.trace").read_bytes() == (tmp_path / "b.trace").read_bytes()


def test_what_sessions_share_stays_shared_when_lengths_are_blurred(tmp_path: Path) -> None:
    """Two rows with the same 6 blocks in front, and a third with other ones: no block of one is another's."""
    rows = [row(24 * 512, 9, [*range(6), *range(100, 118)]), row(20 * 512, 9, [*range(6), *range(200, 214)]),
            row(11 * 512, 9, range(300, 311))]  # fmt: skip
    shares = []
    for level in ("shape", "shape-coarse"):
        path = write(tmp_path / "a.jsonl", *rows)
        import_mooncake(path, tmp_path / "a.trace", shaping=Shaping(level, KEY))
        found = possible(read_trace(tmp_path / "a.trace"))
        shares.append(found.share)
    exact, rough = shares
    assert exact == pytest.approx(6 / 55)
    assert rough is not None
    assert exact * 0.7 < rough < exact * 1.4


def test_the_command_prints_what_is_linkable_with_and_without_a_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENTX_KEYS", str(tmp_path / "keys"))
    path = write(tmp_path / "a.json", sessions()[0])
    for options in ([], ["--level", "shape"], ["--level", "shape-coarse"]):
        assert main(["import", "weka", str(path), "-o", str(tmp_path / "a.trace"), *options]) == 0
        said = capsys.readouterr().err.splitlines()
        assert "still linkable, in 1 sessions (share that occurs once):" in said
        assert said[-1].endswith(f"level {options[1]}" if options else "a.trace")
        assert (tmp_path / "keys").exists() == bool(options)


def test_public_text_at_a_level(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTX_KEYS", str(tmp_path / "keys"))
    rows = [{"conversation_id": SECRET, "turn": at, "role": role, "content": f"{SECRET} {at}"}
            for at, role in enumerate(["user", "assistant", "user", "assistant"], 1)]  # fmt: skip
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    plain, shaped = tmp_path / "plain.jsonl", tmp_path / "shaped.jsonl"
    assert main(["import", "mlperf", str(path), "-o", str(plain)]) == 0
    assert main(["import", "mlperf", str(path), "-o", str(shaped), "--level", "shape"]) == 0
    assert SECRET in plain.read_text()
    assert SECRET not in shaped.read_text()
    assert possible(read_trace(shaped)).share == possible(read_trace(plain)).share
    first, second = (next(iter(read_trace(each))) for each in (plain, shaped))
    assert [turn.isl for turn in first.turns] == [turn.isl for turn in second.turns]
