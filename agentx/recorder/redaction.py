"""Known secrets in text, replaced by placeholders: the same secret by the same one, whatever stands around it.

Each part of a prompt is redacted by itself, so that a prompt which goes on from another one still does. A pattern is
tried only where its keyword is; all are anchored, because an open one would find keys inside ordinary words ("sk-"
in "task-notification"). A run of base64 is decoded and searched too. This finds *known* forms of secrets; it does not
make text anonymous.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from agentx.recorder.keys import CaptureKey


class Pattern(NamedTuple):
    """A kind of secret. `keyword` (lower case) must occur for it to be tried; group 1, if any, is the secret."""

    kind: str
    keyword: str
    expression: re.Pattern[str]


# Where a token may begin: not inside a word, but behind an underscore ("KEY_ghp_") or an escape ("\\n" in JSON, "%3D",
# a terminal's colours), whose last letter looks like one. Tool arguments and logs are JSON inside of text.
_START = (
    r"(?:(?<![A-Za-z0-9-])|(?<=\\[abefnrtv0])|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\x[0-9A-Fa-f]{2})|(?<=%[0-9A-Fa-f]{2})"
    r"|(?<=\[[mK])|(?<=[\[;][0-9]m)|(?<=[\[;][0-9]{2}m))"
)
_END = r"(?![A-Za-z0-9_-])"


def _token(kind: str, keyword: str, body: str) -> Pattern:
    # Its first letters, where they are fixed, are looked for first: the ways in which it may begin take longer to try.
    head = f"(?={body[:2]})" if body[:2].isalnum() else ""
    return Pattern(kind, keyword, re.compile(f"{head}{_START}({body}){_END}"))


def _glued(kind: str, head: str, keyword: str = "") -> Pattern:
    """A token whose head is like no word: it is found inside of one, too, if it has a digit."""
    body = "A-Za-z0-9" if head.endswith("_") else "A-Za-z0-9_-"  # "high_of_the_year_2024" is no token
    return Pattern(kind, keyword or head, re.compile(rf"({head}(?=[{body}]{{0,60}}[0-9])[{body}]{{20,}})"))


_PEM = r"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:.|\n)*?(?:-----END [A-Z ]{0,30}PRIVATE KEY|\Z))"
_AWS = r"(?i)aws_?(?:secret)?_?(?:access)?_?key[\"']?\s{0,9}[=:]\s{0,9}[\"']?([A-Za-z0-9/+=]{40})(?![A-Za-z0-9/+=])"
_NAME = r"(?:api[_-]?key|access[_-]?key|account[_-]?key|secret|token|passwd|password)"
_VALUE = r"([^\s\"'$<>{}()\\]{8,})"
_PASSWORD = r"(?:passwd|password|secret)"
_SHORT = r"[^\s\"'$<>{}()\\]"  # one of the 6 or 7 characters of a short value, which has a letter and a digit
_SHORT_VALUE = rf"(?={_SHORT}{{0,6}}[0-9])(?={_SHORT}{{0,6}}[A-Za-z])({_SHORT}{{6,7}})(?!{_SHORT})"
_QUOTE = r"\\{0,7}[\"']"  # in JSON that is inside of JSON, quotes have backslashes
# Repetitions before a keyword are bounded: an open one would take quadratic time on a long run of letters.
PATTERNS = (
    Pattern("private-key", "private key", re.compile(_PEM)),
    _token("anthropic", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{8,}"),
    _token("openai", "sk-", r"sk-(?:proj-|svcacct-|admin-|or-v1-|test-|live-)?[A-Za-z0-9_-]*[0-9][A-Za-z0-9_-]{7,}"),
    _token("aws-key-id", "a", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"),
    Pattern("aws-secret", "aws", re.compile(_AWS)),
    _token("github", "gh", r"gh[pousr]_[A-Za-z0-9]{20,}"),
    _token("github", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
    _token("gitlab", "glpat-", r"glpat-[A-Za-z0-9_-]{16,}"),
    _token("slack", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    Pattern("slack-hook", "hooks.slack.com", re.compile(r"(https://hooks\.slack\.com/[A-Za-z0-9/]{20,})")),
    _token("google", "aiza", r"AIza[A-Za-z0-9_-]{35}"),
    _token("google-oauth", "ya29", r"ya29\.[A-Za-z0-9_-]{20,}"),
    _token("google-oauth", "gocspx-", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    _token("huggingface", "hf_", r"hf_[A-Za-z0-9]{20,}"),
    _token("stripe", "_", r"(?:sk|rk|pk|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,}"),
    _token("npm", "npm_", r"npm_[A-Za-z0-9]{30,}"),
    _token("pypi", "pypi-", r"pypi-[A-Za-z0-9_-]{30,}"),
    _token("sendgrid", "sg.", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _token("twilio", "sk", r"SK[0-9a-f]{32}"),
    _token("digitalocean", "do", r"do[opr]_v1_[0-9a-f]{32,}"),
    _token("databricks", "dapi", r"dapi[0-9a-f]{32}"),
    _token("groq", "gsk_", r"gsk_[A-Za-z0-9]{20,}"),
    _token("xai", "xai-", r"xai-[A-Za-z0-9]{20,}"),
    _token("nvidia", "nvapi-", r"nvapi-[A-Za-z0-9_-]{20,}"),
    _token("perplexity", "pplx-", r"pplx-[A-Za-z0-9]{20,}"),
    _token("replicate", "r8_", r"r8_[A-Za-z0-9]{20,}"),
    _token("linear", "lin_api_", r"lin_api_[A-Za-z0-9]{20,}"),
    _token("jwt", "eyj", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    Pattern("bearer", "bearer", re.compile(r"(?i)\bbearer\s+([A-Za-z0-9._~+/=-]{16,})")),
    Pattern("url-password", "://", re.compile(r"(?<![a-z0-9])[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,200}:([^\s/@]{3,200})@")),
    Pattern("basic", "basic", re.compile(
        r"(?i)\bauthorization[\"']?\s{0,9}[:=]\s{0,9}[\"']?basic\s{1,9}([A-Za-z0-9+/]{8,}={0,2})")),
    Pattern("user-password", "curl", re.compile(
        r"\bcurl\b[^\n]{0,400}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,100}:([^\s\"'<]{3,200})")),
    Pattern("assigned", "=", re.compile(
        rf"(?i){_NAME}[A-Z0-9_]{{0,40}}\s{{0,9}}=\s{{0,9}}(?:{_QUOTE})?{_VALUE}")),
    Pattern("assigned", ":", re.compile(
        rf"(?i){_QUOTE}(?:[a-z0-9_-]{{0,40}}{_NAME}){_QUOTE}\s{{0,9}}:\s{{0,9}}{_QUOTE}{_VALUE}{_QUOTE}")),
    # Without quotes, as YAML and headers have it, a value needs a digit: "password: SecretStr" is code.
    Pattern("assigned", ":", re.compile(
        rf"(?i){_NAME}[\"']?[ \t]{{0,9}}:[ \t]{{1,9}}(?:{_QUOTE})?(?=[^\s\d]{{0,80}}\d){_VALUE}")),
    *(Pattern("assigned", sign, re.compile(
        rf"(?i){_PASSWORD}[A-Z0-9_]{{0,40}}(?:{_QUOTE})?[ \t]{{0,9}}{sign}[ \t]{{0,9}}(?:{_QUOTE})?{_SHORT_VALUE}"))
        for sign in "=:"),
    _glued("anthropic", "sk-ant-"),
    _glued("openai", "sk-proj-"),
    _glued("github", "gh[pousr]_", "gh"),
    _glued("github", "github_pat_"),
    _glued("gitlab", "glpat-"),
    _glued("huggingface", "hf_"),
    _glued("npm", "npm_"),
    _glued("groq", "gsk_"),
    _glued("nvidia", "nvapi-"),
    _token("e-mail", "@", r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,9}"),
    Pattern("home", "/", re.compile(r"(?:/home/|/Users/)([A-Za-z0-9._-]+)")),
)  # fmt: skip
_BREAK = r"(?:(?:\\r)?\\n|\r?\n)[ \t]{0,16}"
# A run of base64, also one that is wrapped into lines, as `base64` and e-mail write it.
_BASE64 = re.compile(
    rf"(?<![A-Za-z0-9+/=_-])((?:[A-Za-z0-9+/_-]{{60,80}}{_BREAK}){{1,10000}}[A-Za-z0-9+/_-]{{1,80}}={{0,2}}"
    r"|[A-Za-z0-9+/_-]{24,}={0,2})(?![A-Za-z0-9+/=_-])"
)
# The same in JSON whose writer escapes slashes.
_ESCAPED_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=_\\-])((?:[A-Za-z0-9+/_-]|\\{1,7}/){24,}={0,2})(?![A-Za-z0-9+/=_-])")
_ESCAPED_SLASH = re.compile(r"\\+/")
_NESTED = 3  # base64 inside of base64 is followed so deep
_BREAKS = re.compile(_BREAK)
_PLACEHOLDER = re.compile(r"<[a-z0-9-]+:[0-9a-f]{12}>")
_UNCERTAIN = frozenset({"home", "e-mail", "assigned"})  # kinds that are redacted, but are no proof of a secret


class Redactor:
    """Replaces secrets; `counts` says of each kind how many."""

    def __init__(self, key: CaptureKey) -> None:
        self._key = key
        self.counts: Counter[str] = Counter()

    def redact(self, text: str) -> str:
        """The text with placeholders."""
        for kind, start, stop in reversed(list(_disjoint(findings(text)))):
            self.counts[kind] += 1
            text = text[:start] + self._placeholder(kind, text[start:stop]) + text[stop:]
        return text

    def _placeholder(self, kind: str, secret: str) -> str:
        return f"<{kind}:{self._key.pseudonym('secret', secret)[:12]}>"


def findings(text: str) -> list[tuple[str, int, int]]:
    """(kind, start, stop) of every known secret in a text; they may overlap."""
    lower = text.lower()
    found = []
    for kind, keyword, expression in PATTERNS:
        if keyword in lower:
            for match in expression.finditer(text):
                if not _PLACEHOLDER.fullmatch(match[1]) and not match[1].startswith("<"):
                    found.append((kind, *match.span(1)))
    found += [("base64", *match.span(1)) for match in _runs(text) if _hides_a_secret(match[1])]
    return found


def _runs(text: str) -> Iterator[re.Match[str]]:
    yield from _BASE64.finditer(text)
    if "\\/" in text:
        yield from _ESCAPED_BASE64.finditer(text)


def secrets_left(text: str) -> list[str]:
    """The kinds of known secrets that are still in a text; names and addresses are none."""
    return sorted({kind for kind, _, _ in findings(text) if kind not in _UNCERTAIN})


def _hides_a_secret(run: str, depth: int = _NESTED) -> bool:
    """Whether a run of base64 decodes to text with a secret, at any of the four ways in which it may be aligned."""
    plain = _ESCAPED_SLASH.sub("/", _BREAKS.sub("", run)).replace("-", "+").replace("_", "/").rstrip("=")
    for skip in range(4):
        part = plain[skip:]
        part = part[: len(part) - (len(part) % 4 == 1)]
        try:
            inside = base64.b64decode(part + "=" * (-len(part) % 4)).decode("ascii", "replace")
        except (binascii.Error, ValueError):
            continue
        lower = inside.lower()
        for kind, keyword, expression in PATTERNS:
            if kind not in _UNCERTAIN and keyword in lower and expression.search(inside):
                return True
        if depth > 1 and any(_hides_a_secret(match[1], depth - 1) for match in _runs(inside)):
            return True
    return False


def _disjoint(found: list[tuple[str, int, int]]) -> Iterator[tuple[str, int, int]]:
    """Of overlapping findings the one that begins first, of these the longest."""
    end = -1
    for kind, start, stop in sorted(found, key=lambda each: (each[1], -each[2])):
        if start >= end:
            yield kind, start, stop
            end = stop
