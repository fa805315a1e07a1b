from __future__ import annotations

import pytest

from agentx.engine.settings import LAPTOP, EngineSettings, Speculation, load_engine
from agentx.errors import BadInput

HEAD = "agentx: target/1\nkind: engine\n"


def load(text: str) -> EngineSettings:
    return load_engine("t.yaml", text=HEAD + text)


def test_the_laptop_target_is_the_default() -> None:
    assert load_engine("replays/targets/laptop.yaml") == EngineSettings()


def test_the_laptop_decodes_within_5_ms_and_prefills_100k_tokens_a_second() -> None:
    assert LAPTOP.decode_step + LAPTOP.decode_request * 8 + LAPTOP.decode_context * 1_000_000 <= 0.005
    assert LAPTOP.prefill_token <= 1 / 100_000


def test_settings_come_back_from_their_own_text() -> None:
    settings = EngineSettings()
    assert EngineSettings.model_validate(settings.model_dump(mode="json")) == settings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cache: {pool: 100, page: 3}", "a page of 3 tokens does not divide the pool of 100"),
        ("cache: {pool: 8, page: 16}", "a pool of 8 tokens is smaller than a page of 16"),
        ("cache: {pool: 4}", "holds no request"),
        ("cache: {policy: clock}", "cache.policy: should be"),
        ("cache: {pool: 160, page: 16, host: {tokens: 100}}", "does not divide the host tier of 100"),
        ("cache: {pool: -1}", "cache.pool: should be greater than or equal to 1, not -1"),
        ("cache: {host: {write: write_around}}", "cache.host.write: should be"),
        ("scheduler: {chunk: 8}\ncache: {pool: 160, page: 16}", "a chunk of 8 tokens is smaller than a page of 16"),
        ("speculation: {acceptance: {length: 0.9}}", "length: should be greater than or equal to 1"),
        ("speculation: {acceptance: {length: 2}}", "acceptance length 2 is above the bound without speculation: 1"),
        (
            "speculation: {algorithm: EAGLE, steps: 3, acceptance: {length: 4.5}}",
            "acceptance length 4.5 is above the bound of EAGLE: 4",
        ),
        ("speculation: {algorithm: NGRAM}", "NGRAM speculation needs draft_tokens"),
        ("speculation: {algorithm: EAGLE}", "EAGLE speculation needs steps"),
        ("speculation: {acceptance: {method: geometric}}", "method: should be"),
        ("timings: {}", "unknown key"),
    ],
)
def test_a_mistake_is_one_line(text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        load(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_timing_is_given_whole() -> None:
    with pytest.raises(BadInput, match="decode_step: is missing"):
        load("timing: {request: 1ms}")


@pytest.mark.parametrize("value", ["-1ms", "0.004", "4 lightyears"])
def test_a_constant_is_a_time(value: str) -> None:
    timing = EngineSettings().model_dump(mode="json")["timing"] | {"decode_step": value}
    with pytest.raises(BadInput, match=r"timing\.decode_step"):
        load(f"timing: {{{', '.join(f'{key}: {text}' for key, text in timing.items())}}}")


@pytest.mark.parametrize(
    ("speculation", "bound", "reserve"),
    [
        ({}, 1, 0),
        ({"algorithm": "EAGLE", "steps": 3, "draft_tokens": 4}, 4, 8),
        ({"algorithm": "EAGLE", "steps": 5, "draft_tokens": 4}, 6, 10),  # not bounded by draft_tokens
        ({"algorithm": "NGRAM", "draft_tokens": 8}, 8, 16),
    ],
)
def test_the_algorithm_bounds_acceptance(speculation: dict[str, object], bound: int, reserve: int) -> None:
    settings = Speculation.model_validate(speculation)
    assert (settings.bound, settings.reserve) == (bound, reserve)


@pytest.mark.parametrize("kind", ["endpoint", "launch"])
def test_a_target_of_another_kind_is_one_line(tmp_path, kind):
    path = tmp_path / "t.yaml"
    path.write_text(f"agentx: target/1\nkind: {kind}\nurl: http://127.0.0.1:1\n")
    with pytest.raises(BadInput, match=f"kind {kind}: a target of kind engine is needed here") as error:
        load_engine(path)
    assert "\n" not in str(error.value)
