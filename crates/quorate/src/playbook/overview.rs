//! What is shown of playbooks: the list of a scope, one playbook with its versions, its evidence and its effect on prompts,
//! and the ledger's records of them.

use std::cmp::Reverse;

use quorate_kernel::clock::rfc3339;
use quorate_kernel::ports::ledger::{Ledger as _, Record};
use quorate_manifest::playbook::load::is_over;
use quorate_manifest::playbook::{EntryKind, Gate, PlaybookFile, Status};
use quorate_playbook::history::Version;
use quorate_playbook::log::{NEVER_GATED, priority, status_rank};
use quorate_playbook::weave::Candidate;
use quorate_protocol::Json;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Map;

use super::change::{playbook_event, playbook_stream};
use super::library::{KnownOperator, Library};
use super::promote::{Trial, evaluate_ab};
use super::versions::{AttemptCount, VersionedFile};
use crate::service::diff::{self, Piece};
use crate::service::error::Error;
use crate::service::session::LedgerSession;
use crate::view::wording::minute;
use crate::view::{Doc, Table, Text, Tone};

/// A playbook of a list
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ListedPlaybook {
    /// Its name, unique in the workspace
    pub slug: String,
    /// One sentence: what it does
    pub title: String,
    /// active, shadow or archived
    #[schemars(with = "String")]
    pub status: Status,
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

/// The playbooks of a workspace, or of a tenant
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlaybookList {
    /// In the order of their files
    pub playbooks: Vec<ListedPlaybook>,
}

/// A playbook as it is now
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlaybookState {
    /// As the list has it
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
    /// How often gates were asked about its text
    #[serde(flatten)]
    pub attempts: AttemptCount,
}

/// A playbook, what it may touch, and what it rests on
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlaybookDetails {
    /// The playbook now
    #[serde(flatten)]
    pub state: PlaybookState,
    /// The locked traits that it may touch
    pub exceptions: Vec<AllowedTouch>,
    /// The playbooks that it replaces
    #[serde(skip)]
    pub supersedes: Vec<String>,
    /// What it rests on, as its file has it
    #[serde(skip)]
    pub evidence: Vec<ShownEvidence>,
}

/// A locked trait that a playbook may touch
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AllowedTouch {
    /// The id of the trait
    #[serde(rename = "trait")]
    pub locked: String,
    /// Who allowed it
    pub by: String,
    /// Why the text does not harm the trait
    pub reason: String,
}

/// The versions of a playbook
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlaybookHistory {
    /// The playbook
    pub slug: String,
    /// The oldest first
    pub versions: Vec<ShownVersion>,
    /// Whether the file was edited without a new version
    pub drifted: bool,
    /// How often gates were asked about its text
    #[serde(flatten)]
    pub attempts: AttemptCount,
}

/// A playbook with its versions, its evidence and its effect
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlaybookView {
    /// The playbook now
    #[serde(flatten)]
    pub state: PlaybookState,
    /// The changes, the oldest first
    pub versions: Vec<ShownVersion>,
    /// What the playbook rests on, as its file has it
    pub evidence: Vec<ShownEvidence>,
    /// Outcomes of work with the playbook against work without it; null without a ledger, and for an archived playbook
    pub trial: Option<Trial>,
    /// What it changes in each operator's prompt
    pub prompts: Vec<PromptChange>,
}

/// A version of a playbook
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ShownVersion {
    /// The version, with its file
    #[serde(flatten)]
    pub version: Version,
    /// The gate that a promotion passed
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub gate: Option<Gate>,
}

/// The ledger's records of playbooks
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlaybookLog {
    /// The oldest first
    pub events: Vec<LoggedEvent>,
}

/// A record of a playbook
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoggedEvent {
    /// Its number in the stream
    pub n: u64,
    /// RFC 3339
    pub at: String,
    /// The kind of record
    pub event: String,
    /// Its fields; `None` if they were erased
    pub data: Option<Map<String, Json>>,
    #[serde(skip)]
    at_ms: i64,
}

/// An entry of a playbook's evidence
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ShownEvidence {
    /// What it refers to
    #[serde(rename = "ref")]
    pub reference: String,
    /// What it shows
    pub note: Option<String>,
}

/// What a playbook changes in an operator's prompt
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PromptChange {
    /// Whose prompt it is
    pub operator: String,
    /// Why it is not woven, if it is not
    pub skipped: Option<String>,
    /// The way from the prompt without it to the prompt with it, word by word
    pub diff: Vec<Piece>,
}

impl ListedPlaybook {
    fn of(library: &Library, file: &PlaybookFile) -> ListedPlaybook {
        let playbook = &file.playbook;
        let operators = library.operators_for(playbook).into_iter().map(|(known, _)| known.slug.clone());
        ListedPlaybook {
            slug: playbook.slug.clone(),
            title: playbook.title.clone(),
            status: playbook.status,
            priority: priority(playbook),
            operators: operators.collect(),
            lock_check: playbook.lock_check.clone(),
            expired: is_over(playbook, library.now_ms()) && playbook.status != Status::Archived,
            never_gated: library.gating(file).is_never_gated(),
            file: file.path.workspace_relative(),
        }
    }

    /// The status in a list.
    pub fn status_word(&self) -> String {
        let status = if self.expired { "expired" } else { self.status.as_str() };
        if self.never_gated { format!("{status}, {NEVER_GATED}") } else { status.to_owned() }
    }
}

impl PlaybookList {
    /// All playbooks of a library, in the order of their files.
    pub(crate) fn of(library: &Library) -> PlaybookList {
        let listed = |file| ListedPlaybook::of(library, file);
        PlaybookList { playbooks: library.catalogue.books.iter().map(listed).collect() }
    }

    /// Active ones first, in the order of weaving.
    #[must_use]
    pub fn in_weaving_order(mut self) -> PlaybookList {
        let rank = |one: &ListedPlaybook| (status_rank(one.status), Reverse(one.priority), one.slug.clone());
        self.playbooks.sort_by_key(rank);
        self
    }

    /// A table of the playbooks, in the order of weaving.
    pub fn doc(&self) -> Doc {
        let mut table = Table::new(["playbook", "status", "priority", "operators", "title"]);
        for one in self.clone().in_weaving_order().playbooks {
            let tone = if one.expired { Tone::Absent } else { Tone::Plain };
            table.row([
                Text::strong(&one.slug),
                Text::toned(tone, one.status_word()),
                one.priority.to_string().into(),
                one.operators.join(", ").into(),
                one.title.into(),
            ]);
        }
        Doc::of_table(table, "no playbooks")
    }
}

impl PlaybookState {
    fn of(library: &Library, file: &PlaybookFile, record: &VersionedFile) -> PlaybookState {
        PlaybookState {
            playbook: ListedPlaybook::of(library, file),
            version: record.last().map(|last| last.n),
            drifted: record.has_drifted(),
            intact: record.is_intact(),
            body: file.text().to_owned(),
            attempts: library.catalogue.attempts(file.text()),
        }
    }

    /// The status, with the problems of the file.
    fn status_words(&self) -> String {
        let gating = if self.playbook.never_gated { format!(", {NEVER_GATED}") } else { String::new() };
        let status = format!("{}{gating}", self.playbook.status.as_str());
        match (self.playbook.expired, self.drifted, self.intact) {
            (true, ..) => format!("{status}, expired"),
            (_, true, _) => format!("{status}, edited by hand since its last version"),
            (_, _, false) => format!("{status}, differs from the ledger"),
            _ => status,
        }
    }

    /// Everything but its text, each with a label.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let listed = &self.playbook;
        let facts = [
            ("slug", listed.slug.clone()),
            ("file", listed.file.clone()),
            ("status", self.status_words()),
            ("version", self.version.map_or_else(|| "none yet".to_owned(), |version| version.to_string())),
            ("priority", listed.priority.to_string()),
            ("operators", listed.operators.join(", ")),
            ("lock_check", listed.lock_check.join(", ")),
            ("attempts", if self.attempts.attempts > 0 { self.attempts.to_string() } else { String::new() }),
        ];
        facts.into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }
}

impl PlaybookDetails {
    pub(crate) fn of(library: &Library, slug: &str) -> Result<PlaybookDetails, Error> {
        let file = library.find(slug)?;
        let allowed = library.exceptions.allowed(slug, file.text()).into_iter();
        let exceptions = allowed.map(|exception| AllowedTouch {
            locked: exception.locked.clone(),
            by: exception.by.clone(),
            reason: exception.reason.clone(),
        });
        Ok(PlaybookDetails {
            state: PlaybookState::of(library, file, &library.record(file)?),
            exceptions: exceptions.collect(),
            supersedes: file.playbook.supersedes.clone().unwrap_or_default(),
            evidence: ShownEvidence::all(file),
        })
    }

    /// The text and all facts.
    pub fn doc(&self) -> Doc {
        let mut doc = Doc::new();
        doc.title(Text::strong(&self.state.playbook.title));
        doc.prose(&self.state.body);
        let mut facts = self.state.facts();
        if !self.supersedes.is_empty() {
            facts.push(("supersedes", self.supersedes.join(", ")));
        }
        let touch = |one: &AllowedTouch| {
            ("exception", format!("may touch {}, says {}: {}", one.locked, one.by, one.reason))
        };
        facts.extend(self.exceptions.iter().map(touch));
        let evidence = |one: &ShownEvidence| {
            let note = one.note.as_deref().map_or(String::new(), |note| format!(": {note}"));
            ("evidence", format!("{}{note}", one.reference))
        };
        facts.extend(self.evidence.iter().map(evidence));
        doc.facts(facts);
        doc
    }
}

impl PlaybookHistory {
    pub(crate) fn of(library: &Library, slug: &str) -> Result<PlaybookHistory, Error> {
        let file = library.find(slug)?;
        let record = library.record(file)?;
        Ok(PlaybookHistory {
            versions: ShownVersion::all(&record, file),
            drifted: record.has_drifted(),
            attempts: library.catalogue.attempts(file.text()),
            slug: record.slug,
        })
    }

    /// A table of the versions, and how often gates were asked.
    pub fn doc(&self) -> Doc {
        let mut doc = table_of_versions(&self.slug, &self.versions);
        if self.attempts.attempts > 0 {
            doc.line(format!("attempts to promote this text: {}", self.attempts));
        }
        if self.drifted {
            doc.line(DRIFTED);
        }
        doc
    }
}

fn table_of_versions(slug: &str, versions: &[ShownVersion]) -> Doc {
    let mut table = Table::new(["version", "at", "what", "by", "in words"]);
    for ShownVersion { version, .. } in versions {
        let Version { n, at, event, summary, by, .. } = version;
        let by = by.as_deref().unwrap_or_default();
        table.row([Text::strong(n.to_string()), at.into(), event.into(), by.into(), summary.into()]);
    }
    Doc::of_table(table, &format!("no records of {slug} yet"))
}

/// The hint about a file that was edited since its last version.
pub const DRIFTED: &str = "It was edited by hand since: run `quorate playbook repair` to accept the change.";

impl ShownVersion {
    /// The versions of a playbook, the oldest first, with the gates from the playbook's own history.
    fn all(record: &VersionedFile, file: &PlaybookFile) -> Vec<ShownVersion> {
        let gate = |version: &Version| {
            let is_promotion = version.event == EntryKind::Promoted.as_str();
            is_promotion.then(|| file.playbook.gate_of_promotion(&version.at)).flatten()
        };
        let shown = |version: &Version| ShownVersion { version: version.clone(), gate: gate(version) };
        record.versions.iter().map(shown).collect()
    }
}

impl ShownEvidence {
    fn all(file: &PlaybookFile) -> Vec<ShownEvidence> {
        let evidence = file.playbook.evidence.iter();
        evidence
            .map(|one| ShownEvidence { reference: one.reference.clone(), note: one.note.clone() })
            .collect()
    }
}

impl PlaybookLog {
    /// The records of a library's playbooks; only those of `slug`, if given.
    #[crate::boxed]
    pub(crate) async fn of(
        session: &LedgerSession,
        library: &Library,
        slug: Option<&str>,
    ) -> Result<PlaybookLog, Error> {
        let records = session.store.records(&playbook_stream(&library.scope)).await?;
        let is_of = |record: &Record| {
            slug.is_none_or(|slug| {
                playbook_event(record).and_then(|event| event.slug).as_deref() == Some(slug)
            })
        };
        let event = |record: Record| LoggedEvent {
            n: record.n,
            at: rfc3339(record.at_ms),
            event: record.kind.to_string(),
            data: record.data,
            at_ms: record.at_ms,
        };
        Ok(PlaybookLog { events: records.into_iter().filter(is_of).map(event).collect() })
    }

    /// A table of the records.
    pub fn doc(&self) -> Doc {
        let mut table = Table::new(["at (UTC)", "event", "playbook", "in words"]);
        for LoggedEvent { event, data, at_ms, .. } in &self.events {
            let text = |key: &str| data.as_ref().and_then(|data| data.get(key)?.as_str()).unwrap_or_default();
            table.row([
                minute(*at_ms).into(),
                Text::strong(event),
                text("slug").into(),
                text("words").into(),
            ]);
        }
        Doc::of_table(table, "nothing is recorded")
    }
}

impl PlaybookView {
    /// Without a ledger it has no trial.
    #[crate::boxed]
    pub(super) async fn of(
        library: &Library,
        file: &PlaybookFile,
        ledger: Option<&LedgerSession>,
    ) -> Result<PlaybookView, Error> {
        let record = library.record(file)?;
        let trial = match ledger.filter(|_| file.playbook.status != Status::Archived) {
            Some(session) => Some(evaluate_ab(library, session, file).await?),
            None => None,
        };
        Ok(PlaybookView {
            state: PlaybookState::of(library, file, &record),
            versions: ShownVersion::all(&record, file),
            evidence: ShownEvidence::all(file),
            trial,
            prompts: prompts(library, file),
        })
    }

    /// A table of the versions.
    pub fn history(&self) -> Doc {
        table_of_versions(&self.state.playbook.slug, &self.versions)
    }

    /// What each version changes in the file, word by word.
    pub fn changes(&self) -> Vec<(u32, Vec<Piece>)> {
        let change = |pair: &[ShownVersion]| {
            (pair[1].version.n, diff::words(&pair[0].version.text, &pair[1].version.text))
        };
        self.versions.windows(2).map(change).filter(|(_, pieces)| !pieces.is_empty()).collect()
    }
}

/// The prompt of each operator with and without a playbook that is not archived. Overlays of advisory runs are left out.
fn prompts(library: &Library, file: &PlaybookFile) -> Vec<PromptChange> {
    let playbook = &file.playbook;
    if playbook.status == Status::Archived {
        return Vec::new();
    }
    let redactor = &library.workspace.redaction.redactor;
    let matched = library.operators_for(playbook).into_iter();
    let now_ms = library.now_ms();
    let change = |(known, _): (&KnownOperator, _)| {
        let mut others = library.candidates_for(known);
        others.retain(|candidate| candidate.slug != playbook.slug);
        let own = Candidate { status: Status::Active, ..known.candidate(playbook, file.text()) };
        let with: Vec<Candidate> = others.iter().cloned().chain([own]).collect();
        let composed = |candidates: &[Candidate]| known.compose(candidates, now_ms).woven;
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
