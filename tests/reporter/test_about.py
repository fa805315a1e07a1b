from __future__ import annotations

import pytest

from agentx.frames import Tear
from agentx.reporter.about import about


@pytest.mark.parametrize(
    ("end", "tear", "state"),
    [
        ({"outcome": "done"}, None, "done"),
        ({"outcome": "interrupted"}, None, "interrupted"),
        ({"outcome": "failed"}, None, "failed"),
        (None, None, "partial"),  # killed, or still running
        ({}, None, "partial"),
        ({"outcome": "done"}, Tear(9, 1, "x"), "partial"),  # torn before the end: something may be missing
    ],
)
def test_state(run, end, tear, state):
    found = about(run(end=end, tear=tear))
    assert (found.state, found.whole) == (state, state == "done")
    assert (found.torn is None) == (tear is None)


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ({"name": "laptop", "url": "http://x:1"}, "laptop"),
        ({"url": "http://x:1"}, "http://x:1"),
        ({"urls": ["http://x:1", "http://y:1"]}, "http://x:1"),
        ({"url": "http://me:secret@x:1/v1"}, "http://x:1/v1"),  # no password in a report
        ({"kind": "engine"}, "engine"),
        ({}, None),
    ],
)
def test_target(run, target, name):
    assert about(run(settings={"target": target})).target == name


@pytest.mark.parametrize(
    ("settings", "rules"),
    [
        ({"target": {"kind": "engine"}}, "SGLang 0.5.23"),
        ({"target": {"kind": "endpoint"}, "server": {"engine_rules": "SGLang 0.6"}}, "SGLang 0.6"),  # served elsewhere
        ({"target": {"kind": "endpoint"}}, None),
        ({}, None),
    ],
)
def test_figures_of_the_model_are_stamped(run, settings, rules):
    assert about(run(settings=settings)).engine_rules == rules


def test_the_trace_is_named_without_its_folder(run):
    assert about(run(settings={"trace": {"path": "/home/x/a.trace"}})).trace == "a.trace"
    assert about(run(settings={"trace": {"path": "/home/x/a.trace", "name": "weka"}})).trace == "weka"


def test_settings_that_say_nothing_are_unknown(run):
    found = about(run(settings={"plan": None, "target": "odd"}))
    assert (found.trace, found.target, found.model, found.gpus, found.seed, found.salt) == (None,) * 6
    assert found.started == "2023-11-14T22:13:20Z"
