"""Settings of all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A busy machine is slow, not wrong: no test here is about time. The same examples are drawn every time.
settings.register_profile("agentx", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("agentx")
