//! Secrets in a text: where they stand. This file owns the search; `secrets/shapes.rs` looks for what issuers' tokens, keys, headers and
//! addresses look like, `secrets/assignment.rs` for values of names that promise a secret and for columns under such a name, and
//! `secrets/plausible.rs` says whether a name or a value may belong to a secret. What they know is in the text files beside them.
//!
//! The time is proportional to the length of the text: one automaton finds keywords and names, each shape of which a keyword occurs is
//! searched for once, and behind a name a bounded number of bytes is read.

mod assignment;
mod plausible;
mod shapes;

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use quorate_diagnostics::invisible::is_invisible;

use shapes::SHAPES;

pub use plausible::is_worth_redacting;

/// It rises when other texts would be taken for secrets.
pub const VERSION: u32 = 5;

/// The length of the shortest text in which there can be a secret.
const MIN_TEXT_BYTES: usize = 10;

/// Finds the keywords of shapes and, behind those, the words that are a part of secrets' names.
static AUTOMATON: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let keywords = SHAPES.iter().flat_map(|shape| &shape.keywords).copied();
    let mut builder = AhoCorasick::builder();
    builder.ascii_case_insensitive(true).kind(Some(AhoCorasickKind::ContiguousNFA));
    builder.build(keywords.chain(assignment::WORDS)).expect("the table is small")
});

/// The shape of each keyword, by number.
static OWNERS: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let owners =
        |(number, shape): (usize, &'static shapes::Shape)| shape.keywords.iter().map(move |_| number);
    SHAPES.iter().enumerate().flat_map(owners).collect()
});

/// Where secrets stand in a text, in order and apart. Invisible characters, unusual blanks and wide letters do not hide them.
pub fn find(text: &str) -> Vec<Range<usize>> {
    if text.len() < MIN_TEXT_BYTES {
        return Vec::new();
    }
    match fold(text) {
        Some(folded) => find_in_plain(&folded.text).iter().map(|span| folded.source(span)).collect(),
        None => find_in_plain(text),
    }
}

/// Whether a text that is the value of a key, in a document, is a secret because of its key.
pub fn is_value_of(key: &str, value: &str) -> bool {
    let is_named = names_a_secret(key) || key.eq_ignore_ascii_case("auth");
    let is_one = !value.contains(char::is_whitespace) || plausible::is_phrase(value);
    is_named && is_one && !find(&format!("{key}: \"{value}\"")).is_empty()
}

/// Whether the name of a variable promises a secret.
pub fn names_a_secret(name: &str) -> bool {
    let low = name.to_ascii_lowercase();
    let ends = ["_dsn", "_auth", "_cookie", "database_url", "redis_url"];
    assignment::promises_secret(name) || ends.iter().any(|end| low.ends_with(end))
}

fn find_in_plain(text: &str) -> Vec<Range<usize>> {
    let mut spans = assignment::find_in_columns(text);
    let mut has_keyword = vec![false; SHAPES.len()];
    let mut done = 0;
    for found in AUTOMATON.find_overlapping_iter(text) {
        if let Some(number) = OWNERS.get(found.pattern().as_usize()) {
            has_keyword[*number] = true;
        } else if found.start() >= done {
            done = assignment::find(text, found.range(), &mut spans);
        }
    }
    for (shape, _) in SHAPES.iter().zip(has_keyword).filter(|(_, has_keyword)| *has_keyword) {
        shape.find(text, &mut spans);
    }
    merge(spans)
}

/// Counts bytes that are read, for the test that their number is proportional to the length of a text.
fn count_read(_bytes: usize) {
    #[cfg(test)]
    tests::READ.with(|read| read.set(read.get() + _bytes));
}

/// Spans in order; those that touch become one.
fn merge(mut spans: Vec<Range<usize>>) -> Vec<Range<usize>> {
    spans.sort_unstable_by_key(|span| span.start);
    let mut disjoint: Vec<Range<usize>> = Vec::with_capacity(spans.len());
    for span in spans {
        match disjoint.last_mut().filter(|last| span.start <= last.end) {
            Some(last) => last.end = last.end.max(span.end),
            None => disjoint.push(span),
        }
    }
    disjoint
}

/// A text as it looks to a reader.
struct Folded {
    text: String,
    /// Where the two texts shift against each other: places in the folded text, and in the source.
    shifts: Vec<(usize, usize)>,
}

/// `None` if the text is as it looks.
fn fold(text: &str) -> Option<Folded> {
    if text.is_ascii() && !text.chars().any(is_invisible) {
        return None;
    }
    let mut folded = Folded { text: String::new(), shifts: vec![(0, 0)] };
    let mut kept = 0;
    for (at, c) in text.char_indices() {
        let plain = match c {
            // A control that parts values must not join a secret to its neighbours.
            '\0' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Some('\n'),
            '\u{2800}' => Some(' '),
            c if is_invisible(c) => None,
            '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => Some(' '),
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0),
            _ => continue,
        };
        folded.text.push_str(&text[kept..at]);
        folded.shifts.push((folded.text.len(), at));
        folded.text.extend(plain);
        kept = at + c.len_utf8();
        folded.shifts.push((folded.text.len(), kept));
    }
    folded.text.push_str(&text[kept..]);
    (kept > 0).then_some(folded)
}

impl Folded {
    /// A place of the folded text in the source.
    fn source(&self, span: &Range<usize>) -> Range<usize> {
        let place = |at: usize| {
            let (folded, source) = self.shifts[self.shifts.partition_point(|(folded, _)| *folded <= at) - 1];
            source + at - folded
        };
        place(span.start)..place(span.end)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        pub(super) static READ: Cell<usize> = const { Cell::new(0) };
    }

    const LENGTH: usize = 8_000;
    /// A text with the keywords of all shapes is read once for each, and names are at least three bytes apart.
    const MAX_READ_PER_BYTE: usize = 1_000;

    /// How many bytes are read to find the secrets of a text that repeats a part up to a length.
    fn read(part: &str, length: usize) -> usize {
        READ.set(0);
        find(&part.repeat(length.div_ceil(part.len())));
        READ.get()
    }

    #[track_caller]
    fn is_linear(part: &str) {
        let (once, twice) = (read(part, LENGTH), read(part, 2 * LENGTH));
        assert!(twice <= 2 * once + once / 5 + LENGTH, "{part:?}: {once} bytes, then {twice}");
        assert!(once <= MAX_READ_PER_BYTE * LENGTH, "{part:?}: {once} bytes");
    }

    #[test]
    fn a_text_full_of_beginnings_is_read_in_linear_time() {
        // X10
        for keyword in SHAPES.iter().flat_map(|shape| &shape.keywords) {
            is_linear(&format!("-{keyword}"));
        }
        for word in assignment::WORDS {
            for part in
                [format!("={word}"), format!("{word}: "), format!("a_{word}=\""), format!("<{word}>a1B2c3D4")]
            {
                is_linear(&part);
            }
        }
    }

    #[test]
    fn adversarial_texts_are_read_in_linear_time() {
        // X10
        for part in [
            "-----BEGIN RSA PRIVATE KEY-----\n",
            "-----END RSA PRIVATE KEY-----",
            "MIIa1B2c3D4e5F6g7H8\n",
            "a.eyJ-",
            "Authorization: Bearer ",
            "://a:",
            " -u a:",
            "cookie: a=b; ",
            "passwords:\n  - a1B2c3D4\n",
            "api_keys: [\"",
            "password:\n  ",
            "{\"name\": \"password\", \"value\": \"",
            "variable \"password\" { ",
            "mysql -pa1 ",
            ":5432:a:b:",
            "password: \"aaa bbb ccc",
            "a1B2c3D4",
            "key",
            "| password | a1B2c3D4 |\n",
            "password=é1Bß2",
        ] {
            is_linear(part);
        }
        let all: Vec<&str> = SHAPES.iter().flat_map(|shape| &shape.keywords).copied().collect();
        for between in ["", "-", "=", "\n", " a1B2"] {
            is_linear(&all.join(between));
        }
    }

    #[test]
    fn sentences_stay_behind_every_keyword_and_name() {
        // X10
        let prose = "Élise and everybody who joins today keep this price of 25 € for ever, and nobody pays a fee of 3%";
        let keywords = SHAPES.iter().flat_map(|shape| &shape.keywords).chain(&assignment::WORDS);
        let mut texts: Vec<String> = keywords
            .flat_map(|word| {
                ["", ": ", "=", " = \"", "\":\"", " ", ":\n  ", ",note\n"]
                    .map(|sign| format!("{word}{sign}{prose}\n"))
            })
            .collect();
        texts.push(format!("-----BEGIN PRIVATE KEY-----\n{prose}\n-----END PRIVATE KEY-----\n"));
        texts.push(format!("Set-Cookie: sid=q7Rz2Xk9Vb4Tn6Ww; {prose}\n"));
        texts.push(format!("| password | note |\n|---|---|\n| {prose} | {prose} |\n"));
        for text in texts {
            for span in find(&text) {
                let words = text[span.clone()].split_whitespace().count();
                assert!(words <= 2, "{text}: {}", &text[span]);
            }
        }
    }

    #[test]
    fn a_secret_is_found_in_the_text_as_it_stands() {
        let text = "**p\u{2060}assword**\u{ff1a}\u{a0}q7Rz2X\u{200b}k9Vb4Tn6 is new";
        let secret = "q7Rz2X\u{200b}k9Vb4Tn6";
        let at = text.find(secret).expect("it is there");
        assert_eq!(find(text), vec![at..at + secret.len()]);
    }

    #[test]
    fn names_of_variables_and_values_worth_looking_for() {
        for (name, value) in [
            ("ANTHROPIC_API_KEY", "abcDEF123456"),
            ("GH_TOKEN", "0f8fad5bd9cb"),
            ("DB_PASSWORD", "hunter2Xy9"),
            ("aws_secret_access_key", "wJalrXUtnFEMI/K7MDENG"),
            ("VAULT_CREDENTIALS", "ada:hunter2Xy9"),
            ("GITHUB_PAT", "0f8fad5bd9cb"),
            ("SENTRY_DSN", "https://0f8fad5bd9cb@sentry.example/1"),
        ] {
            assert!(names_a_secret(name) && is_worth_redacting(value, true), "{name}");
        }
        for value in ["/etc/ssh/id_ed25519", "production", "12345678", "short1", "password", "true or false"]
        {
            assert!(!is_worth_redacting(value, true), "{value}");
        }
        assert!(!is_worth_redacting("https://x.example/v1", false));
        assert!(is_worth_redacting("q7Rz2Xk9Vb4Tn6", false));
        assert!(!is_worth_redacting("keep-everything", false));
        assert!(["PATH", "HOME", "PWDS", "KEYBOARD"].iter().all(|name| !names_a_secret(name)));
    }

    #[test]
    fn a_value_of_a_document_is_a_secret_because_of_its_key() {
        assert!(is_value_of("password", "hunter2Xy9") && is_value_of("auth", "YWRhOmh1bnRlcjI="));
        assert!(!is_value_of("region", "hunter2Xy9") && !is_value_of("password", "required"));
    }
}
