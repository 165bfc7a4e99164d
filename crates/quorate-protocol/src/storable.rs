//! JSON values that can be stored and read back unchanged.
//!
//! JSON parsers stop at 127 levels, and each record, stamp or message adds levels around its content: a value accepted
//! close to that limit could be stored and never be read again. An object whose first key is one of those that
//! `serde_json` uses for itself is read as another value.

use serde_json::Map;

use crate::Json;

/// The levels that a value from outside may have: an answer, a state, metadata, the output of the host's code.
pub const MAX_DEPTH: usize = 64;

/// The levels that a record may have: such a value, and what the record puts around it. Views that wrap a record have the
/// same number of levels left before a parser stops.
pub const MAX_RECORD_DEPTH: usize = MAX_DEPTH + 32;

/// How the keys begin that `serde_json` uses for itself.
const RESERVED: &str = "$serde_json::private::";

/// Why a value cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unstorable {
    /// It nests deeper than this many levels.
    #[error("it nests deeper than {0} levels")]
    Deep(usize),
    /// It has a reserved key.
    #[error("it has the key `{0}`, which is reserved")]
    ReservedKey(String),
}

/// Whether a value can be stored with at most `levels`. A text or a number has no level, `[]` and `{}` have one.
///
/// # Errors
/// When it cannot.
pub fn check(value: &Json, levels: usize) -> Result<(), Unstorable> {
    check_within(value, levels, levels)
}

/// [`check`] for an object.
///
/// # Errors
/// When it cannot be stored.
pub fn check_object(fields: &Map<String, Json>, levels: usize) -> Result<(), Unstorable> {
    check_fields(fields, levels, levels)
}

/// `left` of `levels` are left.
fn check_within(value: &Json, left: usize, levels: usize) -> Result<(), Unstorable> {
    match value {
        Json::Array(_) if left == 0 => Err(Unstorable::Deep(levels)),
        Json::Array(items) => items.iter().try_for_each(|item| check_within(item, left - 1, levels)),
        Json::Object(fields) => check_fields(fields, left, levels),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Ok(()),
    }
}

fn check_fields(fields: &Map<String, Json>, left: usize, levels: usize) -> Result<(), Unstorable> {
    if left == 0 {
        return Err(Unstorable::Deep(levels));
    }
    fields.iter().try_for_each(|(key, field)| match key.starts_with(RESERVED) {
        true => Err(Unstorable::ReservedKey(key.clone())),
        false => check_within(field, left - 1, levels),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn levels_are_counted_by_what_holds_something() {
        for (value, levels) in
            [(json!(1), 0), (json!([]), 1), (json!({}), 1), (json!({"a": [1]}), 2), (json!([1, [{}], 2]), 3)]
        {
            assert_eq!(check(&value, levels), Ok(()), "{value}");
            assert!(levels == 0 || check(&value, levels - 1) == Err(Unstorable::Deep(levels - 1)), "{value}");
        }
    }

    #[test]
    fn keys_that_the_reader_would_replace_are_refused() {
        for key in ["$serde_json::private::RawValue", "$serde_json::private::Number"] {
            let value = json!([{"a": {key: "1"}}]);
            assert_eq!(check(&value, 9), Err(Unstorable::ReservedKey(key.to_owned())), "{value}");
        }
        assert_eq!(check(&json!({"serde_json::private": 1}), 9), Ok(()));
    }
}
