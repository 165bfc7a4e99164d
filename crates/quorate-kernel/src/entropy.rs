//! Randomness: the one place where the kernel asks the operating system for random bytes.

use quorate_protocol::Name;
use sha2::{Digest, Sha256};

/// Crockford's base32 alphabet, in lower case.
const BASE32_ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Random bytes.
///
/// # Panics
/// When the operating system has no randomness to give; nothing could be kept apart then.
#[expect(clippy::disallowed_methods, reason = "the one place where chance is asked for")]
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

/// A new run id: `r` and 12 characters of Crockford base32 from 60 random bits.
pub fn run_id() -> Name {
    let bits = u64::from_le_bytes(bytes()) >> 4;
    std::iter::once('r').chain(base32(bits)).collect::<String>().into()
}

/// The id of a run that follows from a text: like [`run_id`], but always the same.
pub fn derived_run_id(text: &str) -> Name {
    std::iter::once('r').chain(base32(first_bits(text))).collect::<String>().into()
}

/// An overlay's id, which follows from where it comes from: `o` and 12 characters of Crockford base32.
pub fn overlay_id(run: &str, member: &str, operator: &str) -> String {
    std::iter::once('o').chain(base32(first_bits(&format!("{run}\0{member}\0{operator}")))).collect()
}

/// 60 bits of a text's hash.
fn first_bits(text: &str) -> u64 {
    let mut bits = [0; 8];
    bits.copy_from_slice(&Sha256::digest(text.as_bytes())[..8]);
    u64::from_le_bytes(bits) >> 4
}

/// 12 letters for 60 bits.
fn base32(bits: u64) -> impl Iterator<Item = char> {
    (0..12).map(move |at| char::from(BASE32_ALPHABET[(bits >> (5 * at) & 31) as usize]))
}

/// How many bytes a salt has.
const SALT_BYTES: usize = 16;

/// Random hexadecimal text, for salts. The operating system is asked for many at once.
pub fn salt() -> String {
    const MANY: usize = 64;
    thread_local! {
        static POOL: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    POOL.with_borrow_mut(|pool| {
        if pool.is_empty() {
            pool.extend(bytes::<{ SALT_BYTES * MANY }>());
        }
        // Each byte is given out once.
        let rest = pool.len().saturating_sub(SALT_BYTES);
        hex(&pool.split_off(rest))
    })
}

/// The nonce that marks material in the prompts of a run. It follows from the run's recorded seed, so that a resumed
/// run lays out the same prompts.
pub fn nonce(seed: &[u8; 32]) -> String {
    let mut hash = Sha256::new();
    hash.update(b"quorate material nonce\0");
    hash.update(seed);
    hex(&hash.finalize()[..8])
}

/// SHA-256 as hexadecimal text.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Lower-case hexadecimal text.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = vec![0; 2 * bytes.len()];
    for (digits, byte) in text.chunks_exact_mut(2).zip(bytes) {
        digits[0] = DIGITS[usize::from(byte >> 4)];
        digits[1] = DIGITS[usize::from(byte & 15)];
    }
    String::from_utf8(text).expect("digits and letters are ASCII")
}

/// Reads 32 bytes in the one form that [`hex`] gives them.
pub fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_id_is_r_and_twelve_letters() {
        let id = run_id();
        assert_eq!(id.len(), 13);
        assert!(id.starts_with('r') && id.bytes().skip(1).all(|letter| BASE32_ALPHABET.contains(&letter)));
    }

    #[test]
    fn hexadecimal_text_reads_back() {
        let bytes: [u8; 32] = bytes();
        assert_eq!(unhex(&hex(&bytes)), Some(bytes));
        let other = ["zz".to_owned(), hex(&bytes).to_uppercase(), "+1".repeat(32), "é".repeat(32)];
        assert!(other.iter().all(|other| unhex(other).is_none()));
    }
}
