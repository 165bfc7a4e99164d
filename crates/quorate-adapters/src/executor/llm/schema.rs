//! What a service is told of an answer's form, beside the host's own JSON Schema, which says what counts.
//!
//! Services take parts of JSON Schema only. A [`Form`] is closed and has no conditions, and an answer that fits it fits the
//! host's form once [`Form::restore`] has translated it back, but for what [`Dialect::unheld`] names: that stands in
//! descriptions, for the model to read. The host's check stays the only judge.
//!
//! | the host's form | on the wire | translated back |
//! |---|---|---|
//! | optional property | nullable and required (OpenAI), else optional | a null is left out |
//! | open object whose values have a form | list of `{name, value}` | object |
//! | open object | JSON text | object |
//! | list or text | list | |
//! | words in any case (a pattern) | `enum` in lower case | |
//! | `anyOf` of required keys at the root | the first of them | |
//! | `if` a property is a constant | `anyOf` of two objects | |
//!
//! Properties that the host's form leaves open are closed: a model that is held to a form cannot add one.

use std::sync::LazyLock;

use quorate_kernel::answer::rewrite_answer;
use quorate_kernel::strict_json;
use quorate_protocol::Json;
use quorate_protocol::answers::Schema;

mod restore;
mod wire_form;

/// The parts of JSON Schema that a family of services takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Strict: every property is required.
    OpenAi,
    Anthropic,
    Gemini,
}

impl Dialect {
    pub const ALL: [Dialect; 3] = [Dialect::OpenAi, Dialect::Anthropic, Dialect::Gemini];

    /// The keywords that stand in descriptions only. A list of one or more alone is held everywhere.
    pub fn unheld(self) -> &'static [&'static str] {
        const EVERYWHERE: [&str; 7] =
            ["pattern", "minLength", "maxLength", "maxItems", "minProperties", "minimum", "maximum"];
        match self {
            Dialect::Anthropic => &EVERYWHERE,
            Dialect::OpenAi | Dialect::Gemini => &EVERYWHERE[..5],
        }
    }
}

/// An answer's form on the wire.
#[derive(Debug)]
pub struct Form {
    /// What the form is called there.
    pub name: &'static str,
    pub schema: Json,
    host: Json,
}

/// The form of an answer; `None` where it is plain text. Both rounds of a council have one: it is part of what prompt
/// caches key on.
pub fn form(answer: Schema, dialect: Dialect) -> Option<&'static Form> {
    static ALL: LazyLock<Vec<(Schema, Dialect, Form)>> = LazyLock::new(|| {
        let forms = Schema::ALL.into_iter().filter(|answer| answer.is_structured());
        forms
            .flat_map(|answer| Dialect::ALL.map(|dialect| (answer, dialect, build(answer, dialect))))
            .collect()
    });
    let answer = if answer == Schema::FirstAnswer { Schema::SecondAnswer } else { answer };
    ALL.iter()
        .find(|(known, in_dialect, _)| (*known, *in_dialect) == (answer, dialect))
        .map(|(.., form)| form)
}

fn build(answer: Schema, dialect: Dialect) -> Form {
    let host = answer.json_schema();
    Form { name: name(answer), schema: wire_form::convert(&host, dialect), host }
}

fn name(answer: Schema) -> &'static str {
    match answer {
        Schema::FirstAnswer | Schema::SecondAnswer => "review",
        Schema::Adjudication => "adjudication",
        Schema::Advice => "advice",
        Schema::Ballot => "ballot",
        Schema::Message => "message",
        Schema::PlainText | Schema::Turn => "turn",
        Schema::Selection => "selection",
        Schema::Deltas => "deltas",
        Schema::Judgement => "judgement",
        Schema::Tier => "tier",
    }
}

impl Form {
    /// Translates an answer to the host's form. Text around the object and values that do not fit stay unchanged.
    pub fn restore(&self, text: &str) -> String {
        rewrite_answer(text, |object| {
            let answer = strict_json::parse(object).ok()?;
            let restored = restore::value(answer.clone(), &self.host);
            (restored != answer).then(|| restored.to_string())
        })
    }
}
