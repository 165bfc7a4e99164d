//! Telling people what keeps a tree from fitting its schema.

mod instead;
mod quote;

use std::ops::Range;

use quorate_diagnostics::Body;

use crate::doctype::Doctype;
use serde_json::Value;

use crate::form::{Bound, Fault, Misfit, Step, Wanted};
use crate::tree::reader::{Document, MOST, nearest};
use crate::tree::{Entry, Kind, Node};

use quote::quoted;

/// Says each misfit with its place.
pub(super) fn report(document: &Document, doctype: Doctype, root: &Node, misfits: &[Misfit]) {
    document.leave_unsaid(misfits.len().saturating_sub(MOST));
    for misfit in misfits.iter().take(MOST) {
        let (mut body, span, path) = told(document.text(), root, misfit, "");
        if let Fault::Repeated { first, .. } = &misfit.fault
            && let Some(item) = find(root, &misfit.path).node.items().get(*first)
        {
            body = body.related(document.place(item.span.clone(), path.clone()), "first here");
        }
        document.refuse(doctype.invalid(), body.at(document.place(span, path)));
    }
}

/// What to say of a misfit, what to underline in `text`, and its path below `above`.
pub(crate) fn told(text: &str, root: &Node, misfit: &Misfit, above: &str) -> (Body, Range<usize>, String) {
    let found = find(root, &misfit.path);
    let mut path = above.to_owned();
    misfit.path.iter().for_each(|step| push(&mut path, step));
    let body = say(text, &found, &path, misfit);
    let span = match &misfit.fault {
        Fault::Unknown { key, .. } => key_span(found.node, key).unwrap_or_else(|| found.span()),
        Fault::Repeated { second, .. } => {
            found.node.items().get(*second).map_or_else(|| found.span(), |item| item.span.clone())
        }
        _ => found.span(),
    };
    if let Fault::Unknown { key, .. } | Fault::Missing(key) = &misfit.fault {
        push(&mut path, &Step::Key(key.clone()));
    }
    (body, span, path)
}

/// A value, and the key that it belongs to.
struct Found<'t> {
    node: &'t Node,
    entry: Option<&'t Entry>,
}

impl Found<'_> {
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

fn find<'t>(root: &'t Node, steps: &[Step]) -> Found<'t> {
    let mut found = Found { node: root, entry: None };
    for step in steps {
        let next = match step {
            Step::Key(key) => {
                found.node.entry(key).map(|entry| Found { node: &entry.value, entry: Some(entry) })
            }
            Step::Item(index) => found.node.items().get(*index).map(|node| Found { node, entry: None }),
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
fn push(path: &mut String, step: &Step) {
    match step {
        Step::Key(key)
            if key.is_empty() || !key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-')) =>
        {
            path.push_str(&format!("[{key:?}]"));
        }
        Step::Key(key) if path.is_empty() => path.push_str(key),
        Step::Key(key) => {
            path.push('.');
            path.push_str(key);
        }
        Step::Item(index) => path.push_str(&format!("[{index}]")),
    }
}

fn say(text: &str, found: &Found<'_>, path: &str, misfit: &Misfit) -> Body {
    let it = if path.is_empty() { "the manifest".to_owned() } else { format!("`{path}`") };
    let inside = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
    let because = misfit.because.as_deref();
    match &misfit.fault {
        Fault::Type(wanted) => wrong_type(text, found, &it, wanted),
        Fault::NotAmong(values) => not_among(text, found, &it, values),
        Fault::Missing(key) => {
            let body = Body::new(format!("{} is missing{inside}", quoted(key)));
            match because {
                Some(because) => body.help(format!("add `{key}`: {}", quote::clause(because))),
                None => body.help(format!("add `{key}`")),
            }
        }
        Fault::Unknown { key, known } => unknown(key, known, path),
        Fault::Bound(bound) => out_of_bounds(found, &it, *bound),
        Fault::Pattern { pattern, says } => {
            let written = found.node.as_str().unwrap_or_default();
            let wanted = asked(pattern, says.as_deref());
            unmatched(format!("{it} is {}; it has to be {wanted}", quoted(written)), pattern, written)
        }
        Fault::Repeated { second, .. } => {
            let what = found.node.items().get(*second).and_then(Node::as_str).map(quoted);
            Body::new(format!("{it} has {} twice", what.as_deref().unwrap_or("the same entry")))
                .help(format!("remove entry {}", second + 1))
        }
        Fault::NoWay(ways) => match because {
            Some(because) => {
                let keys = ways.iter().filter_map(|way| match &way.fault {
                    Fault::Missing(key) => Some(format!("`{key}`")),
                    _ => None,
                });
                Body::new(format!("{} is missing{inside}", or(&keys.collect::<Vec<_>>())))
                    .help(quote::clause(because))
            }
            None => no_way(text, found, &it, ways),
        },
        Fault::ManyWays | Fault::Forbidden => Body::new(format!("{it} contradicts itself")),
    }
}

fn or(words: &[String]) -> String {
    match words {
        [] => "something".to_owned(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// What a pattern asks for.
fn asked(pattern: &str, says: Option<&str>) -> String {
    says.map_or_else(|| format!("something that matches {pattern}"), str::to_owned)
}

fn unmatched(message: String, pattern: &str, written: &str) -> Body {
    let body = Body::new(message);
    match instead::of_text(pattern, written) {
        Some(instead) => body.help(format!("did you mean {}?", quoted(&instead))),
        None => body,
    }
}

/// What a value is, as the beginning of a sentence that goes on with what it has to be.
fn is_now(text: &str, found: &Found<'_>, it: &str, wanted: &str) -> String {
    let written = text.get(found.node.span.clone()).unwrap_or_default();
    match &found.node.kind {
        Kind::Null => format!("{it} is empty; it has to be {wanted}"),
        Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) if !written.is_empty() => {
            format!("{it} is {written}; it has to be {wanted}")
        }
        kind => format!("{it} has to be {wanted}, not {}", kind.name()),
    }
}

fn wrong_type(text: &str, found: &Found<'_>, it: &str, wanted: &Wanted) -> Body {
    let written = text.get(found.node.span.clone()).unwrap_or_default();
    // What has to match a pattern is not made right by quotes.
    if let Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) = &found.node.kind
        && let Some((pattern, says)) = &wanted.pattern
        && !instead::matches(pattern, written)
    {
        return unmatched(is_now(text, found, it, &asked(pattern, says.as_deref())), pattern, written);
    }
    let types: Vec<String> = wanted.types.iter().map(|one| one.said().to_owned()).collect();
    let body = Body::new(is_now(text, found, it, &or(&types)));
    match instead::of_type(text, found.node, found.entry.map(|entry| &*entry.key), wanted) {
        Some(help) => body.help(help),
        None => body,
    }
}

fn not_among(text: &str, found: &Found<'_>, it: &str, values: &[Value]) -> Body {
    let words: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
    let wanted = match words.as_slice() {
        [only] => (*only).to_owned(),
        _ => format!("one of {}", words.join(", ")),
    };
    let Some(written) = found.node.as_str() else { return Body::new(is_now(text, found, it, &wanted)) };
    let body = Body::new(format!("{it} is {}; it has to be {wanted}", quoted(written)));
    match nearest(written, &words) {
        Some(near) if words.len() > 1 => body.help(format!("did you mean `{near}`?")),
        _ => body,
    }
}

/// A value that fits none of several ways.
fn no_way(text: &str, found: &Found<'_>, it: &str, ways: &[Misfit]) -> Body {
    let mut words: Vec<String> = Vec::new();
    let mut wanted = Wanted::default();
    for way in ways {
        match &way.fault {
            Fault::Type(other) => wanted.types.extend(&other.types),
            Fault::NotAmong(values) => words.extend(values.iter().filter_map(Value::as_str).map(quoted)),
            _ => {}
        }
    }
    words.extend(wanted.types.iter().map(|one| one.said().to_owned()));
    if words.is_empty() {
        return Body::new(format!("{it} is none of the things that it can be"));
    }
    let body = Body::new(match found.node.as_str() {
        Some(written) => format!("{it} is {}; it has to be {}", quoted(written), or(&words)),
        None => is_now(text, found, it, &or(&words)),
    });
    match instead::of_type(text, found.node, None, &wanted) {
        Some(help) => body.help(help),
        None => body,
    }
}

fn unknown(key: &str, known: &[String], path: &str) -> Body {
    let inside = if path.is_empty() { "here".to_owned() } else { format!("in `{path}`") };
    let body = Body::new(format!("{} is not a key {inside}", quoted(key)));
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    match nearest(key, &names) {
        Some(near) => body.help(format!("did you mean `{near}`?")),
        None if names.is_empty() => body.help("remove it: no keys are read here"),
        None => body.help(format!("the keys are: {}", names.join(", "))),
    }
}

fn out_of_bounds(found: &Found<'_>, it: &str, bound: Bound) -> Body {
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
