"""The program: where it is, and how one call of it is made, with and without an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ._errors import ProgramError

#: Names another program than the one that came with this package.
VARIABLE = "QUORATE_PROGRAM"

#: How long a cancelled program has to end its members, in seconds, before it is killed.
GRACE = 5.0


@dataclass(frozen=True, kw_only=True)
class Call:
    """The arguments of one call, its standard input, and where it runs."""

    arguments: Sequence[str]
    text: str | None = None
    cwd: str | os.PathLike[str] | None = None
    env: Mapping[str, str] | None = None

    @property
    def given(self) -> bytes | None:
        """What is written to standard input."""
        return None if self.text is None else self.text.encode()


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How the program ended, and what it said."""

    exit: int
    output: str
    errors: str


def program() -> str:
    """The path of the program.

    The one that ``QUORATE_PROGRAM`` names; else the one that was installed with this package; else the first on the
    path.
    """
    named = os.environ.get(VARIABLE)
    if named:
        found = shutil.which(named)
        if found is None:
            raise ProgramError(f"{VARIABLE} names {named}, which is no program", code="python:program_missing", exit=-1)
        return found
    name = "quorate" + (sysconfig.get_config_var("EXE") or "")
    schemes = [sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")]
    folders = [Path(sysconfig.get_path("scripts", scheme)) for scheme in schemes]
    # `pip install --target DIR` puts programs into DIR/bin.
    folders.append(Path(__file__).parent.parent / "bin")
    for folder in folders:
        if os.access(folder / name, os.X_OK):
            return str(folder / name)
    found = shutil.which("quorate")
    if found is None:
        message = f"there is no program quorate in {folders[0]} or on the path"
        raise ProgramError(message, code="python:program_missing", exit=-1)
    return found


def ask(call: Call) -> Answer:
    """Runs the program to its end."""
    command = [program(), *call.arguments]
    stdin = subprocess.DEVNULL if call.text is None else subprocess.PIPE
    try:
        with subprocess.Popen(
            command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=call.cwd, env=_environment(call)
        ) as child:
            try:
                output, errors = child.communicate(call.given)
            except BaseException:
                # Ctrl-C, or an exception of a signal handler: members end with the program.
                child.terminate()
                try:
                    child.wait(GRACE)
                except subprocess.TimeoutExpired:
                    child.kill()
                raise
    except OSError as error:
        raise _not_started(command[0], error) from error
    return _answer(child.returncode, output, errors)


async def ask_async(call: Call) -> Answer:
    """Runs the program to its end; a cancelled task ends it."""
    command = [program(), *call.arguments]
    stdin = asyncio.subprocess.DEVNULL if call.text is None else asyncio.subprocess.PIPE
    # A cancelled start would kill the program, which could then not end its members.
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *command,
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=call.cwd,
            env=_environment(call),
        )
    )
    try:
        child = await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            await _end(await starting)
        raise
    except OSError as error:
        raise _not_started(command[0], error) from error
    try:
        output, errors = await child.communicate(call.given)
    except BaseException:
        await _end(child)
        raise
    return _answer(child.returncode, output, errors)


async def _end(child: asyncio.subprocess.Process) -> None:
    """Ends a program: it has its grace to end its members."""
    if child.returncode is not None:
        return
    child.terminate()
    try:
        await asyncio.wait_for(child.wait(), GRACE)
    except asyncio.TimeoutError:
        child.kill()
        await child.wait()


def _environment(call: Call) -> dict[str, str] | None:
    return None if call.env is None else {**os.environ, **call.env}


def _answer(exit: int | None, output: bytes, errors: bytes) -> Answer:
    return Answer(
        exit=-1 if exit is None else exit,
        output=output.decode("utf-8", "replace"),
        errors=errors.decode("utf-8", "replace"),
    )


def _not_started(path: str, error: OSError) -> ProgramError:
    return ProgramError(f"cannot start {path}: {error}", code="python:program_failed", exit=-1)
