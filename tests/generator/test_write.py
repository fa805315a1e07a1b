"""A generated trace: byte-identical, readable, and it says how to make it again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from specs import EVERYTHING, FIXED, made

from agentx import catalog
from agentx.errors import AgentxError, BadInput
from agentx.generator.sessions import sessions
from agentx.generator.spec import load_spec
from agentx.generator.write import generate, header
from agentx.trace import TraceWriter, read_trace

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
    for found, want in zip(read, sessions(SPEC, 1, 4), strict=True):
        assert (found.id, found.turns, dict(found.segments)) == (want.id, want.turns, want.segments)
        assert all(found.runs(turn.index) == want.runs(turn.index) for turn in want.turns)


def test_every_process_writes_the_same_bytes(tmp_path: Path) -> None:
    code = (
        "import sys; from agentx import catalog; from agentx.generator.spec import load_spec;"
        "from agentx.generator.write import generate, header;"
        "generate(load_spec(catalog.resolve('workloads', 'coding-agent')), seed=2, sessions=3, out=sys.argv[1])"
    )
    found = set()
    for hash_seed in ("1", "2"):
        out = tmp_path / f"{hash_seed}.trace"
        environment = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(Path(__file__).parents[2])}
        subprocess.run([sys.executable, "-c", code, str(out)], check=True, env=environment)
        found.add(out.read_bytes())
    assert len(found) == 1


@pytest.mark.parametrize("ending", ["trace", "jsonl"])
def test_any_number_of_workers_writes_the_same_bytes(ending: str, tmp_path: Path) -> None:
    spec = made(EVERYTHING, "groups={size: 5}")
    paths = [
        generate(spec, seed=4, sessions=70, out=tmp_path / f"{workers}.{ending}", workers=workers) for workers in (1, 3)
    ]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    with TraceWriter(tmp_path / f"plain.{ending}", header(spec, 4, "generated")) as writer:
        for session in sessions(spec, 4, 70):
            writer.session(session)
    assert writer.path.read_bytes() == paths[0].read_bytes()


def test_a_workers_bad_input_is_one_line(tmp_path: Path) -> None:
    spec = made(FIXED, "turns.parallel={quantiles: {0: 1, 0.99: 1, 1: 9999}}", "turns.user=30")
    with pytest.raises(BadInput, match=r"a reply calls [0-9]+ tools, the limit is 1024"):
        generate(spec, seed=0, sessions=200, out=tmp_path / "a.trace", workers=2)


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
