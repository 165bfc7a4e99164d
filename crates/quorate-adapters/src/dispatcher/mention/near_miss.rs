//! Suggests names for an `@` that mentions no participant: a name misspelt, in another case, or in brackets.

use quorate_kernel::conversation::Participant;

use super::parser::{Boundary, first_word, mentions};

/// The lowest similarity of a suggestion, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.85;
/// The longest name that is compared, in characters.
const MAX_NAME_CHARS: usize = 64;
/// How many suggestions one text gets.
const MAX_NEAR_MISSES: usize = 3;
/// Brackets and quotes that may surround a name.
const DELIMITERS: [(char, char); 7] =
    [('[', ']'), ('<', '>'), ('(', ')'), ('{', '}'), ('"', '"'), ('\'', '\''), ('`', '`')];

/// A sentence for each `@` that mentions no participant but resembles a participant's name.
pub(super) fn near_misses(text: &str, participants: &[Participant], boundary: Boundary) -> Vec<String> {
    let mut suggestions: Vec<String> = Vec::new();
    let mut ats = text.match_indices('@').map(|(at, _)| at).peekable();
    while let Some(at) = ats.next() {
        // An address: me@example.org.
        if text[..at].ends_with(|c: char| c.is_alphanumeric()) {
            continue;
        }
        let piece = &text[at..ats.peek().copied().unwrap_or(text.len())];
        if participants.iter().any(|participant| mentions(piece, &participant.display_name, boundary)) {
            continue;
        }
        let Some((written, name)) = split_mention(&piece[1..]) else { continue };
        let Some(near) = nearest_participant(name, participants) else { continue };
        let suggestion =
            format!("`@{written}` matches no participant; did you mean `@{}`?", near.display_name);
        if !suggestions.contains(&suggestion) {
            suggestions.push(suggestion);
        }
        if suggestions.len() == MAX_NEAR_MISSES {
            break;
        }
    }
    suggestions
}

/// The text after an `@`: as it is written, and the name in it.
fn split_mention(rest: &str) -> Option<(&str, &str)> {
    let first = rest.chars().next()?;
    let around = DELIMITERS.iter().find(|(open, _)| *open == first);
    if let Some((open, close)) = around {
        let inner = &rest[open.len_utf8()..];
        let end = inner.char_indices().take(MAX_NAME_CHARS).find(|(_, c)| c == close)?.0;
        return Some((&rest[..open.len_utf8() + end + close.len_utf8()], inner[..end].trim()));
    }
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let end = rest.find(|c| !goes_on(c)).unwrap_or(rest.len());
    let word = rest[..end].trim_end_matches(['.', '-']);
    Some((word, word)).filter(|(word, _)| !word.is_empty() && word.chars().count() <= MAX_NAME_CHARS)
}

/// The participant most similar by display name, its first word, or id.
fn nearest_participant<'a>(name: &str, participants: &'a [Participant]) -> Option<&'a Participant> {
    let name = name.to_lowercase();
    let similarity = |participant: &Participant| {
        let names =
            [Some(&*participant.display_name), first_word(&participant.display_name), Some(&*participant.id)];
        let alike =
            names.into_iter().flatten().map(|names| strsim::jaro_winkler(&name, &names.to_lowercase()));
        alike.fold(0.0, f64::max)
    };
    participants
        .iter()
        .map(|participant| (similarity(participant), participant))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, participant)| participant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster() -> Vec<Participant> {
        [("w1", "Writer"), ("rev", "Reviewer"), ("cc", "Claude Code")]
            .map(|(id, name)| Participant {
                id: id.into(),
                executor: "rubric".to_owned(),
                display_name: name.to_owned(),
                meta: serde_json::Map::new(),
                role: "".into(),
                tools: quorate_kernel::conversation::Tools::default(),
            })
            .into()
    }

    #[test]
    fn who_was_probably_meant_is_named() {
        for (text, written, meant) in [
            ("@writter, please", "@writter", "@Writer"),
            ("@writer", "@writer", "@Writer"),
            ("@[Writer] and so on", "@[Writer]", "@Writer"),
            ("please @<Claude Code>!", "@<Claude Code>", "@Claude Code"),
            ("@Claud", "@Claud", "@Claude Code"),
            ("@rev: look", "@rev", "@Reviewer"),
            ("ask @Reviwer.", "@Reviwer", "@Reviewer"),
        ] {
            let suggestions = near_misses(text, &roster(), Boundary::Anything);
            assert_eq!(
                suggestions,
                [format!("`{written}` matches no participant; did you mean `{meant}`?")],
                "{text}"
            );
        }
    }

    #[test]
    fn valid_and_unrelated_mentions_give_no_suggestion() {
        for text in [
            "@Writer",
            "@claude",
            "me@writter.org",
            "@media (print)",
            "@",
            "@@",
            "@[",
            "@[]",
            "@everybody",
            "@2x",
            "no mention",
        ] {
            assert_eq!(near_misses(text, &roster(), Boundary::Anything), [""; 0], "{text}");
        }
        let text = "@writter @writter @writers @reviwer @claudes @wrtier ".repeat(50_000);
        assert_eq!(near_misses(&text, &roster(), Boundary::Word).len(), MAX_NEAR_MISSES);
    }
}
