"""What all file formats share: folders, session ids, refusals that leave nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from importing import Json, write

from agentx.cli.main import main
from agentx.errors import BadInput
from agentx.recorder.imports.running import import_files
from agentx.recorder.imports.trie import make_format
from agentx.trace import read_trace

ROW: Json = {
    "num_turns": 1,
    "input_prompt_length": 9,
    "assistant_response_length": [4],
    "tool_call_output_length": [3],
    "tool_call_latency": [0.5],
    "final_assistant_response_length": 2,
}


def test_a_folder_stands_for_its_files_in_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / "b.jsonl", {**ROW, "input_prompt_length": 20})
    write(tmp_path / "in" / "a.jsonl", ROW, ROW)
    (tmp_path / "in" / "notes.txt").write_text("no trace")
    books = import_files(make_format(), [tmp_path / "in"], tmp_path / "out.trace")
    reader = read_trace(tmp_path / "out.trace")
    sessions = list(reader)
    # equal ids would share their identities: they are numbered
    assert [session.id for session in sessions] == ["row-1", "row-2", "row-1#2"]
    assert [session.turns[0].isl for session in sessions] == [9, 9, 20]
    assert books.notes["session id that occurs again: numbered"] == 1
    assert len(reader.header.provenance["sources"]) == 2
    assert reader.header.provenance["importer"] == "trie"


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", ROW, ROW)
    made = []
    for name in ("one.trace", "two.trace"):
        import_files(make_format(), [source], tmp_path / name)
        made.append((tmp_path / name).read_bytes())
    assert made[0] == made[1]


def test_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(BadInput, match=r"the folder holds no \.jsonl or \.json file"):
        import_files(make_format(), [tmp_path / "in"], tmp_path / "out.trace")
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    with pytest.raises(BadInput, match="there is no row"):
        import_files(make_format(), [empty], tmp_path / "out.trace")
    assert not (tmp_path / "out.trace").exists()
    assert not (tmp_path / "out.trace.part").exists()


def test_the_command_line_imports_and_prints_the_books(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "in.jsonl", ROW)
    assert main(["import", "trie", str(source), "-o", str(tmp_path / "out.trace")]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "1 read = 1 used + 0 dropped" in told.err
    assert "what this source cannot tell:" in told.err
    source.write_text("a,b,c\n1,2,3\n")
    assert main(["import", "trie", str(source), "-o", str(tmp_path / "no.trace")]) == 2
    assert "in.jsonl:1: not JSON" in capsys.readouterr().err
