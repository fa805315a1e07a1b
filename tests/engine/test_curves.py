"""Named acceptance curves, and the length that a target takes from one."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentx import catalog
from agentx.engine.curves import acceptance_length, curve
from agentx.engine.settings import EngineSettings, load_engine
from agentx.errors import BadInput

GLM = "glm-5.2/mtp/thinking-on"


def target(speculation: str) -> EngineSettings:
    return load_engine("t.yaml", text=f"agentx: target/1\nkind: engine\nspeculation: {speculation}\n")


@pytest.mark.parametrize(
    ("name", "drafts", "length"),
    [
        (GLM, 1, 1.84),
        (GLM, 3, 2.99),
        (GLM, 8, 4.06),
        ("qwen3.5-397b/mtp/thinking-on", 8, 5.21),
        ("qwen3.5-397b/mtp/thinking-off", 7, 4.73),
        ("kimi-k2.5/eagle3/thinking-on", 8, 3.77),
    ],
)
def test_the_published_lengths(name: str, drafts: int, length: float) -> None:
    assert acceptance_length(name, drafts) == length
    assert len(curve(name)) == 8


def test_the_steps_pick_the_length() -> None:
    settings = target(f"{{algorithm: EAGLE, steps: 5, draft_tokens: 6, acceptance: {{curve: {GLM}}}}}")
    assert settings.speculation.acceptance.length == 3.61
    assert EngineSettings.model_validate(settings.model_dump(mode="json")) == settings  # what a run folder keeps


MISTAKES = [
    ("{algorithm: EAGLE, steps: 9, acceptance: {curve: glm-5.2/mtp/thinking-on}}", "has steps of 1 to 8, not 9"),
    ("{algorithm: EAGLE, acceptance: {curve: glm-5.2/mtp/thinking-on}}", "has steps of 1 to 8, not 0"),
    ("{algorithm: EAGLE, steps: 3, acceptance: {curve: glm-5.2/mtp/thinking}}", "there is glm-5.2/mtp/thinking-on"),
    ("{algorithm: EAGLE, steps: 3, acceptance: {curve: x}}", "no acceptance curve 'x' (there are glm-5.2/mtp/"),
    ("{acceptance: {curve: glm-5.2/mtp/thinking-on}}", "needs an algorithm with steps"),
    ("{algorithm: NGRAM, draft_tokens: 4, acceptance: {curve: glm-5.2/mtp/thinking-on}}", "an algorithm with steps"),
    ("{algorithm: EAGLE, steps: 3, acceptance: {curve: glm-5.2/mtp/thinking-on, length: 2}}", "say one of them"),
    ("{algorithm: EAGLE, steps: 3, acceptance: {curve: 5}}", "acceptance.curve: should be a valid string"),
    ("{algorithm: EAGLE, steps: x, acceptance: {curve: glm-5.2/mtp/thinking-on}}", "steps: should be a valid integer"),
]


@pytest.mark.parametrize(("speculation", "message"), MISTAKES)
def test_a_mistake_is_one_line(speculation: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        target(speculation)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_users_curve_is_found_before_the_built_in_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "replays" / "curves"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text("agentx: curve/1\nsource: measured\ncurves: {a: [1.5, 2.0]}\n")
    monkeypatch.setenv("AGENTX_PATH", str(tmp_path))
    assert acceptance_length("mine/a", 2) == 2.0
    (folder / "mine.yaml").write_text("agentx: curve/1\nsource: measured\ncurves: {a: [0.5]}\n")
    with pytest.raises(BadInput, match=r"mine\.yaml:3:\d+: curves\.a\.0: should be greater than or equal to 1"):
        curve("mine/a")


def test_every_curve_says_where_it_is_from() -> None:
    assert all("source: " in entry.path.read_text() for entry in catalog.entries("curves"))
