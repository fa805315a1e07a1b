"""Headers and targets of an exchange: what is passed on, what a capture keeps of them, and what is a credential.

Passing on drops only what belongs to one connection (RFC 9110, 7.6.1). Keeping works by allow-lists: a header that
is on none is never written. Identity headers are kept as keyed pseudonyms. The values of the rest that look like
credentials are collected, so that their echoes in bodies can be struck out of the copy too.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from agentx.recorder.identity import (
    AGENT_HEADERS,
    ANY_SESSION,
    PARENT_HEADERS,
    PARENT_SESSION_HEADERS,
    SESSION_HEADERS,
)

Pairs = Sequence[tuple[str, str]]

HOP_BY_HOP = frozenset(
    [
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
    ]
)
# Kept as they are: they say how to read a body, or how a client retries.
PLAIN_REQUEST = frozenset(
    [
        "accept-encoding",
        "anthropic-beta",
        "anthropic-version",
        "content-encoding",
        "content-length",
        "content-type",
        "openai-beta",
        "user-agent",
        "x-app",
        "x-openai-subagent",
        "x-stainless-lang",
        "x-stainless-retry-count",
        "x-dynamo-session-final",
    ]
)
PLAIN_RESPONSE = frozenset(
    [
        "content-encoding",
        "content-length",
        "content-type",
        "openai-processing-ms",
        "request-id",
        "retry-after",
        "retry-after-ms",
        "server",
        "x-envoy-upstream-service-time",
        "x-request-id",
        "x-should-retry",
    ]
)
# Kept as keyed pseudonyms: which session, agent or call a request belongs to. What is read as such is kept, always.
IDENTITY = frozenset(
    [
        *SESSION_HEADERS,
        *AGENT_HEADERS,
        *PARENT_HEADERS,
        *PARENT_SESSION_HEADERS,
        "idempotency-key",
        "traceparent",
        "x-client-request-id",
        "x-codex-inference-call-id",
        "x-codex-window-id",
        "x-opencode-request",
        "x-request-id",
    ]
)
_BAGGAGE_SESSION = re.compile(r"(?:^|,)\s*session\.id\s*=\s*([^,;\s]+)")
_SECRET_NAME = re.compile(r"auth|key|token|secret|cookie|password|credential|signature", re.IGNORECASE)
_PLAIN_QUERY = frozenset({"alt", "api-version", "beta", "limit", "order", "stream"})
SHORTEST_SECRET = 8  # shorter values ("none", "EMPTY") are dummies; striking them out would damage ordinary text


def passed_on(headers: Pairs) -> list[tuple[str, str]]:
    """The end-to-end headers, in their order, with their case and duplicates."""
    named = {name.strip().lower() for key, value in headers if key.lower() == "connection" for name in value.split(",")}
    drop = HOP_BY_HOP | named
    return [(name, value) for name, value in headers if name.lower() not in drop]


def is_identity(name: str, more: Iterable[str] = ()) -> bool:
    """Whether a header, by its lower-case name, says which session, agent or call a request is part of."""
    return name in IDENTITY or name in more or ANY_SESSION.match(name) is not None


def kept(headers: Pairs, plain: frozenset[str]) -> list[tuple[str, str]]:
    """The headers that a capture keeps as they are, names in lower case."""
    return [(name.lower(), value) for name, value in headers if name.lower() in plain]


def identities(headers: Pairs, more: Iterable[str] = ()) -> list[tuple[str, str]]:
    """(lower-case name, value) of the identity headers; the caller replaces the values by pseudonyms."""
    names = frozenset(name.lower() for name in more)
    found = [(name.lower(), value) for name, value in headers if is_identity(name.lower(), names)]
    for name, value in headers:
        if name.lower() == "baggage" and (match := _BAGGAGE_SESSION.search(value)):
            found.append(("baggage:session.id", match[1]))
    return found


def credential(headers: Pairs) -> str | None:
    """What the request authenticates with, whole; None when it does not."""
    for wanted in ("authorization", "x-api-key", "api-key", "x-goog-api-key"):
        for name, value in headers:
            if name.lower() == wanted and value:
                return value
    return None


def secrets(headers: Pairs, target: str, more: Iterable[str] = ()) -> list[bytes]:
    """The credentials that a request carries in its headers and its query, longest first."""
    names = frozenset(name.lower() for name in more)
    found: set[str] = set()
    for name, value in headers:
        lower = name.lower()
        if lower in PLAIN_REQUEST or is_identity(lower, names) or not _SECRET_NAME.search(lower):
            continue
        found |= _values(lower, value)
    for name, value in _query(target):
        if name.lower() not in _PLAIN_QUERY:
            found |= {value, unquote(value)}
    long = {text.encode("utf-8", "surrogateescape") for text in found if len(text) >= SHORTEST_SECRET}
    return sorted(long, key=lambda secret: (-len(secret), secret))


def _values(name: str, value: str) -> set[str]:
    """The secret parts of one header: after the scheme, each cookie, the password of a Basic pair."""
    if name == "cookie":
        return {part.partition("=")[2].strip() for part in value.split(";")}
    scheme, _, rest = value.strip().partition(" ")
    if not rest:
        return {scheme}
    result = {rest.strip()}
    if scheme.lower() == "basic":
        try:
            user, _, password = base64.b64decode(rest, validate=True).decode("utf-8", "replace").partition(":")
            result |= {user, password}
        except (binascii.Error, ValueError):
            return result
    return result


def _query(target: str) -> list[tuple[str, str]]:
    pairs = [part.partition("=") for part in target.partition("?")[2].split("&") if part]
    return [(name, value) for name, _, value in pairs]


def kept_target(target: str) -> tuple[str, list[str]]:
    """(path, query) as a capture keeps them: of the query the names, and the values of a few harmless ones."""
    path = target.partition("?")[0]
    return path, [f"{name}={value}" if name.lower() in _PLAIN_QUERY else name for name, value in _query(target)]


class Scrubber:
    """Strikes known secrets out of a byte stream, each by as many asterisks, wherever the reads are cut."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        self._secrets = secrets
        self._hold = max((len(secret) for secret in secrets), default=1) - 1
        self._tail = b""
        self.struck = 0

    def feed(self, data: bytes) -> bytes:
        """What can be given out now: all but a tail that may be the beginning of a secret."""
        if not self._secrets:
            return data
        whole = self._strike(self._tail + data)
        cut = max(len(whole) - self._hold, 0)
        self._tail = whole[cut:]
        return whole[:cut]

    def close(self) -> bytes:
        """The rest."""
        rest, self._tail = self._tail, b""
        return rest

    def _strike(self, data: bytes) -> bytes:
        for secret in self._secrets:
            if secret in data:
                self.struck += data.count(secret)
                data = data.replace(secret, b"*" * len(secret))
        return data
