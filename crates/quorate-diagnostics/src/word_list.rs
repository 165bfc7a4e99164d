//! Word lists that are kept as text files: sections under a `[name]`, entries divided by commas or lines, and comments,
//! lines that begin with `#`.

use std::collections::HashSet;
use std::sync::OnceLock;

/// The entries of a section.
///
/// # Panics
/// If the file has no such section; the files are compiled in.
pub fn section(file: &'static str, name: &str) -> impl Iterator<Item = &'static str> {
    let is_name =
        move |line: &str| line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) == Some(name);
    let start = file.lines().position(is_name);
    assert!(start.is_some(), "a word list has no section `{name}`");
    let rest = file.lines().skip(start.unwrap_or_default() + 1);
    let lines = rest.take_while(|line| !line.starts_with('[')).filter(|line| !line.starts_with('#'));
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|entry| !entry.is_empty())
}

/// A section in which words are looked up.
#[derive(Debug)]
pub struct WordList {
    file: &'static str,
    section: &'static str,
    entries: OnceLock<HashSet<&'static str>>,
}

impl WordList {
    /// Reads nothing yet.
    pub const fn new(file: &'static str, section: &'static str) -> Self {
        WordList { file, section, entries: OnceLock::new() }
    }

    /// Whether an entry is there, written the same way.
    ///
    /// # Panics
    /// If the file has no such section.
    pub fn contains(&self, entry: &str) -> bool {
        self.entries.get_or_init(|| section(self.file, self.section).collect()).contains(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# What it is for.\n\n[a]\none, two words,\n# and\nthree\n\n[b]\nfour\n";

    #[test]
    fn a_section_has_its_entries_without_comments() {
        assert_eq!(section(FILE, "a").collect::<Vec<_>>(), ["one", "two words", "three"]);
        assert!(WordList::new(FILE, "b").contains("four") && !WordList::new(FILE, "b").contains("three"));
    }

    #[test]
    #[should_panic(expected = "no section `c`")]
    fn a_section_that_is_missing_is_a_bug() {
        section(FILE, "c").for_each(drop);
    }
}
