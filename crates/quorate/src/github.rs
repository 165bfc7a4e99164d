//! Reviewing the texts that a pull request changes, in workflows of GitHub Actions. The texts come from the pull request,
//! their configuration always from its base.

mod api;
mod comment;
mod git;
mod patterns;

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::render::machine::diagnostics_json;
use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_kernel::budget::Caps;
use quorate_kernel::observer::Observer;
use quorate_kernel::record::Spent;
use quorate_kernel::redact::Redactor;
use quorate_manifest::money::Money;
use quorate_protocol::Name;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::builder::Quorate;
use super::error::Error;
use super::events::{Interruption, Run};
use super::reports::{self, ReportScope};
use super::review::REVIEWS;
use super::service::artifact::{self, Artifact};
use super::service::disk;
use super::service::environment::Environment;
use super::service::report::{Review, verdict_exit_code};
use super::service::review::{self, ReviewOutcome, ReviewRequest, severity};
use super::service::session::LedgerSession;
use super::service::workspace::PathOverrides;
use super::session::Outcome;
use super::view::layout::truncate;
use super::view::wording::amount;
use super::view::{Doc, Extent, Table, Text};
use git::{Becomes, GitRepository};
use patterns::{Patterns, ensure_readable};

pub use super::reports::ReportFormat;

/// The most texts of a pull request that are reviewed.
const MAX_TEXTS: usize = 200;
/// The most characters of a step's summary. GitHub shows one of up to 1 MiB.
const MAX_SUMMARY_CHARS: usize = 250_000;

/// Which changed texts of a pull request are reviewed, and where the verdicts go.
///
/// The variables of the job are read from those of the workspace ([`Builder::variables`](crate::Builder::variables)).
#[derive(Debug, Clone, Default)]
pub struct GithubRequest {
    /// Paths from the repository's root, as patterns such as `drafts/**/*.md`.
    pub patterns: Vec<String>,
    /// How each text is reviewed. The caps apply to all texts together.
    pub review: ReviewRequest,
    /// Where the verdicts go.
    pub target: GithubTarget,
}

/// Where the verdicts on a pull request go.
#[derive(Debug, Clone)]
pub enum GithubTarget {
    /// Into the step's summary (`GITHUB_STEP_SUMMARY`) and a directory of reports. The texts are those that the checked out
    /// commit changes.
    Step {
        /// The commit that provides the configuration and that changes are compared with; default: the first parent of
        /// the merge that GitHub makes of a pull request.
        base: Option<String>,
        /// A directory for `reviews.json` and a page for each review, and what draws the pages.
        reports: Option<(PathBuf, ReportFormat)>,
    },
    /// Into one comment on the pull request, which is kept up to date, in a job that `workflow_run` starts. The texts come
    /// from GitHub's API; `GITHUB_TOKEN` is required.
    Comment {
        /// The label with which a maintainer lets a model review a pull request from a fork, once.
        label: String,
        /// The login of the token's user.
        author: String,
    },
}

impl Default for GithubTarget {
    fn default() -> Self {
        GithubTarget::Step { base: None, reports: None }
    }
}

/// How the reviews of a pull request ended.
#[derive(Debug)]
pub enum GithubOutcome {
    /// The texts were reviewed.
    Reviewed(ChangedTexts),
    /// Nothing was reviewed, for this reason.
    NotReviewed(String),
    /// The caller interrupted it.
    Interrupted,
}

/// The reviews of the texts that a pull request changes.
#[derive(Debug, Default)]
pub struct ChangedTexts {
    /// The worst verdict comes first.
    pub texts: Vec<ChangedText>,
    /// The exit code of a command with these reviews.
    pub exit_code: u8,
    /// Why the reports, the summary or the comment could not be written.
    pub unsaved: Option<Error>,
}

impl ChangedTexts {
    fn saved(self, saved: Result<(), Error>) -> ChangedTexts {
        let unsaved = saved.err();
        let exit_code = unsaved.as_ref().map_or(self.exit_code, Error::exit_code);
        ChangedTexts { exit_code, unsaved, ..self }
    }

    /// The reviews.
    pub fn reviews(&self) -> Vec<&Review> {
        self.texts.iter().filter_map(|text| text.result.as_ref().ok()).collect()
    }

    /// A table of all texts and then each review, folded, as Markdown. The reviews that exceed `most` characters are left
    /// out. `about` is the line below the heading.
    fn digest(&self, redactor: &Redactor, about: impl Into<Text>, most: usize) -> String {
        let heading = match &self.texts[..] {
            [] => Text::from("no text to review"),
            [only] => {
                Text::from(format!("{} for ", only.word())).and(Text::code(truncate(&only.path, MAX_PATH)))
            }
            several => Text::from(counts(several)),
        };
        let mut doc = Doc::new();
        doc.heading(Text::from("Quorate: ").and(heading));
        let about = about.into();
        if !about.is_empty() {
            doc.line(about);
        }
        if self.texts.is_empty() {
            doc.line("No reviewed text has changed.");
            return doc.markdown();
        }
        let mut table = Table::new(["verdict", "text", "why"]);
        for text in self.texts.iter().take(MAX_ROWS) {
            let path = Text::code(truncate(&text.path, MAX_PATH));
            table.row([Text::from(text.word()), path, truncate(&text.why(redactor), MAX_REASON).into()]);
        }
        doc.table(table);
        if let more @ 1.. = self.texts.len().saturating_sub(MAX_ROWS) {
            doc.line(format!("… and {}.", amount(more as u64, "more text")));
        }
        let mut out = doc.markdown();
        let note = "\nThe other reviews are too long to be shown here.\n";
        let mut left = most.saturating_sub(out.chars().count() + note.len());
        for text in &self.texts {
            let Ok(review) = &text.result else { continue };
            let mut details = Doc::new();
            let summary =
                Text::from(format!("{}: ", text.word())).and(Text::code(truncate(&text.path, MAX_PATH)));
            details.fold(summary, review.doc(Extent::Screen));
            let details = format!("\n{}", details.markdown());
            let Some(rest) = left.checked_sub(details.chars().count()) else {
                out.push_str(note);
                break;
            };
            left = rest;
            out.push_str(&details);
        }
        out
    }
}

/// The most rows of the table.
const MAX_ROWS: usize = 100;
/// The longest reason in the table, in characters.
const MAX_REASON: usize = 200;
/// The longest path in the table, in characters.
const MAX_PATH: usize = 200;

/// The number of texts with each verdict, in the order of the texts: `1 HOLD, 2 SHIP`.
fn counts(texts: &[ChangedText]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for text in texts {
        match counts.iter_mut().find(|(word, _)| *word == text.word()) {
            Some((_, count)) => *count += 1,
            None => counts.push((text.word(), 1)),
        }
    }
    let counts: Vec<String> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    counts.join(", ")
}

/// A text that a pull request adds or changes.
#[derive(Debug)]
pub struct ChangedText {
    /// From the repository's root, redacted.
    pub path: String,
    /// Its review, or why there is none.
    pub result: Result<Review, Error>,
    /// Why the page of its review could not be written.
    pub unkept: Option<Error>,
}

impl ChangedText {
    /// What failed: the review, or else writing its page.
    pub fn failure(&self) -> Option<&Error> {
        self.result.as_ref().err().or(self.unkept.as_ref())
    }

    fn exit_code(&self) -> u8 {
        match (&self.unkept, &self.result) {
            (Some(error), _) | (None, Err(error)) => error.exit_code(),
            (None, Ok(review)) => review.exit,
        }
    }

    /// The severity of the verdict, whatever verdicts fail.
    fn severity(&self) -> u8 {
        let verdict = self.result.as_ref().ok().and_then(|review| review.verdict);
        verdict.map_or(u8::MAX, |verdict| severity(verdict_exit_code(verdict)))
    }

    fn word(&self) -> &str {
        self.result.as_ref().map_or("not reviewed", |review| review.verdict_word())
    }

    /// Recorded reasons are redacted; those of errors are redacted here.
    fn why(&self, redactor: &Redactor) -> String {
        match &self.result {
            Ok(review) => review.because.clone(),
            Err(error) => redactor.redact(&error.first_message()).0,
        }
    }
}

impl Quorate {
    /// Reviews the texts that a pull request changes, one after the other, in the configuration of its base, and publishes
    /// the verdicts. After [`Run::interrupt`] reviews that have ended are not published, and a comment says that the review
    /// was interrupted.
    ///
    /// The run fails if a pattern can match no path, if the base, the job's variables or git are unusable, or if GitHub
    /// refuses a request. A text that cannot be reviewed is part of the outcome.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::Quorate;
    /// use quorate::github::GithubRequest;
    ///
    /// // The directory has no checkout.
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let request = GithubRequest { patterns: vec!["drafts/*.md".to_owned()], ..GithubRequest::default() };
    /// let error = quorate.github(request).finish().await.unwrap_err();
    /// assert_eq!(error.code(), "quorate:github_unusable");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn github(&self, request: GithubRequest) -> Run<Outcome<GithubOutcome>> {
        // A runner's ledger is gone when a person reads the verdicts.
        let outer = Environment { keeps_ledgers: false, ..self.with_built_in_redaction().environment };
        let places = self.places.clone();
        Run::new(move |observer, interruption| async move {
            let GithubRequest { patterns, review, target } = request;
            let warnings = Report::new();
            let _watching = interruption.watch();
            let mut task = Task { patterns, review, outer, places, observer, interruption, warnings };
            let ended = match target {
                GithubTarget::Step { base, reports } => {
                    task.review_step(base.as_deref(), reports.as_ref()).await
                }
                GithubTarget::Comment { label, author } => task.comment(&label, &author).await,
            };
            Outcome::of(ended, task.warnings)
        })
    }
}

/// A call of [`Quorate::github`].
struct Task {
    patterns: Vec<String>,
    review: ReviewRequest,
    /// That of the caller.
    outer: Environment,
    places: PathOverrides,
    observer: Arc<dyn Observer>,
    interruption: Interruption,
    warnings: Report,
}

/// A text to review.
struct Change {
    /// From the repository's root.
    path: String,
    /// Located at its path in the checkout of the base, which determines its configuration.
    artifact: Result<Artifact, Error>,
}

impl Change {
    /// A changed text; `bytes` is `None` for a link or another repository.
    fn new(path: &str, bytes: Option<Vec<u8>>, environment: &Environment) -> Change {
        // Only the name is redacted, not the composed message: a marker that begins in one part and ends in another would
        // remove everything between them. Recorded answers are redacted already.
        let name = environment.redactor.redact(path).0;
        // Git checks out no path that leads out of the repository.
        let is_inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        let artifact = match bytes.filter(|_| is_inside) {
            Some(bytes) => {
                artifact::from_bytes(name.clone(), Some(environment.directory.join(path)), Ok(bytes))
            }
            None => {
                let body = Body::new(format!("{name} is a link or another repository, not a file"))
                    .help("replace it with the texts themselves, or choose other texts");
                Err(Error::configuration(codes::ARTIFACT_UNREADABLE, body))
            }
        };
        Change { artifact: artifact.map_err(|error| placed(error, &name)), path: name }
    }
}

/// An error about a whole file, whose annotation is at its first line.
fn placed(mut error: Error, path: &str) -> Error {
    for refusal in &mut error.report.refusals {
        let place = Place { file: path.into(), span: 0..0, path: String::new() };
        refusal.body.place.get_or_insert(place);
    }
    error
}

/// The changes of a step, and what their reviews need.
struct Step {
    changes: Vec<Change>,
    /// That of the base's files.
    environment: Environment,
    /// The base's files.
    _base: TempDir,
    /// Its own directory: a ledger within the base would come from the repository.
    ledger: TempDir,
}

type Reports = (PathBuf, ReportFormat);

impl Task {
    async fn review_step(
        &mut self,
        base: Option<&str>,
        reports: Option<&Reports>,
    ) -> Result<GithubOutcome, Error> {
        let texts = match self.review_changed(base, reports).await {
            Ok(Some(texts)) => texts,
            Ok(None) => return Ok(GithubOutcome::Interrupted),
            Err(error) => {
                let why = self.outer.redactor.redact(&error.first_message()).0;
                summarize(&self.outer, &not_reviewed("", &why))?;
                return Err(error);
            }
        };
        let exit_code =
            texts.iter().map(ChangedText::exit_code).max_by_key(|code| severity(*code)).unwrap_or(0);
        let reviewed = ChangedTexts { texts, exit_code, unsaved: None };
        let saved = summarize(&self.outer, &reviewed.digest(&self.outer.redactor, "", MAX_SUMMARY_CHARS))
            .and_then(|()| save(&self.outer, reports, &reviewed.texts, exit_code));
        Ok(GithubOutcome::Reviewed(reviewed.saved(saved)))
    }

    async fn review_changed(
        &mut self,
        base: Option<&str>,
        reports: Option<&Reports>,
    ) -> Result<Option<Vec<ChangedText>>, Error> {
        let patterns = Patterns::new(&self.patterns)?;
        let step = tokio::select! {
            biased;
            () = self.interruption.requested() => return Ok(None),
            step = prepare(&patterns, base, reports, &self.outer, &mut self.warnings) => step?,
        };
        self.places = PathOverrides { ledger: Some(step.ledger.path().join("ledger.db")), config: None };
        self.review_all(step.changes, &step.environment, reports).await
    }

    /// Reviews changes one after the other in an environment, and sorts the worst verdict first; `None` if the caller stops
    /// it. The caps apply to all changes together.
    async fn review_all(
        &mut self,
        changes: Vec<Change>,
        environment: &Environment,
        reports: Option<&Reports>,
    ) -> Result<Option<Vec<ChangedText>>, Error> {
        let mut all = Vec::with_capacity(changes.len());
        for Change { path, artifact } in changes {
            let opened = match artifact {
                Err(error) => Err(error),
                Ok(artifact) => {
                    let opened = review::open_session(environment, &self.places, &artifact).await;
                    opened.map(|session| (session, artifact))
                }
            };
            let (session, artifact) = match opened {
                Ok(opened) => opened,
                Err(error) => {
                    all.push(ChangedText { path, result: Err(error), unkept: None });
                    continue;
                }
            };
            let ended = tokio::select! {
                biased;
                () = self.interruption.requested() => None,
                ended = review::review(&session, artifact, &self.review, self.observer.clone()) => Some(ended),
            };
            let caps = &mut self.review.options.caps;
            let result = match ended {
                None => {
                    session.interrupt();
                    session.close().await;
                    return Ok(None);
                }
                Some(Ok(ReviewOutcome::Judged(review))) => {
                    *caps = left(*caps, &review);
                    // Its name is from the repository's root already.
                    Ok(Review { repository_path: None, ..*review })
                }
                Some(Ok(ReviewOutcome::Skipped { tier, .. })) => {
                    Err(unusable(format!("{path} has tier {tier}, which is not reviewed"), "ignore tiers"))
                }
                Some(Err(error)) => {
                    if error.is_ledger_unavailable() {
                        session.interrupt();
                    }
                    // The cost of a failed review is unknown.
                    *caps = nothing_of(*caps);
                    Err(error)
                }
            };
            let unkept = match (&result, reports) {
                (Ok(review), Some(reports)) => keep(&self.outer, &session, review, reports).await.err(),
                _ => None,
            };
            self.warnings.absorb(session.close().await);
            all.push(ChangedText { path, result, unkept });
        }
        all.sort_by_key(|text| std::cmp::Reverse(text.severity()));
        Ok(Some(all))
    }
}

/// Writes the page of a review.
async fn keep(
    environment: &Environment,
    session: &LedgerSession,
    review: &Review,
    (dir, format): &Reports,
) -> Result<(), Error> {
    let run = Name::from(&*review.run);
    let file = reports::collect_run(session, &run, ReportScope::Everything).await?;
    let html = reports::draw(&file, format)?;
    write(environment, dir, &format!("{run}.html"), html.as_bytes())
}

async fn prepare(
    patterns: &Patterns,
    base: Option<&str>,
    reports: Option<&Reports>,
    environment: &Environment,
    warnings: &mut Report,
) -> Result<Step, Error> {
    let repository = GitRepository::open(&environment.directory, base, &environment.variables).await?;
    let (base, ledger) = (temporary_directory()?, temporary_directory()?);
    let in_base = Environment { directory: base.path().to_owned(), ..environment.clone() };
    let files = repository.changed_files().await?;
    let mut changes = Vec::new();
    for file in &files {
        let is_chosen = patterns.choose(&file.path);
        let is_reviewed = match file.becomes {
            Becomes::File => is_chosen,
            Becomes::LinkOrRepository => is_chosen || patterns.choose_below(&file.path),
            Becomes::Nothing => false,
        };
        if !is_reviewed {
            continue;
        }
        if changes.len() == MAX_TEXTS {
            return Err(too_many_texts());
        }
        let bytes = match file.becomes {
            Becomes::File => Some(repository.content(file).await?),
            Becomes::LinkOrRepository | Becomes::Nothing => None,
        };
        changes.push(Change::new(&file.path, bytes, &in_base));
    }
    let mut unmatched = patterns.unmatched(files.iter().map(|file| &*file.path));
    if !unmatched.is_empty() {
        let paths = repository.paths().await?;
        let among_all = patterns.unmatched(paths.iter().map(String::as_str));
        unmatched.retain(|pattern| among_all.contains(pattern));
    }
    ensure_readable(&unmatched)?;
    warn_of_unmatched(&unmatched, warnings);
    repository.write_base(base.path()).await?;
    // Fails before any member is asked if the file cannot be written. An interruption leaves this content.
    save(environment, reports, &[], INTERRUPTED)?;
    Ok(Step { changes, environment: in_base, _base: base, ledger })
}

/// The exit code of an interrupted command.
const INTERRUPTED: u8 = 130;

fn temporary_directory() -> Result<TempDir, Error> {
    tempfile::Builder::new().prefix("quorate-base-").tempdir().map_err(|error| {
        let what = format!("cannot make a temporary directory: {error}");
        unusable(what, "set TMPDIR to a directory that exists")
    })
}

/// Warns of patterns that match no file of the repository.
fn warn_of_unmatched(patterns: &[&str], warnings: &mut Report) {
    for pattern in patterns {
        let body = Body::new(format!("no file of the repository matches `{pattern}`"));
        let help = "give each pattern as its own argument, with paths from the repository's root";
        warnings.warn(codes::PATTERN_UNMATCHED, body.help(help));
    }
}

fn unusable(what: String, help: &str) -> Error {
    Error::configuration(codes::GITHUB_UNUSABLE, Body::new(what).help(help))
}

/// The error of a job whose event or variables are unusable.
fn event_unusable(what: String) -> Error {
    unusable(what, "run `quorate init wiring github` to write the workflows")
}

/// The error of a pull request that changes too much.
fn too_many_texts() -> Error {
    unusable(
        format!("more than {MAX_TEXTS} texts are changed"),
        "split the change, or choose fewer with narrower patterns",
    )
}

/// Markdown with the reason for missing reviews, of a commit if it is known.
fn not_reviewed(commit: &str, why: &str) -> String {
    let mut doc = Doc::new();
    doc.heading("Quorate: not reviewed");
    doc.line(match commit {
        "" => Text::from(format!("{why}.")),
        commit => Text::from("Commit ").and(Text::code(commit)).and(format!(": {why}.")),
    });
    doc.markdown()
}

/// These caps, used up.
fn nothing_of(caps: Caps) -> Caps {
    Caps {
        calls: caps.calls.map(|_| 0),
        tokens: caps.tokens.map(|_| 0),
        money: caps.money.map(|_| Money::ZERO),
    }
}

/// The caps that remain after a review. Unknown usage counts as the whole cap.
fn left(caps: Caps, review: &Review) -> Caps {
    let usage = &review.spent.usage;
    let is_free = !review.model_asked || review.spent.calls == 0;
    let knows_tokens = is_free || usage.tokens_in.is_some() && usage.tokens_out.is_some();
    let knows_money = is_free || usage.money.is_some();
    let caps = Caps {
        calls: caps.calls,
        tokens: caps.tokens.map(|cap| if knows_tokens { cap } else { 0 }),
        money: caps.money.map(|cap| if knows_money { cap } else { Money::ZERO }),
    };
    caps.less(&Spent { calls: Some(u64::from(review.spent.calls)), ..Spent::from(usage) })
}

/// Writes `reviews.json`.
fn save(
    environment: &Environment,
    reports: Option<&Reports>,
    texts: &[ChangedText],
    exit: u8,
) -> Result<(), Error> {
    let Some((dir, _)) = reports else { return Ok(()) };
    let review = |text: &ChangedText| match &text.result {
        Ok(review) => json!(review),
        Err(error) => json!({
            "artifact": text.path, "exit": error.exit_code(), "diagnostics": diagnostics_json(error.report()),
        }),
    };
    let reviews: Vec<Value> = texts.iter().map(review).collect();
    let all = json!({"schema": REVIEWS, "exit": exit, "reviews": reviews});
    let text = environment.redactor.redact(&format!("{all:#}\n")).0;
    write(environment, dir, "reviews.json", text.as_bytes())
}

/// Adds to the step's summary, if the runner provides one.
fn summarize(environment: &Environment, text: &str) -> Result<(), Error> {
    let file = environment.variables.get("GITHUB_STEP_SUMMARY").filter(|file| !file.is_empty());
    let Some(file) = file.map(Path::new) else { return Ok(()) };
    disk::append_below(file.parent().unwrap_or(Path::new(".")), file, text.as_bytes())
        .map_err(|error| unwritable(file, &error))
}

/// Writes a report, following no links: a directory of the checkout may be a link from the pull request.
fn write(environment: &Environment, dir: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let dir = environment.directory.join(dir);
    let is_inside = dir.starts_with(&environment.directory);
    let folder = match is_inside {
        true => Some(&*environment.directory),
        false => dir.ancestors().find(|above| above.is_dir()),
    };
    let path = dir.join(name);
    disk::write_below(folder.unwrap_or(&dir), &path, bytes).map_err(|error| unwritable(&path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Error {
    let body = Body::new(format!("cannot write {}: {error}", path.display()));
    Error::configuration(
        codes::ARTIFACT_UNREADABLE,
        body.help("name a directory that this user can write to"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::review::fixture::{hold, ship};

    fn digest(texts: Vec<(&str, Result<Review, Error>)>) -> String {
        let text = |(path, result): (&str, _)| ChangedText { path: path.to_owned(), result, unkept: None };
        let texts = texts.into_iter().map(text).collect();
        let redactor = Environment::new(".").redactor;
        ChangedTexts { texts, ..ChangedTexts::default() }.digest(&redactor, "Commit 12.", 60_000)
    }

    #[test]
    fn a_secret_in_the_reason_of_a_failure_is_not_published() {
        let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
        let text = digest(vec![("drafts/a.md", Err(unusable(format!("cannot log in with {secret}"), "")))]);
        assert!(text.contains("cannot log in with") && !text.contains(&secret), "{text}");
    }

    #[test]
    fn the_table_names_every_text_and_the_reviews_follow() {
        let unreadable = unusable("it is not text in UTF-8".to_owned(), "");
        let text = digest(vec![
            ("drafts/`a`|b @team.md", Ok(hold())),
            ("drafts/c.md", Ok(ship())),
            ("drafts/d.bin", Err(unreadable)),
        ]);
        assert!(
            text.starts_with(
                "### Quorate: 1 HOLD, 1 SHIP, 1 not reviewed\n\nCommit 12.\n\n| verdict | text | why |\n"
            ),
            "{text}"
        );
        assert!(text.contains("| HOLD | ``drafts/`a`│b @team.md`` | 3 of 4 block"), "{text}");
        assert!(text.contains("| not reviewed | `drafts/d.bin` | it is not text in UTF-8 |"), "{text}");
        assert!(text.contains("<summary>HOLD: <code>drafts/`a`|b @team.md</code></summary>"), "{text}");
        assert_eq!(text.matches("<summary>SHIP: <code>drafts/c.md</code></summary>").count(), 1, "{text}");
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count(), "{text}");
    }

    #[test]
    fn it_is_never_longer_than_allowed() {
        let text = digest((0..300).map(|_| ("drafts/a.md", Ok(hold()))).collect());
        assert!(text.chars().count() <= 60_000, "{}", text.chars().count());
        assert!(text.contains("… and 200 more texts."), "{text}");
        assert!(text.ends_with("shown here.\n"), "{text}");
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
    }
}
