//! What is taken for a secret and what is not, on a corpus: `redaction/positives.txt` and `redaction/negatives.txt`. The
//! bodies of tokens are made up when the test runs, so that no file has anything that looks like one.

use quorate_kernel::redact::{REDACTED, Redactor, Secrets};

const POSITIVES: &str = include_str!("redaction/positives.txt");
const NEGATIVES: &str = include_str!("redaction/negatives.txt");

fn redactor() -> Redactor {
    Redactor::from_secrets(&Secrets { builtin: true, ..Secrets::default() }).expect("no pattern to compile")
}

/// The lines of a corpus, with their numbers.
fn lines(corpus: &str) -> impl Iterator<Item = (usize, String)> {
    let lines = corpus.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(at, line)| (at + 1, expanded(line)))
}

/// A line with its templates filled in, and its line breaks, tabs and invisible characters.
fn expanded(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    // How many were filled in: two in one line differ.
    let mut number = 0;
    while let Some(open) = rest.find('{') {
        let (before, template) = rest.split_at(open);
        text.push_str(before);
        let inside =
            template[1..].split_once('}').and_then(|(inside, after)| Some((filled(inside, number)?, after)));
        rest = match inside {
            Some((body, after)) => {
                text.push_str(&body);
                number += 1;
                after
            }
            None => {
                text.push('{');
                &template[1..]
            }
        };
    }
    text.push_str(rest);
    let hidden = ['\u{a0}', '\u{ad}', '\u{200b}', '\u{2060}', '\u{ff1d}'];
    let written = |c: &char| (format!("\\u{:04x}", u32::from(*c)), c.to_string());
    let escapes = [("\\n", "\n"), ("\\t", "\t")].map(|(from, to)| (from.to_owned(), to.to_owned()));
    escapes
        .into_iter()
        .chain(hidden.iter().map(written))
        .fold(text, |text, (from, to)| text.replace(&from, &to))
}

/// A meaningless row of characters of an alphabet; `None` if the text is not a template.
fn filled(template: &str, number: usize) -> Option<String> {
    let alphabet = match template.get(..1)? {
        "A" => "a1B2c3D4e5F6g7H8i9J0k1L2m3N4p5Q6",
        "U" => "A2B3C4D5E6F7G2H3J4K5L6M7",
        "s" => "a1b2c3d4e5f6g7h8i9j0",
        "h" => "0a1b2c3d4e5f67890fe1dc2ba3",
        "d" => "12345678907",
        "b" => "a1B2c/D4e5F6g+H8i9J0k1L2",
        "m" => "MIIa1B2c3D4e5F6g7H8i9J0k",
        _ => return None,
    };
    let length: usize = template[1..].parse().ok()?;
    Some(alphabet.chars().cycle().skip(number).take(length).collect())
}

#[test]
fn every_secret_of_the_corpus_is_found_and_nothing_around_it() {
    // X10
    let redactor = redactor();
    let mut count = 0;
    let mut missed = Vec::new();
    for (number, line) in lines(POSITIVES) {
        count += 1;
        let (mut text, mut expected) = (String::new(), String::new());
        let mut rest = &*line;
        while let Some((before, from)) = rest.split_once('«') {
            let (secret, after) = from.split_once('»').expect("a secret ends");
            text.extend([before, secret]);
            expected.push_str(before);
            if !secret.is_empty() {
                expected.push_str(REDACTED);
                expected.extend(secret.chars().filter(|c| *c == '\n'));
            }
            rest = after;
        }
        text.push_str(rest);
        expected.push_str(rest);
        let (clean, _) = redactor.redact(&text);
        if clean != expected {
            missed.push(format!("{number}: {text}\n   is {clean}\n  not {expected}"));
        }
        assert_eq!(redactor.redact(&expected), (expected.clone(), 0), "what is clean stays");
    }
    assert!(missed.is_empty(), "{} of {count}:\n{}", missed.len(), missed.join("\n"));
    assert!(count >= 300, "{count}");
}

#[test]
fn nothing_of_the_corpus_without_secrets_is_taken_out() {
    let redactor = redactor();
    let mut count = 0;
    let mut alarms = Vec::new();
    for (number, text) in lines(NEGATIVES) {
        count += 1;
        let (clean, _) = redactor.redact(&text);
        if clean != text {
            alarms.push(format!("{number}: {text}\n   is {clean}"));
        }
    }
    assert!(alarms.is_empty(), "{} of {count}:\n{}", alarms.len(), alarms.join("\n"));
    assert!(count >= 300, "{count}");
}
