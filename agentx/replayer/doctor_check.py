"""What a check of the doctor says: a verdict, what was seen, and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warning", "problem", "unknown"]


@dataclass(frozen=True, slots=True)
class Check:
    """`problem`: figures would be wrong or missing, or the run fails. `warning`: they would need an explanation.
    `unknown`: it could not be seen. `mend` says what to do, where there is something to do."""

    name: str
    verdict: Verdict
    said: str
    mend: str | None = None
