//! The JSON Schemas that Quorate publishes: of manifests, of the reports that it prints, and of members' answers.

use quorate_diagnostics::{Body, codes};
use quorate_manifest::doctype::{self, Doctype};
use quorate_manifest::tree::reader::nearest;
use serde_json::Value;

use super::error::{Error, ErrorKind};
use super::service::schemas::{ANSWERS, Output, answer as find_answer};

/// A published JSON Schema (2020-12).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedSchema {
    /// The name, as `quorate schema NAME` takes it.
    pub name: &'static str,
    /// What it describes, in a few words: the value of the documents' `schema` field, the name of their file, or the answer.
    pub of: &'static str,
    /// The documents that the schema describes, in one sentence.
    pub about: String,
}

/// The schemas of manifests and of `quorate.toml`.
pub fn doctypes() -> Vec<PublishedSchema> {
    let published = Doctype::ALL.into_iter().filter(|doctype| doctype::schema(*doctype).is_some());
    let schema = |doctype: Doctype| {
        let id = doctype.schema_id().or_else(|| doctype.file_name()).unwrap_or_default();
        PublishedSchema { name: doctype.as_str(), of: id, about: format!("The JSON Schema of {id}") }
    };
    published.map(schema).collect()
}

/// The schemas of reports.
pub fn reports() -> Vec<PublishedSchema> {
    let schema = |output: Output| {
        let about = format!("The JSON Schema of what has `schema: {}`", output.id());
        PublishedSchema { name: output.word(), of: output.id(), about }
    };
    Output::ALL.map(schema).into()
}

/// The schemas of members' answers.
pub fn answers() -> Vec<PublishedSchema> {
    let schema =
        |(name, _, of)| PublishedSchema { name, of, about: format!("The JSON Schema of an answer: {of}") };
    ANSWERS.map(schema).into()
}

/// The schemas of reports, then those of answers.
///
/// ```
/// let all = quorate::schemas::list();
/// assert!(all.iter().all(|schema| quorate::schemas::find(schema.name).is_some()));
/// ```
pub fn list() -> Vec<PublishedSchema> {
    [reports(), answers()].concat()
}

/// A schema of a report or an answer by its name; `None` if the name is unknown.
pub fn find(name: &str) -> Option<Value> {
    find_report(name).or_else(|| find_answer(name))
}

/// The schema of a manifest or a report, by its name, by the documents' `schema` field, or by the name of their file.
///
/// # Errors
/// If there is no such schema; the help lists the names.
pub fn document(name: &str) -> Result<Value, Error> {
    let names = |doctype: &Doctype| {
        [Some(doctype.as_str()), doctype.schema_id(), doctype.file_name()].contains(&Some(name))
    };
    let found = Doctype::ALL.into_iter().find(names).and_then(doctype::schema).or_else(|| find_report(name));
    let known =
        || doctypes().into_iter().chain(reports()).map(|schema| schema.name).chain(["answer"]).collect();
    found.ok_or_else(|| unknown("doctype or output", name, known()))
}

/// The schema of an answer by its name.
///
/// # Errors
/// If there is no such answer; the help lists the names.
pub fn answer(name: &str) -> Result<Value, Error> {
    find_answer(name).ok_or_else(|| unknown("answer", name, ANSWERS.map(|(name, ..)| name).into()))
}

fn unknown(noun: &str, name: &str, known: Vec<&str>) -> Error {
    let help = match nearest(name, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use one of {}", known.join(", ")),
    };
    Error::new(ErrorKind::NotFound, codes::USAGE, Body::new(format!("unknown {noun} `{name}`")).help(help))
}

fn find_report(name: &str) -> Option<Value> {
    Output::ALL.into_iter().find(|output| [output.word(), output.id()].contains(&name)).map(Output::json)
}
