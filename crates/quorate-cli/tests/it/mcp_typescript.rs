//! The server and the official client of the TypeScript SDK, which holds what tools give against their schemas.
//!
//! Needs the SDK that `scripts/services install mcp-sdk` installs, in the folder that `QUORATE_TEST_MCP_SDK` names, and
//! Node; without them it says so and tests nothing.
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

/// What the client makes of calls, in their order; `None` where there is no SDK.
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
        (1, json!(true), ["quorate:artifact_missing", "there is no file"]),
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
    TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n")
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
