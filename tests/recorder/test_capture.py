"""The capture's folder: private, locked, told apart from other folders, readable by those who may."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agentx.errors import BadInput
from agentx.recorder.capture import read_manifest, recording, write_manifest


def test_it_is_private_and_its_key_lies_outside(tmp_path: Path) -> None:
    folder, key = tmp_path / "a" / "cap", tmp_path / "key"
    with recording(folder, {"profile": "p"}, key) as capture:
        assert capture.run == 1
        capture.note_run({"closed": True})
    assert folder.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in folder.iterdir())
    manifest = read_manifest(folder)
    assert manifest["runs"] == [{"profile": "p", "closed": True}]
    assert key.read_bytes().hex() not in (folder / "manifest.json").read_text()


def test_a_second_run_goes_on_with_the_same_key(tmp_path: Path) -> None:
    folder, key = tmp_path / "cap", tmp_path / "key"
    with recording(folder, {}, key) as first:
        pass
    with recording(folder, {}, key) as second:
        assert (second.run, second.id, second.key) == (2, first.id, first.key)


def test_a_second_recorder_is_refused(tmp_path: Path) -> None:
    with recording(tmp_path / "cap", {}, tmp_path / "key"):
        refused = pytest.raises(BadInput, match=f"another recorder .*: process {os.getpid()} on")
        with refused, recording(tmp_path / "cap", {}, tmp_path / "key"):
            pass
    with recording(tmp_path / "cap", {}, tmp_path / "key") as capture:  # the lock went with its holder
        assert capture.run == 2


def test_folders_that_are_no_captures(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(BadInput, match="holds other files"), recording(tmp_path / "mine", {}, tmp_path / "key"):
        pass
    assert not (tmp_path / "key").exists()
    with pytest.raises(BadInput, match="is a file"), recording(tmp_path / "mine" / "thesis.txt", {}):
        pass
    with pytest.raises(BadInput, match="no such folder"):
        read_manifest(tmp_path / "gone")
    with pytest.raises(BadInput, match="it has no manifest"):
        read_manifest(tmp_path / "mine")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_rights(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(BadInput, match="Permission denied"), recording(tmp_path / "locked" / "cap", {}):
        pass


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("[]", "not the manifest"),
        ('{"format": "x"}', "not the manifest"),
        (json.dumps({"format": "agentx capture", "version": 99}), "newer than"),
        (json.dumps({"format": "agentx capture", "version": 1, "id": "a"}), "a field is missing"),
    ],
)
def test_manifests_that_cannot_be_read(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(BadInput, match=says):
        read_manifest(tmp_path)


def test_a_manifest_is_replaced_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "manifest.json.part").write_text("left behind by a crash")
    write_manifest(tmp_path, {"a": 1})
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_the_counters_have_room_on_a_full_disk(tmp_path: Path) -> None:
    """Their blocks are taken at the start; cutting the file first would give them back."""
    part = tmp_path / "cap" / "manifest.json.part"
    with recording(tmp_path / "cap", {}, tmp_path / "key") as capture:
        room, number = part.stat().st_size, part.stat().st_ino
        capture.note_run({"counters": {"exchanges": 7}})
        written = tmp_path / "cap" / "manifest.json"
        assert written.stat().st_ino == number  # the same file, written over and renamed
        assert written.stat().st_size < room
        assert read_manifest(tmp_path / "cap")["runs"][-1]["counters"] == {"exchanges": 7}
    assert not part.exists()
