"""What a server's chat template adds, fitted to the prompt lengths that it reported.

One row for each prompt: how many messages, calls and definitions it has, and the tokens that the server counted beyond
those of the content. What the fit leaves is the drift.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agentx.reuse_template import PLAIN, Template

Column = npt.NDArray[np.float64]


class Row(NamedTuple):
    """A prompt that the server counted: `excess` tokens beyond its content. `tools`: it has tool-shaped messages."""

    excess: int
    messages: int
    calls: int = 0
    definitions: int = 0
    tools: bool = False

    def left(self, template: Template) -> int:
        """Tokens that `template` does not account for."""
        known = template.start + template.per_message * self.messages + template.front
        return self.excess - known - template.per_call * self.calls - template.per_definition * self.definitions


def fitted(rows: Sequence[Row]) -> Template:
    """The template that explains the rows best. Where all prompts are of one shape only its sum means something."""
    if not rows:
        return PLAIN
    if any(row.tools for row in rows):
        return _fitted_tools(rows)
    counts = {row.messages for row in rows}
    if len(counts) == 1:  # cannot be told apart: all in front of the messages
        count, excess = rows[0].messages, int(np.median([row.excess for row in rows]))
        return Template(max(0, excess % count), max(0, excess // count))
    line = np.polyfit([row.messages for row in rows], [row.excess for row in rows], 1)
    slope = max(0, round(float(line[0])))
    start = int(np.median([row.excess - slope * row.messages for row in rows]))  # the median shrugs at odd prompts
    return Template(max(0, start), slope)


def _fitted_tools(rows: Sequence[Row]) -> Template:
    """What is the same for all prompts stands in front, but for what asks for the reply: as much as a message has.

    One number after the other, each rounded before the next is fitted: where two of them cannot be told apart (calls
    often come with messages) the last one takes what the rounding of the others left, and a message has no more than
    leaves something for the front.
    """
    excess = np.array([row.excess for row in rows], dtype=float)
    columns = [np.array([getattr(row, name) for row in rows], dtype=float) for name in _SLOPES]
    message = _slope(excess, columns)
    while True:
        left, slopes = excess - message * columns[0], [message]
        for place in range(1, len(columns)):
            slopes.append(_slope(left, columns[place:]))
            left -= slopes[-1] * columns[place]
        fixed = int(np.median(left))
        if fixed >= 0 or message == 0:
            break
        message -= 1
    fixed = max(0, fixed)
    start = min(fixed, message)
    return Template(start, message, fixed - start, per_definition=slopes[2], per_call=slopes[1])


_SLOPES = ("messages", "calls", "definitions")


def _slope(excess: Column, columns: Sequence[Column]) -> int:
    """How the excess goes with the first of `columns` when the others are let vary; 0 where it does not vary."""
    if np.ptp(columns[0]) == 0:
        return 0
    matrix = np.column_stack([*columns, np.ones(len(excess))])
    found, *_ = np.linalg.lstsq(matrix, excess, rcond=None)
    return max(0, round(float(found[0])))
