//! Telling people what keeps a tree from fitting its schema.

mod quote;
mod suggestions;

use std::ops::Range;

use quorate_diagnostics::Body;

use crate::doctype::Doctype;
use serde_json::Value;

use crate::json_schema::{Bound, ErrorKind, Expected, PathStep, SchemaError};
use crate::tree::reader::{MAX_DIAGNOSTICS, SourceFile, nearest};
use crate::tree::{Entry, Kind, Node};

use quote::quoted;

/// Says each misfit with its place.
pub(super) fn report(document: &SourceFile, doctype: Doctype, root: &Node, misfits: &[SchemaError]) {
    document.omit(misfits.len().saturating_sub(MAX_DIAGNOSTICS));
    for misfit in misfits.iter().take(MAX_DIAGNOSTICS) {
        let (mut body, span, path) = describe(document.text(), root, misfit, "");
        if let ErrorKind::Duplicate { first, .. } = &misfit.kind
            && let Some(item) = locate(root, &misfit.path).node.items().get(*first)
        {
            body = body.related(document.place(item.span.clone(), path.clone()), "first here");
        }
        document.refuse(doctype.invalid_code(), body.at(document.place(span, path)));
    }
}

/// What to say of a misfit, what to underline in `text`, and its path below `above`.
pub(crate) fn describe(
    text: &str,
    root: &Node,
    misfit: &SchemaError,
    above: &str,
) -> (Body, Range<usize>, String) {
    let found = locate(root, &misfit.path);
    let mut path = above.to_owned();
    misfit.path.iter().for_each(|step| push_step(&mut path, step));
    let body = error_body(text, &found, &path, misfit);
    let span = match &misfit.kind {
        ErrorKind::UnknownKey { key, .. } => key_span(found.node, key).unwrap_or_else(|| found.span()),
        ErrorKind::Duplicate { second, .. } => {
            found.node.items().get(*second).map_or_else(|| found.span(), |item| item.span.clone())
        }
        _ => found.span(),
    };
    if let ErrorKind::UnknownKey { key, .. } | ErrorKind::MissingKey(key) = &misfit.kind {
        push_step(&mut path, &PathStep::Key(key.clone()));
    }
    (body, span, path)
}

/// A value, and the key that it belongs to.
struct LocatedValue<'t> {
    node: &'t Node,
    entry: Option<&'t Entry>,
}

impl LocatedValue<'_> {
    /// What to underline: scalars themselves, of anything larger the key or the first part.
    fn span(&self) -> Range<usize> {
        match (&self.node.kind, self.entry) {
            (Kind::Map(_) | Kind::Seq(_), Some(entry)) => entry.key_span.clone(),
            (Kind::Map(entries), None) => {
                entries.first().map_or(self.node.span.clone(), |first| first.key_span.clone())
            }
            _ => self.node.span.clone(),
        }
    }
}

fn locate<'t>(root: &'t Node, steps: &[PathStep]) -> LocatedValue<'t> {
    let mut found = LocatedValue { node: root, entry: None };
    for step in steps {
        let next = match step {
            PathStep::Key(key) => {
                found.node.entry(key).map(|entry| LocatedValue { node: &entry.value, entry: Some(entry) })
            }
            PathStep::Item(index) => {
                found.node.items().get(*index).map(|node| LocatedValue { node, entry: None })
            }
        };
        let Some(next) = next else { break };
        found = next;
    }
    found
}

fn key_span(node: &Node, key: &str) -> Option<Range<usize>> {
    node.entry(key).map(|entry| entry.key_span.clone())
}

/// Adds a step to a path as diagnostics write it: `members[0].weight`, `selector["a b"]`.
fn push_step(path: &mut String, step: &PathStep) {
    match step {
        PathStep::Key(key)
            if key.is_empty() || !key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-')) =>
        {
            path.push_str(&format!("[{key:?}]"));
        }
        PathStep::Key(key) if path.is_empty() => path.push_str(key),
        PathStep::Key(key) => {
            path.push('.');
            path.push_str(key);
        }
        PathStep::Item(index) => path.push_str(&format!("[{index}]")),
    }
}

fn error_body(text: &str, found: &LocatedValue<'_>, path: &str, misfit: &SchemaError) -> Body {
    let it = if path.is_empty() { "the manifest".to_owned() } else { format!("`{path}`") };
    let inside = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
    let because = misfit.schema_description.as_deref();
    match &misfit.kind {
        ErrorKind::Type(wanted) => wrong_type(text, found, &it, wanted),
        ErrorKind::NotInEnum(values) => not_in_enum(text, found, &it, values),
        ErrorKind::MissingKey(key) => {
            let body = Body::new(format!("{} is missing{inside}", quoted(key)));
            match because {
                Some(because) => body.help(format!("add `{key}`: {}", quote::clause(because))),
                None => body.help(format!("add `{key}`")),
            }
        }
        ErrorKind::UnknownKey { key, known } => unknown_key(key, known, path),
        ErrorKind::OutOfBounds(bound) => out_of_bounds(found, &it, *bound),
        ErrorKind::Pattern { pattern, description: says } => {
            let written = found.node.as_str().unwrap_or_default();
            let wanted = pattern_description(pattern, says.as_deref());
            with_suggestion(format!("{it} is {}; it has to be {wanted}", quoted(written)), pattern, written)
        }
        ErrorKind::Duplicate { second, .. } => {
            let what = found.node.items().get(*second).and_then(Node::as_str).map(quoted);
            Body::new(format!("{it} has {} twice", what.as_deref().unwrap_or("the same entry")))
                .help(format!("remove entry {}", second + 1))
        }
        ErrorKind::NoMatch(ways) => match because {
            Some(because) => {
                let keys = ways.iter().filter_map(|way| match &way.kind {
                    ErrorKind::MissingKey(key) => Some(format!("`{key}`")),
                    _ => None,
                });
                Body::new(format!("{} is missing{inside}", join_or(&keys.collect::<Vec<_>>())))
                    .help(quote::clause(because))
            }
            None => no_match(text, found, &it, ways),
        },
        ErrorKind::MultipleMatches | ErrorKind::Forbidden => Body::new(format!("{it} contradicts itself")),
    }
}

fn join_or(words: &[String]) -> String {
    match words {
        [] => "something".to_owned(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// What a pattern asks for.
fn pattern_description(pattern: &str, says: Option<&str>) -> String {
    says.map_or_else(|| format!("something that matches {pattern}"), str::to_owned)
}

fn with_suggestion(message: String, pattern: &str, written: &str) -> Body {
    let body = Body::new(message);
    match suggestions::for_text(pattern, written) {
        Some(instead) => body.help(format!("did you mean {}?", quoted(&instead))),
        None => body,
    }
}

/// What a value is, as the beginning of a sentence that goes on with what it has to be.
fn mismatch_message(text: &str, found: &LocatedValue<'_>, it: &str, wanted: &str) -> String {
    let written = text.get(found.node.span.clone()).unwrap_or_default();
    match &found.node.kind {
        Kind::Null => format!("{it} is empty; it has to be {wanted}"),
        Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) if !written.is_empty() => {
            format!("{it} is {written}; it has to be {wanted}")
        }
        kind => format!("{it} has to be {wanted}, not {}", kind.name()),
    }
}

fn wrong_type(text: &str, found: &LocatedValue<'_>, it: &str, wanted: &Expected) -> Body {
    let written = text.get(found.node.span.clone()).unwrap_or_default();
    // What has to match a pattern is not made right by quotes.
    if let Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) = &found.node.kind
        && let Some((pattern, says)) = &wanted.pattern
        && !suggestions::matches(pattern, written)
    {
        return with_suggestion(
            mismatch_message(text, found, it, &pattern_description(pattern, says.as_deref())),
            pattern,
            written,
        );
    }
    let types: Vec<String> = wanted.types.iter().map(|one| one.description().to_owned()).collect();
    let body = Body::new(mismatch_message(text, found, it, &join_or(&types)));
    match suggestions::for_type(text, found.node, found.entry.map(|entry| &*entry.key), wanted) {
        Some(help) => body.help(help),
        None => body,
    }
}

fn not_in_enum(text: &str, found: &LocatedValue<'_>, it: &str, values: &[Value]) -> Body {
    let words: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
    let wanted = match words.as_slice() {
        [only] => (*only).to_owned(),
        _ => format!("one of {}", words.join(", ")),
    };
    let Some(written) = found.node.as_str() else {
        return Body::new(mismatch_message(text, found, it, &wanted));
    };
    let body = Body::new(format!("{it} is {}; it has to be {wanted}", quoted(written)));
    match nearest(written, &words) {
        Some(near) if words.len() > 1 => body.help(format!("did you mean `{near}`?")),
        _ => body,
    }
}

/// A value that fits none of several ways.
fn no_match(text: &str, found: &LocatedValue<'_>, it: &str, ways: &[SchemaError]) -> Body {
    let mut words: Vec<String> = Vec::new();
    let mut wanted = Expected::default();
    for way in ways {
        match &way.kind {
            ErrorKind::Type(other) => wanted.types.extend(&other.types),
            ErrorKind::NotInEnum(values) => words.extend(values.iter().filter_map(Value::as_str).map(quoted)),
            _ => {}
        }
    }
    words.extend(wanted.types.iter().map(|one| one.description().to_owned()));
    if words.is_empty() {
        return Body::new(format!("{it} is none of the things that it can be"));
    }
    let body = Body::new(match found.node.as_str() {
        Some(written) => format!("{it} is {}; it has to be {}", quoted(written), join_or(&words)),
        None => mismatch_message(text, found, it, &join_or(&words)),
    });
    match suggestions::for_type(text, found.node, None, &wanted) {
        Some(help) => body.help(help),
        None => body,
    }
}

fn unknown_key(key: &str, known: &[String], path: &str) -> Body {
    let inside = if path.is_empty() { "here".to_owned() } else { format!("in `{path}`") };
    let body = Body::new(format!("{} is not a key {inside}", quoted(key)));
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    match nearest(key, &names) {
        Some(near) => body.help(format!("did you mean `{near}`?")),
        None if names.is_empty() => body.help("remove it: no keys are read here"),
        None => body.help(format!("the keys are: {}", names.join(", "))),
    }
}

fn out_of_bounds(found: &LocatedValue<'_>, it: &str, bound: Bound) -> Body {
    let number = match &found.node.kind {
        Kind::Int(value) => value.to_string(),
        Kind::Float(float) => float.text.to_string(),
        _ => String::new(),
    };
    let characters = found.node.as_str().map_or(0, |text| text.chars().count());
    let entries = found.node.items().len();
    let many =
        |count: usize, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
    let characters_said = many(characters, "character", "characters");
    let entries_said = many(entries, "entry", "entries");
    Body::new(match bound {
        Bound::Least(least) => format!("{it} is {number}; it has to be at least {least}"),
        Bound::Most(most) => format!("{it} is {number}; it can be at most {most}"),
        Bound::MoreThan(more) => format!("{it} is {number}; it has to be more than {more}"),
        Bound::ShortestText(_) if characters == 0 => format!("{it} is empty"),
        Bound::ShortestText(short) => format!("{it} has {characters_said}; it needs at least {short}"),
        Bound::LongestText(long) => format!("{it} has {characters_said}; it can have at most {long}"),
        Bound::FewestItems(_) if entries == 0 => format!("{it} is an empty list"),
        Bound::FewestItems(few) => format!("{it} has {entries_said}; it needs at least {few}"),
        Bound::MostItems(most) => format!("{it} has {entries_said}; it can have at most {most}"),
        Bound::FewestKeys(_) => format!("{it} is an empty mapping"),
    })
}

#[cfg(test)]
mod tests;
