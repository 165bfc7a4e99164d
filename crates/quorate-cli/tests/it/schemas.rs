//! What `quorate schema` publishes, compared with what commands print and members answer.

use crate::support;
use serde_json::{Value, json};
use support::TestDir;
use support::council::{all_ship, all_ship_except};

fn schema(words: &[&str]) -> jsonschema::Validator {
    let place = TestDir::new();
    let schema = place.run(&[&["schema"], words].concat()).assert_code(0).json();
    jsonschema::meta::validate(&schema).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

#[track_caller]
fn fits(validator: &jsonschema::Validator, value: &Value) {
    let errors: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{value:#}");
}

#[test]
fn reviews_are_what_their_schema_says() {
    let (one, several) = (schema(&["review"]), schema(&["reviews"]));
    let place = TestDir::new();
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for name in ["launch-post.md", "incident-report.md", "pricing-promise.md"] {
        place.write(name, std::fs::read(examples.join(name)).unwrap());
        fits(&one, &place.review(&[name]));
    }
    fits(&several, &place.review(&["*.md"]));
    fits(&several, &place.review(&["launch-post.md", "incident-report.md", "--tiered"]));
    let review = place.review(&["pricing-promise.md"]);
    let run = review["run"].as_str().unwrap();
    place.run(&["override", run, "--verdict", "ship", "--reason", "It ends today."]);
    fits(&one, &place.run(&["show", run, "--format", "json"]).assert_code(0).json());

    let finding = json!({"quote": "Nowhere.", "issue": "It is not there."});
    let place = TestDir::scripted(&all_ship_except(json!({
        "r2/skeptic": {"would_block": true, "irreducible": true, "findings": [finding]},
        "r2/evidence": "no JSON at all",
    })));
    fits(&one, &place.review(&["draft.md"]));
    fits(&one, &place.review(&["draft.md", "--max-calls", "3"]));
    fits(&several, &place.review(&["draft.md", "draft.m?"]));
    let mut spoilt = place.review(&["draft.md"]);
    spoilt["surprise"] = json!(1);
    assert!(!one.is_valid(&spoilt), "a key that is not published does not fit");
}

/// A schema without names and descriptions, with references resolved, in a form in which the order does not matter.
fn normal(schema: &Value, root: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        return normal(root.pointer(reference.trim_start_matches('#')).expect("a part of the schema"), root);
    }
    let Some(keys) = schema.as_object() else { return schema.clone() };
    let sorted = |value: &Value| {
        let mut all = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
        all.sort_by_key(Value::to_string);
        Value::from(all)
    };
    let mut all = serde_json::Map::new();
    for (key, value) in keys {
        let value = match &**key {
            "title" | "description" | "$schema" | "$defs" => continue,
            "properties" => value
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, property)| (name.clone(), normal(property, root)))
                .collect(),
            "anyOf" | "allOf" => {
                value.as_array().into_iter().flatten().map(|form| normal(form, root)).collect()
            }
            "items" | "if" | "then" => normal(value, root),
            "required" | "enum" | "type" | "const" => sorted(value),
            _ => value.clone(),
        };
        all.insert(if key == "const" { "enum" } else { key }.to_owned(), value);
    }
    // What may be null is written as a form of its own, or beside the other types and words.
    let null = json!({"type": ["null"]});
    let forms = all.get("anyOf").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let form = match forms {
        [form, other] | [other, form] if *other == null => form.as_object().cloned(),
        _ => None,
    };
    if let Some(form) = form {
        all.remove("anyOf");
        for (key, value) in form {
            let more = match &*key {
                "type" => Some(json!("null")),
                "enum" => Some(Value::Null),
                _ => None,
            };
            let value = match more {
                Some(more) => {
                    sorted(&value.as_array().into_iter().flatten().cloned().chain([more]).collect())
                }
                None => value,
            };
            all.insert(key, value);
        }
    }
    if all.contains_key("enum") {
        all.remove("type");
    }
    all.into()
}

#[test]
fn published_schemas_say_what_they_have_always_said() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden/schemas");
    for name in ["review", "reviews", "estimate", "convene", "plan"] {
        let golden = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
        let golden: Value = serde_json::from_str(&golden).unwrap();
        let schema = quorate::schemas::find(name).expect("it is published");
        let (now, before) = (normal(&schema, &schema), normal(&golden, &golden));
        assert!(now == before, "{name}: {now:#}\n\nbefore: {before:#}");
    }
}

#[test]
fn a_schema_refers_to_nothing_but_parts_of_itself() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            Value::Object(entries) => {
                found.extend(entries.get("$ref").and_then(Value::as_str).map(str::to_owned));
                entries.values().for_each(|item| references(item, found));
            }
            _ => {}
        }
    }
    let place = TestDir::new();
    for word in ["review", "reviews", "estimate", "convene", "plan", "audit", "runs", "run", "verify"] {
        let schema = place.run(&["schema", word]).assert_code(0).json();
        let (mut found, inner) = (Vec::new(), schema["$defs"].to_string());
        references(&schema, &mut found);
        assert!(!inner.contains("\"$id\""), "{word}");
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{word}: {reference}"));
            assert!(schema.pointer(pointer).is_some(), "{word}: {reference}");
        }
    }
}

#[test]
fn lists_and_verifications_are_what_their_schemas_say() {
    let (runs, verify) = (schema(&["runs"]), schema(&["verify"]));
    let place = TestDir::scripted(&all_ship());
    place.run(&["review", "draft.md"]).assert_code(0);
    fits(&runs, &place.run(&["runs", "--format", "json"]).assert_code(0).json());
    fits(&verify, &place.run(&["ledger", "verify", "--format", "json"]).assert_code(0).json());
    let log = place.read(".quorate/council_log.jsonl");
    place.write(".quorate/council_log.jsonl", log.replace("SHIP", "HOLD"));
    let mut differs = place.run(&["ledger", "verify", "--format", "json"]).assert_code(1).json();
    fits(&verify, &differs);
    assert_eq!(differs["holds"], false, "{differs}");
    differs["surprise"] = json!(1);
    assert!(!verify.is_valid(&differs), "a key that is not published does not fit");
}

#[test]
fn audits_are_what_their_schema_says() {
    let validator = schema(&["audit"]);
    let place = TestDir::new();
    let audit = |arguments: &[&str]| {
        place.run(&[&["audit", "--format", "json"], arguments].concat()).assert_code(0).json()
    };
    fits(&validator, &audit(&[]));
    place.write("draft.md", crate::support::REVISED);
    place.write("operators/ada/OPERATOR.md", "---\nid: ada\nname: Ada\n---\nYou are Ada.\n");
    place.review(&["draft.md", "--executor", "rubric", "--made-by", "ada"]);
    place.run(&["override", "latest", "--verdict", "ship", "--reason", "It is true.", "--by", "Bob"]);
    let counted = audit(&["--since", "30d"]);
    fits(&validator, &counted);
    let ada = &counted["producers"][0];
    assert_eq!((&ada["producer"], &ada["reviews"], &ada["overrides"]), (&json!("ada"), &json!(1), &json!(1)));
    assert_eq!(counted["agreement"]["pairs"][0]["agreement"], Value::Null, "{counted:#}");
    let mut spoilt = counted;
    spoilt["surprise"] = json!(1);
    assert!(!validator.is_valid(&spoilt), "a key that is not published does not fit");
}

#[test]
fn convenings_are_what_their_schema_says() {
    let (convene_schema, plan) = (schema(&["convene"]), schema(&["plan"]));
    let place = TestDir::new();
    place.write("talk.md", "**User**: My chest hurts and I am alone.\n");
    place.write("text.md", "Resolution: the meeting moves to Tuesday at ten.\n");
    for (mode, on) in [
        ("advisory", ["--conversation", "talk.md"]),
        ("voting", ["--proposal", "text.md"]),
        ("peer", ["--topic", "text.md"]),
        ("hierarchy", ["--request", "text.md"]),
    ] {
        place.run(&["init", "assembly", "--mode", mode, "--name", &format!("the-{mode}")]).assert_code(0);
        let path = format!("assemblies/the-{mode}");
        let dry = place.run(&["convene", &path, on[0], on[1], "--format", "json", "--dry-run"]);
        fits(&plan, &dry.assert_code(0).json());
        let ran = place.run(&["convene", &path, on[0], on[1], "--format", "json"]);
        let convened = ran.json();
        assert_eq!(convened["mode"], mode, "{}", ran.stderr);
        fits(&convene_schema, &convened);
        let run = convened["run"].as_str().unwrap();
        fits(&convene_schema, &place.run(&["show", run, "--format", "json"]).assert_code(0).json());
    }
}

#[test]
fn answers_that_fit_their_schema_are_taken() {
    for (word, fits, misses) in [
        ("deliberator", json!({"would_block": false, "irreducible": false}), json!({"would_block": false})),
        ("deliberator-first", json!({"would_block": false}), json!({"score": 3})),
        ("adjudicator", json!({"verdict": "SHIP", "reasoning": "Fine."}), json!({"verdict": "SHIP"})),
        ("vote", json!({"vote": "yes", "rationale": "It is due."}), json!({"vote": "perhaps"})),
        ("advice", json!({"severity": 3, "concern": "c"}), json!({"concern": 1})),
        ("message", json!({"message": "Hello."}), json!({})),
        ("turn", json!({"content": "Hello."}), json!({})),
        ("selection", json!({"next": ["writer"]}), json!({})),
    ] {
        let answer = schema(&["answer", word]);
        assert!(
            answer.is_valid(&fits),
            "{word}: {:?}",
            answer.iter_errors(&fits).map(|e| e.to_string()).collect::<Vec<_>>()
        );
        assert!(!answer.is_valid(&misses), "{word}");
    }
}

#[test]
fn the_answers_that_the_documents_show_fit() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/executors.md");
    let text = std::fs::read_to_string(docs).unwrap();
    let (_, table) = text.split_once("### What a command must print").expect("the chapter");
    let (table, _) = table.split_once("```sh").expect("the end of the table");
    let mut shown = 0;
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split(" | ").map(|cell| cell.trim_matches(['|', ' ', '`'])).collect();
        let [word, _, answer] = cells[..] else { panic!("{row}") };
        if word == "FORM" {
            continue;
        }
        fits(
            &schema(&["answer", word]),
            &serde_json::from_str(answer).unwrap_or_else(|why| panic!("{row}: {why}")),
        );
        shown += 1;
    }
    let listed = TestDir::new().run(&["schema", "answer"]).assert_code(0).stdout;
    assert_eq!(shown, listed.lines().count(), "every answer is shown");
}

#[test]
fn everything_with_a_schema_is_listed() {
    let place = TestDir::new();
    for words in [&["schema"][..], &["schema", "answer"]] {
        let listed = place.run(words).assert_code(0).stdout;
        assert!(listed.lines().count() >= 9, "{listed}");
        for word in listed.lines().filter_map(|line| line.split_whitespace().next()) {
            place.run(&[words, &[word]].concat()).assert_code(0);
        }
    }
    place
        .run(&["schema", "answer", "deliberater"])
        .assert_code(4)
        .assert_stderr_contains("did you mean `deliberator`?");
    place.run(&["schema", "revew"]).assert_code(4).assert_stderr_contains("did you mean `review`?");
    place.run(&["schema", "persona", "vote"]).assert_code(64);
}

#[test]
fn runs_of_runtimes_are_what_their_schema_says() {
    // K12
    let run = schema(&["run"]);
    let place = TestDir::with("answers.json", r#"{"ada": "@Bo", "bo": "@Ada"}"#);
    place.write(
        "swarm.yaml",
        "schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: talk\nparticipants:\n  \
         - {id: ada, executor: script, displayName: Ada, config: {path: answers.json}}\n  \
         - {id: bo, executor: script, displayName: Bo, config: {path: answers.json}}\n\
         substrate: {kind: file, path: talk.md}\ndispatcher: {kind: mention, maxAgentTurns: 2}\n",
    );
    let ran =
        |words: &[&str]| place.run(&[&["run", "swarm.yaml", "--format", "json"], words].concat()).json();
    for (words, by) in [
        (&["--say", "@Ada"][..], json!("guard")),
        (&[], json!("idle")),
        (&["--say", "@Zed"], json!("nobody")),
        (&["--say", "@Bo", "--max-calls", "0"], json!("budget")),
        (&["--once"], Value::Null),
    ] {
        let ran = ran(words);
        fits(&run, &ran);
        assert_eq!(ran["stopped"]["by"], by, "{ran:#}");
    }
    let mut spoilt = ran(&[]);
    spoilt["stopped"]["by"] = json!("chance");
    assert!(!run.is_valid(&spoilt));
}
