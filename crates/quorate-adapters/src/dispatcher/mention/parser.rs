//! The mention rule: `@<name>` anywhere, as it is written; and for a name with a space also `@<first word>` in any
//! case, where no word character follows.
//!
//! It is the public parser's rule, a JavaScript regular expression without its `u` flag, with two of its traits
//! spelled out. A word character is one of `[A-Za-z0-9_]`, so that `@Ann` is found in `@Annä`. Two characters are
//! equal in any case when their upper case is equal: upper case is computed for each character, counts only if it is
//! one character, never maps non-ASCII to ASCII, and does not reach beyond U+FFFF. So `ä` equals `Ä`, and `ß` does
//! not equal `SS`. The first word is literal: the public parser reads it as a pattern, so that `C++ Expert` is an
//! error there, and `A.B Bot` is selected by `@AxB`.

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
