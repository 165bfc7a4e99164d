//! A server with a conversation, a store and operators, over HTTP, with configurable faults.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorate_kernel::clock::rfc3339;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, watch};

/// How the server is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Style {
    /// Which arguments it takes beside those that every server takes.
    pub(crate) optional_arguments: Vec<&'static str>,
    /// It gives the newest first.
    pub(crate) newest_first: bool,
    /// It calls things by other names.
    pub(crate) synonyms: bool,
    /// It gives its results as text.
    pub(crate) text: bool,
    /// It gives so many, however many it is asked for.
    pub(crate) always_gives: Option<usize>,
    /// It never gives more.
    pub(crate) max_messages: Option<usize>,
    /// It says whether there are more.
    pub(crate) says_more: bool,
    /// It takes no limit.
    pub(crate) has_no_limit_argument: bool,
    /// The times of its messages.
    pub(crate) clocks: Clocks,
    /// It does not say who wrote a message.
    pub(crate) hides_authors: bool,
}

/// The times of a server's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Clocks {
    /// Each message is one second younger than the one before.
    #[default]
    Right,
    /// All messages have the same time.
    Still,
    /// Each message is older than the one before.
    Backwards,
    /// Two machines take turns whose clocks are two seconds apart, within the same seconds.
    Apart,
    /// Messages have no time.
    Missing,
    /// Times are not RFC 3339.
    Garbled,
}

impl Clocks {
    pub(crate) const ALL: [Clocks; 6] =
        [Clocks::Right, Clocks::Still, Clocks::Backwards, Clocks::Apart, Clocks::Missing, Clocks::Garbled];

    fn time(self, at_ms: i64) -> Value {
        let number = (at_ms - START) / 1_000;
        match self {
            Clocks::Right => json!(rfc3339(at_ms)),
            Clocks::Still => json!(rfc3339(START)),
            Clocks::Backwards => json!(rfc3339(2 * START - at_ms)),
            Clocks::Apart => json!(rfc3339(START + number * 100 + number % 2 * 2_000)),
            Clocks::Missing => Value::Null,
            Clocks::Garbled => json!(format!("message {} of today", number % 3)),
        }
    }
}

impl Style {
    /// A server that takes everything.
    pub(crate) fn full() -> Self {
        Style {
            optional_arguments: vec![
                "after",
                "before",
                "waitMs",
                "idempotencyKey",
                "metadata",
                "disableAutoOrchestration",
            ],
            says_more: true,
            ..Style::default()
        }
    }

    /// The public one: the newest messages, newest first, and nothing else.
    pub(crate) fn public() -> Self {
        Style { newest_first: true, synonyms: true, text: true, ..Style::default() }
    }

    /// This one, without an argument.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.optional_arguments.retain(|taken| *taken != name);
        self
    }
}

/// What goes wrong with the next call of a tool.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// It is done, and the line is cut before the answer.
    CutAfter,
    /// The line is cut before anything is done.
    CutBefore,
    /// It is done, and no answer comes for so long.
    Slow(Duration),
    /// It is done, and the tool says that it failed.
    Fails(&'static str),
    /// Nothing is done, and the tool says that it failed.
    Refuses(&'static str),
    /// This comes in place of the result.
    Replace(Value),
    /// The result is so many bytes long.
    Huge(usize),
    /// The messages come in this order.
    Reordered(fn(&mut Vec<Value>)),
}

#[derive(Debug, Clone)]
pub(crate) struct StoredMessage {
    pub(crate) id: String,
    pub(crate) author: String,
    pub(crate) content: String,
    pub(crate) at_ms: i64,
    pub(crate) metadata: Option<Value>,
    pub(crate) key: Option<String>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) messages: Vec<StoredMessage>,
    pub(crate) entries: BTreeMap<String, Value>,
    pub(crate) faults: VecDeque<(&'static str, Fault)>,
    /// Every call, with its arguments.
    pub(crate) calls: Vec<(String, Map<String, Value>)>,
    /// Cancelled requests.
    pub(crate) cancelled: usize,
    posted: usize,
    sessions: usize,
}

/// The server.
#[derive(Clone)]
pub(crate) struct FakeServer {
    pub(crate) style: Style,
    pub(crate) state: Arc<Mutex<State>>,
    said: Arc<Notify>,
    /// Cuts every line.
    pub(crate) cut: Arc<Notify>,
    cancels: Arc<watch::Sender<usize>>,
}

const START: i64 = 1_779_128_000_000;

impl FakeServer {
    pub(crate) fn new(style: Style) -> Self {
        FakeServer {
            style,
            state: Arc::default(),
            said: Arc::default(),
            cut: Arc::default(),
            cancels: Arc::new(watch::channel(0).0),
        }
    }

    /// Serves on a port of this machine; gives the address.
    pub(crate) async fn serve(&self) -> std::net::SocketAddr {
        let fake = self.clone();
        let new = move || {
            fake.state.lock().unwrap().sessions += 1;
            Ok(fake.clone())
        };
        let service = StreamableHttpService::new(
            new,
            Arc::new(LocalSessionManager::default()),
            StreamableHttpServerConfig::default(),
        );
        let router = axum::Router::new().route_service("/mcp", service);
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    /// The next call of a tool goes wrong.
    pub(crate) fn fault(&self, tool: &'static str, fault: Fault) {
        self.state.lock().unwrap().faults.push_back((tool, fault));
    }

    /// Adds a message.
    pub(crate) fn say(&self, author: &str, content: &str) -> String {
        self.store(author, content, None, None).0.id
    }

    pub(crate) fn calls(&self, tool: &str) -> Vec<Map<String, Value>> {
        let state = self.state.lock().unwrap();
        state.calls.iter().filter(|(name, _)| name == tool).map(|(_, arguments)| arguments.clone()).collect()
    }

    pub(crate) fn contents(&self) -> Vec<String> {
        self.state.lock().unwrap().messages.iter().map(|one| one.content.clone()).collect()
    }

    pub(crate) fn sessions(&self) -> usize {
        self.state.lock().unwrap().sessions
    }

    /// Waits until so many requests were cancelled.
    pub(crate) async fn cancelled(&self, count: usize) {
        self.cancels.subscribe().wait_for(|cancelled| *cancelled >= count).await.unwrap();
    }

    fn store(
        &self,
        author: &str,
        content: &str,
        metadata: Option<Value>,
        key: Option<String>,
    ) -> (StoredMessage, bool) {
        let mut state = self.state.lock().unwrap();
        if let Some(kept) = state.messages.iter().find(|kept| key.is_some() && kept.key == key) {
            return (kept.clone(), true);
        }
        state.posted += 1;
        let number = state.posted;
        let at_ms = START + i64::try_from(number).unwrap() * 1_000;
        let kept = StoredMessage {
            id: format!("m{number}"),
            author: author.into(),
            content: content.into(),
            at_ms,
            metadata,
            key,
        };
        state.messages.push(kept.clone());
        drop(state);
        self.said.notify_waiters();
        (kept, false)
    }

    fn to_json(&self, kept: &StoredMessage) -> Value {
        let at = self.style.clocks.time(kept.at_ms);
        let author = Some(&kept.author).filter(|_| !self.style.hides_authors);
        match self.style.synonyms {
            true => {
                json!({"messageId": kept.id, "author": {"id": author}, "text": kept.content, "createdAt": at})
            }
            false => json!({"id": kept.id, "authorId": author, "content": kept.content, "timestamp": at,
                "metadata": kept.metadata}),
        }
    }

    async fn messages(&self, given: &Map<String, Value>) -> Value {
        let text = |name: &str| given.get(name).and_then(Value::as_str);
        let wait = Duration::from_millis(given.get("waitMs").and_then(Value::as_u64).unwrap_or(0));
        let until = tokio::time::Instant::now() + wait;
        loop {
            let said = self.said.notified();
            let page = self.page(given, text("after"), text("before"));
            let nothing = page["messages"].as_array().unwrap().is_empty();
            let can_wait = text("after").is_some() && nothing;
            if !can_wait || tokio::time::timeout_at(until, said).await.is_err() {
                return page;
            }
        }
    }

    fn page(&self, given: &Map<String, Value>, after: Option<&str>, before: Option<&str>) -> Value {
        let asked =
            given.get("limit").and_then(Value::as_u64).map_or(50, |limit| usize::try_from(limit).unwrap());
        let limit =
            self.style.always_gives.unwrap_or(asked).min(self.style.max_messages.unwrap_or(usize::MAX));
        let all = self.state.lock().unwrap().messages.clone();
        let place = |id: &str| all.iter().position(|kept| kept.id == id);
        let mut known = true;
        let (page, more): (&[StoredMessage], bool) = if let Some(after) = after {
            known = place(after).is_some();
            let newer = &all[place(after).map_or(0, |place| place + 1)..];
            (&newer[..limit.min(newer.len())], newer.len() > limit)
        } else {
            let older = &all[..before.and_then(place).unwrap_or(all.len())];
            (&older[older.len().saturating_sub(limit)..], older.len() > limit)
        };
        let mut shown: Vec<Value> = page.iter().map(|kept| self.to_json(kept)).collect();
        if self.style.newest_first {
            shown.reverse();
        }
        let mut result = json!({"messages": shown});
        if self.style.says_more {
            result["hasMore"] = json!(more);
        }
        if !known {
            result["known"] = json!(false);
        }
        result
    }

    async fn run_tool(&self, tool: &str, given: &Map<String, Value>) -> Result<Value, String> {
        let text = |name: &str| given.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let key = given.get("idempotencyKey").and_then(Value::as_str).map(str::to_owned);
        match tool {
            "post_message" => {
                let author = given.get("asOperatorId").and_then(Value::as_str).unwrap_or("token");
                let metadata = given.get("metadata").cloned();
                let (kept, duplicate) = self.store(author, &text("content"), metadata, key);
                let at = self.style.clocks.time(kept.at_ms);
                Ok(json!({"id": kept.id, "timestamp": at, "duplicate": duplicate}))
            }
            "get_messages" => Ok(self.messages(given).await),
            "run_operator" => {
                let said = format!("{} has seen it", text("operatorId"));
                if given.get("postReply") != Some(&json!(true)) {
                    return Ok(json!({"text": said}));
                }
                let (kept, _) = self.store(&text("operatorId"), &said, None, key);
                Ok(json!({"text": kept.content, "messageId": kept.id}))
            }
            "kv_get" => {
                let state = self.state.lock().unwrap();
                Ok(json!({"value": state.entries.get(&text("key"))}))
            }
            "kv_set" => {
                let value = given.get("value").cloned().unwrap_or_default();
                self.state.lock().unwrap().entries.insert(text("key"), value);
                Ok(json!({}))
            }
            "job_poll" => Ok(json!({"job": text("job"), "done": true, "result": {"text": "after a while"}})),
            "job_cancel" => Ok(json!({})),
            other => Err(format!("unknown tool {other}")),
        }
    }

    fn tool(&self, name: &'static str, always: &[&str]) -> Tool {
        let mut properties = Map::new();
        let taken = |name: &&&str| !(self.style.has_no_limit_argument && **name == "limit");
        for name in always.iter().chain(&self.style.optional_arguments).filter(taken) {
            properties.insert((*name).to_owned(), json!({}));
        }
        if name == "kv_set" && self.style.text {
            properties.insert("value".into(), json!({"type": "string"}));
        }
        if let (Some(limit), Some(most)) =
            (properties.get_mut("limit"), self.style.max_messages.filter(|_| self.style.says_more))
        {
            limit["maximum"] = json!(most);
        }
        let schema = json!({"type": "object", "properties": properties});
        Tool::new(name, "", Arc::new(schema.as_object().unwrap().clone()))
    }
}

struct CancelGuard<'a>(&'a FakeServer, bool);

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        if self.1 {
            self.0.state.lock().unwrap().cancelled += 1;
            self.0.cancels.send_modify(|count| *count += 1);
        }
    }
}

impl ServerHandler for FakeServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![
            self.tool("post_message", &["conversationId", "content", "asOperatorId"]),
            self.tool("get_messages", &["conversationId", "limit"]),
            self.tool("run_operator", &["conversationId", "operatorId", "postReply"]),
            self.tool("kv_get", &["key"]),
            self.tool("kv_set", &["key", "value"]),
            self.tool("job_poll", &["job"]),
            self.tool("job_cancel", &["job"]),
        ]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = request.name.to_string();
        let given = request.arguments.unwrap_or_default();
        let fault = {
            let mut state = self.state.lock().unwrap();
            state.calls.push((tool.clone(), given.clone()));
            let place = state.faults.iter().position(|(name, _)| *name == tool);
            place.and_then(|place| state.faults.remove(place)).map(|(_, fault)| fault)
        };
        if let Some(Fault::CutBefore) = fault {
            self.cut.notify_waiters();
            return std::future::pending().await;
        }
        if let Some(Fault::Refuses(why)) = fault {
            return Ok(CallToolResult::error(vec![ContentBlock::text(why)]).into());
        }
        let mut cancelled = CancelGuard(self, true);
        let done = tokio::select! {
            done = self.run_tool(&tool, &given) => done,
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("cancelled", None)),
        };
        let mut value = match done {
            Ok(value) => value,
            Err(why) => {
                cancelled.1 = false;
                return Ok(CallToolResult::error(vec![ContentBlock::text(why)]).into());
            }
        };
        match fault {
            Some(Fault::CutAfter) => {
                self.cut.notify_waiters();
                return std::future::pending().await;
            }
            Some(Fault::Slow(pause)) => {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = context.ct.cancelled() => return Err(ErrorData::internal_error("cancelled", None)),
                }
            }
            Some(Fault::Fails(why)) => {
                cancelled.1 = false;
                return Ok(CallToolResult::error(vec![ContentBlock::text(why)]).into());
            }
            Some(Fault::Replace(instead)) => value = instead,
            Some(Fault::Huge(bytes)) => value = json!({"messages": [], "padding": "x".repeat(bytes)}),
            Some(Fault::Reordered(change)) => {
                let mut messages = value["messages"].as_array().cloned().unwrap_or_default();
                change(&mut messages);
                value["messages"] = json!(messages);
            }
            Some(Fault::CutBefore | Fault::Refuses(_)) | None => {}
        }
        cancelled.1 = false;
        Ok(match (self.style.text, value) {
            (_, Value::String(text)) => CallToolResult::success(vec![ContentBlock::text(text)]).into(),
            (true, value) => CallToolResult::success(vec![ContentBlock::text(value.to_string())]).into(),
            (false, value) => {
                let mut result = CallToolResult::success(vec![]);
                result.structured_content = Some(value);
                result.into()
            }
        })
    }
}
