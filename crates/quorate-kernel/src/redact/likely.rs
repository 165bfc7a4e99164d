//! Whether a value looks like a secret, where only its place says that it may be one. Words, paths, placeholders and
//! hashes do not; what nobody would type or remember does.

/// The fewest bits that a character of a secret has on average, over the characters that it uses.
const BITS: f64 = 2.5;
/// From this length on letters alone can be a secret.
const LONG: usize = 16;

/// Whether a value is likely to be a secret: letters and digits mixed, without being made of words.
pub(super) fn secret(value: &str) -> bool {
    let telling = value.bytes().filter(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()).count();
    let least = if value.len() < LONG { 1 } else { 3 };
    mixed(value) && telling >= least && !placeholder(value) && !path(value) && !value.contains("://")
}

/// Whether letters and digits are mixed, and varied enough.
pub(super) fn mixed(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_alphabetic())
        && value.bytes().any(|byte| byte.is_ascii_digit())
        && bits(value) >= BITS
}

/// Whether a value stands for one that is not there.
pub(super) fn placeholder(value: &str) -> bool {
    let low = value.to_ascii_lowercase();
    let named = [
        "password",
        "passwd",
        "secret",
        "token",
        "changeme",
        "example",
        "placeholder",
        "your",
        "xxxx",
        "redacted",
        "hidden",
    ];
    let stands_for = low.starts_with(['$', '{', '<', '%', '*', '['])
        || named.iter().any(|one| low == *one || low.starts_with("your") || low.contains("xxxx"));
    let first = value.bytes().next();
    stands_for
        || value.bytes().all(|byte| Some(byte) == first)
        || matches!(low.as_str(), "pass" | "pw" | "pwd")
}

/// Whether what is assigned is a hash, a public half, a size or the like, whatever else the name says.
pub(super) fn no_secret_by_name(name: &str) -> bool {
    let low = name.to_ascii_lowercase();
    ["sha", "hash", "digest", "fingerprint", "public", "_id", "-id", "name", "path", "file"]
        .iter()
        .any(|one| low.contains(one))
}

/// Whether a name promises a secret: of a key in a document, or of a variable.
pub fn names_a_secret(name: &str) -> bool {
    let low = name.to_ascii_lowercase();
    let words =
        ["passw", "passphrase", "secret", "token", "credential", "apikey", "private_key", "privatekey"];
    let ends = ["key", "pwd", "_pat", "_dsn", "_auth", "_cookie", "database_url", "redis_url", "_pass"];
    words.iter().any(|one| low.contains(one)) || ends.iter().any(|one| low.ends_with(one))
}

/// Whether the name is that of a password, which people choose, and choose short.
pub(super) fn names_a_password(name: &str) -> bool {
    let low = name.to_ascii_lowercase();
    ["passw", "pwd", "passphrase"].iter().any(|one| low.contains(one))
}

/// Whether the value of a variable is worth looking for wherever it comes out: long enough, and neither a path nor a word
/// that texts have for other reasons. `named` says whether the variable's name promises a secret.
pub fn worth(value: &str, named: bool) -> bool {
    let letters = value.bytes().all(|byte| byte.is_ascii_alphabetic());
    let digits = value.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b':'));
    let plain = letters && value.len() < LONG || digits && value.len() < 12;
    let spaced = value.contains(' ') && value.split(' ').all(|word| word.len() < 8);
    value.len() >= 8
        && !plain
        && !spaced
        && !path(value)
        && !placeholder(value)
        && (named || mixed(value) && !value.contains("://"))
}

/// Whether a value is a path.
fn path(value: &str) -> bool {
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
fn bits(value: &str) -> f64 {
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
