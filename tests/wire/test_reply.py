"""Errors in every shape that servers and the proxies before them send."""

from __future__ import annotations

import pytest

from agentx.wire.reply import ServerError, join_text, parse_error, seconds_of


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"object":"error","message":"too long","type":"BadRequestError","code":400}', ServerError(400, "too long")),
        (b'{"error":{"message":"too long"}}', ServerError(418, "too long")),  # no code of its own: the status
        (
            b'{"error":{"message":"m","code":"context_length_exceeded"}}',
            ServerError("context_length_exceeded", "m"),
        ),
        (b'{"error":"plain"}', ServerError(418, "plain")),
        (b'{"detail":"Not Found"}', ServerError(418, "Not Found")),
        (b'{"detail":[{"loc":["body"]}]}', ServerError(418, '[{"loc": ["body"]}]')),
        (b'{"error":{"type":"overloaded_error","message":"busy"}}', ServerError("overloaded_error", "busy")),
        (b"<html>\n <h1>502 Bad Gateway</h1></html>", ServerError(418, "<html> <h1>502 Bad Gateway</h1></html>")),
        (b"", ServerError(418, "no body")),
        (b"\xff\xfe", ServerError(418, "\ufffd\ufffd")),
        (b'{"ok":true}', ServerError(418, '{"ok":true}')),
    ],
)
def test_parse_error(body: bytes, expected: ServerError) -> None:
    assert parse_error(body, 418) == expected


def test_a_long_page_is_cut_to_one_line() -> None:
    message = parse_error(b"word " * 1000, 502).message
    assert len(message) == 200
    assert "\n" not in message


def test_join_text_mends_pairs_and_survives_lone_halves() -> None:
    assert join_text(["a\ud83d", "\ude00b"]) == "a\U0001f600b"
    assert join_text(["\ude00"]) == "\ufffd"


@pytest.mark.parametrize("value", [None, "1", True, -1.0, float("nan"), float("inf"), []])
def test_seconds_that_cannot_be_are_unknown(value: object) -> None:
    assert seconds_of(value) is None
