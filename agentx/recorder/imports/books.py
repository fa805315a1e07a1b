"""The books of an import: what was read is what was used, merged or dropped for a named reason.

Every importer keeps one account for the source's rows and one for its sessions, notes with a count for every
liberty it took, and the list of what its source cannot tell. `check` is called at the end: books that do not
balance are a bug of the importer, never a property of its input.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple


class Fidelity(NamedTuple):
    """What a source tells, in a word each; what it does not tell is unknown in the trace, never 0.

    `prompt`: whole as sent, put together from a log, or only its length. `timing`: when each chunk came, the first
    token, start and end, or the order alone. `lineage`: sessions and agents by name, by links in content, found by
    content alone, or not at all. `usage`: tokens by the server, estimated, or not told. `gaps`: tools apart from
    waiting, pauses as a whole, or none.
    """

    prompt: Literal["exact", "reconstructed", "lengths"]
    timing: Literal["chunk", "ttft", "start-end", "start-only", "ordinal"]
    lineage: Literal["header", "linked", "inferred", "none"]
    usage: Literal["server", "estimated", "none"]
    gaps: Literal["split", "total", "none"]

    def line(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self._asdict().items())


class Known(NamedTuple):
    """A fault that no file of a format shows by itself, but whoever wrote it is known to make; and who says so."""

    what: str
    source: str


@dataclass(slots=True)
class Account:
    """`read` things, each of which was used, merged into another one, or dropped."""

    read: int = 0
    used: int = 0
    merged: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def drop(self, reason: str, count: int = 1) -> None:
        if count:
            self.dropped[reason] += count

    @property
    def missing(self) -> int:
        """How many of the things that were read are in no column; 0 when the account balances."""
        return self.read - self.used - self.merged - self.dropped.total()


@dataclass(slots=True)
class Books:
    """The accounts of one import. `row` names what a row of the source is ("request", "row")."""

    row: str = "row"
    rows: Account = field(default_factory=Account)
    sessions: Account = field(default_factory=Account)
    notes: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)  # what was detected in the file, in a sentence each
    known: tuple[Known, ...] = ()
    unknowable: tuple[str, ...] = ()
    heading: str = "what this source cannot tell:"
    fidelity: Fidelity | None = None

    def note(self, what: str, count: int = 1) -> None:
        if count:
            self.notes[what] += count

    def find(self, sentence: str) -> None:
        """Say once what was detected."""
        if sentence not in self.findings:
            self.findings.append(sentence)

    def check(self) -> None:
        """Raises RuntimeError when a row or a session that was read is in no column."""
        for name, account in ((self.row, self.rows), ("session", self.sessions)):
            if account.missing:
                raise RuntimeError(f"the import's books do not balance: {account.missing} of {account.read} {name}s")

    def told(self) -> dict[str, Any]:
        """For the trace's header: what is known of the format, where anything is."""
        return {"known": [known._asdict() for known in self.known]} if self.known else {}

    def losses(self) -> dict[str, Any]:
        """For the trace's header: what was dropped and noted, by reason, and what was detected."""
        dropped = {f"{self.row}s": dict(self.rows.dropped), "sessions": dict(self.sessions.dropped)}
        return {
            "dropped": {name: reasons for name, reasons in dropped.items() if reasons},
            "notes": dict(self.notes),
            "detected": list(self.findings),
        }

    def lines(self) -> list[str]:
        """The books as a short table, for a terminal."""
        accounts = (("sessions", self.sessions), (f"{self.row}s", self.rows))
        wide = max(len(name) for name, _ in accounts)
        lines = [_account_line(name.ljust(wide), account) for name, account in accounts]
        lines += [f"  dropped  {count:>9,}  {reason}" for _, account in accounts for reason, count in _by(account)]
        lines += [f"  noted    {count:>9,}  {what}" for what, count in sorted(self.notes.items())]
        lines += [f"detected: {sentence}" for sentence in self.findings]
        lines += [f"known of this format: {known.what} ({known.source})" for known in self.known]
        if self.fidelity is not None:
            lines.append(f"fidelity: {self.fidelity.line()}")
        if self.unknowable:
            lines.append(self.heading)
            lines += [f"  - {sentence}" for sentence in self.unknowable]
        return lines


def _by(account: Account) -> list[tuple[str, int]]:
    return sorted(account.dropped.items())


def _account_line(name: str, account: Account) -> str:
    parts = [f"{account.used:,} used", *([f"{account.merged:,} merged"] if account.merged else [])]
    parts.append(f"{account.dropped.total():,} dropped")
    return f"{name}  {account.read:,} read = {' + '.join(parts)}"
