//! Finds sentences that redaction would remove from a text.

use quorate_kernel::redact::REDACTED;

/// Words in one line that make it prose: a phrase of eight words may be a password.
const SENTENCE: usize = 9;
/// Words in several lines that make them prose. A secret with its headers has fewer.
const SENTENCES: usize = 16;
/// The maximum length of a word, in languages that put spaces between words.
const LONGEST: usize = 20;

/// The first and the last line, from 1, of the first passage with sentences that `clean` lacks: a line, or successive lines of
/// which no word is left, with the empty lines between them. Redaction keeps the number of lines.
pub(super) fn find_hidden(text: &str, clean: &str) -> Option<(usize, usize)> {
    let mut passage = Passage::default();
    for (line, (before, after)) in (1..).zip(text.lines().zip(clean.lines())) {
        let lost = words(before).saturating_sub(words(after));
        if before == after && before.trim().is_empty() {
            continue;
        }
        if before == after || words(&after.replace(REDACTED, "")) > 0 {
            if passage.hides() {
                break;
            }
            passage = Passage::default();
            if lost >= SENTENCE {
                return Some((line, line));
            }
            continue;
        }
        passage.first.get_or_insert(line);
        (passage.last, passage.words) = (line, passage.words + lost);
        passage.has_sentence |= lost >= SENTENCE;
    }
    passage.first.filter(|_| passage.hides()).map(|first| (first, passage.last))
}

/// Successive lines of which no word is left.
#[derive(Default)]
struct Passage {
    first: Option<usize>,
    last: usize,
    words: usize,
    has_sentence: bool,
}

impl Passage {
    fn hides(&self) -> bool {
        self.has_sentence || self.words >= SENTENCES
    }
}

/// The number of words in a line. A run of base64 characters is one token, and not a word if it has digits or signs or is
/// long. Letters outside of ASCII do not occur in secrets, and some languages put no spaces between words.
fn words(line: &str) -> usize {
    let tokens = line.split(|c: char| !c.is_alphanumeric() && !"+/=-_".contains(c));
    // Emphasis does not belong to a word.
    let trimmed = tokens.map(|token| token.trim_matches(['-', '_']));
    let word = |token: &str| match token.is_ascii() {
        true => usize::from(
            (1..=LONGEST).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_alphabetic()),
        ),
        false => token.chars().filter(|c| !c.is_ascii() && c.is_alphabetic()).count().div_ceil(3),
    };
    trimmed.map(word).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::redact::{Redactor, Secrets};

    fn hidden(text: &str) -> Option<(usize, usize)> {
        let secrets = Secrets { builtin: true, ..Secrets::default() };
        let redactor = Redactor::from_secrets(&secrets).unwrap();
        find_hidden(text, &redactor.redact(text).0)
    }

    #[test]
    fn sentences_between_the_marks_of_a_key_are_seen() {
        let prose = "Prices never change.\n\nEverybody who joins today keeps what they pay, forever.";
        let between = |body: &str| {
            format!(
                "# News\n<!-- -----BEGIN PRIVATE KEY----- -->\n{body}\n<!-- -----END PRIVATE KEY----- -->\nEnd.\n"
            )
        };
        assert_eq!(hidden(&between(prose)), Some((2, 6)));
        assert_eq!(
            hidden(&between("我们永远不会提高价格，今天加入的每个人都将永远保持现在的价格。")),
            Some((2, 4))
        );
        assert_eq!(
            hidden(&between(
                "**We** will_ _never_ &#32;raise&#32;prices&#32;for&#32;anybody&#32;who joins today"
            )),
            Some((2, 4))
        );
        let short =
            "We will\nnever raise\na price\nfor anybody\nwho joins\nbefore the\nend of\nMay or\nlater";
        assert_eq!(hidden(&between(short)), Some((2, 12)));
    }

    #[test]
    fn secrets_hide_none() {
        let line = |at: u32| format!("{}\n", quorate_kernel::entropy::sha256_hex(&at.to_be_bytes()));
        let key: String = (0..25).map(line).collect();
        for secret in [
            format!(
                "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123\n\n{key}-----END RSA PRIVATE KEY-----\n"
            ),
            format!(
                "key: \"-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----\"\n",
                key.replace('\n', "\\n")
            ),
            "password = \"correct horse battery staple orange river seven lamp\"\n".to_owned(),
            "password: swordfish\n".repeat(40),
            "DB_PASSWORD=k7Rz2Xk9Lm\nAPI_KEY=sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"
                .to_owned(),
        ] {
            assert_eq!(hidden(&secret), None, "{secret}");
        }
    }
}
