//! Repair: finishes an interrupted change, adds manual edits to the history, and updates the index and the log from the
//! ledger.
//!
//! Nothing is lost: a file that was edited during a change keeps its text, and the text planned for it becomes a version in
//! the history. A manually edited active playbook changes prompts, so it returns to shadow and must pass a gate again,
//! unless only its title, tags or metadata differ.

use std::path::{Component, Path};

use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::PlaybookEvent;
use quorate_manifest::playbook::{EntryKind, HISTORY_SUFFIX, Playbook, PlaybookFile, Status};
use quorate_playbook::{history, log};
use serde::Serialize;
use serde_json::json;

use super::change::{ChangedFile, FileState, PENDING_FILE, PlaybookChange, file_state};
use super::inspect::{orphaned_histories, parse_playbook};
use super::versions::NewVersion;
use super::writer::LibraryWriter;
use crate::service::disk::{self, Text, display_path};
use crate::service::environment::Environment;
use crate::service::error::Error;
use crate::view::Doc;

/// What a repair has done
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Repairs {
    /// Each step in words
    pub done: Vec<String>,
}

impl Repairs {
    /// A line for each step.
    pub fn doc(&self) -> Doc {
        Doc::of_lines(&self.done, "nothing to repair")
    }
}

/// Repairs the playbooks.
///
/// # Errors
/// If a file cannot be read or written, or a history is incomplete.
#[crate::boxed]
pub async fn repair(keeping: &mut LibraryWriter) -> Result<Repairs, Error> {
    let environment = keeping.session.environment.clone();
    let mut done = Vec::new();
    let folder = keeping.library.folder();
    let shown = |path: &Path| display_path(&environment, path);
    let pending = folder.join(PENDING_FILE);
    let text = disk::read_text(&pending).map_err(|error| {
        let body = Body::new(format!("cannot read {}: {error}", shown(&pending)));
        Error::configuration(codes::FILE_UNREADABLE, body)
    })?;
    if let Text::Present(text) = text {
        let plan = shown(&pending);
        let unusable = |message: String, help: &str| {
            Error::configuration(codes::PLAYBOOK_UNFINISHED, Body::new(message).help(help))
        };
        let change = PlaybookChange::read(&text, &keeping.scope_dir()).map_err(|error| {
            let help = "if the file is truncated, remove it and run `quorate check`: no part of the change was written";
            unusable(format!("cannot read {plan}: {error}"), help)
        })?;
        // A planted plan must not make another user write files other than playbooks.
        if let Some(file) = change.files.iter().find(|file| !is_playbook_file(&folder, &file.path)) {
            let message = format!("{plan} writes {}, which is not a playbook file", shown(&file.path));
            return Err(unusable(message, "inspect it and remove it: Quorate did not write it"));
        }
        let hash = sha256_hex(text.as_bytes());
        if !keeping.has_begun(&hash) {
            let message = format!("cannot finish {plan}: the change was not started with this ledger");
            let help = "inspect it and remove it: it may come from another workspace or program. Files that it wrote \
                        count as edited by hand";
            return Err(unusable(message, help));
        }
        for file in &change.files {
            if file_state(file)? == FileState::Other {
                let file = shown(&file.path);
                done.push(format!("kept {file}, which was edited since the change was interrupted"));
            }
        }
        keeping.apply(&change, &hash).await?;
        let events = change.events.iter().map(|event| format!("`{}`, {}", event.slug, event.words));
        done.push(match &*events.collect::<Vec<_>>().join("; ") {
            // Restoring a playbook has no event.
            "" => "finished the interrupted change".to_owned(),
            events => format!("finished the interrupted change: {events}"),
        });
    }
    for path in orphaned_histories(&keeping.library, &folder) {
        let Ok(Text::Present(text)) = disk::read_text(&path) else { continue };
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let versions = history::parse(&text).map_err(|broken| {
            let body = Body::new(format!("{} was edited: {broken}", shown(&path)));
            let help = "restore it from a copy, or remove it";
            Error::configuration(codes::HISTORY_MUTATION, body.help(help))
        })?;
        let (Some(slug), Some(last)) = (name.strip_suffix(HISTORY_SUFFIX), versions.last()) else { continue };
        let mut change = PlaybookChange::new_at(keeping.now_ms());
        let file = path.with_file_name(format!("{slug}.md"));
        let current = disk::read_text(&file).map(Text::unwrap_or_default).unwrap_or_default();
        // Truncated text is restored; edited text stays.
        if !last.text.starts_with(&current) {
            let body = Body::new(format!("{} is no longer a playbook", shown(&file)));
            let help = "rewrite its frontmatter; or remove the file and run `quorate playbook repair` again";
            return Err(Error::configuration(codes::HISTORY_MUTATION, body.help(help)));
        }
        change.files.push(ChangedFile::new(file, &current, last.text.clone()));
        keeping.commit(&change).await?;
        done.push(format!("restored `{slug}` to version {}; archive it if it should not be woven", last.n));
    }
    for book in keeping.library.catalogue.books.clone() {
        if let Some(what) = adopt_manual_edit(keeping, &book).await? {
            done.push(what);
        }
    }
    // An empty index is not written, but a stale one is.
    let is_wanted = !keeping.library.catalogue.books.is_empty() || folder.join(log::INDEX_FILE_NAME).exists();
    if is_wanted && !keeping.write_index()? {
        done.push("updated the index".to_owned());
    }
    if let n @ 1.. = remove_abandoned_files(&environment, &folder)? {
        done.push(match n {
            1 => "removed a temporary file of a killed process".to_owned(),
            n => format!("removed {n} temporary files of killed processes"),
        });
    }
    match keeping.restore_log_lines().await? {
        0 => {}
        1 => done.push("restored a line of the log".to_owned()),
        n => done.push(format!("restored {n} lines of the log")),
    }
    Ok(Repairs { done })
}

/// Removes temporary files of killed processes; this process holds the write lock. Returns their number.
fn remove_abandoned_files(environment: &Environment, folder: &Path) -> Result<usize, Error> {
    let abandoned = disk::abandoned_files(folder);
    for path in &abandoned {
        disk::remove(path).map_err(|error| {
            let body = Body::new(format!("cannot remove {}: {error}", display_path(environment, path)));
            Error::configuration(codes::FILE_UNWRITABLE, body.help("remove it by hand"))
        })?;
    }
    Ok(abandoned.len())
}

/// Whether a path names a playbook or a history.
fn is_playbook_file(folder: &Path, path: &Path) -> bool {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(name) if !name.to_string_lossy().starts_with('.'));
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let below = path.strip_prefix(folder).is_ok_and(|below| below.components().all(plain));
    below && name.ends_with(".md") && !name.starts_with('_')
}

/// Adds a version to the history if the file was edited by hand or differs from the ledger.
async fn adopt_manual_edit(
    keeping: &mut LibraryWriter,
    book: &PlaybookFile,
) -> Result<Option<String>, Error> {
    let record = keeping.library.record(book)?;
    let is_foreign = record.contradicts_ledger() && !record.lacks_versions();
    let is_edited = record.has_drifted() && record.last().is_some();
    if !is_foreign && !is_edited {
        return Ok(None);
    }
    let base = record.last().map_or(&record.text, |last| &last.text);
    let (before, entries, fragment) = parse_playbook(keeping, base)?;
    let is_same =
        !is_foreign && agent_visible(&before, &fragment) == agent_visible(&book.playbook, book.text());
    let steps_back = book.playbook.status == Status::Active && !is_same;
    let summary = match (is_foreign, steps_back) {
        (true, true) => "adopted from the file, and back in shadow",
        (true, false) => "adopted from the file",
        (false, true) => "changed by hand, and back in shadow",
        (false, false) => "changed by hand",
    };
    let mut change = PlaybookChange::new_at(keeping.now_ms());
    let event = match (steps_back, book.playbook.status) {
        (false, Status::Active) => PlaybookEvent::Registered,
        (_, Status::Archived) => PlaybookEvent::Archived,
        _ => PlaybookEvent::Shadowed,
    };
    let step = NewVersion::new(EntryKind::Delta, summary, keeping.user());
    let words = format!("version {}: {summary}", record.next_n());
    let event = (event, &*words, json!({"by": keeping.user()}));
    change.add_version(&record, &step, None, event, |edit, at| {
        // Entries are append-only, also for manual edits.
        match &entries {
            Some(entries) => edit.set_json("history", entries),
            None => edit.remove("history"),
        }
        if steps_back {
            edit.set_string("status", "shadow");
        }
        if !is_same {
            edit.set_string("updated_at", at);
        }
    })?;
    keeping.commit(&change).await?;
    let slug = &book.playbook.slug;
    let what = if is_foreign { "added" } else { "added the manual edit of" };
    Ok(Some(format!("{what} `{slug}` to its history, as {words}")))
}

/// The parts of a playbook that affect agents, with normalized line ends, since Git may change those.
fn agent_visible(playbook: &Playbook, text: &str) -> (Playbook, String) {
    let kept_playbook = Playbook {
        title: String::new(),
        tags: None,
        metadata: None,
        history: None,
        evidence: Vec::new(),
        entry: None,
        ..playbook.clone()
    };
    (kept_playbook, text.replace("\r\n", "\n"))
}
