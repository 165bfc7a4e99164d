"""How results are shown: as text, as HTML, and by pytest."""

from __future__ import annotations

import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

import quorate

HOSTILE = (
    "Studies show <script>alert(1)</script> that “every team” agrees \u202e $x$ <img src=x onerror=alert(1)>.\n"
    "The report lists the desks that were asked, and the answers of each of them in the order of the week.\n"
)


class Tags(HTMLParser):
    """The tags and attributes of a text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(name for name, _ in attrs)}

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(result: object) -> Tags:
    tags = Tags()
    tags.feed(result._repr_html_())  # type: ignore[attr-defined]
    return tags


def test_what_a_draft_says_is_shown_as_text(place: Path) -> None:
    (place / "hostile.md").write_text(HOSTILE)
    review = quorate.review("hostile.md", type="<b>")
    assert review.findings, "there is something to show"
    tags = shown(review)
    assert tags.found <= {"p", "strong", "style", "code", "table", "thead", "tbody", "tr", "th", "td"}
    assert review.findings[0].issue.split()[0] in tags.text and review.run in tags.text
    assert "\u202e" not in tags.text
    assert str(review).startswith(str(review.verdict))
    runs, verified = quorate.runs(), quorate.verify()
    assert review.run in shown(runs).text and review.run in str(runs)
    assert "holds" in shown(verified).text and "holds" in str(verified)


def test_the_fixture_reviews_below_the_root(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(pytester.path / "state"))
    shutil.copy(Path(__file__).parents[3] / "examples" / "incident-report.md", pytester.path / "draft.md")
    pytester.makepyfile(
        """
        import quorate

        def test_ships(quorate_review):
            assert quorate_review("draft.md").ships

        def test_absent(quorate_review):
            quorate_review("absent.md")
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*quorate:artifact_missing*"])
    # An executor that does not exist fails each review that names none itself.
    chosen = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--quorate-executor=nobody")
    chosen.assert_outcomes(failed=2)
    chosen.stdout.fnmatch_lines(["*quorate:kind_unknown*"])
