"""Markdown as the pages of this project write it: its blocks, links and headings."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """A page of the site."""

    source: str
    """Its file in the repository; of a generated page, where it would be in docs/."""
    path: str
    """Its Markdown file in the site."""
    title: str
    part: str
    text: str
    depth: int = 0
    """How deep it is in the table of contents."""


FENCE = re.compile(r"( *)(`{3,}|~{3,})([^`\n]*)\n")
CODE_OR_LINK = re.compile(r"(?P<code>(?<!`)(`+)(?!`).*?(?<!`)\2(?!`))|(?P<open>\]\(|(?:href|src|srcset)=\")(?P<link>[^)\"\s]+)", re.S)
HEADING = re.compile(r"^(#{1,6}) (.+?)$", re.M)
MARKUP = re.compile(r"(`[^`]*`)|\[([^\]]*)\]\([^)]*\)|<[^>]+>|\*\*|(?<!\w)[*_]|[*_](?!\w)")


def blocks(text: str) -> Iterator[tuple[bool, str]]:
    """The prose and the fenced blocks, in their order; True is for a block."""
    chunk: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        found = FENCE.fullmatch(line)
        if fence:
            chunk.append(line)
            if found and found[2].startswith(fence) and not found[3].strip():
                yield True, "".join(chunk)
                chunk, fence = [], ""
        else:
            if found:
                yield False, "".join(chunk)
                chunk, fence = [], found[2]
            chunk.append(line)
    yield bool(fence), "".join(chunk)


def relink(text: str, target: Callable[[str], str]) -> str:
    """The text with another target for each link and picture."""

    def replace(found: re.Match[str]) -> str:
        return found[0] if found["code"] else found["open"] + target(found["link"])

    return "".join(chunk if fenced else CODE_OR_LINK.sub(replace, chunk) for fenced, chunk in blocks(text))


def plain(text: str) -> str:
    """The text of a line without its markup, except code."""
    return MARKUP.sub(lambda found: found[1] or found[2] or "", text)


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it: links between pages are written for it."""
    return re.sub(r"[^\w\- ]", "", plain(heading).replace("`", "").lower()).replace(" ", "-")


def for_mdbook(text: str) -> str:
    """The text with GitHub's anchors, which differ from mdBook's, and with the path of a shown file above its block."""
    used: Counter[str] = Counter()

    def with_anchor(found: re.Match[str]) -> str:
        anchor = slug(found[2])
        number = used[anchor]
        used[anchor] += 1
        return f"{found[0]} {{#{anchor}{f'-{number}' if number else ''}}}"

    def with_caption(block: str) -> str:
        indent, fence, info = FENCE.match(block).groups()  # type: ignore[union-attr]
        language, _, path = info.strip().partition(" ")
        caption = f'{indent}<p class="file">{path}</p>\n\n' if path and path != "no-run" else ""
        return f"{caption}{indent}{fence}{language}\n{block.split(chr(10), 1)[1]}"

    return "".join(with_caption(chunk) if fenced else HEADING.sub(with_anchor, chunk) for fenced, chunk in blocks(text))


def first_sentence(text: str) -> str:
    """The first sentence below the title."""
    prose = next(chunk for fenced, chunk in blocks(text) if not fenced and chunk.strip())
    paragraphs = [part for part in prose.split("\n\n") if part.strip() and not part.startswith(("#", "|", "<", "!"))]
    paragraph = plain(" ".join(paragraphs[0].split())) if paragraphs else ""
    found = re.match(r".*?\.(?= [A-Z`]|$)", paragraph)
    return (found[0] if found else paragraph).rstrip(":.") + "."


def escape(text: str) -> str:
    """Plain text as Markdown; what is in backticks stays code."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(piece if piece.startswith("`") else re.sub(r"[<*\\]|(?<!\w)_|_(?!\w)", r"\\\g<0>", piece) for piece in pieces)


def code(text: str) -> str:
    """Text as code within a line."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"
