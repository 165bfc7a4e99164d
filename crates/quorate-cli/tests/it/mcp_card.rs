//! The card that `quorate mcp` gives to clients that render apps: who sees it, who decides in it, and in a real browser what a
//! person sees of it.
#![cfg(all(feature = "mcp", feature = "serve"))]

use std::path::Path;
use std::process::{Command, Stdio};

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, Implementation,
    ReadResourceRequestParams,
};
use rmcp::service::RunningService;
use rmcp::{RoleClient, ServiceError, ServiceExt as _};
use serde_json::{Value, json};

use super::serve_browser::{BROWSER, example_place, hostile_place, shots};
use super::support::{REVISED, TestDir};

const URI: &str = "ui://quorate/decision";

/// A client and the server that it started.
struct Client {
    service: RunningService<RoleClient, ClientConfig>,
    _child: tokio::process::Child,
}

impl Client {
    /// A client whose extensions are these.
    async fn of(place: &TestDir, extensions: Value) -> Client {
        let mut command = tokio::process::Command::from(place.command(&["mcp"]));
        let mut child = command.stdin(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let capabilities: ClientCapabilities =
            serde_json::from_value(json!({"extensions": extensions})).unwrap();
        let config = ClientConfig::new(capabilities, Implementation::new("test", "1"));
        let ends = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        Client { service: config.serve(ends).await.unwrap(), _child: child }
    }

    /// A client that renders apps.
    async fn with_cards(place: &TestDir) -> Client {
        let settings = json!({"mimeTypes": ["text/html;profile=mcp-app"]});
        Client::of(place, json!({"io.modelcontextprotocol/ui": settings})).await
    }

    async fn call(&self, tool: &'static str, arguments: Value) -> Result<CallToolResult, ServiceError> {
        let arguments = arguments.as_object().unwrap().clone();
        self.service.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await
    }

    /// What a tool gives, and what it gives to the card.
    async fn result(&self, tool: &'static str, arguments: Value) -> (Value, Value) {
        let result = json!(self.call(tool, arguments).await.unwrap());
        assert_ne!(result["isError"], true, "{result}");
        (result["structuredContent"].clone(), result["_meta"]["quorate/card"].clone())
    }

    async fn tools(&self) -> Vec<Value> {
        let tools = self.service.list_all_tools().await.unwrap();
        tools.into_iter().map(|tool| json!(tool)).collect()
    }

    async fn page(&self) -> Value {
        json!(self.service.read_resource(ReadResourceRequestParams::new(URI)).await.unwrap())
    }
}

#[tokio::test]
async fn clients_that_render_no_pages_see_no_card() {
    let place = TestDir::with("draft.md", REVISED);
    let other_pages = json!({"io.modelcontextprotocol/ui": {"mimeTypes": ["text/uri-list"]}});
    for extensions in [json!({}), json!({"io.modelcontextprotocol/ui": {}}), other_pages] {
        let client = Client::of(&place, extensions.clone()).await;
        for tool in client.tools().await {
            assert_ne!(tool["name"], "council_override", "{extensions}");
            assert_eq!(tool["_meta"], Value::Null, "{extensions}: {tool}");
        }
        let result = client.call("council_review", json!({"path": "draft.md"})).await.unwrap();
        assert_eq!(result.meta, None, "{extensions}");
        let refused = client.call("council_override", json!({})).await.unwrap_err().to_string();
        assert!(refused.contains("unknown tool `council_override`"), "{extensions}: {refused}");
    }
}

#[tokio::test]
async fn a_person_decides_in_the_card_and_a_model_cannot() {
    let place = TestDir::with("draft.md", REVISED);
    let client = Client::with_cards(&place).await;
    for tool in client.tools().await {
        let expected = match tool["name"].as_str().unwrap() {
            "council_review" | "assembly_convene" => json!({"ui": {"resourceUri": URI}}),
            "council_override" => json!({"ui": {"visibility": ["app"]}}),
            _ => Value::Null,
        };
        assert_eq!(tool["_meta"], expected, "{}", tool["name"]);
    }
    let page = client.page().await["contents"][0].clone();
    assert_eq!(page["mimeType"], "text/html;profile=mcp-app");
    let policy = page["_meta"]["ui"]["csp"].as_object().unwrap();
    assert!(policy.len() == 4 && policy.values().all(|origins| origins == &json!([])), "{policy:?}");

    let (started, _) = client.result("council_review", json!({"path": "draft.md", "wait_ms": 0})).await;
    let (first, card) = client.result("job_poll", json!({"job": started["job"]})).await;
    let (run, key) = (&first["result"]["run"], &card["key"]);
    let shown = place.run(&["show", run.as_str().unwrap()]).assert_code(0).stdout;
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains(card["reason"].as_str().unwrap()), "{card}: {shown}");
    let (second, other) = client.result("council_review", json!({"path": "draft.md"})).await;
    assert_ne!(*key, other["key"]);
    let decision = |change: Value| {
        let mut given =
            json!({"run": run, "verdict": "SHIP", "reason": "legal agreed", "by": "Ada", "key": key});
        given.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        given
    };
    for (change, message) in [
        (json!({"key": ""}), "`key` is not the one of the run's card"),
        (json!({"key": other["key"]}), "`key` is not the one of the run's card"),
        (json!({"run": second["result"]["run"]}), "`key` is not the one of the run's card"),
        (json!({"run": "latest"}), "`key` is not the one of the run's card"),
        (json!({"verdict": "INCOMPLETE"}), "`verdict` is INCOMPLETE"),
        (json!({"by": " "}), "`by` is empty"),
        (json!({"by": "A\nda"}), "`by` is not a name"),
        (json!({"reason": " "}), "an override needs a reason"),
    ] {
        let refused = json!(client.call("council_override", decision(change.clone())).await.unwrap());
        assert_eq!(refused["isError"], true, "{change}: {refused}");
        let said = refused["_meta"]["quorate/error"]["message"].as_str().unwrap();
        assert!(said.contains(message), "{change}: {said}");
    }
    let show = || place.run(&["show", run.as_str().unwrap(), "--format", "json"]).assert_code(0).json();
    assert_eq!(show()["override"], Value::Null);
    let (decided, _) = client.result("council_override", decision(json!({}))).await;
    assert_eq!(decided["override"]["by"], "Ada (typed in test)");
    assert_eq!(decided["override"]["verdict"], "SHIP");
    assert_eq!(decided["verdict"], "REVISE");
    assert_eq!(show()["override"], decided["override"]);
}

#[tokio::test]
async fn a_person_reads_and_decides_in_a_browser() {
    let Ok(folder) = std::env::var(BROWSER) else {
        eprintln!("SKIPPED: Chromium (scripts/services install browser prints {BROWSER})");
        return;
    };
    let place = TestDir::with("draft.md", REVISED);
    let client = Client::with_cards(&place).await;
    let review = client.call("council_review", json!({"path": "draft.md"})).await.unwrap();
    let (run, key) = (
        review.structured_content.as_ref().unwrap()["result"]["run"].clone(),
        review.meta.as_ref().unwrap().0["quorate/card"]["key"].clone(),
    );
    let given = json!({"run": run, "verdict": "SHIP", "reason": "legal agreed", "by": "Ada", "key": key});
    let decided = client.call("council_override", given.clone()).await.unwrap();
    let board = example_place("release-board");
    let vote = json!({"assembly": "assemblies/release-board", "proposal": "proposals/partner-access.md", "class": "release"});
    let vote = Client::with_cards(&board).await.call("assembly_convene", vote).await.unwrap();
    let (hostile, _) = hostile_place();
    let name = json!({"path": "<img src=x onerror=alert(1)>.md"});
    let hostile = Client::with_cards(&hostile).await.call("council_review", name).await.unwrap();
    let waiting =
        json!({"structuredContent": {"job": "j1", "done": false, "progress": {"asked": 1, "ended": 0}}});
    let failed =
        json!({"isError": true, "content": [{"type": "text", "text": "quorate:usage: no <b>file</b>"}]});
    let told = json!({
        "page": client.page().await["contents"][0]["text"],
        "results": [
            {"name": "review", "result": waiting},
            {"name": "vote", "result": vote},
            {"name": "hostile", "result": hostile},
            {"name": "failed", "result": failed},
        ],
        "answers": {"job_poll": review, "council_override": decided},
        "shots": shots(),
    });
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/support/card.mjs");
    let mut command = Command::new("node");
    // An argument of a program has at most 128 kB.
    place.write("told.json", told.to_string());
    command.arg(script).arg(folder).arg(place.path("told.json")).stderr(Stdio::inherit());
    let output = command.output().expect("Node runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let text = String::from_utf8(output.stdout).unwrap();
    let seen: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(seen.len(), 4);
    for seen in &seen {
        let name = &seen["name"];
        assert_eq!(seen["events"], json!([]), "{name}: dialogs, errors, breaches of the policy");
        assert_eq!(seen["requests"], json!([]), "{name}: requests");
        assert_eq!(seen["axe"], json!([]), "{name}");
        assert_eq!(seen["foreign"], 0, "{name}: markup of a text");
        assert_eq!(seen["overflow"], 0, "{name}: wider than its frame");
    }
    let text = |at: usize| seen[at]["text"].as_str().unwrap();
    assert!(text(0).starts_with("◆ REVISE\n\n1 of 4 reviewers objects (evidence). Fixable."), "{}", text(0));
    for part in ["What to change", "line 1 · blocks (evidence)", "No model was asked", "Decide otherwise"] {
        assert!(text(0).contains(part), "{part}: {}", text(0));
    }
    assert_eq!(seen[0]["early"], 0, "a decision without a reason");
    assert_eq!(seen[0]["person"], "● SHIP decided Ada (typed in test): legal agreed");
    assert_eq!(
        seen[0]["calls"],
        json!([
            {"name": "job_poll", "arguments": {"job": "j1", "wait_ms": 20_000}},
            {"name": "council_override", "arguments": given},
        ])
    );
    assert!(text(1).starts_with("■ FAIL\n\nsecurity votes no (rule security-veto)."), "{}", text(1));
    assert!(text(1).contains("no (security)") && !text(1).contains("Decide otherwise"), "{}", text(1));
    assert!(text(2).contains("onload=alert(1)"), "{}", text(2));
    assert_eq!(text(3), "▲ NO RESULT\n\nquorate:usage: no <b>file</b>");
}
