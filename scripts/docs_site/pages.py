"""The pages of the site, in the order of docs/SUMMARY.md, written for mdBook and as plain Markdown."""

import os
import re
import shutil
from pathlib import Path

import reference
from markdown import Page, for_mdbook, relink

GENERATED = "<!-- generated -->"
PICTURES = (".png", ".svg")
ENTRY = re.compile(r"( *)(?:- )?\[([^\]]+)\]\(([^)]+)\)")


class Refused(Exception):
    """Why there is no site: a line for each reason."""


def collect(root: Path, binary: Path) -> list[Page]:
    """All pages. Those of docs/ are those of SUMMARY.md."""
    pages: list[Page] = []
    part = ""
    for line in (root / "docs/SUMMARY.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            part = line.removeprefix("# ")
        elif line == GENERATED:
            pages += reference.generate(binary, root)
        elif found := ENTRY.fullmatch(line):
            source = os.path.normpath(f"docs/{found[3]}")
            file = root / source
            text = file.read_text(encoding="utf-8") if file.is_file() else ""
            pages.append(Page(source, source.removeprefix("docs/"), found[2], part, text, len(found[1]) // 2))
    listed = {page.source for page in pages}
    present = {str(path.relative_to(root)) for path in (root / "docs").rglob("*.md")} - {"docs/SUMMARY.md"}
    problems = [f"docs/SUMMARY.md does not list {source}" for source in sorted(present - listed)]
    problems += [f"docs/SUMMARY.md lists {page.source}, which does not exist" for page in pages if not page.text]
    if problems:
        raise Refused("\n".join(problems))
    return pages


def contents(pages: list[Page]) -> str:
    """The table of contents, in mdBook's form."""
    lines, part = ["# Summary"], ""
    for page in pages:
        if page.part != part:
            part = page.part
            lines += ["", f"# {part}", ""]
        lines.append(f"{'  ' * page.depth}- [{page.title}]({page.path})")
    return "\n".join(lines) + "\n"


class Stage:
    """Writes pages with their links, and what they link to, into a folder."""

    def __init__(self, root: Path, pages: list[Page]) -> None:
        self.root = root
        self.places = {page.source: page.path for page in pages}
        self.files: dict[str, str] = {}
        """Files that pages link to, and their places in the site."""
        self.problems: list[str] = []

    def link(self, page: Page, link: str) -> str:
        """A link of a page, as it is in the site."""
        path, hash, anchor = link.partition("#")
        if not path or re.match(r"[a-z]+:", link):
            return link
        source = os.path.normpath(os.path.join(os.path.dirname(page.source), path))
        place = self.places.get(source) or self.places.get(f"{source}/README.md") or self.file(source)
        if not place:
            self.problems.append(f"{page.source} links to {link}, which is not a file of the project")
            return link
        return os.path.relpath(place, os.path.dirname(page.path) or ".") + hash + anchor

    def file(self, source: str) -> str | None:
        """The place of a file that is not a page. A browser shows text as such by its ending; mdBook takes `.md` for a page."""
        if source.startswith("..") or not (self.root / source).is_file():
            return None
        as_is = source.endswith(PICTURES)
        self.files[source] = source.removeprefix("docs/") if as_is else f"source/{source.removesuffix('.md')}.txt"
        return self.files[source]

    def write(self, pages: list[Page], folder: Path) -> None:
        """Below `folder`: `src` for mdBook, and `pages` with the same pages as Markdown."""
        for page in pages:
            text = relink(page.text, lambda link: self.link(page, link))
            for below, form in (("src", for_mdbook(text)), ("pages", text)):
                file = folder / below / page.path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(form, encoding="utf-8")
        if self.problems:
            raise Refused("\n".join(self.problems))
        for source, place in self.files.items():
            file = folder / "src" / place
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.root / source, file)
        (folder / "src/SUMMARY.md").write_text(contents(pages), encoding="utf-8")
