"""The pages of the commands, from what `quorate … --help` prints."""

import re
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from markdown import code, escape

Entries = list[tuple[str, list[str]]]

# An argument, an option or a subcommand, with its meaning beside it or below it.
ENTRY = re.compile(r" {2,6}(\S.*?)(?: {2,}(\S.*))?")
VALUE = re.compile(r"- (\S+?): +(.*)")
SETTING = re.compile(r"\[(default|possible values|aliases|env): ([^\]]*)\]")
EXIT = re.compile(r"exit code is|Exits with|exits with", re.I)

# The guide that each command belongs to.
GUIDES = {
    "review.md": "review sweep override resume",
    "assemblies.md": "convene",
    "ledger.md": "runs show replay ledger compare",
    "serve.md": "serve watch",
    "report.md": "report",
    "audit.md": "audit",
    "runtimes.md": "run say log state",
    "playbooks.md": "weave playbook overlays",
    "mcp.md": "mcp",
    "workers.md": "worker queue",
    "manifests.md": "check resolve fmt schema init",
    "locks.md": "locks",
    "attest.md": "attest",
    "signing.md": "keys",
    "wiring.md": "hook",
    "github.md": "github",
    "provisioning.md": "provision",
    "configuration.md": "trust",
    "executors.md": "models doctor",
    "install.md": "completions man",
}


@dataclass
class Help:
    """The help of a command."""

    name: str
    about: list[str] = field(default_factory=list)
    usage: str = ""
    sections: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def entries(self, *sections: str) -> Entries:
        """The entries of sections, each with the lines of its meaning."""
        entries: Entries = []
        for line in (line for name in sections for line in self.sections.get(name, [])):
            found = ENTRY.fullmatch(line)
            if found:
                entries.append((found[1], [found[2]] if found[2] else []))
            elif line.strip() and entries:
                entries[-1][1].append(line.strip())
        return entries

    def subcommands(self) -> list[str]:
        return [name for name, _ in self.entries("Commands") if name != "help"]


@cache
def read(binary: Path, *words: str) -> Help:
    """The help of a command. Lines are not wrapped, so that a paragraph is a line."""
    environment = {"COLUMNS": "100000", "NO_COLOR": "1"}
    said = subprocess.run([binary, *words, "--help"], env=environment, check=True, text=True, stdout=subprocess.PIPE).stdout
    command = Help(" ".join(["quorate", *words]))
    lines: list[str] | None = None
    for line in said.splitlines():
        if line.startswith("Usage: "):
            command.usage = line.removeprefix("Usage: ")
        elif re.fullmatch(r"[A-Z][\w ]*:", line):
            lines = command.sections.setdefault(line.removesuffix(":"), [])
        elif line.startswith(" "):
            assert lines is not None, f"{command.name}: {line}"
            lines.append(line)
        elif line:
            (command.notes if lines else command.about).append(line)
    return command


def meaning(lines: list[str]) -> str:
    """The meaning of an entry, as the body of a definition."""
    body: list[str] = []
    for line in lines:
        if found := VALUE.fullmatch(line):
            body.append(f"- {code(found[1])}: {escape(found[2])}")
        elif settings := SETTING.findall(line):
            body += [escape(SETTING.sub("", line).strip()), ""]
            for name, values in settings:
                body.append(f"{name.capitalize()}: {', '.join(map(code, values.split(', ')))}.")
        elif line != "Possible values:":
            body.append(escape(line))
        else:
            body.append("")
    return "\n".join(f"  {line}".rstrip() for line in body).strip()


def definitions(entries: Entries) -> str:
    return "\n\n".join(f"{code(name)}\n: {meaning(lines)}" for name, lines in entries)


def section(binary: Path, command: Help, common: set[str]) -> list[str]:
    """A command and its subcommands, one after the other."""
    entries = [entry for entry in command.entries("Arguments", "Options") if entry[0] not in common]
    parts = [*map(escape, command.about), f"```text\n{command.usage}\n```", definitions(entries)]
    examples = [line.removeprefix("  ") for name in ("Example", "Examples") for line in command.sections.get(name, [])]
    if examples:
        parts.append("Examples:\n\n```sh\n" + "\n".join(examples) + "\n```")
    parts += map(escape, command.notes)
    for name in command.subcommands():
        below = read(binary, *command.name.split()[1:], name)
        parts += [f"## {below.name}", *section(binary, below, common)]
    return [part for part in parts if part]


def pages(binary: Path) -> list[tuple[str, str]]:
    """The name and the text of each command's page; before them the one that lists them, without a name."""
    root = read(binary)
    options = root.entries("Options")
    common = {name for name, _ in options}
    guides = {command: guide for guide, commands in GUIDES.items() for command in commands.split()}
    made, index = [], ["# Commands", *map(escape, root.about)]
    # Its sections are groups of commands, then the options, then how to start.
    for group in list(root.sections)[: list(root.sections).index("Options")]:
        entries = [entry for entry in root.entries(group) if entry[0] != "help"]
        rows = [f"- [`{name}`](commands/{name}.md): {escape(' '.join(lines))}" for name, lines in entries]
        index += [f"## {group}", "\n".join(rows)]
        for name, _ in entries:
            parts = [f"# quorate {name}", *section(binary, read(binary, name), common)]
            links = ["[Options of every command](../commands.md#options-of-every-command)"]
            links += [f"[guide](../../{guides[name]})"] if name in guides else []
            parts.append(" · ".join(links))
            made.append((name, "\n\n".join(parts) + "\n"))
    index += ["## Options of every command", definitions(options)]
    return [("", "\n\n".join(index) + "\n"), *made]


def with_subcommands(binary: Path, *words: str) -> list[Help]:
    command = read(binary, *words)
    return [command, *(below for name in command.subcommands() for below in with_subcommands(binary, *words, name))]


def exit_codes(binary: Path, names: list[str]) -> str:
    """The page with what each command's help says of its exit codes."""
    parts = [
        "# Exit codes",
        "What the help of each command says of its exit code. For every command, 4 stands for something that was not found, 5 for"
        " unusable configuration or input, and 64 for a wrong command line ([semantics](../semantics.md#c5)).",
    ]
    for name in names:
        for command in with_subcommands(binary, name):
            said = [escape(line) for line in command.about if EXIT.search(line)]
            if said:
                parts += [f"## {command.name}", *said, f"[All options](commands/{name}.md)"]
    return "\n\n".join(parts) + "\n"
