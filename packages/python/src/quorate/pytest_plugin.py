"""A pytest plugin: the fixture ``quorate_review`` reviews a file of the repository.

    def test_the_announcement_ships(quorate_review):
        assert quorate_review("docs/announcement.md").ships

The options ``--quorate-executor`` and ``--quorate-policy``, or ``quorate_executor`` and ``quorate_policy`` in pytest's
configuration, apply to every review that names none itself.
"""

from __future__ import annotations

import os
from typing import Any, Protocol

import pytest

from ._calls import review
from .models import Review


class ReviewFunction(Protocol):
    """The type of the fixture."""

    def __call__(self, path: str | os.PathLike[str], **options: Any) -> Review:
        """As :func:`quorate.review`; relative paths begin at pytest's root."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options."""
    group = parser.getgroup("quorate")
    for name, about in (("executor", "the executor of reviews"), ("policy", "their policy: seed or strict")):
        group.addoption(f"--quorate-{name}", default=None, metavar=name.upper(), help=about)
        parser.addini(f"quorate_{name}", about, default=None)


@pytest.fixture
def quorate_review(request: pytest.FixtureRequest) -> ReviewFunction:
    """Reviews a file; a verdict other than SHIP shows in the assertion that asks for ``ships``."""
    config = request.config
    defaults: dict[str, Any] = {}
    for name in ("executor", "policy"):
        value = config.getoption(f"--quorate-{name}") or config.getini(f"quorate_{name}")
        if value:
            defaults[name] = value

    def call(path: str | os.PathLike[str], **options: Any) -> Review:
        chosen = {"cwd": config.rootpath, **defaults, **options}
        return review(path, **chosen)

    return call
