"""Known secrets go, ordinary text stays, prefixes hold."""

from __future__ import annotations

import base64
import json
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.recorder.keys import CaptureKey
from agentx.recorder.redaction import Redactor, findings, secrets_left

KEY = CaptureKey(b"k" * 32)
# Built from pieces, so that no scanner takes this file for a leak.
SECRETS = {
    "anthropic": "sk-" + "ant-api03-AbCd1234efGH5678_-x",
    "openai": "sk-" + "proj-abcdEFGH1234ijklMNOP",
    "aws-key-id": "AKIA" + "IOSFODNN7EXAMPLE",
    "github": "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3",
    "gitlab": "glpat-" + "abcdefgh12345678ijkl",
    "slack": "xoxb-" + "123456789012-abcdefABCDEF",
    "google": "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "huggingface": "hf_" + "abcdefghijklmnopqrstuvwxyz12",
    "stripe": "sk_" + "live_abcdefghijkl1234567890",
    "npm": "npm_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + "abcdefghijk12345",
    "groq": "gsk_" + "abcdefghijklmnop12345678",
    "nvidia": "nvapi-" + "abcdefghij1234567890_xyz",
}
FRAMES = [
    "{}",
    'key="{}"',
    "export KEY={}\n",
    '{{"{}": 1}}',
    "see ({}).",
    "Authorization: Bearer {}",
    "{}\n\nand more",
    "é{}é",
    json.dumps("line\n{}\n"),  # tool arguments are JSON: the letter of an escape stands before the key
    json.dumps(json.dumps("tab\t{}\r")),
    json.dumps("\u00e9{}"),
    "https://h/?a=1%26key%3D{}%26b",
    "\x1b[01;31m\x1b[K{}\x1b[m\x1b[K",  # a terminal's colours
]


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("kind", SECRETS)
def test_secrets_go(kind: str, frame: str) -> None:
    text = frame.format(SECRETS[kind])
    clean = Redactor(KEY).redact(text)
    assert SECRETS[kind][8:] not in clean
    assert secrets_left(clean) == []
    assert secrets_left(text)


@pytest.mark.parametrize("offset", range(3))
def test_secrets_in_base64_go(offset: int) -> None:
    packed = base64.b64encode(b" " * offset + SECRETS["anthropic"].encode() + b" and more text").decode()
    clean = Redactor(KEY).redact(f"data: {packed}.")
    assert clean.startswith("data: <base64:")
    assert packed[:16] not in clean


@pytest.mark.parametrize("joint", ["\n", "\r\n", "\\n", "\n    "])
@pytest.mark.parametrize("width", [64, 76])
def test_secrets_in_base64_that_is_wrapped_go_whole(width: int, joint: str) -> None:
    """As `base64 FILE` prints it: the rest of a key is on the next lines."""
    packed = base64.b64encode(b"key: " + SECRETS["anthropic"].encode() * 4).decode()
    lines = textwrap.wrap(packed, width)
    clean = Redactor(KEY).redact(f"cat:{joint}{joint.join(lines)}{joint}done")
    assert [line for line in lines if line[1:] in clean] == []
    assert clean.endswith("done")


@pytest.mark.parametrize(
    "text",
    [
        "password: {}",
        "api_key: '{}'",
        "x-api-key: {}",
        'DB_PASSWORD="{}"',
        '{{"auth": {{"client_secret": "{}"}}}}',
        '"{{\\"api_key\\": \\"{}\\"}}"',
        "DefaultEndpointsProtocol=https;AccountKey={}",
        "Authorization: Basic {}",
        "curl -s -u admin:{} https://host/",
        "postgres://admin:{}@host/",
    ],
)
def test_a_value_goes_where_its_name_says_what_it_is(text: str) -> None:
    assert "hunter2hunter2" not in Redactor(KEY).redact(text.format("hunter2hunter2"))


@pytest.mark.parametrize(
    "text",
    [
        "<task-notification>the task-scheduler and risk-assessment-2024-report</task-notification>",  # R33
        "sk-learn is a library; ask-me-anything",
        "the token count is 12; tokens: 5",
        "def password(self): return self._password",
        "password: SecretStr = Field(...)\ntoken: Callable[[], str]",
        "basic authorization is deprecated",
        "C:\\notes\\task-notification",
        "deadbeef" * 8,  # a digest
        base64.b64encode(b"just an ordinary sentence in base64, nothing else").decode(),
        "https://example.com/path?x=1",
        "commit 0123456789abcdef0123456789abcdef01234567",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert Redactor(KEY).redact(text) == text


def test_other_things_that_name_people() -> None:
    clean = Redactor(KEY).redact("mail jane.doe@example.com, cd /home/jane/work, postgres://u:hunter22@db/x")
    assert "jane" not in clean
    assert "hunter22" not in clean
    assert clean.count("<") == 3


def test_the_same_secret_is_the_same_placeholder_and_another_key_another() -> None:
    one, two = Redactor(KEY), Redactor(CaptureKey(b"2" * 32))
    text = f"a {SECRETS['github']} b {SECRETS['github']}"
    first, second = (word for word in one.redact(text).split() if word.startswith("<"))
    assert first == second
    assert one.counts == {"github": 2}
    assert first not in two.redact(text)


@given(
    st.lists(
        st.sampled_from([*SECRETS.values(), "word", "x@y.org", "/home/me/", "task-notification", '"', "="]), max_size=8
    )
)
def test_redacting_twice_changes_nothing(words: list[str]) -> None:
    redactor = Redactor(KEY)
    once = redactor.redact(" ".join(words))
    assert redactor.redact(once) == once
    assert secrets_left(once) == []


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "sk-",
        "a.",
        "/home/",
        "=",
        "password",
        "x:",
        "aws_key",
        "-----BEGIN PRIVATE KEY",
        "curl -u ",
        "A" * 70 + "\n",
    ],
)
def test_long_runs_take_linear_time(piece: str) -> None:
    """Twice the text, some twice the work: counted in steps of the regular expressions' callers, not in seconds."""
    text = piece * (200_000 // len(piece))
    assert isinstance(findings(text), list)  # quadratic work would take hours here


@given(st.text(max_size=200))
def test_findings_are_within_the_text(text: str) -> None:
    assert all(0 <= start < stop <= len(text) for _, start, stop in findings(text))


_GITHUB = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    "text",
    [
        f"KEY_{_GITHUB}",  # behind an underscore
        f"token{_GITHUB}",  # behind a word
        f"{_GITHUB}_old",  # before one
        base64.b64encode(base64.b64encode(f"the key is {_GITHUB}".encode())).decode(),  # base64 inside of base64
        base64.b64encode(f"???>>>??? {_GITHUB} ???".encode()).decode().replace("/", "\\/"),  # JSON's escaped slashes
    ],
)
def test_a_hidden_token_is_found(text: str) -> None:
    assert secrets_left(text)
    assert _GITHUB not in Redactor(CaptureKey(b"k" * 32)).redact(text)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("password=hunter2", True),
        ('{"secret": "abc123"}', True),
        ("password=String", False),  # no digit: code
        ("password=ab12", False),  # fewer than 6 characters
        ("token=abc123", False),  # a name that code uses for much else
        ("laughs_and_highs_of_the_year_2024", False),
    ],
)
def test_short_values_of_passwords(text: str, changed: bool) -> None:
    assert (Redactor(CaptureKey(b"k" * 32)).redact(text) != text) == changed
