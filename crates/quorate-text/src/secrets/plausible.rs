//! Whether a value looks like a secret if only its place suggests so. Words, paths, placeholders and references do not; values that a
//! person would not type or remember do.

use std::collections::HashSet;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use quorate_diagnostics::text;

const LISTS: &str = include_str!("words.txt");
/// A section in which words are looked up.
type Words = LazyLock<HashSet<&'static str>>;
/// The fewest bits that a character of a secret has on average, over the characters that it uses.
const MIN_BITS_PER_CHAR: f64 = 2.5;
/// From this length on, letters alone can be a secret.
const MIN_LETTERS_ONLY_LEN: usize = 16;
/// The length of the shortest part that can be generated.
const MIN_PART_LEN: usize = 12;

/// Whether a value is likely to be made by a program: letters and digits mixed, without being made of words.
pub(super) fn is_generated(value: &str) -> bool {
    is_mixed(value)
        && !(is_placeholder(value) || is_example(value) || is_path(value) || is_words(value))
        && !value.contains("://")
}

/// Whether one of the parts of a header is generated: the values of its parameters, or all of it.
pub(super) fn has_generated_part(value: &str) -> bool {
    let mut parts = value.split(['=', ';', ',', ' ', '"', '\'']);
    parts.any(|part| part.len() >= MIN_PART_LEN && is_generated(part)) || is_login(value)
}

/// Whether letters and digits are mixed and varied, with more than one digit or capital in a long value.
fn is_mixed(value: &str) -> bool {
    let telling = value.bytes().filter(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()).count();
    value.bytes().any(|byte| byte.is_ascii_alphabetic())
        && value.bytes().any(|byte| byte.is_ascii_digit())
        && (telling >= 3 || value.len() < MIN_LETTERS_ONLY_LEN)
        && bits_per_char(value) >= MIN_BITS_PER_CHAR
}

/// Whether a token is random: no lower-case words, no example.
pub(super) fn is_random(token: &str) -> bool {
    let mut used = [false; 256];
    token.bytes().for_each(|byte| used[usize::from(byte)] = true);
    token.bytes().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
        && used.iter().filter(|is_used| **is_used).count() >= 5
        && !is_example(token)
}

/// Whether a value has a part that only examples have.
pub(super) fn is_example(value: &str) -> bool {
    let low = value.to_ascii_lowercase();
    text::section(LISTS, "parts of examples").any(|part| low.contains(part))
}

/// Whether a value could be a password: letters with digits, or small and capital letters with signs.
pub(super) fn could_be_password(value: &str) -> bool {
    let has = |test: fn(&u8) -> bool| value.as_bytes().iter().any(test);
    let is_signed = value.len() >= 8
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(|byte| b"!@#$%^&*?~+=".contains(byte))
        && bits_per_char(value) >= MIN_BITS_PER_CHAR;
    (is_mixed(value) || is_signed) && !is_path(value) && !value.contains("://")
}

/// Whether a value is letters alone that make no words: small and capital ones mixed as no name has them.
pub(super) fn is_random_letters(value: &str) -> bool {
    let turns = |pair: &[u8]| pair[0].is_ascii_lowercase() != pair[1].is_ascii_lowercase();
    value.len() >= MIN_LETTERS_ONLY_LEN
        && value.bytes().all(|byte| byte.is_ascii_alphabetic())
        && value.as_bytes().windows(2).filter(|pair| turns(pair)).count() * 3 >= value.len()
        && bits_per_char(value) >= MIN_BITS_PER_CHAR
        && !is_words(value)
}

/// Whether a value is a phrase of three words or more, joined by dashes: too long for a name that a program has.
pub(super) fn is_passphrase(value: &str) -> bool {
    let is_word = |word: &str| word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_alphabetic());
    value.len() >= MIN_LETTERS_ONLY_LEN && value.split('-').count() >= 3 && value.split('-').all(is_word)
}

/// Whether a value is a phrase of three words or more, as people choose them, and no message: nothing of grammar in it.
pub(super) fn is_phrase(value: &str) -> bool {
    static OF_MESSAGES: Words = LazyLock::new(|| text::section(LISTS, "of messages").collect());
    let is_word =
        |word: &str| (3..=12).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase());
    value.len() >= MIN_LETTERS_ONLY_LEN
        && (3..=8).contains(&value.split(' ').count())
        && value.split(' ').all(|word| is_word(word) && !OF_MESSAGES.contains(word))
}

/// Whether a value is one word. An environment contains only values.
pub(super) fn is_single_word(value: &str) -> bool {
    value.len() >= 8
        && value.bytes().all(|byte| byte.is_ascii_alphabetic())
        && bits_per_char(value) >= MIN_BITS_PER_CHAR
}

/// Whether a value names where a secret is kept: `my-db-password-2024`, `config.token2`.
pub(super) fn is_reference(value: &str) -> bool {
    static REFERENCES: Words = LazyLock::new(|| text::section(LISTS, "references").collect());
    value.starts_with("arn:")
        || is_words(value) && parts(value).any(|part| REFERENCES.contains(&*part.to_ascii_lowercase()))
}

/// Whether a value is made of words, numbers as people write them, and what parts them.
pub(super) fn is_words(value: &str) -> bool {
    let (count, letters) =
        parts(value).fold((0, 0), |(count, letters), part| (count + 1, letters + part.len()));
    count > 0
        && letters >= 3 * count
        && value.is_ascii()
        && !value.contains(['+', '=', '!', '%', '^'])
        && parts(value).all(is_word)
}

/// The parts of a name or value: between signs, and from a small letter to a capital.
pub(super) fn parts(value: &str) -> impl Iterator<Item = &str> {
    value.split(|c: char| !c.is_ascii_alphanumeric()).flat_map(|part| {
        let mut rest = part;
        std::iter::from_fn(move || {
            let turn = rest
                .as_bytes()
                .windows(2)
                .position(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
            let (first, after) = rest.split_at(turn.map_or(rest.len(), |at| at + 1));
            rest = after;
            Some(first).filter(|first| !first.is_empty())
        })
    })
}

/// A word, a word with a short number after it, or a number.
fn is_word(part: &str) -> bool {
    let letters = part.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (word, number) = part.split_at(letters);
    let is_cased = word.bytes().skip(1).all(|byte| byte.is_ascii_lowercase())
        || word.bytes().all(|byte| byte.is_ascii_uppercase());
    let has_vowel = word.bytes().any(|byte| b"aeiouy".contains(&byte.to_ascii_lowercase()));
    number.bytes().all(|byte| byte.is_ascii_digit())
        && number.len() <= if letters == 0 { 8 } else { 4 }
        && is_cased
        && letters <= 16
        && (letters <= 4 || has_vowel)
}

/// Whether a value is a placeholder.
pub(super) fn is_placeholder(value: &str) -> bool {
    static PLACEHOLDERS: Words = LazyLock::new(|| text::section(LISTS, "placeholders").collect());
    let low = value.to_ascii_lowercase();
    let word = low.trim_end_matches(|c: char| c.is_ascii_digit());
    let first = value.bytes().next();
    low.starts_with(['$', '{', '<', '%', '*', '['])
        || low.starts_with("your")
        || PLACEHOLDERS.contains(word)
        || PLACEHOLDERS.contains(&*low)
        || value.bytes().all(|byte| Some(byte) == first)
}

/// Whether a part of a name, before the word that promises a secret, says that it is none.
pub(super) fn denies_secret(part: &str) -> bool {
    static NOT: Words = LazyLock::new(|| text::section(LISTS, "not before").collect());
    NOT.contains(part)
}

/// Whether a part of a name, behind the word that promises a secret, says that it is none.
pub(super) fn denies_secret_behind(part: &str) -> bool {
    static NOT: Words = LazyLock::new(|| text::section(LISTS, "not behind").collect());
    NOT.contains(part)
}

/// Whether the value of a variable is worth looking for wherever it comes out: long enough, and neither a path nor a word that texts have
/// for other reasons. `named` says whether the variable's name promises a secret.
pub fn is_worth_redacting(value: &str, named: bool) -> bool {
    let is_letters = value.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b':'));
    let is_plain = is_letters && value.len() < MIN_LETTERS_ONLY_LEN || is_number && value.len() < 12;
    let is_prose = value.contains(' ') && value.split(' ').all(|word| word.len() < 8);
    let is_path = is_path(value) || value.starts_with(['/', '~', '.']) && value.matches('/').count() > 1;
    value.len() >= 8
        && !(is_plain || is_prose || is_path || is_placeholder(value))
        && (named || is_mixed(value) && !value.contains("://"))
}

/// Whether a value is a path of small letters.
fn is_path(value: &str) -> bool {
    let in_path = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_./~".contains(&byte);
    value.contains('/') && value.bytes().all(in_path)
}

/// Whether a value is base64 of a user, a colon and a password.
pub(super) fn is_login(value: &str) -> bool {
    const PADDING: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(&base64::alphabet::STANDARD, PADDING);
    let login = engine.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    login.is_some_and(|login| {
        let parted = login.split_once(':').filter(|_| !login.contains(char::is_control));
        parted.is_some_and(|(user, password)| !user.is_empty() && password.len() >= 3)
    })
}

/// Bits of each character, by how often each is used (Shannon).
fn bits_per_char(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    value.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let all = f64::from(u32::try_from(value.len()).unwrap_or(u32::MAX));
    let shares = counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / all);
    shares.map(|share| -share * share.log2()).sum()
}
