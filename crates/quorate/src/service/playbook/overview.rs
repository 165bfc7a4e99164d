//! Playbooks for views: the list of a scope, and a single playbook with its versions, its evidence, and its effect on
//! prompts.

use std::cmp::Reverse;

use quorate_manifest::playbook::{Entry, PlaybookFile, Status};
use quorate_playbook::gate::{Side, Thresholds};
use quorate_playbook::history::Version;
use quorate_playbook::log::{NEVER_GATED, priority};
use quorate_playbook::weave::{Candidate, compose};
use schemars::JsonSchema;
use serde::Serialize;

use super::gate::{self, CountedRun, Evaluation};
use super::library::Library;
use super::rollback::{has_expired, status_word};
use super::versions::{AttemptCount, VersionedFile, gate_word};
use crate::service::diff::{self, Piece};
use crate::service::error::ServiceError;
use crate::service::session::LedgerSession;

/// A playbook of a list
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ListedPlaybook {
    pub slug: String,
    pub title: String,
    /// active, shadow or archived
    pub status: &'static str,
    /// From 0 to 100; higher priorities are woven first
    pub priority: u8,
    /// The operators that it is for
    pub operators: Vec<String>,
    /// The locked traits that its author does not want to change
    pub lock_check: Vec<String>,
    /// Whether its time is over
    pub expired: bool,
    /// Whether it is active although no gate passed its text
    pub never_gated: bool,
    /// The file, from the workspace's root
    pub file: String,
}

/// A playbook with its versions and its evidence
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlaybookView {
    #[serde(flatten)]
    pub playbook: ListedPlaybook,
    /// The current version; null without changes
    pub version: Option<u32>,
    /// Whether the file was edited without a new version
    pub drifted: bool,
    /// Whether the file is as its history and the ledger have it
    pub intact: bool,
    /// What agents are told
    pub body: String,
    /// The changes, the oldest first
    pub versions: Vec<ShownVersion>,
    /// What the playbook rests on, as its file has it
    pub evidence: Vec<ShownEvidence>,
    #[serde(flatten)]
    pub attempts: AttemptCount,
    /// Outcomes of work with the playbook against work without it; null without a ledger, and for an archived playbook
    pub trial: Option<Trial>,
    /// What it changes in each operator's prompt
    pub prompts: Vec<PromptChange>,
}

/// A version of a playbook
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ShownVersion {
    /// Which one, from 1
    pub version: u32,
    /// When it was written, RFC 3339
    pub at: String,
    /// created, delta, promoted, archived or superseded
    pub event: String,
    pub summary: String,
    pub by: Option<String>,
    /// The gate that a promotion passed
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<&'static str>,
    /// The whole file
    pub text: String,
}

/// An entry of a playbook's evidence
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ShownEvidence {
    /// What it refers to
    #[serde(rename = "ref")]
    pub reference: String,
    pub note: Option<String>,
}

/// The test of the gate a-b, as of now
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Trial {
    /// How many outcomes there are with the playbook
    pub with: u32,
    pub without: u32,
    /// How many outcomes each side needs
    pub min_sample: u32,
    /// Pairs in which the one with it was better
    pub wins: u32,
    /// Pairs in which the one without it was better
    pub losses: u32,
    /// The highest evidence so far; it starts at 1
    pub evidence: f64,
    /// What the evidence has to reach
    pub threshold: f64,
    /// Whether the gate would open
    pub passes: bool,
    /// The evidence after each pair that is no tie
    pub course: Vec<f64>,
    /// The runs that count, in the order in which they ended
    pub runs: Vec<TrialRun>,
}

/// A run that counts in a trial
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TrialRun {
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

/// What a playbook changes in an operator's prompt
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PromptChange {
    pub operator: String,
    /// Why it is not woven, if it is not
    pub skipped: Option<String>,
    /// The way from the prompt without it to the prompt with it, word by word
    pub diff: Vec<Piece>,
}

impl ListedPlaybook {
    pub fn of(library: &Library, file: &PlaybookFile, now_ms: i64) -> ListedPlaybook {
        let playbook = &file.playbook;
        let operators = library.operators_for(playbook).into_iter().map(|(known, _)| known.slug.clone());
        ListedPlaybook {
            slug: playbook.slug.clone(),
            title: playbook.title.clone(),
            status: status_word(playbook.status),
            priority: priority(playbook),
            operators: operators.collect(),
            lock_check: playbook.lock_check.clone(),
            expired: has_expired(file, now_ms) && playbook.status != Status::Archived,
            never_gated: library.gating(file).is_never_gated(),
            file: file.path.workspace_relative(),
        }
    }

    /// The status in a list.
    pub fn status_word(&self) -> String {
        let status = if self.expired { "expired" } else { self.status };
        if self.never_gated { format!("{status}, {NEVER_GATED}") } else { status.to_owned() }
    }

    /// The status, with the problems of the file.
    pub fn status_words(&self, drifted: bool, intact: bool) -> String {
        let gating = if self.never_gated { format!(", {NEVER_GATED}") } else { String::new() };
        let status = format!("{}{gating}", self.status);
        match (self.expired, drifted, intact) {
            (true, ..) => format!("{status}, expired"),
            (_, true, _) => format!("{status}, edited by hand since its last version"),
            (_, _, false) => format!("{status}, differs from the ledger"),
            _ => status,
        }
    }
}

/// The columns of a list of versions.
pub const VERSION_COLUMNS: [&str; 5] = ["version", "at", "what", "by", "in words"];

/// The hint below a list of versions if the file was edited since the last one.
pub const DRIFTED: &str = "It was edited by hand since: run `quorate playbook repair` to accept the change.";

impl ShownVersion {
    /// The versions of a playbook, the oldest first.
    pub fn all(record: &VersionedFile, file: &PlaybookFile) -> Vec<ShownVersion> {
        let entries = file.playbook.history.as_deref().unwrap_or_default();
        record.versions.iter().map(|version| ShownVersion::of(version).with_gate(entries)).collect()
    }

    fn of(version: &Version) -> ShownVersion {
        ShownVersion {
            version: version.n,
            at: version.at.clone(),
            event: version.event.clone(),
            summary: version.summary.clone(),
            by: version.by.clone(),
            gate: None,
            text: version.text.clone(),
        }
    }

    /// Adds the gate from the playbook's own history.
    fn with_gate(self, entries: &[Entry]) -> ShownVersion {
        let entry = entries.iter().find(|entry| entry.at == self.at && self.event == "promoted");
        ShownVersion { gate: entry.and_then(|entry| entry.gate).map(gate_word), ..self }
    }
}

/// The playbooks of a scope, active ones first, in the order of weaving.
pub fn sorted(library: &Library) -> Vec<&PlaybookFile> {
    let mut sorted: Vec<&PlaybookFile> = library.catalogue.books.iter().collect();
    sorted.sort_by_key(|file| {
        let rank = match file.playbook.status {
            Status::Active => 0,
            Status::Shadow => 1,
            Status::Archived => 2,
        };
        (rank, Reverse(priority(&file.playbook)), file.playbook.slug.clone())
    });
    sorted
}

/// A playbook with its versions and its evidence. Without a ledger it has no trial.
///
/// # Errors
/// If its files cannot be read, or the ledger does not answer.
#[crate::boxed]
pub async fn view(
    library: &Library,
    file: &PlaybookFile,
    ledger: Option<&LedgerSession>,
    now_ms: i64,
) -> Result<PlaybookView, ServiceError> {
    let record: VersionedFile = library.record(file)?;
    let playbook = &file.playbook;
    let evidence = playbook.evidence.iter();
    let trial = match ledger.filter(|_| playbook.status != Status::Archived) {
        Some(session) => {
            let settings = &library.workspace.config.playbooks;
            let terms = Thresholds { min_sample: settings.min_sample, error_rate: settings.error_rate };
            Some(Trial::of(gate::evaluate_ab(library, session, file, terms).await?))
        }
        None => None,
    };
    Ok(PlaybookView {
        playbook: ListedPlaybook::of(library, file, now_ms),
        version: record.last().map(|last| last.n),
        drifted: record.has_drifted(),
        intact: record.is_intact(),
        body: file.text().to_owned(),
        versions: ShownVersion::all(&record, file),
        evidence: evidence
            .map(|one| ShownEvidence { reference: one.reference.clone(), note: one.note.clone() })
            .collect(),
        attempts: library.catalogue.attempts(file.text()),
        trial,
        prompts: prompts(library, file, now_ms),
    })
}

impl Trial {
    fn of(evaluation: Evaluation) -> Trial {
        let Evaluation { result, counted, course } = evaluation;
        let run = |counted: CountedRun| TrialRun {
            run: counted.run.to_string(),
            with: counted.side == Side::With,
            made_by: counted.made_by,
            outcome: counted.outcome,
            score: counted.score,
        };
        Trial {
            with: result.with,
            without: result.without,
            min_sample: result.min_sample,
            wins: result.wins,
            losses: result.losses,
            evidence: result.evidence,
            threshold: result.threshold,
            passes: result.passes(),
            course,
            runs: counted.into_iter().map(run).collect(),
        }
    }
}

/// The prompt of each operator with and without a playbook that is not archived. Overlays of advisory runs are left out.
fn prompts(library: &Library, file: &PlaybookFile, now_ms: i64) -> Vec<PromptChange> {
    let playbook = &file.playbook;
    if playbook.status == Status::Archived {
        return Vec::new();
    }
    let redactor = &library.workspace.redaction.redactor;
    let matched = library.operators_for(playbook).into_iter();
    let change = |(known, _): (&super::library::KnownOperator, _)| {
        let mut others = library.candidates_for(known);
        others.retain(|candidate| candidate.overlay.id != playbook.slug);
        let own = Candidate { status: Status::Active, ..known.candidate(playbook, file.text()) };
        let with: Vec<Candidate> = others.iter().cloned().chain([own]).collect();
        let composed =
            |candidates: &[Candidate]| compose(&known.base, candidates, &[], &known.locks(), now_ms).woven;
        let (without, with) = (composed(&others), composed(&with));
        let skipped = with.skipped.iter().find(|skipped| skipped.id == playbook.slug);
        PromptChange {
            operator: known.slug.clone(),
            skipped: skipped.map(|skipped| skipped.reason.to_string()),
            diff: diff::words(&redactor.redact(&without.prompt).0, &redactor.redact(&with.prompt).0),
        }
    };
    matched.map(change).collect()
}
