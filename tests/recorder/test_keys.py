"""The key lies outside, is private, and is told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentx.errors import BadInput
from agentx.recorder.keys import CaptureKey, key_path, make_key, read_key, read_secret


def test_a_key_is_made_once_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "a.key"
    key = make_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_key(path, key.fingerprint) == key
    with pytest.raises(BadInput, match="cannot be written"):
        make_key(path)


def test_a_wrong_or_missing_key(tmp_path: Path) -> None:
    make_key(tmp_path / "a.key")
    with pytest.raises(BadInput, match="not the key of the capture"):
        read_key(tmp_path / "a.key", "0" * 16)
    with pytest.raises(BadInput, match="--key FILE"):
        read_key(tmp_path / "b.key", "0" * 16)


def test_purposes_and_keys_cannot_be_linked() -> None:
    """R21, R32: neither a plain hash nor equal across captures."""
    one, two = CaptureKey(b"1" * 32), CaptureKey(b"2" * 32)
    names = {one.pseudonym("id", "x"), one.pseudonym("credential", "x"), two.pseudonym("id", "x")}
    assert len(names) == 3
    assert one.pseudonym("id", "x") == one.pseudonym("id", "x")


def test_where_keys_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTX_KEYS", "/somewhere")
    assert key_path("abc") == Path("/somewhere/abc.key")
    monkeypatch.delenv("AGENTX_KEYS")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert key_path("abc") == Path("/data/agentx/keys/abc.key")


def test_a_file_that_is_no_key(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"abc")
    with pytest.raises(BadInput, match="32 bytes are expected, not 3"):
        read_secret(tmp_path / "short")
