//! SARIF and GitHub annotations of the real binary, against what their readers demand.

use crate::support;
use serde_json::{Value, json};
use support::TestDir;
use support::council::all_ship_except;

/// What SARIF 2.1.0 (OASIS, §3.13 and on) requires of the objects that we write.
fn sarif_schema() -> Value {
    let count = json!({"type": "integer", "minimum": 1});
    json!({
        "type": "object",
        "required": ["version", "runs"],
        "properties": {
            "version": {"const": "2.1.0"},
            "$schema": {"type": "string", "format": "uri"},
            "runs": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/run"}}
        },
        "additionalProperties": false,
        "$defs": {
            "message": {
                "type": "object", "anyOf": [{"required": ["text"]}, {"required": ["id"]}],
                "properties": {"text": {"type": "string"}, "markdown": {"type": "string"}}
            },
            "run": {
                "type": "object",
                "required": ["tool"],
                "properties": {
                    "tool": {
                        "type": "object", "required": ["driver"],
                        "properties": {"driver": {
                            "type": "object", "required": ["name"],
                            "properties": {
                                "name": {"type": "string", "minLength": 1},
                                "version": {"type": "string"},
                                "semanticVersion": {"type": "string"},
                                "informationUri": {"type": "string", "format": "uri"},
                                "rules": {"type": "array", "uniqueItems": true, "items": {
                                    "type": "object", "required": ["id"],
                                    "properties": {"id": {"type": "string"}, "shortDescription": {"$ref": "#/$defs/message"}, "help": {"$ref": "#/$defs/message"}}
                                }}
                            }
                        }}
                    },
                    "invocations": {"type": "array", "items": {"type": "object", "required": ["executionSuccessful"], "properties": {"executionSuccessful": {"type": "boolean"}}}},
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "results": {"type": "array", "items": {"$ref": "#/$defs/result"}}
                }
            },
            "result": {
                "type": "object", "required": ["message"],
                "properties": {
                    "ruleId": {"type": "string"},
                    "ruleIndex": {"type": "integer", "minimum": -1},
                    "level": {"enum": ["none", "note", "warning", "error"]},
                    "message": {"$ref": "#/$defs/message"},
                    "locations": {"type": "array", "items": {
                        "type": "object",
                        "properties": {"physicalLocation": {
                            "type": "object", "anyOf": [{"required": ["artifactLocation"]}, {"required": ["address"]}],
                            "properties": {
                                "artifactLocation": {"type": "object", "properties": {"uri": {"type": "string", "pattern": "^[^ <>\"{}|\\\\^`\\u0000-\\u001f\\u007f-\\uffff]*$"}}},
                                "region": {
                                    "type": "object",
                                    "properties": {"startLine": count, "startColumn": count, "endLine": count, "endColumn": count, "snippet": {"type": "object", "properties": {"text": {"type": "string"}}}}
                                }
                            }
                        }}
                    }}
                }
            }
        }
    })
}

#[track_caller]
fn validates(sarif: &Value) {
    let schema = sarif_schema();
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).expect("a schema");
    let errors: Vec<String> =
        validator.iter_errors(sarif).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:?}");
    for run in sarif["runs"].as_array().expect("runs") {
        let rules = &run["tool"]["driver"]["rules"];
        for result in run["results"].as_array().expect("results") {
            let index = result["ruleIndex"].as_u64().expect("an index");
            assert_eq!(rules[usize::try_from(index).expect("small")]["id"], result["ruleId"]);
        }
    }
}

const QUOTES: &str = "line one\nthe — “würdig” 🦀 claim, 100%: see::this\nlast";

fn council(name: &str) -> TestDir {
    let place = TestDir::scripted(&all_ship_except(json!({
        "r2/skeptic": {"would_block": true, "irreducible": false, "findings": [
            {"quote": "“würdig” 🦀 claim", "issue": "Says who?\n::error::no, 100% made up", "fix": "Cite.\r\nOr cut, really"},
            {"quote": "is nowhere", "issue": "Ungrounded."},
            {"quote": "one\nthe", "issue": "Over two lines."},
        ]},
        "adjudicate": {"verdict": "REVISE", "reasoning": "Revise.", "revision_brief": "a\n::warning file=x::b"},
    })));
    place.write(name, QUOTES);
    place
}

#[test]
fn sarif_is_what_its_readers_demand() {
    for name in ["draft.md", "drafts/ein entwurf, 100% [neu] ü.md"] {
        let place = council(name);
        let sarif = place.run(&["review", name, "--format", "sarif"]).assert_code(1).json();
        validates(&sarif);
        let results = sarif["runs"][0]["results"].as_array().unwrap();
        assert_eq!(results.len(), 3);
        let region = |at: usize| &results[at]["locations"][0]["physicalLocation"]["region"];
        let over_two = results
            .iter()
            .position(|one| one["message"]["text"].as_str().unwrap().contains("Over two lines"))
            .unwrap();
        assert_eq!((&region(over_two)["startLine"], &region(over_two)["endLine"]), (&json!(1), &json!(2)));
    }
    let place = TestDir::new();
    for (name, code) in [("pricing-promise.md", 2), ("incident-report.md", 0)] {
        let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
        place.write(name, std::fs::read(example).unwrap());
        validates(&place.run(&["review", name, "--format", "sarif"]).assert_code(code).json());
    }
    validates(&place.run_with_stdin(&["review", "-", "--format", "sarif"], b"It is never late.").json());
}

#[test]
fn refusals_are_sarif_too() {
    let place = TestDir::new();
    validates(&place.run(&["review", "nothing.md", "--format", "sarif"]).assert_code(4).json());
    place.write("council.yaml", "deliberators: []\nnonsense: 1\n");
    place.write("draft.md", "text");
    let sarif = place.run(&["review", "draft.md", "--format", "sarif"]).assert_code(5).json();
    validates(&sarif);
    assert_eq!(
        sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
        "council.yaml"
    );
}

#[test]
fn nothing_in_a_text_makes_another_annotation() {
    let place = council("a,b:c.md");
    let text = place.run(&["review", "a,b:c.md", "--format", "github"]).assert_code(1).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.iter().filter(|line| line.starts_with("::")).count(), lines.len(), "{text}");
    assert!(
        !lines.iter().any(|line| line.starts_with("::error::no") || line.starts_with("::warning file=x")),
        "{text}"
    );
    let claim = lines.iter().find(|line| line.contains("Says who?")).unwrap();
    assert!(claim.contains("file=a%2Cb%3Ac.md,line=2,col=7,"), "{claim}");
    assert!(claim.contains("%0A::error::no, 100%25 made up") && claim.contains("%0D%0A"), "{claim}");
    let verdict = lines[0];
    assert!(verdict.contains("REVISE") && verdict.contains("%0A::warning file=x::b"), "{verdict}");
    assert!(text.lines().count() >= 4);
}

#[test]
fn markdown_formats_nothing_that_is_foreign() {
    let place = council("draft.md");
    place.answers(&all_ship_except(json!({
        "r2/skeptic": {"would_block": true, "irreducible": false, "findings": [
            {"quote": "last", "issue": "<img src=x onerror=alert(1)> [click](javascript:x) | `a` @everyone", "fix": "# Heading\n\n```\nfence"},
        ]},
    })));
    let text = place.run(&["review", "draft.md", "--format", "markdown"]).assert_code(0).stdout;
    assert!(!text.contains("<img") && !text.contains("[click](") && !text.contains("@everyone"), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("# Heading")), "{text}");
}
