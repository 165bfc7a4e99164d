//! The runs of a ledger: listing them, and opening the session for one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, codes};
use quorate_kernel::history::History;
use quorate_ledger::runs::{ListedRun, PrefixMatch, RunCursor, RunFilter};
use quorate_protocol::Name;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Value, json};

use super::disk::display_ledger;
use super::environment::Environment;
use super::error::{Error, ErrorKind};
use super::finalize::finalize;
use super::ledger::gc;
use super::live::SHORT;
use super::session::LedgerSession;
use super::workspace::{self, PathOverrides, Workspace};
use super::{convene, open_session, report, run_opened, sealing};
use crate::view::{Doc, Table, Text, Tone};

/// A council's verdicts, the outcomes of assemblies, and the two states of a run without an outcome.
pub const VERDICTS: [&str; 10] =
    ["ship", "revise", "hold", "incomplete", "pass", "fail", "done", "refused", "superseded", "open"];

/// The modes of listed runs: `council`, or the mode of an assembly.
pub const MODES: [&str; 5] = ["council", "advisory", "voting", "peer", "hierarchy"];

/// The version of the JSON of a list.
pub(crate) const SCHEMA: &str = "quorate.runs/v1";

/// The schema of that JSON.
pub(crate) fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<RunList>().to_value();
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("description");
    }
    schema["$id"] = json!(SCHEMA);
    schema["title"] = json!("The runs of a ledger, as `quorate runs --format json` prints them");
    schema["properties"]["runs"]["items"]["additionalProperties"] = json!(false);
    schema
}

/// Which runs a list contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunsRequest {
    /// The runs to list; [`RunFilter::after`] continues a list.
    pub filter: RunFilter,
    /// The maximum number of runs; default 20.
    pub limit: u32,
}

impl Default for RunsRequest {
    fn default() -> Self {
        RunsRequest { filter: RunFilter::default(), limit: 20 }
    }
}

/// The runs of a ledger: open ones first, in each part the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunList {
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    /// The runs of the page: open ones first, in each part the newest first
    pub runs: Vec<ListedRun>,
    /// The start of the next page: [`RunFilter::after`]
    #[serde(skip)]
    pub next: Option<RunCursor>,
    /// The number of runs on all pages, if there is a next page
    #[serde(skip)]
    pub all: Option<u64>,
    #[serde(skip)]
    is_filtered: bool,
}

impl Default for RunList {
    fn default() -> Self {
        RunList { schema: SCHEMA, runs: Vec::new(), next: None, all: None, is_filtered: false }
    }
}

/// The runs that a filter accepts: open ones first, in each part the newest first.
///
/// # Errors
/// If the ledger does not answer, or the cursor's run does not exist.
#[crate::boxed]
pub(crate) async fn list(session: &LedgerSession, request: &RunsRequest) -> Result<RunList, Error> {
    let RunsRequest { filter, limit } = request;
    if let Some(cursor) = &filter.after {
        match session.store.find_by_prefix(&cursor.run).await? {
            PrefixMatch::One(run) if run.run == cursor.run => {}
            _ => return Err(unknown_cursor(cursor)),
        }
    }
    let mut runs = session.store.listed_runs(filter, limit.saturating_add(1)).await?;
    let unlisted = runs.iter().take_while(|listed| listed.place.is_none()).count();
    let shown = unlisted.saturating_add(*limit as usize);
    let has_more = runs.len() > shown;
    runs.truncate(shown);
    Ok(RunList {
        next: runs.last().filter(|_| has_more).and_then(|listed| listed.place.clone()),
        all: if has_more { Some(session.store.count_listed(filter).await?) } else { None },
        runs,
        is_filtered: *filter != RunFilter::default(),
        ..RunList::default()
    })
}

/// The refusal of a cursor whose run the ledger does not have.
fn unknown_cursor(cursor: &RunCursor) -> Error {
    let body = Body::new(format!("`before` is `{cursor}`, but the ledger has no such run"));
    Error::not_found(codes::RUN_UNKNOWN, body.help("pass the `next` of the previous page"))
}

/// The longest prefix of an id that is shown.
const LONG: usize = 13;

const HEADINGS: [&str; 9] =
    ["run", "opened (UTC)", "verdict", "override", "why", "sealed", "made by", "type", "artifact"];

impl RunList {
    /// Whether the row of a run differs from its records (D13).
    pub fn is_altered(&self) -> bool {
        self.runs.iter().any(|run| run.difference().is_some())
    }

    /// The runs as a table.
    pub fn doc(&self) -> Doc {
        let mut doc = Doc::new();
        if self.runs.is_empty() {
            doc.line(match self.is_filtered {
                true => "No run fits.",
                false => {
                    "No runs yet: `quorate review FILE` makes the first. `quorate log MANIFEST` shows a conversation."
                }
            });
        }
        let length = self.prefix_length();
        doc.table(Table::new(HEADINGS).with_rows(self.runs.iter().map(|run| row(run, length))).filled());
        for run in &self.runs {
            if let Some(what) = run.difference() {
                doc.line(format!("{} is {}: {what}", run.run, run.verdict.as_deref().unwrap_or_default()));
            }
        }
        doc
    }

    /// The shortest length at which the ids of the list differ.
    fn prefix_length(&self) -> usize {
        let differ = |length: &usize| {
            let prefixes: BTreeSet<&str> =
                self.runs.iter().filter_map(|run| run.run.get(..*length)).collect();
            prefixes.len() == self.runs.len()
        };
        (SHORT..LONG).find(differ).unwrap_or(LONG)
    }
}

fn row(run: &ListedRun, length: usize) -> [Text; 9] {
    let blocks = if run.blockers.len() == 1 { "blocks" } else { "block" };
    let why = [(run.blockers.len(), blocks), (run.missing.len(), "missing")];
    let why: Vec<String> =
        why.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let imported = if run.imported { " (imported)" } else { "" };
    [
        Text::strong(run.run.get(..length).unwrap_or(&run.run)),
        run.opened_minute().into(),
        outcome_word(run.verdict.as_deref()),
        run.overridden.as_deref().map_or_else(Text::default, |word| outcome_word(Some(word))),
        why.join(", ").into(),
        if run.sealed { "" } else { "no" }.into(),
        run.producer.as_deref().unwrap_or_default().into(),
        run.artifact_type.as_str().into(),
        format!("{}{imported}", run.artifact).into(),
    ]
}

/// An outcome in capitals (assemblies record it in lower case); `open` without one.
pub(super) fn outcome_word(word: Option<&str>) -> Text {
    match word {
        Some(word) => Text::toned(Tone::of_word(word), word.to_uppercase()),
        None => Text::toned(Tone::Absent, "open"),
    }
}

/// Opens the session of the working directory.
///
/// # Errors
/// If configuration or ledger are unusable.
#[crate::boxed]
pub async fn open(environment: &Environment, places: &PathOverrides) -> Result<LedgerSession, Error> {
    let workspace = workspace::load(environment, places, &environment.directory)?;
    open_session::open(environment.clone(), workspace).await
}

/// Opens the session of the working directory for a command that appends to the log.
///
/// # Errors
/// If configuration or ledger are unusable, or the log cannot be appended to.
#[crate::boxed]
pub(crate) async fn open_for_writing(
    environment: &Environment,
    places: &PathOverrides,
) -> Result<LedgerSession, Error> {
    let workspace = workspace::load(environment, places, &environment.directory)?;
    open_session::open_for_writing(environment.clone(), workspace).await
}

/// Opens the session of the working directory if its ledger exists; creates none.
///
/// # Errors
/// If configuration or ledger are unusable, or the ledger does not exist.
#[crate::boxed]
pub(crate) async fn open_read_only(
    environment: &Environment,
    places: &PathOverrides,
) -> Result<LedgerSession, Error> {
    let workspace = workspace::load(environment, places, &environment.directory)?;
    if !workspace.ledger.may_exist() {
        return Err(missing_ledger(environment, &workspace));
    }
    open_session::open(environment.clone(), workspace).await
}

/// The refusal of a workspace without a ledger.
pub(crate) fn missing_ledger(environment: &Environment, workspace: &Workspace) -> Error {
    let ledger = display_ledger(environment, &workspace.ledger);
    let body = Body::new(format!("the ledger {ledger} does not exist yet"));
    let help = "run `quorate review FILE` first, or pass a ledger with `--ledger`";
    Error::not_found(codes::RUN_UNKNOWN, body.help(help))
}

/// Opens the session of the working directory for one run, to append to it, with the council and executors that the run
/// was started with, unless a configuration is given. Ledger, keys, log and witness stay those of the working directory's
/// workspace: a record's paths must not choose them.
///
/// # Errors
/// If a configuration or the ledger is unusable; as [`LedgerSession::find_own_run`].
#[crate::boxed]
pub(crate) async fn open_run_as_recorded(
    environment: &Environment,
    places: PathOverrides,
    prefix: &str,
) -> Result<(LedgerSession, Name), Error> {
    let session = Box::pin(open_read_only(environment, &places)).await?;
    let found = async {
        let run = session.find_own_run(prefix).await?;
        let opened = session.partial_history(&run).await?.opened;
        let config = places.config.or(opened.config.map(PathBuf::from));
        let places = PathOverrides { config, ledger: Some(session.workspace.ledger.as_argument()) };
        let host = opened.host.as_deref().map(Path::new).and_then(Path::parent);
        let start = host.unwrap_or(&environment.directory);
        Ok((run, workspace::load(environment, &places, start)?))
    };
    let (run, workspace) = match found.await {
        Ok(found) => found,
        Err(error) => {
            session.close().await;
            return Err(error);
        }
    };
    let files = |workspace: &Workspace| (workspace.council_path.clone(), workspace.config_path.clone());
    if files(&session.workspace) == files(&workspace) {
        return Ok((session, run));
    }
    let (keys, workspace) = (session.keys().clone(), session.workspace.with_configuration(workspace));
    session.close().await;
    Ok((Box::pin(open_session::open_with(environment.clone(), keys, workspace)).await?, run))
}

/// The note on a person's decision that no checkpoint covers.
const UNSEALED_DECISION: &str =
    "The decision of a person is not sealed: until the next checkpoint nothing proves when it was recorded.";

/// The report of a recorded run, finished or not. Its JSON is what `quorate show --format json` prints.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Recorded {
    /// A council's review.
    Review(Box<report::Review>),
    /// An assembly's decision.
    Decision(Box<convene::report::Decision>),
}

impl Recorded {
    /// The outcome and its reasons as plain text.
    pub fn brief(&self) -> String {
        let review = match self {
            Recorded::Review(review) => review,
            Recorded::Decision(decision) => return decision.brief(),
        };
        let mut text = format!("{} {}\n", review.verdict_word(), review.artifact);
        if let Some(report::Override { by, verdict, reason, .. }) = &review.overridden {
            text.push_str(&format!("A person ({by}) decided {verdict}: {reason}\n"));
        }
        let parts = [Some(&review.because), Some(&review.reasoning), review.revision_brief.as_ref()];
        for part in parts.into_iter().flatten() {
            if !part.is_empty() && !text.contains(part.as_str()) {
                text.push_str(&format!("\n{}\n", part.trim_end()));
            }
        }
        text
    }
}

/// The report of a run.
///
/// # Errors
/// If its records are missing, incomplete or corrupt.
#[crate::boxed]
pub(crate) async fn load_report(session: &LedgerSession, run: &Name) -> Result<Recorded, Error> {
    report_of(session, &session.partial_history(run).await?).await
}

/// The report of a run, from its history.
///
/// # Errors
/// As [`load_report`].
pub(super) async fn report_of(session: &LedgerSession, history: &History) -> Result<Recorded, Error> {
    Ok(match run_opened::is_assembly(history) {
        true => Recorded::Decision(Box::new(convene::report::load(session, history).await?)),
        false => {
            let mut report = report::load_from(session, history).await?;
            if session.store.has_unsealed_decision(&history.run).await? {
                report.notes.push(UNSEALED_DECISION.to_owned());
            }
            Recorded::Review(Box::new(report))
        }
    })
}

/// The report of the run that an id, a prefix of one, `latest` or a file names, for a view: a run that differs from its
/// records is a negative answer (exit 1).
///
/// # Errors
/// As [`load_report()`], and if none or several match.
#[crate::boxed]
pub(crate) async fn find_report(session: &LedgerSession, prefix: &str) -> Result<Recorded, Error> {
    let found = async { load_report(session, &session.find_run(prefix).await?.run).await };
    found.await.map_err(Error::corrupt_as_refused)
}

/// The report of a run whose command was interrupted after its outcome was recorded. `None` for a run that can be
/// resumed, and if the ledger does not answer in time. Finalizes the run as far as time allows.
///
/// # Errors
/// As [`load_report()`].
#[crate::boxed]
pub(crate) async fn decided_before_interruption(
    session: &LedgerSession,
    run: &Name,
) -> Result<Option<Recorded>, Error> {
    let read = async {
        session.store.flush().await;
        match session.partial_history(run).await?.outcome() {
            Some(_) => load_report(session, run).await.map(Some),
            None => Ok(None),
        }
    };
    let Some(shown) = sealing::within_deadline(&session.store, Box::pin(read)).await.transpose()?.flatten()
    else {
        return Ok(None);
    };
    let rest = async { gc::after_run(session, finalize(session, run).await?).await };
    if sealing::within_deadline(&session.store, Box::pin(rest)).await.transpose()?.is_none() {
        let body = Body::new(format!("run {run} has a verdict, but its line is not logged yet"));
        session.warn(codes::LOG_BEHIND, body.help("it follows at the next start"));
    }
    Ok(Some(shown))
}

/// The error of an interrupted operation; its help is the command that resumes the run.
pub(crate) fn interrupted(session: &LedgerSession, run: Option<&Name>) -> Error {
    let body = match run {
        None => Body::new("interrupted before anything was asked"),
        Some(run) if session.environment.keeps_ledgers => {
            Body::new("interrupted; the answers so far are recorded").help(session.resume_command(run))
        }
        Some(_) => Body::new("interrupted"),
    };
    Error::new(ErrorKind::Interrupted, codes::RUN_OPEN, body)
}

#[cfg(test)]
mod tests {
    use quorate_diagnostics::render::TextOptions;

    use super::*;

    fn listed() -> RunList {
        let run = |id: &str, subject: &str, verdict: Option<&str>, overridden: Option<&str>| {
            let blocks = if verdict == Some("HOLD") { &["ada", "bob"][..] } else { &[] };
            ListedRun {
                run: id.into(),
                opened: "2026-03-04T05:05:00.007Z".to_owned(),
                artifact: subject.to_owned(),
                artifact_type: "blog_post".to_owned(),
                mode: if subject == "p.md" { "voting" } else { "council" }.to_owned(),
                producer: None,
                verdict: verdict.map(str::to_owned),
                finding: None,
                overridden: overridden.map(str::to_owned),
                blockers: blocks.iter().map(|name| (*name).to_owned()).collect(),
                missing: Vec::new(),
                open: verdict.is_none(),
                sealed: verdict.is_some(),
                imported: id.starts_with("ry"),
                place: None,
            }
        };
        let runs = vec![
            run("r7k2m9q4xa1bc", "drafts/launch.md", Some("REVISE"), Some("SHIP")),
            run("r7k2m9q5xa1bc", "drafts/日本.md", None, None),
            run("rzzzzzz4xa1bc", "-", Some("HOLD"), None),
            run("ryyyyyy4xa1bc", "p.md", Some("pass"), None),
        ];
        RunList { runs, ..RunList::default() }
    }

    #[test]
    fn a_row_for_each_run() {
        insta::assert_snapshot!(listed().doc().text(TextOptions::default()), @"
        run       opened (UTC)      verdict  override  why      sealed  type       artifact
        ───────────────────────────────────────────────────────────────────────────────────────────
        r7k2m9q4  2026-03-04 05:05  REVISE   SHIP                       blog_post  drafts/launch.md
        r7k2m9q5  2026-03-04 05:05  open                        no      blog_post  drafts/日本.md
        rzzzzzz4  2026-03-04 05:05  HOLD               2 block          blog_post  -
        ryyyyyy4  2026-03-04 05:05  PASS                                blog_post  p.md (imported)
        ");
        assert!(RunList::default().doc().text(TextOptions::default()).starts_with("No runs yet"));
    }

    #[test]
    fn json_has_the_whole_id() {
        assert_eq!(
            json!(listed())["runs"][1],
            json!({
                "run": "r7k2m9q5xa1bc", "opened": "2026-03-04T05:05:00.007Z", "artifact": "drafts/日本.md",
                "artifact_type": "blog_post", "mode": "council", "producer": null, "verdict": null, "difference": null, "override": null,
                "blockers": [], "missing": [], "open": true, "sealed": false, "imported": false,
            })
        );
    }
}
