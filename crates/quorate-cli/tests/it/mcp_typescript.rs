//! The server and the official client of the TypeScript SDK, which validates tool results against their schemas.
//!
//! Needs the SDK that `scripts/services install mcp-sdk` installs, in the folder that `QUORATE_TEST_MCP_SDK` names, and
//! Node; without them the test prints SKIPPED.
#![cfg(feature = "mcp")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support;
use crate::support::mcp as client;
use client::Http;
use serde_json::{Value, json};
use support::TestDir;

const SDK: &str = "QUORATE_TEST_MCP_SDK";

/// The client's results of the calls, in order; `None` without the SDK.
fn called(place: &TestDir, server: &[&str], calls: &[Value]) -> Option<Vec<Value>> {
    let Ok(sdk) = std::env::var(SDK) else {
        eprintln!("SKIPPED: the TypeScript SDK (scripts/services install mcp-sdk prints {SDK})");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/support/mcp-client.mjs");
    // The client gives its surroundings on to the server that it starts: these are the place's.
    let own = place.command(&[]);
    let mut command = Command::new("node");
    command.arg(script).arg(sdk).args(server).current_dir(place.root());
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Node runs");
    let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn calls() -> [Value; 5] {
    [
        json!(["council_review", {"path": "draft.md"}]),
        json!(["council_review", {"path": "no.md"}]),
        json!(["run_show", {"run": "unknown"}]),
        json!(["council_review", {"pth": "draft.md"}]),
        json!(["no_such_tool", {}]),
    ]
}

/// Whether every call came to what it has to, with a text that can be read.
fn check(said: &[Value]) {
    assert_eq!(said.len(), calls().len(), "{said:#?}");
    assert_eq!(said[0]["isError"], false, "{said:#?}");
    for (at, kind, words) in [
        (1, json!(true), ["quorate:artifact_missing", "does not exist"]),
        (2, json!(true), ["quorate:run_unknown", "unknown"]),
    ] {
        assert_eq!(said[at]["isError"], kind, "{said:#?}");
        words.iter().for_each(|word| assert!(said[at]["text"].as_str().unwrap().contains(word), "{said:#?}"));
    }
    for (at, words) in [(3, ["`pth`", "tools/list"]), (4, ["no_such_tool", "council_review"])] {
        assert_eq!(said[at]["code"], -32602, "{said:#?}");
        words.iter().for_each(|word| assert!(said[at]["text"].as_str().unwrap().contains(word), "{said:#?}"));
    }
}

fn draft() -> TestDir {
    TestDir::with("draft.md", support::REVISED)
}

#[test]
fn errors_reach_it_over_standard_input_and_output() {
    let binary = env!("CARGO_BIN_EXE_quorate");
    if let Some(said) = called(&draft(), &["stdio", binary, "mcp"], &calls()) {
        check(&said);
    }
}

#[test]
fn errors_reach_it_over_http() {
    let place = draft();
    let server = Http::start(&place, &[], None);
    if let Some(said) = called(&place, &["http", &server.url], &calls()) {
        check(&said);
    }
}

#[test]
fn resources_and_prompts_are_what_the_client_takes() {
    let place = TestDir::with("draft.md", support::REVISED);
    place.run(&["review", "draft.md"]);
    let run = place.runs()[0]["run"].as_str().unwrap().to_owned();
    let uri = |what: &str| json!(["resources/read", {"uri": format!("quorate://{what}")}]);
    let calls = [
        json!(["resources/list", {}]),
        json!(["resources/templates/list", {}]),
        uri(&format!("runs/{run}")),
        uri("runs/latest/brief"),
        uri("schemas/review"),
        json!(["prompts/list", {}]),
        json!(["prompts/get", {"name": "explain-run", "arguments": {"run": "latest"}}]),
        json!(["prompts/get", {"name": "council-review", "arguments": {"path": "draft.md"}}]),
        // What is refused, each with a reason.
        uri("runs/unknown"),
        uri("runs/"),
        uri("schemas/none"),
        json!(["resources/read", {"uri": "file:///etc/passwd"}]),
        json!(["prompts/get", {"name": "explain-run", "arguments": {}}]),
        json!(["prompts/get", {"name": "council-audit", "arguments": {"run": "latest"}}]),
        json!(["prompts/get", {"name": "none"}]),
    ];
    let server = ["stdio", support::QUORATE, "mcp"];
    let Some(said) = called(&place, &server, &calls) else { return };
    assert_eq!(said.len(), calls.len(), "{said:#?}");
    let listed = said[0]["resources"].as_array().unwrap();
    let of_run = format!("quorate://runs/{run}");
    assert_eq!((&listed[0]["uri"], &listed[0]["title"]), (&json!(of_run), &json!("REVISE: draft.md")));
    assert!(listed.iter().any(|one| one["uri"] == "quorate://schemas/deliberator"));
    assert_eq!(said[1]["resourceTemplates"].as_array().unwrap().len(), 3);
    let text = |at: usize| said[at]["contents"][0]["text"].as_str().unwrap();
    let shown = place.run(&["show", &run, "--format", "json"]).json();
    assert_eq!(serde_json::from_str::<Value>(text(2)).unwrap(), shown);
    assert!(text(3).starts_with("REVISE draft.md\n"), "{}", text(3));
    let schema = place.run(&["schema", "review"]).assert_code(0).json();
    assert_eq!(serde_json::from_str::<Value>(text(4)).unwrap(), schema);
    let names: Vec<&Value> = said[5]["prompts"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["council-review", "council-audit", "explain-run"]);
    let enclosed = &said[6]["messages"][1]["content"]["resource"];
    assert_eq!(serde_json::from_str::<Value>(enclosed["text"].as_str().unwrap()).unwrap(), shown);
    assert!(said[7]["messages"][0]["content"]["text"].as_str().unwrap().contains("\"draft.md\""));
    for (at, code, words) in [
        (8, -32002, "unknown"),
        (9, -32002, "the resources are quorate://runs/{run}"),
        (10, -32002, "unknown resource"),
        (11, -32002, "unknown resource"),
        (12, -32602, "takes `run`"),
        (13, -32602, "takes no `run`"),
        (14, -32602, "the prompts are"),
    ] {
        assert_eq!(said[at]["code"], code, "{}", said[at]);
        assert!(said[at]["text"].as_str().unwrap().contains(words), "{}", said[at]);
    }
    // One that only reads offers no prompt that has something done.
    let Some(said) =
        called(&place, &[&server[..], &["--read-only"]].concat(), &[json!(["prompts/list", {}])])
    else {
        return;
    };
    assert_eq!(said[0]["prompts"].as_array().unwrap().len(), 2);
}

#[test]
fn the_inspector_shows_what_there_is() {
    let Ok(sdk) = std::env::var(SDK) else {
        eprintln!("SKIPPED: the Inspector (scripts/services install mcp-sdk prints {SDK})");
        return;
    };
    let place = TestDir::with("draft.md", support::REVISED);
    place.run(&["review", "draft.md"]);
    let inspect = |method: &[&str]| -> Value {
        let own = place.command(&[]);
        let mut command = Command::new(Path::new(&sdk).join("node_modules/.bin/mcp-inspector"));
        command.args(["--cli", support::QUORATE, "mcp", "--method"]).args(method).current_dir(place.root());
        command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = command.output().expect("Node runs");
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    assert_eq!(inspect(&["tools/list"])["tools"].as_array().map(Vec::len), Some(9));
    let shown = inspect(&["tools/call", "--tool-name", "run_show", "--tool-arg", "run=latest"]);
    assert_eq!(shown["structuredContent"]["verdict"], "REVISE");
    let brief = inspect(&["resources/read", "--uri", "quorate://runs/latest/brief"]);
    assert!(brief["contents"][0]["text"].as_str().unwrap().starts_with("REVISE draft.md"), "{brief}");
    let prompt = inspect(&["prompts/get", "--prompt-name", "explain-run", "--prompt-args", "run=latest"]);
    assert_eq!(prompt["messages"].as_array().map(Vec::len), Some(2));
}
