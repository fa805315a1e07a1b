from __future__ import annotations

import pytest

from agentx.reporter.compare_caveats import Side
from agentx.reporter.compare_conditions import condition_caveats, differences, flat
from agentx.reporter.compare_figures import measured

BASE = {
    "plan": {"load": {"sessions": 4}, "seed": 0, "order": "file", "drain": "30m", "trace": "x", "target": "y"},
    "target": {"kind": "endpoint", "name": "here", "url": "http://one", "gpus": 8, "speculation": {"algorithm": None}},
    "server": {"version": "0.5.23", "model": "m", "page_size": 64},
    "launch": {"image_digest": "sha256:1", "model_config_sha256": "c", "ready_seconds": 3.0},
    "trace": {"name": "t", "sha256": "aa"},
    "salt": "s1",
}


def changed(path, value):
    """BASE with one key changed, and its own salt."""
    made = {name: dict(inner) if isinstance(inner, dict) else inner for name, inner in BASE.items()}
    made["salt"] = "s2"
    at = made
    *way, last = path.split(".")
    for part in way:
        at[part] = dict(at[part])
        at = at[part]
    at[last] = value
    return made


@pytest.mark.parametrize(
    ("path", "value", "kind", "breaks", "words"),
    [
        ("plan.load.sessions", 3, "plan", True, "load.sessions 4 / 3"),
        ("plan.drain", "5m", "plan_other", False, "drain 30m / 5m"),
        ("server.version", "0.5.24", "server_version", False, "0.5.23 / 0.5.24"),
        ("server.page_size", 1, "server_flags", False, "page_size 64 / 1"),
        ("server.model", "n", "model", True, "m / n"),
        ("server.engine_rules", "SGLang 0.5.23", "engine_rules", True, "a server of its own / SGLang 0.5.23"),
        ("target.gpus", 4, "gpus", False, "8 / 4"),
        ("target.cache", {"pool": 7}, "target", False, "cache.pool unset / 7"),
        ("launch.image_digest", "sha256:2", "launched", False, "image_digest sha256:1 / sha256:2"),
        ("trace.sha256", "bb", "traces", True, "(aa, bb)"),
        ("simulated", True, "simulated", True, "virtual time"),
        ("server", {}, "server_unknown", False, "Of the second side's server nothing is known"),
    ],
)
def test_each_difference_is_named(run, path, value, kind, breaks, words):
    sides = [Side(label, (measured(run(settings=own)),)) for label, own in (("A", BASE), ("B", changed(path, value)))]
    found = {caveat.kind: caveat for caveat in condition_caveats(*sides)}
    assert kind in found
    assert found[kind].breaks is breaks
    assert words in found[kind].text
    if path != "server":
        assert len(found) == 1


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("launch.ready_seconds", 9.0),
        ("plan.trace", "other"),  # the digest says whether it is
        ("plan.target", "other"),
        ("plan.seed", 5),  # nothing is drawn
        ("target.url", "http://two"),
        ("target.name", "there"),
        ("target.price", {"gpu_hour": 2.0}),
    ],
)
def test_what_changes_nothing_is_no_caveat(run, path, value):
    sides = [Side(label, (measured(run(settings=own)),)) for label, own in (("A", BASE), ("B", changed(path, value)))]
    assert condition_caveats(*sides) == ()


def test_a_seed_counts_where_something_is_drawn(run):
    one, other = changed("plan.order", "shuffle"), changed("plan.order", "shuffle")
    other["plan"]["seed"] = 1
    other["salt"] = "s3"
    sides = [Side(label, (measured(run(settings=own)),)) for label, own in (("A", one), ("B", other))]
    assert [caveat.kind for caveat in condition_caveats(*sides)] == ["plan"]


def test_repeats_that_are_none(run):
    side = Side("A", (measured(run(settings=BASE)), measured(run(settings=changed("plan.load.sessions", 9)))))
    other = Side("B", (measured(run(settings=changed("seed", 0))),))
    found = {caveat.kind: caveat for caveat in condition_caveats(side, other)}
    assert found["repeats"].breaks
    assert found["repeats"].text == "A1 and A2 are no repeats of each other: load.sessions 4 / 9."


def test_the_same_words_to_the_same_server(run, tmp_path):
    sides = [Side(name, (measured(run(settings=BASE, folder=tmp_path / name)),)) for name in "AB"]
    assert [caveat.kind for caveat in condition_caveats(*sides)] == ["same_salt"]


def test_synthetic_acceptance(run):
    settings = {**BASE, "salt": "s3", "target": {"kind": "engine", "speculation": {"algorithm": "EAGLE"}}}
    sides = [Side(label, (measured(run(settings=settings)),)) for label in "AB"]
    (found,) = condition_caveats(*sides)
    assert (found.kind, found.breaks) == ("synthetic_acceptance", False)


def test_flat_and_differences():
    assert flat({"a": {"b": 1, "c": {}}, "d": [2]}) == {"a.b": 1, "d": [2]}
    assert differences({"a": 1, "b": 2}, {"b": 3, "c": None}) == {"a": (1, None), "b": (2, 3)}
    assert differences(None, {"x": 1}) == {"x": (None, 1)}


@pytest.mark.parametrize(
    ("other", "says"),
    [("A", "B in that of A. Speed made no order"), ("elsewhere", "B in that of elsewhere. Not all are in one order")],
)
def test_the_order_of_another_run(run, tmp_path, other, says):
    held = changed("order_from", {"run": other, "salt": "x", "turns": 3})
    sides = [
        Side(name, (measured(run(settings=own, folder=tmp_path / name)),)) for name, own in (("A", BASE), ("B", held))
    ]
    (found,) = (one for one in condition_caveats(*sides) if one.kind == "lockstep")
    assert says in found.text
    assert not found.breaks


@pytest.mark.parametrize(
    ("seeds", "kinds"),
    [
        (([1, 2, 3], [4, 5, 6]), []),  # drawn anew each time: what that does is in the spread between runs
        (([1, 1, 1], [2, 2, 2]), ["plan"]),  # one draw of each side: what it does is in the ratio
        (([1, 2], [3, 4]), ["plan"]),  # no interval, no spread
    ],
)
def test_seeds_of_repeats(run, seeds, kinds):
    def side(label, own):
        made = []
        for seed in own:
            settings = changed("seed", 0)
            settings["plan"] |= {"order": "shuffle", "seed": seed}
            settings["salt"] = f"{label}{seed}{len(made)}"
            made.append(measured(run(settings=settings)))
        return Side(label, tuple(made))

    found = condition_caveats(side("A", seeds[0]), side("B", seeds[1]))
    assert [caveat.kind for caveat in found] == kinds
