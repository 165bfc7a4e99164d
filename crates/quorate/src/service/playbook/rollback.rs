//! Rollback: restores an earlier version of a playbook, and so the prompt (B7). Rolling back a promotion restores what it
//! superseded; reactivating a playbook displaces its replacement. Archiving retires a playbook on request or when it
//! expires.

use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::PlaybookEvent;
use quorate_manifest::playbook::load::{self, written_at};
use quorate_manifest::playbook::{EntryKind, PlaybookFile, Status};
use quorate_manifest::timestamp;
use quorate_playbook::bind::Binding;
use quorate_playbook::curate::objections_to;
use quorate_playbook::history::Version;
use quorate_playbook::weave::Candidate;
use serde_json::json;

use super::change::{ChangeEvent, PlaybookChange};
use super::inspect::parse_playbook;
use super::library::KnownOperator;
use super::promote::{count_active_beside, find_playbook};
use super::versions::{NewVersion, VersionedFile};
use super::writer::LibraryWriter;
use crate::service::error::{ExitClass, ServiceError};
use crate::service::registries::Registries;

/// The result of a rollback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollbackResult {
    /// The playbook's new version.
    pub version: u32,
    /// Its status now.
    pub status: &'static str,
    /// Other playbooks that changed with it.
    pub others: Vec<String>,
}

/// Rolls a playbook back.
///
/// # Errors
/// If the version does not exist or may no longer be woven, or if a file cannot be written.
#[crate::boxed]
pub async fn rollback(
    keeping: &mut LibraryWriter,
    slug: &str,
    to: u32,
    by: &str,
    registries: &Registries,
) -> Result<RollbackResult, ServiceError> {
    let environment = keeping.session.environment.clone();
    let book = find_playbook(keeping, slug)?.clone();
    let record = keeping.library.record(&book)?;
    record.ensure_intact(&environment)?;
    let version = record.version(to)?.clone();
    if record.last().is_some_and(|last| last.n == to) {
        let body = Body::new(format!("`{slug}` is already at version {to}"));
        return Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body));
    }
    let now_ms = environment.clock.now_ms();
    let mut change = PlaybookChange::new_at(now_ms);
    let (status, new) = restore(keeping, &record, &version, by, &mut change, registries)?;
    let me = format!("{slug}@v{new}");
    // The rolled-back playbook makes room for those it had displaced.
    let taken_back = version_names_after(&record, to);
    let (mut others, mut woven) = (Vec::new(), Vec::new());
    woven.extend(restore_displaced(keeping, slug, taken_back, &me, &mut change, &mut others, registries)?);
    // An expired version is not woven, so it displaces no playbook.
    let is_over = load::is_over(&parse_playbook(keeping, &version.text, registries)?.0, now_ms);
    if status == Status::Active && !is_over {
        for other in keeping.library.catalogue.books.clone() {
            let names = |book: &PlaybookFile, named: &str| {
                book.playbook.supersedes.iter().flatten().any(|slug| slug == named)
            };
            let replaces = names(&other, slug) || names(&book, &other.playbook.slug);
            if !replaces || others.contains(&other.playbook.slug) {
                continue;
            }
            let record = keeping.library.record(&other)?;
            if is_active_by_history(keeping, &other, &record, registries)? {
                archive_displaced(keeping, &other, slug, &me, &mut change)?;
                others.push(other.playbook.slug.clone());
                // Every other playbook that it had displaced returns as well.
                let had_taken = version_names_after(&record, 0);
                woven.extend(restore_displaced(
                    keeping,
                    slug,
                    had_taken,
                    &me,
                    &mut change,
                    &mut others,
                    registries,
                )?);
            }
        }
    }
    if status == Status::Active {
        woven.push(version);
    }
    let mut changed = others.clone();
    changed.push(slug.to_owned());
    ensure_weavable(keeping, &woven, &changed, now_ms, registries)?;
    keeping.commit(&change, registries).await?;
    Ok(RollbackResult { version: new, status: status_word(status), others })
}

/// The names by which other histories cite a playbook's versions after `to`.
fn version_names_after(record: &VersionedFile, to: u32) -> Vec<String> {
    let after = record.versions.iter().filter(|version| version.n > to);
    after.map(|version| format!("{}@v{}", record.slug, version.n)).collect()
}

/// Restores the playbooks that `versions` displaced, except `but`; returns the versions that are active again.
fn restore_displaced(
    keeping: &LibraryWriter,
    but: &str,
    versions: Vec<String>,
    me: &str,
    change: &mut PlaybookChange,
    others: &mut Vec<String>,
    registries: &Registries,
) -> Result<Vec<Version>, ServiceError> {
    let mut woven = Vec::new();
    let environment = &keeping.session.environment;
    let books = keeping.library.catalogue.books.iter();
    for book in books.filter(|book| book.playbook.slug != but) {
        let record = keeping.library.record(book)?;
        let is_one = record.last().and_then(|last| last.by.as_ref()).is_some_and(|by| versions.contains(by));
        if !is_one || others.contains(&record.slug) {
            continue;
        }
        record.ensure_intact(environment)?;
        if let Some(before) = record.versions.iter().rev().nth(1).cloned() {
            let (status, _) = restore(keeping, &record, &before, me, change, registries)?;
            woven.extend((status == Status::Active).then_some(before));
            others.push(record.slug);
        }
    }
    Ok(woven)
}

/// Restores a version of a playbook as its newest one.
fn restore(
    keeping: &LibraryWriter,
    record: &VersionedFile,
    version: &Version,
    by: &str,
    change: &mut PlaybookChange,
    registries: &Registries,
) -> Result<(Status, u32), ServiceError> {
    if record.recorded.contradicts(version.n, &sha256_hex(version.text.as_bytes())) {
        let body = Body::new(format!("version {} of `{}` is not in the ledger", version.n, record.slug));
        let help = "its history was rewritten or copied; restore it from a copy or from version control";
        return Err(ServiceError::configuration(codes::HISTORY_MUTATION, body.help(help)));
    }
    let previous = parse_playbook(keeping, &version.text, registries)?.0;
    let status = previous.status;
    // Without its own date it is as old as its last entry, or undated; the new entry must not change that.
    let undated = previous.updated_at.is_none() && previous.created_at.is_none();
    let written = undated.then(|| written_at(&previous).map_or_else(|| timestamp::format(0), str::to_owned));
    let at = timestamp::format(change.at_ms);
    let summary = format!("rolled back to version {}, which is {}", version.n, status_word(status));
    let step = NewVersion { kind: EntryKind::Delta, summary: &summary, by, gate: None, at: &at };
    // Entries are append-only; the rest is restored.
    let entries = parse_playbook(keeping, &record.text, registries)?.1;
    let (files, new) = record.next_version(&step, Some(&version.text), |edit| {
        if let Some(entries) = entries {
            edit.set_json("history", &entries);
        }
        if let Some(written) = &written {
            edit.set_string("updated_at", written);
        }
    })?;
    change.files.extend(files);
    let event = match status {
        Status::Active => PlaybookEvent::Promoted,
        Status::Shadow => PlaybookEvent::Shadowed,
        Status::Archived => PlaybookEvent::Archived,
    };
    let data = json!({
        "version": new.n, "sha256": sha256_hex(new.text.as_bytes()), "rolled_back_to": version.n, "by": by,
    });
    change.events.push(ChangeEvent::new(event, &record.slug, summary.clone(), data));
    Ok((status, new.n))
}

/// Whether a playbook is active by its history. A file that was made active by hand passed no gate: it is not woven and a
/// repair moves it to shadow, so it is not displaced.
fn is_active_by_history(
    keeping: &LibraryWriter,
    book: &PlaybookFile,
    record: &VersionedFile,
    registries: &Registries,
) -> Result<bool, ServiceError> {
    match record.last().filter(|_| record.has_drifted()) {
        Some(last) => Ok(parse_playbook(keeping, &last.text, registries)?.0.status == Status::Active),
        None => Ok(book.playbook.status == Status::Active),
    }
}

fn archive_displaced(
    keeping: &LibraryWriter,
    book: &PlaybookFile,
    slug: &str,
    me: &str,
    change: &mut PlaybookChange,
) -> Result<(), ServiceError> {
    let environment = &keeping.session.environment;
    let record = keeping.library.record(book)?;
    record.ensure_intact(environment)?;
    let at = timestamp::format(change.at_ms);
    let summary = format!("`{slug}` was rolled back and took its place");
    let step = NewVersion { kind: EntryKind::Superseded, summary: &summary, by: me, gate: None, at: &at };
    let (files, version) = record.next_version(&step, None, |edit| {
        edit.set_string("status", "archived");
        edit.set_string("updated_at", &at);
    })?;
    change.files.extend(files);
    let data =
        json!({"version": version.n, "sha256": sha256_hex(version.text.as_bytes()), "superseded_by": slug});
    change.events.push(ChangeEvent::new(PlaybookEvent::Archived, &book.playbook.slug, summary.clone(), data));
    Ok(())
}

/// A version that passed a gate once may now exceed the cap or touch a new lock. `changed` are all playbooks of the
/// rollback, `woven` the versions that are active after it.
fn ensure_weavable(
    keeping: &LibraryWriter,
    woven: &[Version],
    changed: &[String],
    now_ms: i64,
    registries: &Registries,
) -> Result<(), ServiceError> {
    let library = &keeping.library;
    let woven = woven.iter().map(|version| parse_playbook(keeping, &version.text, registries));
    let woven: Vec<_> = woven.collect::<Result<_, _>>()?;
    for (playbook, _, text) in &woven {
        let matched = library.operators_for(playbook);
        let candidates_for = |known: &KnownOperator| {
            let mut all = library.candidates_for(known);
            all.retain(|candidate| !changed.contains(&candidate.overlay.id));
            let with = woven.iter().filter(|(one, ..)| Binding::new(one).matches(&known.subject).is_some());
            all.extend(with.map(|(one, _, text)| known.candidate(one, text)));
            (known.slug.clone(), all)
        };
        let candidates_for: Vec<(String, Vec<Candidate>)> =
            matched.iter().map(|(known, _)| candidates_for(known)).collect();
        let most = library.workspace.config.playbooks.max_active;
        let full = candidates_for.iter().find(|(_, all)| count_active_beside(all, playbook, now_ms) >= most);
        if let Some((operator, _)) = full {
            let body = Body::new(format!("`{operator}` already has {most} active playbooks"));
            return Err(ServiceError::configuration(codes::PROMOTION_DENIED, body.help("archive one first")));
        }
        let objections = objections_to(&library.affected(playbook, text, &candidates_for), now_ms);
        if let Some(objection) = objections.into_iter().next() {
            let body = Body::new(objection.to_string()).help(objection.help());
            return Err(ServiceError::configuration(objection.code(), body));
        }
    }
    Ok(())
}

pub fn status_word(status: Status) -> &'static str {
    match status {
        Status::Shadow => "shadow",
        Status::Active => "active",
        Status::Archived => "archived",
    }
}

/// Archives a playbook.
///
/// # Errors
/// If it does not exist, is archived already, or a file cannot be written.
#[crate::boxed]
pub async fn archive(
    keeping: &mut LibraryWriter,
    slug: &str,
    why: &str,
    by: &str,
    registries: &Registries,
) -> Result<u32, ServiceError> {
    if let Some(n) = keeping.library.catalogue.missing_version(slug) {
        return archive_missing(keeping, slug, n, why, by, registries).await;
    }
    let book = find_playbook(keeping, slug)?.clone();
    if book.playbook.status == Status::Archived {
        let body = Body::new(format!("`{slug}` is archived already"));
        return Err(ServiceError::configuration(codes::PROMOTION_DENIED, body));
    }
    let mut change = PlaybookChange::new_at(keeping.session.environment.clock.now_ms());
    let version = change_status(keeping, &book, Status::Archived, why, by, &mut change)?;
    keeping.commit(&change, registries).await?;
    Ok(version)
}

/// Records the end of a playbook whose files were removed, so that checks stop reporting it. The version has no file: files
/// that are restored later are not the last version.
async fn archive_missing(
    keeping: &mut LibraryWriter,
    slug: &str,
    n: u32,
    why: &str,
    by: &str,
    registries: &Registries,
) -> Result<u32, ServiceError> {
    let mut change = PlaybookChange::new_at(keeping.session.environment.clock.now_ms());
    let data = json!({"version": n + 1, "by": by});
    change.events.push(ChangeEvent::new(PlaybookEvent::Archived, slug, why, data));
    keeping.commit(&change, registries).await?;
    Ok(n + 1)
}

/// Moves a playbook back into shadow, where it is computed but not woven.
///
/// # Errors
/// As [`archive`].
#[crate::boxed]
pub async fn move_to_shadow(
    keeping: &mut LibraryWriter,
    slug: &str,
    by: &str,
    registries: &Registries,
) -> Result<u32, ServiceError> {
    let book = find_playbook(keeping, slug)?.clone();
    if book.playbook.status == Status::Shadow {
        let body = Body::new(format!("`{slug}` is in shadow already"));
        return Err(ServiceError::configuration(codes::PROMOTION_DENIED, body));
    }
    let mut change = PlaybookChange::new_at(keeping.session.environment.clock.now_ms());
    let version = change_status(keeping, &book, Status::Shadow, "back in shadow", by, &mut change)?;
    keeping.commit(&change, registries).await?;
    Ok(version)
}

/// Archives expired playbooks and returns their slugs.
///
/// # Errors
/// If a file cannot be read or written.
#[crate::boxed]
pub async fn archive_expired(
    keeping: &mut LibraryWriter,
    by: &str,
    registries: &Registries,
) -> Result<Vec<String>, ServiceError> {
    let now_ms = keeping.session.environment.clock.now_ms();
    let is_over =
        |book: &&PlaybookFile| book.playbook.status != Status::Archived && has_expired(book, now_ms);
    let books: Vec<PlaybookFile> = keeping.library.catalogue.books.iter().filter(is_over).cloned().collect();
    let mut swept = Vec::new();
    for book in books {
        // One change each, so that a manually edited playbook does not block the others.
        let mut change = PlaybookChange::new_at(now_ms);
        change_status(keeping, &book, Status::Archived, "its time is over", by, &mut change)?;
        keeping.commit(&change, registries).await?;
        swept.push(book.playbook.slug);
    }
    Ok(swept)
}

/// Whether a playbook has expired (B11).
pub fn has_expired(book: &PlaybookFile, now_ms: i64) -> bool {
    load::is_over(&book.playbook, now_ms)
}

/// Sets an inactive status.
fn change_status(
    keeping: &LibraryWriter,
    book: &PlaybookFile,
    status: Status,
    why: &str,
    by: &str,
    change: &mut PlaybookChange,
) -> Result<u32, ServiceError> {
    let environment = &keeping.session.environment;
    let record = keeping.library.record(book)?;
    record.ensure_intact(environment)?;
    let at = timestamp::format(change.at_ms);
    let (kind, event) = match status {
        Status::Archived => (EntryKind::Archived, PlaybookEvent::Archived),
        _ => (EntryKind::Delta, PlaybookEvent::Shadowed),
    };
    let step = NewVersion { kind, summary: why, by, gate: None, at: &at };
    let (files, version) = record.next_version(&step, None, |edit| {
        edit.set_string("status", status_word(status));
        edit.set_string("updated_at", &at);
    })?;
    change.files.extend(files);
    let data = json!({"version": version.n, "sha256": sha256_hex(version.text.as_bytes()), "by": by});
    change.events.push(ChangeEvent::new(event, &book.playbook.slug, why, data));
    Ok(version.n)
}
