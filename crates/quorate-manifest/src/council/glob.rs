//! Globs with the semantics of the public tool's tier rules.
//!
//! `*` and `?` match any character including `/`; `[abc]`, `[a-z]` and `[!a]` are classes; an unclosed `[` is literal; a
//! `**/` at the start of the pattern or after a `/` also matches zero directories. There is no escape character, every
//! pattern is valid, and matching is case-sensitive.

use std::ops::RangeInclusive;

/// A compiled glob. Equality compares the texts.
#[derive(Debug, Clone)]
pub struct Glob {
    text: String,
    steps: Vec<Token>,
}

/// One state of the matcher.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Char(char),
    AnyChar,
    Class {
        negated: bool,
        ranges: Vec<RangeInclusive<char>>,
    },
    /// Any run of characters.
    AnyRun,
    /// Start of an optional run of directories; [`Token::InDirectories`] follows.
    Directories,
    /// Inside the run of directories; a `/` may end it.
    InDirectories,
}

impl PartialEq for Glob {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Glob {}

impl Glob {
    pub fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let mut tokens = Vec::with_capacity(chars.len());
        let mut at = 0;
        while at < chars.len() {
            let starts_component = at == 0 || chars[at - 1] == '/';
            if starts_component && chars[at..].starts_with(&['*', '*', '/']) {
                tokens.extend([Token::Directories, Token::InDirectories]);
                at += 3;
                continue;
            }
            let (step, next) = match chars[at] {
                '*' => (Token::AnyRun, at + 1),
                '?' => (Token::AnyChar, at + 1),
                '[' => class(&chars, at).unwrap_or((Token::Char('['), at + 1)),
                other => (Token::Char(other), at + 1),
            };
            if !(step == Token::AnyRun && tokens.last() == Some(&Token::AnyRun)) {
                tokens.push(step);
            }
            at = next;
        }
        Glob { text: text.to_owned(), steps: tokens }
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the whole `text` matches. Takes time proportional to the product of both lengths for any pattern.
    pub fn matches(&self, text: &str) -> bool {
        let mut reached = vec![false; self.steps.len() + 1];
        self.enter(&mut reached, 0);
        let mut next = reached.clone();
        for c in text.chars() {
            next.fill(false);
            for at in (0..self.steps.len()).filter(|at| reached[*at]) {
                match &self.steps[at] {
                    Token::Char(expected) if *expected == c => self.enter(&mut next, at + 1),
                    Token::AnyChar => self.enter(&mut next, at + 1),
                    Token::Class { negated, ranges } if ranges.iter().any(|r| r.contains(&c)) != *negated => {
                        self.enter(&mut next, at + 1);
                    }
                    Token::AnyRun => self.enter(&mut next, at),
                    Token::InDirectories => {
                        next[at] = true;
                        if c == '/' {
                            self.enter(&mut next, at + 1);
                        }
                    }
                    Token::Char(_) | Token::Class { .. } | Token::Directories => {}
                }
            }
            std::mem::swap(&mut reached, &mut next);
        }
        reached[self.steps.len()]
    }

    /// Marks a state and the states that it reaches without a character.
    fn enter(&self, states: &mut [bool], at: usize) {
        if std::mem::replace(&mut states[at], true) {
            return;
        }
        match self.steps.get(at) {
            Some(Token::AnyRun) => self.enter(states, at + 1),
            Some(Token::Directories) => {
                states[at + 1] = true;
                self.enter(states, at + 2);
            }
            _ => {}
        }
    }
}

/// The class that opens at `open`, and the index after it; `None` if it is not closed.
fn class(chars: &[char], open: usize) -> Option<(Token, usize)> {
    let negated = chars.get(open + 1) == Some(&'!');
    let first = open + 1 + usize::from(negated);
    // A `]` at the start belongs to the class.
    let close = (first + 1..chars.len()).find(|at| chars[*at] == ']')?;
    let mut ranges = Vec::new();
    let mut at = first;
    while at < close {
        if at + 2 < close && chars[at + 1] == '-' {
            ranges.push(chars[at]..=chars[at + 2]);
            at += 3;
        } else {
            ranges.push(chars[at]..=chars[at]);
            at += 1;
        }
    }
    Some((Token::Class { negated, ranges }, close + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        let glob = Glob::new(pattern);
        for text in yes {
            assert!(glob.matches(text), "{pattern} should match {text}");
        }
        for text in no {
            assert!(!glob.matches(text), "{pattern} should not match {text}");
        }
    }

    #[test]
    fn a_star_crosses_directories() {
        check("*linkedin*", &["linkedin", "a_linkedin_b.md", "x/linkedin/y.md"], &["LinkedIn.md", "linked"]);
        check("drafts/*.md", &["drafts/a.md", "drafts/x/a.md"], &["a.md", "drafts/a.txt"]);
        check("a?c", &["abc", "a/c"], &["ac", "abbc"]);
        check("", &[""], &["a"]);
    }

    #[test]
    fn two_stars_and_a_slash_match_no_directory_too() {
        check(
            "**/learnings.md",
            &["learnings.md", "a/learnings.md", "a/b/learnings.md"],
            &["mylearnings.md"],
        );
        check("a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["ab", "a/xb"]);
        check("x**/y", &["x/y", "xa/y", "x/a/y"], &["y"]);
        check("**", &["", "a", "a/b"], &[]);
    }

    #[test]
    fn classes_and_unclosed_brackets() {
        check("[a-c]x", &["ax", "cx"], &["dx", "-x"]);
        check("[!a]x", &["bx"], &["ax", "x"]);
        check("[]]", &["]"], &["a"]);
        check("[ab", &["[ab"], &["a", "b"]);
        check("[a-]", &["a", "-"], &["b"]);
    }

    #[test]
    fn many_stars_take_bounded_time() {
        let glob = Glob::new(&"*a".repeat(200));
        assert!(!glob.matches(&"a".repeat(150)));
        assert!(glob.matches(&"a".repeat(5_000)));
    }
}
