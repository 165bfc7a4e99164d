"""Makes the documentation site: stages the pages, runs mdBook, checks what it made.

    docs_site --binary FILE --mdbook FILE --out DIR

`scripts/docs` calls it, and says more.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pages
import site_files


def build(root: Path, binary: Path, mdbook: Path, folder: Path) -> Path:
    """The site, in a folder of its own."""
    book = tomllib.loads((root / "docs/book.toml").read_text(encoding="utf-8"))["book"]
    made = pages.collect(root, binary)
    pages.Stage(root, made).write(made, folder)
    for name in ("book.toml", "book.css"):
        shutil.copyfile(root / "docs" / name, folder / name)
    said = subprocess.run([mdbook, "build", folder], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if said.returncode or "WARN" in said.stdout or "ERROR" in said.stdout:
        raise pages.Refused(said.stdout)
    site = folder / "book"
    site_files.complete(site, folder, book["title"], book["description"], made)
    if problems := site_files.check(site.resolve()):
        raise pages.Refused("\n".join(problems))
    return site


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("binary", "mdbook", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    arguments = parser.parse_args()
    out: Path = arguments.out
    if out.exists() and any(out.iterdir()) and not (out / "llms.txt").is_file():
        print(f"cannot make the site: {out} has other files", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        try:
            site = build(Path(__file__).parents[2], arguments.binary, arguments.mdbook, Path(folder))
        except pages.Refused as refused:
            print(f"cannot make the site:\n{refused}", file=sys.stderr)
            return 1
        if out.exists():
            shutil.rmtree(out)
        shutil.copytree(site, out)
    print(out / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
