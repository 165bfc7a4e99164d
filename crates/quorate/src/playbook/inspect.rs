//! Inspects playbooks, their histories, their conflicts with each other and their records; and repairs them: finishes an
//! interrupted change, adds manual edits to the history, and updates the index and the log from the ledger.
//!
//! A repair loses nothing: a file that was edited during a change keeps its text, and the text planned for it becomes a
//! version in the history. A manually edited active playbook changes prompts, so it returns to shadow and must pass a gate
//! again, unless only its title, tags or metadata differ.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::PlaybookEvent;
use quorate_manifest::doctype::Doctype;
use quorate_manifest::document::Document;
use quorate_manifest::loader::{OpenResult, Refs};
use quorate_manifest::playbook::{EntryKind, HISTORY_SUFFIX, Playbook, PlaybookFile, Status, load};
use quorate_manifest::workspace::WorkspacePath;
use quorate_playbook::contradiction::contradictions;
use quorate_playbook::curate::Cause;
use quorate_playbook::gate::GOVERNANCE_PRIORITY;
use quorate_playbook::history;
use quorate_playbook::log::{self, priority};
use quorate_playbook::weave::Candidate;
use serde::Serialize;
use serde_json::{Value, json};

use super::change::{self, ChangedFile, FileState, PENDING_FILE, PlaybookChange, file_state, pending_change};
use super::library::{self, Gating, Library, never_gated_body};
use super::versions::{NewVersion, RecordedVersions, history_path};
use super::writer::{LibraryWriter, render_index};
use crate::service::disk::{self, display_path};
use crate::service::environment::Environment;
use crate::service::error::{Error, ErrorKind};
use crate::service::manifests::Manifests;
use crate::view::Doc;

/// The share of the cap on active playbooks, in percent, that triggers a warning.
const CROWDED_PERCENT: usize = 75;

/// A text parsed as a playbook, with its `history` as JSON and its fragment.
///
/// # Errors
/// If the text is not a playbook. Every recorded version was one when it was recorded.
pub(super) fn parse_playbook(
    writer: &LibraryWriter,
    text: &str,
) -> Result<(Playbook, Option<Value>, String), Error> {
    let manifests = Manifests::open(&writer.session.environment, &writer.library.root, Refs::ShapeOnly)?;
    let loader = manifests.loader(&*writer.session.environment.registries);
    let unusable = |report: Report| Error::from_report(ErrorKind::Configuration, report);
    let location = WorkspacePath::new("playbooks/version.md").map_err(|_| unusable(Report::new()))?;
    let document = match loader.open_bytes(&location, text.as_bytes().to_vec()) {
        OpenResult::Document(document) if document.doctype == Doctype::Playbook => document,
        OpenResult::UnknownDoctype(report) => return Err(unusable(report)),
        _ => {
            let body = Body::new("a version is no longer a playbook");
            return Err(Error::configuration(codes::HISTORY_MUTATION, body));
        }
    };
    let loaded = load::load_playbook(&loader, &document);
    let Some(playbook) = loaded.value else { return Err(unusable(loaded.report)) };
    let history = document.root.key("history").map(quorate_manifest::tree::Node::to_json);
    Ok((playbook, history, document.body().trim().to_owned()))
}

/// The findings across a scope's playbooks, for those that `asked` selects.
pub(crate) fn findings(library: &Library, asked: &dyn Fn(&WorkspacePath) -> bool) -> Report {
    let environment = &library.environment;
    let mut report = Report::new();
    let folder = library.folder();
    for body in library.catalogue.missing_bodies() {
        report.warn(codes::PLAYBOOK_GONE, body);
    }
    let books: Vec<&PlaybookFile> = library.catalogue.books.iter().filter(|book| asked(&book.path)).collect();
    if books.is_empty() && !folder.is_dir() {
        return report;
    }
    if let Some(body) = pending_change(environment, &folder) {
        report.refuse(codes::PLAYBOOK_UNFINISHED, body);
    }
    let now_ms = library.now_ms();
    let candidates: Vec<(String, Vec<Candidate>)> =
        library.operators.iter().map(|known| (known.slug.clone(), library.candidates_for(known))).collect();
    let orphans = orphaned_histories(library, &folder);
    let mut kept = !orphans.is_empty();
    for book in &books {
        report.add_source(book.document.shown.clone(), book.document.text.clone());
        let has_history = check_history(library, book, &mut report);
        kept |= has_history;
        check_prompts(library, book, has_history, &candidates, &mut report);
        check_gates(library, book, &mut report);
        if book.playbook.status != Status::Archived {
            for body in library::ineffective_claims(&library.catalogue, &book.playbook) {
                let body = body.at(book.document.value_place("supersedes"));
                report.warn(codes::SUPERSEDES_WITHOUT_EFFECT, body);
            }
        }
    }
    warn_contradictions(&books, &candidates, now_ms, &mut report);
    for (operator, all) in &candidates {
        warn_crowded(library, operator, all, now_ms, &mut report);
    }
    for orphan in orphans {
        let body =
            Body::new(format!("{} is the history of a missing playbook", display_path(environment, &orphan)));
        report.refuse(
            codes::HISTORY_MUTATION,
            body.help("run `quorate playbook repair` to restore the playbook"),
        );
    }
    check_log(library, &folder, &mut report);
    let index = folder.join(log::INDEX_FILE_NAME);
    let current = disk::read_text(&index).unwrap_or(None);
    let is_true = matches!(&current, Some(text) if *text == render_index(library));
    if !is_true && (kept || current.is_some()) {
        let body = Body::new(format!("{} differs from the playbooks", display_path(environment, &index)));
        report.warn(codes::PLAYBOOK_INDEX_STALE, body.help("run `quorate playbook repair` to update it"));
    }
    report
}

/// Checks a file against its history; returns whether it has one.
fn check_history(library: &Library, book: &PlaybookFile, report: &mut Report) -> bool {
    match library.record(book) {
        Ok(record) => {
            if !record.is_intact() {
                let span = book.document.root.span.clone();
                let place = book.document.place(span.start..span.start, "");
                report.refuse(codes::HISTORY_MUTATION, record.mutation_body(&library.environment).at(place));
            }
            !record.versions.is_empty()
        }
        Err(error) => {
            report.absorb(*error.report);
            true
        }
    }
}

/// Checks the effect of a playbook on the prompts of its operators. One with a history was accepted.
fn check_prompts(
    library: &Library,
    book: &PlaybookFile,
    has_history: bool,
    standing: &[(String, Vec<Candidate>)],
    report: &mut Report,
) {
    if book.playbook.status == Status::Archived {
        return;
    }
    for objection in library.objections(&book.playbook, book.text(), standing) {
        let place = match &objection.cause {
            // A shadow playbook replaces nothing yet, and the active ones may change: the gate checks it when it is
            // promoted.
            Cause::Collapse if has_history && book.playbook.status == Status::Shadow => continue,
            Cause::Locked(touch) => excerpt_place(&book.document, &touch.excerpt),
            Cause::UnknownBlock => book.document.value_place("block"),
            Cause::Collapse => book.document.value_place("kind"),
            // Length and repetition are the author's choice in a handwritten playbook.
            Cause::Redundant => continue,
        };
        report.refuse(objection.code(), objection.body.at(place));
    }
}

/// The range in a manifest's body that touches a trait; the whole body if the words are not found verbatim.
pub(super) fn excerpt_place(document: &Document, excerpt: &str) -> Place {
    let body = &document.text[document.body.clone()];
    let letters = |piece: &str| -> String {
        piece.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let lowered: Vec<String> = excerpt.split_whitespace().map(letters).collect();
    let mut pieces: Vec<(usize, &str)> = Vec::new();
    for piece in body.split_whitespace() {
        pieces.push((piece.as_ptr() as usize - body.as_ptr() as usize, piece));
    }
    // The text may have marks that the excerpt leaves out, and longer words at its ends.
    let is_one = |(piece, wanted): (&(usize, &str), &String)| letters(piece.1).contains(&**wanted);
    let found = (!lowered.is_empty())
        .then(|| pieces.windows(lowered.len()).find(|window| window.iter().zip(&lowered).all(is_one)))
        .flatten();
    let span = match found.and_then(|window| window.first().zip(window.last())) {
        Some((first, last)) => first.0..last.0 + last.1.len(),
        None => {
            let from = body.len() - body.trim_start().len();
            from..from.max(body.trim_end().len())
        }
    };
    document.place(span.start + document.body.start..span.end + document.body.start, "body")
}

/// Reports a playbook that passed no gate, or not the gate that it needs.
fn check_gates(library: &Library, book: &PlaybookFile, report: &mut Report) {
    let document = &book.document;
    match library.gating(book) {
        Gating::Passed => {}
        Gating::NeverGated => report.warn(
            codes::NEVER_GATED,
            never_gated_body(&book.playbook.slug).at(document.value_place("status")),
        ),
        Gating::Denied { body, .. } => {
            let key = if priority(&book.playbook) >= GOVERNANCE_PRIORITY { "priority" } else { "status" };
            report.refuse(codes::PROMOTION_DENIED, body.at(document.value_place(key)));
        }
    }
}

/// Warns about pairs of playbooks that state the opposite of each other, if one of them is in `books`.
fn warn_contradictions(
    books: &[&PlaybookFile],
    candidates: &[(String, Vec<Candidate>)],
    now_ms: i64,
    report: &mut Report,
) {
    let mut named = BTreeSet::new();
    for found in candidates.iter().flat_map(|(_, all)| contradictions(all, now_ms)) {
        let book = [(&found.slug, &found.sentence), (&found.active, &found.active_sentence)]
            .into_iter()
            .find_map(|(slug, said)| Some((books.iter().find(|book| book.playbook.slug == *slug)?, said)));
        let Some((book, said)) = book else { continue };
        if named.insert((found.slug.clone(), found.active.clone())) {
            let body = Body::new(found.to_string()).help(found.help());
            report.warn(codes::PLAYBOOKS_CONTRADICT, body.at(excerpt_place(&book.document, said)));
        }
    }
}

/// Warns if the log lacks changes that the ledger has, or ends in the middle of a line.
fn check_log(library: &Library, folder: &Path, report: &mut Report) {
    let path = folder.join(log::FILE_NAME);
    let records = RecordedVersions::records_blocking(&library.workspace.ledger, &library.scope);
    let is_cut =
        matches!(disk::read_text(&path), Ok(Some(text)) if !text.is_empty() && !text.ends_with('\n'));
    let shown = display_path(&library.environment, &path);
    let message = match change::count_missing_lines(folder, &records) {
        Ok(0) if is_cut => format!("the last line of {shown} is cut off"),
        Ok(0) => return,
        Ok(1) => format!("{shown} lacks a line that the ledger has"),
        Ok(missing) => format!("{shown} lacks {missing} lines that the ledger has"),
        Err(error) => format!("cannot read {shown}: {error}"),
    };
    let help = "run `quorate playbook repair` to restore the lines from the ledger";
    report.warn(codes::PLAYBOOK_LOG_TRUNCATED, Body::new(message).help(help));
}

/// Warns if an operator has, or will soon have, too many active playbooks.
fn warn_crowded(library: &Library, operator: &str, all: &[Candidate], now_ms: i64, report: &mut Report) {
    let most = library.workspace.config.playbooks.max_active;
    let count = all.iter().filter(|candidate| candidate.is_active(now_ms)).count();
    if count * 100 > most * CROWDED_PERCENT {
        let body =
            Body::new(format!("`{operator}` has {count} active playbooks, and at most {most} are allowed"));
        let help = "archive playbooks that do not help: many small changes can lead an agent off its mission";
        report.warn(codes::PLAYBOOKS_MANY, body.help(help));
    }
}

/// Histories without a playbook.
pub(super) fn orphaned_histories(library: &Library, folder: &Path) -> Vec<PathBuf> {
    let known: BTreeSet<PathBuf> = library
        .catalogue
        .books
        .iter()
        .map(|book| history_path(&library.root.join(book.path.workspace_relative()), &book.playbook.slug))
        .collect();
    let found = disk::walk(folder).unwrap_or_default().into_iter().map(|one| one.path);
    let is_history = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let beside = name.strip_suffix(HISTORY_SUFFIX).map(|slug| path.with_file_name(format!("{slug}.md")));
        // A history beside a refused file belongs to that file; a truncated history counts as none.
        beside.is_some_and(|playbook| !playbook.exists() || lacks_frontmatter(&playbook))
            && !known.contains(path)
    };
    found.filter(is_history).collect()
}

/// Whether a file has no complete frontmatter, so that the loader skips it.
fn lacks_frontmatter(path: &Path) -> bool {
    matches!(disk::read_text(path), Ok(Some(text)) if !text.trim_start_matches('\u{feff}').starts_with("---") || !text.contains("\n---"))
}

/// The steps of a repair
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
pub(super) async fn repair(writer: &mut LibraryWriter) -> Result<Repairs, Error> {
    let environment = writer.session.environment.clone();
    let mut done = Vec::new();
    let folder = writer.library.folder();
    let shown = |path: &Path| display_path(&environment, path);
    let pending = folder.join(PENDING_FILE);
    let text = disk::read_text(&pending).map_err(|error| {
        let body = Body::new(format!("cannot read {}: {error}", shown(&pending)));
        Error::configuration(codes::FILE_UNREADABLE, body)
    })?;
    if let Some(text) = text {
        let plan = shown(&pending);
        let unusable = |message: String, help: &str| {
            Error::configuration(codes::PLAYBOOK_UNFINISHED, Body::new(message).help(help))
        };
        let change = PlaybookChange::read(&text, &writer.scope_dir()).map_err(|error| {
            let help = "if the file is truncated, remove it and run `quorate check .`: no part of the change was written";
            unusable(format!("cannot read {plan}: {error}"), help)
        })?;
        // A planted plan must not make another user write files other than playbooks.
        if let Some(file) = change.files.iter().find(|file| !is_playbook_file(&folder, &file.path)) {
            let message = format!("{plan} writes {}, which is not a playbook file", shown(&file.path));
            return Err(unusable(message, "inspect it and remove it: Quorate did not write it"));
        }
        let hash = sha256_hex(text.as_bytes());
        if !writer.has_begun(&hash) {
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
        writer.apply(&change, &hash).await?;
        let events = change.events.iter().map(|event| format!("`{}`, {}", event.slug, event.words));
        done.push(match &*events.collect::<Vec<_>>().join("; ") {
            // Restoring a playbook has no event.
            "" => "finished the interrupted change".to_owned(),
            events => format!("finished the interrupted change: {events}"),
        });
    }
    for path in orphaned_histories(&writer.library, &folder) {
        let Ok(Some(text)) = disk::read_text(&path) else { continue };
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let versions = history::parse(&text).map_err(|broken| {
            let body = Body::new(format!("{} was edited: {broken}", shown(&path)));
            let help = "restore it from a copy, or remove it";
            Error::configuration(codes::HISTORY_MUTATION, body.help(help))
        })?;
        let (Some(slug), Some(last)) = (name.strip_suffix(HISTORY_SUFFIX), versions.last()) else { continue };
        let mut change = PlaybookChange::new_at(writer.now_ms());
        let file = path.with_file_name(format!("{slug}.md"));
        let current = disk::read_text(&file).map(Option::unwrap_or_default).unwrap_or_default();
        // Truncated text is restored; edited text stays.
        if !last.text.starts_with(&current) {
            let body = Body::new(format!("{} is no longer a playbook", shown(&file)));
            let help = "rewrite its frontmatter; or remove the file and run `quorate playbook repair` again";
            return Err(Error::configuration(codes::HISTORY_MUTATION, body.help(help)));
        }
        change.files.push(ChangedFile::new(file, &current, last.text.clone()));
        writer.commit(&change).await?;
        done.push(format!("restored `{slug}` to version {}; archive it if it should not be woven", last.n));
    }
    for book in writer.library.catalogue.books.clone() {
        if let Some(what) = adopt_manual_edit(writer, &book).await? {
            done.push(what);
        }
    }
    // An empty index is not written, but a stale one is.
    let is_wanted = !writer.library.catalogue.books.is_empty() || folder.join(log::INDEX_FILE_NAME).exists();
    if is_wanted && !writer.write_index()? {
        done.push("updated the index".to_owned());
    }
    if let n @ 1.. = remove_abandoned_files(&environment, &folder)? {
        done.push(match n {
            1 => "removed a temporary file of a killed process".to_owned(),
            n => format!("removed {n} temporary files of killed processes"),
        });
    }
    match writer.restore_log_lines().await? {
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
async fn adopt_manual_edit(writer: &mut LibraryWriter, book: &PlaybookFile) -> Result<Option<String>, Error> {
    let record = writer.library.record(book)?;
    let is_foreign = record.contradicts_ledger() && !record.lacks_versions();
    let is_edited = record.has_drifted() && record.last().is_some();
    if !is_foreign && !is_edited {
        return Ok(None);
    }
    let base = record.last().map_or(&record.text, |last| &last.text);
    let (before, entries, fragment) = parse_playbook(writer, base)?;
    let is_same =
        !is_foreign && agent_visible(&before, &fragment) == agent_visible(&book.playbook, book.text());
    let steps_back = book.playbook.status == Status::Active && !is_same;
    let summary = match (is_foreign, steps_back) {
        (true, true) => "adopted from the file, and back in shadow",
        (true, false) => "adopted from the file",
        (false, true) => "changed by hand, and back in shadow",
        (false, false) => "changed by hand",
    };
    let mut change = PlaybookChange::new_at(writer.now_ms());
    let event = match (steps_back, book.playbook.status) {
        (false, Status::Active) => PlaybookEvent::Registered,
        (_, Status::Archived) => PlaybookEvent::Archived,
        _ => PlaybookEvent::Shadowed,
    };
    let step = NewVersion::new(EntryKind::Delta, summary, writer.user());
    let words = format!("version {}: {summary}", record.next_n());
    let event = (event, &*words, json!({"by": writer.user()}));
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
    writer.commit(&change).await?;
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
