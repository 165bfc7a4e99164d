//! `quorate mcp`: an MCP server over stdio or HTTP that offers conversations, the Council and assemblies as tools. It
//! is a front end: tools parse, call one method of [`Quorate`], and return what `--format json` prints.
//!
//! `tool` defines a tool and `tools/` has one file for each; `conversations` holds the offered manifests; `stdio` and
//! `http` are the transports. Only this file, `tool`, `caller`, `failure`, `incoming` and the transports name the protocol
//! library.

mod conversations;
mod failure;
pub mod http;
mod incoming;
mod prompts;
mod resources;
pub mod stdio;
mod tool;
mod tools;

use std::path::PathBuf;
use std::sync::Arc;

use quorate_diagnostics::Report;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, GetPromptRequestParams,
    GetPromptResponse, Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ServerCapabilities, ServerConfig, Tool as About,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use conversations::Caller;
use conversations::Conversations;
use failure::Failure;
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
    conversations: Conversations,
    tools: Vec<ToolEntry>,
    read_only: bool,
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
        let jobs = Jobs::default();
        let read_only = options.read_only;
        let state = ServerState { quorate: confined, jobs, conversations, tools, read_only };
        Ok((Arc::new(state), report))
    }

    /// Ends all jobs, with their members.
    pub fn close(&self) {
        self.jobs.abort_all();
    }

    /// The failure for an unknown tool, with the reason if it is disabled.
    fn unknown_tool(&self, name: &str) -> Failure {
        let help = match tools::all().iter().find(|tool| tool.name == name) {
            Some(tool) if self.read_only && tool.effect != Effect::Reads => {
                "this server was started with `--read-only`".to_owned()
            }
            Some(_) => "start the server with `--manifest PATH` to offer a conversation".to_owned(),
            None => {
                let names: Vec<&str> = self.tools.iter().map(|tool| tool.name).collect();
                format!("the tools are {}", names.join(", "))
            }
        };
        Failure::usage(format!("unknown tool `{name}`"), help)
    }
}

#[derive(Clone)]
struct Connection(Arc<ServerState>);

impl ServerHandler for Connection {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(
            ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build(),
        );
        info.server_info = Implementation::new("quorate", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(tools::instructions(&self.0));
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.0.tools.iter().map(|tool| tool.about.clone()).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<About> {
        self.0.tools.iter().find(|tool| tool.name == name).map(|tool| tool.about.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let state = &self.0;
        let Some(tool) = state.tools.iter().find(|tool| tool.name == request.name) else {
            return Err(state.unknown_tool(&request.name).error(&state.quorate));
        };
        let caller = Caller::of(context);
        Ok(tool.call(state, request.arguments.unwrap_or_default(), &caller).await?.into())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list(&self.0).await))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = resources::read(&self.0, &request.uri).await?;
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list(&self.0)))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Ok(prompts::get(&self.0, request).await?.into())
    }

    /// The library passes a request whose parameters it cannot parse as an unknown one.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
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
            | "prompts/get" => {
                ErrorData::invalid_params(format!("cannot read the parameters of {method}"), None)
            }
            _ => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("unknown method `{method}`"), None),
        })
    }
}
