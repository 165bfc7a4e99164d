"""What goes wrong: what the program refuses, and a program that does not answer as it should."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """A refusal or a warning of the program. ``quorate explain CODE`` has a page for each code."""

    code: str
    severity: str
    message: str
    help: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    path: str | None = None


class QuorateError(Exception):
    """The program refused.

    ``code`` is the code of the first refusal, such as ``quorate:artifact_missing``; ``exit`` the program's exit code;
    ``diagnostics`` all that it said.
    """

    def __init__(self, message: str, *, code: str, exit: int, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.exit = exit
        self.diagnostics = tuple(diagnostics)

    def __reduce__(self) -> tuple[object, ...]:
        return (_restored, (type(self), str(self), self.code, self.exit, self.diagnostics))


class ProgramError(QuorateError):
    """The program cannot be found or started, ended by itself, or printed what this package cannot read.

    Its ``code`` is ``python:program_missing``, ``python:program_failed`` or ``python:output_unknown``.
    """


def _restored(
    kind: type[QuorateError], message: str, code: str, exit: int, diagnostics: tuple[Diagnostic, ...]
) -> QuorateError:
    return kind(message, code=code, exit=exit, diagnostics=diagnostics)
