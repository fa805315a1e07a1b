"""Likely causes of misses, by (row, figure) or (row, "*"): written after the runs, read by nobody but the reader."""

from __future__ import annotations

REPLIES = (
    "the spread of the replies. Only the ratio of prompt to reply tokens was frozen, not their distribution: the "
    "workload's median reply has 900 tokens, while the published latency less TTFT, at the published pace, leaves 300"
)

CAUSES: dict[tuple[str, str], str] = {
    ("baseline", "latency_p50"): REPLIES,
    ("optimised", "latency_p50"): REPLIES,
}
