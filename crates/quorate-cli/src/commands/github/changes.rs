//! The texts that a pull request adds or changes, the patterns that choose them, and their reviews.
//!
//! A pattern also chooses the file of exactly that name, since names such as `app/[slug]/page.md` are common.

use std::path::{Component, Path};

use globset::GlobMatcher;
use quorate::service::artifact::{self, Artifact};
use quorate::service::environment::Environment;
use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::redaction::CurrentRedactor;
use quorate::service::report::{Review, verdict_exit_code};
use quorate::service::review::{ReviewRequest, TierPolicy};
use quorate::service::session::LedgerSession;
use quorate::service::workspace::PathOverrides;
use quorate_diagnostics::{Body, Place, codes};
use quorate_kernel::budget::Caps;
use quorate_kernel::record::Spent;
use regex_automata::Anchored;
use regex_automata::hybrid::dfa::DFA;
use regex_automata::nfa::thompson;
use regex_automata::util::{start, syntax};

use super::error_format;
use crate::arguments::{FailOnArguments, ReviewArguments};
use crate::commands::review::{Outcome, ReviewSettings, exit_of, rank, review};
use crate::exit::Exit;
use crate::render::{self, DigestEntry, Extent, Format, inline};
use crate::terminal::Terminal;

/// The most texts of a pull request that are reviewed.
pub(super) const MAX_TEXTS: usize = 200;

/// A text that a pull request adds or changes.
pub(super) struct Change {
    /// From the repository's root.
    path: String,
    /// Located at its path in the checkout of the base, which determines its configuration.
    pub(super) artifact: Result<Artifact, ServiceError>,
}

impl Change {
    /// A changed text; `bytes` is `None` for a link or another repository.
    pub(super) fn new(path: &str, bytes: Option<Vec<u8>>, environment: &Environment) -> Change {
        // Only the name is redacted, not the composed message: a marker that begins in one part and ends in another would
        // remove everything between them. Recorded answers are redacted already.
        let name = environment.redactor.redact_text(path);
        // Git checks out no path that leads out of the repository.
        let is_inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        let artifact = match bytes.filter(|_| is_inside) {
            Some(bytes) => {
                artifact::from_bytes(name.clone(), Some(environment.directory.join(path)), Ok(bytes))
            }
            None => {
                let body = Body::new(format!("{name} is a link or another repository, not a file"))
                    .help("replace it with the texts themselves, or choose other texts");
                Err(ServiceError::configuration(codes::ARTIFACT_UNREADABLE, body))
            }
        };
        Change { artifact: artifact.map_err(|error| placed(error, &name)), path: name }
    }
}

/// A changed text with the result of its review.
pub(super) struct Reviewed {
    pub(super) path: String,
    pub(super) outcome: Outcome,
    /// Why its report could not be kept.
    pub(super) unkept: Option<ServiceError>,
}

impl Reviewed {
    pub(super) fn exit(&self) -> Exit {
        self.unkept.as_ref().map_or_else(|| exit_of(&self.outcome), |error| Exit::verdict(error.class.code()))
    }

    /// The exit code of the verdict, regardless of --fail-on.
    fn severity(&self) -> u8 {
        match self.report().and_then(|report| report.verdict) {
            Some(verdict) => rank(Exit::verdict(verdict_exit_code(verdict))),
            None => u8::MAX,
        }
    }

    pub(super) fn report(&self) -> Option<&Review> {
        match &self.outcome {
            Outcome::Judged(report) => Some(report),
            Outcome::Skipped { .. } | Outcome::Failed(_) | Outcome::Interrupted => None,
        }
    }

    fn entry(&self, redactor: &CurrentRedactor) -> DigestEntry<'_> {
        let result = self.report().ok_or_else(|| match &self.outcome {
            Outcome::Failed(error) => redactor.redact_text(&error.first_message()),
            Outcome::Judged(_) | Outcome::Skipped { .. } | Outcome::Interrupted => String::new(),
        });
        DigestEntry { path: &self.path, result }
    }
}

/// All reviews as Markdown, cut to a maximum number of characters. `about` is the line below the heading.
pub(super) fn digest(reviewed: &[Reviewed], about: &str, most: usize, redactor: &CurrentRedactor) -> String {
    let entries: Vec<DigestEntry<'_>> = reviewed.iter().map(|review| review.entry(redactor)).collect();
    render::digest(&entries, about, most)
}

/// Markdown with the reason for missing reviews. `commit` can be empty.
pub(super) fn not_reviewed(commit: &str, why: &str) -> String {
    let commit = if commit.is_empty() { String::new() } else { format!("Commit {}: ", inline(commit)) };
    format!("### Quorate: not reviewed\n\n{commit}{}.\n", inline(why))
}

/// Warns of patterns that match no file of the repository.
pub(super) fn warn_of_unmatched(patterns: &[&str], terminal: &Terminal) {
    let mut report = quorate_diagnostics::Report::new();
    for pattern in patterns {
        let body = Body::new(format!("no file of the repository matches `{pattern}`"));
        let help = "give each pattern as its own argument, with paths from the repository's root";
        report.warn(codes::PATTERN_UNMATCHED, body.help(help));
    }
    match error_format() {
        Format::Github => {
            terminal.data_as(Format::Github, &render::diagnostics(&report, Format::Github, terminal.stdout))
        }
        format => terminal.status(&render::diagnostics(&report, format, terminal.stderr)),
    }
}

pub(super) fn hint_at_nothing(reviewed: &[Reviewed], terminal: &Terminal) {
    if reviewed.is_empty() {
        terminal.hint("no text that the patterns choose is changed");
    }
}

/// The reviews were interrupted.
pub(super) struct Interrupted;

/// The settings for changes of a pull request. Like files named on the command line, they are reviewed regardless of tier.
pub(super) fn settings(fail: FailOnArguments, review: &ReviewArguments) -> ReviewSettings {
    ReviewSettings {
        format: Format::Github,
        extent: Extent::Screen,
        fail,
        places: PathOverrides::default(),
        request: ReviewRequest {
            artifact_type: None,
            tier: None,
            tier_policy: TierPolicy::Ignore,
            policy: review.policy(),
            options: review.answers.options(),
        },
    }
}

/// The error of a pull request that changes too much.
pub(super) fn too_many_texts() -> ServiceError {
    let body = Body::new(format!("more than {MAX_TEXTS} texts are changed"))
        .help("split the change, or choose fewer with narrower patterns");
    ServiceError::configuration(codes::GITHUB_UNUSABLE, body)
}

/// Reviews changes one after the other in the environment of the base, and sorts the worst verdict first. The caps of
/// `settings` apply to all changes together. `keep` receives each report before its session closes.
///
/// # Errors
/// If the process is told to stop.
pub(super) async fn review_all(
    changes: Vec<Change>,
    mut settings: ReviewSettings,
    environment: &Environment,
    terminal: &Terminal,
    keep: impl AsyncFn(&LedgerSession, &Review) -> Result<(), ServiceError>,
) -> Result<Vec<Reviewed>, Interrupted> {
    let mut all = Vec::with_capacity(changes.len());
    for Change { path, artifact } in changes {
        let (mut outcome, session) = match artifact {
            Err(error) => (Outcome::Failed(error), None),
            Ok(artifact) => Box::pin(review(artifact, &settings, environment, terminal)).await,
        };
        if let Outcome::Judged(report) = &mut outcome {
            // Its name is from the repository's root already.
            report.repository_path = None;
        }
        if matches!(outcome, Outcome::Interrupted) {
            return Err(Interrupted);
        }
        let caps = &mut settings.request.options.caps;
        match &outcome {
            Outcome::Judged(report) => *caps = left(*caps, report),
            // The cost of a failed review is unknown.
            Outcome::Failed(_) if session.is_some() => *caps = nothing_of(*caps),
            Outcome::Failed(_) | Outcome::Skipped { .. } | Outcome::Interrupted => {}
        }
        let mut unkept = None;
        if let Some(session) = session {
            if let Outcome::Judged(report) = &outcome {
                unkept = keep(&session, report).await.err();
            }
            session.close().await;
        }
        all.push(Reviewed { path, outcome, unkept });
    }
    all.sort_by_key(|reviewed| std::cmp::Reverse(reviewed.severity()));
    Ok(all)
}

/// An error about a whole file, whose annotation is at its first line.
fn placed(mut error: ServiceError, path: &str) -> ServiceError {
    for refusal in &mut error.report.refusals {
        let place = Place { file: path.into(), span: 0..0, path: String::new() };
        refusal.body.place.get_or_insert(place);
    }
    error
}

/// These caps, used up.
fn nothing_of(caps: Caps) -> Caps {
    Caps {
        calls: caps.calls.map(|_| 0),
        tokens: caps.tokens.map(|_| 0),
        usd_nanos: caps.usd_nanos.map(|_| 0),
    }
}

/// The caps that remain after a review. Unknown usage counts as the whole cap.
fn left(caps: Caps, report: &Review) -> Caps {
    let usage = &report.usage;
    let known =
        |cap: Option<u64>, is_known: bool| if is_known || report.calls == 0 { cap } else { cap.map(|_| 0) };
    let caps = Caps {
        calls: caps.calls,
        tokens: known(
            caps.tokens,
            !report.model_asked || usage.tokens_in.is_some() && usage.tokens_out.is_some(),
        ),
        usd_nanos: known(caps.usd_nanos, !report.model_asked || usage.usd_nanos.is_some()),
    };
    caps.less(&Spent { calls: Some(u64::from(report.calls)), ..Spent::from(usage) })
}

pub(super) struct Patterns(Vec<Pattern>);

struct Pattern {
    written: String,
    /// `None` for an invalid pattern such as `[post-id].md`, which must name a file.
    glob: Option<Glob>,
}

struct Glob {
    matcher: GlobMatcher,
    /// The same as an automaton; `None` if that is too large.
    automaton: Option<DFA>,
}

impl Patterns {
    /// # Errors
    /// If a pattern cannot match any path of a repository: it would choose nothing, and every change would pass.
    pub(super) fn new(patterns: &[String]) -> Result<Patterns, ServiceError> {
        let pattern = |written: &String| {
            ensure_fits_a_path(written)?;
            let glob = artifact::path_matcher(written).ok().map(|matcher| {
                // The same options that globset uses.
                let automaton = DFA::builder()
                    .syntax(syntax::Config::new().utf8(false).dot_matches_new_line(true))
                    .thompson(thompson::Config::new().utf8(false))
                    .build(matcher.glob().regex());
                Glob { matcher, automaton: automaton.ok() }
            });
            Ok(Pattern { written: written.clone(), glob })
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
pub(super) fn ensure_readable(unmatched: &[&str]) -> Result<(), ServiceError> {
    unmatched.iter().try_for_each(|written| artifact::path_matcher(written).map(drop))
}

impl Pattern {
    fn matches(&self, path: &str) -> bool {
        self.written == path || self.glob.as_ref().is_some_and(|glob| glob.matcher.is_match(path))
    }

    /// Whether it matches a path that begins with this folder.
    fn matches_below(&self, folder: &str) -> bool {
        let is_named = self.written.strip_prefix(folder).is_some_and(|below| below.starts_with('/'));
        is_named || self.glob.as_ref().is_some_and(|glob| glob.matches_below(folder))
    }
}

impl Glob {
    fn matches_below(&self, folder: &str) -> bool {
        // An undecidable case counts as a match: the change is then not reviewed, and fails.
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
/// If a pattern matches no path, or not the paths that it suggests.
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
            ("{posts/de,drafts}/*.md", "posts/en", false),
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
