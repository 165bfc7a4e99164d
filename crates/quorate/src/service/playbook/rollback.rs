//! Rollback: a playbook is what it was at an earlier version, and so is the prompt (B7). A promotion that is taken back
//! takes back what it superseded, too; a playbook that is woven again puts aside what had taken its place.

use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::PlaybookEvent;
use quorate_manifest::playbook::Status;
use quorate_manifest::playbook::history::EntryKind;
use quorate_manifest::playbook::shelf::Book;
use quorate_manifest::timestamp;
use quorate_playbook::compose::Candidate;
use quorate_playbook::curate::curate;
use quorate_playbook::history::Version;
use serde_json::json;

use super::change::{Change, Happened, Keeping};
use super::inspect::as_playbook;
use super::promote::{active_beside, find};
use super::versions::{Record, Step, word};
use crate::service::host::Host;
use crate::service::stop::{Class, Stop};

/// What a rollback came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolledBack {
    /// The playbook's new version.
    pub version: u32,
    /// What it is now.
    pub status: &'static str,
    /// Others that were changed with it.
    pub others: Vec<String>,
}

/// Rolls a playbook back.
///
/// # Errors
/// When there is no such version, it may not be woven any more, or something cannot be written.
pub async fn rollback(
    keeping: &mut Keeping,
    slug: &str,
    to: u32,
    by: &str,
    host: &Host,
) -> Result<RolledBack, Stop> {
    let environment = keeping.desk.environment.clone();
    let book = find(keeping, slug)?.clone();
    let record = Record::read(&environment, &keeping.library.root, &book)?;
    record.faithful(&environment)?;
    let version = record.version(to)?.clone();
    if record.last().is_some_and(|last| last.n == to) {
        let body = Body::new(format!("`{slug}` is version {to} already"));
        return Err(Stop::new(Class::Usage, codes::USAGE, body));
    }
    let now_ms = environment.clock.now_ms();
    let mut change = Change::at(now_ms);
    let mut others = Vec::new();
    let (status, new) = restore(keeping, &record, &version, by, &mut change, host)?;
    let me = format!("{slug}@v{new}");
    // Promotions that are taken back give room to those whose place they had taken.
    for promoted in record.versions.iter().filter(|one| one.n > to && one.event == word(EntryKind::Promoted))
    {
        let theirs = format!("{slug}@v{}", promoted.n);
        for other in keeping.library.shelf.books.clone() {
            let other_record = Record::read(&environment, &keeping.library.root, &other)?;
            let was_superseded = other_record.last().is_some_and(|last| {
                last.event == word(EntryKind::Superseded) && last.by.as_deref() == Some(&theirs)
            });
            if !was_superseded || other.playbook.slug == slug {
                continue;
            }
            other_record.faithful(&environment)?;
            if let Some(before) = other_record.versions.iter().rev().nth(1).cloned() {
                restore(keeping, &other_record, &before, &me, &mut change, host)?;
                others.push(other.playbook.slug.clone());
            }
        }
    }
    if status == Status::Active {
        for other in keeping.library.shelf.books.clone() {
            let names =
                |book: &Book, named: &str| book.playbook.supersedes.iter().flatten().any(|one| one == named);
            let replaces = names(&other, slug) || names(&book, &other.playbook.slug);
            if replaces && other.playbook.status == Status::Active && !others.contains(&other.playbook.slug) {
                put_aside(keeping, &other, slug, &me, &mut change)?;
                others.push(other.playbook.slug.clone());
            }
        }
        may_be_woven(keeping, &version, &others, now_ms, host)?;
    }
    keeping.commit(&change, host).await?;
    Ok(RolledBack { version: new, status: status_word(status), others })
}

/// Restores a version of a playbook as its newest one.
fn restore(
    keeping: &Keeping,
    record: &Record,
    version: &Version,
    by: &str,
    change: &mut Change,
    host: &Host,
) -> Result<(Status, u32), Stop> {
    let status = as_playbook(keeping, &version.text, host)?.0.status;
    let at = timestamp::write(change.at_ms);
    let summary = format!("rolled back to version {}, which is {}", version.n, status_word(status));
    let step = Step { kind: EntryKind::Delta, summary: &summary, by, gate: None, at: &at };
    // Entries are only ever added, whatever else is as it was.
    let entries = as_playbook(keeping, &record.text, host)?.1;
    let (files, new) = record.step(&step, Some(&version.text), |edit| {
        if let Some(entries) = entries {
            edit.json("history", &entries);
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
    change.events.push(Happened::new(event, &record.slug, summary.clone(), data));
    Ok((status, new.n))
}

fn put_aside(keeping: &Keeping, book: &Book, slug: &str, me: &str, change: &mut Change) -> Result<(), Stop> {
    let environment = &keeping.desk.environment;
    let record = Record::read(environment, &keeping.library.root, book)?;
    record.faithful(environment)?;
    let at = timestamp::write(change.at_ms);
    let summary = format!("`{slug}` was rolled back and took its place");
    let step = Step { kind: EntryKind::Superseded, summary: &summary, by: me, gate: None, at: &at };
    let (files, version) = record.step(&step, None, |edit| {
        edit.scalar("status", "archived");
        edit.scalar("updated_at", &at);
    })?;
    change.files.extend(files);
    let data =
        json!({"version": version.n, "sha256": sha256_hex(version.text.as_bytes()), "superseded_by": slug});
    change.events.push(Happened::new(PlaybookEvent::Archived, &book.playbook.slug, summary.clone(), data));
    Ok(())
}

/// What passed a gate once may have become too much, or touch what was locked since.
fn may_be_woven(
    keeping: &Keeping,
    version: &Version,
    others: &[String],
    now_ms: i64,
    host: &Host,
) -> Result<(), Stop> {
    let library = &keeping.library;
    let (playbook, _, text) = as_playbook(keeping, &version.text, host)?;
    let matched = library.matched(&playbook);
    let standing: Vec<(String, Vec<Candidate>)> = matched
        .iter()
        .map(|(known, _)| {
            let mut all = library.standing(known);
            all.retain(|one| !others.contains(&one.overlay.id));
            (known.slug.clone(), all)
        })
        .collect();
    let most = library.workspace.host.playbooks.max_active;
    if let Some((operator, _)) =
        standing.iter().find(|(_, all)| active_beside(all, &playbook, now_ms) >= most)
    {
        let body = Body::new(format!("`{operator}` has {most} active playbooks already"));
        return Err(Stop::configuration(codes::PROMOTION_DENIED, body.help("archive one first")));
    }
    match curate(&library.affected(&playbook, &text, &standing), now_ms).into_iter().next() {
        Some(objection) => {
            let body = Body::new(objection.to_string()).help(objection.help());
            Err(Stop::configuration(objection.code(), body))
        }
        None => Ok(()),
    }
}

/// The word of a status.
pub fn status_word(status: Status) -> &'static str {
    match status {
        Status::Shadow => "shadow",
        Status::Active => "active",
        Status::Archived => "archived",
    }
}
