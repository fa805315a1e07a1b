"""Named acceptance curves: how many tokens a verification step yields with k draft tokens, as measured and published.

A curve is named `<file>/<curve>`, as `glm-5.2/mtp/thinking-on`: a file of the catalogue `curves` and a curve in it.
"""

from __future__ import annotations

import difflib
from typing import Annotated

from pydantic import Field

from agentx import catalog
from agentx.errors import BadInput
from agentx.yamlspec import Strict, load


class CurveFile(Strict):
    """One `agentx: curve/1` file. Entry k - 1 of a curve is the acceptance length (>= 1) with k draft tokens."""

    source: str
    curves: dict[str, Annotated[list[Annotated[float, Field(ge=1.0)]], Field(min_length=1)]]


def curve(name: str) -> list[float]:
    """Acceptance lengths for k = 1, 2, ... draft tokens. Raises BadInput with the nearest names."""
    file, _, inner = name.partition("/")
    known = catalog.entries("curves")
    entry = next((each for each in known if each.name == file), None)
    found = {} if entry is None else load(CurveFile, entry.path, kind="curve").curves
    if inner in found:
        return found[inner]
    names = [f"{each.name}/{key}" for each in known for key in load(CurveFile, each.path, kind="curve").curves]
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6) or names
    raise BadInput(f"no acceptance curve {name!r}", hint=f"there {'is' if len(near) == 1 else 'are'} {', '.join(near)}")


def acceptance_length(name: str, drafts: int) -> float:
    """The acceptance length of a named curve with `drafts` draft tokens. Raises BadInput beyond the curve."""
    lengths = curve(name)
    if not 1 <= drafts <= len(lengths):
        raise BadInput(f"the acceptance curve {name!r} has steps of 1 to {len(lengths)}, not {drafts}")
    return lengths[drafts - 1]
