"""What a load needs of open files, and what is done about it."""

from __future__ import annotations

import resource

import pytest

from agentx.errors import BadInput
from agentx.replayer.limits import check_files
from agentx.replayer.plan import Load, Rate

UNLIMITED = resource.RLIM_INFINITY


@pytest.fixture
def limits(monkeypatch):
    """A function that sets (soft, hard) and gives the list of what they were changed to."""

    def of(soft, hard):
        changed = []
        monkeypatch.setattr(resource, "getrlimit", lambda which: (soft, hard))
        monkeypatch.setattr(resource, "setrlimit", lambda which, pair: changed.append(pair))
        return changed

    return of


@pytest.mark.parametrize(
    ("load", "workers", "embedded", "soft", "hard", "changed"),
    [
        (Load(sessions=500), 1, False, 1024, 4096, []),
        (Load(sessions=1000), 1, False, 1024, 4096, [(1064, 4096)]),
        (Load(sessions=1000), 1, False, 1024, UNLIMITED, [(1064, UNLIMITED)]),
        (Load(sessions=1000), 1, False, UNLIMITED, UNLIMITED, []),
        (Load(sessions=1000, requests=100), 1, False, 256, 4096, []),  # no more are in flight
        (Load(sessions=1000), 4, False, 256, 4096, [(314, 4096)]),  # each worker has its share
        (Load(sessions=500), 1, True, 1024, 4096, [(1064, 4096)]),  # both ends are here
        (Load(sessions=1000), 4, True, 1024, 4096, [(1064, 4096)]),  # the server's ends are
        (Load(rate=Rate(per_second=9)), 1, False, 256, 256, []),  # not known beforehand
    ],
)
def test_the_soft_limit_is_raised_to_what_is_needed(limits, load, workers, embedded, soft, hard, changed):
    seen = limits(soft, hard)
    check_files(load, workers, embedded=embedded)
    assert seen == changed


def test_a_load_beyond_the_hard_limit_is_refused_with_the_way_out(limits):
    seen = limits(256, 512)
    with pytest.raises(
        BadInput, match=r"1,000 requests in flight need about 1,064 open files.*512.*load\.requests: 448"
    ):
        check_files(Load(sessions=1000), 1, embedded=False)
    assert seen == []
