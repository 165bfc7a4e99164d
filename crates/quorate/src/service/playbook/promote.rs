//! Promote: a shadow playbook passes a gate and is woven from then on (B6). Archives the playbooks it supersedes.

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::attempts::object;
use quorate_kernel::ports::ledger::PlaybookEvent;
use quorate_manifest::playbook::{EntryKind, Gate, Playbook, PlaybookFile, Status};
use quorate_playbook::gate::GOVERNANCE_PRIORITY;
use quorate_playbook::log::priority;
use quorate_playbook::weave::Candidate;
use serde::Serialize;
use serde_json::json;

use super::change::{ChangeEvent, PlaybookChange};
use super::library::{Library, replacement};
use super::propose::{check_superseded, refusals_in_words, warn_contradictions};
use super::versions::{NewAttempt, NewVersion, RecordedVersions, VersionedFile, set_status};
use super::writer::LibraryWriter;
use super::{Approver, GateEvidence};
use crate::service::error::Error;
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
pub async fn promote(
    keeping: &mut LibraryWriter,
    slug: String,
    gate: Gate,
    mut asked: Box<dyn Approver>,
) -> Result<Promotion, Error> {
    let (book, record) = keeping.intact(&slug)?;
    let mut outcome = Promotion {
        slug,
        gate_message: None,
        version: None,
        promoted: false,
        archived: Vec::new(),
        report: Report::new(),
    };
    let now_ms = keeping.now_ms();
    let report = &mut outcome.report;
    check_preconditions(keeping, &book, gate, now_ms, report);
    warn_contradictions(&keeping.library, &book.playbook, book.text(), now_ms, report);
    let mut passed = None;
    let mut attempt = None;
    if !report.has_refusals() {
        let new = NewAttempt::new(book.text());
        // Fails if the ledger cannot be read: without the records, the attempt would start a new test.
        let recorded = RecordedVersions::load(&keeping.session.store, &keeping.library.scope).await?;
        let ordinal = match recorded.trials.count(&new.text).attempts {
            0 => String::new(),
            before => format!("; attempt {}", before + 1),
        };
        match super::gate::attempt(keeping, &book, gate, &new, &mut *asked).await? {
            Ok(mut through) => {
                through.note.push_str(&ordinal);
                outcome.gate_message = Some(through.note.clone());
                passed = Some(through);
            }
            Err(why) => {
                let (slug, gate) = (&outcome.slug, gate.as_str());
                let message = format!("`{slug}` does not pass the gate `{gate}`: {}{ordinal}", why.message);
                report.refuse(codes::PROMOTION_DENIED, Body::new(message).help(why.help));
            }
        }
        attempt = Some(new);
    }
    // A gate may take long; the time is that of the decision.
    let mut change = PlaybookChange::new_at(keeping.now_ms());
    match passed {
        Some(passed) => {
            outcome.archived = archive_superseded(keeping, &book.playbook, &record, &mut change)?;
            let version = add_promotion(keeping, &record, gate, &passed, &outcome.archived, &mut change)?;
            // The files of superseded playbooks come first: if the process dies in between, neither is woven, rather
            // than both. The events begin with the promotion.
            change.events.rotate_right(1);
            (outcome.version, outcome.promoted) = (Some(version), true);
        }
        None => {
            let words = format!("not promoted: {}", refusals_in_words(&outcome.report));
            let data = json!({"gate": gate, "by": keeping.user()});
            change.events.push(ChangeEvent::new(PlaybookEvent::Rejected, &outcome.slug, words, data));
        }
    }
    attempt
        .iter()
        .zip(change.events.first_mut())
        .for_each(|(attempt, event)| attempt.add_to(&mut event.data));
    if outcome.promoted {
        keeping.record_pattern_matches(&book.playbook, &mut change);
    }
    keeping.commit(&change).await?;
    Ok(outcome)
}

fn deny(report: &mut Report, message: String, help: impl Into<String>) {
    report.refuse(codes::PROMOTION_DENIED, Body::new(message).help(help));
}

/// Conditions that apply to every gate.
fn check_preconditions(
    keeping: &LibraryWriter,
    book: &PlaybookFile,
    gate: Gate,
    now_ms: i64,
    report: &mut Report,
) {
    let (library, playbook) = (&keeping.library, &book.playbook);
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
    let expires =
        matched.first().and_then(|(known, _)| known.candidate(playbook, book.text()).overlay.expires_ms);
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
    for objection in library.objections(playbook, book.text(), &standing, now_ms) {
        report.refuse(objection.code(), objection.body());
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
            && candidate.overlay.id != playbook.slug
            && !superseded.contains(&candidate.overlay.id)
    };
    all.iter().filter(counts).count()
}

/// Archives the playbooks that a promoted one supersedes; returns their slugs.
fn archive_superseded(
    keeping: &LibraryWriter,
    playbook: &Playbook,
    record: &VersionedFile,
    change: &mut PlaybookChange,
) -> Result<Vec<String>, Error> {
    let slug = &playbook.slug;
    let author = format!("{slug}@v{}", record.next_n());
    let mut archived = Vec::new();
    for other in playbook.supersedes.iter().flatten() {
        let Some(book) = keeping.library.book(other) else { continue };
        if book.playbook.status == Status::Archived {
            continue;
        }
        let record = keeping.intact_record(book)?;
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
    keeping: &LibraryWriter,
    record: &VersionedFile,
    gate: Gate,
    passed: &GateEvidence,
    archived: &[String],
    change: &mut PlaybookChange,
) -> Result<u32, Error> {
    let by = keeping.user();
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
