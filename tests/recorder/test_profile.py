"""Recorder profiles: the built-in ones load, mistakes are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentx import catalog
from agentx.errors import BadInput
from agentx.recorder.profile import load_profile, upstream_url

NAMES = ["anthropic", "claude-code", "codex", "litellm", "openai", "sglang", "vllm"]


@pytest.mark.parametrize("name", NAMES)
def test_the_built_in_ones(name: str) -> None:
    profile = load_profile(catalog.resolve("recorders", name))
    assert profile.upstream is not None
    assert all("http://127.0.0.1:1" in line for line in profile.setup("http://127.0.0.1:1") if "export" in line)
    assert any(line.startswith("export ") for line in profile.setup("u"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("paths: {}", "paths"),
        ("paths: {/x: soap}", "chat"),
        ("paths: {x: chat}", "should begin with /"),
        ("paths: {/x: chat}\nupstream: ftp://x", "should be a URL"),
        ("paths: {/x: chat}\nupstream: http://user:secret@x", "must not hold a password"),
        ("paths: {/x: chat}\nupstrem: http://x", "upstream"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"agentx: recorder/1\n{text}\n")
    with pytest.raises(BadInput, match=says) as caught:
        load_profile(path)
    assert "mine.yaml:" in str(caught.value)
    assert "user:secret" not in str(caught.value) or "upstream" in text


def test_urls() -> None:
    assert upstream_url("https://x/api/") == "https://x/api"
    for wrong in ("x", "http://", "http://x/?key=1", 5):
        with pytest.raises(ValueError, match=r"URL|query"):
            upstream_url(wrong)
