"""The shipped targets give the published figures that their constants were derived from."""

from __future__ import annotations

import random
import re

import pytest

from agentx import catalog
from agentx.engine.engine import Engine, Request, Tokens
from agentx.engine.settings import EngineSettings, Timing, load_engine
from agentx.replayer.simulate import simulate


def settings_of(name: str) -> EngineSettings:
    return load_engine(catalog.resolve("targets", name))


def answer(engine: Engine, prompt: bytes, reply: int, now: float) -> tuple[float, float]:
    """(TTFT, TPOT) in seconds of one request that has the engine to itself."""
    engine.submit(Request(f"{now}", prompt, reply, ignore_eos=True), now)
    wake: float | None = now
    came: list[tuple[float, int]] = []
    while wake is not None:
        events, wake = engine.step(wake)
        came += [(event.at, len(event.ids) // 4) for event in events if isinstance(event, Tokens)]
    return came[0][0] - now, (came[-1][0] - came[0][0]) / sum(tokens for _, tokens in came[1:])


def words(tokens: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(4 * tokens)


def test_mi325x_streams_as_at_concurrency_1_and_begins_as_at_1_to_3() -> None:
    engine = Engine(settings_of("sim-mi325x-glm-5.2-fp8"))
    context = words(196_000)
    answer(engine, context, 2, 0.0)
    ttft, tpot = answer(engine, context + words(4_000, 1), 1_700, 1_000.0)
    assert tpot == pytest.approx(12.7e-3, rel=0.06)
    assert 3.52 < ttft < 7.55  # published means of concurrency 3 and 1, to all three of which it was fitted


def test_mi355x_single_stream_gives_213_tokens_a_second() -> None:
    _, tpot = answer(Engine(settings_of("sim-mi355x-glm-5.2-mxfp4")), words(10_000), 1_500, 0.0)
    assert 1 / tpot == pytest.approx(213, rel=0.02)


def test_a_host_tier_is_all_that_the_second_mi325x_target_adds() -> None:
    plain, host = settings_of("sim-mi325x-glm-5.2-fp8"), settings_of("sim-mi325x-glm-5.2-fp8-host")
    assert (plain.cache.host.tokens, host.cache.host.tokens, host.cache.host.write) == (0, 2_100_000, "write_through")
    cache = host.cache.model_copy(update={"host": plain.cache.host})
    assert host.model_copy(update={"cache": cache}) == plain
    assert plain.speculation.acceptance.length == 2.99
    assert plain.cache.pool == plain.context == 2**20


@pytest.mark.parametrize("name", ["sim-mi325x-glm-5.2-fp8", "sim-mi355x-glm-5.2-mxfp4"])
def test_every_constant_says_whether_it_was_fitted_derived_or_assumed(name: str) -> None:
    text = catalog.resolve("targets", name).read_text()
    for constant in (*Timing.model_fields, "bytes_per_token"):
        assert re.search(rf"^  {constant}: .*# .*(fitted|derived|assumed)", text, re.MULTILINE), constant


@pytest.mark.parametrize(
    "target", ["sim-mi325x-glm-5.2-fp8", "sim-mi325x-glm-5.2-fp8-host", "sim-mi355x-glm-5.2-mxfp4"]
)
def test_the_agentx_plan_ends_on_every_node(target, tmp_path):
    """Seed 42 meets both idle caps at one moment, an ulp apart: time must go on."""
    run = simulate("coding-agent", plan="agentx-c4", target=target, sets=["measure=3m"], out=tmp_path / "run")
    assert run.complete
    assert run.books().balanced
    assert any(attempt.phase == "measure" for attempt in run.attempts)
