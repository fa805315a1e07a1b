"""The frame of all imports of logs: keys, limits, books, folders."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from logs import Json, lines, take, written

from agentx.errors import BadInput
from agentx.recorder.imports import logged
from agentx.recorder.imports.litellm import make_format
from agentx.recorder.imports.logged import import_calls

PAYLOAD: Json = {
    "litellm_call_id": "i", "call_type": "c", "startTime": 1.0, "endTime": 2.0,
    "messages": [{"role": "user", "content": "hello"}],
    "response": {"choices": [{"message": {"role": "assistant", "content": "hi"}}],
                 "usage": {"prompt_tokens": 9, "completion_tokens": 1}},
}  # fmt: skip


def test_the_key_is_made_once_and_lies_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTX_KEYS", str(tmp_path / "keys"))
    source, out = lines(tmp_path / "a.jsonl", PAYLOAD), tmp_path / "out.trace"
    import_calls(make_format(), [source], out)
    key, first = tmp_path / "keys" / "imports.key", out.read_bytes()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    import_calls(make_format(), [source], out)
    assert out.read_bytes() == first
    assert key.read_bytes() not in first
    key.write_bytes(os.urandom(32))
    import_calls(make_format(), [source], out)
    assert out.read_bytes() != first  # another key names another space of identities


def test_other_files_are_another_space_of_identities(tmp_path: Path) -> None:
    first = take("litellm", lines(tmp_path / "a.jsonl", PAYLOAD)).header.scope
    assert take("litellm", lines(tmp_path / "a.jsonl", PAYLOAD, {"a": 1})).header.scope != first


def test_the_header_says_what_is_known_how_well(tmp_path: Path) -> None:
    header = take("litellm", lines(tmp_path / "a.jsonl", PAYLOAD)).header
    assert header.provenance["fidelity"] == {
        "prompt": "reconstructed",
        "timing": "ttft",
        "lineage": "header",
        "usage": "server",
        "gaps": "total",
    }
    assert header.provenance["importer"] == "litellm"
    assert header.provenance["level"] == "shape"
    assert str(tmp_path) not in repr(header)


def test_folders_are_searched_at_any_depth(tmp_path: Path) -> None:
    written(tmp_path / "f" / "a.json", PAYLOAD)
    written(tmp_path / "f" / "deep" / "er" / "b.json", {**PAYLOAD, "litellm_call_id": "j", "startTime": 5.0})
    (tmp_path / "f" / "notes.txt").write_text("x")
    assert take("litellm", tmp_path / "f", folder=tmp_path).books.rows.read == 2


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = lines(tmp_path / "a.jsonl", PAYLOAD)
    monkeypatch.setattr(logged, "MAX_DOCUMENT", 10)
    with pytest.raises(BadInput, match="longer than the limit"):
        take("litellm", source)
    monkeypatch.setattr(logged, "MAX_FILES", 0)
    with pytest.raises(BadInput, match="more than 0 files"):
        take("litellm", source)


@pytest.mark.parametrize("level", ["shape", "shape-coarse"])
def test_no_level_but_text_has_content(tmp_path: Path, level: logged.Level) -> None:
    secret = {**PAYLOAD, "messages": [{"role": "user", "content": "the merger with Heron"}], "model": "acme-ft"}
    data = take("litellm", lines(tmp_path / "a.jsonl", secret), level=level).data
    assert b"Heron" not in data
    assert b"acme" not in data


def test_text_is_redacted(tmp_path: Path) -> None:
    """R31: a known secret in a message does not come through, its words do."""
    key = "ghp_" + "a1B2" * 9
    secret = {**PAYLOAD, "messages": [{"role": "user", "content": f"use {key} for Heron"}]}
    data = take("litellm", lines(tmp_path / "a.jsonl", secret), level="text").data
    assert key.encode() not in data
    assert b"Heron" in data


def test_tags_that_look_like_keys_are_left_alone(tmp_path: Path) -> None:
    """R33: "task-notification" has sk- in it; a redaction there would break what two prompts share."""
    talk = [{"role": "user", "content": "begin the work now, please"}]
    more = [*talk, {"role": "assistant", "content": "hi"}, {"role": "user", "content": "<task-notification> done"}]
    usage = {"response": {**PAYLOAD["response"], "usage": {"prompt_tokens": 40, "completion_tokens": 1}}}
    rows = [PAYLOAD | {"messages": talk}, PAYLOAD | {"messages": more, "startTime": 5.0, "endTime": 6.0} | usage]
    taken = take("litellm", lines(tmp_path / "a.jsonl", *rows), level="text")
    (session,) = taken.sessions
    assert b"<task-notification> done" in taken.data
    assert session.turns[1].prompt.keep == 1
