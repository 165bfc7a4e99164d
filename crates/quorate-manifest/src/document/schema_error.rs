//! Messages for the schema errors of a tree, with quoted values and suggestions.

use std::ops::Range;

use quorate_diagnostics::Body;
use serde_json::Value;

use crate::json_schema::ecma::Pattern;
use crate::json_schema::{Bound, ErrorKind, Expected, PathStep, SchemaError, Type};
use crate::misspelling::{meant_or, nearest};
use crate::tree::{Entry, Kind, Node, join_path};

/// The first of two same items.
pub(crate) fn first_duplicate(root: &Node, error: &SchemaError) -> Option<Range<usize>> {
    let ErrorKind::Duplicate { first, .. } = &error.kind else { return None };
    locate(root, &error.path).node.items().get(*first).map(|item| item.span.clone())
}

/// The message of an error, the span to underline in `text`, and the path of the value below `above`.
pub(crate) fn describe(
    text: &str,
    root: &Node,
    error: &SchemaError,
    above: &str,
) -> (Body, Range<usize>, String) {
    let found = locate(root, &error.path);
    let mut path = error.path.iter().fold(above.to_owned(), |path, step| match step {
        PathStep::Key(key) => join_path(&path, key),
        PathStep::Item(index) => format!("{path}[{index}]"),
    });
    let body = error_body(text, &found, &path, error);
    let key_span = |key: &str| found.node.entry(key).map(|entry| entry.key_span.clone());
    let span = match &error.kind {
        ErrorKind::UnknownKey { key, .. } => key_span(key),
        ErrorKind::Duplicate { second, .. } => found.node.items().get(*second).map(|item| item.span.clone()),
        _ => None,
    };
    let span = span.unwrap_or_else(|| found.node.label_span(found.entry.map(|entry| &entry.key_span)));
    if let ErrorKind::UnknownKey { key, .. } | ErrorKind::MissingKey(key) = &error.kind {
        path = join_path(&path, key);
    }
    (body, span, path)
}

/// A value and the entry that contains it.
struct LocatedValue<'t> {
    node: &'t Node,
    entry: Option<&'t Entry>,
}

fn locate<'t>(root: &'t Node, steps: &[PathStep]) -> LocatedValue<'t> {
    let found = LocatedValue { node: root, entry: None };
    steps.iter().fold(found, |found, step| {
        let next = match step {
            PathStep::Key(key) => {
                found.node.entry(key).map(|entry| LocatedValue { node: &entry.value, entry: Some(entry) })
            }
            PathStep::Item(index) => {
                found.node.items().get(*index).map(|node| LocatedValue { node, entry: None })
            }
        };
        next.unwrap_or(found)
    })
}

fn error_body(text: &str, found: &LocatedValue<'_>, path: &str, error: &SchemaError) -> Body {
    let it = if path.is_empty() { "the manifest".to_owned() } else { format!("`{path}`") };
    let inside = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
    let description = error.schema_description.as_deref();
    match &error.kind {
        ErrorKind::Type(wanted) => wrong_type(text, found, &it, wanted),
        ErrorKind::NotInEnum(values) => not_in_enum(text, found, &it, values),
        ErrorKind::MissingKey(key) => {
            let what = description.map_or(String::new(), |text| format!(": {}", clause(text)));
            Body::new(format!("{} is missing{inside}", quoted(key))).help(format!("add `{key}`{what}"))
        }
        ErrorKind::UnknownKey { key, known } => unknown_key(key, known, path),
        ErrorKind::OutOfBounds(bound) => out_of_bounds(found, &it, *bound),
        ErrorKind::Pattern { pattern, description: says } => {
            let written = found.node.as_str().unwrap_or_default();
            let expected = pattern_description(pattern, says.as_deref());
            with_suggestion(format!("{it} is {}; it has to be {expected}", quoted(written)), pattern, written)
        }
        ErrorKind::Duplicate { second, .. } => {
            let what = found.node.items().get(*second).and_then(Node::as_str).map(quoted);
            Body::new(format!("{it} has {} twice", what.as_deref().unwrap_or("the same entry")))
                .help(format!("remove entry {}", second + 1))
        }
        ErrorKind::NoMatch(ways) => match description {
            Some(description) => {
                let keys = ways.iter().filter_map(|way| match &way.kind {
                    ErrorKind::MissingKey(key) => Some(format!("`{key}`")),
                    _ => None,
                });
                Body::new(format!("{} is missing{inside}", join_or(&keys.collect::<Vec<_>>())))
                    .help(clause(description))
            }
            None => no_match(text, found, &it, ways),
        },
        ErrorKind::MultipleMatches | ErrorKind::Forbidden => Body::new(format!("{it} contradicts itself")),
    }
}

fn join_or(words: &[String]) -> String {
    match words {
        [] => "something".to_owned(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

fn pattern_description(pattern: &str, says: Option<&str>) -> String {
    says.map_or_else(|| format!("something that matches {pattern}"), str::to_owned)
}

fn with_suggestion(message: String, pattern: &str, written: &str) -> Body {
    let help = for_text(pattern, written).map(|instead| format!("did you mean {}?", quoted(&instead)));
    Body { help, ..Body::new(message) }
}

/// `<it> is <written>; it has to be <wanted>`.
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
    // Quotes alone do not make the value match a pattern: suggest a text that does.
    if let Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) = &found.node.kind
        && let Some((pattern, says)) = &wanted.pattern
        && !matches(pattern, written)
    {
        return with_suggestion(
            mismatch_message(text, found, it, &pattern_description(pattern, says.as_deref())),
            pattern,
            written,
        );
    }
    let types: Vec<String> = wanted.types.iter().map(|kind| kind.description().to_owned()).collect();
    let help = for_type(text, found.node, found.entry.map(|entry| &*entry.key), wanted);
    Body { help, ..Body::new(mismatch_message(text, found, it, &join_or(&types))) }
}

fn not_in_enum(text: &str, found: &LocatedValue<'_>, it: &str, values: &[Value]) -> Body {
    let words: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
    let expected = match words.as_slice() {
        [only] => (*only).to_owned(),
        _ => format!("one of {}", words.join(", ")),
    };
    let Some(written) = found.node.as_str() else {
        return Body::new(mismatch_message(text, found, it, &expected));
    };
    let near = nearest(written, &words).filter(|_| words.len() > 1);
    let message = format!("{it} is {}; it has to be {expected}", quoted(written));
    Body { help: near.map(|near| format!("did you mean `{near}`?")), ..Body::new(message) }
}

/// A value that matches no alternative of an `anyOf` or `oneOf`.
fn no_match(text: &str, found: &LocatedValue<'_>, it: &str, ways: &[SchemaError]) -> Body {
    let mut words: Vec<String> = Vec::new();
    let mut expected = Expected::default();
    for way in ways {
        match &way.kind {
            ErrorKind::Type(other) => expected.types.extend(&other.types),
            ErrorKind::NotInEnum(values) => words.extend(values.iter().filter_map(Value::as_str).map(quoted)),
            _ => {}
        }
    }
    words.extend(expected.types.iter().map(|kind| kind.description().to_owned()));
    if words.is_empty() {
        return Body::new(format!("{it} matches none of the allowed forms"));
    }
    let message = match found.node.as_str() {
        Some(written) => format!("{it} is {}; it has to be {}", quoted(written), join_or(&words)),
        None => mismatch_message(text, found, it, &join_or(&words)),
    };
    Body { help: for_type(text, found.node, None, &expected), ..Body::new(message) }
}

fn unknown_key(key: &str, known: &[String], path: &str) -> Body {
    let inside = if path.is_empty() { "here".to_owned() } else { format!("in `{path}`") };
    let body = Body::new(format!("{} is not a key {inside}", quoted(key)));
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    body.help(match &names[..] {
        [] => "remove it: no keys are allowed here".to_owned(),
        _ => meant_or(key, &names, || format!("the keys are: {}", names.join(", "))),
    })
}

fn out_of_bounds(found: &LocatedValue<'_>, it: &str, bound: Bound) -> Body {
    let number = match &found.node.kind {
        Kind::Int(value) => value.to_string(),
        Kind::Float(float) => float.text.to_string(),
        _ => String::new(),
    };
    let characters = found.node.as_str().map_or(0, |text| text.chars().count());
    let entries = found.node.items().len();
    let plural = |count: usize, singular: &str, plural: &str| {
        format!("{count} {}", if count == 1 { singular } else { plural })
    };
    let character_count = plural(characters, "character", "characters");
    let entry_count = plural(entries, "entry", "entries");
    Body::new(match bound {
        Bound::Least(least) => format!("{it} is {number}; it has to be at least {least}"),
        Bound::Most(most) => format!("{it} is {number}; it can be at most {most}"),
        Bound::MoreThan(more) => format!("{it} is {number}; it has to be more than {more}"),
        Bound::ShortestText(_) if characters == 0 => format!("{it} is empty"),
        Bound::ShortestText(short) => format!("{it} has {character_count}; it needs at least {short}"),
        Bound::LongestText(long) => format!("{it} has {character_count}; it can have at most {long}"),
        Bound::FewestItems(_) if entries == 0 => format!("{it} is an empty list"),
        Bound::FewestItems(few) => format!("{it} has {entry_count}; it needs at least {few}"),
        Bound::MostItems(most) => format!("{it} has {entry_count}; it can have at most {most}"),
        Bound::FewestKeys(_) => format!("{it} is an empty mapping"),
    })
}

/// Longer texts are cut.
const MAX_CHARS: usize = 60;

/// A text in backquotes on one line, cut to [`MAX_CHARS`], with invisible characters escaped; `empty` for a blank text.
fn quoted(text: &str) -> String {
    if text.trim().is_empty() {
        return "empty".to_owned();
    }
    let mut out = String::from("`");
    for (at, c) in text.chars().enumerate() {
        match c {
            _ if at == MAX_CHARS => {
                out.push('…');
                break;
            }
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if is_invisible(c) => out.push_str(&format!("\\u{{{:X}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('`');
    out
}

fn is_invisible(c: char) -> bool {
    let is_format_control = matches!(
        c,
        '\u{AD}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}'
    );
    c.is_control() || is_format_control || (c.is_whitespace() && c != ' ')
}

/// The first sentence of a description, in the form that follows a colon: lower-case, without a full stop.
fn clause(description: &str) -> String {
    let first = description.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let first = first.replace('\n', " ");
    let mut chars = first.chars();
    chars.next().map_or_else(String::new, |initial| initial.to_lowercase().chain(chars).collect())
}

/// The collections of `ws://` refs.
const COLLECTIONS: [&str; 7] =
    ["personas", "operators", "workspaces", "identities", "companies", "skills", "assemblies"];

fn matches(pattern: &str, text: &str) -> bool {
    Pattern::parse(pattern, None).is_some_and(|pattern| pattern.is_match(text))
}

/// A similar text that matches the pattern.
fn for_text(pattern: &str, written: &str) -> Option<String> {
    let pattern = Pattern::parse(pattern, None)?;
    let mut candidates = vec![written.trim().to_owned(), written.replace('_', "-"), kebab(written)];
    candidates.extend([format!("{written}.0"), format!("{written}.0.0"), written.replacen('v', "", 1)]);
    if written.ends_with(".md") {
        candidates.extend((!written.starts_with("./")).then(|| format!("./{written}")));
    } else {
        let folder = written.trim_end_matches('/');
        candidates.extend([format!("{folder}/ASSEMBLY.md"), format!("{folder}/PERSONA.md")]);
    }
    candidates.extend(duration_candidates(written));
    let fits = |candidate: &String| candidate != written && pattern.is_match(candidate);
    candidates.into_iter().find(fits).or_else(|| {
        reference_candidates(written).into_iter().find(fits).filter(|_| {
            // No suggestion if several collections fit.
            written.starts_with("ws://")
                || reference_candidates(written).iter().filter(|candidate| fits(candidate)).count() == 1
        })
    })
}

/// The text in kebab case: lower-case ASCII letters and digits; each run of other characters becomes one dash.
fn kebab(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_lowercase()
}

/// The text as a ref into its own collection if it names one, else into each collection.
fn reference_candidates(written: &str) -> Vec<String> {
    let (collections, slug) = match written.strip_prefix("ws://").and_then(|rest| rest.split_once('/')) {
        Some((collection, slug)) => (vec![collection], slug),
        None => (COLLECTIONS.to_vec(), written),
    };
    let slug = kebab(slug);
    if slug.is_empty() || written.contains(['\\', '.']) {
        return Vec::new();
    }
    collections.into_iter().map(|collection| format!("ws://{collection}/{slug}")).collect()
}

/// `30 days`, `14d` or `90` as durations and retentions. `5m` is ambiguous (minutes or months) and gives none.
fn duration_candidates(written: &str) -> Vec<String> {
    let unit = written.trim_start_matches(|c: char| c.is_ascii_digit());
    let count = &written[..written.len() - unit.len()];
    let unit = unit.trim().to_lowercase();
    let days = format!("days:{count}");
    match (count.is_empty(), unit.chars().next()) {
        (true, _) => Vec::new(),
        (_, None) => vec![days],
        (_, Some('d')) => vec![days, format!("P{count}D")],
        (_, Some('w')) => vec![format!("P{count}W")],
        (_, Some('y')) => vec![format!("P{count}Y")],
        (_, Some('h')) => vec![format!("PT{count}H")],
        (_, Some('s')) => vec![format!("PT{count}S")],
        _ if unit.starts_with("min") => vec![format!("PT{count}M")],
        _ if unit.starts_with("mo") => vec![format!("P{count}M")],
        _ => Vec::new(),
    }
}

/// Help for a value of the wrong type.
fn for_type(text: &str, node: &Node, key: Option<&str>, wanted: &Expected) -> Option<String> {
    let written = text.get(node.span.clone()).unwrap_or_default();
    let wants = |kind: Type| wanted.types.contains(&kind);
    match &node.kind {
        Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) if wants(Type::String) => {
            Some(format!("put it in quotes: \"{written}\""))
        }
        Kind::Str(word) if wants(Type::Boolean) => {
            let word = word.to_ascii_lowercase();
            let suggestion = match word.as_str() {
                "true" | "yes" | "on" | "y" => "true",
                "false" | "no" | "off" | "n" => "false",
                _ => return None,
            };
            Some(format!("write {suggestion}{}", if word == suggestion { ", without quotes" } else { "" }))
        }
        Kind::Str(word) if wants(Type::Integer) || wants(Type::Number) => {
            if word.parse::<f64>().is_ok_and(f64::is_finite) {
                return Some(format!("write {word}, without quotes"));
            }
            let milliseconds = milliseconds(word).filter(|_| key.is_some_and(|key| key.ends_with("_ms")))?;
            Some(format!("write {milliseconds}: it is a number of milliseconds"))
        }
        Kind::Str(word) if wants(Type::Array) => Some(format!("write [{}]", plain(word, ',')?)),
        Kind::Str(word) => match wanted.keys.as_slice() {
            [only] => Some(format!("write {{{only}: {}}}", plain(word, ' ')?)),
            [] => None,
            keys => Some(format!("write its keys, at least {}", keys.join(", "))),
        },
        Kind::Map(_) if wants(Type::Array) => Some("begin each entry with a dash".to_owned()),
        _ => None,
    }
}

/// The comma-separated items of a text if they are valid in a YAML flow collection without quotes, and short.
fn plain(word: &str, separator: char) -> Option<String> {
    let is_plain =
        |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ' ') || c == separator;
    let items: Vec<&str> = word.split(',').map(str::trim).filter(|item| !item.is_empty()).collect();
    (word.len() < 60 && !items.is_empty() && word.chars().all(is_plain)).then(|| items.join(", "))
}

/// `30s`, `500ms`, `2m` or `1h` in milliseconds.
fn milliseconds(text: &str) -> Option<u64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let count: u64 = text[..text.len() - unit.len()].parse().ok()?;
    let each = match unit.trim() {
        "ms" => 1,
        "s" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    count.checked_mul(each)
}

#[cfg(test)]
mod tests;
