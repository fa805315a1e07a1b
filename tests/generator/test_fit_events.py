"""What befalls sessions, as shares and distributions."""

from __future__ import annotations

import pytest

from agentx.distributions import Bits
from agentx.generator.fit_events import arrivals, delegation
from agentx.generator.fit_seen import Seen


@pytest.mark.parametrize(("able", "each"), [(0.3, 0.1), (1.0, 0.05), (0.6, 0.5)])
def test_sessions_that_never_delegate_are_told_from_those_that_did_not_come_to_it(able: float, each: float) -> None:
    bits, sessions = Bits(0, "delegation"), []
    for _ in range(800):
        steps, does = 1 + int(40 * bits.uniform()), bits.uniform() < able
        sessions.append((steps, sum(does and bits.uniform() < each for _ in range(steps))))
    found = delegation(sessions)
    assert found == pytest.approx((able, each), rel=0.15)


@pytest.mark.parametrize(
    ("times", "kind"),
    [
        ([], None),
        ([3.0, 3.0, 3.0], None),  # all at once: no rate
        ([0.0, 1.0, 2.0, 3.0, 4.0] * 1 + [float(n) for n in range(5, 200)], "gamma"),  # as a clock
    ],
)
def test_arrivals_have_a_rate_and_a_kind(times: list[float], kind: str | None) -> None:
    found = arrivals(Seen(arrivals=times))
    assert (found or {}).get("kind") == kind
