//! The JSON Schemas that Quorate publishes: of manifests, of the reports that it prints, and of members' answers.

use quorate_diagnostics::{Body, codes};
use quorate_ledger::verify::{self, VerifyReport};
use quorate_manifest::doctype::{self, Doctype};
use quorate_manifest::tree::reader::nearest;
use quorate_protocol::answers::Schema as Form;
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::error::{Error, ErrorKind};
use super::eval;
use super::review::{REVIEWS, Reviews};
use super::service::convene::plan::{self, Plan};
use super::service::convene::report::{self as decision, Decision};
use super::service::estimate::{self, Estimates};
use super::service::report::{self as review, Review};
use super::service::runtime::drive;
use super::service::{audit, compare, runs};

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

type Report = (&'static str, &'static str, fn() -> Value);

/// The reports: the name of each, the value of its `schema` field, and its schema.
const REPORTS: [Report; 11] = [
    ("review", review::SCHEMA, simple::<Review>),
    ("reviews", REVIEWS, simple::<Reviews<'static>>),
    ("estimate", estimate::SCHEMA, simple::<Estimates>),
    ("convene", decision::SCHEMA, simple::<Decision>),
    ("plan", plan::SCHEMA, simple::<Plan>),
    ("compare", compare::SCHEMA, derived_for_reading::<compare::Comparison>),
    ("audit", audit::SCHEMA, derived::<audit::Audit>),
    ("coherence", eval::SCHEMA, derived::<eval::CoherenceReport>),
    ("runs", runs::SCHEMA, runs::schema),
    ("run", drive::SCHEMA, derived::<drive::SwarmReport>),
    ("verify", verify::SCHEMA, derived::<VerifyReport>),
];

/// The answers that members give, by name, with a description.
const ANSWERS: [(&str, Form, &str); 12] = [
    ("deliberator", Form::SecondAnswer, "a deliberator's, in any round"),
    (
        "deliberator-first",
        Form::FirstAnswer,
        "a deliberator's in round 1, where `irreducible` may be left out",
    ),
    ("adjudicator", Form::Adjudication, "the adjudicator's"),
    ("advice", Form::Advice, "a member's of an advisory assembly, and a node's of a hierarchy"),
    ("vote", Form::Ballot, "a voter's"),
    ("message", Form::Message, "a peer's"),
    ("turn", Form::Turn, "a participant's of a runtime, with `answer = \"json\"`; else the text itself"),
    ("selection", Form::Selection, "a router's: who speaks next"),
    ("deltas", Form::Deltas, "of a reflection on an operator: proposals of playbooks"),
    ("judgement", Form::Judgement, "of the judge of playbooks"),
    ("tier", Form::Tier, "of the executor that classifies the tier of a text (`tier_classifier`)"),
    ("predicate", Form::Predicate, "to a yes-or-no question about a text"),
];

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
    let schema = |(name, id, _)| {
        let about = format!("The JSON Schema of what has `schema: {id}`");
        PublishedSchema { name, of: id, about }
    };
    REPORTS.map(schema).into()
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
///
/// ```
/// let review = quorate::schemas::document("review")?;
/// assert_eq!(review, quorate::schemas::document("quorate.review/v1")?);
/// let error = quorate::schemas::document("revew").unwrap_err();
/// assert_eq!(error.kind(), quorate::ErrorKind::NotFound);
/// # Ok::<(), quorate::Error>(())
/// ```
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
    let (_, id, schema) = REPORTS.iter().find(|(word, id, _)| [*word, *id].contains(&name))?;
    let mut schema = schema();
    schema["$id"] = json!(id);
    Some(schema)
}

fn find_answer(name: &str) -> Option<Value> {
    let (_, form, _) = ANSWERS.iter().find(|(known, ..)| *known == name)?;
    let mut schema = form.json_schema();
    if let Some(object) = schema.as_object_mut() {
        object.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    }
    Some(schema)
}

fn generated<T: JsonSchema>(settings: SchemaSettings) -> Value {
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

fn derived<T: JsonSchema>() -> Value {
    generated::<T>(SchemaSettings::draft2020_12().for_serialize())
}

/// Does not require the keys whose value may be null.
fn derived_for_reading<T: JsonSchema>() -> Value {
    generated::<T>(SchemaSettings::draft2020_12())
}

/// As [`derived`], simplified.
fn simple<T: JsonSchema>() -> Value {
    generated::<T>(SchemaSettings::draft2020_12().for_serialize().with_transform(simplify))
}

/// Removes what readers of reports do not need: formats, defaults, and permissions of any further key; and writes the words
/// of a type as one `enum`, whether or not they have descriptions.
fn simplify(schema: &mut Schema) {
    if schema.as_bool() == Some(true) {
        schema.ensure_object();
    }
    for key in ["format", "default"] {
        schema.remove(key);
    }
    if schema.get("additionalProperties") == Some(&json!(true)) {
        schema.remove("additionalProperties");
    }
    transform_subschemas(&mut simplify, schema);
    let forms = |key| schema.get(key).and_then(Value::as_array);
    let word = |form: &Value| form.get("const").filter(|word| word.is_string()).cloned();
    let words: Option<Vec<Value>> = forms("oneOf").and_then(|forms| forms.iter().map(word).collect());
    let words_or_null = forms("anyOf").and_then(|forms| match &forms[..] {
        [form, null] if *null == json!({"type": "null"}) => form.get("enum")?.as_array().cloned(),
        _ => None,
    });
    if let Some(words) = words {
        schema.remove("oneOf");
        schema.insert("type".to_owned(), json!("string"));
        schema.insert("enum".to_owned(), json!(words));
    }
    if let Some(words) = words_or_null {
        schema.remove("anyOf");
        schema.insert("type".to_owned(), json!(["string", "null"]));
        schema.insert("enum".to_owned(), words.into_iter().chain([Value::Null]).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_have_the_id_that_they_are_printed_with() {
        for (name, id, _) in REPORTS {
            let schema = find(name).expect("a schema");
            assert_eq!(schema["$id"], id);
            assert_eq!(schema["properties"]["schema"]["const"], id);
        }
    }

    #[test]
    fn every_form_of_an_answer_has_a_word() {
        for form in Form::ALL {
            // Answers in plain text have no schema.
            let named = ANSWERS.iter().any(|(_, known, _)| *known == form);
            assert_eq!(named, form != Form::PlainText, "{form:?}");
        }
    }
}
