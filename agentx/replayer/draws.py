"""Numbers drawn by a key alone: the same in every process, and no draw moves another."""

from __future__ import annotations

from hashlib import blake2b


def share(*key: object) -> float:
    """A number in [0, 1) that hangs on the key alone."""
    digest = blake2b("/".join(map(str, key)).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 11) / (1 << 53)
