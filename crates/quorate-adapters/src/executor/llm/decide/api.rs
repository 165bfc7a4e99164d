//! The wire formats of decision models, without I/O: one question in a request, one answer in its response. An answer that is
//! not in every part one to the question is a fault.

use quorate_kernel::ports::executor::Usage;
use quorate_protocol::Json;
use serde::Deserialize;
use serde_json::{Map, json};

use crate::executor::llm::fault::{self, Fault, FaultKind};
use crate::executor::llm::wire::HttpRequest;

/// How many options a question has at most.
pub const MAX_OPTIONS: usize = 255;

/// The name of the question in a request.
const NAME: &str = "decision";

/// How far the sum of all probabilities may be from 1, as services round them to two decimals or more: this, and half a
/// hundredth for each option.
const ROUNDING: f64 = 0.02;
const ROUNDING_OF_OPTION: f64 = 0.005;

/// A wire format of decision models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// TypeSafe's System One API, and the servers compatible with it.
    SystemOne,
    /// OpenAI's Decisions API.
    Decisions,
}

quorate_manifest::words!(Api { SystemOne = "systemone", Decisions = "decisions" });

/// A closed question about a state.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The material.
    pub state: Json,
    /// What is asked, in the host's words.
    pub instructions: String,
    /// The options with their descriptions; none for a yes-or-no question.
    pub options: Vec<(String, String)>,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The probability of yes.
    Yes(f64),
    /// The number of the most probable option, and the probability of each, in the order of the question.
    Choice(usize, Vec<f64>),
}

impl Api {
    /// Where the vendor serves it; a path is appended.
    pub fn default_base_url(self) -> &'static str {
        match self {
            Api::SystemOne => "https://api.typesafe.ai/v1",
            Api::Decisions => "https://api.openai.com/v1",
        }
    }

    /// The request for the answer to a question.
    pub fn encode(self, model: &str, question: &Question) -> HttpRequest {
        let Question { state, instructions, options } = question;
        match self {
            Api::SystemOne => {
                let mut asked = json!({"type": "noul", "instructions": instructions});
                if !options.is_empty() {
                    let criteria = options.iter().map(|(option, about)| (option.clone(), json!(about)));
                    asked["type"] = json!("choice");
                    asked["criteria"] = Json::Object(criteria.collect());
                }
                let body = json!({"model": model, "state": state, "questions": {NAME: asked}});
                HttpRequest::new("/systemone", &body)
            }
            Api::Decisions => {
                let mut asked = json!({"type": "predicate", "name": NAME, "instructions": instructions});
                if !options.is_empty() {
                    let choices =
                        options.iter().map(|(option, about)| json!({"value": option, "description": about}));
                    asked["type"] = json!("choice");
                    asked["choices"] = choices.collect();
                }
                let input = state.as_str().map_or_else(|| state.to_string(), str::to_owned);
                HttpRequest::new("/decisions", &json!({"model": model, "input": input, "questions": [asked]}))
            }
        }
    }

    /// The answer in a response.
    ///
    /// # Errors
    /// When the response is an error, the model declined, or the answer is not one to this question: of another type or name, with
    /// a probability that is none, or with other options.
    pub fn decode(self, body: &Json, question: &Question) -> Result<Decision, Fault> {
        if body.get("error").is_some_and(|error| !error.is_null()) {
            return Err(fault::from_event(body));
        }
        let answers: Vec<(Option<&str>, &Json)> = match (self, body.get("answers")) {
            (_, None) => return Err(malformed("it has no `answers`")),
            (Api::SystemOne, Some(Json::Object(all))) => named(all).collect(),
            (Api::Decisions, Some(Json::Array(all))) => {
                all.iter().map(|one| (one.get("name").and_then(Json::as_str), one)).collect()
            }
            _ => return Err(malformed("its `answers` have another form")),
        };
        let answer = match answers[..] {
            [(Some(NAME), answer)] if answer.is_object() => answer,
            [] | [_] => return Err(malformed(format!("it has no answer to the question `{NAME}`"))),
            _ => return Err(malformed(format!("it has {} answers to one question", answers.len()))),
        };
        let has_type = answer.get("type").and_then(Json::as_str).unwrap_or_default();
        if has_type == "refusal" {
            let said = "the model declined to answer the question";
            return Err(Fault::new(FaultKind::Refused { category: None }, said));
        }
        let (wanted, probability) = match (self, question.options.is_empty()) {
            (_, false) => ("choice", ""),
            (Api::SystemOne, true) => ("noul", "noul"),
            (Api::Decisions, true) => ("predicate", "probability"),
        };
        if has_type != wanted {
            return Err(malformed(format!(
                "its answer has the type `{has_type}`, and `{wanted}` was asked for"
            )));
        }
        match question.options.is_empty() {
            true => read_probability(&format!("`{probability}`"), answer.get(probability)).map(Decision::Yes),
            false => self.read_choice(answer, &question.options),
        }
    }

    fn read_choice(self, answer: &Json, options: &[(String, String)]) -> Result<Decision, Fault> {
        let place = |option: Option<&str>| options.iter().position(|(known, _)| Some(&**known) == option);
        let given: Vec<(Option<&str>, Option<&Json>)> = match (self, answer.get("probabilities")) {
            (Api::SystemOne, Some(Json::Object(given))) => {
                named(given).map(|(option, probability)| (option, Some(probability))).collect()
            }
            (Api::Decisions, Some(Json::Array(given))) => given
                .iter()
                .map(|one| (one.get("value").and_then(Json::as_str), one.get("probability")))
                .collect(),
            _ => return Err(malformed("its answer has no `probabilities`")),
        };
        let mut known = vec![None; options.len()];
        for (option, probability) in given {
            let place = place(option).filter(|place| known[*place].is_none()).ok_or_else(|| {
                malformed("its `probabilities` have an option that was not given, or one twice")
            })?;
            let field = format!("probability of `{}`", options[place].0);
            known[place] = Some(read_probability(&field, probability)?);
        }
        let probabilities: Option<Vec<f64>> = known.into_iter().collect();
        let probabilities = probabilities.ok_or_else(|| malformed("its `probabilities` lack an option"))?;
        #[expect(clippy::cast_precision_loss, reason = "a question has few options")]
        let rounding = ROUNDING + ROUNDING_OF_OPTION * options.len() as f64;
        let sum: f64 = probabilities.iter().sum();
        if (sum - 1.0).abs() > rounding {
            return Err(malformed(format!("its probabilities add up to {}", shown(sum))));
        }
        let chosen = place(answer.get("choice").and_then(Json::as_str))
            .ok_or_else(|| malformed("its `choice` is none of the options that were given"))?;
        match probabilities.iter().all(|other| *other <= probabilities[chosen]) {
            true => Ok(Decision::Choice(chosen, probabilities)),
            false => Err(malformed("its `choice` is not the most probable option")),
        }
    }
}

/// The model that answered, as the service names it, and the usage that it reports. A count that cannot be read is unknown.
pub fn read_usage(body: &Json) -> (Option<String>, Usage) {
    let count = |path: &str| body.pointer(&format!("/usage/{path}")).and_then(Json::as_u64);
    // No text has no tokens: a gateway that does not count says 0.
    let usage = count("input_tokens").filter(|tokens| *tokens > 0).map(|tokens_in| Usage {
        tokens_in: Some(tokens_in),
        tokens_cached: count("input_tokens_details/cached_tokens"),
        tokens_written: count("input_tokens_details/cache_write_tokens"),
        tokens_out: Some(count("output_tokens").unwrap_or(0)),
        tokens_reasoning: count("output_tokens_details/reasoning_tokens"),
        ..Usage::default()
    });
    let model = body.get("model").and_then(Json::as_str).filter(|model| !model.is_empty());
    (model.map(str::to_owned), usage.unwrap_or_default())
}

/// The entries of an object, as those of a list that names them.
fn named(all: &Map<String, Json>) -> impl Iterator<Item = (Option<&str>, &Json)> {
    all.iter().map(|(name, one)| (Some(&**name), one))
}

fn read_probability(field: &str, value: Option<&Json>) -> Result<f64, Fault> {
    let probability = value.and_then(Json::as_f64);
    probability.filter(|probability| (0.0..=1.0).contains(probability)).ok_or_else(|| match value {
        Some(value) => {
            malformed(format!("the {field} of its answer is {value}, and not a number from 0 to 1"))
        }
        None => malformed(format!("its answer has no {field}")),
    })
}

/// A probability as people are shown it.
pub(super) fn shown(probability: f64) -> String {
    let text = format!("{probability:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn malformed(said: impl AsRef<str>) -> Fault {
    Fault::new(FaultKind::Malformed, said)
}
