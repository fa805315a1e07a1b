"""Content codings undone, within limits: gzip and deflate always, br and zstd where their packages are installed.

A body that grows beyond the limit is a decompression bomb or as good as one; it is not decoded.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from importlib import import_module
from typing import Any

MAX_DECODED = 512 << 20  # bytes
_STEP = 1 << 20  # bytes that are decoded at once
_BITE = 64  # compressed bytes that are decoded at once where the result cannot be limited
_PACKAGES = {"br": ("brotli", "brotlicffi"), "zstd": ("zstandard",)}


class Undecodable(ValueError):
    """The body cannot be decoded; the message says why."""


def decoded(body: bytes, coding: str, limit: int = MAX_DECODED) -> bytes:
    """`body` without its content coding, a list as in `Content-Encoding`; a cut stream gives what came of it.

    Raises Undecodable for a damaged body, an unknown coding, one whose package is missing, or a result over `limit`.
    """
    for name in reversed([part.strip().lower() for part in coding.split(",") if part.strip()]):
        if name == "identity":
            continue
        if name in ("gzip", "x-gzip"):
            body = _inflate(body, 31, limit)
        elif name == "deflate":
            body = _inflate(body, 15 if body[:1] and body[0] & 15 == 8 else -15, limit)
        elif name in _PACKAGES:
            body = _packaged(body, name, limit)
        else:
            raise Undecodable("its content coding is not known")  # unnamed: a header may hold anything
    return body


def _inflate(body: bytes, wbits: int, limit: int) -> bytes:
    """gzip (members one after the other too) or deflate."""
    result, size = [], 0
    while body:
        decoder = zlib.decompressobj(wbits)
        try:
            part = decoder.decompress(body, limit - size + 1)
        except zlib.error as error:
            raise Undecodable(f"the body is damaged: {error}") from None
        size += len(part)
        if size > limit:
            raise Undecodable(f"the body grows beyond {limit} bytes")
        result.append(part)
        body = decoder.unused_data.lstrip(b"\0")
    return b"".join(result)


def _package(name: str) -> Any:
    for package in _PACKAGES[name]:
        try:
            return import_module(package)
        except ImportError:
            continue
    raise Undecodable(f"{name} needs the package {_PACKAGES[name][0]}: pip install {_PACKAGES[name][0]}")


def _packaged(body: bytes, name: str, limit: int) -> bytes:
    module = _package(name)
    failure: type[Exception] = module.error if name == "br" else module.ZstdError
    pieces = _brotli(module, body) if name == "br" else _zstd(module, body)
    result, size = [], 0
    try:
        for piece in pieces:
            size += len(piece)
            if size > limit:
                raise Undecodable(f"the body grows beyond {limit} bytes")
            result.append(piece)
    except failure as error:
        raise Undecodable(f"the body is damaged: {error}") from None
    return b"".join(result)


def _brotli(module: Any, body: bytes) -> Iterator[bytes]:
    """What comes of a body, some `_STEP` bytes at a time: a bomb is noticed before it has grown."""
    decoder = module.Decompressor()
    if not hasattr(decoder, "can_accept_more_data"):  # brotli before 1.2: only small bites keep the pieces small
        feed = getattr(decoder, "process", None) or decoder.decompress
        yield from (feed(body[at : at + _BITE]) for at in range(0, len(body), _BITE))
        return
    for at in range(0, len(body), _STEP):
        data = body[at : at + _STEP]
        while (piece := decoder.process(data, output_buffer_limit=_STEP)) or not decoder.can_accept_more_data():
            yield piece
            data = b""  # the rest of what it makes of the same bytes


def _zstd(module: Any, body: bytes) -> Iterator[bytes]:
    reader = module.ZstdDecompressor().stream_reader(body, read_across_frames=True)
    while piece := reader.read(_STEP):
        yield piece
