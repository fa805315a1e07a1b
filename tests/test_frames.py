"""Framing: what was written is read, a tear is reported and what lies before it is read, limits hold."""

from __future__ import annotations

from pathlib import Path

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx import frames
from agentx.errors import BadInput
from agentx.frames import FrameReader, FrameWriter, WriteFailed, encode, open_for_reading

bodies = st.dictionaries(
    st.text(max_size=5),
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=9) | st.binary(max_size=9),
    max_size=4,
)
many = st.lists(st.tuples(st.text(max_size=6), bodies), max_size=5)


@given(many, st.data())
def test_every_cut_gives_the_frames_before_it_and_a_tear(
    tmp_path_factory: pytest.TempPathFactory, written: list[tuple[str, dict[str, object]]], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("frames") / "f"
    encoded = [encode(*frame) for frame in written]
    whole = b"".join(encoded)
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut] or b"\x93")
    reader = FrameReader(path)
    read = list(reader)
    ends = [sum(map(len, encoded[:count])) for count in range(len(encoded) + 1)]
    assert read == written[: sum(end <= cut for end in ends) - 1]
    assert (reader.tear is None) == (cut in ends and cut > 0)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda b: b[:-1] + bytes([b[-1] ^ 1]), "checksum"),  # a flipped bit in the payload
        (lambda b: b"XXXX" + b[4:], "no frame begins"),  # not our magic
        (lambda b: b[:4] + b"\xff\xff\xff\xff" + b[8:], "claims"),  # a length beyond the limit
        (lambda b: b[:6], "frame's head"),  # cut in the head
        (lambda b: b[:-2], "inside a frame"),  # cut in the payload
    ],
)
def test_damage_is_named(tmp_path: Path, damage: object, reason: str) -> None:
    first, second = encode("a", {"n": 1}), encode("b", {"n": 2})
    path = tmp_path / "f"
    path.write_bytes(first + damage(second))  # type: ignore[operator]
    reader = FrameReader(path)
    assert list(reader) == [("a", {"n": 1})]
    assert reader.tear is not None
    assert reason in str(reader.tear)
    assert reader.tear.offset == len(first)


@pytest.mark.parametrize("value", [1, ["a"], ["a", 1], [1, {}], ["a", {}, 0]])
def test_a_payload_that_is_no_frame_is_a_tear(tmp_path: Path, value: object) -> None:
    payload = msgpack.packb(value)
    path = tmp_path / "f"
    path.write_bytes(frames._HEAD.pack(frames.MAGIC, len(payload), frames.zlib.crc32(payload)) + payload)
    reader = FrameReader(path)
    assert list(reader) == []
    assert reader.tear is not None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: None, "no such file"),
        (lambda p: p.mkdir(), "is a folder"),
        (lambda p: p.write_bytes(b""), "empty"),
    ],
)
def test_files_that_cannot_be_read_are_bad_input(tmp_path: Path, make: object, message: str) -> None:
    path = tmp_path / "f"
    make(path)  # type: ignore[operator]
    with pytest.raises(BadInput, match=message):
        list(FrameReader(path))


def test_values_that_do_not_fit_are_bad_input() -> None:
    with pytest.raises(BadInput, match="cannot be stored"):
        encode("a", {"n": 2**64})


def test_a_full_disk_is_one_line_and_what_was_written_stays(tmp_path: Path) -> None:
    """/dev/full takes nothing, as a full disk does."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    writer = FrameWriter("/dev/full")
    writer.write("a", {"n": 1})
    with pytest.raises(WriteFailed, match="the disk is full; what was written before is readable"):
        writer.flush()
    assert WriteFailed.exit_code != 0


def test_a_folder_that_cannot_be_made_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot be written"):
        FrameWriter(tmp_path / "file" / "x")


@pytest.mark.parametrize(
    ("files", "hint"),
    [
        (["run.json"], "agentx report reads it"),
        (["manifest.json", "seg-000001.rec"], "agentx compile makes a trace of it"),
        (["manifest.json"], "a file is needed$"),
    ],
)
def test_a_folder_in_place_of_a_file(tmp_path: Path, files: list[str], hint: str) -> None:
    for name in files:
        (tmp_path / name).touch()
    with pytest.raises(BadInput, match=hint):
        open_for_reading(tmp_path)
