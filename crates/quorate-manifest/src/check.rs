//! Checks one file of any doctype, and removes repeated diagnostics: an ancestor yields the same ones for each of its views.

use std::collections::BTreeSet;
use std::sync::Arc;

use quorate_diagnostics::{Body, Place, Report, codes};

use crate::doctype::{self, Doctype};
use crate::document::Document;
use crate::loader::{Loader, OpenResult};
use crate::playbook::HISTORY_SUFFIX;
use crate::workspace::WorkspacePath;
use crate::{assembly, operator, persona, playbook, runtime};

/// How the user named a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discovery {
    /// By its path.
    Explicit,
    /// By a directory that contains it.
    Walked,
}

/// Result of checking a file.
#[derive(Debug)]
pub enum FileOutcome {
    Checked(Doctype, Report),
    /// An assembly; resolved, if nothing is refused.
    Assembly(Report, Option<Box<assembly::ResolvedAssembly>>),
    /// A council or configuration file; the caller loads it by its path.
    Standalone(Doctype),
    /// A file of a directory that is not a manifest.
    Skipped,
    Missing,
    /// The file exists but cannot be read; the report has the reason.
    Unreadable(Report),
}

pub fn check(loader: &Loader<'_>, location: &WorkspacePath, discovery: Discovery) -> FileOutcome {
    match loader.open(location) {
        OpenResult::Missing => FileOutcome::Missing,
        OpenResult::Unreadable(_)
            if discovery == Discovery::Walked && doctype::from_name(location.name()).is_none() =>
        {
            FileOutcome::Skipped
        }
        OpenResult::Unreadable(why) => {
            let shown = loader.display_name(location);
            let place = Place { file: shown.as_str().into(), span: 0..0, path: String::new() };
            let body = Body::new(format!("`{shown}` cannot be read: {why}")).at(place);
            let mut report = Report::new();
            report.add_source(shown, "");
            report.refuse(codes::FILE_UNREADABLE, body);
            FileOutcome::Unreadable(report)
        }
        OpenResult::UnknownDoctype(report) => check_unknown(location, discovery, report),
        OpenResult::Document(document) => check_document(loader, &document, discovery),
    }
}

/// Registers the refs of the operators among the files, so that a view that applies to one of them gets a warning instead
/// of a refusal (M15).
pub fn register_planned(loader: &Loader<'_>, locations: &[WorkspacePath]) {
    for location in
        locations.iter().filter(|location| doctype::from_name(location.name()) == Some(Doctype::Operator))
    {
        if let OpenResult::Document(document) = loader.open(location)
            && let Some(reference) = operator::operator_ref(&document)
        {
            loader.add_planned(location.scope(), reference);
        }
    }
}

/// Checks bytes from the caller as if they were the file at `location`.
pub fn check_bytes(loader: &Loader<'_>, location: &WorkspacePath, bytes: Vec<u8>) -> FileOutcome {
    match loader.open_bytes(location, bytes) {
        OpenResult::Document(document) => dispatch(loader, &document),
        OpenResult::UnknownDoctype(report) => check_unknown(location, Discovery::Explicit, report),
        OpenResult::Missing | OpenResult::Unreadable(_) => FileOutcome::Missing,
    }
}

fn check_unknown(location: &WorkspacePath, discovery: Discovery, report: Report) -> FileOutcome {
    if discovery == Discovery::Walked && doctype::from_name(location.name()).is_none() {
        return FileOutcome::Skipped;
    }
    FileOutcome::Checked(Doctype::Role, report)
}

fn check_document(loader: &Loader<'_>, document: &Arc<Document>, discovery: Discovery) -> FileOutcome {
    let (doctype, name) = (document.doctype, document.path.name());
    let has_proper_name = doctype.file_name().is_none() || doctype.is_named(name);
    if discovery == Discovery::Walked && !has_proper_name {
        return FileOutcome::Skipped;
    }
    let mut outcome = dispatch(loader, document);
    if let (false, FileOutcome::Checked(_, report) | FileOutcome::Assembly(report, _)) =
        (has_proper_name, &mut outcome)
    {
        let proper = doctype.file_name().unwrap_or_default();
        let body = Body::new(format!("a file of this doctype is called {proper}, not {name}"));
        report.add_source(Arc::clone(&document.shown), Arc::clone(&document.text));
        let place = document.place(document.root.span.start..document.root.span.start, "");
        let help = "rename it, or name it on the command line: refs and directory scans find files by name";
        report.warn(codes::FILENAME, body.at(place).help(help));
    }
    outcome
}

fn dispatch(loader: &Loader<'_>, document: &Arc<Document>) -> FileOutcome {
    let doctype = document.doctype;
    let report = match doctype {
        Doctype::Assembly => {
            let loaded = assembly::load(loader, document);
            return FileOutcome::Assembly(loaded.report, loaded.value.map(Box::new));
        }
        Doctype::Persona => persona::load_persona(loader, document).report,
        Doctype::Playbook => playbook::load_playbook(loader, document).report,
        Doctype::Runtime => runtime::load_runtime(loader, document).report,
        Doctype::Operator => operator::load_operator(loader, document).report,
        Doctype::Role => document.report.clone(),
        Doctype::Council | Doctype::Config => return FileOutcome::Standalone(doctype),
    };
    FileOutcome::Checked(doctype, report)
}

/// Whether a file name in a directory scan may be a manifest's. Histories of playbooks are not manifests.
pub fn is_candidate(name: &str) -> bool {
    const SUFFIXES: [&str; 4] = [".md", ".mdx", ".yaml", ".yml"];
    let has_suffix = SUFFIXES.iter().any(|suffix| name.ends_with(suffix)) && !name.ends_with(HISTORY_SUFFIX);
    doctype::from_name(name).is_some() || (!name.starts_with('.') && has_suffix)
}

/// The diagnostics reported so far.
#[derive(Debug, Default)]
pub struct Deduplicator {
    /// File, start of the span, code, message.
    seen: BTreeSet<(String, usize, &'static str, String)>,
}

impl Deduplicator {
    /// Moves the new diagnostics of `report`, and the sources that they quote, to `all`.
    pub fn add(&mut self, mut report: Report, all: &mut Report) {
        report.refusals.retain(|refusal| self.is_new(refusal.code.as_str(), &refusal.body));
        report.warnings.retain(|warning| self.is_new(warning.code.as_str(), &warning.body));
        let refused = report.refusals.iter().map(|refusal| &refusal.body);
        let bodies = refused.chain(report.warnings.iter().map(|warning| &warning.body));
        let quoted: BTreeSet<String> = bodies
            .flat_map(|body| body.place.iter().chain(body.related.iter().map(|related| &related.place)))
            .map(|place: &Place| place.file.to_string())
            .collect();
        report.retain_sources(|file| quoted.contains(file));
        all.absorb(report);
    }

    fn is_new(&mut self, code: &'static str, body: &Body) -> bool {
        let place = body.place.as_ref();
        let (file, at) = place.map_or((String::new(), 0), |place| (place.file.to_string(), place.span.start));
        self.seen.insert((file, at, code, body.message.clone()))
    }
}

#[cfg(test)]
mod tests {
    use quorate_diagnostics::codes;

    use super::*;

    #[test]
    fn the_same_message_at_another_place_is_kept() {
        let messages = |at: usize| {
            let mut report = Report::new();
            report.add_source("a", "text");
            report.add_source("b", "text");
            let place = Place { file: "a".into(), span: at..at, path: String::new() };
            report.refuse(codes::SYNTAX, Body::new("message").at(place));
            report
        };
        let (mut deduplicator, mut all) = (Deduplicator::default(), Report::new());
        [0, 1, 0].into_iter().for_each(|at| deduplicator.add(messages(at), &mut all));
        assert_eq!(all.refusals.len(), 2);
        assert_eq!(all.sources.keys().map(|file| &**file).collect::<Vec<_>>(), ["a"]);
    }
}
