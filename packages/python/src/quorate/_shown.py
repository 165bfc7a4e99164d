"""How results are shown: as one line of text, and as HTML in notebooks. Everything that others wrote is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from .models import Convening, Review, Runs, Verification

_COLOURS = {
    "SHIP": "#1a7f37",
    "PASS": "#1a7f37",
    "DONE": "#1a7f37",
    "REVISE": "#9a6700",
    "HOLD": "#cf222e",
    "FAIL": "#cf222e",
    "REFUSED": "#cf222e",
}


class ShownReview:
    """What a review has besides its fields."""

    @property
    def ships(self) -> bool:
        """Whether the verdict is SHIP."""
        return cast("Review", self).verdict == "SHIP"

    def __str__(self) -> str:
        it = cast("Review", self)
        return f"{it.verdict or 'open'} {it.artifact} ({it.run}): {it.because}"

    def _repr_html_(self) -> str:
        it = cast("Review", self)
        rows = [
            (_place(finding.line, finding.column), finding.quote, finding.issue, finding.fix or "", finding.by)
            for finding in it.findings
        ]
        missing = f"No answer counted of {', '.join(it.missing)}." if it.missing else ""
        lines = [it.because, missing, *it.notes]
        return (
            _head(it.verdict or "open", it.artifact, it.run)
            + _paragraphs(lines)
            + _table(("place", "quote", "issue", "fix", "by"), rows)
        )


class ShownConvening:
    """What a convening has besides its fields."""

    @property
    def result(self) -> str | None:
        """The outcome's result; ``None`` while nothing is decided."""
        return cast("Convening", self).outcome.result

    @property
    def passes(self) -> bool:
        """Whether a vote passed, or an assembly of another mode is done."""
        return self.result in ("pass", "done")

    def __str__(self) -> str:
        it = cast("Convening", self)
        return f"{(self.result or 'open').upper()} {it.assembly} on {it.subject} ({it.run})"

    def _repr_html_(self) -> str:
        it = cast("Convening", self)
        rows = [(member.id, member.role, member.status) for member in it.members]
        lines = [it.outcome.because or "", *it.notes]
        return (
            _head((self.result or "open").upper(), f"{it.assembly} on {it.subject}", it.run)
            + _paragraphs(lines)
            + _table(("member", "role", "status"), rows)
        )


class ShownRuns:
    """What a list of runs has besides its fields."""

    def __str__(self) -> str:
        it = cast("Runs", self)
        return "\n".join(f"{run.run} {run.verdict or 'open'} {run.artifact}" for run in it.runs) or "no runs"

    def _repr_html_(self) -> str:
        it = cast("Runs", self)
        rows = [(run.run, run.opened, run.verdict or "open", run.override or "", run.artifact) for run in it.runs]
        return _table(("run", "opened", "verdict", "override", "artifact"), rows) or "<p>No runs.</p>"


class ShownVerification:
    """What a verification has besides its fields."""

    def __str__(self) -> str:
        it = cast("Verification", self)
        return f"{it.ledger} {'holds' if it.holds else f'diverges in {it.found} places'}"

    def _repr_html_(self) -> str:
        it = cast("Verification", self)
        rows = [(one.kind, one.part, one.record or one.run or "", one.what) for one in it.divergences]
        return _paragraphs([str(self)]) + _table(("what", "of", "record", "how"), rows)


def _head(verdict: str, subject: str, run: str) -> str:
    colour = _COLOURS.get(verdict, "#57606a")
    return f'<p><strong style="color:{colour}">{_text(verdict)}</strong> {_text(subject)} <code>{_text(run)}</code></p>'


def _paragraphs(lines: Iterable[str]) -> str:
    return "".join(f"<p>{_text(line)}</p>" for line in lines if line)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{_text(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _place(line: int | None, column: int | None) -> str:
    return ":".join(str(number) for number in (line, column) if number is not None)


def _text(text: str) -> str:
    """A text as text: no markup, no formula, no character that cannot be seen."""
    seen = "".join(letter if letter.isprintable() or letter in "\n\t" else f"\\u{{{ord(letter):x}}}" for letter in text)
    # Notebooks typeset what is between dollar signs.
    return html.escape(seen).replace("$", "&#36;<!-- -->")
