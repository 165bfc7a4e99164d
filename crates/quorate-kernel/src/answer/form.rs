//! Holding an answer against its JSON Schema: the keywords that the built-in schemas of answers use, and no others.
//! A schema with another one is refused, so that no keyword is ever shown to a member and not held.

use std::sync::OnceLock;

use quorate_protocol::Json;
use regex::Regex;

/// A schema that was read.
#[derive(Debug, Default)]
pub(super) struct Form {
    types: Vec<Type>,
    required: Vec<String>,
    properties: Vec<(String, Form)>,
    additional: Option<Box<Form>>,
    items: Option<Box<Form>>,
    any_of: Vec<Form>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    min_length: Option<u64>,
    pattern: Option<Pattern>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

/// A regular expression, compiled when a text is first held against it.
#[derive(Debug)]
struct Pattern {
    text: String,
    compiled: OnceLock<Option<Regex>>,
}

impl Form {
    /// Reads a schema; `None` where it has a keyword that is not held here, or an odd value.
    pub(super) fn read(schema: &Json) -> Option<Form> {
        let mut form = Form::default();
        for (keyword, value) in schema.as_object()? {
            match keyword.as_str() {
                "type" => form.types = types(value)?,
                "required" => form.required = strings(value)?,
                "properties" => {
                    let read = |(key, one): (&String, &Json)| Some((key.clone(), Form::read(one)?));
                    form.properties = value.as_object()?.iter().map(read).collect::<Option<_>>()?;
                }
                "additionalProperties" => form.additional = Some(Box::new(Form::read(value)?)),
                "items" => form.items = Some(Box::new(Form::read(value)?)),
                "anyOf" => form.any_of = value.as_array()?.iter().map(Form::read).collect::<Option<_>>()?,
                "minimum" => form.minimum = Some(value.as_f64()?),
                "maximum" => form.maximum = Some(value.as_f64()?),
                "minLength" => form.min_length = Some(value.as_u64()?),
                "pattern" => form.pattern = Some(Pattern::new(value.as_str()?)),
                "description" => {}
                _ => return None,
            }
        }
        Some(form)
    }

    /// What keeps a value from fitting, each with where it is (a JSON pointer), in the order found.
    pub(super) fn misfits(&self, value: &Json) -> Vec<(String, String)> {
        let mut found = Vec::new();
        self.hold(value, "", &mut found);
        found
    }

    fn hold(&self, value: &Json, at: &str, found: &mut Vec<(String, String)>) {
        let mut say = |what: String| found.push((at.to_owned(), what));
        if !self.types.is_empty() && !self.types.iter().any(|one| one.is(value)) {
            let types: Vec<_> = self.types.iter().map(|one| format!("\"{}\"", one.word())).collect();
            say(format!("{value} is not of type {}", types.join(" or ")));
            return;
        }
        if let Some(number) = value.as_f64() {
            if let Some(minimum) = self.minimum.filter(|minimum| number < *minimum) {
                say(format!("{value} is less than the minimum of {minimum}"));
            }
            if let Some(maximum) = self.maximum.filter(|maximum| number > *maximum) {
                say(format!("{value} is greater than the maximum of {maximum}"));
            }
        }
        if let Some(text) = value.as_str() {
            if self.min_length.is_some_and(|least| (text.chars().count() as u64) < least) {
                say(format!("{value} is too short"));
            }
            if let Some(pattern) = self.pattern.as_ref().filter(|pattern| !pattern.fits(text)) {
                say(format!("{value} does not match \"{}\"", pattern.text));
            }
        }
        if let Some(object) = value.as_object() {
            for key in self.required.iter().filter(|key| !object.contains_key(*key)) {
                say(format!("\"{key}\" is a required property"));
            }
        }
        if !self.any_of.is_empty() && !self.any_of.iter().any(|one| one.misfits(value).is_empty()) {
            let ways: Vec<String> =
                self.any_of.iter().flat_map(|one| one.misfits(value)).map(|(_, what)| what).collect();
            say(format!("it has to be otherwise in one of these: {}", ways.join("; or ")));
        }
        self.within(value, at, found);
    }

    /// What is wrong deeper inside.
    fn within(&self, value: &Json, at: &str, found: &mut Vec<(String, String)>) {
        for (key, one) in value.as_object().into_iter().flatten() {
            let known = self.properties.iter().find(|(name, _)| name == key).map(|(_, form)| form);
            if let Some(form) = known.or(self.additional.as_deref()) {
                form.hold(one, &format!("{at}/{key}"), found);
            }
        }
        if let Some(form) = &self.items {
            for (number, one) in value.as_array().into_iter().flatten().enumerate() {
                form.hold(one, &format!("{at}/{number}"), found);
            }
        }
    }
}

impl Type {
    const ALL: [Type; 7] =
        [Type::Null, Type::Boolean, Type::Integer, Type::Number, Type::String, Type::Array, Type::Object];

    fn word(self) -> &'static str {
        match self {
            Type::Null => "null",
            Type::Boolean => "boolean",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::String => "string",
            Type::Array => "array",
            Type::Object => "object",
        }
    }

    fn is(self, value: &Json) -> bool {
        match self {
            Type::Null => value.is_null(),
            Type::Boolean => value.is_boolean(),
            // 1.0 is an integer to JSON Schema.
            Type::Integer => {
                value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
            }
            Type::Number => value.is_number(),
            Type::String => value.is_string(),
            Type::Array => value.is_array(),
            Type::Object => value.is_object(),
        }
    }
}

impl Pattern {
    fn new(text: &str) -> Pattern {
        Pattern { text: text.to_owned(), compiled: OnceLock::new() }
    }

    /// A pattern that does not compile fits nothing.
    fn fits(&self, text: &str) -> bool {
        let compiled = self.compiled.get_or_init(|| Regex::new(&self.text).ok());
        compiled.as_ref().is_some_and(|pattern| pattern.is_match(text))
    }
}

fn types(value: &Json) -> Option<Vec<Type>> {
    let words = match value {
        Json::String(word) => vec![word.clone()],
        _ => strings(value)?,
    };
    words.iter().map(|word| Type::ALL.into_iter().find(|one| one.word() == word)).collect()
}

fn strings(value: &Json) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|one| one.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use quorate_protocol::answers::Schema;
    use serde_json::json;

    use super::*;

    /// Values of every kind, at the edges of what the schemas say.
    fn palette() -> Vec<Json> {
        let finding = json!({"quote": "q", "issue": "i", "fix": null, "line": 3});
        vec![
            json!(null),
            json!(true),
            json!(false),
            json!(-1),
            json!(0),
            json!(1),
            json!(1.0),
            json!(1.5),
            json!(5),
            json!(5.01),
            json!(1e300),
            json!(""),
            json!(" "),
            json!("true"),
            json!("Hold"),
            json!("ship "),
            json!("ships"),
            json!([]),
            json!([1]),
            json!([{}]),
            json!([finding]),
            json!([finding, {"quote": "q", "issue": 1}]),
            json!([{"quote": "q", "issue": "i", "line": 0}]),
            json!([{"quote": "q", "issue": "i", "line": 2.0}]),
            json!({}),
            json!({"a": 3}),
            json!({"a": 0.5}),
            json!({"a": "3"}),
            json!({"a": null}),
        ]
    }

    const KEYS: [&str; 12] = [
        "verdict",
        "final_verdict",
        "score",
        "scores",
        "would_block",
        "irreducible",
        "revision_brief",
        "findings",
        "concessions",
        "reasoning",
        "dissent_summary",
        "unknown",
    ];

    #[test]
    fn what_fits_is_what_fits_a_full_validator() {
        // X4, X5: one value changed, then each pair of values.
        for schema in Schema::ALL {
            let form = Form::read(&schema.json()).expect("a built-in schema");
            let oracle = jsonschema::draft202012::new(&schema.json()).expect("a JSON Schema");
            let same = |value: &Json| {
                assert_eq!(form.misfits(value).is_empty(), oracle.is_valid(value), "{schema:?}: {value}")
            };
            palette().iter().for_each(same);
            let fine = json!({"would_block": false, "irreducible": false, "final_verdict": "HOLD", "reasoning": "r"});
            same(&fine);
            for (at, first) in KEYS.iter().enumerate() {
                for one in palette() {
                    let mut changed = fine.clone();
                    changed[first] = one;
                    same(&changed);
                    for (second, other) in
                        KEYS[..at].iter().flat_map(|key| palette().into_iter().map(move |one| (key, one)))
                    {
                        let mut changed = changed.clone();
                        changed[second] = other;
                        same(&changed);
                    }
                    if let Some(object) = changed.as_object_mut() {
                        object.remove("would_block");
                    }
                    same(&changed);
                }
            }
        }
    }

    #[test]
    fn a_keyword_that_is_not_held_is_refused() {
        assert!(Form::read(&json!({"type": "string", "maxLength": 3})).is_none());
        assert!(Form::read(&json!({"properties": {"a": {"enum": [1]}}})).is_none());
        assert!(Form::read(&json!({"type": "text"})).is_none());
    }
}
