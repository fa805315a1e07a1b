from __future__ import annotations

from dataclasses import replace

import pytest

from agentx.reporter.compare_caveats import Side, acceptance_length, distances, result_caveats
from agentx.reporter.compare_figures import measured


@pytest.fixture
def side(attempt, play, run):
    """A side of one run of four answered turns, or of the attempts given."""

    def make(label, attempts=None, **other):
        made = [attempt("a", turn, sent=2.0 * turn, cached=90) for turn in range(4)] if attempts is None else attempts
        return Side(label, (measured(run(made, [play("a", turns=len(made))], **other)),))

    return make


def kinds(found):
    return [caveat.kind for caveat in found]


def test_a_clean_pair_raises_nothing(side):
    assert result_caveats(side("A"), side("B"), paired=True) == ()


def test_the_mix_has_its_size(side, attempt):
    other = side("B", [attempt("a", turn, cached=90) for turn in (2, 3, 4)])
    (found,) = result_caveats(side("A"), other, paired=True)
    # of turns 0 ... 4, two are on both sides
    assert (found.kind, found.breaks) == ("mix", True)
    assert found.size == pytest.approx(3 / 5)
    assert "of 5 in all, 2 in every run (A 4, B 3)" in found.text
    assert result_caveats(side("A"), other, paired=False) == ()


@pytest.mark.parametrize(
    ("prompts", "size", "breaks"),
    [
        ((103, 100, 100, 100), None, None),  # 0.75 % on average
        ((103, 103, 103, 103), 0.03, False),
        ((90, 90, 90, 90), -0.1, True),
    ],
)
def test_isl_drift(side, attempt, prompts, size, breaks):
    other = side("B", [attempt("a", n, prompt=prompt, cached=80) for n, prompt in enumerate(prompts)])
    found = result_caveats(side("A"), other, True)
    if size is None:
        assert found == ()
        return
    assert kinds(found) == ["isl_drift"]
    assert (found[0].size, found[0].breaks) == (pytest.approx(size), breaks)


def test_short_replies(side, attempt):
    # B: one of four replies has 1 of 2 tokens: 1 of 8 asked did not come
    other = side("B", [attempt("a", n, cached=90, osl=2, told=1 if n == 0 else 2) for n in range(4)])
    found = {one.kind: one for one in result_caveats(side("A"), other, True)}
    assert found["short_replies"].size == pytest.approx(1 / 8)
    assert "A 0 of 4, B 1 of 4" in found["short_replies"].text
    assert found["short_replies"].breaks


def test_short_replies_of_a_side_that_tells_no_counts(side, attempt):
    """Unknown is not 0 %, and no difference is made of it."""
    silent = side("A", [attempt("a", n, cached=90, told=None, chunks=[(1.0, None), (2.0, None)]) for n in range(4)])
    short = side("B", [attempt("a", n, cached=90, osl=2, told=1) for n in range(4)])
    found = {one.kind: one for one in result_caveats(silent, short, True)}["short_replies"]
    assert "unknown did not come in A, 50.0 % in B" in found.text
    assert (found.size, found.breaks) == (None, False)


def test_one_failure_of_many_is_not_nothing(side, attempt):
    good = [attempt("a", n, sent=2.0 * n, cached=90) for n in range(2500)]
    found = result_caveats(side("A", good), side("B", [*good, attempt("a", 9000, failed="http")]), True)
    assert "Requests failed: 0.0 % of A, < 0.1 % of B" in found[0].text


def test_errors_but_not_what_was_cut(side, attempt):
    good = [attempt("a", n, cached=90) for n in range(4)]
    (found,) = result_caveats(side("A", good), side("B", [*good, attempt("a", 9, failed="http")]), True)
    assert (found.kind, found.size, found.breaks) == ("errors", pytest.approx(1 / 5), True)
    assert result_caveats(side("A", good), side("B", [*good, attempt("a", 9, failed="cut")]), True) == ()


def test_a_late_client(side, attempt):
    late = [attempt("a", n, sent=2.0, due=1.9, cached=90) for n in range(4)]
    (found,) = result_caveats(side("A"), side("B", late), True)
    assert (found.kind, found.size, found.breaks) == ("client_bound", pytest.approx(0.1), False)
    far = [attempt("a", n, sent=2.0, due=0.0, cached=90) for n in range(4)]
    (found,) = result_caveats(side("A"), side("B", far), True)
    assert found.breaks


def test_a_killed_run_is_not_comparable(side):
    found = result_caveats(side("A"), side("B", end=None), True)
    assert ("unusable", True) in [(caveat.kind, caveat.breaks) for caveat in found]


def test_phases(side, attempt):
    good = [attempt("a", n, cached=90) for n in range(4)]
    other = side("B", [*good, attempt("a", 9, phase="warmup", cached=90)])
    (found,) = result_caveats(side("A", good), other, True)
    assert (found.kind, found.size) == ("phases", 1)
    assert "A none; B 1 of warmup" in found.text


def test_fixed_time_says_how_far_each_got(side, attempt):
    settings = {"plan": {"measure": "10m"}}
    found = result_caveats(side("A", settings=settings), side("B", settings=settings), True)
    assert kinds(found) == ["fixed_time"]
    assert "A 4 turns, 1 whole plays; B 4 turns, 1 whole plays" in found[0].text
    once = {"plan": {"measure": "once"}}
    assert result_caveats(side("A", settings=once), side("B", settings=once), True) == ()


def test_a_fixed_time_that_was_not_steady(side, attempt):
    growing = [attempt("a", n, sent=2.0 * n, prompt=100 * (n + 1), cached=90) for n in range(4)]
    settings = {"plan": {"measure": "10m"}}
    found = result_caveats(side("A", growing, settings=settings), side("B", growing, settings=settings), True)
    assert kinds(found) == ["fixed_time", "not_stationary", "not_stationary"]
    assert "isl x2.33" in found[1].text  # 150 and 350 tokens


def test_what_one_side_could_not_tell(side, attempt):
    silent = side("B", [attempt("a", n) for n in range(4)])
    (found,) = result_caveats(side("A"), silent, True)
    assert found.kind == "told_less"
    assert found.text.startswith("B: No reply told its cached tokens")


def make_counted(side, sample, label, steps):
    samples = [
        sample(-1, generation_tokens=10, requests=1, spec_verify_calls=5),
        sample(9, generation_tokens=114, requests=5, spec_verify_calls=5 + steps, prompt_tokens=1),
    ]
    return side(label, samples=samples)


def test_acceptance_length(side, sample):
    one, other = make_counted(side, sample, "A", 50), make_counted(side, sample, "B", 40)
    # 104 tokens, of which 4 are of the prefills
    assert acceptance_length(one.runs[0]) == 2.0
    assert acceptance_length(side("A").runs[0]) is None
    found = {caveat.kind: caveat for caveat in result_caveats(one, other, True)}
    assert found["acceptance_length"].size == pytest.approx(0.25)
    assert found["acceptance_length"].breaks
    found = {caveat.kind: caveat for caveat in result_caveats(one, side("B"), True)}
    assert "unknown or none in the other" in found["acceptance_length"].text


@pytest.mark.parametrize(
    ("walls", "raised"),
    [
        ((1, 2, 3, 4), True),  # A A B B
        ((1, 4, 2, 3), False),  # A B B A
        ((0, 0, 0, 0), False),  # simulated: no clock
    ],
)
def test_the_order_of_the_runs(attempt, run, walls, raised):
    made = [measured(replace(run([attempt(cached=1)]), wall=float(wall))) for wall in walls]
    found = result_caveats(Side("A", tuple(made[:2])), Side("B", tuple(made[2:])), True)
    assert ("order" in kinds(found)) is raised


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [([1, 2], [1, 2], 0), ([1, 2], [3, 4], 1), ([1, 2, 3, 4], [3, 4, 5, 6], 0.5), ([1], [1, 1, 2], 1 / 3)],
)
def test_distances(a, b, want):
    assert distances(a, b) == pytest.approx(want)
