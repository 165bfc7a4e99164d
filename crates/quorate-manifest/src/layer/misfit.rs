//! Telling people what keeps a tree from fitting its schema.

use std::ops::Range;

use quorate_diagnostics::Body;

use crate::doctype::Doctype;
use crate::form::{Bound, Fault, Misfit, Step, Type};
use crate::tree::reader::{Document, nearest};
use crate::tree::{Entry, Kind, Node};

/// Words that other tools take for a boolean.
const TRUE: [&str; 4] = ["true", "yes", "on", "y"];
const FALSE: [&str; 4] = ["false", "no", "off", "n"];

/// Says each misfit with its place.
pub(super) fn report(document: &Document, doctype: Doctype, root: &Node, misfits: &[Misfit]) {
    for misfit in misfits {
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

/// Adds a step to a path as diagnostics write it: `members[0].weight`.
fn push(path: &mut String, step: &Step) {
    match step {
        Step::Key(key) if path.is_empty() => path.push_str(key),
        Step::Key(key) => {
            path.push('.');
            path.push_str(key);
        }
        Step::Item(index) => path.push_str(&format!("[{index}]")),
    }
}

fn say(text: &str, found: &Found<'_>, path: &str, misfit: &Misfit) -> Body {
    let it = if path.is_empty() { "the frontmatter".to_owned() } else { format!("`{path}`") };
    let inside = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
    match &misfit.fault {
        Fault::Type(types) => wrong_type(text, found, &it, types),
        Fault::NotAmong(values) => not_among(found, &it, values),
        Fault::Missing(key) => {
            let body = Body::new(format!("`{key}` is missing{inside}"));
            match &misfit.because {
                Some(because) => body.help(format!("add `{key}`: {}", lower(because))),
                None => body.help(format!("add `{key}`")),
            }
        }
        Fault::Unknown { key, known } => unknown(key, known, path),
        Fault::Bound(bound) => out_of_bounds(found, &it, *bound),
        Fault::Pattern { pattern, says } => {
            let written = found.node.as_str().unwrap_or_default();
            let wanted = says.clone().unwrap_or_else(|| format!("something that matches {pattern}"));
            Body::new(format!("{it} is {}; it has to be {wanted}", quoted(written)))
        }
        Fault::Repeated { second, .. } => {
            Body::new(format!("{it} has the same entry twice")).help(format!("remove entry {}", second + 1))
        }
        Fault::NoWay(ways) if misfit.because.is_some() => {
            let keys: Vec<String> = ways
                .iter()
                .filter_map(|way| match &way.fault {
                    Fault::Missing(key) => Some(format!("`{key}`")),
                    _ => None,
                })
                .collect();
            let because = misfit.because.as_deref().unwrap_or_default();
            Body::new(format!("{} missing{inside}", one_of(&keys))).help(because)
        }
        Fault::NoWay(ways) => {
            let types: Vec<Type> = ways
                .iter()
                .filter_map(|way| match &way.fault {
                    Fault::Type(types) => Some(types.clone()),
                    _ => None,
                })
                .flatten()
                .collect();
            wrong_type(text, found, &it, &types)
        }
        Fault::ManyWays | Fault::Forbidden => Body::new(format!("{it} contradicts itself")),
    }
}

fn one_of(keys: &[String]) -> String {
    match keys {
        [] => "something is".to_owned(),
        [one] => format!("{one} is"),
        [most @ .., last] => format!("{} or {last} is", most.join(", ")),
    }
}

fn wrong_type(text: &str, found: &Found<'_>, it: &str, types: &[Type]) -> Body {
    let mut wanted: Vec<&str> = Vec::new();
    for one in types.iter().filter(|one| **one != Type::Null) {
        if !wanted.contains(&one.said()) {
            wanted.push(one.said());
        }
    }
    let body = Body::new(format!("{it} has to be {}, not {}", wanted.join(" or "), found.node.kind.name()));
    let written = text.get(found.node.span.clone()).unwrap_or_default();
    match &found.node.kind {
        Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) if types.contains(&Type::String) => {
            body.help(format!("put it in quotes: \"{written}\""))
        }
        Kind::Str(word) if types.contains(&Type::Boolean) => match word.to_ascii_lowercase().as_str() {
            word if TRUE.contains(&word) => body.help("write true, without quotes"),
            word if FALSE.contains(&word) => body.help("write false, without quotes"),
            _ => body,
        },
        Kind::Str(word) if types.iter().any(|one| matches!(one, Type::Integer | Type::Number)) => {
            match word.parse::<f64>() {
                Ok(_) => body.help(format!("write {word}, without quotes")),
                Err(_) => body,
            }
        }
        Kind::Str(word) if types.contains(&Type::Array) => body.help(format!("write [{word}]")),
        _ => body,
    }
}

fn not_among(found: &Found<'_>, it: &str, values: &[serde_json::Value]) -> Body {
    let words: Vec<&str> = values.iter().filter_map(serde_json::Value::as_str).collect();
    let all = words.join(", ");
    let Some(written) = found.node.as_str() else {
        return Body::new(format!("{it} has to be one of {all}"));
    };
    if let [only] = words.as_slice() {
        return Body::new(format!("{it} is {}; it has to be {only}", quoted(written)));
    }
    let body = Body::new(format!("{it} is {}; it has to be one of {all}", quoted(written)));
    match nearest(written, &words) {
        Some(near) => body.help(format!("did you mean `{near}`?")),
        None => body,
    }
}

fn unknown(key: &str, known: &[String], path: &str) -> Body {
    let inside = if path.is_empty() { "here".to_owned() } else { format!("in `{path}`") };
    let body = Body::new(format!("`{key}` is not a key {inside}"));
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    match nearest(key, &names) {
        Some(near) => body.help(format!("did you mean `{near}`?")),
        None => body.help(format!("the keys are: {}", names.join(", "))),
    }
}

fn out_of_bounds(found: &Found<'_>, it: &str, bound: Bound) -> Body {
    let number = match &found.node.kind {
        Kind::Int(value) => value.to_string(),
        Kind::Float(float) => float.text.to_string(),
        _ => String::new(),
    };
    let length = found.node.as_str().map_or(0, |text| text.chars().count());
    let items = found.node.items().len();
    Body::new(match bound {
        Bound::Least(least) => format!("{it} is {number}; it has to be at least {least}"),
        Bound::Most(most) => format!("{it} is {number}; it can be at most {most}"),
        Bound::MoreThan(more) => format!("{it} is {number}; it has to be more than {more}"),
        Bound::ShortestText(_) if length == 0 => format!("{it} is empty"),
        Bound::ShortestText(short) => {
            format!("{it} has {length} characters; it needs at least {short}")
        }
        Bound::LongestText(long) => format!("{it} has {length} characters; it can have at most {long}"),
        Bound::FewestItems(few) if few == 1 => format!("{it} is an empty list"),
        Bound::FewestItems(few) => format!("{it} has {items} entries; it needs at least {few}"),
        Bound::MostItems(most) => format!("{it} has {items} entries; it can have at most {most}"),
        Bound::FewestKeys(_) => format!("{it} is an empty mapping"),
    })
}

/// A text as a message quotes it: one line, not too long.
fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    let line: String = text.lines().next().unwrap_or_default().chars().take(LONGEST).collect();
    if line.len() < text.len() { format!("`{line}…`") } else { format!("`{line}`") }
}

fn lower(sentence: &str) -> String {
    let mut chars = sentence.trim_end_matches('.').chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
