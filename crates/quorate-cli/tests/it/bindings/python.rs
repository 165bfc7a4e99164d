//! Classes as Python dataclasses.

use super::{Class, Field, Type};

const KEYWORDS: [&str; 6] = ["from", "class", "in", "is", "not", "global"];

/// The classes with behaviour of their own, which is written by hand.
const BASES: [(&str, &str); 4] = [
    ("Review", "ShownReview"),
    ("Convening", "ShownConvening"),
    ("Runs", "ShownRuns"),
    ("Verification", "ShownVerification"),
];

const HEAD: &str = "\"\"\"What commands print as JSON, as dataclasses.

Made from the schemas of `quorate schema`; CONTRIBUTING.md says how.
\"\"\"

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ._shown import ShownConvening, ShownReview, ShownRuns, ShownVerification
";

pub(super) fn module(classes: &[Class]) -> String {
    let mut names: Vec<String> = classes.iter().map(|class| format!("    \"{}\",\n", class.name)).collect();
    names.sort();
    let classes: String = classes.iter().map(class).collect();
    format!("{HEAD}\n__all__ = [\n{}]\n{classes}", names.concat())
}

fn class(class: &Class) -> String {
    let base = BASES.iter().find(|(name, _)| *name == class.name).map(|(_, base)| format!("({base})"));
    let mut text = format!(
        "\n\n@dataclass(frozen=True, kw_only=True)\nclass {}{}:\n",
        class.name,
        base.unwrap_or_default()
    );
    if !class.about.is_empty() {
        text += &format!("    \"\"\"{}\"\"\"\n\n", sentence(&class.about));
    }
    for one in &class.fields {
        text += &field(one);
    }
    text
}

fn field(field: &Field) -> String {
    let name = snake(&field.name);
    let may_lack = !field.is_required;
    let mut kind = kind(&field.kind);
    if may_lack && !kind.ends_with("None") && kind != "object" {
        kind += " | None";
    }
    let renamed = (name != field.name).then(|| format!("metadata={{\"json\": \"{}\"}}", field.name));
    let value = match (may_lack, renamed) {
        (false, None) => String::new(),
        (true, None) => " = None".to_owned(),
        (false, Some(renamed)) => format!(" = field({renamed})"),
        (true, Some(renamed)) => format!(" = field(default=None, {renamed})"),
    };
    let about = if field.about.is_empty() {
        String::new()
    } else {
        format!("    \"\"\"{}\"\"\"\n", sentence(&field.about))
    };
    format!("    {name}: {kind}{value}\n{about}")
}

fn kind(kind: &Type) -> String {
    match kind {
        Type::Text => "str".to_owned(),
        Type::Integer => "int".to_owned(),
        Type::Number => "float".to_owned(),
        Type::Boolean => "bool".to_owned(),
        Type::Null => "None".to_owned(),
        Type::Any => "object".to_owned(),
        Type::Object => "dict[str, object]".to_owned(),
        Type::Words(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            format!("Literal[{}]", words.join(", "))
        }
        Type::List(item) => format!("tuple[{}, ...]", self::kind(item)),
        Type::Class(name) => name.clone(),
        Type::Either(forms) => {
            // None is last, as people write it.
            let (null, forms): (Vec<&Type>, Vec<&Type>) = forms.iter().partition(|form| **form == Type::Null);
            let all: Vec<String> = forms.into_iter().chain(null).map(self::kind).collect();
            all.join(" | ")
        }
    }
}

/// `endedBy` as `ended_by`, `from` as `from_`.
fn snake(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    if KEYWORDS.contains(&text.as_str()) {
        text.push('_');
    }
    text
}

/// A description for a docstring.
fn sentence(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "'");
    let end = if text.ends_with(['.', '…']) { "" } else { "." };
    format!("{text}{end}")
}
