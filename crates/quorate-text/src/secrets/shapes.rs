//! The table of shapes, `shapes.txt`, and the search for one of them.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex::{Regex, RegexBuilder};

use super::plausible;

/// A row of the table.
pub(super) struct Shape {
    /// One of these occurs in each text that has the shape.
    pub(super) keywords: Vec<&'static str>,
    /// What must hold for a match besides.
    check: fn(&str) -> bool,
    pattern: String,
    /// Compiled when a text has a keyword.
    compiled: OnceLock<Regex>,
}

/// What a leading `\b` stands for.
const BORDER: &str = r"(?:\b|_|\\[nrt]|%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4})";

pub(super) static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    let shape = |(section, _, row): (&str, &str, &'static str)| {
        let check = match section {
            "tokens" => plausible::is_random,
            "generated" => plausible::has_generated_part,
            "passwords" => |value: &str| !plausible::is_placeholder(value),
            "logins" => plausible::is_login,
            _ => |_: &str| true,
        };
        let (keywords, pattern) = row.split_once(" => ").expect("a shape has keywords");
        let keywords = keywords.split(", ").collect();
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

impl Shape {
    /// Adds the places of a text that have the shape.
    pub(super) fn find(&self, text: &str, spans: &mut Vec<Range<usize>>) {
        let pattern = self.compiled.get_or_init(|| compile(&self.pattern));
        super::count_read(text.len());
        for captures in pattern.captures_iter(text) {
            let Some(found) = captures.iter().flatten().last() else { continue };
            if (self.check)(found.as_str()) {
                spans.push(found.range());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_compiles_and_has_keywords() {
        for shape in SHAPES.iter() {
            compile(&shape.pattern);
            assert!(shape.keywords.iter().all(|keyword| keyword.len() >= 2), "{}", shape.pattern);
        }
        assert!(SHAPES.len() >= 150);
    }
}
