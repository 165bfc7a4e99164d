//! File names of ids: an id that every file system preserves is used unchanged; otherwise each byte that some file system
//! would change is written as `%` and two hexadecimal digits.
//!
//! No two ids share a name, even where case does not matter: literal letters are always lower case, and a `%` is never
//! literal.

use quorate_manifest::workspace::is_device_name;
use sha2::{Digest, Sha256};

/// The longest name without its extension, in bytes; file systems allow 255, and some encrypting ones 143.
const MAX_NAME_BYTES: usize = 120;

pub(super) fn for_participant(participant: &str) -> String {
    encode(participant) + ".json"
}

/// The name without an extension.
pub(super) fn encode(id: &str) -> String {
    let mut name = String::with_capacity(id.len() + 5);
    let last = id.len().saturating_sub(1);
    for (at, byte) in id.bytes().enumerate() {
        let literal = match byte {
            b'a'..=b'z' => at > 0 || !is_device_name(id),
            b'0'..=b'9' | b'-' | b'_' => true,
            b'.' => at > 0 && at < last,
            _ => false,
        };
        match literal {
            true => name.push(char::from(byte)),
            false => name.push_str(&format!("%{byte:02X}")),
        }
    }
    if name.is_empty() {
        name.push('%');
    }
    if name.len() > MAX_NAME_BYTES {
        // `%%` occurs in no other name.
        name = format!("{}%%{}", &name[..MAX_NAME_BYTES / 2], hash(id));
    }
    name
}

pub(super) fn hash(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_ids_are_their_names_and_others_are_spelt_out() {
        for (id, name) in [
            ("reviewer", "reviewer.json"),
            ("migration-writer_2", "migration-writer_2.json"),
            ("v1.2", "v1.2.json"),
            ("", "%.json"),
            (".", "%2E.json"),
            ("..", "%2E%2E.json"),
            ("../x", "%2E.%2Fx.json"),
            ("Reviewer", "%52eviewer.json"),
            ("con", "%63on.json"),
            ("con.txt", "%63on.txt.json"),
            ("com1", "%63om1.json"),
            ("console", "console.json"),
            ("é", "%C3%A9.json"),
            ("%", "%25.json"),
            ("a ", "a%20.json"),
        ] {
            assert_eq!(for_participant(id), name);
        }
        let long = "x".repeat(5_000);
        assert!(for_participant(&long).len() < 143 && for_participant(&long) != for_participant(&long[1..]));
    }

    #[test]
    fn no_two_ids_share_a_name() {
        use proptest::prelude::*;
        proptest!(|(first in "\\PC{0,60}|[%.a-cA-C]{0,4}", second in "\\PC{0,60}|[%.a-cA-C]{0,4}")| {
            prop_assert!(first == second || for_participant(&first).to_lowercase() != for_participant(&second).to_lowercase());
        });
    }
}
