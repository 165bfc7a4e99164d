//! Forms on the wire: each dialect's rules over every form, and each answer that fits a form also fits the host's schema.

use std::collections::BTreeSet;

use proptest::prelude::{Just, Strategy, any, prop};
use proptest::strategy::BoxedStrategy;
use proptest::test_runner::{Config, TestRunner};
use quorate_adapters::executor::llm::schema::{Dialect, Form, form};
use quorate_protocol::answers::Schema;
use serde_json::{Map, Value, json};

fn forms() -> impl Iterator<Item = (Schema, Dialect, &'static Form)> {
    let all = Schema::ALL.into_iter().flat_map(|answer| Dialect::ALL.map(|dialect| (answer, dialect)));
    all.filter_map(|(answer, dialect)| Some((answer, dialect, form(answer, dialect)?)))
}

/// Calls a function for a schema and all within it, with how many levels down it is.
fn visit(schema: &Value, level: usize, look: &mut impl FnMut(&Map<String, Value>, usize)) {
    let node = schema.as_object().expect("a schema is an object");
    look(node, level);
    for property in node.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values) {
        visit(property, level + 1, look);
    }
    if let Some(items) = node.get("items") {
        visit(items, level + 1, look);
    }
    for variant in node.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
        visit(variant, level, look);
    }
}

/// Holds a schema against the rules of a dialect.
fn lint(schema: &Value, dialect: Dialect) -> Vec<String> {
    let mut keywords =
        vec!["type", "enum", "description", "properties", "required", "items", "anyOf", "minItems"];
    keywords.push("additionalProperties");
    keywords.extend(match dialect {
        Dialect::Anthropic | Dialect::Plain => &[][..],
        Dialect::OpenAi | Dialect::Gemini => &["minimum", "maximum", "maxItems"],
        Dialect::Local => &["minimum", "maximum", "maxItems", "maxLength"],
    });
    let mut wrong = Vec::new();
    let (mut properties, mut optional, mut unions) = (0, 0, 0);
    if schema["type"] != "object" || schema.get("anyOf").is_some() {
        wrong.push("the root is not an object".to_owned());
    }
    visit(schema, 1, &mut |node, level| {
        wrong.extend(
            node.keys().filter(|key| !keywords.contains(&key.as_str())).map(|key| format!("`{key}`")),
        );
        if level > 10 {
            wrong.push("more than 10 levels".to_owned());
        }
        unions += usize::from(node.contains_key("anyOf") || node.get("type").is_some_and(Value::is_array));
        let one_of =
            node.contains_key("anyOf") || (dialect == Dialect::Anthropic && node.contains_key("enum"));
        if node.contains_key("type") == one_of {
            wrong.push(format!("type or alternatives, one of both: {node:?}"));
        }
        if node.get("type").is_some_and(Value::is_array) && !dialect.has_nulls() {
            wrong.push("a list of types".to_owned());
        }
        if dialect == Dialect::Anthropic && node.get("minItems").is_some_and(|least| *least != 1) {
            wrong.push("minItems".to_owned());
        }
        let Some(own) = node.get("properties").and_then(Value::as_object) else { return };
        let required = node["required"].as_array().expect("a list").len();
        properties += own.len();
        optional += own.len() - required;
        if node.get("additionalProperties") != Some(&json!(false)) {
            wrong.push("an open object".to_owned());
        }
    });
    match dialect {
        Dialect::OpenAi | Dialect::Local if optional > 0 || properties > 5_000 => {
            wrong.push(format!("{optional} optional"))
        }
        Dialect::Anthropic if optional > 24 || unions > 16 => wrong.push(format!("{optional}, {unions}")),
        _ => {}
    }
    wrong
}

#[test]
fn every_form_keeps_the_rules_of_its_dialect() {
    for (answer, dialect, form) in forms() {
        assert_eq!(
            lint(&form.schema, dialect),
            Vec::<String>::new(),
            "{answer:?} {dialect:?}: {}",
            form.schema
        );
        assert!(!form.name.is_empty() && form.name.bytes().all(|byte| byte.is_ascii_lowercase()));
    }
    assert_eq!(forms().count(), (Schema::ALL.len() - 1) * Dialect::ALL.len());
}

#[test]
fn the_linter_sees_what_is_wrong() {
    for (schema, dialect) in [
        (json!({"anyOf": []}), Dialect::OpenAi),
        (json!({"type": "object", "properties": {}, "required": []}), Dialect::Gemini),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": [], "additionalProperties": false}),
            Dialect::OpenAi,
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "required": [],
                "additionalProperties": false}),
            Dialect::Anthropic,
        ),
    ] {
        assert!(!lint(&schema, dialect).is_empty(), "{schema}");
    }
    for answer in Schema::ALL {
        assert!(!lint(&answer.json_schema(), Dialect::OpenAi).is_empty(), "{answer:?}");
    }
}

#[test]
fn both_rounds_of_a_council_have_one_form() {
    for dialect in Dialect::ALL {
        let [first, second] =
            [Schema::FirstAnswer, Schema::SecondAnswer].map(|answer| form(answer, dialect).unwrap());
        assert_eq!((first.name, &first.schema), (second.name, &second.schema));
    }
    assert!(form(Schema::PlainText, Dialect::OpenAi).is_none());
}

/// Any instance of a schema that a dialect may have.
fn instance(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(variants) = schema.get("anyOf").and_then(Value::as_array) {
        return prop::strategy::Union::new(variants.iter().map(instance)).boxed();
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return prop::sample::select(words.clone()).boxed();
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    let of_type = |name: &Value| match name.as_str().unwrap() {
        "null" => Just(Value::Null).boxed(),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "integer" | "number" => {
            let limit = |key: &str, default| schema.get(key).and_then(Value::as_i64).unwrap_or(default);
            (limit("minimum", -3)..=limit("maximum", 120)).prop_map(Value::from).boxed()
        }
        "string" => {
            prop::sample::select(vec!["", " ", "a", "two words", "{\"k\": [1]}", "kebab-case", "{}", "3"])
                .prop_map(Value::from)
                .boxed()
        }
        "array" => {
            let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0) as usize;
            prop::collection::vec(instance(&schema["items"]), least..least + 3).prop_map(Value::from).boxed()
        }
        "object" => object(schema),
        other => panic!("{other}"),
    };
    prop::strategy::Union::new(types.iter().map(of_type)).boxed()
}

fn object(schema: &Value) -> BoxedStrategy<Value> {
    let required: BTreeSet<&str> =
        schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let property = |(key, form): (&String, &Value)| {
        let (key, is_required) = (key.clone(), required.contains(key.as_str()));
        let presence = (instance(form), any::<bool>());
        presence.prop_map(move |(value, kept)| (key.clone(), (kept || is_required).then_some(value)))
    };
    let properties: Vec<_> = schema["properties"].as_object().unwrap().iter().map(property).collect();
    let present = |all: Vec<(String, Option<Value>)>| {
        Value::Object(all.into_iter().filter_map(|(key, value)| Some((key, value?))).collect())
    };
    properties.prop_map(present).boxed()
}

#[test]
fn what_fits_the_wire_fits_the_host_but_for_what_is_listed() {
    for (answer, dialect, form) in forms() {
        let host = jsonschema::draft202012::new(&answer.json_schema()).unwrap();
        let wire = jsonschema::draft202012::new(&form.schema).unwrap();
        let mut runner =
            TestRunner::new(Config { cases: 200, failure_persistence: None, ..Config::default() });
        let held = runner.run(&instance(&form.schema), |said| {
            assert!(wire.is_valid(&said), "the generator keeps the form: {said}");
            let restored: Value = serde_json::from_str(&form.restore(&said.to_string())).unwrap();
            for error in host.iter_errors(&restored) {
                let place = error.schema_path().to_string();
                let keyword = place.rsplit('/').next().unwrap_or_default();
                // Texts that are to be JSON objects may be none, and a list may name a key twice.
                let is_translated = keyword == "type" && open_objects(&answer.json_schema()).contains(&place);
                assert!(
                    dialect.unheld().contains(&keyword) || is_translated,
                    "{answer:?} {dialect:?} {place}: {said} -> {restored}"
                );
            }
            Ok(())
        });
        held.unwrap();
    }
}

/// Where a form has objects whose keys it does not name, as pointers to their `type`.
fn open_objects(schema: &Value) -> Vec<String> {
    fn look(node: &Value, place: &str, found: &mut Vec<String>) {
        if let Value::Object(entries) = node {
            let is_object = node["type"] == "object"
                || node["type"].as_array().is_some_and(|all| all.contains(&json!("object")));
            if is_object && node.get("properties").is_none() {
                found.push(format!("{place}/type"));
            }
            entries.iter().for_each(|(key, entry)| look(entry, &format!("{place}/{key}"), found));
        }
    }
    let mut found = Vec::new();
    look(schema, "", &mut found);
    found
}

#[test]
fn an_answer_is_translated_back() {
    let restored = |answer, said: Value| -> Value {
        let form = form(answer, Dialect::OpenAi).unwrap();
        serde_json::from_str(&form.restore(&said.to_string())).unwrap()
    };
    let said = json!({
        "would_block": true, "irreducible": false, "verdict": "hold", "score": null, "notes": null,
        "scores": [{"name": "tone", "value": 2}, {"name": "facts", "value": 4.5}],
        "findings": [{"quote": "q", "issue": "i", "fix": null, "line": 3}], "concessions": ["c"]
    });
    let host = json!({
        "would_block": true, "irreducible": false, "verdict": "hold", "scores": {"tone": 2, "facts": 4.5},
        "findings": [{"quote": "q", "issue": "i", "line": 3}], "concessions": ["c"]
    });
    assert_eq!(restored(Schema::SecondAnswer, said), host);
    assert_eq!(restored(Schema::FirstAnswer, host.clone()), host, "what is translated stays");
    let twice =
        json!({"would_block": false, "scores": [{"name": "a", "value": 1}, {"name": "a", "value": 5}]});
    assert_eq!(
        restored(Schema::FirstAnswer, twice.clone()),
        twice,
        "a contradiction is left to the host's check"
    );
    assert_eq!(
        restored(
            Schema::Turn,
            json!({"content": "c", "meta": null, "stateUpdate": "{\"n\": {\"a\": null}}"})
        ),
        json!({"content": "c", "stateUpdate": {"n": {"a": null}}})
    );
    for text in ["not json", "{\"content\": 1, \"content\": 2}", "```json\n{}\n```"] {
        assert_eq!(form(Schema::Turn, Dialect::Gemini).unwrap().restore(text), text);
    }
}

#[test]
fn a_condition_becomes_two_closed_objects_and_words_an_enum() {
    let deltas = &form(Schema::Deltas, Dialect::Anthropic).unwrap().schema;
    let variants = deltas.pointer("/properties/deltas/items/anyOf").unwrap();
    assert_eq!(variants[0]["properties"]["op"]["enum"], json!(["add"]));
    assert_eq!(variants[0]["required"], json!(["op", "slug", "body", "title"]));
    assert_eq!(variants[1]["properties"]["op"]["enum"], json!(["revise"]));
    assert!(variants[1]["properties"].get("title").is_none());
    let adjudication = &form(Schema::Adjudication, Dialect::OpenAi).unwrap().schema;
    assert_eq!(adjudication["properties"]["verdict"]["enum"], json!(["ship", "revise", "hold"]));
    assert!(adjudication["properties"].get("final_verdict").is_none());
    let score = |dialect| &form(Schema::FirstAnswer, dialect).unwrap().schema["properties"]["score"];
    assert_eq!(score(Dialect::OpenAi)["type"], json!(["number", "null"]));
    assert_eq!(*score(Dialect::Local), json!({"type": ["integer", "null"], "minimum": 1, "maximum": 5}));
    let limited = &form(Schema::Advice, Dialect::Anthropic).unwrap().schema["properties"]["severity"];
    assert!(limited["description"].as_str().unwrap().ends_with("(minimum: 0, maximum: 10)"), "{limited}");
}

/// The bounds of lists and texts in a schema, by the name of the property, wherever they stand.
fn bounds(schema: &Value) -> Vec<(String, u64)> {
    fn look(node: &Value, name: &str, found: &mut Vec<(String, u64)>) {
        let noted = |keyword: &str| {
            let note = node["description"].as_str()?.split(&format!("{keyword}: ")).nth(1)?;
            note.split([',', ')']).next()?.parse().ok()
        };
        for keyword in ["maxItems", "maxLength"] {
            if let Some(most) = node[keyword].as_u64().or_else(|| noted(keyword)) {
                found.push((format!("{name} {keyword}"), most));
            }
        }
        for (key, property) in node["properties"].as_object().into_iter().flatten() {
            look(property, key, found);
        }
        look_in(node, name, found);
    }
    fn look_in(node: &Value, name: &str, found: &mut Vec<(String, u64)>) {
        if node.get("items").is_some() {
            look(&node["items"], name, found);
        }
        for variant in node["anyOf"].as_array().into_iter().flatten() {
            look(variant, name, found);
        }
    }
    let mut found = Vec::new();
    look(schema, "", &mut found);
    found
}

#[test]
fn every_list_and_text_has_a_bound_in_every_dialect() {
    for (answer, property, most) in [
        (Schema::FirstAnswer, "findings maxItems", 12),
        (Schema::FirstAnswer, "quote maxLength", 300),
        (Schema::FirstAnswer, "issue maxLength", 600),
        (Schema::FirstAnswer, "fix maxLength", 600),
        (Schema::FirstAnswer, "notes maxLength", 600),
        (Schema::FirstAnswer, "concessions maxItems", 6),
        (Schema::FirstAnswer, "concessions maxLength", 600),
        (Schema::FirstAnswer, "escalations maxItems", 6),
        (Schema::FirstAnswer, "scores maxItems", 12),
        (Schema::FirstAnswer, "revision_brief maxLength", 1_500),
        (Schema::Adjudication, "reasoning maxLength", 1_500),
        (Schema::Adjudication, "dissent_summary maxLength", 600),
        (Schema::Advice, "evidence maxItems", 6),
        (Schema::Advice, "concern maxLength", 600),
        (Schema::Ballot, "rationale maxLength", 600),
        (Schema::Message, "message maxLength", 1_500),
        (Schema::Message, "addressedTo maxItems", 24),
        (Schema::Selection, "next maxItems", 24),
        (Schema::Deltas, "deltas maxItems", 6),
        (Schema::Deltas, "slug maxLength", 80),
        (Schema::Deltas, "title maxLength", 200),
        (Schema::Judgement, "traits maxItems", 24),
        (Schema::Judgement, "reason maxLength", 600),
        (Schema::Tier, "reason maxLength", 600),
    ] {
        for dialect in Dialect::ALL {
            let bounds = bounds(&form(answer, dialect).unwrap().schema);
            let found: Vec<u64> =
                bounds.iter().filter(|(name, _)| name == property).map(|(_, most)| *most).collect();
            assert!(
                !found.is_empty() && found.iter().all(|bound| *bound == most),
                "{dialect:?} {property}: {found:?}"
            );
        }
    }
    for (answer, dialect, form) in forms() {
        visit(&form.schema, 1, &mut |node, _| {
            if node.get("type") == Some(&json!("array")) {
                assert_eq!(
                    bounds(&json!(node)).first().map(|(name, _)| &**name),
                    Some(" maxItems"),
                    "{answer:?} {dialect:?}"
                );
            }
        });
    }
    // The texts that are the work itself are as long as `max_tokens` lets them be.
    for (answer, property) in [(Schema::Turn, "content maxLength"), (Schema::Deltas, "body maxLength")] {
        for dialect in Dialect::ALL {
            let bounds = bounds(&form(answer, dialect).unwrap().schema);
            assert!(bounds.iter().all(|(name, _)| name != property), "{dialect:?} {bounds:?}");
        }
    }
}

#[test]
fn the_hosts_form_accepts_what_is_longer_than_the_bounds() {
    let finding = json!({"quote": "q".repeat(900), "issue": "i".repeat(2_000)});
    let long = json!({"would_block": true, "irreducible": false, "notes": "n".repeat(5_000), "findings": vec![finding; 40],
        "concessions": vec!["c"; 20]});
    for answer in [Schema::FirstAnswer, Schema::SecondAnswer] {
        let host = jsonschema::draft202012::new(&answer.json_schema()).unwrap();
        assert!(host.is_valid(&long));
        for dialect in Dialect::ALL {
            let restored: Value =
                serde_json::from_str(&form(answer, dialect).unwrap().restore(&long.to_string())).unwrap();
            assert_eq!(restored, long, "{dialect:?}");
        }
    }
}

#[test]
fn the_plain_form_has_no_list_of_types() {
    let plain = &form(Schema::FirstAnswer, Dialect::Plain).unwrap().schema;
    assert_eq!(plain["required"], json!(["would_block", "irreducible"]));
    assert_eq!(plain["properties"]["verdict"]["enum"], json!(["ship", "revise", "hold"]));
    assert_eq!(plain["properties"]["score"]["type"], "number");
    let said = json!({"would_block": true, "irreducible": false, "scores": [{"name": "tone", "value": 2}]});
    let restored = form(Schema::FirstAnswer, Dialect::Plain).unwrap().restore(&said.to_string());
    let host = json!({"would_block": true, "irreducible": false, "scores": {"tone": 2}});
    assert_eq!(serde_json::from_str::<Value>(&restored).unwrap(), host);
}
