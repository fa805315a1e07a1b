"""What the embedded engine answers: words that no recorded text has, fixed by the prompt's digest and the position.

A generated word is a space, one upper-case and two lower-case letters: one token id of four bytes.
"""

from __future__ import annotations

import hashlib

SHORTEST, LONGEST = 16, 512  # of a reply that may stop by itself
FIXED = b" Tok"
"""The one token that simulated acceptance emits in token mode `fixed`, after the first (SGLang: id 100)."""

_UPPER = bytes(65 + value % 26 for value in range(256))
_LOWER = bytes(97 + value % 26 for value in range(256))


def seed_of(prompt: bytes) -> bytes:
    """The digest that a prompt's reply is made from."""
    return hashlib.blake2b(prompt, digest_size=16, person=b"agentx-reply").digest()


def natural_length(seed: bytes) -> int:
    """Tokens after which a reply stops unless it is told not to."""
    return SHORTEST + int.from_bytes(seed[:4], "little") % (LONGEST - SHORTEST + 1)


def words(seed: bytes, count: int) -> bytes:
    """The first `count` tokens of the reply, four bytes each."""
    raw = hashlib.shake_128(seed).digest(3 * count)
    out = bytearray(b" " * (4 * count))
    out[1::4] = raw[0::3].translate(_UPPER)
    out[2::4] = raw[1::3].translate(_LOWER)
    out[3::4] = raw[2::3].translate(_LOWER)
    return bytes(out)
