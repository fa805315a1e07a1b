"""How long a batch takes: a straight line in a few counts, with the constants of the target's YAML.

prefill = batch + token x new tokens + token_context x (new token, token of context before it) pairs
          + load_back_token x tokens loaded back
decode  = step + request x requests + context x tokens of context, + speculation_step when drafts are verified
"""

from __future__ import annotations

from collections.abc import Iterable

from agentx.engine.settings import Timing


def prefill_seconds(timing: Timing, spans: Iterable[tuple[int, int]], loaded: int) -> float:
    """Seconds of one prefill batch that computes tokens [start, end) of each of `spans`."""
    tokens = pairs = 0
    for start, end in spans:
        tokens += end - start
        pairs += (end - start) * (start + end - 1) // 2
    return (
        timing.prefill_batch
        + timing.prefill_token * tokens
        + timing.prefill_token_context * pairs
        + timing.load_back_token * loaded
    )


def decode_seconds(timing: Timing, requests: int, context: int, speculative: bool) -> float:
    """Seconds of one decode step over `requests` with `context` tokens in all."""
    seconds = timing.decode_step + timing.decode_request * requests + timing.decode_context * context
    return seconds + timing.speculation_step if speculative else seconds
