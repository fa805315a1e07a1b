"""Content codings undone, bombs and damage refused."""

from __future__ import annotations

import gzip
import importlib.util
import zlib

import pytest

from agentx.recorder.decoding import Undecodable, decoded

DATA = b'{"a": "b"}' * 100


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("", DATA),
        ("identity", DATA),
        ("gzip", gzip.compress(DATA, mtime=0)),
        ("x-gzip", gzip.compress(DATA[:500], mtime=0) + gzip.compress(DATA[500:], mtime=0)),  # two members
        ("deflate", zlib.compress(DATA)),
        ("deflate", raw_deflate(DATA)),  # what some servers mean by it
        ("deflate, gzip", gzip.compress(zlib.compress(DATA), mtime=0)),
    ],
)
def test_codings(coding: str, body: bytes) -> None:
    assert decoded(body, coding) == DATA


def test_a_cut_stream_gives_what_came() -> None:
    packed = gzip.compress(DATA, mtime=0)
    assert DATA.startswith(decoded(packed[:-10], "gzip"))


@pytest.mark.parametrize(
    ("coding", "body", "says"),
    [
        ("gzip", b"not gzip", "damaged"),
        ("gzip", gzip.compress(b"\0" * 2_000_000, mtime=0), "grows beyond"),  # a bomb
        ("rot13", DATA, "not known"),
    ],
)
def test_refusals(coding: str, body: bytes, says: str) -> None:
    with pytest.raises(Undecodable, match=says):
        decoded(body, coding, limit=1_000_000)


@pytest.mark.parametrize(("coding", "package"), [("br", "brotli"), ("zstd", "zstandard")])
def test_a_missing_package_is_named(coding: str, package: str) -> None:
    if importlib.util.find_spec(package):
        pytest.skip(f"{package} is installed")
    with pytest.raises(Undecodable, match=f"pip install {package}"):
        decoded(b"x", coding)
