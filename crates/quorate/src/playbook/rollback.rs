//! Rollback: restores an earlier version of a playbook, and so the prompt (B7). Rolling back a promotion restores what it
//! superseded; reactivating a playbook displaces its replacement. Archiving retires a playbook on request or when it
//! expires.

use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::PlaybookEvent;
use quorate_manifest::playbook::load::{self, written_at};
use quorate_manifest::playbook::{EntryKind, Playbook, PlaybookFile, Status};
use quorate_manifest::timestamp;
use quorate_playbook::bind::Binding;
use quorate_playbook::history::Version;
use quorate_playbook::weave::Candidate;
use serde::Serialize;
use serde_json::json;

use super::change::{ChangeEvent, PlaybookChange};
use super::inspect::parse_playbook;
use super::library::KnownOperator;
use super::promote::count_active_beside;
use super::versions::{NewVersion, VersionedFile, set_status};
use super::writer::LibraryWriter;
use crate::service::error::{Error, ErrorKind};
use crate::view::{Doc, Text};

/// The new version of a playbook
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatusChange {
    /// The playbook
    pub slug: String,
    /// The new version
    pub version: u32,
    /// `in shadow` or `archived`
    pub status: &'static str,
}

impl StatusChange {
    /// The change in words.
    pub fn doc(&self) -> Doc {
        let mut doc = Doc::new();
        let what = format!(" is {}: version {}", self.status, self.version);
        doc.line(Text::strong(&self.slug).and(what));
        doc
    }
}

/// The result of a rollback
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rollback {
    /// The playbook
    pub slug: String,
    /// The new version
    pub version: u32,
    /// The version that it restores
    pub to: u32,
    /// The status now
    pub status: Status,
    /// Other playbooks that changed with it
    pub others: Vec<String>,
}

impl Rollback {
    /// The result in words.
    pub fn doc(&self) -> Doc {
        let mut doc = Doc::new();
        let Rollback { version, to, status, .. } = self;
        let what = format!(" is as version {to} was, {}: version {version}", status.as_str());
        doc.line(Text::strong(&self.slug).and(what));
        for slug in &self.others {
            doc.line(Text::strong(slug).and(" was changed with it"));
        }
        doc
    }
}

/// Rolls a playbook back.
///
/// # Errors
/// If the version does not exist or may no longer be woven, or if a file cannot be written.
#[crate::boxed]
pub(super) async fn rollback(writer: &mut LibraryWriter, slug: &str, to: u32) -> Result<Rollback, Error> {
    let (book, record) = writer.intact(slug)?;
    let version = record.version(to)?.clone();
    if record.last().is_some_and(|last| last.n == to) {
        let body = Body::new(format!("`{slug}` is already at version {to}"));
        return Err(Error::new(ErrorKind::InvalidRequest, codes::USAGE, body));
    }
    let now_ms = writer.now_ms();
    let mut change = PlaybookChange::new_at(now_ms);
    let (status, new) = restore(writer, &record, &version, writer.user(), &mut change)?;
    let me = format!("{slug}@v{new}");
    // The rolled-back playbook makes room for those it had displaced.
    let taken_back = version_names_after(&record, to);
    let mut others = Vec::new();
    let mut woven = restore_displaced(writer, slug, taken_back, &me, &mut change, &mut others)?;
    // An expired version is not woven, so it displaces no playbook.
    let is_over = load::is_over(&parse_playbook(writer, &version.text)?.0, now_ms);
    if status == Status::Active && !is_over {
        for other in &writer.library.catalogue.books {
            let other_slug = &other.playbook.slug;
            let names = |book: &PlaybookFile, named: &str| {
                book.playbook.supersedes.iter().flatten().any(|slug| slug == named)
            };
            let replaces = names(other, slug) || names(&book, other_slug);
            if !replaces || others.contains(other_slug) {
                continue;
            }
            let record = writer.library.record(other)?;
            if is_active_by_history(writer, other, &record)? {
                record.ensure_intact(&writer.session.environment)?;
                let summary = format!("`{slug}` was rolled back and took its place");
                let step = NewVersion::new(EntryKind::Superseded, &summary, &me);
                let event = (PlaybookEvent::Archived, &*summary, json!({"superseded_by": slug}));
                change.add_version(&record, &step, None, event, set_status(Status::Archived))?;
                others.push(other_slug.clone());
                // Every other playbook that it had displaced returns as well.
                let had_taken = version_names_after(&record, 0);
                woven.extend(restore_displaced(writer, slug, had_taken, &me, &mut change, &mut others)?);
            }
        }
    }
    if status == Status::Active {
        woven.push(version);
    }
    let mut changed = others.clone();
    changed.push(slug.to_owned());
    ensure_weavable(writer, &woven, &changed)?;
    writer.commit(&change).await?;
    Ok(Rollback { slug: slug.to_owned(), version: new, to, status, others })
}

/// The names by which other histories cite a playbook's versions after `to`.
fn version_names_after(record: &VersionedFile, to: u32) -> Vec<String> {
    let after = record.versions.iter().filter(|version| version.n > to);
    after.map(|version| format!("{}@v{}", record.slug, version.n)).collect()
}

/// Restores the playbooks that `versions` displaced, except `but`; returns the versions that are active again.
fn restore_displaced(
    writer: &LibraryWriter,
    but: &str,
    versions: Vec<String>,
    me: &str,
    change: &mut PlaybookChange,
    others: &mut Vec<String>,
) -> Result<Vec<Version>, Error> {
    let mut woven = Vec::new();
    let books = writer.library.catalogue.books.iter();
    for book in books.filter(|book| book.playbook.slug != but) {
        let record = writer.library.record(book)?;
        let is_one = record.last().and_then(|last| last.by.as_ref()).is_some_and(|by| versions.contains(by));
        if !is_one || others.contains(&record.slug) {
            continue;
        }
        record.ensure_intact(&writer.session.environment)?;
        if let Some(before) = record.versions.iter().rev().nth(1).cloned() {
            let (status, _) = restore(writer, &record, &before, me, change)?;
            woven.extend((status == Status::Active).then_some(before));
            others.push(record.slug);
        }
    }
    Ok(woven)
}

/// Restores a version of a playbook as its newest one.
fn restore(
    writer: &LibraryWriter,
    record: &VersionedFile,
    version: &Version,
    by: &str,
    change: &mut PlaybookChange,
) -> Result<(Status, u32), Error> {
    if record.recorded.contradicts(version.n, &sha256_hex(version.text.as_bytes())) {
        let body = Body::new(format!("version {} of `{}` is not in the ledger", version.n, record.slug));
        let help = "its history was rewritten or copied; restore it from a copy or from version control";
        return Err(Error::configuration(codes::HISTORY_MUTATION, body.help(help)));
    }
    let previous = parse_playbook(writer, &version.text)?.0;
    let status = previous.status;
    // Without its own date it is as old as its last entry, or undated; the new entry must not change that.
    let undated = previous.updated_at.is_none() && previous.created_at.is_none();
    let written = undated.then(|| written_at(&previous).map_or_else(|| timestamp::format(0), str::to_owned));
    let summary = format!("rolled back to version {}, which is {}", version.n, status.as_str());
    let step = NewVersion::new(EntryKind::Delta, &summary, by);
    // Entries are append-only; the rest is restored.
    let entries = parse_playbook(writer, &record.text)?.1;
    let event = match status {
        Status::Active => PlaybookEvent::Promoted,
        Status::Shadow => PlaybookEvent::Shadowed,
        Status::Archived => PlaybookEvent::Archived,
    };
    let event = (event, &*summary, json!({"rolled_back_to": version.n, "by": by}));
    let new = change.add_version(record, &step, Some(&version.text), event, |edit, _| {
        if let Some(entries) = entries {
            edit.set_json("history", &entries);
        }
        if let Some(written) = &written {
            edit.set_string("updated_at", written);
        }
    })?;
    Ok((status, new))
}

/// Whether a playbook is active by its history. A file that was made active by hand passed no gate: it is not woven and a
/// repair moves it to shadow, so it is not displaced.
fn is_active_by_history(
    writer: &LibraryWriter,
    book: &PlaybookFile,
    record: &VersionedFile,
) -> Result<bool, Error> {
    match record.last().filter(|_| record.has_drifted()) {
        Some(last) => Ok(parse_playbook(writer, &last.text)?.0.status == Status::Active),
        None => Ok(book.playbook.status == Status::Active),
    }
}

/// A version that passed a gate once may now exceed the cap or touch a new lock. `changed` are all playbooks of the
/// rollback, `woven` the versions that are active after it.
fn ensure_weavable(writer: &LibraryWriter, woven: &[Version], changed: &[String]) -> Result<(), Error> {
    let (library, now_ms) = (&writer.library, writer.now_ms());
    let woven = woven.iter().map(|version| parse_playbook(writer, &version.text));
    let woven: Vec<_> = woven.collect::<Result<_, _>>()?;
    for (playbook, _, text) in &woven {
        let matched = library.operators_for(playbook);
        let candidates_for = |known: &KnownOperator| {
            let mut all = library.candidates_for(known);
            all.retain(|candidate| !changed.contains(&candidate.slug));
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
            return Err(Error::configuration(codes::PROMOTION_DENIED, body.help("archive one first")));
        }
        let objections = library.objections(playbook, text, &candidates_for);
        if let Some(objection) = objections.into_iter().next() {
            return Err(Error::configuration(objection.code(), objection.body));
        }
    }
    Ok(())
}

/// Archives a playbook.
///
/// # Errors
/// If it does not exist, is archived already, or a file cannot be written.
#[crate::boxed]
pub(super) async fn archive(
    writer: &mut LibraryWriter,
    slug: &str,
    why: &str,
) -> Result<StatusChange, Error> {
    let mut change = PlaybookChange::new_at(writer.now_ms());
    let version = match writer.library.catalogue.missing_version(slug) {
        // Records the end of a playbook whose files were removed, so that checks stop reporting it. The version has no
        // file: files that are restored later are not the last version.
        Some(n) => {
            let data = json!({"version": n + 1, "by": writer.user()});
            change.events.push(ChangeEvent::new(PlaybookEvent::Archived, slug, why, data));
            n + 1
        }
        None => change_status(writer, slug, Status::Archived, why, &mut change)?,
    };
    writer.commit(&change).await?;
    Ok(StatusChange { slug: slug.to_owned(), version, status: "archived" })
}

/// Moves a playbook back into shadow, where it is computed but not woven.
///
/// # Errors
/// As [`archive`].
#[crate::boxed]
pub(super) async fn move_to_shadow(writer: &mut LibraryWriter, slug: &str) -> Result<StatusChange, Error> {
    let mut change = PlaybookChange::new_at(writer.now_ms());
    let version = change_status(writer, slug, Status::Shadow, "back in shadow", &mut change)?;
    writer.commit(&change).await?;
    Ok(StatusChange { slug: slug.to_owned(), version, status: "in shadow" })
}

/// The expired playbooks that were archived
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ArchivedPlaybooks {
    /// Their slugs
    pub archived: Vec<String>,
}

impl ArchivedPlaybooks {
    /// A line for each of them.
    pub fn doc(&self) -> Doc {
        let lines = self.archived.iter().map(|slug| Text::strong(slug).and(" is archived: it expired"));
        Doc::of_lines(lines, "nothing is over")
    }
}

/// Archives expired playbooks.
///
/// # Errors
/// If a file cannot be read or written.
#[crate::boxed]
pub(super) async fn archive_expired(writer: &mut LibraryWriter) -> Result<ArchivedPlaybooks, Error> {
    let now_ms = writer.now_ms();
    let is_over =
        |playbook: &&Playbook| playbook.status != Status::Archived && load::is_over(playbook, now_ms);
    let playbooks = writer.library.catalogue.books.iter().map(|book| &book.playbook);
    let archived: Vec<String> = playbooks.filter(is_over).map(|playbook| playbook.slug.clone()).collect();
    for slug in &archived {
        // One change each, so that a manually edited playbook does not block the others.
        let mut change = PlaybookChange::new_at(now_ms);
        change_status(writer, slug, Status::Archived, "its time is over", &mut change)?;
        writer.commit(&change).await?;
    }
    Ok(ArchivedPlaybooks { archived })
}

/// Sets an inactive status; returns the new version.
fn change_status(
    writer: &LibraryWriter,
    slug: &str,
    status: Status,
    why: &str,
    change: &mut PlaybookChange,
) -> Result<u32, Error> {
    let book = writer.library.find(slug)?;
    if book.playbook.status == status {
        let already = if status == Status::Shadow { "in shadow" } else { "archived" };
        let body = Body::new(format!("`{slug}` is {already} already"));
        return Err(Error::configuration(codes::PROMOTION_DENIED, body));
    }
    let record = writer.intact_record(book)?;
    let (kind, event) = match status {
        Status::Archived => (EntryKind::Archived, PlaybookEvent::Archived),
        _ => (EntryKind::Delta, PlaybookEvent::Shadowed),
    };
    let (by, step) = (writer.user(), NewVersion::new(kind, why, writer.user()));
    change.add_version(&record, &step, None, (event, why, json!({"by": by})), set_status(status))
}
