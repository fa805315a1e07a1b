"""Content codings undone, bombs and damage refused."""

from __future__ import annotations

import gzip
import importlib.util
import random
import sys
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


class Brotli:
    """A decoder of `brotli` 1.2 that makes a gigabyte of whatever it is given, as much at once as it is let."""

    error = ValueError
    made = 0

    class Decompressor:
        def __init__(self) -> None:
            self.left = 1 << 30

        def process(self, data: bytes, output_buffer_limit: int) -> bytes:
            size = min(self.left, output_buffer_limit)
            self.left -= size
            Brotli.made += size
            return bytes(size)

        def can_accept_more_data(self) -> bool:
            return self.left == 0


def test_a_bomb_is_noticed_before_it_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "brotli", Brotli)  # type: ignore[arg-type]
    with pytest.raises(Undecodable, match="grows beyond"):
        decoded(b"\x01", "br", limit=5_000_000)
    assert Brotli.made <= 6 << 20


def packed_by(coding: str, data: bytes) -> bytes:
    module = pytest.importorskip({"br": "brotli", "zstd": "zstandard"}[coding])
    packed: bytes = module.compress(data)
    return packed


@pytest.mark.parametrize("coding", ["br", "zstd"])
@pytest.mark.parametrize("data", [b"", b"x", DATA, DATA * 10_000, bytes(5 << 20), random.Random(1).randbytes(3 << 20)])
def test_codings_of_packages(coding: str, data: bytes) -> None:
    packed = packed_by(coding, data)
    assert decoded(packed, coding) == data
    assert data.startswith(decoded(packed[: len(packed) - 3], coding))
    with pytest.raises(Undecodable, match="damaged"):
        decoded(b"\xff" * 9, coding)
    if len(data) > 1000:
        with pytest.raises(Undecodable, match="grows beyond"):
            decoded(packed, coding, limit=len(data) - 1)


@pytest.mark.parametrize(("coding", "package"), [("br", "brotli"), ("zstd", "zstandard")])
def test_a_missing_package_is_named(coding: str, package: str) -> None:
    if importlib.util.find_spec(package):
        pytest.skip(f"{package} is installed")
    with pytest.raises(Undecodable, match=f"pip install {package}"):
        decoded(b"x", coding)
