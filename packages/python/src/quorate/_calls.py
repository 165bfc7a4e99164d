"""Functions with their arguments: each becomes one call of the program."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Literal

from ._decode import decode
from ._errors import QuorateError
from ._program import Answer, Call, ask
from .models import Convening, Review, Runs, Verification

Path = str | os.PathLike[str]

#: The exit codes that stand for a verdict.
VERDICTS = range(0, 4)
#: Those of an assembly's outcome.
OUTCOMES = range(0, 4)
#: Success alone.
DONE = range(0, 1)
#: Whether the ledger holds.
CHECKED = range(0, 2)


def review(
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
    """Has a council review a file, or a text that is given.

    Arguments are those of ``quorate review``. A verdict is a result, whatever it is; only a review that cannot be made
    raises :class:`~quorate.QuorateError`.
    """
    return reviewed(ask(review_call(**locals())))


def review_call(
    *,
    path: Path | None,
    text: str | None,
    executor: str | None,
    model: str | None,
    policy: str | None,
    type: str | None,
    tier: int | None,
    made_by: str | None,
    max_calls: int | None,
    max_tokens: int | None,
    max_money: str | None,
    timeout: str | None,
    config: Path | None,
    ledger: Path | None,
    trust: bool,
    cwd: Path | None,
    env: Mapping[str, str] | None,
) -> Call:
    """The call of a review."""
    if (path is None) == (text is None):
        raise TypeError("review() takes a path or a text")
    options = {
        "executor": executor,
        "model": model,
        "policy": policy,
        "type": type,
        "tier": tier,
        "made-by": made_by,
        "max-calls": max_calls,
        "max-tokens": max_tokens,
        "max-money": max_money,
        "timeout": timeout,
        "config": config,
        "ledger": ledger,
    }
    arguments = ["review", *_options(options, trust), "--", "-" if path is None else _one_file(path, cwd)]
    return Call(arguments=arguments, text=text, cwd=cwd, env=env)


def reviewed(answer: Answer) -> Review:
    """The review that the program printed."""
    return decode(Review, answer, exits=VERDICTS)


def convene(
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
    """Convenes an assembly on the subject of its mode.

    A voting assembly takes a ``proposal``, a peer one a ``topic``, a hierarchy a ``request``, an advisory one a
    ``conversation``: files. Arguments are those of ``quorate convene``; every outcome is a result.
    """
    return convened(ask(convene_call(**locals())))


def convene_call(
    *,
    assembly: Path,
    proposal: Path | None,
    topic: Path | None,
    request: Path | None,
    conversation: Path | None,
    proposal_class: str | None,
    phase: str | None,
    trigger: str | None,
    rounds: int | None,
    root: Path | None,
    executor: str | None,
    model: str | None,
    made_by: str | None,
    max_calls: int | None,
    max_tokens: int | None,
    max_money: str | None,
    timeout: str | None,
    config: Path | None,
    ledger: Path | None,
    trust: bool,
    cwd: Path | None,
    env: Mapping[str, str] | None,
) -> Call:
    """The call of a convening."""
    options = {
        "proposal": proposal,
        "topic": topic,
        "request": request,
        "conversation": conversation,
        "class": proposal_class,
        "phase": phase,
        "trigger": trigger,
        "rounds": rounds,
        "root": root,
        "executor": executor,
        "model": model,
        "made-by": made_by,
        "max-calls": max_calls,
        "max-tokens": max_tokens,
        "max-money": max_money,
        "timeout": timeout,
        "config": config,
        "ledger": ledger,
    }
    return Call(arguments=["convene", *_options(options, trust), "--", os.fspath(assembly)], cwd=cwd, env=env)


def convened(answer: Answer) -> Convening:
    """The outcome that the program printed."""
    return decode(Convening, answer, exits=OUTCOMES)


def runs(
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
    """The runs of the ledger: open ones first, in each part the newest first. Arguments are those of ``quorate runs``."""
    return listed(ask(runs_call(**locals())))


def runs_call(
    *,
    limit: int | None,
    verdict: str | None,
    type: str | None,
    mode: str | None,
    producer: str | None,
    since: str | None,
    config: Path | None,
    ledger: Path | None,
    trust: bool,
    cwd: Path | None,
    env: Mapping[str, str] | None,
) -> Call:
    """The call of a list."""
    options = {
        "limit": limit,
        "verdict": verdict,
        "type": type,
        "mode": mode,
        "producer": producer,
        "since": since,
        "config": config,
        "ledger": ledger,
    }
    return Call(arguments=["runs", *_options(options, trust)], cwd=cwd, env=env)


def listed(answer: Answer) -> Runs:
    """The list that the program printed."""
    return decode(Runs, answer, exits=DONE)


def verify(
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
    """Holds the ledger against its hashes, signatures, checkpoints, witness and log.

    ``holds`` says whether all holds. Arguments are those of ``quorate ledger verify``.
    """
    return verified(ask(verify_call(**locals())))


def verify_call(
    *,
    keys: Sequence[Path],
    witness: Path | None,
    since: str | None,
    config: Path | None,
    ledger: Path | None,
    trust: bool,
    cwd: Path | None,
    env: Mapping[str, str] | None,
) -> Call:
    """The call of a verification."""
    options = {"witness": witness, "since": since, "config": config, "ledger": ledger}
    named = [f"--key={os.fspath(key)}" for key in keys]
    return Call(arguments=["ledger", "verify", *_options(options, trust), *named], cwd=cwd, env=env)


def verified(answer: Answer) -> Verification:
    """The verification that the program printed."""
    return decode(Verification, answer, exits=CHECKED)


def _options(options: Mapping[str, object], trust: bool) -> list[str]:
    """Options as `--name=value`, so that no value is read as another option."""
    given = [(name, os.fspath(value) if isinstance(value, os.PathLike) else value) for name, value in options.items()]
    flags = ["--trust"] if trust else []
    return ["--format=json", "--quiet", *flags, *(f"--{name}={value}" for name, value in given if value is not None)]


def _one_file(path: Path, cwd: Path | None) -> str:
    """A path that the program takes for one file: not for standard input, and not for a pattern of several."""
    name = os.fspath(path)
    if name == "-" or (any(letter in name for letter in "*?[{") and not os.path.lexists(os.path.join(cwd or "", name))):
        message = f"there is no file {name}"
        raise QuorateError(f"quorate:artifact_missing: {message}", code="quorate:artifact_missing", exit=4)
    return name
