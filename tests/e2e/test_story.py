"""The comparison that a published pair of runs needed: with and without a host tier, near the edge of the pool.

A fixed time, so whoever is faster gets further; simulated acceptance; replies that one server cut short. Nobody tells
`compare` any of that: it has to find it. A pair that differs in its words alone raises none of it.
"""

from __future__ import annotations

import dataclasses
import json

import pytest

from agentx.cli.main import main
from agentx.core import Cached, Gap, Header
from agentx.replayer.simulate import simulate
from agentx.reporter.compare import compare
from agentx.results import read_results
from agentx.trace import TraceWriter
from tests.making import linear

NAMED = {"synthetic_acceptance", "short_replies", "isl_drift", "mix"}
SPECULATION = "target.speculation={algorithm: EAGLE, steps: 3, draft_tokens: 4}"
SHARED = ["load.sessions=4", "gaps.scale=1", "acceptance={length: 2.5}", SPECULATION, "target.cache.pool=9000"]
WITH_HOST = [*SHARED, "target.cache.host.tokens=60000"]


@pytest.fixture
def play(tmp_path):
    """Four sessions at a time, of some 4,000 tokens each when they are long: the pool holds two."""
    trace = tmp_path / "t.trace"
    with TraceWriter(trace, Header(name="t", scope="scope")) as writer:
        for number in range(12):
            session = linear(24, id=f"s{number}", fresh=150 + 10 * number, reply=30)
            turns = [dataclasses.replace(turn, gap=Gap("tool", 0.05)) for turn in session.turns]
            writer.session(dataclasses.replace(session, turns=tuple(turns)))

    def run(name, sets, **more):
        return simulate(trace, out=tmp_path / name, sets=sets, **more)

    return run


def shortened(run):
    """The same run by a server that may end a reply when it likes: every second one stopped at half."""
    attempts = [
        dataclasses.replace(one, completion_tokens=15) if one.ok and number % 2 else one
        for number, one in enumerate(run.attempts)
    ]
    return dataclasses.replace(run, attempts=tuple(attempts))


def test_what_is_known_against_the_published_pair_is_found(play):
    timed = ["measure=20s", "target.timing.prefill_token=200us"]
    a = shortened(play("without", [*SHARED, *timed], salt="x"))
    b = play("with", [*WITH_HOST, *timed], salt="x")
    found = compare([a, b])
    (pair,) = found.document()["pairs"]
    kinds = {caveat["kind"]: caveat for caveat in pair["caveats"]}
    assert kinds.keys() >= NAMED, kinds
    assert "one pair" in pair["basis"]
    assert "no interval" in pair["basis"]
    assert not pair["comparable"]
    assert all(figure["all_answered"]["interval_low"] is None for figure in pair["figures"])
    # each has its size: a quarter of the asked tokens did not come in A, and B answered more turns than A
    assert kinds["short_replies"]["size"] == pytest.approx(-0.25, abs=0.01)
    assert kinds["mix"]["size"] == pytest.approx(1 - len(a.attempts) / len(b.attempts), abs=0.05)
    assert abs(kinds["isl_drift"]["size"]) > 0.01
    # and the host tier did help, over the same turns too
    figures = {figure["name"]: figure for figure in pair["figures"]}
    assert figures["reuse_share"]["same_turns"]["ratio"] > 1.05
    text = " ".join(found.text().split())
    assert text.index("one pair") < text.index("TTFT p50")  # what is known against it comes first
    assert "Speculative acceptance was simulated in A and B" in text


def test_a_clean_pair_raises_none_of_it(play):
    """The same work in other words: every session is played once, and nothing is simulated of the speculation."""
    sets = ["load.sessions=4", "gaps.scale=1", "target.cache.pool=9000"]
    a, b = play("one", sets, salt="x"), play("two", sets, salt="y")
    (pair,) = compare([a, b]).document()["pairs"]
    assert pair["caveats"] == []
    assert pair["comparable"]
    assert pair["same_turns"] == 12 * 24


def test_a_warm_cache_is_found_beside_evictions(play):
    """The first turns found all of their prompts, as if left by an earlier run. What the pool evicts is far more."""
    a = play("cold", SHARED, salt="x")
    attempts = [
        dataclasses.replace(one, cached=Cached(total=one.prompt_tokens - 1)) if one.ok and one.turn == 0 else one
        for one in a.attempts
    ]
    b = dataclasses.replace(a, attempts=tuple(attempts))
    left = sum(
        one.prompt_tokens - 1 - old.cached.total for one, old in zip(attempts, a.attempts, strict=True) if one.turn == 0
    )
    found = compare([a, b])
    warm = [caveat for caveat in found.document()["pairs"][0]["caveats"] if caveat["kind"] == "warm"]
    assert [caveat["text"][0] for caveat in warm] == ["B"]
    assert found.sides[1].runs[0].metrics.reuse.missing_to_ideal > left > 0
    prompts = found.sides[1].runs[0].metrics.reuse.ideal.same_prompt
    assert warm[0]["size"] == pytest.approx(left / prompts, rel=0.1)


def test_the_same_on_the_command_line(play, tmp_path, capsys):
    for name, sets in (("a", SHARED), ("b", WITH_HOST)):
        play(name, [*sets, "measure=5s"], salt="x")
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json"]) == 0
    (pair,) = json.loads(capsys.readouterr().out)["pairs"]
    assert "synthetic_acceptance" in {caveat["kind"] for caveat in pair["caveats"]}
    assert "short_replies" not in {caveat["kind"] for caveat in pair["caveats"]}
    assert read_results(tmp_path / "a").complete
