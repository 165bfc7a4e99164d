"""What is done with the pages that mdBook made: Markdown beside them, an index for language models, and a check of every link."""

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from markdown import Page, first_sentence

# Elements that load what they link to, as the page opens.
LOADING = {"audio", "embed", "iframe", "img", "link", "object", "script", "source", "video"}
LINKS = {"href", "src", "srcset", "data", "poster"}


class Document(HTMLParser):
    """The anchors and links of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[tuple[str, str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in LINKS and value:
                self.links.append((tag, value))


def check(site: Path) -> list[str]:
    """What is wrong with the links of the site."""
    documents = {path: Document(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    problems = []
    for path, document in documents.items():
        for tag, link in document.links:
            if why := broken(path, tag, link, documents):
                problems.append(f"{path.relative_to(site)}: {link}: {why}")
    for path in sorted(site.rglob("*.css")):
        for found in re.findall(r"""(?:url\(|@import)\s*['"]?(?:https?:)?//[^'")\s]*""", path.read_text(encoding="utf-8")):
            problems.append(f"{path.relative_to(site)}: {found}: loaded from elsewhere")
    return problems


def broken(page: Path, tag: str, link: str, documents: dict[Path, Document]) -> str | None:
    if re.match(r"[a-z]+:|//", link):
        return "loaded from elsewhere" if tag in LOADING else None
    path, _, anchor = link.partition("#")
    target = Path(page.parent, unquote(path)).resolve() if path else page
    if not target.is_file():
        return "no such file"
    if anchor and (target not in documents or unquote(anchor) not in documents[target].anchors):
        return "no such anchor"
    return None


def llms(title: str, description: str, pages: list[Page]) -> str:
    """llms.txt, in the form that llmstxt.org describes: what may be left out is in `Optional`, at the end."""
    parts: dict[str, list[str]] = {}
    for page in pages:
        part = "Optional" if page.path.startswith("reference/codes/") else page.part
        parts.setdefault(part, []).append(f"- [{page.title}]({page.path}): {first_sentence(page.text)}")
    optional = parts.pop("Optional", [])
    sections = [*parts.items(), *([("Optional", optional)] if optional else [])]
    lists = [f"## {part}\n\n" + "\n".join(rows) + "\n" for part, rows in sections]
    return "\n".join([f"# {title}\n", f"> {description}\n", *lists])


def complete(site: Path, stage: Path, title: str, description: str, pages: list[Page]) -> None:
    shutil.copytree(stage / "pages", site, dirs_exist_ok=True)
    (site / "llms.txt").write_text(llms(title, description, pages), encoding="utf-8")
