"""Which salt each layer of a prompt gets in one play: the one rule that the client and the reuse accounting share.

A salt changes what the words are and leaves every length as it is. `run`: the run's own salt, so that nothing that an
earlier run left in a cache can be hit. `session`: every session stands alone, shared layers included. `none`: the
words of the trace itself. `field`: those too, and the cache is told apart by SGLang's `cache_salt` instead, one for the
run; `field-session`: one for each play. A session that is played again gets other words in every layer but tools,
system and shared: those are what its user would meet again.
"""

from __future__ import annotations

from typing import Literal

from agentx.content import Salting
from agentx.core import LEADING_LAYERS, Layer

Policy = Literal["run", "session", "none", "field", "field-session"]


def namespace(policy: Policy, salt: str, session_id: str, play: int) -> str:
    """The `cache_salt` of a play's requests: prompts with different ones share nothing. Empty: none is sent."""
    if policy == "field-session":
        return f"{salt}/{session_id}/{play}"
    return salt if policy == "field" else ""


def salting(policy: Policy, salt: str, session_id: str, play: int) -> Salting:
    """The salt of a layer in play number `play` (from 0) of a session."""
    if policy == "session":
        alone = f"{salt}/{session_id}/{play}"
        return lambda layer: alone
    kept = salt if policy == "run" else ""
    if play == 0:
        return lambda layer: kept
    again = f"{kept}/{play}"

    def of(layer: Layer) -> str:
        return kept if layer in LEADING_LAYERS else again

    return of
