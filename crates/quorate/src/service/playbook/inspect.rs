//! Inspects playbooks: their list, histories, conflicts with each other, and records.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_manifest::doctype::Doctype;
use quorate_manifest::document::Document;
use quorate_manifest::loader::{OpenResult, Refs};
use quorate_manifest::playbook::{HISTORY_SUFFIX, Playbook, PlaybookFile, Status, load};
use quorate_manifest::workspace::WorkspacePath;
use quorate_playbook::contradiction::contradictions;
use quorate_playbook::curate::Cause;
use quorate_playbook::gate::GOVERNANCE_PRIORITY;
use quorate_playbook::log::{self, priority};
use quorate_playbook::weave::Candidate;
use serde_json::Value;

use super::change::{self, pending_change};
use super::library::{self, Gating, Library, never_gated_body};
use super::versions::{RecordedVersions, history_path};
use super::writer::{LibraryWriter, render_index};
use crate::service::disk::{self, Text, display_path};
use crate::service::error::{Error, ErrorKind};
use crate::service::manifests::Manifests;

/// The share of the cap on active playbooks, in percent, that triggers a warning.
const CROWDED_PERCENT: usize = 75;

/// A text parsed as a playbook, with its `history` as JSON and its fragment.
///
/// # Errors
/// If the text is not a playbook. Every recorded version was one when it was recorded.
pub(super) fn parse_playbook(
    keeping: &LibraryWriter,
    text: &str,
) -> Result<(Playbook, Option<Value>, String), Error> {
    let manifests = Manifests::open(&keeping.session.environment, &keeping.library.root, Refs::ShapeOnly)?;
    let loader = manifests.loader(&*keeping.session.environment.registries);
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
pub fn findings(library: &Library, asked: &dyn Fn(&WorkspacePath) -> bool) -> Report {
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
        let trial = match has_history && book.playbook.status == Status::Shadow {
            true => Trial::Accepted,
            false => Trial::None,
        };
        check_prompts(library, book, trial, &candidates, now_ms, &mut report);
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
    let current = disk::read_text(&index).unwrap_or(Text::Missing);
    let is_true = matches!(&current, Text::Present(text) if *text == render_index(library));
    if !is_true && (kept || current != Text::Missing) {
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

/// Whether a playbook is on trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trial {
    /// Accepted, and in shadow.
    Accepted,
    /// Not in shadow, or never accepted.
    None,
}

/// Checks the effect of a playbook on the prompts of its operators.
fn check_prompts(
    library: &Library,
    book: &PlaybookFile,
    trial: Trial,
    standing: &[(String, Vec<Candidate>)],
    now_ms: i64,
    report: &mut Report,
) {
    if book.playbook.status == Status::Archived {
        return;
    }
    for objection in library.objections(&book.playbook, book.text(), standing, now_ms) {
        let place = match &objection.cause {
            // A shadow playbook replaces nothing yet, and the active ones may change: the gate checks it when it is
            // promoted.
            Cause::Collapse if trial == Trial::Accepted => continue,
            Cause::Locked(touch) => excerpt_place(&book.document, &touch.excerpt),
            Cause::UnknownBlock => book.document.value_place("block"),
            Cause::Collapse => book.document.value_place("kind"),
            // Length and repetition are the author's choice in a handwritten playbook.
            Cause::Redundant => continue,
        };
        let body = objection.body().at(place);
        report.refuse(objection.code(), body);
    }
}

/// The range in a manifest's body that touches a trait; the whole body if the words are not found verbatim.
pub(super) fn excerpt_place(document: &Document, excerpt: &str) -> Place {
    let body = &document.text[document.body.clone()];
    let lowered: Vec<String> = excerpt.trim_matches('…').split_whitespace().map(str::to_lowercase).collect();
    let mut pieces: Vec<(usize, &str)> = Vec::new();
    for piece in body.split_whitespace() {
        pieces.push((piece.as_ptr() as usize - body.as_ptr() as usize, piece));
    }
    // Marks may surround words that an excerpt leaves out.
    let is_one = |(piece, wanted): (&(usize, &str), &String)| piece.1.to_lowercase().contains(&**wanted);
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
    let is_cut = matches!(disk::read_text(&path), Ok(Text::Present(text)) if !text.is_empty() && !text.ends_with('\n'));
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
    matches!(disk::read_text(path), Ok(Text::Present(text)) if !text.trim_start_matches('\u{feff}').starts_with("---") || !text.contains("\n---"))
}
