//! Promote: a shadow playbook passes a gate and is woven from then on (B6). Archives the playbooks it supersedes. The gates
//! are `a-b`, `scorer`, `human` and `governance`.

use std::sync::Arc;
use std::time::Duration;

use quorate_adapters::process;
use quorate_diagnostics::{Report, codes};
use quorate_kernel::attempts::object;
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::history::History;
use quorate_kernel::observer::NoopObserver;
use quorate_kernel::ports::ledger::{Ledger as _, PlaybookEvent};
use quorate_kernel::record::{self, Scores};
use quorate_manifest::playbook::load::written_at;
use quorate_manifest::playbook::{EntryKind, Gate, Playbook, PlaybookFile, Status};
use quorate_manifest::{frontmatter, timestamp};
use quorate_playbook::gate::{
    GOVERNANCE_PRIORITY, Outcome, SeenTexts, Side, TestResult, TextIdentity, Thresholds, compare,
    compare_attempts, course,
};
use quorate_playbook::log::priority;
use quorate_playbook::weave::{Candidate, Composition};
use quorate_protocol::Name;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::change::{ChangeEvent, PlaybookChange, append_new_events, playbook_stream};
use super::library::{Library, replacement};
use super::propose::{check_superseded, refusals_in_words};
use super::versions::{NewAttempt, NewVersion, RecordedVersions, VersionedFile, set_status};
use super::writer::LibraryWriter;
use super::{Approver, GateClosed, GateEvidence, push_quote, refuse};
use crate::service::artifact::{self, Draft};
use crate::service::convene::{self, ConveneRequest, Inputs, spec};
use crate::service::disk::absolute;
use crate::service::error::Error;
use crate::service::session::LedgerSession;
use crate::service::trust;
use crate::service::trust::requests::TrustRequest;
use crate::view::{Doc, Text};

/// The result of a promotion
#[derive(Debug, Serialize)]
pub struct Promotion {
    /// The playbook
    pub slug: String,
    /// The gate's message
    #[serde(rename = "said")]
    pub gate_message: Option<String>,
    /// The new version, if the gate opened
    pub version: Option<u32>,
    /// Whether the playbook is active now
    pub promoted: bool,
    /// The playbooks that it superseded
    pub archived: Vec<String>,
    /// Why it was not promoted, and warnings
    #[serde(rename = "diagnostics")]
    pub report: Report,
}

impl Promotion {
    /// The result in words.
    pub fn doc(&self) -> Doc {
        let mut doc = Doc::new();
        let slug = Text::strong(&self.slug);
        let Some(version) = self.version else {
            doc.line(slug.and(" was not promoted"));
            return doc;
        };
        let note = self.gate_message.as_ref().map_or_else(String::new, |note| format!(" ({note})"));
        doc.line(slug.and(format!(" is active: version {version}{note}")));
        for slug in &self.archived {
            doc.line(Text::strong(slug).and(" is archived"));
        }
        doc
    }
}

/// Promotes a playbook, if the gate opens.
///
/// # Errors
/// If the playbook is unknown, or a file cannot be read or written. A closed gate is an outcome.
#[crate::boxed]
pub(super) async fn promote(
    writer: &mut LibraryWriter,
    slug: &str,
    gate: Gate,
    mut asked: Box<dyn Approver>,
) -> Result<Promotion, Error> {
    let (book, record) = writer.intact(slug)?;
    let mut outcome = Promotion {
        slug: slug.to_owned(),
        gate_message: None,
        version: None,
        promoted: false,
        archived: Vec::new(),
        report: Report::new(),
    };
    let report = &mut outcome.report;
    check_preconditions(&writer.library, &book, gate, report);
    writer.library.warn_contradictions(&book.playbook, book.text(), report);
    let mut passed = None;
    let mut attempt = None;
    if !report.has_refusals() {
        let new = NewAttempt::new(book.text());
        // Fails if the ledger cannot be read: without the records, the attempt would start a new test.
        let recorded = RecordedVersions::load(&writer.session.store, &writer.library.scope).await?;
        let ordinal = match recorded.trials.count(&new.text).attempts {
            0 => String::new(),
            before => format!("; attempt {}", before + 1),
        };
        match ask_gate(writer, &book, gate, &new, &mut *asked).await? {
            Ok(mut through) => {
                through.note.push_str(&ordinal);
                outcome.gate_message = Some(through.note.clone());
                passed = Some(through);
            }
            Err(why) => {
                let (slug, gate) = (&outcome.slug, gate.as_str());
                let message = format!("`{slug}` does not pass the gate `{gate}`: {}{ordinal}", why.message);
                deny(report, message, why.help);
            }
        }
        attempt = Some(new);
    }
    // A gate may take long; the time is that of the decision.
    let mut change = PlaybookChange::new_at(writer.now_ms());
    match passed {
        Some(passed) => {
            outcome.archived = archive_superseded(writer, &book.playbook, &record, &mut change)?;
            let version = add_promotion(writer, &record, gate, &passed, &outcome.archived, &mut change)?;
            // The files of superseded playbooks come first: if the process dies in between, neither is woven, rather
            // than both. The events begin with the promotion.
            change.events.rotate_right(1);
            (outcome.version, outcome.promoted) = (Some(version), true);
        }
        None => {
            let words = format!("not promoted: {}", refusals_in_words(&outcome.report));
            let data = json!({"gate": gate, "by": writer.user()});
            change.events.push(ChangeEvent::new(PlaybookEvent::Rejected, &outcome.slug, words, data));
        }
    }
    attempt
        .iter()
        .zip(change.events.first_mut())
        .for_each(|(attempt, event)| attempt.add_to(&mut event.data));
    if outcome.promoted {
        writer.record_pattern_matches(&book.playbook, &mut change);
    }
    writer.commit(&change).await?;
    Ok(outcome)
}

fn deny(report: &mut Report, message: String, help: impl Into<String>) {
    refuse(report, codes::PROMOTION_DENIED, message, help);
}

/// Conditions that apply to every gate.
fn check_preconditions(library: &Library, book: &PlaybookFile, gate: Gate, report: &mut Report) {
    let (playbook, now_ms) = (&book.playbook, library.now_ms());
    let slug = &playbook.slug;
    match playbook.status {
        Status::Shadow => {}
        Status::Active => {
            deny(report, format!("`{slug}` is already active"), "run `quorate weave OPERATOR` to see it");
        }
        Status::Archived => {
            let help = format!("run `quorate playbook rollback {slug} --to N` to restore a version");
            deny(report, format!("`{slug}` is archived"), help);
        }
    }
    if gate != Gate::Governance {
        for (message, otherwise) in needs_governance(library, playbook) {
            deny(report, message, format!("promote it with `--gate governance`{otherwise}"));
        }
    }
    check_superseded(library, playbook, report);
    if let Some(other) = replacement(&library.catalogue, playbook) {
        let message = format!("`{other}` is active and supersedes `{slug}`, so it would not be woven");
        let help = format!("archive `{other}` first, or roll `{slug}` back to a version that was active");
        deny(report, message, help);
    }
    let matched = library.operators_for(playbook);
    if matched.is_empty() {
        let message = format!("the targets of `{slug}` match no operator in this scope");
        deny(report, message, "correct its targets with another proposal");
    }
    let expires = matched.first().and_then(|(known, _)| known.candidate(playbook, book.text()).expires_ms);
    if expires.is_some_and(|expires| expires <= now_ms) {
        deny(report, format!("`{slug}` has expired"), "propose it again if it still holds");
    }
    let standing = library.standing_for(playbook);
    let most = library.workspace.config.playbooks.max_active;
    for (operator, all) in &standing {
        let count = count_active_beside(all, playbook, now_ms);
        if count >= most {
            let message =
                format!("`{operator}` has {count} active playbooks, and at most {most} are allowed");
            let help = format!(
                "archive one first, or raise `max_active` in quorate.toml; `quorate weave {operator} --explain` shows them"
            );
            deny(report, message, help);
        }
    }
    for objection in library.objections(playbook, book.text(), &standing) {
        report.refuse(objection.code(), objection.body);
    }
}

/// Why only governance may promote a playbook, each with what the author can do instead.
fn needs_governance(library: &Library, playbook: &Playbook) -> Vec<(String, &'static str)> {
    let slug = &playbook.slug;
    let mut needs = Vec::new();
    let weighty = |other: &&String| {
        let other = library.book(other).map(|book| &book.playbook);
        other.is_some_and(|other| other.status == Status::Active && priority(other) >= GOVERNANCE_PRIORITY)
    };
    if let Some(other) = playbook.supersedes.iter().flatten().find(weighty) {
        let why = format!("`{slug}` supersedes `{other}`, which only governance may promote and replace");
        needs.push((why, ""));
    }
    let priority = priority(playbook);
    if priority >= GOVERNANCE_PRIORITY {
        let why = format!(
            "`{slug}` has priority {priority}, and only governance promotes from {GOVERNANCE_PRIORITY} on"
        );
        needs.push((why, ", or propose it with a lower priority"));
    }
    if library.targets_all(playbook) {
        let why = format!("`{slug}` targets all operators, and only governance promotes such a playbook");
        needs.push((why, ", or name the operators in `targets`"));
    }
    if let Some((block, id, operator)) = carried_trait(library, playbook) {
        let why =
            format!("`{slug}` replaces `{block}`, which carries the locked trait `{id}` of `{operator}`");
        needs.push((why, ", or propose it as an overlay"));
    }
    needs
}

/// Replaced blocks that carry traits: their content is lost, and no word in the replacement shows that.
const TRAIT_BLOCKS: [(&str, &[&str]); 2] =
    [("voice", &["voice-register"]), ("boundaries", &["safety-boundary", "refuse-harm"])];

/// The block that a playbook replaces, the locked trait in it, and its operator.
fn carried_trait(library: &Library, playbook: &Playbook) -> Option<(String, String, String)> {
    let block = playbook.block.as_ref()?;
    let (_, ids) = TRAIT_BLOCKS.iter().find(|(name, _)| name == block)?;
    let matched = library.operators_for(playbook);
    matched.iter().find_map(|(known, _)| {
        let id = known.traits.iter().find(|locked_trait| ids.contains(&&*locked_trait.id))?;
        Some((block.clone(), id.id.clone(), known.slug.clone()))
    })
}

/// The number of playbooks active for an operator besides one and those it supersedes.
pub(super) fn count_active_beside(all: &[Candidate], playbook: &Playbook, now_ms: i64) -> usize {
    let superseded = playbook.supersedes.as_deref().unwrap_or_default();
    let counts = |candidate: &&Candidate| {
        candidate.is_active(now_ms)
            && candidate.slug != playbook.slug
            && !superseded.contains(&candidate.slug)
    };
    all.iter().filter(counts).count()
}

/// Archives the playbooks that a promoted one supersedes; returns their slugs.
fn archive_superseded(
    writer: &LibraryWriter,
    playbook: &Playbook,
    record: &VersionedFile,
    change: &mut PlaybookChange,
) -> Result<Vec<String>, Error> {
    let slug = &playbook.slug;
    let author = format!("{slug}@v{}", record.next_n());
    let mut archived = Vec::new();
    for other in playbook.supersedes.iter().flatten() {
        let Some(book) = writer.library.book(other) else { continue };
        if book.playbook.status == Status::Archived {
            continue;
        }
        let record = writer.intact_record(book)?;
        let summary = format!("`{slug}` took its place");
        let step = NewVersion::new(EntryKind::Superseded, &summary, &author);
        let words = format!("superseded by `{slug}`");
        let event = (PlaybookEvent::Archived, &*words, json!({"superseded_by": slug}));
        change.add_version(&record, &step, None, event, set_status(Status::Archived))?;
        archived.push(other.clone());
    }
    Ok(archived)
}

/// Makes a playbook active; returns its version.
fn add_promotion(
    writer: &LibraryWriter,
    record: &VersionedFile,
    gate: Gate,
    passed: &GateEvidence,
    archived: &[String],
    change: &mut PlaybookChange,
) -> Result<u32, Error> {
    let by = writer.user();
    let words = format!("passed the gate {}: {}", gate.as_str(), passed.note);
    let summary = truncate(&words);
    let step = NewVersion { gate: Some(gate), ..NewVersion::new(EntryKind::Promoted, &summary, by) };
    let data = json!({"gate": gate, "by": by, "evidence": passed.reference, "supersedes": archived});
    change.add_version(record, &step, None, (PlaybookEvent::Promoted, &words, data), |edit, at| {
        set_status(Status::Active)(edit, at);
        let entry = json!({"kind": passed.kind, "ref": passed.reference, "note": truncate(&passed.note)});
        edit.push_item("evidence", &object(entry));
    })
}

/// Shortens a text for a history.
fn truncate(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(900).collect()
}

/// The decision of a gate; a closed gate is the inner error.
type Gated = Result<Result<GateEvidence, GateClosed>, Error>;

/// Asks a gate. A closed gate is the inner error.
///
/// # Errors
/// If a file cannot be read, or the gate cannot be asked.
#[crate::boxed]
async fn ask_gate(
    writer: &LibraryWriter,
    book: &PlaybookFile,
    gate: Gate,
    attempt: &NewAttempt,
    asked: &mut dyn Approver,
) -> Gated {
    let terms = writer.library.thresholds();
    match gate {
        Gate::AB => Box::pin(attempt_ab(writer, book)).await,
        Gate::Scorer => Box::pin(attempt_scorer(writer, book, attempt, terms)).await,
        Gate::Human => Ok(attempt_human(writer, book, asked)),
        Gate::Governance => Box::pin(attempt_governance(writer, book)).await,
    }
}

/// `a-b`: compares outcomes of an operator's texts made with a playbook in its prompt with those made without.
///
/// The caller marks a text that was made with the playbook: `quorate review draft.md --made-by alice --trying SLUG`, with
/// the prompt of `quorate weave alice --trying SLUG`. Runs count from the time when a playbook first had this text, in the
/// order in which they ended. Outcomes of a similar text, also of another playbook, form a second test (B12). A verdict is worth 2
/// (SHIP), 1 (REVISE) or 0 (HOLD); advice is worth less the more severe it is. Only outcomes of one operator, one artifact
/// type and one configuration of a council or assembly are compared. Undecided runs, runs with missing answers, and runs
/// that try several playbooks do not count, and a text counts once on each side, whatever council judged it and however
/// little it changed.
///
/// # Errors
/// When the ledger does not answer.
async fn attempt_ab(writer: &LibraryWriter, book: &PlaybookFile) -> Gated {
    let Trial { result: finding, runs, .. } = evaluate_ab(&writer.library, &writer.session, book).await?;
    if finding.passes {
        let reference = runs.last().map_or_else(|| "ledger".to_owned(), |last| format!("runs/{}", last.run));
        return Ok(Ok(GateEvidence { kind: "run", reference, note: finding.to_string() }));
    }
    let operator = writer
        .library
        .operators_for(&book.playbook)
        .first()
        .map_or("OPERATOR".to_owned(), |(one, _)| one.slug.clone());
    let slug = &book.playbook.slug;
    let help = format!(
        "run more reviews with `quorate review FILE --made-by {operator} --trying {slug}`, and without `--trying`"
    );
    Ok(Err(GateClosed::new(finding.to_string(), help)))
}

/// The test of the gate a-b, as of now
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Trial {
    /// The counts and the evidence
    #[serde(flatten)]
    pub result: TestResult,
    /// The evidence after each pair that is no tie
    pub course: Vec<f64>,
    /// The runs that count, in the order in which they ended
    pub runs: Vec<TrialRun>,
}

/// A run that counts in a trial
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TrialRun {
    /// Its id
    pub run: String,
    /// Whether its text was made with the playbook
    pub with: bool,
    /// The operator that made the text
    pub made_by: String,
    /// The verdict or outcome
    pub outcome: String,
    /// What the outcome is worth; more is better
    pub score: f64,
}

/// Evaluates the outcomes so far.
///
/// # Errors
/// When the ledger does not answer.
#[crate::boxed]
pub(super) async fn evaluate_ab(
    library: &Library,
    session: &LedgerSession,
    book: &PlaybookFile,
) -> Result<Trial, Error> {
    let terms = library.thresholds();
    let slug = &book.playbook.slug;
    let operators: Vec<&str> =
        library.operators_for(&book.playbook).into_iter().map(|(known, _)| &*known.slug).collect();
    let text = TextIdentity::new(book.text());
    let trials = RecordedVersions::load(&session.store, &library.scope).await?.trials;
    let written = text_since(library, book)?;
    let first = |is_wanted: &dyn Fn(&TextIdentity) -> bool| {
        trials.first_ms(is_wanted).map_or(written, |first| first.min(written))
    };
    let own_since = first(&|other| text.has_same_words(other));
    let similar_since = first(&|other| text.is_similar(other));
    let (mut own, mut similar) = (Tally::default(), Tally::default());
    for run in session.store.decided_since(similar_since).await? {
        let records = session.store.records(&run).await?;
        let Ok(history) = History::from_remaining_records(&run, records) else { continue };
        let at_ms = history.opened_ms;
        let text_of = |tried: &str| match tried == slug && at_ms >= written {
            true => Some(text.clone()),
            false => trials.text_at(tried, at_ms),
        };
        let Some((outcome, tried)) = countable_outcome(&history, text_of, &operators) else { continue };
        let (counts, is_own) = match &tried {
            None => (true, at_ms >= own_since),
            Some(tried) => (text.is_similar(tried), text.has_same_words(tried)),
        };
        if is_own {
            own.add(&run, &history, &outcome);
        }
        if counts {
            similar.add(&run, &history, &outcome);
        }
    }
    let (own, similar) = (own.evaluate(terms), similar.evaluate(terms));
    Ok(if own.result.passes { similar } else { own })
}

/// Outcomes of one test.
#[derive(Default)]
struct Tally {
    outcomes: Vec<Outcome>,
    runs: Vec<TrialRun>,
    once: SeenTexts,
}

impl Tally {
    /// Adds an outcome, unless its text counts already.
    fn add(&mut self, run: &Name, history: &History, outcome: &Outcome) {
        let producer = history.opened.producer.as_ref();
        let sketch = producer.and_then(|producer| serde_json::from_value(producer.sketch.clone()).ok());
        let sha256 = history.opened.artifact_sha256.as_deref().unwrap_or_default();
        if !self.once.insert(outcome.side, sha256, sketch) {
            return;
        }
        let word = history.outcome().and_then(|outcome| outcome.word().map(str::to_owned));
        self.runs.push(TrialRun {
            run: run.to_string(),
            with: outcome.side == Side::With,
            made_by: producer.map(|producer| producer.operator.clone()).unwrap_or_default(),
            outcome: word.unwrap_or_default(),
            score: outcome.score,
        });
        self.outcomes.push(outcome.clone());
    }

    fn evaluate(self, terms: Thresholds) -> Trial {
        let (result, course) = (compare(&self.outcomes, terms), course(&self.outcomes));
        Trial { result, course, runs: self.runs }
    }
}

/// A run's outcome for the gate, and the text that it tries, if it tries one; `None` if it does not test a single text.
fn countable_outcome(
    history: &History,
    text_of: impl Fn(&str) -> Option<TextIdentity>,
    operators: &[&str],
) -> Option<(Outcome, Option<TextIdentity>)> {
    let producer = history.opened.producer.as_ref()?;
    let made_by = Some(&*producer.operator).filter(|made_by| operators.contains(made_by))?;
    let (side, tried) = match &producer.trying[..] {
        [] => (Side::Without, None),
        [one] => (Side::With, Some(text_of(one)?)),
        // The effect of several playbooks cannot be attributed to one.
        _ => return None,
    };
    let worth = outcome_worth(&history.outcome()?)?;
    // The whole configuration of the run except the text itself.
    let opened = &history.opened;
    let instrument = ["council", "assembly"].into_iter().find_map(|whole| opened.fingerprint_of(whole))?;
    let sort = opened.artifact_type.as_deref().unwrap_or_default();
    Some((Outcome { comparison_key: format!("{made_by} {instrument} {sort}"), side, score: worth }, tried))
}

/// The time since which the playbook has its current text.
fn text_since(library: &Library, book: &PlaybookFile) -> Result<i64, Error> {
    let record = library.record(book)?;
    let says = |text: &str| frontmatter::split(text).map(|parts| text[parts.body].trim() == book.text());
    let same = record.versions.iter().rev().take_while(|version| says(&version.text).unwrap_or_default());
    let at = same.last().map(|first| first.at.as_str());
    let at = at.or(book.playbook.created_at.as_deref()).or(written_at(&book.playbook));
    Ok(at.and_then(timestamp::parse).unwrap_or(i64::MIN))
}

/// The value of an outcome; `None` for an undecided run, or one with missing answers. A person's later decision does not
/// count: it would change what an earlier evaluation has counted.
fn outcome_worth(outcome: &record::Outcome) -> Option<f64> {
    if outcome.partial != Some(false) {
        return None;
    }
    match (outcome.verdict.as_deref(), outcome.stand.as_deref()) {
        (Some("SHIP"), _) => Some(2.0),
        (Some("REVISE"), _) => Some(1.0),
        (Some("HOLD"), _) => Some(0.0),
        (_, Some("done")) => {
            let severity = outcome.risk.as_ref()?.severity;
            Some(10.0 - f64::from(u8::try_from(severity).ok()?))
        }
        _ => None,
    }
}

/// The deadline of a trial.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(600);
/// The maximum number of trials, as a multiple of the minimum.
const MAX_TRIALS_FACTOR: u32 = 5;

/// `scorer`: a user's command compares two prompts repeatedly, until one is significantly better.
///
/// For each trial it gets one line of JSON on stdin, `{playbook, operator, trial, prompt, counterfactual}`, and answers
/// `{"without": number, "with": number}`: the agent's score without and with the playbook, in any unit; more is better.
/// Trials rotate over the targeted operators. The sequential test of the other gates applies, so the gate may end early.
/// The test covers all recorded trials of the text, also of earlier attempts. Each trial is therefore recorded before the
/// next one begins, and the finished trials of an interrupted attempt count (B12).
///
/// # Errors
/// If the file that names the command is not trusted, or the ledger does not answer. A failing command keeps the gate closed.
async fn attempt_scorer(
    writer: &LibraryWriter,
    book: &PlaybookFile,
    attempt: &NewAttempt,
    terms: Thresholds,
) -> Gated {
    let config = &writer.library.workspace.config;
    let Some((command, _)) = &config.playbooks.scorer else {
        let help = "name one in quorate.toml: [playbooks] scorer = [\"python3\", \"score.py\"]";
        return Ok(Err(GateClosed::new("quorate.toml names no scorer", help)));
    };
    let environment = &writer.session.environment;
    let need =
        TrustRequest { file: config.path(), acts: vec![process::command_side_effect(command, &config.dir)] };
    trust::admit(environment, vec![need])?;
    let slug = &book.playbook.slug;
    let now_ms = writer.now_ms();
    let mut prompts = Vec::new();
    for (known, _) in writer.library.operators_for(&book.playbook) {
        let candidates = writer.library.candidates_for(known);
        let Composition { woven, shadows } = known.compose(&candidates, now_ms);
        let with = shadows.into_iter().find(|shadow| shadow.id == *slug).map(|shadow| shadow.prompt);
        match with {
            Some(Ok(with)) => prompts.push((known.slug.clone(), woven.prompt, with)),
            Some(Err(why)) => {
                return Ok(Err(GateClosed::new(
                    format!("cannot weave it for `{}`: {why}", known.slug),
                    "correct the playbook first",
                )));
            }
            None => {}
        }
    }
    let store = &writer.session.store;
    let earlier = RecordedVersions::load(store, &writer.library.scope).await?.trials;
    let (mut pairs, mut next) = (Vec::new(), 0);
    let result = |new: &[(f64, f64)]| {
        let new = new.iter().map(|pair| (&attempt.text, *pair));
        compare_attempts(&attempt.text, earlier.pairs().chain(new), terms)
    };
    for trial in 0..terms.min_sample.saturating_mul(MAX_TRIALS_FACTOR) {
        let Some((operator, prompt, counterfactual)) = prompts.get(trial as usize % prompts.len().max(1))
        else {
            break;
        };
        let question = json!({
            "playbook": slug, "operator": operator, "trial": trial, "prompt": prompt, "counterfactual": counterfactual,
        });
        let answer = process::run_command(command, &config.dir, format!("{question}\n"), TRIAL_TIMEOUT).await;
        let scores = answer.and_then(|text| {
            let scores: Result<Scores, _> = serde_json::from_str(text.trim());
            scores.map_err(|error| {
                format!("the answer is not {{\"without\": number, \"with\": number}}: {error}")
            })
        });
        let scores = match scores {
            Ok(scores) => scores,
            Err(why) => {
                let help = "run the command by hand with one line of JSON on stdin";
                return Ok(Err(GateClosed::new(
                    format!("the scorer `{}` failed: {why}", command.join(" ")),
                    help,
                )));
            }
        };
        let mut data = json!({"gate": Gate::Scorer, "scores": scores});
        match trial {
            0 => attempt.add_to(&mut data),
            _ => data["attempt"] = json!(attempt.id),
        }
        let words = format!("trial {trial}: {} with it, {} without", scores.with, scores.without);
        let mut change = PlaybookChange::new_at(writer.now_ms());
        change.events.push(ChangeEvent::new(PlaybookEvent::Tried, slug, words, data));
        append_new_events(store, &playbook_stream(&writer.library.scope), &change, Vec::new(), &mut next)
            .await?;
        pairs.push((scores.with, scores.without));
        if result(&pairs).passes {
            break;
        }
    }
    let finding = result(&pairs);
    let note = finding.to_string();
    if pairs.is_empty() || !finding.passes {
        return Ok(Err(GateClosed::new(
            note,
            "revise the playbook, or archive it: the scorer measured no improvement",
        )));
    }
    let reference = format!("scorer/{}", &sha256_hex(command.join(" ").as_bytes())[..12]);
    Ok(Ok(GateEvidence { kind: "reflection", reference, note }))
}

/// Asks a person, and opens the gate on a yes.
///
/// # Errors
/// If no person can be asked, or the answer is no.
fn attempt_human(
    writer: &LibraryWriter,
    book: &PlaybookFile,
    asked: &mut dyn Approver,
) -> Result<GateEvidence, GateClosed> {
    let redactor = &writer.session.workspace.redaction.redactor;
    let answer = asked.ask(&redactor.redact(&describe_promotion(writer, book)).0)?;
    let why = redactor.redact(answer.why.trim()).0;
    if !answer.yes {
        let reason = if why.is_empty() { String::new() } else { format!(": {why}") };
        return Err(GateClosed::new(format!("{} says no{reason}", answer.by), "revise it, or archive it"));
    }
    let note = if why.is_empty() {
        format!("{} says yes", answer.by)
    } else {
        format!("{} says yes: {why}", answer.by)
    };
    Ok(GateEvidence { kind: "human", reference: answer.by, note })
}

/// The question for a person or an assembly: first our description, then the playbook's text, quoted so that it cannot pass
/// for ours.
fn describe_promotion(writer: &LibraryWriter, book: &PlaybookFile) -> String {
    let playbook = &book.playbook;
    let matched = writer.library.operators_for(playbook);
    let operators: Vec<&str> = matched.iter().map(|(known, _)| &*known.slug).collect();
    let mut text = format!("# Weave `{}` into the prompts of {}\n\n", playbook.slug, operators.join(", "));
    let superseded = playbook.supersedes.iter().flatten().cloned().collect::<Vec<_>>().join(", ");
    text.push_str(&format!(
        "Resolution: `{}` becomes active, at priority {}",
        playbook.slug,
        priority(playbook)
    ));
    if !superseded.is_empty() {
        text.push_str(&format!(", in place of {superseded}"));
    }
    if let Some(block) = &playbook.block {
        text.push_str(&format!(", and stands in place of the block `{block}`"));
    }
    text.push_str(".\n\n## What agents would be told\n\n");
    push_quote(&mut text, book.text());
    for exception in writer.library.exceptions.allowed(&playbook.slug, book.text()) {
        text.push_str(&format!("\n## It may touch `{}`, by an exception\n\n", exception.locked));
        push_quote(&mut text, &format!("{}: {}", exception.by, exception.reason));
    }
    if let Some(block) = &playbook.block {
        for (known, _) in &matched {
            let block_text = known.base.block_text(block).unwrap_or_default();
            text.push_str(&format!("\n## What `{}` is told there now\n\n", known.slug));
            push_quote(&mut text, block_text);
        }
    }
    for found in writer.library.contradictions(playbook, book.text()) {
        text.push_str(&format!("\n## It states the opposite of `{}`, which is active\n\n", found.active));
        push_quote(&mut text, &found.active_sentence);
    }
    let asked = writer.library.catalogue.attempts(book.text());
    if asked.attempts > 0 {
        text.push_str(&format!("\nEarlier attempts to promote this text: {asked}.\n"));
    }
    text.push_str("\n## What its author says of it\n\n");
    push_quote(&mut text, &playbook.title);
    for evidence in &playbook.evidence {
        let note = evidence.note.as_deref().map_or(String::new(), |note| format!(": {note}"));
        push_quote(
            &mut text,
            &format!("learned from {}{note}", evidence.reference).replace(['\n', '\r'], " "),
        );
    }
    text
}

/// `governance`: convenes the voting assembly that quorate.toml names for promotions. Its decision record is the evidence.
///
/// # Errors
/// If the assembly is refused or the ledger fails.
async fn attempt_governance(writer: &LibraryWriter, book: &PlaybookFile) -> Gated {
    let configuration = &writer.library.workspace.config;
    let Some((written, _)) = &configuration.playbooks.governance else {
        let help = "name one in quorate.toml: [playbooks] governance = \"assemblies/prompt-board\"";
        return Ok(Err(GateClosed::new("quorate.toml names no assembly for promotions", help)));
    };
    let name = format!("{}.md", book.playbook.slug);
    let proposal = Draft::Text { name, text: describe_promotion(writer, book) };
    let request = ConveneRequest {
        path: absolute(&configuration.dir, written.as_ref()),
        inputs: Inputs { proposal: Some(proposal), ..Inputs::default() },
        ..ConveneRequest::default()
    };
    let (session, environment) = (&writer.session, &writer.session.environment);
    let read = |draft: &Draft| artifact::read(draft, &environment.directory);
    let (input, setup, workspace) = convene::prepare(environment, &writer.places, &request, read)?;
    let spec = spec::build(environment, &workspace, &input, setup, &request.options)?;
    let report = convene::convene(session, &input, &spec, Arc::new(NoopObserver)).await?;
    let result = report.decision.as_ref().map_or("incomplete", |decision| &decision.result);
    let exact = report
        .decision
        .as_ref()
        .map_or(String::new(), |one| format!(", {} of {}", one.exact.yes, one.exact.total));
    let note = format!("{} decides {result}{exact}", report.assembly);
    if result != "pass" {
        let help = format!("run `quorate show {}` to see the answers", report.run);
        return Ok(Err(GateClosed::new(note, help)));
    }
    Ok(Ok(GateEvidence { kind: "run", reference: format!("runs/{}", report.run), note }))
}
