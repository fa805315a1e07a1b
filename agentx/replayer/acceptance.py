"""The acceptance of speculative decoding that a plan states: how long, how drawn, and whether a target can have it.

An embedded engine is set to it. A server that runs already is asked what it says of itself (SGLang tells algorithm,
steps and draft tokens, not what it simulates), and what contradicts the plan is refused before anything is sent; what
the replies tell afterwards is in the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import NormalDist
from typing import Any, Literal

import pydantic
from pydantic import Field

from agentx.engine.curves import acceptance_length
from agentx.engine.settings import EngineSettings, Speculation
from agentx.errors import BadInput
from agentx.replayer.probe import sglang_version
from agentx.replayer.targets import Target
from agentx.yamlspec import Strict

KNOWS_ACCEPTANCE = (0, 5, 16)  # the oldest SGLang whose released code was seen to read the three variables
NGRAM = "NGRAM"  # the one algorithm that is bounded by its draft tokens, not by its steps


class Acceptance(Strict):
    """`length`, tokens per verification step with the target's own; or a named `curve`, which gives it for `steps`."""

    length: float | None = Field(default=None, ge=1)
    curve: str | None = None
    steps: int | None = Field(default=None, ge=1)
    method: Literal["match-expected", "multinomial"] = "match-expected"
    tokens: Literal["fixed", "real-draft-token"] = "fixed"

    @pydantic.model_validator(mode="after")
    def _one(self) -> Acceptance:
        if (self.length is None) == (self.curve is None):
            raise ValueError("say a length, or a curve and steps")
        if self.curve is not None and self.steps is None:
            raise ValueError("a curve needs steps, the number of draft tokens")
        try:
            length = self.asked
        except BadInput as error:
            raise ValueError(str(error)) from None
        if self.steps is not None and length > self.steps + 1:
            raise ValueError(
                f"length {length:g} is above the {self.steps + 1} tokens that {self.steps} steps can yield"
            )
        return self

    @property
    def asked(self) -> float:
        """The length that is set. Raises BadInput for a curve that there is not."""
        if self.curve is not None and self.steps is not None:
            return acceptance_length(self.curve, self.steps)
        return self.length or 1.0

    def mean(self, bound: int) -> float:
        """Tokens per step that are to be expected where at most `bound` are possible."""
        asked = min(self.asked, float(bound))
        if self.method == "match-expected" or bound == 1:
            return asked
        # SGLang's `multinomial` clamps a normal draw of deviation 1 and rounds it.
        below = [NormalDist(asked, 1.0).cdf(at + 0.5) for at in range(1, bound)]
        return 1 + sum(1 - share for share in below)


def applied(acceptance: Acceptance | None, target: Target) -> Target:
    """The target, an embedded engine set to what the plan states. Raises BadInput for one that cannot be."""
    settings = target.settings
    if acceptance is None or not isinstance(settings, EngineSettings):
        return target
    told = settings.speculation
    if told.algorithm is None and acceptance.asked > 1:
        raise BadInput(
            f"the plan states an acceptance length of {acceptance.asked:g}, and the engine decodes without speculation",
            hint="--set target.speculation.algorithm=EAGLE, with steps and draft_tokens",
        )
    check_server(acceptance, _facts(told))
    own = {"length": acceptance.asked, "method": acceptance.method, "tokens": acceptance.tokens}
    if told.algorithm is None:
        return target
    speculation = Speculation.model_validate({**told.model_dump(exclude={"acceptance"}), "acceptance": own})
    return replace(target, settings=settings.model_copy(update={"speculation": speculation}))


def _facts(speculation: Speculation) -> dict[str, Any]:
    return {
        "version": "",
        "speculative_algorithm": speculation.algorithm,
        "speculative_num_steps": speculation.steps,
        "speculative_num_draft_tokens": speculation.draft_tokens,
    }


def bound_of(server: Mapping[str, Any]) -> int | None:
    """Most tokens that one step can yield; None: the server does not tell."""
    ngram = server.get("speculative_algorithm") == NGRAM
    count = server.get("speculative_num_draft_tokens" if ngram else "speculative_num_steps")
    return (count if ngram else count + 1) if isinstance(count, int) and count > 0 else None


def check_server(acceptance: Acceptance | None, server: Mapping[str, Any]) -> None:
    """Raises BadInput for a server that says of itself what the plan's acceptance contradicts."""
    if acceptance is None or "version" not in server:
        return
    asked, bound = acceptance.asked, bound_of(server)
    if not server.get("speculative_algorithm"):
        if asked > 1:
            raise BadInput(
                f"the plan states an acceptance length of {asked:g}, and the server says that it decodes without "
                "speculation",
                hint="start it with --speculative-algorithm, or --set acceptance=null",
            )
        return
    steps = server.get("speculative_num_steps")
    if acceptance.steps is not None and isinstance(steps, int) and steps != acceptance.steps and steps > 0:
        raise BadInput(f"the plan states {acceptance.steps} speculative steps, and the server says that it has {steps}")
    if bound is not None and asked > bound:
        raise BadInput(
            f"an acceptance length of {asked:g} is above the {bound} tokens that a step of the server yields"
        )


def stated(acceptance: Acceptance | None, server: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a run folder keeps of it: the length that replies are held to, None where its bound is not known."""
    if acceptance is None:
        return None
    bound = bound_of(server)
    if acceptance.method == "multinomial" and bound is None:
        return {"asked": acceptance.asked, "expected": None}
    return {"asked": acceptance.asked, "expected": acceptance.mean(bound or int(acceptance.asked) + 1)}


def server_environment(acceptance: Acceptance | None) -> dict[str, str]:
    """The variables that make an SGLang server simulate it (0.5.16 to 0.5.23 read the three of them, at import)."""
    if acceptance is None:
        return {}
    return {
        "SGLANG_SIMULATE_ACC_LEN": repr(acceptance.asked),
        "SGLANG_SIMULATE_ACC_METHOD": acceptance.method,
        "SGLANG_SIMULATE_ACC_TOKEN_MODE": acceptance.tokens,
    }


def launched_notes(acceptance: Acceptance | None, server: Mapping[str, Any]) -> list[str]:
    """What is to be said of a server that was started with `server_environment`.

    Raises BadInput for one that ends at its first step: SGLang takes real draft tokens from a chain alone.
    """
    if acceptance is None or not server.get("speculative_algorithm"):
        return []
    topk = server.get("speculative_eagle_topk")
    tree = server.get("speculative_algorithm") == NGRAM or (isinstance(topk, int) and topk > 1)
    if acceptance.tokens == "real-draft-token" and tree:
        raise BadInput(
            "acceptance.tokens: real-draft-token needs a chain of drafts, and the server drafts a tree "
            f"({server['speculative_algorithm']}, topk {topk})",
            hint="tokens: fixed, or --speculative-eagle-topk 1",
        )
    told = ", ".join(f"{name}={value}" for name, value in server_environment(acceptance).items())
    version, seen = server.get("version") or "unknown", sglang_version(server)
    sure = "" if seen is not None and seen >= KNOWS_ACCEPTANCE else "; whether it reads all three is not known"
    return [f"the server (version {version}) was started with {told}{sure}"]
