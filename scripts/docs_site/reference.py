"""The pages that are generated: commands, fields, output, codes."""

import json
import subprocess
from pathlib import Path

import commands
from fields import Fields, sentence
from markdown import Page, first_sentence

PART, PLACE = "Reference", "reference"
CODES = "crates/quorate-diagnostics/codes"

# The file that a doctype is written in, and the page that says how.
DOCTYPES = {
    "assembly": ("ASSEMBLY.md", "assemblies.md"),
    "persona": ("PERSONA.md", "manifests.md"),
    "playbook": ("Playbooks", "playbooks.md"),
    "runtime": ("Runtimes", "runtimes.md"),
    "operator": ("OPERATOR.md", "manifests.md"),
    "council": ("council.yaml", "council.md"),
    "quorate.toml": ("quorate.toml", "configuration.md"),
}


def schema(binary: Path, *words: str) -> str:
    return subprocess.run([binary, "schema", *words], check=True, text=True, stdout=subprocess.PIPE).stdout


def listed(binary: Path, *words: str) -> list[tuple[str, str]]:
    """What `quorate schema` lists: names, and what each is of."""
    rows = (line.split(maxsplit=1) for line in schema(binary, *words).splitlines())
    return [(name, rest.strip()) for name, rest in rows]


def page(path: str, title: str, text: str, depth: int = 1) -> Page:
    return Page(f"docs/{PLACE}/{path}", f"{PLACE}/{path}", title, PART, text.rstrip("\n") + "\n", depth)


def command_pages(binary: Path) -> list[Page]:
    (_, index), *made = commands.pages(binary)
    pages = [page("commands.md", "Commands", index, 0)]
    pages += [page(f"commands/{name}.md", f"quorate {name}", text) for name, text in made]
    return [*pages, page("exit-codes.md", "Exit codes", commands.exit_codes(binary, [name for name, _ in made]), 0)]


def field_pages(binary: Path) -> list[Page]:
    index = ["# Fields of manifests", "Every key of every file that Quorate reads, with its type, its default and its meaning.", ""]
    pages = []
    for name, (title, guide) in DOCTYPES.items():
        form = json.loads(schema(binary, name))
        path = f"fields/{name.replace('.', '-')}.md"
        text = (
            f"# {title}: fields\n\n{form['description']}\n\n`quorate schema {name}` prints the JSON Schema that this page is generated"
            f" from, and `quorate check` refuses what does not match it. The [guide](../../{guide}) says how to write it.\n\n"
        )
        pages.append(page(path, title, text + Fields(form, "manifest").render("Keys")))
        index.append(f"- [{title}]({path}): {form['description']}")
    return [page("fields.md", "Fields of manifests", "\n".join(index), 0), *pages]


def output_pages(binary: Path) -> list[Page]:
    index = ["# JSON output", "The fields of what commands print with `--format json`.", ""]
    pages = []
    for name, identity in listed(binary):
        if name in DOCTYPES or name == "answer":
            continue
        form = json.loads(schema(binary, name))
        title = form["title"] if " as " in form["title"] else f"What `quorate {name} --format json` prints"
        text = f"# {identity}\n\n{title}. `quorate schema {name}` prints its JSON Schema.\n\n"
        pages.append(page(f"output/{name}.md", identity, text + Fields(form, "output").render("Fields")))
        index.append(f"- [{identity}](output/{name}.md): {title}")
    return [page("output.md", "JSON output", "\n".join(index), 0), *pages]


def answer_pages(binary: Path) -> list[Page]:
    told = "The fields that an executor's answer has to have. An answer that does not match is asked for once more."
    index = ["# Answers of members", told, ""]
    pages = []
    for name, meaning in listed(binary, "answer"):
        form = json.loads(schema(binary, "answer", name))
        text = f"# Answer: {name}\n\n{sentence(meaning)} `quorate schema answer {name}` prints its JSON Schema.\n\n"
        pages.append(page(f"answers/{name}.md", name, text + Fields(form, "answer").render("Fields")))
        index.append(f"- [{name}](answers/{name}.md): {sentence(meaning)}")
    return [page("answers.md", "Answers of members", "\n".join(index), 0), *pages]


def outcome_codes(binary: Path) -> list[str]:
    """The codes of outcomes and what each means."""
    listed = [line.split(maxsplit=2) for line in explain(binary).splitlines()]
    told = [(code, explain(binary, code).split("\n\n", 1)[1]) for code, severity, _ in listed if severity == "outcome"]
    return [f"- `{code}`: {' '.join(meaning.split())}" for code, meaning in told]


def explain(binary: Path, *words: str) -> str:
    return subprocess.run([binary, "explain", *words], check=True, text=True, stdout=subprocess.PIPE).stdout


def code_pages(binary: Path, root: Path) -> list[Page]:
    index = [
        "# Codes",
        "Every diagnostic has a code: a refusal stops what you asked for, a warning does not. `quorate explain CODE` prints these pages.",
    ]
    pages = []
    for folder in sorted(path for path in (root / CODES).iterdir() if path.is_dir()):
        rows = []
        for file in sorted(folder.glob("*.md")):
            text = file.read_text(encoding="utf-8")
            source = str(file.relative_to(root))
            rows.append(f"- [{file.stem}](../../{source}): {first_sentence(text)}")
            pages.append(Page(source, f"{PLACE}/codes/{folder.name}/{file.name}", file.stem, PART, text, 1))
        index += [f"## {folder.name}", "\n".join(rows)]
    index += ["## Outcomes", "What `--format json` says of a run that came to no result, or of a text that was refused.", "\n".join(outcome_codes(binary))]
    return [page("codes.md", "Codes", "\n\n".join(index), 0), *pages]


def generate(binary: Path, root: Path) -> list[Page]:
    schemas = [*field_pages(binary), *output_pages(binary), *answer_pages(binary)]
    return [*command_pages(binary), *schemas, *code_pages(binary, root)]
