//! What tools of `quorate mcp` take: numbers within their bounds, and nothing that the docs do not name.
#![cfg(feature = "mcp")]

use std::path::Path;

use crate::models::{COUNCIL_OF_NOTES, Model};
use crate::support;
use crate::support::mcp as client;
use client::Client;
use serde_json::{Value, json};
use support::{TestDir, assembly};

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
        ("council_review", "max_tokens", u64::MAX),
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
            assert!(said.contains("it must be a whole number"), "{tool} {key} {value}: {said}");
        }
    }
}

#[tokio::test]
async fn runs_stay_within_the_tokens_and_the_money_that_a_call_allows() {
    let model = Model::start(8);
    let place = TestDir::with("texts/draft.md", "The meeting moved to Tuesday at ten.\n");
    assembly::write(&place, "voting", &[("ana", "")], "");
    place.write("council.yaml", COUNCIL_OF_NOTES);
    place.write(
        "quorate.toml",
        format!(
            "[executors.own]\nkind = \"llm\"\nmodel = \"small\"\nbase_url = \"{}\"\nmax_tokens = 1000\n\
             price = {{ input = 0.0, output = 10.0 }}\n",
            model.address
        ),
    );
    place.write("proposal.md", "# A second region\n\nResolution: open it.\n");
    let client = Client::stdio(&place, &[]).await;
    let tools = [
        ("council_review", json!({"path": "texts/draft.md", "executor": "own"})),
        ("council_sweep", json!({"since": "all", "executor": "own"})),
        (
            "assembly_convene",
            json!({"assembly": "ASSEMBLY.md", "proposal": "proposal.md", "executor": "own"}),
        ),
    ];
    for (tool, arguments) in tools {
        let capped = |key: &str, cap: Value| {
            let mut arguments = arguments.clone();
            arguments[key] = cap;
            arguments
        };
        // A call may take 1,000 tokens besides its prompt, and a cent.
        for (key, cap) in [("max_tokens", json!(900)), ("max_money", json!("0.009 USD"))] {
            let ended = client.call(tool, capped(key, cap)).await;
            assert_eq!(ended["done"], true, "{tool} {key}: {ended}");
            assert_eq!(model.requests().len(), 0, "{tool} {key}: no call fits");
        }
        let refused = client.call_refused(tool, capped("max_money", json!("5 EUR"))).await;
        assert_eq!(refused["message"], "`max_money`: `EUR` is not USD, and Quorate converts no currencies");
    }
    let mut ample = json!({"path": "texts/draft.md", "executor": "own", "max_money": "1 USD"});
    ample["max_tokens"] = json!(1_000_000);
    assert_eq!(client.call("council_review", ample).await["result"]["verdict"], "SHIP");
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
            let shared = ["executor", "max_calls", "max_money", "max_tokens", "timeout", "wait_ms", "waitMs"]
                .contains(&&*key);
            let within = if shared { tools } else { row };
            assert!(within.contains(&format!("`{key}`")), "docs/mcp.md: {} takes `{key}`", tool.name);
        }
    }
}
