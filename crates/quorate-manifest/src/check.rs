//! Checking one file of a round, whatever it is.

mod dedup;

use std::sync::Arc;

use quorate_diagnostics::{Body, Place, Report, codes};

use crate::doctype::{self, Doctype};
use crate::document::Document;
use crate::loader::{Loader, OpenResult};
use crate::playbook::catalog::HISTORY_SUFFIX;
use crate::workspace::WorkspacePath;
use crate::{assembly, operator, persona, playbook, runtime};

pub use dedup::Deduplicator;

/// How a file came to be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discovery {
    Explicit,
    /// It was found in a directory that was named.
    Walked,
}

/// What became of a file.
#[derive(Debug)]
pub enum FileOutcome {
    Checked(Doctype, Report),
    /// An assembly was checked; what it resolves to, where it can be used.
    Assembly(Report, Option<Box<assembly::Resolved>>),
    /// It is of a doctype that is loaded by its path alone.
    Standalone(Doctype),
    /// It was found and is no manifest.
    Skipped,
    /// There is no such file.
    Missing,
    /// It is there and cannot be read; what is to be said of it.
    Unreadable(Report),
}

pub fn check(loader: &Loader<'_>, location: &WorkspacePath, named: Discovery) -> FileOutcome {
    match loader.open(location) {
        OpenResult::Missing => FileOutcome::Missing,
        OpenResult::Unreadable(_)
            if named == Discovery::Walked && doctype::from_name(location.name()).is_none() =>
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
        OpenResult::UnknownDoctype(report) => check_unknown(location, named, report),
        OpenResult::Document(document) => check_document(loader, &document, named),
    }
}

/// Says which consumers the files that are checked together will make, so that a view for one of them is not refused for being early
/// (M15).
pub fn register_planned(loader: &Loader<'_>, locations: &[WorkspacePath]) {
    for location in
        locations.iter().filter(|location| doctype::from_name(location.name()) == Some(Doctype::Operator))
    {
        if let OpenResult::Document(document) = loader.open(location)
            && let Some(reference) = operator::load::reference(&document)
        {
            loader.add_planned(location.scope(), reference);
        }
    }
}

/// Checks bytes from elsewhere, as if they were a file of the workspace's root folder.
pub fn check_bytes(loader: &Loader<'_>, location: &WorkspacePath, bytes: Vec<u8>) -> FileOutcome {
    match loader.open_bytes(location, bytes) {
        OpenResult::Document(document) => dispatch(loader, &document),
        OpenResult::UnknownDoctype(report) => check_unknown(location, Discovery::Explicit, report),
        OpenResult::Missing | OpenResult::Unreadable(_) => FileOutcome::Missing,
    }
}

fn check_unknown(location: &WorkspacePath, named: Discovery, report: Report) -> FileOutcome {
    // Whatever else is wrong: a file that is read as YAML alone, or has frontmatter, was meant to be one.
    if named == Discovery::Walked && doctype::from_name(location.name()).is_none() {
        return FileOutcome::Skipped;
    }
    FileOutcome::Checked(Doctype::Role, report)
}

fn check_document(loader: &Loader<'_>, document: &Arc<Document>, named: Discovery) -> FileOutcome {
    let (doctype, name) = (document.doctype, document.path.name());
    let proper = doctype.file_name().is_none() || doctype.is_named(name);
    if named == Discovery::Walked && !proper {
        return FileOutcome::Skipped;
    }
    let mut checked = dispatch(loader, document);
    if let (false, FileOutcome::Checked(_, report) | FileOutcome::Assembly(report, _)) =
        (proper, &mut checked)
    {
        let proper = doctype.file_name().unwrap_or_default();
        let body = Body::new(format!("a file of this doctype is called {proper}, not {name}"));
        report.add_source(Arc::clone(&document.shown), Arc::clone(&document.text));
        let place = document.place(document.root.span.start..document.root.span.start, "");
        let help = "nothing finds it but who names it: chains, refs and directories go by the name";
        report.warn(codes::FILENAME, body.at(place).help(help));
    }
    checked
}

fn dispatch(loader: &Loader<'_>, document: &Arc<Document>) -> FileOutcome {
    let doctype = document.doctype;
    let report = match doctype {
        Doctype::Assembly => {
            let loaded = assembly::load(loader, document);
            return FileOutcome::Assembly(loaded.report, loaded.value.map(Box::new));
        }
        Doctype::Persona => persona::load::load(loader, document).report,
        Doctype::Playbook => playbook::load::load(loader, document).report,
        Doctype::Runtime => runtime::load::load(loader, document).report,
        Doctype::Operator => operator::load::load(loader, document).report,
        Doctype::Role => document.report.clone(),
        Doctype::Council | Doctype::Config => return FileOutcome::Standalone(doctype),
    };
    FileOutcome::Checked(doctype, report)
}

/// Whether a file that was found could be a manifest at all, by its name. A playbook's history holds manifests and is
/// none.
pub fn is_candidate(name: &str) -> bool {
    const ENDS: [&str; 4] = [".md", ".mdx", ".yaml", ".yml"];
    let ends = ENDS.iter().any(|end| name.ends_with(end)) && !name.ends_with(HISTORY_SUFFIX);
    doctype::from_name(name).is_some() || (!name.starts_with('.') && ends)
}

/// What reading a text of no doctype gave, for [`Loader::open`].
pub(crate) fn unknown_doctype_report(parsed: crate::document::Parsed) -> Report {
    let document = parsed.document;
    if !document.refused() {
        let known: Vec<&str> = Doctype::ALL.into_iter().filter_map(Doctype::schema_id).collect();
        let root = parsed.root.as_ref();
        let schema = root.and_then(|root| root.key("schema"));
        let written = schema.and_then(crate::tree::Node::as_str);
        let (message, span) = match (written, schema) {
            (Some(written), Some(node)) => (format!("there is no doctype `{written}`"), node.span.clone()),
            _ => ("nothing says what this file is".to_owned(), 0..0),
        };
        let near = written.and_then(|written| crate::tree::reader::nearest(written, &known));
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("add `schema`: {}", known.join(", ")),
        };
        document
            .refuse(codes::DOCTYPE_UNKNOWN, Body::new(message).at(document.place(span, "schema")).help(help));
    }
    document.into_report()
}
