//! An MCP client for tests, and the server that it speaks to.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses some of it")]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStderr, Stdio};
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResult, ErrorCode};
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceError, ServiceExt as _};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::TestDir;

/// Nothing that is tested takes so long.
const HANG_LIMIT: Duration = Duration::from_secs(60);

/// A client, and the server that it has started.
pub struct Client {
    pub service: RunningService<RoleClient, ()>,
    /// Over standard input and output.
    child: Option<tokio::process::Child>,
}

impl Client {
    /// A server over standard input and output.
    pub async fn stdio(place: &TestDir, arguments: &[&str]) -> Client {
        let mut command = tokio::process::Command::from(place.command(&[&["mcp"], arguments].concat()));
        command.stdin(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
        let mut child = command.spawn().expect("the binary runs");
        let ends = (child.stdout.take().expect("piped"), child.stdin.take().expect("piped"));
        let service = ().serve(ends).await.expect("it speaks MCP");
        Client { service, child: Some(child) }
    }

    /// A client of a server that listens.
    pub async fn http(server: &Http, token: Option<&str>) -> Result<Client, String> {
        // Another provider serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str());
        if let Some(token) = token {
            config = config.auth_header(token);
        }
        let service = ().serve(StreamableHttpClientTransport::from_config(config)).await;
        Ok(Client { service: service.map_err(|error| format!("{error:?}"))?, child: None })
    }

    /// All that comes back from a call, also from one that does not fit its tool.
    pub async fn text_of_call(&self, tool: &str, arguments: Value) -> String {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let called = tokio::time::timeout(HANG_LIMIT, self.service.call_tool(request)).await;
        match called.expect("it answers") {
            Ok(result) => serde_json::to_string(&result).expect("a result"),
            Err(error) => format!("{error:?}"),
        }
    }

    /// Calls a tool, whatever comes of it.
    pub async fn result(&self, tool: &str, arguments: Value) -> CallToolResult {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let called = tokio::time::timeout(HANG_LIMIT, self.service.call_tool(request)).await;
        called.expect("it answers").expect("it is a call")
    }

    /// What a tool gives.
    #[track_caller]
    pub fn call(&self, tool: &str, arguments: Value) -> impl Future<Output = Value> {
        let at = std::panic::Location::caller();
        async move {
            let result = self.result(tool, arguments).await;
            assert_ne!(result.is_error, Some(true), "{at}: {result:?}");
            result.structured_content.unwrap_or_else(|| panic!("{at}: it has no structured content"))
        }
    }

    /// The refusal of a tool: `{code, message, help}`. It is outside of the structured content, since clients validate
    /// that against the tool's output schema.
    #[track_caller]
    pub fn call_refused(&self, tool: &str, arguments: Value) -> impl Future<Output = Value> {
        let at = std::panic::Location::caller();
        async move {
            let result = self.result(tool, arguments).await;
            assert_eq!(result.is_error, Some(true), "{at}: {result:?}");
            assert_eq!(result.structured_content, None, "{at}");
            let meta = result.meta.unwrap_or_else(|| panic!("{at}: it has no _meta"));
            let said = meta.0["quorate/error"].clone();
            let text = result.content[0].as_text().map(|text| text.text.clone()).unwrap_or_default();
            assert!(text.contains(said["code"].as_str().unwrap_or("no code")), "{at}: {text}");
            said
        }
    }

    /// The protocol error for a call that does not match its tool's schema.
    #[track_caller]
    pub fn call_malformed(&self, tool: &str, arguments: Value) -> impl Future<Output = Value> {
        let at = std::panic::Location::caller();
        let request = CallToolRequestParams::new(tool.to_owned())
            .with_arguments(arguments.as_object().cloned().expect("arguments are an object"));
        async move {
            let called = tokio::time::timeout(HANG_LIMIT, self.service.call_tool(request)).await;
            let Err(ServiceError::McpError(error)) = called.expect("it answers") else {
                panic!("{at}: it is called")
            };
            assert_eq!(error.code, ErrorCode::INVALID_PARAMS, "{at}: {error:?}");
            let said = error.data.clone().unwrap_or_else(|| panic!("{at}: it has no data"));
            assert_eq!(said["code"], "quorate:usage", "{at}");
            assert!(
                error.message.contains(said["message"].as_str().unwrap_or("no message")),
                "{at}: {error:?}"
            );
            assert!(error.message.contains(said["help"].as_str().unwrap_or("no help")), "{at}: {error:?}");
            said
        }
    }

    /// The names of all tools.
    pub async fn tools(&self) -> Vec<String> {
        let tools = self.service.list_all_tools().await.expect("tools");
        tools.into_iter().map(|tool| tool.name.into_owned()).collect()
    }

    /// Hangs up, and gives the server's exit code, if it is ours.
    pub async fn close(self) -> Option<i32> {
        let _ = self.service.cancel().await;
        let mut child = self.child?;
        let ended = tokio::time::timeout(HANG_LIMIT, child.wait()).await;
        ended.expect("it ends").expect("it is waited for").code()
    }

    /// The server's process.
    pub fn pid(&self) -> Option<Pid> {
        let id = self.child.as_ref()?.id()?;
        Pid::from_raw(i32::try_from(id).ok()?)
    }
}

/// A server over HTTP. It is ended with this.
pub struct Http {
    pub url: String,
    child: Child,
    _stderr: ChildStderr,
}

impl Http {
    /// On a port that is free.
    pub fn start(place: &TestDir, arguments: &[&str], token: Option<&str>) -> Http {
        let mut command = place.command(&[&["mcp", "--http"], arguments].concat());
        if let Some(token) = token {
            command.args(["--token-env", "TOKEN"]).env("TOKEN", token);
        }
        let mut child = command.spawn().expect("the binary runs");
        let stderr = child.stderr.take().expect("piped");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let said: Value = serde_json::from_str(&line).expect("one line of JSON");
        Http { url: said["url"].as_str().expect("an address").to_owned(), child, _stderr: stderr }
    }

    /// `127.0.0.1:PORT`.
    pub fn authority(&self) -> &str {
        self.url.trim_start_matches("http://").trim_end_matches("/mcp")
    }

    /// Ends it as Ctrl-C does, and gives its exit code.
    pub fn interrupt(mut self) -> Option<i32> {
        let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        self.child.wait().expect("it is waited for").code()
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
