//! Checking one file of a round, whatever it is.

mod once;

use std::sync::Arc;

use quorate_diagnostics::{Body, Place, Report, codes};

use crate::doctype::{self, Doctype};
use crate::layer::Layer;
use crate::playbook::shelf::HISTORY;
use crate::round::{Opened, Round};
use crate::workspace::Spot;
use crate::{assembly, operator, persona, playbook, runtime};

pub use once::Once;

/// How a file came to be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// It was named.
    Explicitly,
    /// It was found in a directory that was named.
    ByDirectory,
}

/// What became of a file.
#[derive(Debug)]
pub enum Checked {
    /// It was checked.
    Said(Doctype, Report),
    /// An assembly was checked; what it resolves to, where it can be used.
    Assembly(Report, Option<Box<assembly::Resolved>>),
    /// It is of a doctype that is loaded by its path alone.
    Elsewhere(Doctype),
    /// It was found and is no manifest.
    PassedOver,
    /// There is no such file.
    Missing,
    /// It is there and cannot be read; what is to be said of it.
    Unreadable(Report),
}

/// Checks a file.
pub fn check(round: &Round<'_>, spot: &Spot, named: Named) -> Checked {
    match round.open(spot) {
        Opened::Missing => Checked::Missing,
        Opened::Unreadable(_) if named == Named::ByDirectory && doctype::by_name(spot.name()).is_none() => {
            Checked::PassedOver
        }
        Opened::Unreadable(why) => {
            let shown = round.shown(spot);
            let place = Place { file: shown.as_str().into(), span: 0..0, path: String::new() };
            let body = Body::new(format!("`{shown}` cannot be read: {why}")).at(place);
            let mut report = Report::new();
            report.source(shown, "");
            report.refuse(codes::FILE_UNREADABLE, body);
            Checked::Unreadable(report)
        }
        Opened::Unknown(report) => unknown(spot, named, report),
        Opened::Layer(layer) => known(round, &layer, named),
    }
}

/// Says which consumers the files of a round will make, so that a view for one of them is not refused for being early
/// (M15).
pub fn plan(round: &Round<'_>, spots: &[Spot]) {
    for spot in spots.iter().filter(|spot| doctype::by_name(spot.name()) == Some(Doctype::Operator)) {
        if let Opened::Layer(layer) = round.open(spot)
            && let Some(reference) = operator::load::reference(&layer)
        {
            round.plan(spot.scope(), reference);
        }
    }
}

/// Checks bytes from elsewhere, as if they were a file of the workspace's root folder.
pub fn check_bytes(round: &Round<'_>, spot: &Spot, bytes: Vec<u8>) -> Checked {
    match round.open_bytes(spot, bytes) {
        Opened::Layer(layer) => dispatch(round, &layer),
        Opened::Unknown(report) => unknown(spot, Named::Explicitly, report),
        Opened::Missing | Opened::Unreadable(_) => Checked::Missing,
    }
}

fn unknown(spot: &Spot, named: Named, report: Report) -> Checked {
    // Whatever else is wrong: a file that is read as YAML alone, or has frontmatter, was meant to be one.
    if named == Named::ByDirectory && doctype::by_name(spot.name()).is_none() {
        return Checked::PassedOver;
    }
    Checked::Said(Doctype::Role, report)
}

fn known(round: &Round<'_>, layer: &Arc<Layer>, named: Named) -> Checked {
    let (doctype, name) = (layer.doctype, layer.spot.name());
    let proper = doctype.file_name().is_none() || doctype.is_named(name);
    if named == Named::ByDirectory && !proper {
        return Checked::PassedOver;
    }
    let mut checked = dispatch(round, layer);
    if let (false, Checked::Said(_, report) | Checked::Assembly(report, _)) = (proper, &mut checked) {
        let proper = doctype.file_name().unwrap_or_default();
        let body = Body::new(format!("a file of this doctype is called {proper}, not {name}"));
        report.source(Arc::clone(&layer.shown), Arc::clone(&layer.text));
        let place = layer.place(layer.root.span.start..layer.root.span.start, "");
        let help = "nothing finds it but who names it: chains, refs and directories go by the name";
        report.warn(codes::FILENAME, body.at(place).help(help));
    }
    checked
}

fn dispatch(round: &Round<'_>, layer: &Arc<Layer>) -> Checked {
    let doctype = layer.doctype;
    let report = match doctype {
        Doctype::Assembly => {
            let loaded = assembly::load(round, layer);
            return Checked::Assembly(loaded.report, loaded.value.map(Box::new));
        }
        Doctype::Persona => persona::load::load(round, layer).report,
        Doctype::Playbook => playbook::load::load(round, layer).report,
        Doctype::Runtime => runtime::load::load(round, layer).report,
        Doctype::Operator => operator::load::load(round, layer).report,
        Doctype::Role => layer.report.clone(),
        Doctype::Council | Doctype::Host => return Checked::Elsewhere(doctype),
    };
    Checked::Said(doctype, report)
}

/// Whether a file that was found could be a manifest at all, by its name. A playbook's history holds manifests and is
/// none.
pub fn is_candidate(name: &str) -> bool {
    const ENDS: [&str; 4] = [".md", ".mdx", ".yaml", ".yml"];
    let ends = ENDS.iter().any(|end| name.ends_with(end)) && !name.ends_with(HISTORY);
    doctype::by_name(name).is_some() || (!name.starts_with('.') && ends)
}

/// What reading a text of no doctype gave, for [`Round::open`].
pub(crate) fn not_a_doctype(parsed: crate::layer::Parsed) -> Report {
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
