//! Suggestions for values that do not match their schema.

use crate::json_schema::ecma::Pattern;
use crate::json_schema::{Expected, Type};
use crate::tree::{Kind, Node};

/// Words that YAML 1.1 and other tools read as booleans.
const TRUE: [&str; 4] = ["true", "yes", "on", "y"];
const FALSE: [&str; 4] = ["false", "no", "off", "n"];

/// The collections of `ws://` refs.
const COLLECTIONS: [&str; 7] =
    ["personas", "operators", "workspaces", "identities", "companies", "skills", "assemblies"];

pub(super) fn matches(pattern: &str, text: &str) -> bool {
    Pattern::parse(pattern, None).is_some_and(|pattern| pattern.is_match(text))
}

/// A similar text that matches the pattern.
pub(super) fn for_text(pattern: &str, written: &str) -> Option<String> {
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
pub(super) fn for_type(text: &str, node: &Node, key: Option<&str>, wanted: &Expected) -> Option<String> {
    let written = text.get(node.span.clone()).unwrap_or_default();
    let wants = |kind: Type| wanted.types.contains(&kind);
    match &node.kind {
        Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) if wants(Type::String) => {
            Some(format!("put it in quotes: \"{written}\""))
        }
        Kind::Str(word) if wants(Type::Boolean) => {
            let word = word.to_ascii_lowercase();
            let suggestion = match word.as_str() {
                word if TRUE.contains(&word) => "true",
                word if FALSE.contains(&word) => "false",
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
