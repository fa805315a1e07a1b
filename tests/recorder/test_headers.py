"""What passes, what is kept, and what never is."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.recorder.headers import (
    PLAIN_REQUEST,
    Scrubber,
    credential,
    identities,
    kept,
    kept_target,
    passed_on,
    secrets,
)

KEY = "sk-test-0123456789abcdef"


def test_only_the_connections_own_headers_stay_behind() -> None:
    headers = [("X", "1"), ("Connection", "close, X-Mine"), ("x-mine", "2"), ("TE", "trailers"), ("X", "3")]
    assert passed_on(headers) == [("X", "1"), ("X", "3")]


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Authorization", f"Bearer {KEY}"),
        ("Authorization", KEY),  # without a scheme
        ("Authorization", "Basic " + base64.b64encode(f"user:{KEY}".encode()).decode()),
        ("X-Api-Key", KEY),
        ("api-key", KEY),
        ("X-Goog-Api-Key", KEY),
        ("Cookie", f"a=b; session={KEY}"),
        ("Proxy-Authorization", f"Bearer {KEY}"),
        ("X-Vendor-Token", KEY),  # one that nobody has listed
    ],
)
def test_credentials_are_found_and_never_kept(header: str, value: str) -> None:
    headers = [("Content-Type", "application/json"), (header, value)]
    assert KEY.encode() in secrets(headers, "/v1/messages")
    assert kept(headers, PLAIN_REQUEST) == [("content-type", "application/json")]
    assert identities(headers) == []


@pytest.mark.parametrize("query", [f"key={KEY}", f"a=1&token={KEY}&b=2", f"key={KEY.replace('-', '%2D')}"])
def test_credentials_in_the_query(query: str) -> None:
    assert KEY.encode() in secrets([], f"/v1/x?{query}")
    path, names = kept_target(f"/v1/x?{query}")
    assert path == "/v1/x"
    assert not any("sk" in name for name in names)


def test_harmless_query_values_stay() -> None:
    assert kept_target("/v1/messages?beta=true&x=secret") == ("/v1/messages", ["beta=true", "x"])


def test_dummy_keys_are_no_secrets() -> None:
    """vLLM users send EMPTY: struck out of every prompt it would damage text and hide nothing."""
    assert secrets([("Authorization", "Bearer EMPTY")], "/") == []


def test_identity_headers() -> None:
    headers = [
        ("X-Claude-Code-Session-Id", "s"),
        ("x-anything-session-id", "t"),
        ("baggage", "a=b,session.id=u;p=1"),
        ("X-Mine", "v"),
        ("X-Other", "w"),
    ]
    assert identities(headers, ["X-Mine"]) == [
        ("x-claude-code-session-id", "s"),
        ("x-anything-session-id", "t"),
        ("x-mine", "v"),
        ("baggage:session.id", "u"),
    ]


def test_what_a_request_authenticates_with() -> None:
    assert credential([("X-Api-Key", "a"), ("authorization", "Bearer b")]) == "Bearer b"
    assert credential([("X", "a")]) is None


@given(st.lists(st.sampled_from([b"secret12", b"secret", b"12", b"x", b"sec", b"longer-secret12"])), st.integers(1, 9))
def test_no_secret_survives_any_cut(words: list[bytes], size: int) -> None:
    data = b"".join(words)
    scrubber = Scrubber([b"longer-secret12", b"secret12"])
    out = b"".join(scrubber.feed(data[i : i + size]) for i in range(0, len(data), size)) + scrubber.close()
    assert b"secret12" not in out
    assert len(out) == len(data)
    assert out == data.replace(b"longer-secret12", b"*" * 15).replace(b"secret12", b"*" * 8)
