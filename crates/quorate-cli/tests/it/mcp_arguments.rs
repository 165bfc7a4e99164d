//! What tools of `quorate mcp` take: numbers within their bounds, and nothing that the docs do not name.
#![cfg(feature = "mcp")]

use std::path::Path;

use crate::support;
use crate::support::mcp as client;
use client::Client;
use serde_json::{Value, json};
use support::TestDir;

/// A place with a conversation, so that every tool is offered.
fn swarm() -> TestDir {
    TestDir::with(
        "swarm.yaml",
        "schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: review-swarm\n\
         participants: [{id: reviewer, executor: rubric}]\nsubstrate: {kind: file, path: talk.md}\n\
         dispatcher: {kind: mention}\n",
    )
}

#[tokio::test]
async fn a_number_out_of_bounds_is_refused_with_the_bounds() {
    let place = swarm();
    let client = Client::stdio(&place, &["--manifest", "swarm.yaml"]).await;
    let conversation = |key: &str, value: &Value| json!({"conversationId": "review-swarm", key: value});
    for (tool, key, most) in [
        ("council_review", "wait_ms", 50_000),
        ("council_review", "tier", 3),
        ("council_review", "max_calls", u64::from(u32::MAX)),
        ("council_sweep", "jobs", 64),
        ("assembly_convene", "rounds", 100),
        ("job_poll", "wait_ms", 50_000),
        ("ledger_verify", "since", u64::MAX),
        ("get_messages", "limit", 500),
        ("get_messages", "waitMs", 50_000),
        ("run_operator", "waitMs", 50_000),
    ] {
        let above = most.checked_add(1).map_or_else(|| json!(1e300), Value::from);
        for value in [above, json!(-1), json!(1.5), json!(1e300), json!(-1e300)] {
            let arguments = match tool {
                "get_messages" | "run_operator" => conversation(key, &value),
                _ => json!({key: value}),
            };
            let refused = client.call_malformed(tool, arguments).await;
            let said = refused["message"].as_str().unwrap();
            assert!(said.contains(&format!("`{key}`")), "{tool} {key} {value}: {said}");
            assert!(said.contains("it has to be a whole number"), "{tool} {key} {value}: {said}");
        }
    }
}

#[tokio::test]
async fn the_docs_name_every_parameter_of_every_tool() {
    let docs =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/mcp.md")).unwrap();
    let (_, tools) = docs.split_once("## Tools").unwrap();
    let (tools, _) = tools.split_once("\n## Conversations").unwrap();
    let place = swarm();
    let client = Client::stdio(&place, &["--manifest", "swarm.yaml"]).await;
    for tool in client.service.list_all_tools().await.unwrap() {
        let row = tools.lines().find(|row| row.starts_with('|') && row.contains(&format!("`{}`", tool.name)));
        let row = row.unwrap_or_else(|| panic!("docs/mcp.md has no row for {}", tool.name));
        let keys: Vec<String> =
            tool.input_schema["properties"].as_object().unwrap().keys().cloned().collect();
        for key in keys {
            // Arguments that several tools share are documented below the table.
            let shared = ["executor", "max_calls", "timeout", "wait_ms", "waitMs"].contains(&&*key);
            let within = if shared { tools } else { row };
            assert!(within.contains(&format!("`{key}`")), "docs/mcp.md: {} takes `{key}`", tool.name);
        }
    }
}
