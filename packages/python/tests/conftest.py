"""A place of its own for each test, and programs that answer as they are told."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

EXAMPLES = Path(__file__).parents[3] / "examples"
SHIPS = (EXAMPLES / "incident-report.md").read_text()
BLOCKED = (EXAMPLES / "launch-post.md").read_text()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with two drafts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "draft.md").write_text(SHIPS)
    (tmp_path / "blocked.md").write_text(BLOCKED)
    return tmp_path


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Has a shell script answer for the program; returns the file with the arguments that it was given, one a line."""

    def answer(script: str) -> Path:
        program, given = tmp_path / "fake-quorate", tmp_path / "given"
        program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > '{given}'\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("QUORATE_PROGRAM", os.fspath(program))
        return given

    return answer
