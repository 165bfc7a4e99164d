//! The table of shapes, `shapes.txt`, and the search for one of them.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex::{Regex, RegexBuilder};

use super::plausible;

/// What must hold for a text that matches a pattern.
#[derive(Clone, Copy)]
enum Check {
    Token,
    Generated,
    Password,
    Login,
    Nothing,
}

/// A row of the table.
pub(super) struct Shape {
    /// One of these occurs in each text that has the shape.
    pub(super) keywords: Vec<String>,
    check: Check,
    pattern: String,
    /// Compiled when a text has a keyword.
    compiled: OnceLock<Regex>,
}

/// What a leading `\b` stands for.
const BORDER: &str = r"(?:\b|_|\\[nrt]|%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4})";

pub(super) static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    let shape = |(section, _, row): (&str, &str, &'static str)| {
        let check = match section {
            "tokens" => Check::Token,
            "generated" => Check::Generated,
            "passwords" => Check::Password,
            "logins" => Check::Login,
            _ => Check::Nothing,
        };
        let (keywords, pattern) = match row.split_once(" => ") {
            Some((keywords, pattern)) => (keywords.split(", ").map(str::to_owned).collect(), pattern),
            None => (vec![literal_prefix(row)], row),
        };
        let pattern = match pattern.strip_prefix(r"\b") {
            Some(rest) => format!("{BORDER}({rest})"),
            None => pattern.to_owned(),
        };
        Shape { keywords, check, pattern, compiled: OnceLock::new() }
    };
    rows(include_str!("shapes.txt")).map(shape).collect()
});

/// The rows of a table: section, name and the rest.
pub(super) fn rows(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut section = "";
    lines.filter_map(move |line| {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
            return None;
        }
        let (name, rest) = line.split_once(": ").expect("a row has a name");
        Some((section, name, rest))
    })
}

/// An expression on ASCII: `\w` and `\b` know no other letters.
pub(super) fn compile(pattern: &str) -> Regex {
    RegexBuilder::new(pattern).unicode(false).build().expect("the tables compile")
}

/// The literal text with which a pattern begins.
fn literal_prefix(pattern: &str) -> String {
    let mut literal = String::new();
    let mut characters = pattern.strip_prefix(r"\b").unwrap_or(pattern).chars().peekable();
    while let Some(c) = characters.next() {
        let c = match c {
            '\\' if characters.peek().is_some_and(char::is_ascii_punctuation) => characters.next(),
            '\\' | '[' | '(' | '.' | '|' => None,
            c => Some(c),
        };
        let Some(c) = c.filter(|_| !matches!(characters.peek(), Some('{' | '?' | '*' | '+'))) else { break };
        literal.push(c);
    }
    literal
}

impl Shape {
    /// Adds the places of a text that have the shape.
    pub(super) fn find(&self, text: &str, spans: &mut Vec<Range<usize>>) {
        let pattern = self.compiled.get_or_init(|| compile(&self.pattern));
        super::count_read(text.len());
        for captures in pattern.captures_iter(text) {
            let Some(found) = captures.iter().flatten().last() else { continue };
            if self.check.holds(found.as_str()) {
                spans.push(found.range());
            }
        }
    }
}

impl Check {
    fn holds(self, value: &str) -> bool {
        match self {
            Check::Token => plausible::is_random(value),
            Check::Generated => plausible::has_generated_part(value),
            Check::Password => !plausible::is_placeholder(value),
            Check::Login => plausible::is_login(value),
            Check::Nothing => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_compiles_and_contains_its_keywords() {
        for shape in SHAPES.iter() {
            compile(&shape.pattern);
            let long = |keyword: &String| keyword.len() >= 2;
            assert!(!shape.keywords.is_empty() && shape.keywords.iter().all(long), "{}", shape.pattern);
        }
        assert_eq!(literal_prefix(r"\bv1\.0-[0-9a-f]{24}"), "v1.0-");
        assert_eq!(literal_prefix(r"eyJx{3}"), "eyJ");
        assert!(SHAPES.len() >= 150);
    }
}
