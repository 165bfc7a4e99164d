//! A schema in the form that the service behind `codex --output-schema` accepts: every object closed, every property
//! required, no alternatives at the top, and only keywords that it knows; it refuses others at each call. The attempt
//! checks the answer against the full schema.

use quorate_protocol::{Json, answers};
use serde_json::{Map, json};

/// The schema in that form; `None` if the form would lose what the schema is for.
pub(super) fn to_strict(form: answers::Schema, schema: &Json) -> Option<Json> {
    match form {
        // These contain objects with arbitrary keys, which a closed object would lose.
        answers::Schema::PlainText | answers::Schema::Turn | answers::Schema::Deltas => None,
        _ => close(&first_alternative(schema)),
    }
}

/// The schema with the first of its alternatives at the top merged into it.
fn first_alternative(schema: &Json) -> Json {
    let mut schema = schema.clone();
    let alternatives = ["anyOf", "oneOf"].iter().find_map(|key| schema.as_object_mut()?.remove(*key));
    let Some(first) = alternatives.as_ref().and_then(|all| all.get(0)) else { return schema };
    if let (Some(Json::Array(required)), Some(Json::Array(more))) =
        (schema.get_mut("required"), first.get("required"))
    {
        required.extend(more.iter().cloned());
    }
    for (name, keywords) in first.get("properties").and_then(Json::as_object).into_iter().flatten() {
        let property = schema.pointer_mut("/properties").and_then(|all| all.get_mut(name));
        if let (Some(Json::Object(property)), Json::Object(keywords)) = (property, keywords) {
            property.extend(keywords.clone());
        }
    }
    schema
}

fn close(schema: &Json) -> Option<Json> {
    let keywords = schema.as_object()?;
    let mut kinds = types(keywords);
    let mut strict: Map<String, Json> = Map::new();
    for key in ["description", "enum"] {
        if let Some(value) = keywords.get(key) {
            strict.insert(key.to_owned(), value.clone());
        }
    }
    if kinds.contains(&"object") {
        let properties = properties(keywords)?;
        strict.insert("required".to_owned(), properties.keys().cloned().collect());
        strict.insert("properties".to_owned(), Json::Object(properties));
        strict.insert("additionalProperties".to_owned(), Json::Bool(false));
    }
    if kinds.contains(&"array") {
        // A list, or a string in its place: the list.
        kinds.retain(|kind| *kind != "string");
        let items = keywords.get("items").map_or_else(|| Some(json!({"type": "string"})), close)?;
        strict.insert("items".to_owned(), items);
    }
    let kind = match kinds[..] {
        [] if strict.contains_key("enum") => return Some(Json::Object(strict)),
        [] => return None,
        [kind] => json!(kind),
        _ => json!(kinds),
    };
    strict.insert("type".to_owned(), kind);
    Some(Json::Object(strict))
}

/// The properties, all of them required. An optional property stays only if it may be null, or if null can mean that it
/// is absent; an object that cannot be closed is dropped.
fn properties(keywords: &Map<String, Json>) -> Option<Map<String, Json>> {
    let required = |name: &str| {
        let names = keywords.get("required").and_then(Json::as_array);
        names.is_some_and(|names| names.iter().any(|required| required == name))
    };
    let all = keywords.get("properties")?.as_object()?;
    let mut required_properties = Map::new();
    for (name, schema) in all {
        let may_be_null = schema.as_object().is_some_and(|keywords| types(keywords).contains(&"null"));
        match close(schema) {
            Some(property) if required(name) || may_be_null => {
                required_properties.insert(name.clone(), property)
            }
            None if required(name) => return None,
            _ => None,
        };
    }
    Some(required_properties)
}

fn types(keywords: &Map<String, Json>) -> Vec<&str> {
    match keywords.get("type") {
        Some(Json::String(kind)) => vec![kind],
        Some(Json::Array(kinds)) => kinds.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::to_strict;
    use quorate_protocol::{Json, answers};
    use serde_json::json;

    /// Whether the service accepts a schema.
    fn taken(schema: &Json) -> bool {
        const KNOWN: &[&str] =
            &["type", "description", "enum", "properties", "required", "additionalProperties", "items"];
        let Some(keywords) = schema.as_object() else { return false };
        let Some(properties) = keywords.get("properties").and_then(Json::as_object) else {
            let has = |kind: &str| keywords.get("type").is_some_and(|kinds| kinds.to_string().contains(kind));
            return !has("object")
                && keywords.keys().all(|key| KNOWN.contains(&key.as_str()))
                && (!has("array") || keywords.get("items").is_some_and(taken));
        };
        let required: Vec<&str> =
            keywords["required"].as_array().unwrap().iter().filter_map(Json::as_str).collect();
        keywords.keys().all(|key| KNOWN.contains(&key.as_str()))
            && keywords["additionalProperties"] == false
            && properties.keys().all(|name| required.contains(&name.as_str()))
            && properties.values().all(taken)
    }

    #[test]
    fn every_form_of_a_judge_is_taken() {
        use answers::Schema::{
            Adjudication, Advice, Ballot, FirstAnswer, Judgement, Message, SecondAnswer, Selection,
        };
        for form in [FirstAnswer, SecondAnswer, Adjudication, Advice, Ballot, Message, Selection, Judgement] {
            let schema = to_strict(form, &form.json_schema()).unwrap_or_else(|| panic!("{form:?} has none"));
            assert!(taken(&schema), "{form:?}: {schema}");
            for name in form.json_schema()["required"].as_array().unwrap() {
                assert!(schema["properties"].get(name.as_str().unwrap()).is_some(), "{form:?} needs {name}");
            }
        }
        for form in [answers::Schema::PlainText, answers::Schema::Turn, answers::Schema::Deltas] {
            assert_eq!(to_strict(form, &form.json_schema()), None);
        }
    }

    #[test]
    fn an_answer_that_fits_it_fits_the_form() {
        let form = answers::Schema::Adjudication;
        let schema = to_strict(form, &form.json_schema()).unwrap();
        assert_eq!(schema["properties"]["verdict"]["type"], "string");
        let answer = json!({"verdict": "HOLD", "final_verdict": null, "reasoning": "r", "revision_brief": null,
                            "dissent_summary": null});
        for name in schema["properties"].as_object().unwrap().keys() {
            assert!(answer.get(name).is_some(), "{name}");
        }
        assert!(form.accepts(&answer));
        let form = answers::Schema::SecondAnswer;
        let schema = to_strict(form, &form.json_schema()).unwrap();
        assert_eq!(schema["properties"]["findings"]["items"]["required"].as_array().unwrap().len(), 4);
        assert_eq!(schema["properties"]["concessions"]["type"], json!(["array", "null"]));
        assert!(schema["properties"].get("scores").is_none(), "an object of any keys cannot be closed");
        let empty: serde_json::Map<_, _> = schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .map(|name| {
                (
                    name.clone(),
                    if ["would_block", "irreducible"].contains(&&**name) { json!(false) } else { Json::Null },
                )
            })
            .collect();
        assert!(form.accepts(&Json::Object(empty)));
    }
}
