//! Reads and hashes the files that a council names: prompts, context documents and tier rules.
//!
//! Globs have the semantics of the public tool's tier rules. `*` and `?` match any character including `/`; `[abc]`, `[a-z]` and
//! `[!a]` are classes; an unclosed `[` is literal; a `**/` at the start of the pattern or after a `/` also matches zero
//! directories. No character escapes another, every pattern is valid, and matching is case-sensitive.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::codes::{self, RefusalCode};
use quorate_diagnostics::{Body, Report};
use serde::de::IgnoredAny;

use super::{BUILTIN_PREFIX, ContextFile, Prompt, schema};
use crate::Source;
use crate::doctype::compiled;
use crate::tree::open::sha256_hex;
use crate::tree::reader::nearest;
use crate::tree::{Field, Format, decode, open};
use crate::workspace::SourceError;

/// The files outside of the council's directory that the caller allows to read.
#[derive(Clone, Copy)]
pub struct FileAccess<'s> {
    /// Searched for context documents that are not beside the council.
    pub working_dir: Option<&'s Path>,
    /// Whether a document in `working_dir` may be read.
    pub may_read: &'s dyn Fn(&Path) -> bool,
    /// Whether a path is in the workspace after resolving links. Tier rules have to be, since diagnostics quote their lines.
    pub is_in_workspace: &'s dyn Fn(&Path) -> bool,
}

impl FileAccess<'_> {
    /// Only the council's directory.
    pub const NONE: FileAccess<'static> =
        FileAccess { working_dir: None, may_read: &|_| false, is_in_workspace: &|_| true };
}

/// Reads the files of one council, and collects their hashes.
pub(super) struct CouncilFiles<'s> {
    source: &'s dyn Source,
    dir: PathBuf,
    /// The council's path as messages show it.
    display_name: String,
    access: FileAccess<'s>,
    reports: Vec<Report>,
    texts: BTreeMap<String, Arc<str>>,
    hashes: Vec<(String, String)>,
}

/// Label and codes of one kind of file.
struct FileKind {
    label: &'static str,
    missing: RefusalCode,
    unreadable: RefusalCode,
    /// Whether the working directory is searched as well.
    tries_working_dir: bool,
}

const PROMPT: FileKind = FileKind {
    label: "prompt",
    missing: codes::PROMPT_MISSING,
    unreadable: codes::PROMPT_UNREADABLE,
    tries_working_dir: false,
};
const CONTEXT: FileKind = FileKind {
    label: "context document",
    missing: codes::CONTEXT_MISSING,
    unreadable: codes::CONTEXT_UNREADABLE,
    tries_working_dir: true,
};

impl<'s> CouncilFiles<'s> {
    pub(super) fn new(source: &'s dyn Source, dir: &Path, shown: &str, access: FileAccess<'s>) -> Self {
        let (dir, shown) = (dir.to_path_buf(), shown.to_owned());
        CouncilFiles {
            source,
            dir,
            display_name: shown,
            access,
            reports: Vec::new(),
            texts: BTreeMap::new(),
            hashes: Vec::new(),
        }
    }

    pub(super) fn record_hash(&mut self, name: &str, sha256: String) {
        if !self.hashes.iter().any(|(known, _)| known == name) {
            self.hashes.push((name.to_owned(), sha256));
        }
    }

    /// The hashes in the order of first use, and the diagnostics of tier rule files.
    pub(super) fn finish(self) -> (Vec<(String, String)>, Vec<Report>) {
        (self.hashes, self.reports)
    }

    /// Reads a file of tier rules, which has them at its top level or below `tier_rules`.
    pub(super) fn tier_rules<T>(&mut self, field: &Field<'_>, read: fn(&Field<'_>) -> Vec<T>) -> Vec<T> {
        let written = field.text().unwrap_or_default();
        let path = self.dir.join(written);
        if !(self.access.is_in_workspace)(&path) {
            let body = Body::new(format!("the tier rules `{written}` lie outside of the workspace"));
            field.refuse(codes::CONFIG_UNREADABLE, body.help("put them beside this file"));
            return Vec::new();
        }
        let display_path = Path::new(&self.display_name).with_file_name("").join(written);
        let display_name = display_path.strip_prefix("./").unwrap_or(&display_path).display().to_string();
        let Ok(opened) = open(self.source, &path, &display_name, Format::Yaml, codes::COUNCIL_INVALID) else {
            let body = Body::new(format!("the tier rules `{written}` cannot be read"));
            let help = format!("paths are relative to {}", self.display_dir());
            field.refuse(codes::CONFIG_MISSING, body.help(help));
            return Vec::new();
        };
        self.record_hash(written, opened.sha256.clone());
        let is_below = opened.root.as_ref().is_some_and(|root| root.key("tier_rules").is_some());
        let schema = if is_below { compiled::<schema::RulesFile>() } else { compiled::<schema::TierRules>() };
        let mut rules = Vec::new();
        let _: Option<IgnoredAny> =
            opened.read(&schema, |root| rules = read(root.get("tier_rules").as_ref().unwrap_or(root)));
        self.reports.push(opened.source_file.into_report());
        rules
    }

    /// Checks a prompt: a path, or `builtin:` and a name.
    pub(super) fn check_prompt(&mut self, field: &Field<'_>) {
        let Some(written) = field.text() else { return };
        let Some(name) = written.strip_prefix(BUILTIN_PREFIX) else {
            self.check_text(field, written, &PROMPT);
            return;
        };
        match super::built_in_prompt(name) {
            Some(prompt) => self.record_hash(written, sha256_hex(prompt.text.as_bytes())),
            None => {
                let names: Vec<_> = super::built_in_prompts().map(|(name, _)| name).collect();
                let help = match nearest(name, &names) {
                    Some(near) => format!("did you mean `{BUILTIN_PREFIX}{near}`?"),
                    None => format!("the built-in prompts are: {}", names.join(", ")),
                };
                let body = Body::new(format!("unknown built-in prompt `{name}`")).help(help);
                field.refuse(codes::PROMPT_MISSING, body);
            }
        }
    }

    pub(super) fn check_context(&mut self, field: &Field<'_>) {
        if let Some(written) = field.text() {
            self.check_text(field, written, &CONTEXT);
        }
    }

    /// A checked prompt.
    pub(super) fn prompt(&self, written: &str) -> Option<Prompt> {
        match written.strip_prefix(BUILTIN_PREFIX) {
            Some(name) => super::built_in_prompt(name),
            None => Some(Prompt { path: Some(written.to_owned()), text: self.texts.get(written)?.clone() }),
        }
    }

    /// A checked document.
    pub(super) fn context(&self, path: String) -> Option<ContextFile> {
        Some(ContextFile { text: self.texts.get(&path)?.clone(), path })
    }

    fn check_text(&mut self, field: &Field<'_>, written: &str, kind: &FileKind) {
        if self.texts.contains_key(written) {
            return;
        }
        let label = kind.label;
        let unreadable =
            |why: String| field.refuse(kind.unreadable, Body::new(format!("the {label} `{written}` {why}")));
        // The hash of a file in the working directory is recorded under its full path.
        let mut name = written.to_owned();
        let mut read = self.source.read(&self.dir.join(written));
        if let (Err(SourceError::Missing), Some(path)) = (&read, self.working_dir_path(written, kind)) {
            read = self.source.read(&path);
            name = path.display().to_string();
        }
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(SourceError::Missing) => {
                let body = Body::new(format!("the {label} `{written}` does not exist"));
                let also = match (kind.tries_working_dir, self.access.working_dir) {
                    (true, Some(_)) => "; in the workspace the working directory is tried, too",
                    _ => "",
                };
                let help = format!("paths are relative to {}{also}", self.display_dir());
                return field.refuse(kind.missing, body.help(help));
            }
            Err(error) => return unreadable(format!("cannot be read: {error}")),
        };
        let sha256 = sha256_hex(&bytes);
        match decode(bytes) {
            Err(error) => unreadable(format!("cannot be read: {error}")),
            Ok(text) if text.trim().is_empty() => unreadable("is empty".to_owned()),
            Ok(text) => {
                self.record_hash(&name, sha256);
                self.texts.insert(written.to_owned(), text.into());
            }
        }
    }

    /// The path of a file in the working directory, if it may be read.
    fn working_dir_path(&self, written: &str, kind: &FileKind) -> Option<PathBuf> {
        let path = self.access.working_dir.filter(|_| kind.tries_working_dir)?.join(written);
        (self.access.may_read)(&path).then_some(path)
    }

    fn display_dir(&self) -> String {
        match self.dir.to_string_lossy() {
            here if here == "." => "the directory of this file".to_owned(),
            dir => format!("`{dir}`, the directory of this file"),
        }
    }
}

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
