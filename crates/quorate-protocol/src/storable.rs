//! The maximum nesting of JSON. JSON parsers stop at 127 levels, and each record, stamp or message adds levels around its
//! content: a value accepted close to that limit could be stored and never be read again.

use serde_json::Map;

use crate::Json;

/// The levels that a value from outside may have: an answer, a state, metadata, the output of the host's code.
pub const MAX_DEPTH: usize = 64;

/// The levels that a record may have: such a value, and what the record puts around it. What shows a record has as many
/// again before a reader stops.
pub const MAX_RECORD_DEPTH: usize = MAX_DEPTH + 32;

/// Whether a value nests deeper than `levels`. A text or a number has no level, `[]` and `{}` have one.
pub fn is_deeper(value: &Json, levels: usize) -> bool {
    match value {
        Json::Array(items) => levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1)),
        Json::Object(fields) => is_object_deeper(fields, levels),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    }
}

/// [`is_deeper`] for an object.
pub fn is_object_deeper(fields: &Map<String, Json>, levels: usize) -> bool {
    levels == 0 || fields.values().any(|field| is_deeper(field, levels - 1))
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
            assert!(!is_deeper(&value, levels), "{value}");
            assert!(levels == 0 || is_deeper(&value, levels - 1), "{value}");
        }
    }
}
