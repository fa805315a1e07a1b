"""Counts on a command line, checked where they are read, in the same words for every verb."""

from __future__ import annotations

import argparse

MOST = 10**12  # nothing that is counted here is more: a slip of the keyboard is not computed with


def count(text: str) -> int:
    """A whole number from 1 to MOST. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(MOST)) and 1 <= int(text) <= MOST):
        raise argparse.ArgumentTypeError(f"should be a whole number from 1 to 10^12, not {text!r:.40}")
    return int(text)
