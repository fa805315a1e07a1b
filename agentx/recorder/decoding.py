"""Content codings undone, within limits: gzip and deflate always, br and zstd where their packages are installed.

A body that grows beyond the limit is a decompression bomb or as good as one; it is not decoded.
"""

from __future__ import annotations

import zlib
from importlib import import_module
from typing import Any

MAX_DECODED = 512 << 20  # bytes
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
            raise Undecodable(f"the content coding {name!r} is not known")
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
    failure = module.error if name == "br" else module.ZstdError
    decoder = module.Decompressor() if name == "br" else module.ZstdDecompressor().decompressobj()
    feed = decoder.process if name == "br" and hasattr(decoder, "process") else decoder.decompress
    result, size = [], 0
    try:
        for at in range(0, len(body), 1 << 12):  # in small steps, so that a bomb is noticed before it has grown
            part = feed(body[at : at + (1 << 12)])
            size += len(part)
            if size > limit:
                raise Undecodable(f"the body grows beyond {limit} bytes")
            result.append(part)
    except failure as error:
        raise Undecodable(f"the body is damaged: {error}") from None
    return b"".join(result)
