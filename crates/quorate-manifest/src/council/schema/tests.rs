//! Whatever fits the schemas of council.yaml and quorate.toml, and their checks, is read.

use std::path::Path;

use serde_json::{Value, json};

use crate::doctype::{Doctype, compiled_schema, schema};
use crate::workspace::{Source, SourceError};
use crate::{config, council};

/// Every file is there and holds the same text; the one under test is the first.
struct Files(String);

impl Source for Files {
    fn read(&self, path: &Path) -> Result<Vec<u8>, SourceError> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let main = matches!(name, "council.yaml" | "quorate.toml");
        Ok(if main { self.0.clone() } else { "You judge.".to_owned() }.into_bytes())
    }
}

fn palette() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(1.0),
        json!(2),
        json!(3),
        json!(4),
        json!(-1),
        json!(1.5),
        json!(101),
        json!(""),
        json!(" "),
        json!("x"),
        json!("1.0"),
        json!("seed"),
        json!("rules"),
        json!("none"),
        json!("rule_35_v2"),
        json!([]),
        json!(["a"]),
        json!([" "]),
        json!([1]),
        json!({}),
        json!({"a": ["b"]}),
        json!({"a": 3}),
        json!({"a": 4}),
        json!({"a": "b"}),
    ]
}

/// A document with each of its values replaced by each of the palette's, and with an unknown key in each mapping.
fn mutations(whole: &Value) -> Vec<Value> {
    fn pointers(value: &Value, at: &str, out: &mut Vec<String>) {
        out.push(at.to_owned());
        match value {
            Value::Object(object) => {
                object.iter().for_each(|(key, one)| pointers(one, &format!("{at}/{key}"), out))
            }
            Value::Array(items) => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(at_item, one)| pointers(one, &format!("{at}/{at_item}"), out));
            }
            _ => {}
        }
    }
    let mut all = Vec::new();
    pointers(whole, "", &mut all);
    let mut out = vec![whole.clone()];
    for pointer in all.iter().filter(|pointer| !pointer.is_empty()) {
        for value in palette() {
            let mut changed = whole.clone();
            *changed.pointer_mut(pointer).expect("its own pointer") = value;
            out.push(changed);
        }
    }
    for pointer in &all {
        let mut changed = whole.clone();
        if let Some(Value::Object(object)) = changed.pointer_mut(pointer) {
            object.insert("unknwon".to_owned(), json!(1));
            out.push(changed);
        }
    }
    out
}

#[test]
fn a_council_that_is_not_refused_is_read() {
    let whole = json!({
        "version": "1.0",
        "runtime": {"type": "rubric", "timeout_seconds": 3, "retries": 1, "model": "x"},
        "deliberators": [
            {"id": "a", "prompt": "a.md", "weight": 1, "context_refs": ["c.md"],
             "runtime": {"type": "rubric", "timeout_seconds": 3, "retries": 1, "model": "x", "fallback": ["y"]},
             "fallback": ["y"]},
            {"id": "b", "prompt": "a.md", "executor": "x", "model": "y"},
            {"id": "c", "prompt": "a.md"}
        ],
        "adjudicator": {"prompt": "a.md", "verdict_policy": "strict", "runtime": {"type": "rubric"}, "fallback": ["y"]},
        "protocol": {"rounds": 2, "cross_read": true, "fail_fast_on_runtime_error": false, "min_deliberators_for_verdict": 3},
        "tier_classifier": {"type": "rules", "default_tier": 2},
        "tier_rules": {"tier_1": {"post": ["*.md"]}, "tier_2": ["x"], "tier_3": {}},
        "logging": {"log_path": "log", "archive_dir": "a", "log_format": "rule_35_v2", "redact_patterns": ["x"]},
        "watch": {"paths": ["drafts"], "tier_overrides": {"a": 1}}
    });
    let mut with_table = whole.clone();
    with_table["adjudicator"] = json!({"prompt": "a.md", "executor": "x", "model": "y"});
    with_table["policy"] = json!([
        {"if": {"block": 1, "irreducible": 1, "reducible": 1, "says_irreducible": 1, "adjudicator": "HOLD"}, "then": "HOLD"},
        {"if": {"block_weight": 2.5, "block_by": ["a"], "irreducible_by": ["b"]}, "then": "HOLD",
         "or": {"adjudicator": "SHIP", "then": "REVISE"}},
        {"then": "SHIP"}
    ]);
    let schema = compiled_schema(Doctype::Council).expect("a schema");
    let mut judged = [0; 2];
    for document in [&whole, &with_table].into_iter().flat_map(mutations) {
        let text = document.to_string();
        let loaded = council::load(Path::new("council.yaml"), "council.yaml", &Files(text.clone()));
        let refusals = &loaded.report.refusals;
        let (tree, problems) = crate::tree::yaml::parse(&text);
        assert_eq!(problems, [], "{text}");
        let misfits = schema.errors(&tree.expect("a tree"));
        assert_eq!(loaded.value.is_some(), refusals.is_empty(), "{text}");
        assert!(misfits.is_empty() || !refusals.is_empty(), "{text}\n{misfits:?}");
        assert!(
            !refusals.iter().any(|refusal| refusal.body.message.contains("cannot use")),
            "{text}\n{refusals:?}"
        );
        judged[usize::from(misfits.is_empty())] += 1;
    }
    assert!(judged.iter().all(|count| *count > 100), "{judged:?}");
}

#[test]
fn the_reader_of_a_host_and_its_schema_agree() {
    let schema = compiled_schema(Doctype::Config).expect("a schema");
    for (text, fits) in [
        ("", true),
        (
            "strict_chain = true\nledger = \"x.db\"\n[defaults]\nexecutor = \"a\"\n[budget]\ncalls = 1\nwall = \"1m\"\n",
            true,
        ),
        ("[executors.a]\nkind = \"script\"\ntimeout = \"1m\"\nretries = 0\nother = [1]\n", true),
        ("strict_chain = 1\n", false),
        ("ledger = 1\n", false),
        ("ledger = \" \"\n", false),
        ("unknown = 1\n", false),
        ("[defaults]\nexecutor = \"\"\n", false),
        ("[defaults]\nmodel = \"x\"\n", false),
        ("[executors.a]\nkind = \"x\"\nretries = 101\n", false),
        ("[budget]\ncalls = 0\n", false),
        ("[budget]\ntokens = 1\nmoney = \"0.5 USD\"\nprices = \"p.toml\"\n", true),
        ("[budget]\ntokens = 0\n", false),
        ("[budget]\nmoney = \"5 EUR\"\n", false),
        ("[budget]\nmoney = 5\n", false),
        ("executors = 1\n", false),
    ] {
        let report = config::load(Path::new("quorate.toml"), "quorate.toml", &Files(text.to_owned())).report;
        let (tree, _) = crate::tree::toml::parse(text);
        assert_eq!(
            (report.has_refusals(), schema.errors(&tree.expect("a tree")).is_empty()),
            (!fits, fits),
            "{text}"
        );
    }
}

#[test]
fn every_published_schema_is_one() {
    for doctype in Doctype::ALL {
        if let Some(schema) = schema(doctype) {
            let validator = jsonschema::draft202012::new(&schema);
            assert!(validator.is_ok(), "{doctype:?}: {:?}", validator.err());
        }
    }
}
