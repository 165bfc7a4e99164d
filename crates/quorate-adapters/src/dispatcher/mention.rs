//! The `mention` dispatcher (K4) selects the participants that the last turn mentions, in the manifest's order.
//!
//! With `boundary: word` a mention must not be followed by a word character, so that `@Reviewer` does not select a
//! `Rev`.
//!
//! The mention rule: `@<name>` anywhere, as it is written; and for a name with a space also `@<first word>` in any
//! case, where no word character follows.
//!
//! It is the public parser's rule, a JavaScript regular expression without its `u` flag, with two of its traits
//! spelled out. A word character is one of `[A-Za-z0-9_]`, so that `@Ann` is found in `@Annä`. Two characters are
//! equal in any case when their upper case is equal: upper case is computed for each character, counts only if it is
//! one character, never maps non-ASCII to ASCII, and does not reach beyond U+FFFF. So `ä` equals `Ä`, and `ß` does
//! not equal `SS`. The first word is literal: the public parser reads it as a pattern, so that `C++ Expert` is an
//! error there, and `A.B Bot` is selected by `@AxB`.
//!
//! An `@` that mentions no participant gets a suggestion: a misspelt name, one in another case, or one in brackets.

use std::sync::Arc;

use async_trait::async_trait;
use quorate_kernel::conversation::{Capability, Participant};
use quorate_kernel::ports::dispatcher::{DispatchError, Dispatcher, Input};
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::registry::BuildContext;
use quorate_protocol::Name;

use super::{REENTRY, candidates, parse_block};

/// The kind that manifests name.
pub const KIND: &str = "mention";

const WORD: &str = "word";

/// Builds the dispatcher from its block.
///
/// # Errors
/// When the block has an unknown key, or a `boundary` other than `word`.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn Dispatcher>, ConfigError> {
    let block = parse_block(build, &["boundary"])?;
    let boundary = match block.text("boundary")? {
        None => Boundary::Anything,
        Some(WORD) => Boundary::Word,
        Some(other) => {
            return Err(ConfigError::for_key("boundary", format!("unknown boundary `{other}`"))
                .with_help("`word`, or leave it out: then a mention may go on as it likes"));
        }
    };
    Ok(Arc::new(Mention { boundary, reentry: block.flag(REENTRY)? }))
}

struct Mention {
    boundary: Boundary,
    reentry: bool,
}

#[async_trait]
impl Dispatcher for Mention {
    fn kind(&self) -> &'static str {
        KIND
    }

    async fn select(&self, input: Input<'_>) -> Result<Vec<Name>, DispatchError> {
        let Some(trigger) = input.trigger() else { return Ok(Vec::new()) };
        if !input.capabilities.contains(&Capability::Mentions) {
            return Ok(Vec::new());
        }
        let mentioned =
            |participant: &&Participant| mentions(&trigger.content, &participant.display_name, self.boundary);
        Ok(candidates(&input, self.reentry)
            .filter(mentioned)
            .map(|participant| participant.id.clone())
            .collect())
    }

    fn near_misses(&self, text: &str, participants: &[Participant]) -> Vec<String> {
        near_misses(text, participants, self.boundary)
    }

    /// Warns of names whose mention selects another participant too.
    fn warnings(&self, participants: &[Participant]) -> Vec<String> {
        let mut warnings = Vec::new();
        for (at, first) in participants.iter().enumerate() {
            for second in &participants[at + 1..] {
                let warning = ambiguity_warning(first, second, self.boundary)
                    .or_else(|| ambiguity_warning(second, first, self.boundary));
                warnings.extend(warning);
            }
        }
        warnings
    }
}

/// The warning for a name `meant` whose mention selects `also` too.
fn ambiguity_warning(meant: &Participant, also: &Participant, boundary: Boundary) -> Option<String> {
    let name = &*meant.display_name;
    let spellings = [Some(name), first_word(name)].into_iter().flatten();
    let mention = spellings
        .map(|name| format!("@{name}"))
        .find(|mention| mentions(mention, &also.display_name, boundary))?;
    let help = match boundary {
        Boundary::Anything if !mentions(&mention, &also.display_name, Boundary::Word) => {
            "set `boundary: word` in the dispatcher's block, or give one of them another displayName"
        }
        _ => "give one of them another displayName",
    };
    Some(format!(
        "`{mention}`, which is how `{}` is mentioned, also selects `{}` ({}); {help}",
        meant.id, also.id, also.display_name
    ))
}

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
fn near_misses(text: &str, participants: &[Participant], boundary: Boundary) -> Vec<String> {
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

/// The text after an `@`: verbatim, and the name in it.
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

/// What may follow a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// Anything: `@Reviewer` mentions a `Rev`.
    Anything,
    /// Anything but a word character.
    Word,
}

/// Whether a text mentions a name.
pub fn mentions(text: &str, name: &str, boundary: Boundary) -> bool {
    after_at(text).any(|rest| {
        rest.strip_prefix(name).is_some_and(|rest| boundary == Boundary::Anything || !continues_word(rest))
    }) || first_word(name).is_some_and(|first| {
        after_at(text)
            .any(|rest| strip_prefix_ignoring_case(rest, first).is_some_and(|rest| !continues_word(rest)))
    })
}

/// The first word of a name that has a space.
pub fn first_word(name: &str) -> Option<&str> {
    let (first, _) = name.split_once(' ')?;
    let blank = |c: char| (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}';
    Some(first.trim_matches(blank)).filter(|first| !first.is_empty())
}

/// The text after each `@`.
fn after_at(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('@').map(|(at, _)| &text[at + 1..])
}

/// The rest of a text after a prefix that is compared in any case.
fn strip_prefix_ignoring_case<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let mut rest = text.chars();
    prefix
        .chars()
        .all(|expected| rest.next().is_some_and(|found| fold_case(found) == fold_case(expected)))
        .then_some(rest.as_str())
}

fn continues_word(rest: &str) -> bool {
    rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

fn fold_case(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(upper), None)
            if c <= '\u{ffff}' && upper <= '\u{ffff}' && (c.is_ascii() || !upper.is_ascii()) =>
        {
            upper
        }
        _ => c,
    }
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

#[cfg(test)]
mod parser_tests {
    use super::*;

    #[track_caller]
    fn holds(name: &str, yes: &[&str], no: &[&str]) {
        for text in yes {
            assert!(mentions(text, name, Boundary::Anything), "{name} in {text}");
        }
        for text in no {
            assert!(!mentions(text, name, Boundary::Anything), "{name} in {text}");
        }
    }

    #[test]
    fn the_whole_name_is_found_anywhere_as_it_is_written() {
        holds("Rev", &["@Rev", "ask @Rev.", "me@Rev", "@@Rev", "@Reviewer"], &["Rev", "@rev", "@ Rev", ""]);
    }

    #[test]
    fn the_first_word_of_a_name_with_a_space_is_found_in_any_case() {
        holds(
            "Claude Code",
            &["@Claude Code", "@claude", "@CLAUDE, please", "@Claude Codex", "@claudeä", "@claude\u{17f}"],
            &["@claudes", "@claude_1", "@claude9", "@ claude", "Claude Code", "@Code"],
        );
    }

    #[test]
    fn the_first_word_stands_for_itself() {
        holds("C++ Expert", &["@c++", "@C++!"], &["@c", "@ccc"]);
        holds("A.B Bot", &["@a.b"], &["@axb"]);
        holds("(x Bot", &["@(X"], &["@x"]);
    }

    #[test]
    fn case_is_folded_character_by_character() {
        holds("Ärztin Bo", &["@ärztin", "@ÄRZTIN"], &["@arztin"]);
        holds("Strauß Bo", &["@STRAUß"], &["@STRAUSS"]);
        holds("Kim Bo", &["@kim"], &["@\u{212a}im"]);
        holds("\u{10400}x Bo", &["@\u{10400}X"], &["@\u{10428}x"]);
    }

    #[test]
    fn only_a_name_with_a_space_has_a_first_word() {
        assert_eq!(first_word("Ann Lee"), Some("Ann"));
        assert_eq!(first_word("\tAnn Lee"), Some("Ann"));
        assert_eq!(first_word("Ann\u{a0}Lee"), None);
        assert_eq!(first_word(" Ann"), None);
        assert_eq!(first_word("Ann"), None);
    }

    #[test]
    fn a_boundary_ends_the_name() {
        let word = |text, name| mentions(text, name, Boundary::Word);
        assert!(!word("@Reviewer", "Rev"));
        assert!(word("@Reviewer @Rev", "Rev"));
        assert!(word("@Rev.", "Rev"));
        assert!(!word("@Claude Codex", "Claude Code") || word("@Claude", "Claude Code"));
        assert!(!word("@Claudes", "Claude Code"));
    }
}
