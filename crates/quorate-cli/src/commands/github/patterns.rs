//! The patterns that choose texts of a pull request by their paths.

use globset::GlobMatcher;
use quorate_diagnostics::{Body, codes};
use regex_automata::Anchored;
use regex_automata::hybrid::dfa::DFA;
use regex_automata::nfa::thompson;
use regex_automata::util::{start, syntax};

use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::subjects;

pub(super) struct Patterns(Vec<Pattern>);

struct Pattern {
    written: String,
    matcher: GlobMatcher,
    /// The same, byte by byte; `None` where it is too large.
    automaton: Option<DFA>,
}

impl Patterns {
    /// # Errors
    /// When a pattern cannot be read, or matches no path of a repository: then it would choose nothing, and all would pass.
    pub(super) fn new(patterns: &[String]) -> Result<Patterns, ServiceError> {
        let pattern = |written: &String| {
            ensure_fits_a_path(written)?;
            let matcher = subjects::path_matcher(written)?;
            // As globset builds its own.
            let automaton = DFA::builder()
                .syntax(syntax::Config::new().utf8(false).dot_matches_new_line(true))
                .thompson(thompson::Config::new().utf8(false))
                .build(matcher.glob().regex());
            Ok(Pattern { written: written.clone(), matcher, automaton: automaton.ok() })
        };
        patterns.iter().map(pattern).collect::<Result<_, _>>().map(Patterns)
    }

    /// Whether a path of a pull request is chosen.
    pub(super) fn choose(&self, path: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matcher.is_match(path))
    }

    /// Whether a path below this one could be chosen: if it is no folder but a link, that path is not seen.
    pub(super) fn choose_below(&self, path: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches_below(path))
    }

    /// The patterns that match none of these paths.
    pub(super) fn unmatched<'p>(&self, paths: impl Iterator<Item = &'p str>) -> Vec<&str> {
        let mut left: Vec<&Pattern> = self.0.iter().collect();
        for path in paths {
            left.retain(|pattern| !pattern.matcher.is_match(path));
        }
        left.into_iter().map(|pattern| &*pattern.written).collect()
    }
}

impl Pattern {
    /// Whether it matches a path that begins with this folder.
    fn matches_below(&self, folder: &str) -> bool {
        // What cannot be told counts as a match: the change is then not reviewed, and fails.
        let Some(automaton) = &self.automaton else { return true };
        let mut cache = automaton.create_cache();
        let start = start::Config::new().anchored(Anchored::Yes);
        let Ok(mut state) = automaton.start_state(&mut cache, &start) else { return true };
        for byte in folder.bytes().chain([b'/']) {
            match automaton.next_state(&mut cache, state, byte) {
                Ok(next) if next.is_dead() => return false,
                Ok(next) => state = next,
                Err(_) => return true,
            }
        }
        true
    }
}

/// # Errors
/// When a pattern matches no path, or not those that it seems to.
fn ensure_fits_a_path(pattern: &str) -> Result<(), ServiceError> {
    let refuse = |message: String, help: &str| {
        Err(ServiceError::new(ExitClass::Usage, codes::USAGE, Body::new(message).help(help)))
    };
    if pattern.trim().is_empty() {
        return refuse("a pattern is empty".to_owned(), "write one such as 'drafts/**/*.md'");
    }
    let has_blanks = pattern.trim() != pattern || pattern.contains(char::is_control);
    let mut parts = pattern.split('/');
    if has_blanks || pattern.starts_with('!') || parts.any(|part| matches!(part, "" | "." | "..")) {
        return refuse(
            format!("`{pattern}` matches no path of a repository"),
            "write a path from the repository's root, such as 'drafts/**/*.md'",
        );
    }
    if has_partial_globstar(pattern) {
        return refuse(
            format!("in `{pattern}` the `**` is not between slashes, and would match no folders"),
            "write 'drafts/**/*.md' for what lies at any depth, and 'drafts/*.md' for one folder",
        );
    }
    Ok(())
}

/// Whether a `**` is less than a whole part of the path, or of an alternative.
fn has_partial_globstar(pattern: &str) -> bool {
    pattern.match_indices("**").any(|(at, globstar)| {
        let (before, after) = (&pattern[..at], &pattern[at + globstar.len()..]);
        let begins = before.is_empty() || before.ends_with(['/', '{', ',']);
        let ends = after.is_empty() || after.starts_with(['/', '}', ',']);
        !begins || !ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(written: &[&str]) -> Patterns {
        let written: Vec<String> = written.iter().map(|&pattern| pattern.to_owned()).collect();
        Patterns::new(&written).unwrap_or_else(|error| panic!("{written:?}: {}", error.first_message()))
    }

    #[test]
    fn a_pattern_that_does_not_mean_what_it_says_is_refused() {
        for written in [
            "",
            " ",
            " a",
            "a\r",
            "./a",
            "/a",
            "a/",
            "../a",
            "a//b",
            "!a",
            "a/**.md",
            "a**/b",
            "{a/**.md,b}",
            "***",
        ] {
            assert!(Patterns::new(&[written.to_owned()]).is_err(), "{written}");
        }
        patterns(&["**", "**/*.md", "a/**", "a/**/b", "{a/**,b/**/*.md}", "a b/*.md", ".a/b.md"]);
    }

    #[test]
    fn a_folder_above_chosen_paths_is_known() {
        for (written, folder, expected) in [
            ("drafts/**/*.md", "drafts", true),
            ("drafts/**/*.md", "drafts/more", true),
            ("drafts/**/*.md", "draft", false),
            ("drafts/**/*.md", "draftsmen", false),
            ("drafts/*.md", "drafts", true),
            ("drafts/*.md", "drafts/more", false),
            ("drafts/a.md", "drafts/a.md", false),
            ("{posts/de,drafts}/*.md", "posts", true),
            ("{posts/de,drafts}/*.md", "posts/en", false),
            ("**/*.md", "vendor/lib", true),
            ("d?/[ab]/*.md", "dé/a", false),
            ("d?/[ab]/*.md", "dx/a", true),
        ] {
            assert_eq!(patterns(&[written]).choose_below(folder), expected, "{written} {folder}");
        }
    }

    #[test]
    fn patterns_without_a_path_are_told() {
        let patterns = patterns(&["drafts/**/*.md", "\"posts/*.md\"", "drafts"]);
        let paths = ["drafts/a/b.md", "posts/c.md"];
        assert_eq!(patterns.unmatched(paths.into_iter()), ["\"posts/*.md\"", "drafts"]);
        assert!(patterns.choose("drafts/a/b.md") && !patterns.choose("posts/c.md"));
    }
}
