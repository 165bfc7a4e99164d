//! Promote: a shadow playbook passes a gate and is woven from then on (B6). Archives the playbooks it supersedes.

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::entropy::{self, sha256_hex};
use quorate_kernel::ports::ledger::PlaybookEvent;
use quorate_manifest::playbook::{EntryKind, Gate, Playbook, PlaybookFile, Status};
use quorate_manifest::timestamp;
use quorate_playbook::curate::objections_to;
use quorate_playbook::gate::{GOVERNANCE_PRIORITY, TextIdentity};
use quorate_playbook::log::priority;
use quorate_playbook::weave::Candidate;
use serde_json::{Map, Value, json};

use super::change::{ChangeEvent, PlaybookChange};
use super::library::replacement;
use super::propose::{check_superseded, warn_contradictions};
use super::versions::{NewAttempt, NewVersion, RecordedVersions, VersionedFile, gate_word};
use super::writer::LibraryWriter;
use super::{Approver, GateEvidence};
use crate::service::error::ServiceError;
use crate::service::registries::Registries;

/// The result of a promotion.
#[derive(Debug)]
pub struct PromotionOutcome {
    pub slug: String,
    /// The gate's message.
    pub gate_message: Option<String>,
    /// The new version, if it was promoted.
    pub promoted: Option<u32>,
    /// The playbooks archived with it.
    pub archived: Vec<String>,
    /// Why it was not promoted, and warnings.
    pub report: Report,
}

/// Promotes a playbook, if the gate opens.
///
/// # Errors
/// If the playbook is unknown, or a file cannot be read or written. A closed gate is an outcome.
#[crate::boxed]
pub async fn promote(
    keeping: &mut LibraryWriter,
    slug: &str,
    gate: Gate,
    asked: &mut dyn Approver,
    by: &str,
    registries: &Registries,
) -> Result<PromotionOutcome, ServiceError> {
    let environment = keeping.session.environment.clone();
    let now_ms = environment.clock.now_ms();
    let book = find_playbook(keeping, slug)?.clone();
    let record = keeping.library.record(&book)?;
    record.ensure_intact(&environment)?;
    let mut report = Report::new();
    check_preconditions(keeping, &book, gate, now_ms, &mut report);
    warn_contradictions(&keeping.library, &book.playbook, book.text(), now_ms, &mut report);
    let mut note = None;
    let mut passed = None;
    let mut attempt = None;
    if !report.has_refusals() {
        let new =
            NewAttempt { id: entropy::hex(&entropy::bytes::<8>()), text: TextIdentity::new(book.text()) };
        // Fails if the ledger cannot be read: without the records, the attempt would start a new test.
        let recorded = RecordedVersions::load(&keeping.session.store, &keeping.library.scope).await?;
        let ordinal = match recorded.trials.count(&new.text).attempts {
            0 => String::new(),
            before => format!("; attempt {}", before + 1),
        };
        match super::gate::attempt(keeping, &book, gate, &new, asked, registries).await? {
            Ok(mut through) => {
                through.note.push_str(&ordinal);
                note = Some(through.note.clone());
                passed = Some(through);
            }
            Err(why) => {
                let body = Body::new(format!(
                    "`{slug}` does not pass the gate `{}`: {}{ordinal}",
                    gate_word(gate),
                    why.message
                ));
                report.refuse(codes::PROMOTION_DENIED, body.help(why.help));
            }
        }
        attempt = Some(new);
    }
    // A gate may take long; the time is that of the decision.
    let now_ms = environment.clock.now_ms();
    let mut change = PlaybookChange::new_at(now_ms);
    let Some(passed) = passed else {
        let words = report
            .refusals
            .iter()
            .map(|refusal| format!("{}: {}", refusal.code.as_str(), refusal.body.message));
        let words = format!("not promoted: {}", words.collect::<Vec<_>>().join("; "));
        let mut data = json!({"gate": gate_word(gate), "by": by});
        attempt.iter().for_each(|attempt| attempt.add_to(&mut data));
        change.events.push(ChangeEvent::new(PlaybookEvent::Rejected, slug, words, data));
        keeping.commit(&change, registries).await?;
        return Ok(PromotionOutcome {
            slug: slug.to_owned(),
            gate_message: note,
            promoted: None,
            archived: Vec::new(),
            report,
        });
    };
    let (version, archived) =
        record_promotion(keeping, &book.playbook, &record, gate, &passed, by, now_ms, &mut change)?;
    let promoted = change.events.iter_mut().find(|event| event.slug == slug);
    attempt.iter().zip(promoted).for_each(|(attempt, event)| attempt.add_to(&mut event.data));
    keeping.record_pattern_matches(&book.playbook, &mut change);
    keeping.commit(&change, registries).await?;
    Ok(PromotionOutcome {
        slug: slug.to_owned(),
        gate_message: note,
        promoted: Some(version),
        archived,
        report,
    })
}

/// A playbook by its slug.
///
/// # Errors
/// If it does not exist.
pub fn find_playbook<'k>(keeping: &'k LibraryWriter, slug: &str) -> Result<&'k PlaybookFile, ServiceError> {
    keeping.library.book(slug).ok_or_else(|| unknown_playbook(slug))
}

/// The error of an unknown playbook.
pub fn unknown_playbook(slug: &str) -> ServiceError {
    let body = Body::new(format!("unknown playbook `{slug}`"));
    ServiceError::not_found(
        codes::PLAYBOOK_UNKNOWN,
        body.help("run `quorate playbook list` to see the available playbooks"),
    )
}

/// Conditions that apply to every gate.
fn check_preconditions(
    keeping: &LibraryWriter,
    book: &PlaybookFile,
    gate: Gate,
    now_ms: i64,
    report: &mut Report,
) {
    let playbook = &book.playbook;
    let slug = &playbook.slug;
    let mut deny = |message: String, help: String| {
        report.refuse(codes::PROMOTION_DENIED, Body::new(message).help(help));
    };
    match playbook.status {
        Status::Shadow => {}
        Status::Active => {
            deny(format!("`{slug}` is already active"), "run `quorate weave OPERATOR` to see it".to_owned());
        }
        Status::Archived => deny(
            format!("`{slug}` is archived"),
            format!("run `quorate playbook rollback {slug} --to N` to restore a version"),
        ),
    }
    let weighty = |other: &&String| {
        let other = keeping.library.book(other).map(|book| &book.playbook);
        other.is_some_and(|other| other.status == Status::Active && priority(other) >= GOVERNANCE_PRIORITY)
    };
    if let Some(other) = playbook.supersedes.iter().flatten().find(weighty)
        && gate != Gate::Governance
    {
        deny(
            format!("`{slug}` supersedes `{other}`, which only governance may promote and replace"),
            "promote it with `--gate governance`".to_owned(),
        );
    }
    if priority(playbook) >= GOVERNANCE_PRIORITY && gate != Gate::Governance {
        deny(
            format!(
                "`{slug}` has priority {}, and only governance promotes from {GOVERNANCE_PRIORITY} on",
                priority(playbook)
            ),
            "promote it with `--gate governance`, or propose it with a lower priority".to_owned(),
        );
    }
    if keeping.library.targets_all(playbook) && gate != Gate::Governance {
        deny(
            format!("`{slug}` targets all operators, and only governance promotes such a playbook"),
            "promote it with `--gate governance`, or name the operators in `targets`".to_owned(),
        );
    }
    if let Some((block, id, operator)) = carried_trait(keeping, playbook)
        && gate != Gate::Governance
    {
        deny(
            format!("`{slug}` replaces `{block}`, which carries the locked trait `{id}` of `{operator}`"),
            "promote it with `--gate governance`, or propose it as an overlay".to_owned(),
        );
    }
    check_superseded(&keeping.library, playbook, report);
    if let Some(other) = replacement(&keeping.library.catalogue, playbook) {
        let body =
            Body::new(format!("`{other}` is active and supersedes `{slug}`, so it would not be woven"));
        let help = format!("archive `{other}` first, or roll `{slug}` back to a version that was active");
        report.refuse(codes::PROMOTION_DENIED, body.help(help));
    }
    let mut deny = |message: String, help: String| {
        report.refuse(codes::PROMOTION_DENIED, Body::new(message).help(help));
    };
    let library = &keeping.library;
    let matched = library.operators_for(playbook);
    if matched.is_empty() {
        deny(
            format!("the targets of `{slug}` match no operator in this scope"),
            "correct its targets with another proposal".to_owned(),
        );
    }
    let candidates: Vec<(String, Vec<Candidate>)> =
        matched.iter().map(|(known, _)| (known.slug.clone(), library.candidates_for(known))).collect();
    let most = library.workspace.config.playbooks.max_active;
    let expired = matched
        .first()
        .and_then(|(known, _)| known.candidate(playbook, book.text()).overlay.expires_ms)
        .is_some_and(|expires| expires <= now_ms);
    if expired {
        deny(format!("`{slug}` has expired"), "propose it again if it still holds".to_owned());
    }
    for (operator, all) in &candidates {
        let count = count_active_beside(all, playbook, now_ms);
        if count >= most {
            deny(
                format!("`{operator}` has {count} active playbooks, and at most {most} are allowed"),
                format!(
                    "archive one first, or raise `max_active` in quorate.toml; `quorate weave {operator} --explain` shows them"
                ),
            );
        }
    }
    for objection in objections_to(&library.affected(playbook, book.text(), &candidates), now_ms) {
        report.refuse(objection.code(), Body::new(objection.to_string()).help(objection.help()));
    }
}

/// Replaced blocks that carry traits: their content is lost, and no word in the replacement shows that.
const TRAIT_BLOCKS: [(&str, &[&str]); 2] =
    [("voice", &["voice-register"]), ("boundaries", &["safety-boundary", "refuse-harm"])];

/// The block that a playbook replaces, the locked trait in it, and its operator.
fn carried_trait(keeping: &LibraryWriter, playbook: &Playbook) -> Option<(String, String, String)> {
    let block = playbook.block.as_ref()?;
    let (_, ids) = TRAIT_BLOCKS.iter().find(|(name, _)| name == block)?;
    let matched = keeping.library.operators_for(playbook);
    matched.iter().find_map(|(known, _)| {
        let id = known.traits.iter().find(|locked_trait| ids.contains(&&*locked_trait.id))?;
        Some((block.clone(), id.id.clone(), known.slug.clone()))
    })
}

/// The number of playbooks active for an operator besides one and those it supersedes.
pub(super) fn count_active_beside(all: &[Candidate], playbook: &Playbook, now_ms: i64) -> usize {
    let superseded = playbook.supersedes.as_deref().unwrap_or_default();
    let counts = |candidate: &&Candidate| {
        candidate.status == Status::Active
            && candidate.overlay.expires_ms.is_none_or(|expires| expires > now_ms)
            && candidate.overlay.id != playbook.slug
            && !superseded.contains(&candidate.overlay.id)
    };
    all.iter().filter(counts).count()
}

#[expect(clippy::too_many_arguments, reason = "a promotion consists of all of these")]
fn record_promotion(
    keeping: &LibraryWriter,
    playbook: &Playbook,
    record: &VersionedFile,
    gate: Gate,
    passed: &GateEvidence,
    by: &str,
    now_ms: i64,
    change: &mut PlaybookChange,
) -> Result<(u32, Vec<String>), ServiceError> {
    let environment = &keeping.session.environment;
    let at = timestamp::format(now_ms);
    let slug = &playbook.slug;
    let summary = format!("passed the gate {}: {}", gate_word(gate), passed.note);
    let step =
        NewVersion { kind: EntryKind::Promoted, summary: &truncate(&summary), by, gate: Some(gate), at: &at };
    let (files, version) = record.next_version(&step, None, |edit| {
        edit.set_string("status", "active");
        edit.set_string("updated_at", &at);
        edit.push_item("evidence", &evidence_entry(passed));
    })?;
    let promoted = files;
    let mut archived = Vec::new();
    let mut events = Vec::new();
    for other in playbook.supersedes.iter().flatten() {
        let Some(book) = keeping.library.book(other) else { continue };
        if book.playbook.status == Status::Archived {
            continue;
        }
        let record = keeping.library.record(book)?;
        record.ensure_intact(environment)?;
        let author = format!("{slug}@v{}", version.n);
        let summary = format!("`{slug}` took its place");
        let step =
            NewVersion { kind: EntryKind::Superseded, summary: &summary, by: &author, gate: None, at: &at };
        let (files, gone) = record.next_version(&step, None, |edit| {
            edit.set_string("status", "archived");
            edit.set_string("updated_at", &at);
        })?;
        change.files.extend(files);
        let data =
            json!({"version": gone.n, "sha256": sha256_hex(gone.text.as_bytes()), "superseded_by": slug});
        events.push(ChangeEvent::new(
            PlaybookEvent::Archived,
            other,
            format!("superseded by `{slug}`"),
            data,
        ));
        archived.push(other.clone());
    }
    // After the superseded playbooks: if the process dies in between, neither is woven, rather than both.
    change.files.extend(promoted);
    let data = json!({
        "version": version.n, "sha256": sha256_hex(version.text.as_bytes()), "gate": gate_word(gate), "by": by,
        "evidence": passed.reference, "supersedes": archived,
    });
    change.events.push(ChangeEvent::new(PlaybookEvent::Promoted, slug, summary, data));
    change.events.extend(events);
    Ok((version.n, archived))
}

fn evidence_entry(passed: &GateEvidence) -> Map<String, Value> {
    let entry = json!({"kind": passed.kind, "ref": passed.reference, "note": truncate(&passed.note)});
    entry.as_object().cloned().unwrap_or_default()
}

/// Shortens a text for a history.
fn truncate(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(900).collect()
}
