//! The patterns that choose texts of a pull request. A pattern also chooses the file of exactly that name, since names such
//! as `app/[slug]/page.md` are common.

use globset::GlobMatcher;
use quorate_diagnostics::{Body, codes};

use crate::service::artifact;
use crate::service::error::{Error, ErrorKind};

pub(super) struct Patterns(Vec<Pattern>);

struct Pattern {
    written: String,
    /// `None` for an invalid pattern such as `[post-id].md`, which must name a file.
    glob: Option<GlobMatcher>,
}

impl Patterns {
    /// # Errors
    /// If a pattern cannot match any path of a repository: it would choose nothing, and every change would pass.
    pub(super) fn new(patterns: &[String]) -> Result<Patterns, Error> {
        let pattern = |written: &String| {
            ensure_fits_a_path(written)?;
            Ok(Pattern { written: written.clone(), glob: artifact::path_matcher(written).ok() })
        };
        patterns.iter().map(pattern).collect::<Result<_, _>>().map(Patterns)
    }

    /// Whether a path of a pull request is chosen.
    pub(super) fn choose(&self, path: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(path))
    }

    /// Whether a path below this one could be chosen. Paths behind a link are invisible, so a link there matters.
    pub(super) fn choose_below(&self, path: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches_below(path))
    }

    /// The patterns that match none of these paths.
    pub(super) fn unmatched<'p>(&self, paths: impl Iterator<Item = &'p str>) -> Vec<&str> {
        let mut left: Vec<&Pattern> = self.0.iter().collect();
        for path in paths {
            left.retain(|pattern| !pattern.matches(path));
        }
        left.into_iter().map(|pattern| &*pattern.written).collect()
    }
}

/// Refuses an invalid pattern that matches no file: a typing error would let every change pass.
///
/// # Errors
/// The reason why it is invalid.
pub(super) fn ensure_readable(unmatched: &[&str]) -> Result<(), Error> {
    unmatched.iter().try_for_each(|written| artifact::path_matcher(written).map(drop))
}

impl Pattern {
    fn matches(&self, path: &str) -> bool {
        self.written == path || self.glob.as_ref().is_some_and(|glob| glob.is_match(path))
    }

    /// Whether it matches a path that begins with this folder. Where alternatives may contain slashes, it is taken to match:
    /// the change is then not reviewed, and fails.
    fn matches_below(&self, folder: &str) -> bool {
        let is_named = self.written.strip_prefix(folder).is_some_and(|below| below.starts_with('/'));
        if is_named || self.glob.is_none() {
            return is_named;
        }
        let mut parts = self.written.split('/');
        for name in folder.split('/') {
            let Some(part) = parts.next() else { return false };
            // A part of alternatives with slashes is no pattern.
            match artifact::path_matcher(part) {
                Err(_) => return true,
                Ok(_) if part.contains("**") => return true,
                Ok(glob) if glob.is_match(name) => {}
                Ok(_) => return false,
            }
        }
        parts.next().is_some()
    }
}

/// # Errors
/// If a pattern matches no path, or not the paths that it suggests.
fn ensure_fits_a_path(pattern: &str) -> Result<(), Error> {
    let refuse = |message: String, help: &str| {
        Err(Error::new(ErrorKind::InvalidRequest, codes::USAGE, Body::new(message).help(help)))
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
            "write 'drafts/**/*.md' for any depth, and 'drafts/*.md' for one folder",
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
            // Its alternatives are not told apart.
            ("{posts/de,drafts}/*.md", "posts/en", true),
            ("**/*.md", "vendor/lib", true),
            ("d?/[ab]/*.md", "dé/a", false),
            ("d?/[ab]/*.md", "dx/a", true),
        ] {
            assert_eq!(patterns(&[written]).choose_below(folder), expected, "{written} {folder}");
        }
    }

    #[test]
    fn a_pattern_also_chooses_the_file_of_its_name() {
        for name in [
            "app/[slug]/page.md",
            "app/[...slug]/page.md",
            "app/[[...slug]]/page.md",
            "app/[post-id]/page.md",
            "app/(group)/page.md",
            "docs/{a}.md",
            "docs/{a,b.md",
            "docs/what*.md",
            "docs/why?.md",
            "docs/a[b.md",
        ] {
            let patterns = patterns(&["x/*.md", name]);
            assert!(patterns.choose(name), "{name}");
            assert!(patterns.unmatched(["x/a.md", name].into_iter()).is_empty(), "{name}");
            assert!(patterns.choose_below(name.split('/').next().unwrap_or_default()), "{name}");
            assert!(!patterns.choose(&format!("{name}/other")), "{name}");
        }
        let folder = patterns(&["app/[post-id]/page.md"]);
        assert!(folder.choose_below("app/[post-id]") && !folder.choose_below("app/[post"));
        // A name that is also a pattern chooses both.
        let both = patterns(&["app/[slug]/page.md"]);
        assert!(both.choose("app/[slug]/page.md") && both.choose("app/s/page.md"));
        assert!(ensure_readable(&["app/[slug]/page.md", "a/*.md"]).is_ok());
        assert!(ensure_readable(&["a/*.md", "docs/{a,b.md"]).is_err());
    }

    #[test]
    fn patterns_without_a_path_are_told() {
        let patterns = patterns(&["drafts/**/*.md", "\"posts/*.md\"", "drafts"]);
        let paths = ["drafts/a/b.md", "posts/c.md"];
        assert_eq!(patterns.unmatched(paths.into_iter()), ["\"posts/*.md\"", "drafts"]);
        assert!(patterns.choose("drafts/a/b.md") && !patterns.choose("posts/c.md"));
    }
}
