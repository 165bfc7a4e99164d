//! Reading a schema.

use std::sync::OnceLock;

use serde_json::{Map, Value};

use super::{Additional, Condition, Form, Pattern, Type};

/// How deep `$ref`s may nest; our schemas do not recurse.
const DEPTH: usize = 32;

impl Form {
    /// Reads a schema; `None` where it has a keyword that is not held here, or an odd value.
    pub fn read(schema: &Value) -> Option<Form> {
        Reading { root: schema }.form(schema, 0)
    }
}

struct Reading<'s> {
    root: &'s Value,
}

impl Reading<'_> {
    fn form(&self, schema: &Value, depth: usize) -> Option<Form> {
        if depth > DEPTH {
            return None;
        }
        let mut form = Form::default();
        if let Value::Bool(fits) = schema {
            form.not = (!fits).then(Box::default);
            return Some(form);
        }
        let schema = schema.as_object()?;
        let one = |value: &Value| self.form(value, depth + 1);
        let many = |value: &Value| value.as_array()?.iter().map(one).collect::<Option<Vec<_>>>();
        for (keyword, value) in schema {
            match keyword.as_str() {
                "type" => form.types = types(value)?,
                "enum" => form.one_of_values = Some(value.as_array()?.clone()),
                "const" => form.one_of_values = Some(vec![value.clone()]),
                "required" => form.required = strings(value)?,
                "properties" => {
                    let read = |(key, value): (&String, &Value)| Some((key.clone(), one(value)?));
                    form.properties = value.as_object()?.iter().map(read).collect::<Option<_>>()?;
                }
                "additionalProperties" => {
                    form.additional = match value {
                        Value::Bool(true) => Additional::Open,
                        Value::Bool(false) => Additional::Closed,
                        held => Additional::Held(Box::new(one(held)?)),
                    }
                }
                "items" => form.items = Some(Box::new(one(value)?)),
                "minimum" => form.minimum = Some(value.as_f64()?),
                "maximum" => form.maximum = Some(value.as_f64()?),
                "exclusiveMinimum" => form.exclusive_minimum = Some(value.as_f64()?),
                "minLength" => form.min_length = Some(count(value)?),
                "maxLength" => form.max_length = Some(count(value)?),
                "minItems" => form.min_items = Some(count(value)?),
                "maxItems" => form.max_items = Some(count(value)?),
                "minProperties" => form.min_properties = Some(count(value)?),
                "uniqueItems" => form.unique_items = value.as_bool()?,
                "pattern" => form.pattern = Some(pattern(value.as_str()?, schema)),
                "allOf" => form.all_of.extend(many(value)?),
                "anyOf" => form.any_of = many(value)?,
                "oneOf" => form.one_of = many(value)?,
                "not" => form.not = Some(Box::new(one(value)?)),
                "if" => {
                    let part = |key| schema.get(key).map_or(Some(None), |value| Some(Some(one(value)?)));
                    let (then, otherwise) = (part("then")?, part("else")?);
                    form.condition = Some(Box::new(Condition { when: one(value)?, then, otherwise }));
                }
                "then" | "else" if schema.contains_key("if") => {}
                "$ref" => form.all_of.push(one(self.referred(value.as_str()?)?)?),
                "description" => form.description = Some(value.as_str()?.to_owned()),
                // Annotations.
                "$schema"
                | "$id"
                | "$defs"
                | "$comment"
                | "title"
                | "default"
                | "examples"
                | "format"
                | "deprecated"
                | "patternErrorMessage" => {}
                _ => return None,
            }
        }
        // What a description of the whole schema says explains no single fault.
        if depth == 0 || form.condition.is_none() && form.any_of.is_empty() {
            form.description = None;
        }
        Some(form)
    }

    fn referred(&self, reference: &str) -> Option<&Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }
}

fn pattern(text: &str, schema: &Map<String, Value>) -> Pattern {
    let says = schema.get("patternErrorMessage").and_then(Value::as_str).map(str::to_owned);
    Pattern { text: text.to_owned(), says, compiled: OnceLock::new() }
}

/// A pattern of JSON Schema, which is one of ECMA-262, in the syntax of the regex crate: there `\d` and `\w` are
/// ASCII, `\s` has the byte order mark besides Unicode's white space, and `$` is the very end.
pub(super) fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match (c, in_class) {
            ('[', false) => in_class = true,
            (']', true) => in_class = false,
            ('\\', _) => {
                let class = match chars.next() {
                    Some('d') => "0-9",
                    Some('w') => "A-Za-z0-9_",
                    Some('s') => r"\s\x{FEFF}",
                    // The slash needs no escape here, and may not have one.
                    Some('/') => {
                        out.push('/');
                        continue;
                    }
                    Some(other) => {
                        out.push('\\');
                        out.push(other);
                        continue;
                    }
                    None => continue,
                };
                if in_class {
                    out.push_str(class);
                } else {
                    out.push('[');
                    out.push_str(class);
                    out.push(']');
                }
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

fn types(value: &Value) -> Option<Vec<Type>> {
    let words = match value {
        Value::String(word) => vec![word.clone()],
        _ => strings(value)?,
    };
    words.iter().map(|word| Type::ALL.into_iter().find(|one| one.word() == word)).collect()
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|one| one.as_str().map(str::to_owned)).collect()
}

fn count(value: &Value) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok()
}
