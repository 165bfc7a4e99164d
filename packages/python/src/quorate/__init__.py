"""Councils of agents whose decisions you can audit.

``review`` and ``convene`` ask the program ``quorate``, which comes with this package, and return what it decided;
``runs`` and ``verify`` read its ledger. :mod:`quorate.aio` has the same functions as coroutines. All decisions are the
program's: this package starts it and reads its JSON.
"""

from __future__ import annotations

from ._calls import convene, review, runs, verify
from ._errors import Diagnostic, ProgramError, QuorateError
from ._program import program
from .models import Convening, Finding, Review, Run, Runs, Verification

__all__ = [
    "Convening",
    "Diagnostic",
    "Finding",
    "ProgramError",
    "QuorateError",
    "Review",
    "Run",
    "Runs",
    "Verification",
    "convene",
    "program",
    "review",
    "runs",
    "verify",
]
