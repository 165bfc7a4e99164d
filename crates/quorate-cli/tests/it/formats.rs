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
                    "invocations": {"type": "array", "items": {"type": "object", "required": ["executionSuccessful"], "properties": {
                        "executionSuccessful": {"type": "boolean"},
                        "toolExecutionNotifications": {"type": "array", "items": {
                            "type": "object", "required": ["message"],
                            "properties": {
                                "message": {"$ref": "#/$defs/message"},
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "descriptor": {"type": "object", "properties": {"id": {"type": "string"}}, "additionalProperties": false}
                            }
                        }}
                    }}},
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
fn every_format_says_why_a_member_failed() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    place.write(
        "quorate.toml",
        "[defaults]\nexecutor = \"own\"\n[executors.own]\nkind = \"agent-cli\"\ncommand = \"false\"\nretries = 1\n",
    );
    let reason = "`false` ended with exit code 1";
    let review = |format: &str| {
        let output = place.run(&["review", "draft.md", "--trust", "--format", format]).assert_code(3);
        assert!(output.stdout.contains(reason), "{format}: {}", output.stdout);
        output
    };
    let json = review("json").json();
    let failure = json!({"kind": "failed", "message": reason, "retries": 1});
    for member in 0..4 {
        assert_eq!(json["deliberators"][member]["round1"]["failure"], failure);
    }
    assert!(json["adjudicator"].get("failure").is_none(), "it was not asked");
    let run = json["run"].as_str().unwrap();
    let shown = place.run(&["show", run, "--format", "json"]).assert_code(0).json();
    assert_eq!(shown["deliberators"], json["deliberators"]);
    let sarif = review("sarif").json();
    validates(&sarif);
    let notifications = sarif["runs"][0]["invocations"][0]["toolExecutionNotifications"].as_array().unwrap();
    assert_eq!(notifications.len(), 4);
    assert_eq!(notifications[0]["properties"]["failure"], failure);
    assert_eq!(notifications[0]["message"]["text"], format!("skeptic (round 1): failed: {reason}"));
    assert!(review("github").stdout.contains("skeptic (round 1): failed"));
    let gitlab = review("gitlab").json();
    let named = |member: &str| {
        let entries = gitlab.as_array().unwrap().iter();
        entries.filter(|entry| entry["description"].as_str().unwrap().starts_with(member)).count()
    };
    for member in ["skeptic", "voice_identity", "evidence", "strategy"] {
        assert_eq!(named(member), 1, "{gitlab:#}");
    }
    assert_eq!(gitlab[1]["failure"], failure);
}

#[test]
fn paths_are_from_the_root_of_the_repository() {
    let place = council("docs/blog/x.md");
    let uri = |sarif: &Value| {
        sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].clone()
    };
    let sarif = |below: &str, name: &str| {
        uri(&place.run_in(below, &["review", name, "--format", "sarif"]).assert_code(1).json())
    };
    assert_eq!(sarif("docs/blog", "x.md"), "x.md", "without git the path is as given");
    // A worktree has a file `.git`.
    place.write(".git", "gitdir: elsewhere\n");
    let absolute = place.path("docs/blog/x.md").to_str().unwrap().to_owned();
    for (below, name) in
        [("docs/blog", "x.md"), ("docs", "./blog/x.md"), ("docs/blog", "../blog/x.md"), ("docs", &*absolute)]
    {
        assert_eq!(sarif(below, name), "docs/blog/x.md", "{below} {name}");
        let github = place.run_in(below, &["review", name, "--format", "github"]).assert_code(1).stdout;
        assert!(github.lines().all(|line| line.contains("file=docs/blog/x.md")), "{github}");
        let gitlab = place.run_in(below, &["review", name, "--format", "gitlab"]).assert_code(1).json();
        let is_from_root = |entry: &Value| entry["location"]["path"] == "docs/blog/x.md";
        assert!(gitlab.as_array().unwrap().iter().all(is_from_root), "{gitlab:#}");
    }
    let several = place.run_in("docs/blog", &["review", "x.md", "x.md", "--format", "sarif"]).json();
    assert_eq!(uri(&several), "docs/blog/x.md");
    place.write("docs/council.yaml", "deliberators: []\nnonsense: 1\n");
    let checked = place.run_in("docs", &["check", "council.yaml", "--format", "sarif"]).assert_code(1).json();
    assert_eq!(uri(&checked), "docs/council.yaml");
    let checked = place.run_in("docs", &["check", "council.yaml", "--format", "github"]).assert_code(1);
    checked.assert_stdout_contains("file=docs/council.yaml");
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
