//! `quorate mcp`: an MCP server over stdio or HTTP that offers conversations, the Council and assemblies as tools. It
//! is a front end: tools parse, call one method of [`Quorate`], and return what `--format json` prints.
//!
//! `tool` defines a tool and `tools/` has one file for each; `conversations` holds the offered manifests; `stdio` and
//! `http` are the transports; `card` is the page of clients that render apps. Only this file, `tool`, `card`, `caller`,
//! `failure`, `incoming` and the transports name the protocol library.

mod card;
mod conversations;
mod failure;
pub mod http;
mod incoming;
mod prompts;
mod resources;
pub mod stdio;
mod tasks {
    //! Long calls as tasks (`io.modelcontextprotocol/tasks`): a client that declares the extension gets a handle at once and
    //! polls it. For other clients the same call is a job, for which `job_poll` waits. The library keeps the tasks, and the work
    //! of each is a job of the server.

    use std::time::Duration;

    use rmcp::RoleServer;
    use rmcp::model::CreateTaskResult;
    use rmcp::service::RequestContext;
    use rmcp::task_manager::{TaskExit, TaskManager, TaskOptions};

    use crate::conversations::Caller;
    use crate::tool::CallResult;

    /// How long a task works at most, and how long its result is kept after that.
    pub(super) const MAX_TASK_TIME: Duration = Duration::from_secs(6 * 60 * 60);

    /// Whether the client of a request declares that it knows tasks.
    pub(super) fn are_known(request: &RequestContext<RoleServer>) -> bool {
        request.client_capabilities().is_some_and(|declared| declared.supports_tasks())
    }

    /// Starts a call as a task.
    pub(super) fn start<W>(tasks: &TaskManager, work: impl FnOnce(Caller) -> W) -> CreateTaskResult
    where
        W: Future<Output = CallResult> + Send + 'static,
    {
        let options = TaskOptions::new().with_ttl_ms(MAX_TASK_TIME.as_millis() as u64);
        CreateTaskResult::new(tasks.spawn(options, |task| {
            let work = work(Caller::Task(task.clone()));
            Box::pin(async move {
                let result = work.await?;
                match result.is_error == Some(true) && task.is_cancel_requested() {
                    true => Err(TaskExit::Cancelled),
                    false => Ok(result),
                }
            })
        }))
    }
}
mod tool;
mod tools;

use std::path::PathBuf;
use std::sync::Arc;

use quorate_diagnostics::Report;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CustomRequest, CustomResult, ErrorCode,
    GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, Implementation,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ServerCapabilities, ServerConfig, Tool as About, UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::task_manager::TaskManager;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use card::CardUse;
use conversations::{Caller, Conversations};
use failure::Failure;
use quorate::http::new_secret;
use quorate::jobs::Jobs;
use quorate::{Error, Quorate};
use tool::{Effect, ToolEntry};

#[derive(Debug, Clone, Default)]
pub struct OfferedManifest {
    /// An id of its conversation, besides the manifest's own and its substrate's.
    pub id: Option<String>,
    /// Relative to the root if one is set, else to the working directory.
    pub path: PathBuf,
}

/// The settings of the server.
#[derive(Debug, Clone, Default)]
pub struct McpServerOptions {
    pub manifests: Vec<OfferedManifest>,
    /// The workspace; by default the one that contains the working directory.
    pub root: Option<PathBuf>,
    /// Whether to omit tools that change something.
    pub read_only: bool,
}

/// The state that tools share, for all connections.
pub struct ServerState {
    /// The workspace, confined to its root.
    quorate: Quorate,
    jobs: Jobs<Failure>,
    tasks: TaskManager,
    conversations: Conversations,
    tools: Vec<ToolEntry>,
    read_only: bool,
    /// The secret from which the keys of the card are derived.
    card_secret: String,
}

impl ServerState {
    /// Opens the workspace and the manifests; returns the server with its warnings.
    ///
    /// # Errors
    /// When the root or a manifest is unusable.
    pub fn open(quorate: &Quorate, options: &McpServerOptions) -> Result<(Arc<ServerState>, Report), Error> {
        let within = quorate.in_directory(options.root.clone().unwrap_or_else(|| quorate.root()));
        let confined = within.confined()?;
        // With a root, manifests are relative to it. The user names them, so they may lie outside of it.
        let base = if options.root.is_some() { &within } else { quorate };
        let (conversations, report) = Conversations::open(base, options)?;
        let mut tools = tools::all();
        tools.retain(|tool| !options.read_only || tool.effect == Effect::Reads);
        if conversations.is_empty() {
            tools.retain(|tool| !tools::needs_conversation(tool.name));
        }
        let (jobs, tasks) = (Jobs::default(), TaskManager::new());
        let (read_only, card_secret) = (options.read_only, new_secret());
        let state =
            ServerState { quorate: confined, jobs, tasks, conversations, tools, read_only, card_secret };
        Ok((Arc::new(state), report))
    }

    /// Ends all jobs and tasks, with their members.
    pub fn close(&self) {
        self.tasks.shutdown();
        self.jobs.abort_all();
    }

    /// The failure for an unknown tool, with the reason if it is disabled.
    fn unknown_tool(&self, name: &str) -> Failure {
        let help = match tools::all().iter().find(|tool| tool.name == name) {
            Some(tool) if self.read_only && tool.effect != Effect::Reads => {
                "this server was started with `--read-only`".to_owned()
            }
            Some(tool) if tool.card == CardUse::Calls => {
                "only the card of a client that renders apps calls it, for a person".to_owned()
            }
            Some(_) => "start the server with `--manifest PATH` to offer a conversation".to_owned(),
            None => {
                let offered = self.tools.iter().filter(|tool| tool.is_offered(false));
                let names: Vec<&str> = offered.map(|tool| tool.name).collect();
                format!("the tools are {}", names.join(", "))
            }
        };
        Failure::usage(format!("unknown tool `{name}`"), help)
    }
}

#[derive(Clone)]
struct Connection(Arc<ServerState>);

type Context = RequestContext<RoleServer>;
type Page = Option<PaginatedRequestParams>;
type Answer<T> = Result<T, ErrorData>;

impl ServerHandler for Connection {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(
            ServerCapabilities::builder()
                .enable_tools()
                .enable_resources()
                .enable_prompts()
                .enable_tasks()
                .build(),
        );
        info.server_info = Implementation::new("quorate", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(tools::instructions(&self.0));
        info
    }

    async fn list_tools(&self, _: Page, context: Context) -> Answer<ListToolsResult> {
        let has_cards = card::is_rendered(&context);
        let about = |tool: &ToolEntry| {
            let mut about = tool.about.clone();
            about.meta = tool.card.meta().filter(|_| has_cards);
            about
        };
        let offered = self.0.tools.iter().filter(|tool| tool.is_offered(has_cards));
        Ok(ListToolsResult::with_all_items(offered.map(about).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<About> {
        self.0.tools.iter().find(|tool| tool.name == name).map(|tool| tool.about.clone())
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: Context) -> Answer<CallToolResponse> {
        let state = &self.0;
        let has_cards = card::is_rendered(&context);
        let named = |tool: &&ToolEntry| tool.name == request.name && tool.is_offered(has_cards);
        let Some(tool) = state.tools.iter().find(named) else {
            return Err(state.unknown_tool(&request.name).error(&state.quorate));
        };
        let (own, call) = (state.clone(), tool.call);
        let work = |caller: Caller| async move {
            let mut result = call(&own, request.arguments.unwrap_or_default(), &caller).await?;
            if has_cards {
                card::annotate(&own, &mut result).await;
            }
            Ok(result)
        };
        if tool.is_long && tasks::are_known(&context) {
            return Ok(tasks::start(&state.tasks, work).into());
        }
        Ok(work(Caller::Request(Box::new(context))).await?.into())
    }

    async fn list_resources(&self, _: Page, _: Context) -> Answer<ListResourcesResult> {
        Ok(ListResourcesResult::with_all_items(resources::list(&self.0).await))
    }

    async fn list_resource_templates(&self, _: Page, _: Context) -> Answer<ListResourceTemplatesResult> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Answer<ReadResourceResponse> {
        let contents = resources::read(&self.0, &request.uri).await?;
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(&self, _: Page, _: Context) -> Answer<ListPromptsResult> {
        Ok(ListPromptsResult::with_all_items(prompts::list(&self.0)))
    }

    async fn get_prompt(&self, request: GetPromptRequestParams, _: Context) -> Answer<GetPromptResponse> {
        Ok(prompts::get(&self.0, request).await?.into())
    }

    async fn get_task(&self, request: GetTaskParams, _: Context) -> Answer<GetTaskResult> {
        Ok(GetTaskResult::new(self.0.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(&self, request: UpdateTaskParams, _: Context) -> Answer<()> {
        self.0.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: Context) -> Answer<()> {
        self.0.tasks.cancel_task(&request.task_id)
    }

    /// The library passes a request whose parameters it cannot parse as an unknown one.
    async fn on_custom_request(&self, request: CustomRequest, _: Context) -> Answer<CustomResult> {
        let CustomRequest { method, .. } = request;
        Err(match method.as_str() {
            "tools/call" => ErrorData::invalid_params(
                "tools/call takes `name`, a string, and `arguments`, an object of what the tool takes",
                None,
            ),
            "tools/list"
            | "initialize"
            | "ping"
            | "resources/list"
            | "resources/read"
            | "resources/templates/list"
            | "prompts/list"
            | "prompts/get"
            | "tasks/get"
            | "tasks/update"
            | "tasks/cancel" => {
                ErrorData::invalid_params(format!("cannot read the parameters of {method}"), None)
            }
            _ => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("unknown method `{method}`"), None),
        })
    }
}

#[cfg(test)]
mod conformance;
