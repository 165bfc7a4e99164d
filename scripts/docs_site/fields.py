"""A JSON Schema as a page: a section for each object, a definition for each of its fields."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from markdown import code, escape, slug

Schema = dict[str, Any]

ANY_TEXT = ("[^\\s]", "\\S")
SIMPLE = re.compile(r"^[\w.]+$")
DEFAULT = re.compile(r"[;,] the default is (.+?)(?=\. |\.?$)")
TIME = {"date-time": "time in RFC 3339"}


@dataclass
class Shape:
    """The fields of an object, of all the parts of its schema."""

    properties: dict[str, Schema] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    when: dict[str, str] = field(default_factory=dict)
    """Where a field is required that is not always."""
    rules: list[str] = field(default_factory=list)

    def add(self, other: "Shape", when: str = "") -> None:
        self.properties |= {name: schema for name, schema in other.properties.items() if name not in self.properties}
        self.when |= other.when | (dict.fromkeys(other.required, when) if when else {})
        self.required += [] if when else other.required
        self.rules += other.rules

    def names(self) -> list[str]:
        """Required fields first, as the schema orders them."""
        return sorted(self.properties, key=lambda name: (self.required + [name]).index(name))


class Fields:
    """Writes the sections of one schema, of what people write, programs print or members answer."""

    def __init__(self, schema: Schema, use: Literal["manifest", "output", "answer"]) -> None:
        self.schema, self.use = schema, use
        self.definitions: dict[str, Schema] = schema.get("$defs", {})
        uses = Counter(re.findall(r'"\$ref": "#/\$defs/(\w+)"', json.dumps(schema)))
        # An object that several fields have gets one section, with its own name.
        self.shared = {name for name, count in uses.items() if count > 1 and self.shape(self.definitions[name]).properties}
        self.parts: list[str] = []

    def render(self, title: str) -> str:
        self.section("", title, self.schema)
        for name in sorted(self.shared):
            self.section(name, code(name), self.definitions[name])
        return "\n\n".join(self.parts)

    def section(self, path: str, title: str, schema: Schema) -> None:
        shape = self.shape(schema)
        self.parts.append(f"## {title}")
        described = self.resolve(schema).get("description", "")
        if path and described:
            self.parts.append(sentence(described))
        self.parts += ["\n".join(f"- {rule}" for rule in shape.rules)] if shape.rules else []
        prefix = f"{path}." if path else ""
        self.parts += [self.definition(prefix, name, shape) for name in shape.names()]
        for name in shape.names():
            for below, nested in self.objects(f"{prefix}{name}", shape.properties[name]):
                self.section(below, code(below), nested)

    def definition(self, prefix: str, name: str, shape: Shape) -> str:
        schema = shape.properties[name]
        described = schema.get("description") or self.resolve(schema).get("description", "")
        default = DEFAULT.search(described)
        if default:
            described = described[: default.start()] + described[default.end() :]
        facts = sentence(self.kind(schema) + self.presence(name, shape) + ("; deprecated" if schema.get("deprecated") else ""))
        if self.use != "manifest" and described:
            facts, described = f"{facts.removesuffix('.')}: {sentence(described, begin=str.lower)}", ""
        sections = [f"[{code(below)}](#{slug(code(below))})" for below in self.sections(f"{prefix}{name}", schema)]
        facts += f" Fields: {', '.join(sections)}." if sections else ""
        facts += f" Default: {SIMPLE.sub(lambda found: code(found[0]), default[1])}." if default else ""
        examples = [] if "for example" in described else [literal(example) for example in schema.get("examples", [])]
        if examples and not (default and default[1].strip("`") == examples[0].strip("`")):
            facts += f" Example{'s' if examples[1:] else ''}: {', '.join(examples)}."
        said = [sentence(text) for text in (described, self.of_each(schema)) if text]
        body = [" ".join(said), ""] if said else []
        body += [facts, "", *(f"- {value}" for value in self.values(schema))]
        return f"{code(name)}\n: " + "\n".join(f"  {line}".rstrip() for line in body).strip()

    def presence(self, name: str, shape: Shape) -> str:
        if name in shape.required:
            return "" if self.use == "output" else "; required"
        if name in shape.when:
            return f"; required where {shape.when[name]}"
        return "; not always present" if self.use == "output" else "; optional"

    def of_each(self, schema: Schema) -> str:
        """What is said of each value in a map or list that has no section."""
        resolved = self.resolve(schema)
        inner = resolved.get("items") or resolved.get("additionalProperties")
        return self.resolve(inner).get("description", "") if isinstance(inner, dict) and not self.shape(inner).properties else ""

    def resolve(self, schema: Schema) -> Schema:
        """The schema that it refers to; what stands beside the reference comes before."""
        reference = schema.get("$ref")
        return {**self.definitions[reference.rpartition("/")[2]], **schema} if reference else schema

    def variants(self, schema: Schema) -> list[Schema]:
        """The forms that a value may have, without null."""
        resolved = self.resolve(schema)
        found = resolved.get("anyOf") or resolved.get("oneOf")
        if not found or "properties" in resolved or schema.get("$ref", "").rpartition("/")[2] in self.shared:
            return [schema]
        return [form for part in found if part.get("type") != "null" for form in self.variants(part)]

    def shape(self, schema: Schema) -> Shape:
        resolved = self.resolve(schema)
        shape = Shape(dict(resolved.get("properties", {})), list(resolved.get("required", [])))
        for part in resolved.get("allOf", []):
            if "description" in part:
                shape.rules.append(sentence(part["description"]))
            else:
                shape.add(self.shape(part))
        if "if" in resolved:
            condition = ", ".join(f"{code(name)} is {literal(test['const'])}" for name, test in resolved["if"]["properties"].items())
            shape.add(self.shape(resolved.get("then", {})), condition)
            shape.add(self.shape(resolved.get("else", {})), condition.replace(" is ", " is not "))
        forms = [self.shape(form) for form in resolved.get("anyOf", []) if form.get("type") != "null"]
        forms = [form for form in forms if form.properties]
        for form in forms:
            shape.add(Shape(form.properties, [name for name in form.required if all(name in other.required for other in forms)]))
        if "properties" in resolved and forms:
            shape.rules.append("Required: " + ", or ".join(" and ".join(map(code, form.required)) for form in forms) + ".")
        return shape

    def objects(self, path: str, schema: Schema) -> Iterator[tuple[str, Schema]]:
        """The objects with fields of their own in a value, each with its path, except those with a section elsewhere."""
        if self.shape(schema).properties:
            if self.shared_name(schema) is None:
                yield path, schema
            return
        for form in self.variants(schema):
            if self.shared_name(form) is None:
                yield from self.inner(path, form)

    def inner(self, path: str, form: Schema) -> Iterator[tuple[str, Schema]]:
        resolved = self.resolve(form)
        if "items" in resolved:
            yield from self.objects(f"{path}[]", resolved["items"])
        if isinstance(resolved.get("additionalProperties"), dict):
            yield from self.objects(f"{path}.<name>", resolved["additionalProperties"])

    def shared_name(self, schema: Schema) -> str | None:
        names = [form["$ref"].rpartition("/")[2] for form in self.variants(schema) if "$ref" in form]
        return names[0] if len(names) == 1 and names[0] in self.shared else None

    def sections(self, path: str, schema: Schema) -> list[str]:
        """The sections that say more of a value."""
        found = [below for below, _ in self.objects(path, schema)]
        text = json.dumps(schema if not found else {})
        return found + [name for name in sorted(self.shared) if f'"#/$defs/{name}"' in text]

    def values(self, schema: Schema) -> list[str]:
        """The values of an enumeration, each with its meaning."""
        forms = self.variants(self.resolve(schema).get("items", schema))
        told = [form for form in forms if "const" in form and "description" in form]
        return [f"{literal(form['const'])}: {sentence(form['description'])}" for form in told] if len(told) > 1 else []

    def kind(self, schema: Schema) -> str:
        """The type of a value in words."""
        resolved = self.resolve(schema)
        forms = self.variants(schema)
        consts = [literal(form["const"]) for form in forms if "const" in form]
        others = [self.one_kind(form) for form in forms if "const" not in form]
        values = "these values" if self.values(schema) else ", ".join(consts)
        kinds = ([f"one of {values}" if len(consts) > 1 else values] if consts else []) + list(dict.fromkeys(others))
        alternatives = resolved.get("anyOf") or resolved.get("oneOf") or [resolved]
        null = any("null" in form.get("type", "") or None in form.get("enum", ()) for form in alternatives)
        text = ", or ".join(kinds)
        return text + ((", or null" if "," in text else " or null") if null and self.use == "output" else "")

    def one_kind(self, form: Schema) -> str:
        resolved = self.resolve(form)
        if "enum" in resolved:
            return "one of " + ", ".join(dict.fromkeys(literal(value) for value in resolved["enum"] if value is not None))
        types = resolved.get("type", "object" if self.shape(resolved).properties else [])
        names = [name for name in ([types] if isinstance(types, str) else types) if name != "null"]
        kinds = [self.named(name, resolved) for name in names]
        return (", or " if any("," in kind for kind in kinds) else " or ").join(kinds) or "any value"

    def named(self, name: str, schema: Schema) -> str:
        if name == "string":
            return TIME.get(schema.get("format", ""), "string") + text_limits(schema)
        if name in ("integer", "number"):
            return name + limits(schema.get("minimum"), schema.get("maximum"), schema.get("exclusiveMinimum"))
        if name == "array":
            of = f" of {plural(self.kind(schema['items']))}" if "items" in schema else ""
            size = limits(schema.get("minItems"), schema.get("maxItems"))
            return f"list{of}{size}{', no duplicates' if schema.get('uniqueItems') else ''}"
        values = schema.get("additionalProperties")
        if name == "object" and isinstance(values, dict) and not schema.get("properties"):
            return f"map of names to {plural(self.kind(values))}"
        return name


def plural(kind: str) -> str:
    """`string, 1 to 64 characters` is several as `strings (1 to 64 characters)`."""
    noun, comma, limit = kind.partition(", ")
    if kind.startswith("one of"):
        return kind.removeprefix("one of ") if kind == "one of these values" else kind
    several = re.sub(r"^(string|integer|number|object|boolean|list|map)\b", r"\1s", noun)
    return f"{several} ({limit})" if comma else several


def text_limits(schema: Schema) -> str:
    least, most, pattern = schema.get("minLength", 0), schema.get("maxLength"), schema.get("pattern", "")
    size = f", {least} to {most} characters" if least and most else f", up to {most} characters" if most else ""
    if not pattern or pattern in ANY_TEXT:
        return size
    form = schema.get("patternErrorMessage", f"matches {code(pattern)}")
    return f"{size}, " + re.sub(r"[^\s`]*<\w+>[\w/]*", lambda found: code(found[0]), form)


def limits(least: float | None, most: float | None, above: float | None = None) -> str:
    if least is not None and most is not None:
        return f", {least} to {most}" if least != most else f", exactly {most}"
    low = f", {least} or more" if least else f", more than {above}" if above is not None else ""
    return low + (f", up to {most}" if most is not None else "")


def literal(value: Any) -> str:
    return code(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def sentence(text: str, begin: Callable[[str], str] = str.upper) -> str:
    text = escape(" ".join(text.split()))
    # An abbreviation stays as it is.
    begin = str if text[1:2].isupper() else begin
    return begin(text[0]) + text[1:] + ("" if text.endswith((".", ":")) else ".")
