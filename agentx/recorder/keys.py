"""The key of a capture: 32 random bytes that lie outside of it, so that its pseudonyms mean nothing without them.

Deleting the key file makes every pseudonym of the capture unlinkable for good. Keys lie in $AGENTX_KEYS, else in
$XDG_DATA_HOME/agentx/keys, else in ~/.local/share/agentx/keys, one file per capture, readable by its owner alone.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from agentx.errors import BadInput

KEY_BYTES = 32
_MOVED = "the recorder wrote it; --key FILE names it where it was moved"
Purpose = Literal["id", "credential", "part", "item", "secret", "scope", "fingerprint", "jitter"]


@dataclass(frozen=True, slots=True)
class CaptureKey:
    """Keyed BLAKE2b; each purpose has a space of its own, so that equal inputs of two purposes cannot be linked."""

    secret: bytes

    def digest(self, purpose: Purpose, data: bytes, size: int = 16) -> bytes:
        return blake2b(data, key=self.secret, person=purpose.encode(), digest_size=size).digest()

    def pseudonym(self, purpose: Purpose, text: str) -> str:
        """A text of 32 hexadecimal digits that stands for `text` in this capture."""
        return self.digest(purpose, text.encode("utf-8", "surrogatepass")).hex()

    @property
    def fingerprint(self) -> str:
        """What a capture's manifest may say of its key, to tell a wrong one."""
        return self.digest("fingerprint", b"", 8).hex()


def key_path(capture: str) -> Path:
    """Where the key of the capture with this id lies."""
    own = os.environ.get("AGENTX_KEYS")
    if own:
        return Path(own) / f"{capture}.key"
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data) / "agentx" / "keys" / f"{capture}.key"


def make_key(path: Path) -> CaptureKey:
    """A new key in a new file, mode 0600 in a folder of mode 0700. Raises BadInput when it cannot be written."""
    key = CaptureKey(os.urandom(KEY_BYTES))
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(key.secret)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        hint = "--key FILE puts the capture's key elsewhere"
        raise BadInput(f"the capture's key cannot be written: {error.strerror}", file=path, hint=hint) from None
    return key


def read_key(path: Path, fingerprint: str) -> CaptureKey:
    """The key in a file. Raises BadInput when it is missing, damaged or that of another capture."""
    key = read_secret(path, hint=_MOVED)
    if key.fingerprint != fingerprint:
        raise BadInput("this is not the key of the capture", file=path, hint=_MOVED)
    return key


def read_secret(path: Path, hint: str = "") -> CaptureKey:
    """The key in a file, whatever it is for. Raises BadInput when it cannot be read or is none."""
    try:
        secret = path.read_bytes()
    except OSError as error:
        raise BadInput(f"the key cannot be read: {error.strerror}", file=path, hint=hint) from None
    if len(secret) != KEY_BYTES:
        raise BadInput(f"this is no key: {KEY_BYTES} bytes are expected, not {len(secret)}", file=path, hint=hint)
    return CaptureKey(secret)


def imports_key(path: Path | None = None) -> CaptureKey:
    """The key of a user's imports of logs, made when it is first needed. Raises BadInput for a file that is none."""
    path = path or key_path("imports")
    return read_secret(path) if path.exists() else make_key(path)
