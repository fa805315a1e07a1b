"""A generated trace: byte-identical, readable, and it says how to make it again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agentx import catalog
from agentx.errors import AgentxError, BadInput
from agentx.generator.sessions import sessions
from agentx.generator.spec import load_spec
from agentx.generator.write import generate
from agentx.trace import read_trace

SPEC = load_spec(catalog.resolve("workloads", "coding-agent"), sets=["sessions=6"])


def test_the_trace_says_how_to_make_it_again(tmp_path: Path) -> None:
    one = generate(SPEC, seed=5, out=tmp_path / "one.trace", name="coding-agent")
    header = read_trace(one).header
    again = load_spec("header", text=header.provenance["spec"])
    two = generate(again, seed=header.provenance["seed"], out=tmp_path / "two.trace", name=header.name)
    assert one.read_bytes() == two.read_bytes()
    assert str(tmp_path) not in str(header)


def test_what_is_read_is_what_was_made(tmp_path: Path) -> None:
    path = generate(SPEC, seed=1, sessions=4, out=tmp_path / "a.trace")
    read = list(read_trace(path))
    for found, made in zip(read, sessions(SPEC, 1, 4), strict=True):
        assert (found.id, found.turns, dict(found.segments)) == (made.id, made.turns, made.segments)
        assert all(found.runs(turn.index) == made.runs(turn.index) for turn in made.turns)


def test_every_process_writes_the_same_bytes(tmp_path: Path) -> None:
    code = (
        "import sys; from agentx import catalog; from agentx.generator.spec import load_spec;"
        "from agentx.generator.write import generate;"
        "generate(load_spec(catalog.resolve('workloads', 'coding-agent')), seed=2, sessions=3, out=sys.argv[1])"
    )
    found = set()
    for hash_seed in ("1", "2"):
        out = tmp_path / f"{hash_seed}.trace"
        environment = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(Path(__file__).parents[2])}
        subprocess.run([sys.executable, "-c", code, str(out)], check=True, env=environment)
        found.add(out.read_bytes())
    assert len(found) == 1


def test_more_sessions_begin_with_the_fewer(tmp_path: Path) -> None:
    few = generate(SPEC, seed=3, sessions=2, out=tmp_path / "few.trace").read_bytes()
    more = generate(SPEC, seed=3, sessions=5, out=tmp_path / "more.trace").read_bytes()
    assert more.startswith(few)
    assert len(more) > len(few)


def test_a_spec_without_room_touches_no_file(tmp_path: Path) -> None:
    spec = load_spec(catalog.resolve("workloads", "coding-agent"), sets=["context_limit=3000"])
    out = tmp_path / "a.trace"
    out.write_text("precious")
    with pytest.raises(BadInput, match="no turn fits"):
        generate(spec, seed=0, out=out)
    assert out.read_text() == "precious"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_a_full_disk_is_one_line() -> None:
    with pytest.raises(AgentxError, match="/dev/full: writing failed: the disk is full") as caught:
        generate(SPEC, seed=0, sessions=100, out="/dev/full")
    assert "\n" not in str(caught.value)


def test_no_bar_without_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generate(SPEC, seed=0, out=tmp_path / "a.trace", progress=True)
    assert capsys.readouterr() == ("", "")
