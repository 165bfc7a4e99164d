//! Whether a value looks like a secret if only its context suggests so. Words, paths, placeholders and hashes do not;
//! values that a person would not type or remember do.

use quorate_diagnostics::text::WordList;

const LISTS: &str = include_str!("words.txt");
/// The fewest bits that a character of a secret has on average, over the characters that it uses.
const MIN_BITS_PER_CHAR: f64 = 2.5;
/// From this length on letters alone can be a secret.
const MIN_LETTERS_ONLY_LEN: usize = 16;

/// Whether a value is likely to be made by a program: letters and digits mixed, without being made of words.
pub(super) fn is_generated(value: &str) -> bool {
    let telling = value.bytes().filter(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()).count();
    let least = if value.len() < MIN_LETTERS_ONLY_LEN { 1 } else { 3 };
    is_mixed(value)
        && telling >= least
        && !is_placeholder(value)
        && !is_path(value)
        && !value.contains("://")
        && !is_words(value)
}

/// Whether letters and digits are mixed, and varied enough.
pub(super) fn is_mixed(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_alphabetic())
        && value.bytes().any(|byte| byte.is_ascii_digit())
        && bits_per_char(value) >= MIN_BITS_PER_CHAR
}

/// Whether the text beside the anchor of a token is random: not a lower-case word, not an example value.
pub(super) fn is_random(parts: &[&str]) -> bool {
    let all = || parts.iter().flat_map(|part| part.bytes());
    let mut used = [false; 256];
    all().for_each(|byte| used[usize::from(byte)] = true);
    all().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
        && used.iter().filter(|is_used| **is_used).count() >= 5
        && !parts.iter().any(|part| is_example(part))
}

/// Whether a value is that of an example.
pub(super) fn is_example(value: &str) -> bool {
    let low = value.to_ascii_lowercase();
    let parts = [
        "example",
        "xxxx",
        "placeholder",
        "redacted",
        "changeme",
        "change-me",
        "change_me",
        "your-",
        "your_",
        "****",
        "....",
    ];
    parts.iter().any(|part| low.contains(part))
}

/// Whether a value could be a password: letters with digits, or with signs among them.
pub(super) fn could_be_password(value: &str) -> bool {
    static METHODS: WordList = WordList::new(LISTS, "methods");
    let telling = value.bytes().filter(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()).count();
    let least = if value.len() < MIN_LETTERS_ONLY_LEN { 1 } else { 3 };
    let sign = |byte: u8| {
        matches!(byte, b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'?' | b'~' | b'+' | b'=')
    };
    let upper = value.bytes().any(|byte| byte.is_ascii_uppercase());
    let lower = value.bytes().any(|byte| byte.is_ascii_lowercase());
    let signed = value.len() >= 8
        && upper
        && lower
        && value.bytes().skip(1).any(sign)
        && bits_per_char(value) >= MIN_BITS_PER_CHAR;
    let chosen = is_mixed(value) && telling >= least || signed;
    chosen && !METHODS.contains(&value.to_ascii_lowercase()) && !is_path(value) && !value.contains("://")
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
    let words = || value.split('-');
    value.len() >= MIN_LETTERS_ONLY_LEN
        && words().count() >= 3
        && words().all(|word| word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_alphabetic()))
}

/// Whether a value is a phrase of three words or more, as people choose them, and no message: nothing of grammar in it.
pub(super) fn is_phrase(value: &str) -> bool {
    static OF_MESSAGES: WordList = WordList::new(LISTS, "of messages");
    let words = || value.split(' ');
    value.len() >= MIN_LETTERS_ONLY_LEN
        && (3..=8).contains(&words().count())
        && words()
            .all(|word| (3..=12).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase()))
        && !words().any(|word| OF_MESSAGES.contains(word))
}

/// Whether a value is one word that is not the name of a variable. An environment contains only values.
pub(super) fn is_single_word(value: &str) -> bool {
    value.len() >= 8
        && value.bytes().all(|byte| byte.is_ascii_alphabetic())
        && bits_per_char(value) >= MIN_BITS_PER_CHAR
}

/// Whether a value names where a secret is kept: `my-db-password-2024`, `config.token2`.
pub(super) fn is_reference(value: &str) -> bool {
    static NAMES: WordList = WordList::new(LISTS, "names");
    value.starts_with("arn:")
        || is_words(value) && parts(value).any(|part| NAMES.contains(&part.to_ascii_lowercase()))
}

/// Whether a value is made of words, numbers as people write them, and what parts them.
pub(super) fn is_words(value: &str) -> bool {
    let (mut count, mut letters) = (0, 0);
    for part in parts(value) {
        if !is_word(part) {
            return false;
        }
        count += 1;
        letters += part.len();
    }
    count > 0
        && letters >= 3 * count
        && value.is_ascii()
        && !value.bytes().any(|byte| matches!(byte, b'+' | b'=' | b'!' | b'%' | b'^'))
}

/// The parts of a name or value: between signs, and from a small letter to a capital.
pub(super) fn parts(value: &str) -> impl Iterator<Item = &str> {
    value.split(|c: char| !c.is_ascii_alphanumeric()).flat_map(|part| {
        let bytes = part.as_bytes();
        let turns = move |at: &usize| bytes[at - 1].is_ascii_lowercase() && bytes[*at].is_ascii_uppercase();
        let turns: Vec<usize> = (1..part.len()).filter(turns).chain([part.len()]).collect();
        let mut from = 0;
        turns
            .into_iter()
            .map(move |to| &part[std::mem::replace(&mut from, to)..to])
            .filter(|part| !part.is_empty())
    })
}

/// A word, a word with a short number after it, or a number.
fn is_word(part: &str) -> bool {
    let letters = part.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (word, number) = part.split_at(letters);
    let cased = word.bytes().skip(1).all(|byte| byte.is_ascii_lowercase())
        || word.bytes().all(|byte| byte.is_ascii_uppercase());
    let vowel = word.bytes().any(|byte| matches!(byte | 0x20, b'a' | b'e' | b'i' | b'o' | b'u' | b'y'));
    let of_digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let short = if letters == 0 { 8 } else { 4 };
    of_digits && number.len() <= short && cased && letters <= 16 && (letters <= 4 || vowel)
}

/// The largest place up to `most` at which a text may be cut.
pub(super) fn floor_char_boundary(text: &str, most: usize) -> usize {
    let mut at = text.len().min(most);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Whether a value is a placeholder.
pub(super) fn is_placeholder(value: &str) -> bool {
    static WORDS: WordList = WordList::new(LISTS, "placeholders");
    let low = value.to_ascii_lowercase();
    let first = value.bytes().next();
    low.starts_with(['$', '{', '<', '%', '*', '['])
        || WORDS.contains(&low)
        || low.starts_with("your")
        || low.contains("xxxx")
        || value.bytes().all(|byte| Some(byte) == first)
}

/// Whether a part of a name may be behind the word that promises a secret.
pub(super) fn may_follow_secret_word(part: &str) -> bool {
    static NOT: WordList = WordList::new(LISTS, "not behind");
    !NOT.contains(&part.to_ascii_lowercase())
}

/// Whether a part of a name, before the word that suggests a secret, rules one out.
pub(super) fn denies_secret(part: &str) -> bool {
    static NOT: WordList = WordList::new(LISTS, "not before");
    NOT.contains(&part.to_ascii_lowercase())
}

/// Whether a name promises a secret: of a key in a document, or of a variable.
pub fn names_a_secret(name: &str) -> bool {
    let low = name.to_ascii_lowercase();
    let words =
        ["passw", "passphrase", "secret", "token", "credential", "apikey", "private_key", "privatekey"];
    let ends = ["key", "pwd", "_pat", "_dsn", "_auth", "_cookie", "database_url", "redis_url", "_pass"];
    words.iter().any(|word| low.contains(word)) || ends.iter().any(|end| low.ends_with(end))
}

/// Whether the value of a variable is worth looking for wherever it comes out: long enough, and neither a path nor a word
/// that texts have for other reasons. `named` says whether the variable's name promises a secret.
pub fn is_worth_redacting(value: &str, named: bool) -> bool {
    let letters = value.bytes().all(|byte| byte.is_ascii_alphabetic());
    let digits = value.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b':'));
    let plain = letters && value.len() < MIN_LETTERS_ONLY_LEN || digits && value.len() < 12;
    let spaced = value.contains(' ') && value.split(' ').all(|word| word.len() < 8);
    value.len() >= 8
        && !plain
        && !spaced
        && !is_path(value)
        && !is_placeholder(value)
        && (named || is_mixed(value) && !value.contains("://"))
}

/// Whether a value is a path.
fn is_path(value: &str) -> bool {
    let rooted = value.starts_with('/')
        || value.starts_with("~/")
        || value.starts_with("./")
        || value.starts_with("../");
    let named = |one: &str| {
        one.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_' | b'.' | b'0'..=b'9'))
    };
    rooted && (value.matches('/').count() > 1 || value[1..].split('/').all(named))
        || value.split('/').count() > 2 && value.split('/').all(named)
}

/// Bits of each character, by how often each is used (Shannon).
fn bits_per_char(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    value.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let all = f64::from(u32::try_from(value.len()).unwrap_or(u32::MAX));
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / all)
        .map(|share| -share * share.log2())
        .sum()
}
