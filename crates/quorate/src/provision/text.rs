//! Edits of texts: `merge-json-deep` and `append`, and their reversal. `jsonc-parser` edits JSON, so that order, comments
//! and spacing of everything else stay. All functions are pure.
//!
//! Objects are merged key by key, and arrays get each missing item once. Other values that differ are replaced by the
//! profile's.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

/// The largest JSON text that is edited, in bytes, before and after the edit. The time of one edit grows with the square of
/// the number of values on a line.
pub(super) const MAX_JSON_BYTES: usize = 128 << 10;

/// Why a text is not JSON.
#[derive(Debug)]
pub(super) struct InvalidJson {
    /// The rest of a sentence that begins with the text's name.
    pub message: String,
    /// Where; `None` if the text as a whole is refused.
    pub span: Option<Range<usize>>,
}

/// Parses JSON, which may have comments and trailing commas.
///
/// # Errors
/// If the text is not JSON, or too large.
pub(super) fn parse(text: &str) -> Result<CstRootNode, InvalidJson> {
    check_size(text)?;
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    CstRootNode::parse(text, &options).map_err(|error| {
        let range = error.range();
        InvalidJson { message: format!("is not JSON: {}", error.kind()), span: Some(range.start..range.end) }
    })
}

fn check_size(text: &str) -> Result<(), InvalidJson> {
    if text.len() <= MAX_JSON_BYTES {
        return Ok(());
    }
    let message = format!("is larger than {} KiB, the most that is merged", MAX_JSON_BYTES >> 10);
    Err(InvalidJson { message, span: None })
}

/// Merges a profile's JSON into a target. A target that already has all of it stays unchanged.
///
/// # Errors
/// If the result is too large to be edited again.
pub(super) fn merge(target: &CstRootNode, profile: &CstRootNode) -> Result<String, InvalidJson> {
    if let Some(from) = profile.value() {
        match target.value().map(|into| merge_node(&into, &from)) {
            None | Some(Merge::Replace) => target.set_value(input(&from)),
            Some(Merge::Done) => {}
        }
    }
    let merged = target.to_string();
    check_size(&merged).map(|()| merged)
}

/// Whether the caller has to replace a value.
enum Merge {
    Done,
    Replace,
}

fn merge_node(into: &CstNode, from: &CstNode) -> Merge {
    if let (Some(into), Some(from)) = (into.as_object(), from.as_object()) {
        let present = properties(&into);
        for (key, property) in
            from.properties().iter().filter_map(|property| Some((property.decoded_name()?, property)))
        {
            let Some(value) = property.value() else { continue };
            match present.get(&key) {
                None => drop(into.append(&key, input(&value))),
                Some(there) => match there.value().map(|old| merge_node(&old, &value)) {
                    None | Some(Merge::Replace) => there.set_value(input(&value)),
                    Some(Merge::Done) => {}
                },
            }
        }
        return Merge::Done;
    }
    if let (Some(into), Some(from)) = (into.as_array(), from.as_array()) {
        let mut seen: HashSet<String> = into.elements().iter().map(canonical).collect();
        for item in from.elements().iter().filter(|item| seen.insert(canonical(item))) {
            if item.as_object().is_some() {
                into.ensure_multiline();
            }
            into.append(input(item));
        }
        return Merge::Done;
    }
    if canonical(into) == canonical(from) { Merge::Done } else { Merge::Replace }
}

/// The rest of a text without an installed part.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Removal {
    /// The text; `None` if nothing is left of a file that did not exist before.
    pub text: Option<String>,
    /// A sentence for each installed value that was edited or removed since. Edited values stay.
    pub left: Vec<String>,
}

/// Removes from `current` the values by which `installed` differs from `base`, and restores the values of `base`. Values
/// that were changed since and all other values stay.
pub(super) fn unmerge(current: &CstRootNode, base: Option<&CstRootNode>, installed: &CstRootNode) -> Removal {
    let mut left = Vec::new();
    let before = base.and_then(CstRootNode::to_serde_value);
    let after = installed.to_serde_value();
    let undone = match (current.value(), &after) {
        (Some(now), Some(after)) => undo(&now, before.as_ref(), after, "", &mut left),
        _ => Undo::Done,
    };
    match (undone, base.and_then(CstRootNode::value)) {
        (Undo::Restore, Some(before)) => current.set_value(input(&before)),
        (Undo::Restore | Undo::Remove, None) => return Removal { text: None, left },
        _ => {}
    }
    Removal { text: Some(current.to_string()), left }
}

/// The next step for a value.
enum Undo {
    Done,
    /// Nothing but installed parts was in it, and it did not exist before.
    Remove,
    /// The value of the base belongs there.
    Restore,
}

fn undo(now: &CstNode, before: Option<&Value>, after: &Value, path: &str, left: &mut Vec<String>) -> Undo {
    let value = now.to_serde_value();
    match before {
        Some(before) if before == after || value.as_ref() == Some(before) => return Undo::Done,
        None if value.as_ref() == Some(after) => return Undo::Remove,
        _ => {}
    }
    match (now.as_object(), now.as_array(), before, after) {
        (Some(object), _, None | Some(Value::Object(_)), Value::Object(put)) => {
            let present = properties(&object);
            for (key, put) in put {
                let had = before.and_then(|before| before.get(key));
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let Some(property) = present.get(key) else {
                    if had != Some(put) {
                        left.push(format!("`{path}` was removed since"));
                    }
                    continue;
                };
                match property.value().map(|now| undo(&now, had, put, &path, left)) {
                    Some(Undo::Remove) => property.clone().remove(),
                    Some(Undo::Restore) => property.set_value(value_input(had.unwrap_or(&Value::Null))),
                    _ => {}
                }
            }
            let emptied = before.is_none() && object.properties().is_empty();
            if emptied { Undo::Remove } else { Undo::Done }
        }
        (_, Some(array), None | Some(Value::Array(_)), Value::Array(put)) => {
            let had = before.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let had: HashSet<String> = had.iter().map(Value::to_string).collect();
            let mut sought: HashSet<String> =
                put.iter().map(Value::to_string).filter(|item| !had.contains(item)).collect();
            // Additions are at the end, so the last of equal items is the installed one.
            for item in array.elements().into_iter().rev() {
                if sought.remove(&canonical(&item)) {
                    item.remove();
                }
            }
            if !sought.is_empty() {
                left.push(format!(
                    "`{}` lacks an item that was added; if it was edited, it stays",
                    shown(path)
                ));
            }
            let emptied = before.is_none() && array.elements().is_empty();
            if emptied { Undo::Remove } else { Undo::Done }
        }
        _ if value.as_ref() == Some(after) => Undo::Restore,
        _ => {
            left.push(format!("`{}` was changed since and stays", shown(path)));
            Undo::Done
        }
    }
}

fn shown(path: &str) -> &str {
    if path.is_empty() { "the whole" } else { path }
}

/// The properties of an object by key; of equal keys the last.
fn properties(object: &CstObject) -> HashMap<String, CstObjectProp> {
    let named = |property: CstObjectProp| Some((property.decoded_name()?, property));
    object.properties().into_iter().filter_map(named).collect()
}

/// A text that is equal for two values if they differ at most in spacing and in the order of keys.
fn canonical(node: &CstNode) -> String {
    node.to_serde_value().map_or_else(String::new, |value| value.to_string())
}

/// A value to write, with keys and numbers in their written form and order.
fn input(node: &CstNode) -> CstInputValue {
    if let Some(object) = node.as_object() {
        let member = |property: &CstObjectProp| Some((property.decoded_name()?, input(&property.value()?)));
        return CstInputValue::Object(object.properties().iter().filter_map(member).collect());
    }
    if let Some(array) = node.as_array() {
        return CstInputValue::Array(array.elements().iter().map(input).collect());
    }
    if let Some(number) = node.as_number_lit() {
        return CstInputValue::Number(number.to_string());
    }
    value_input(&node.to_serde_value().unwrap_or_default())
}

fn value_input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(value_input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members.iter().map(|(key, value)| (key.clone(), value_input(value))).collect(),
        ),
    }
}

/// The addition that appends a block to a text; `None` if the text already contains the block as whole lines.
pub(super) fn addition(text: &str, block: &str) -> Option<String> {
    let lines = block.trim_end_matches(['\n', '\r']);
    if lines.is_empty() || find_lines(text, lines).is_some() {
        return None;
    }
    let separator = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    Some(format!("{separator}{block}"))
}

/// The text without an addition; `None` if the addition is gone.
pub(super) fn remove_addition(text: &str, added: &str) -> Option<String> {
    // The line before may have gone, and with it the line break that separated the addition from it.
    let added = [added, added.trim_start_matches('\n')]
        .into_iter()
        .find(|added| !added.is_empty() && find_lines(text, added).is_some())?;
    let at = find_lines(text, added)?;
    let (before, after) = (&text[..at], &text[at + added.len()..]);
    // Keeps the separating line break where two lines would be joined.
    let joined =
        added.starts_with('\n') && !before.is_empty() && !after.is_empty() && !after.starts_with('\n');
    Some(format!("{before}{}{after}", if joined { "\n" } else { "" }))
}

/// The last place where a block stands as whole lines.
fn find_lines(text: &str, block: &str) -> Option<usize> {
    text.rmatch_indices(block).map(|(at, _)| at).find(|at| {
        let rest = &text[at + block.len()..];
        let begins = *at == 0 || block.starts_with('\n') || text[..*at].ends_with('\n');
        let ends =
            rest.is_empty() || block.ends_with('\n') || rest.starts_with('\n') || rest.starts_with("\r\n");
        begins && ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> CstRootNode {
        parse(text).unwrap_or_else(|invalid| panic!("{text}: {}", invalid.message))
    }

    fn merged(target: &str, profile: &str) -> String {
        merge(&json(target), &json(profile)).unwrap_or_else(|invalid| panic!("{}", invalid.message))
    }

    fn removed(current: &str, base: Option<&str>, installed: &str) -> Removal {
        unmerge(&json(current), base.map(json).as_ref(), &json(installed))
    }

    /// What each way of writing JSON becomes.
    const MERGES: &str = include_str!("merges.json");

    #[test]
    fn merging_edits_only_what_the_profile_changes() {
        let cases: Vec<HashMap<String, String>> = serde_json::from_str(MERGES).expect("cases");
        assert!(cases.len() >= 12);
        for case in cases {
            let (name, target, profile) = (&case["case"], &*case["target"], &*case["profile"]);
            let done = merged(target, profile);
            assert_eq!(done, case["merged"], "{name}");
            assert_eq!(merged(&done, profile), done, "{name}: a second time changes nothing");
            let taken = removed(&done, Some(target), &done);
            let value = |text: &str| json(text).to_serde_value();
            assert_eq!(taken.text.as_deref().and_then(value), value(target), "{name}");
            assert_eq!(taken.left, Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn what_is_not_json_is_refused() {
        let texts = [
            "{",
            "{a: 1}",
            "{'a': 1}",
            "{\"a\": 1 \"b\": 2}",
            "{\"a\": 0x1}",
            "{} {}",
            "[1,,2]",
            "\u{feff}{}",
        ];
        for text in texts {
            assert!(parse(text).expect_err(text).message.starts_with("is not JSON: "), "{text}");
        }
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert!(parse(&" ".repeat(MAX_JSON_BYTES + 1)).expect_err("large").message.contains("128 KiB"));
    }

    #[test]
    fn edits_of_others_stay_when_it_is_taken_out() {
        let base = "{\n  \"env\": {\"A\": \"1\"},\n  \"allow\": [\"x\"],\n  \"mode\": \"ask\"\n}\n";
        let profile = "{\"env\": {\"B\": \"2\"}, \"allow\": [\"y\", \"z\"], \"mode\": \"auto\", \"hooks\": {\"p\": {\"q\": 1}}}";
        let installed = merged(base, profile);
        let edited = installed
            .replace("\"z\"]", "\"z\", \"mine\"]")
            .replace("\"A\": \"1\"", "\"A\": \"9\", \"M\": \"m\"");
        let taken = removed(&edited, Some(base), &installed);
        let expected =
            serde_json::json!({"env": {"A": "9", "M": "m"}, "allow": ["x", "mine"], "mode": "ask"});
        assert_eq!(taken.text.and_then(|text| json(&text).to_serde_value()), Some(expected));
        assert_eq!(taken.left, Vec::<String>::new());
    }

    #[test]
    fn later_changes_stay_and_are_reported() {
        let profile = "{\"a\": 2, \"b\": 3, \"c\": [1, 2], \"d\": {\"e\": 1, \"f\": 2}, \"g\": 1}";
        let installed = merged("{\"a\": 1}", profile);
        let edited = "{\"a\": 5, \"b\": 4, \"c\": [1, 7], \"d\": {\"e\": 1, \"f\": 3}}";
        let taken = removed(edited, Some("{\"a\": 1}"), &installed);
        assert_eq!(taken.text.as_deref(), Some("{\"a\": 5, \"b\": 4, \"c\": [ 7], \"d\": { \"f\": 3}}"));
        let left = [
            "`a` was changed since and stays",
            "`b` was changed since and stays",
            "`c` lacks an item that was added; if it was edited, it stays",
            "`d.f` was changed since and stays",
            "`g` was removed since",
        ];
        assert_eq!(taken.left, left);
    }

    #[test]
    fn nothing_is_left_of_a_file_that_did_not_exist() {
        let installed = "{\"a\": {\"b\": [1]}, \"c\": 2}";
        for current in [installed, "{\"c\": 2, \"a\": {\"b\": [1]}}"] {
            assert_eq!(removed(current, None, installed), Removal { text: None, left: Vec::new() });
        }
        let taken = removed("{\"a\": {\"b\": [1], \"mine\": 1}, \"c\": 2}", None, installed);
        assert_eq!(taken.text.as_deref(), Some("{\"a\": { \"mine\": 1}}"));
    }

    /// A text near the limit, on one line and on many, in which a profile replaces and adds 100 values.
    #[test]
    fn a_large_text_is_merged_in_seconds() {
        for separator in [",", ",\n  "] {
            let keys = |name: &str, step: usize| {
                let keys = (0..4_000).step_by(step).map(|at| format!("\"{name}-{at:04}\": [{step}, {{}}]"));
                keys.collect::<Vec<_>>().join(separator)
            };
            let target = format!("{{{}}}", keys("key", 1));
            let profile = format!("{{{}, {}}}", keys("key", 40), keys("new", 40));
            assert!(target.len() > MAX_JSON_BYTES / 2);
            let started = tokio::time::Instant::now();
            let done = merged(&target, &profile);
            let taken = removed(&done, Some(&target), &done).text.expect("a text");
            assert_eq!(json(&taken).to_serde_value(), json(&target).to_serde_value());
            assert!(started.elapsed() < std::time::Duration::from_secs(120), "{:?}", started.elapsed());
        }
        let half = format!("{{\"a\": \"{}\"}}", "a".repeat(MAX_JSON_BYTES / 2));
        let invalid = merge(&json(&half), &json(&half.replace("\"a\": ", "\"b\": "))).expect_err("too large");
        assert!(invalid.message.contains("128 KiB"));
    }

    #[test]
    fn a_block_is_added_as_whole_lines_and_only_once() {
        assert_eq!(addition("", "x\n").as_deref(), Some("x\n"));
        assert_eq!(addition("a\n", "x\n").as_deref(), Some("x\n"));
        assert_eq!(addition("a", "x\n").as_deref(), Some("\nx\n"));
        assert_eq!(addition("a\nx", "x\n"), None);
        assert_eq!(addition("a\nx\r\nb\n", "x\n"), None);
        assert_eq!(addition("max\n", "x\n").as_deref(), Some("x\n"));
        assert_eq!(addition("a\n", ""), None);
    }

    #[test]
    fn an_addition_is_removed_from_any_surrounding_text() {
        for (before, block) in [("", "x\n"), ("a\n", "x\ny"), ("a", "x\n")] {
            let added = addition(before, block).expect("it is not there");
            let after = format!("{before}{added}");
            assert_eq!(remove_addition(&after, &added).as_deref(), Some(before));
            let more = format!("top\n{after}\nbottom\n");
            assert_eq!(remove_addition(&more, &added), Some(format!("top\n{before}\nbottom\n")));
        }
        assert_eq!(remove_addition("a\nx\nb\n", "\nx\n").as_deref(), Some("a\nb\n"));
        assert_eq!(remove_addition("a\n", "x\n"), None);
        assert_eq!(remove_addition("max\n", "x\n"), None, "a part of a line is not the addition");
    }
}
