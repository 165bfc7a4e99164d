//! The official conformance runner against this server with the tools that the runner's scenarios of tasks call. What
//! `scripts/mcp-conformance/unsupported.yaml` names needs tools, prompts or features that this server does not have.
//!
//! Needs the folder that `scripts/services install mcp-conformance` prints, in `QUORATE_TEST_MCP_CONFORMANCE`; without it
//! the test prints SKIPPED.

#![expect(clippy::disallowed_methods, reason = "the test finds and starts the runner")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorate::Quorate;
use quorate::http::Deadlines;
use quorate::jobs::Residue;
use rmcp::model::{
    self, CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientCapabilities,
    ContentBlock, GetTaskParams, GetTaskResult, InputRequest, InputRequests, InputRequiredResult, JsonObject,
    ListPromptsResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerConfig, UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::task_manager::TaskContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

use crate::conversations::Caller;
use crate::failure::Failure;
use crate::http::{McpHttpOptions, McpListener};
use crate::tool::{Call, CallFuture, CallResult, Effect, ToolEntry};
use crate::{Connection, McpServerOptions, ServerState, tasks};

const RUNNER: &str = "QUORATE_TEST_MCP_CONFORMANCE";

#[tokio::test(flavor = "multi_thread")]
async fn the_official_runner_passes() {
    let Ok(runner) = std::env::var(RUNNER) else {
        eprintln!(
            "SKIPPED: the MCP conformance runner (scripts/services install mcp-conformance prints {RUNNER})"
        );
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let quorate = Quorate::builder().workspace(place.path()).build().unwrap();
    let (mut state, _) = ServerState::open(&quorate, &McpServerOptions::default()).unwrap();
    Arc::get_mut(&mut state).unwrap().tools.extend(fixtures());
    let options = McpHttpOptions {
        address: "127.0.0.1:0".parse().unwrap(),
        token: None,
        origins: Vec::new(),
        deadlines: Deadlines::default(),
    };
    let listener = McpListener::open(options).await.unwrap();
    let url = format!("http://{}/mcp", listener.address());
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/mcp-conformance");
    let modules = Path::new(&runner).join("node_modules");
    let node = format!("node-linux-{}/bin/node", if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" });
    let mut command = tokio::process::Command::new(modules.join(node));
    command.arg(modules.join(".bin/conformance")).args(["server", "--suite", "all", "--url", &url]);
    command.arg("--expected-failures").arg(scripts.join("unsupported.yaml")).current_dir(place.path());
    let output = tokio::select! {
        () = listener.serve_with(Fixture(Connection(state.clone()))) => unreachable!("it serves"),
        output = command.kill_on_drop(true).output() => output.expect("Node runs"),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let passed = |scenario: &&str| said.contains(&format!("✓ {scenario}:"));
    let of_tasks = [
        "tasks-lifecycle",
        "tasks-capability-negotiation",
        "tasks-wire-fields",
        "tasks-request-state-removal",
        "tasks-mrtr-input",
        "tasks-request-headers",
        "tasks-dispatch-and-envelope",
        "tasks-status-notifications",
        "tasks-required-task-error",
        "tasks-mrtr-composition",
    ];
    assert_eq!(of_tasks.iter().filter(|scenario| !passed(scenario)).collect::<Vec<_>>(), Vec::<&&str>::new());
    state.close();
}

/// The tools that the runner calls.
fn fixtures() -> Vec<ToolEntry> {
    let fixture = |name: &'static str, is_long: bool, call: Call| {
        let about = model::Tool::new(name, "A tool of the runner.", Arc::new(any()));
        ToolEntry { name, effect: Effect::Adds, card: crate::card::CardUse::None, is_long, about, call }
    };
    vec![
        fixture("greet", false, greet),
        fixture("slow_compute", true, slow_compute),
        fixture("failing_job", true, failing_job),
        fixture("protocol_error_job", true, protocol_error_job),
        fixture("confirm_delete", true, confirm_delete),
        fixture("multi_input", true, multi_input),
        fixture("test_tool_with_task", true, greet_later),
        fixture("test_missing_capability", false, needs_sampling),
        fixture("test_streaming_elicitation", false, greet),
        fixture("test_logging_tool", false, greet),
    ]
}

fn any() -> JsonObject {
    json!({"type": "object"}).as_object().unwrap().clone()
}

fn text(text: String) -> CallResult {
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]))
}

fn greet<'a>(_: &'a Arc<ServerState>, arguments: JsonObject, _: &'a Caller) -> CallFuture<'a> {
    Box::pin(async move {
        text(format!("Hello, {}!", arguments.get("name").and_then(Value::as_str).unwrap_or_default()))
    })
}

fn greet_later<'a>(
    server: &'a Arc<ServerState>,
    arguments: JsonObject,
    caller: &'a Caller,
) -> CallFuture<'a> {
    Box::pin(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        greet(server, arguments, caller).await
    })
}

/// A job of the server, as the long tools start it.
fn slow_compute<'a>(
    server: &'a Arc<ServerState>,
    arguments: JsonObject,
    caller: &'a Caller,
) -> CallFuture<'a> {
    let seconds = arguments.get("seconds").and_then(Value::as_u64).unwrap_or_default();
    Box::pin(async move {
        let work = |_| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok::<_, Failure>(json!(seconds))
        };
        match server.jobs.start(tasks::MAX_TASK_TIME, caller, Residue::Nothing, work).await {
            Ok(status) => text(format!("{:?}", status.result)),
            Err(failure) => Ok(failure.result(&server.quorate)),
        }
    })
}

fn failing_job<'a>(_: &'a Arc<ServerState>, _: JsonObject, caller: &'a Caller) -> CallFuture<'a> {
    Box::pin(async move {
        if !matches!(caller, Caller::Task(_)) {
            let required = ClientCapabilities::builder().enable_tasks().build();
            return Err(ErrorData::missing_required_client_capability(required));
        }
        Ok(CallToolResult::error(vec![ContentBlock::text("it fails")]))
    })
}

fn protocol_error_job<'a>(_: &'a Arc<ServerState>, _: JsonObject, _: &'a Caller) -> CallFuture<'a> {
    Box::pin(async { Err(ErrorData::internal_error("it cannot be done", None)) })
}

fn needs_sampling<'a>(_: &'a Arc<ServerState>, _: JsonObject, _: &'a Caller) -> CallFuture<'a> {
    let required = serde_json::from_value(json!({"sampling": {}})).unwrap();
    Box::pin(async { Err(ErrorData::missing_required_client_capability(required)) })
}

fn question() -> InputRequest {
    let schema = json!({"type": "object", "properties": {"confirm": {"type": "boolean"}}});
    let parameters = json!({"mode": "form", "message": "Delete it?", "requestedSchema": schema});
    serde_json::from_value(json!({"method": "elicitation/create", "params": parameters})).unwrap()
}

fn task(caller: &Caller) -> &TaskContext {
    let Caller::Task(task) = caller else { panic!("the runner declares tasks") };
    task
}

fn confirm_delete<'a>(_: &'a Arc<ServerState>, _: JsonObject, caller: &'a Caller) -> CallFuture<'a> {
    Box::pin(async move {
        match task(caller).request_input("confirm", question()).await {
            Ok(answer) => text(answer.to_string()),
            Err(_) => Ok(CallToolResult::error(vec![ContentBlock::text("it was cancelled")])),
        }
    })
}

fn multi_input<'a>(_: &'a Arc<ServerState>, _: JsonObject, caller: &'a Caller) -> CallFuture<'a> {
    Box::pin(async move {
        let ask = |key: &'static str| task(caller).request_input(key, question());
        let answers = tokio::join!(ask("first"), ask("second"));
        text(format!("{answers:?}"))
    })
}

/// The server, with a tool that asks for a name before its task starts.
#[derive(Clone)]
struct Fixture(Connection);

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        self.0.get_info()
    }

    fn get_tool(&self, name: &str) -> Option<model::Tool> {
        self.0.get_tool(name)
    }

    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name == "test_tool_with_task" {
            let Some(answers) = request.input_responses.take() else {
                let asks = InputRequests::from([("user_name".to_owned(), question())]);
                return Ok(InputRequiredResult::from_input_requests(asks).into());
            };
            request.arguments = answers["user_name"]["content"].as_object().cloned();
        }
        self.0.call_tool(request, context).await
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.0.list_tools(request, context).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.0.list_resources(request, context).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.0.read_resource(request, context).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.0.list_prompts(request, context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.0.get_task(request, context).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.update_task(request, context).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.cancel_task(request, context).await
    }
}
