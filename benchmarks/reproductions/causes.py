"""Likely causes of misses, by (row, figure) or (row, "*"): written after the runs, read by nobody but the reader."""

from __future__ import annotations

CAUSES: dict[tuple[str, str], str] = {}
