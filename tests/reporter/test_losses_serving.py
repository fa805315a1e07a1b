"""The shadow of the cache against the embedded engine under pressure: request by request it gives what the engine gave.

The engine keeps what it does to itself; the shadow knows what any server tells. What no server tells is which pass of
the scheduler refreshes all that wait: switched off, not a token may differ.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentx.engine import scheduler
from agentx.generator.spec import load_spec
from agentx.generator.write import generate
from agentx.replayer.simulate import simulate
from agentx.reporter.losses import losses_of, pool_facts, shadowed
from agentx.reporter.losses_shadow import Pool
from agentx.reporter.metrics import measure
from agentx.reporter.throughput import cached_tokens
from agentx.results import RunResults

PRESSED = (  # six sessions of up to 24,000 tokens in a pool of 26,000
    "load.sessions=6", "gaps.scale=0.01", "measure={turns: 20}", "overflow=end_session",
    "target.context=24000", "target.cache.pool=26000", "target.scheduler.chunk=2048",
)  # fmt: skip
HOST = "target.cache.host={tokens: 12000, write: %s}"
SPECULATION = "target.speculation={algorithm: EAGLE, steps: 3, draft_tokens: 4, acceptance: {length: 2.6}}"

RULES = [
    (),
    ("target.cache.page=16",),
    (HOST % "write_through",),
    (HOST % "write_back",),
    ("target.cache.policy=slru",),
    ("target.scheduler.max_running=2",),  # requests wait though there is room
    ("target.scheduler.chunk=512",),  # most prompts take many batches
    (SPECULATION, "target.cache.bigram=true"),
]


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A run under pressure, by the seed of its trace and what is set beside."""
    folder = tmp_path_factory.mktemp("pressed")

    def play(seed: int, *sets: str) -> RunResults:
        trace = folder / f"{seed}.trace"
        if not trace.exists():
            generate(load_spec("coding-agent"), seed=seed, sessions=12, out=trace, name="pressed")
        out = folder / str(len(list(folder.iterdir())))
        return simulate(trace, out=out, sets=[*PRESSED, f"seed={seed}", *sets])

    return play


def differences(run: RunResults) -> tuple[int, int]:
    """Prompt tokens that the shadow gave and the engine did not, and the other way round, over all requests."""
    ideal, facts = measure(run).reuse.ideal, pool_facts(run)
    assert ideal is not None
    assert facts is not None
    found = shadowed(run, run.attempts, ideal, Pool(**facts, page=ideal.page))
    more = [each.given - cached_tokens(one) for one, each in zip(run.attempts, found.values(), strict=True)]
    return sum(tokens for tokens in more if tokens > 0), -sum(tokens for tokens in more if tokens < 0)


@pytest.mark.parametrize("sets", RULES)
def test_the_shadow_gives_what_the_engine_gave(played, monkeypatch, sets) -> None:
    monkeypatch.setattr(scheduler, "REFRESH_PASSES", 10**9)
    run = played(1, *sets)
    assert losses_of(run, measure(run)).total > 700_000
    assert differences(run) == (0, 0)


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_nearly_all_that_is_lost_is_explained(played, seed) -> None:
    run = played(seed)
    losses = losses_of(run, measure(run))
    evicted, unexplained = losses.of("evicted"), losses.of("unexplained")
    assert evicted > 200_000
    assert unexplained <= 0.01 * evicted
    above, below = differences(run)
    assert above <= 0.01 * evicted
    assert below <= 0.05 * evicted  # the refresh of those that wait


def test_nor_does_it_need_the_time_in_the_queue(played) -> None:
    """As over the wires on which SGLang does not tell it."""
    run = played(2)
    untold = replace(run, attempts=[replace(one, queue_seconds=None) for one in run.attempts])
    losses = losses_of(untold, measure(untold))
    assert losses.of("unexplained") <= 0.05 * losses.of("evicted")


def test_a_pool_that_is_too_small_for_the_run_leaves_requests_out(played) -> None:
    """What-if pools: requests that ran at one time do not fit at one time, and the books still balance."""
    run = played(3)
    ideal, facts = measure(run).reuse.ideal, pool_facts(run)
    for tokens in (600, 6_000, 15_000):
        found = shadowed(run, run.attempts, ideal, Pool(**{**facts, "tokens": tokens}, page=1))
        given = [each.given for each in found.values()]
        assert all(tokens >= 0 for tokens in given)
        assert sum(given) < sum(one.prompt_tokens for one in run.attempts)
