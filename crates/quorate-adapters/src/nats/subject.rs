//! Parts of subjects and of streams' names: any text, in characters that all of them take.

use std::fmt::Write as _;

use quorate_kernel::entropy::sha256_hex;

/// The longest name that stands in a subject as it is, in bytes; a longer one is replaced by its hash.
const MAX_BYTES: usize = 120;

/// A name as one part of a subject, different for different names: letters, digits, `-` and `_` as they are, every other
/// byte as `=` with two digits.
pub(crate) fn token(name: &str) -> String {
    let mut token = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => token.push(char::from(byte)),
            // Writing to a string does not fail.
            byte => drop(write!(token, "={byte:02x}")),
        }
    }
    match token.is_empty() || token.len() > MAX_BYTES {
        true => format!("=={}", sha256_hex(name.as_bytes())),
        false => token,
    }
}

#[cfg(test)]
mod tests {
    use super::token;

    #[test]
    fn different_names_are_different_tokens() {
        let long = "x".repeat(1000);
        let names =
            ["a", "A", "a ", "=41", "é", "e\u{301}", "..", "a.b", "a=2eb", "", "=", ">", "*", "\0", &long];
        let mut tokens: Vec<String> = names.iter().map(|name| token(name)).collect();
        assert!(tokens.iter().all(|token| {
            !token.is_empty()
                && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_=".contains(&byte))
        }));
        tokens.sort();
        tokens.dedup();
        assert_eq!(tokens.len(), names.len());
        assert_eq!(token("release-Council_7"), "release-Council_7");
    }
}
