//! Parses a schema.

use serde_json::Value;

use super::{Additional, CompiledSchema, Condition, Type, ecma};

/// The maximum nesting of `$ref`s; Quorate's schemas do not recurse.
const MAX_REF_DEPTH: usize = 32;

impl CompiledSchema {
    /// Parses a schema; `None` if it has an unsupported keyword, regular expression or value.
    pub fn parse(schema: &Value) -> Option<CompiledSchema> {
        SchemaParser { root: schema }.schema(schema, 0)
    }
}

struct SchemaParser<'s> {
    root: &'s Value,
}

impl SchemaParser<'_> {
    fn schema(&self, schema: &Value, depth: usize) -> Option<CompiledSchema> {
        if depth > MAX_REF_DEPTH {
            return None;
        }
        let mut form = CompiledSchema::default();
        if let Value::Bool(fits) = schema {
            form.not = (!fits).then(Box::default);
            return Some(form);
        }
        let schema = schema.as_object()?;
        let one = |value: &Value| self.schema(value, depth + 1);
        let many = |value: &Value| value.as_array()?.iter().map(one).collect::<Option<Vec<_>>>();
        let says = schema.get("patternErrorMessage").and_then(Value::as_str);
        for (keyword, value) in schema {
            match keyword.as_str() {
                "type" => form.types = types(value)?,
                "enum" => form.enum_values = Some(value.as_array()?.clone()),
                "const" => form.enum_values = Some(vec![value.clone()]),
                "required" => form.required = strings(value)?,
                "properties" => {
                    let read = |(key, value): (&String, &Value)| Some((key.clone(), one(value)?));
                    form.properties = value.as_object()?.iter().map(read).collect::<Option<_>>()?;
                }
                "additionalProperties" => {
                    form.additional = match value {
                        Value::Bool(true) => Additional::Allowed,
                        Value::Bool(false) => Additional::Denied,
                        held => Additional::Matching(Box::new(one(held)?)),
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
                "pattern" => form.pattern = Some(ecma::Pattern::parse(value.as_str()?, says)?),
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
                "$ref" => form.all_of.push(one(self.resolve_ref(value.as_str()?)?)?),
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
        // The description of a whole schema explains no single error.
        form.explains_errors = depth > 0 && (form.condition.is_some() || !form.any_of.is_empty());
        Some(form)
    }

    fn resolve_ref(&self, reference: &str) -> Option<&Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }
}

fn types(value: &Value) -> Option<Vec<Type>> {
    let words = match value {
        Value::String(word) => vec![word.clone()],
        _ => strings(value)?,
    };
    words.iter().map(|word| Type::ALL.into_iter().find(|kind| kind.as_str() == word)).collect()
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

fn count(value: &Value) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok()
}
