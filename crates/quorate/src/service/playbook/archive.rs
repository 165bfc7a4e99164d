//! Archive: retires playbooks on request or when they expire.

use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::PlaybookEvent;
use quorate_manifest::playbook::EntryKind;
use quorate_manifest::playbook::PlaybookFile;
use quorate_manifest::playbook::Status;
use quorate_manifest::playbook::load;
use quorate_manifest::timestamp;
use serde_json::json;

use super::change::Change;
use super::event::ChangeEvent;
use super::promote::find_playbook;
use super::rollback::status_word;
use super::versions::NewVersion;
use super::writer::LibraryWriter;
use crate::service::error::ServiceError;
use crate::service::host::Host;

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
    host: &Host,
) -> Result<u32, ServiceError> {
    if let Some(n) = keeping.library.catalogue.missing_version(slug) {
        return archive_missing(keeping, slug, n, why, by, host).await;
    }
    let book = find_playbook(keeping, slug)?.clone();
    if book.playbook.status == Status::Archived {
        let body = Body::new(format!("`{slug}` is archived already"));
        return Err(ServiceError::configuration(codes::PROMOTION_DENIED, body));
    }
    let mut change = Change::new_at(keeping.session.environment.clock.now_ms());
    let version = change_status(keeping, &book, Status::Archived, why, by, &mut change)?;
    keeping.commit(&change, host).await?;
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
    host: &Host,
) -> Result<u32, ServiceError> {
    let mut change = Change::new_at(keeping.session.environment.clock.now_ms());
    let data = json!({"version": n + 1, "by": by});
    change.events.push(ChangeEvent::new(PlaybookEvent::Archived, slug, why, data));
    keeping.commit(&change, host).await?;
    Ok(n + 1)
}

/// Moves a playbook back into shadow, where it is computed but not woven.
///
/// # Errors
/// As [`archive`].
#[crate::boxed]
pub async fn shadow(
    keeping: &mut LibraryWriter,
    slug: &str,
    by: &str,
    host: &Host,
) -> Result<u32, ServiceError> {
    let book = find_playbook(keeping, slug)?.clone();
    if book.playbook.status == Status::Shadow {
        let body = Body::new(format!("`{slug}` is in shadow already"));
        return Err(ServiceError::configuration(codes::PROMOTION_DENIED, body));
    }
    let mut change = Change::new_at(keeping.session.environment.clock.now_ms());
    let version = change_status(keeping, &book, Status::Shadow, "back in shadow", by, &mut change)?;
    keeping.commit(&change, host).await?;
    Ok(version)
}

/// Archives expired playbooks and returns their slugs.
///
/// # Errors
/// If a file cannot be read or written.
#[crate::boxed]
pub async fn sweep(keeping: &mut LibraryWriter, by: &str, host: &Host) -> Result<Vec<String>, ServiceError> {
    let now_ms = keeping.session.environment.clock.now_ms();
    let is_over =
        |book: &&PlaybookFile| book.playbook.status != Status::Archived && has_expired(book, now_ms);
    let books: Vec<PlaybookFile> = keeping.library.catalogue.books.iter().filter(is_over).cloned().collect();
    let mut swept = Vec::new();
    for book in books {
        // One change each, so that a manually edited playbook does not block the others.
        let mut change = Change::new_at(now_ms);
        change_status(keeping, &book, Status::Archived, "its time is over", by, &mut change)?;
        keeping.commit(&change, host).await?;
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
    change: &mut Change,
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
