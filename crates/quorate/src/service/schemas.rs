//! The schemas that `quorate schema` publishes besides the doctypes: JSON outputs, and members' answers.

use quorate_ledger::verify::{self, VerifyReport};
use quorate_protocol::Json;
use quorate_protocol::answers::Schema as Form;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::json;

use super::runtime::drive;
use super::{audit, compare, convene, estimate, report, runs};

/// The version of the JSON for several reviews.
pub const REVIEWS: &str = "quorate.reviews/v1";

/// A command's JSON output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    Review,
    Reviews,
    Convene,
    /// The expected cost of reviews, the result of `--dry-run`.
    Estimate,
    /// The questions of an assembly's run, the result of `--dry-run`.
    Plan,
    /// Two runs on one artifact.
    Compare,
    /// The statistics of a council.
    Audit,
    /// A list of runs.
    Runs,
    /// A run of a runtime.
    Run,
    /// A verification of the ledger.
    Verify,
}

impl Output {
    pub const ALL: [Output; 10] = [
        Output::Review,
        Output::Reviews,
        Output::Estimate,
        Output::Convene,
        Output::Plan,
        Output::Compare,
        Output::Audit,
        Output::Runs,
        Output::Run,
        Output::Verify,
    ];

    /// Its name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Output::Review => "review",
            Output::Reviews => "reviews",
            Output::Estimate => "estimate",
            Output::Convene => "convene",
            Output::Plan => "plan",
            Output::Compare => "compare",
            Output::Audit => "audit",
            Output::Runs => "runs",
            Output::Run => "run",
            Output::Verify => "verify",
        }
    }

    /// The value of its `schema` field.
    pub fn id(self) -> &'static str {
        match self {
            Output::Review => report::SCHEMA,
            Output::Reviews => REVIEWS,
            Output::Estimate => estimate::SCHEMA,
            Output::Convene => convene::report::SCHEMA,
            Output::Plan => convene::plan::SCHEMA,
            Output::Compare => compare::SCHEMA,
            Output::Audit => audit::SCHEMA,
            Output::Runs => runs::SCHEMA,
            Output::Run => drive::SCHEMA,
            Output::Verify => verify::SCHEMA,
        }
    }

    fn of<T: JsonSchema>(self) -> Json {
        let schemas = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let mut schema = schemas.into_root_schema_for::<T>().to_value();
        schema["$id"] = json!(self.id());
        schema
    }

    /// The JSON Schema (2020-12), without external references.
    ///
    /// # Panics
    /// Never: a test reads all schemas.
    pub fn json(self) -> Json {
        let read = |text| serde_json::from_str::<Json>(text).expect("the shipped schemas are JSON");
        match self {
            Output::Review => read(include_str!("schemas/review.json")),
            Output::Estimate => read(include_str!("schemas/estimate.json")),
            Output::Convene => read(include_str!("schemas/convene.json")),
            Output::Plan => read(include_str!("schemas/plan.json")),
            Output::Compare => compare::schema(),
            Output::Runs => runs::schema(),
            Output::Run => drive::schema(),
            Output::Verify => self.of::<VerifyReport>(),
            Output::Audit => self.of::<audit::Audit>(),
            Output::Reviews => {
                let mut reviews = read(include_str!("schemas/reviews.json"));
                // Without an `$id` of its own it belongs to the enclosing schema, and every validator resolves its
                // references by path.
                let mut review = Output::Review.json();
                if let Some(review) = review.as_object_mut() {
                    review.retain(|key, _| !matches!(key.as_str(), "$id" | "$schema"));
                    reviews["$defs"] = review.remove("$defs").unwrap_or_else(|| json!({}));
                }
                reviews["$defs"]["review"] = review;
                reviews
            }
        }
    }
}

/// The answers that members give, by name, with a description.
pub const ANSWERS: [(&str, Form, &str); 11] = [
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
];

/// The JSON Schema of an answer (2020-12).
pub fn answer(word: &str) -> Option<Json> {
    let (_, form, _) = ANSWERS.iter().find(|(name, ..)| *name == word)?;
    let mut schema = form.json_schema();
    if let Some(object) = schema.as_object_mut() {
        object.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    }
    Some(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_have_the_id_that_they_are_printed_with() {
        for output in Output::ALL {
            let schema = output.json();
            assert_eq!(schema["$id"], output.id());
            assert_eq!(schema["properties"]["schema"]["const"], output.id());
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
