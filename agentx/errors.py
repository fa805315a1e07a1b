"""Every mistake that agentx reports to its user, each with the exit code of the command line.

Raise `BadInput` with the place and the way out; the command line prints one line and no traceback.
"""

from __future__ import annotations

EXIT_OK, EXIT_BUG, EXIT_BAD_INPUT, EXIT_GATE, EXIT_UNREACHABLE, EXIT_INVALID, EXIT_INTERRUPTED = 0, 1, 2, 3, 4, 5, 130


class AgentxError(Exception):
    """Base of all errors that are not bugs. `str(error)` is one line that a user can act on."""

    exit_code = EXIT_BAD_INPUT


class BadInput(AgentxError):
    """A file, value or option that cannot be used.

    `file`, `line`, `column` (both from 1) say where, `hint` says the way out.
    """

    def __init__(
        self,
        message: str,
        *,
        file: object = None,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
    ) -> None:
        place = "" if file is None else str(file)
        if line is not None:
            place += f":{line}" if place else f"line {line}"
            if column is not None:
                place += f":{column}"
        text = f"{place}: {message}" if place else message
        super().__init__(f"{text} ({hint})" if hint else text)


class Unreachable(AgentxError):
    """The target does not answer, or every turn failed."""

    exit_code = EXIT_UNREACHABLE


class InvalidMeasurement(AgentxError):
    """The run finished but its numbers must not be used."""

    exit_code = EXIT_INVALID
