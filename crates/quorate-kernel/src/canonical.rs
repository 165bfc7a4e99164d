//! Canonical JSON (RFC 8785). What it comes to for most records is what `serde_json` writes anyway, so it is written that
//! way where nothing in the value could differ.

use quorate_protocol::Json;
use serde_json::Map;

/// The largest integer that a double holds exactly, with all below it.
const EXACT: u64 = 1 << 53;

/// A value as canonical JSON.
///
/// # Errors
/// When the value cannot be written, which a JSON value with string keys always can.
pub fn text(value: &Json) -> serde_json::Result<String> {
    if plain(value) { serde_json::to_string(value) } else { serde_json_canonicalizer::to_string(value) }
}

/// An object as canonical JSON.
///
/// # Panics
/// Never: a JSON object with string keys can be written.
pub fn object(data: &Map<String, Json>) -> String {
    let written = match data.iter().all(|(key, value)| key.is_ascii() && plain(value)) {
        true => serde_json::to_string(data),
        false => serde_json_canonicalizer::to_string(data),
    };
    written.expect("a JSON object with string keys can be written")
}

/// Whether the canonical form is the usual one. Keys are sorted by bytes here and by UTF-16 units there, which is the
/// same for ASCII; integers are written alike, and so are floats that are neither whole nor very large or small.
fn plain(value: &Json) -> bool {
    match value {
        Json::Number(number) => {
            number.as_u64().is_some_and(|n| n <= EXACT)
                || number.as_i64().is_some_and(|n| n.unsigned_abs() <= EXACT)
                || number.as_f64().is_some_and(|x| x.fract() != 0.0 && (1e-4..1e15).contains(&x.abs()))
        }
        Json::Array(all) => all.iter().all(plain),
        Json::Object(all) => all.iter().all(|(key, value)| key.is_ascii() && plain(value)),
        Json::Null | Json::Bool(_) | Json::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_ways_of_writing_are_one() {
        // D2
        for value in [
            json!(null),
            json!({"b": [1, -2, true, "ü \u{1}\u{8}\u{c}\n\r\t\"\\/ \u{7f}\u{2028}"], "a": {"z": "", "B": {}}}),
            json!({"ü": 1, "é": 2, "\u{10000}": 3, "\u{ffff}": 4}),
            json!([0.1, 0.333_333, 0.000_123, 123_456_789.125, -2.5, 999_999_999_999_999.9]),
            json!([0.1, 1.0, 1e21, -0.0, 5e-324, 9_007_199_254_740_992_u64]),
        ] {
            let canonical = serde_json_canonicalizer::to_string(&value).expect("a value can be written");
            assert_eq!(text(&value).expect("a value can be written"), canonical);
        }
    }
}
