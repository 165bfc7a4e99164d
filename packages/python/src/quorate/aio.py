"""The functions of :mod:`quorate` as coroutines. A task that is cancelled ends the program, and with it its members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from . import _calls
from ._calls import Path
from ._program import ask_async
from .models import Convening, Review, Runs, Verification

__all__ = ["convene", "review", "runs", "verify"]


async def review(
    path: Path | None = None,
    *,
    text: str | None = None,
    executor: str | None = None,
    model: str | None = None,
    policy: Literal["seed", "strict"] | None = None,
    type: str | None = None,
    tier: int | None = None,
    made_by: str | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_money: str | None = None,
    timeout: str | None = None,
    config: Path | None = None,
    ledger: Path | None = None,
    trust: bool = False,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Review:
    """As :func:`quorate.review`."""
    return _calls.reviewed(await ask_async(_calls.review_call(**locals())))


async def convene(
    assembly: Path,
    *,
    proposal: Path | None = None,
    topic: Path | None = None,
    request: Path | None = None,
    conversation: Path | None = None,
    proposal_class: str | None = None,
    phase: str | None = None,
    trigger: str | None = None,
    rounds: int | None = None,
    root: Path | None = None,
    executor: str | None = None,
    model: str | None = None,
    made_by: str | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_money: str | None = None,
    timeout: str | None = None,
    config: Path | None = None,
    ledger: Path | None = None,
    trust: bool = False,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Convening:
    """As :func:`quorate.convene`."""
    return _calls.convened(await ask_async(_calls.convene_call(**locals())))


async def runs(
    *,
    limit: int | None = None,
    verdict: str | None = None,
    type: str | None = None,
    mode: str | None = None,
    producer: str | None = None,
    since: str | None = None,
    config: Path | None = None,
    ledger: Path | None = None,
    trust: bool = False,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Runs:
    """As :func:`quorate.runs`."""
    return _calls.listed(await ask_async(_calls.runs_call(**locals())))


async def verify(
    *,
    keys: Sequence[Path] = (),
    witness: Path | None = None,
    since: str | None = None,
    config: Path | None = None,
    ledger: Path | None = None,
    trust: bool = False,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Verification:
    """As :func:`quorate.verify`."""
    return _calls.verified(await ask_async(_calls.verify_call(**locals())))
