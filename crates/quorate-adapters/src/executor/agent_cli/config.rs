//! Reads and checks the block of one executor, and turns an invocation into a command line. `config/cli.rs` reads the
//! key `cli`.

mod cli;

use std::ffi::OsString;
use std::path::PathBuf;

use quorate_kernel::ports::executor::{ConfigError, Failure, Invocation, Servers, Settings, SideEffect};
use quorate_protocol::Json;
use quorate_protocol::answers::Schema;

use super::attempt_files::AttemptFiles;
use super::command::check_no_nul;
use super::concurrency::Concurrency;
use super::environment::{BaseVariables, Environment};
use super::judge::{Judge, JudgeSetup};
use super::output_format::OutputFormat;
use super::presets::{ArgumentInputs, PRESETS, Preset, ServerPassing};
use super::private_dir::{JudgeConfig, PrivateDir};
use super::process_tag;
use super::sandbox::{Confinement, Sandbox};
use super::spawn::Launch;
use super::tool_grants::ToolGrants;
use super::version;
use crate::block::{Block, nearest, quoted_list};
use crate::turn_answer;
use cli::Cli;

const KEYS: &[&str] = &[
    "command",
    "preset",
    "cli",
    "args",
    "model",
    "env",
    "env_clear",
    "cwd",
    "output",
    "answer",
    "max_processes",
    "sandbox",
    "tools",
];

/// How a member is started.
#[derive(Debug)]
pub(super) struct Config {
    command: String,
    preset: Option<&'static Preset>,
    args: Vec<String>,
    environment: Environment,
    dir: PathBuf,
    cwd: PathBuf,
    /// The model of the settings.
    pub(super) model: Option<String>,
    pub(super) output: OutputFormat,
    /// The schema of its turns in a conversation.
    pub(super) turn_schema: Schema,
    cli: Option<Cli>,
    servers: Servers,
    /// Limits how many of its commands run at once.
    pub(super) concurrency: Concurrency,
    /// `None` if the block turns the sandbox off.
    sandbox: Option<Confinement>,
    tools: Option<Vec<String>>,
}

/// One attempt, ready to start.
pub(super) struct PreparedCall {
    pub(super) launch: Launch,
    /// Files that the command reads; they must outlive it.
    pub(super) files: Option<AttemptFiles>,
}

impl Config {
    pub(super) fn parse(settings: &Settings) -> Result<Self, ConfigError> {
        let block = Block::parse(&settings.block, KEYS)?;
        let mut preset = block.text("preset")?.map(|name| find_preset("preset", name)).transpose()?;
        let cli = block.text("cli")?.map(|cli| Cli::resolve(cli, &settings.dir)).transpose()?;
        if let Some(cli) = &cli {
            if preset.is_some() {
                return Err(ConfigError::for_key("cli", "`cli` and `preset` both say what to start")
                    .with_help("leave one of them out"));
            }
            preset = cli.preset.map(|name| find_preset("cli", name)).transpose()?;
        }
        let declared = cli.as_ref().and_then(|cli| cli.command.as_deref());
        let command = match (block.text("command")?.or(declared), preset) {
            (Some(command), _) => command.to_owned(),
            (None, Some(preset)) => preset.command.to_owned(),
            (None, None) => {
                return Err(ConfigError::for_block("neither `command` nor `preset` says what to start")
                    .with_help(format!(
                        "set `command`, or `preset` to one of {}",
                        quoted_list(&preset_names())
                    )));
            }
        };
        check_no_nul(&command, &block.texts("args")?)?;
        let model = block.text("model")?.or(cli.as_ref().and_then(|cli| cli.model.as_deref()));
        let model = model.map(str::to_owned);
        let args = check_args(prompt_arguments(&block, cli.as_ref(), preset)?, preset, model.as_deref())?;
        let base = if block.flag("env_clear")? { BaseVariables::Dropped } else { BaseVariables::Inherited };
        Ok(Config {
            command,
            preset,
            args,
            environment: Environment::new(block.texts("env")?, base)?,
            cwd: resolve_cwd(settings, block.text("cwd")?)?,
            dir: settings.dir.clone(),
            output: parse_output(block.text("output")?, preset)?,
            turn_schema: turn_answer::parse(block.text("answer")?)?,
            servers: settings.servers.clone(),
            concurrency: Concurrency::for_executor(settings, block.count("max_processes")?),
            sandbox: parse_sandbox(&block, preset)?,
            tools: parse_tools(&block, preset)?,
            cli,
            model,
        })
    }

    /// Refuses a command that is not installed.
    pub(super) fn check_installed(&self) -> Result<(), ConfigError> {
        let known = self.preset.filter(|preset| preset.command == self.command);
        super::command::check_installed(&self.command, &self.dir, known.map(|preset| preset.install))
    }

    /// The command's name in messages.
    pub(super) fn command_name(&self) -> String {
        self.command.rsplit('/').next().unwrap_or(&self.command).to_owned()
    }

    /// Whether the command receives the MCP servers that a participant may use.
    pub(super) fn forwards_mcp_servers(&self) -> bool {
        self.preset.is_some_and(|preset| preset.server_passing != ServerPassing::Unsupported)
    }

    /// What its answers depend on besides its block.
    pub(super) fn fingerprint(&self) -> Json {
        self.cli.as_ref().map_or(Json::Null, Cli::fingerprint)
    }

    /// The side effect that a user trusts. It omits the preset's own arguments, since the workspace does not choose them.
    pub(super) fn side_effect(&self) -> SideEffect {
        let mut side_effect =
            super::side_effect::of_command(&self.command, &self.args, self.environment.names(), &self.cwd);
        if self.command.contains('/') {
            side_effect.files.extend(super::command::find(&self.command, &self.dir).ok());
        }
        if self.cwd != self.dir {
            side_effect.what.push_str(&format!(" in {}", self.cwd.display()));
        }
        side_effect.files.extend(self.cli.as_ref().and_then(|cli| cli.path.clone()));
        side_effect
    }

    /// How its CLI is called as a judge; `None` if the CLI has nothing to switch off.
    pub(super) fn judge(&self) -> Option<&'static Judge> {
        self.preset.and_then(|preset| preset.judge)
    }

    /// The tools that a judge of it has; `None` if unknown.
    pub(super) fn tools(&self) -> Option<&[String]> {
        self.preset.map(|_| self.tools.as_deref().unwrap_or_default())
    }

    /// A call that asks the CLI about itself, without a prompt.
    pub(super) fn query_launch(&self, arguments: &[&str]) -> Result<Launch, Failure> {
        let private = PrivateDir::new()?;
        let arguments = arguments.iter().map(Into::into).collect();
        let mut variables = self.environment.variables();
        // Such a call needs no login and must leave nothing in the user's directory.
        variables.extend(self.judge().map(|judge| (judge.home_variable.into(), private.home().into())));
        self.launch(arguments, variables, Some(private))
    }

    /// Prepares one attempt. `before` is the output of the judge's preceding call.
    pub(super) fn prepare(
        &self,
        invocation: &Invocation,
        before: Option<&str>,
    ) -> Result<PreparedCall, Failure> {
        let schema = self.schema(invocation);
        let mut granted =
            ToolGrants::for_speaker(invocation.conversation.as_deref(), &self.servers, &self.dir);
        let judged = self.judge().filter(|_| invocation.conversation.is_none());
        if invocation.conversation.is_some() {
            granted.allowed_tools = granted.allowed_tools.or(self.tools.as_deref());
        }
        self.check_tool_grants(&granted)?;
        let files = self.attempt_files(schema.as_ref(), &granted)?;
        let configured = self.model.as_deref();
        let by_template = configured.zip(self.cli.as_ref()).and_then(|(model, cli)| cli.model_args(model));
        let model = configured.filter(|_| by_template.is_none());
        let extra = [self.args.clone(), by_template.unwrap_or_default()].concat();
        // A member that receives a server also receives the variables that the server needs.
        let needed = if self.forwards_mcp_servers() { granted.variables() } else { Vec::new() };
        let mut variables = self.environment.variables_with(&needed);
        let private =
            judged.map(|judge| self.prepare_private_dir(judge, before, &extra, &variables)).transpose()?;
        let judge_config = private.as_ref().map(|(_, judge_config)| judge_config);
        let ask = ArgumentInputs {
            model,
            extra_args: &extra,
            schema: schema.as_ref(),
            files: files.as_ref(),
            tool_grants: &granted,
            judge_config,
        };
        let arguments = self.preset.map_or_else(|| ask.plain_arguments(), |preset| (preset.arguments)(&ask));
        // `@path` in what others say must not widen what the manifest or the table restricts.
        let attachments =
            self.preset.filter(|_| granted.allowed_tools.is_some()).and_then(|preset| preset.no_attachments);
        let more = attachments.map(|name| (name.into(), "1".into()));
        variables.extend(
            more.into_iter().chain(judge_config.into_iter().flat_map(|all| all.variables.iter().cloned())),
        );
        // No variable can hold a NUL.
        let member = Some(&*invocation.member).filter(|member| !member.contains('\0'));
        variables.extend(member.map(|member| (process_tag::MEMBER.into(), member.into())));
        let launch = self.launch(arguments, variables, private.map(|(private, _)| private))?;
        Ok(PreparedCall { launch, files })
    }

    /// How the program is started: in the private directory, if there is one.
    fn launch(
        &self,
        arguments: Vec<OsString>,
        variables: Vec<(OsString, OsString)>,
        private: Option<PrivateDir>,
    ) -> Result<Launch, Failure> {
        let program = super::command::find(&self.command, &self.dir)?;
        let cwd = private.as_ref().map_or_else(|| self.cwd.clone(), PrivateDir::work);
        let sandbox = self.sandbox.map(|confinement| Sandbox::new(confinement, &program, &cwd)).transpose();
        let sandbox = sandbox.map_err(|error| {
            Failure::failed(format!("cannot make a temporary directory: {error}; check TMPDIR"))
        })?;
        Ok(Launch { program, arguments, variables, cwd, sandbox: sandbox.flatten(), _private_dir: private })
    }

    /// Learns the version of a preset's program.
    pub(super) async fn learn_version(&self) {
        if let (Some(_), Ok(launch)) = (self.preset, self.query_launch(&[])) {
            version::probe(launch).await;
        }
    }

    /// The private directory of a judge, with its configuration files.
    fn prepare_private_dir(
        &self,
        judge: &Judge,
        before: Option<&str>,
        extra: &[String],
        variables: &[(OsString, OsString)],
    ) -> Result<(PrivateDir, JudgeConfig), Failure> {
        judge.check_args(extra)?;
        let private = PrivateDir::new()?;
        let tools = self.tools.as_deref().unwrap_or_default();
        let session = JudgeSetup {
            private_dir: private.path(),
            tools,
            dir: &self.cwd,
            extra_args: extra,
            variables,
            preflight_output: before,
        };
        let config = (judge.configure)(&session)
            .map_err(|reason| judge.unsupported_version(&self.command_name(), &reason))?;
        private.populate(&config)?;
        Ok((private, config))
    }

    /// The schema of a structured answer, in the form that the CLI takes.
    fn schema(&self, invocation: &Invocation) -> Option<Json> {
        let schema = invocation.answer_schema.is_structured().then_some(&*invocation.json_schema)?;
        match self.preset {
            Some(preset) => (preset.schema)(invocation.answer_schema, schema),
            None => Some(schema.clone()),
        }
    }

    fn attempt_files(
        &self,
        schema: Option<&Json>,
        granted: &ToolGrants<'_>,
    ) -> Result<Option<AttemptFiles>, Failure> {
        let Some(preset) = self.preset else { return Ok(None) };
        let servers = (preset.server_passing == ServerPassing::InFile && !granted.servers.is_empty())
            .then(|| granted.mcp_config());
        match preset.uses_files || servers.is_some() {
            true => AttemptFiles::new(schema, servers.as_ref()).map(Some),
            false => Ok(None),
        }
    }

    /// Refuses `args` that could widen what the manifest restricts.
    fn check_tool_grants(&self, granted: &ToolGrants<'_>) -> Result<(), Failure> {
        let Some(preset) = self.preset.filter(|_| granted.restricts()) else { return Ok(()) };
        match self.args.iter().map(flag_name).find(|arg| preset.tool_flags.contains(&arg.as_str())) {
            None => Ok(()),
            Some(own) => Err(Failure::failed(format!(
                "the manifest's `effectors` say which tools this participant has, and so does `{own}` in the `args` of \
                 its executor; leave one of them out"
            ))),
        }
    }
}

/// The arguments for one prompt: the block's, else those of the manifest that `cli` names.
fn prompt_arguments(
    block: &Block<'_>,
    cli: Option<&Cli>,
    preset: Option<&Preset>,
) -> Result<Vec<String>, ConfigError> {
    let own = block.texts("args")?;
    let Some(cli) = cli.filter(|_| preset.is_none() && !block.has("args")) else { return Ok(own) };
    cli.args.clone().ok_or_else(|| {
        let name = cli.command.as_deref().unwrap_or_default();
        ConfigError::for_key("args", format!("`{name}` is described as a server, which takes no plain prompt")).with_help(
            "set `args` to those with which it reads one prompt on stdin and prints its answer; `[]` if it needs none",
        )
    })
}

/// A preset is confined unless the block says otherwise. A command of the user's own is not (X15), since it may create
/// files beside the ledger's directory, which a sandbox that protects the ledger cannot allow.
fn parse_sandbox(block: &Block<'_>, preset: Option<&Preset>) -> Result<Option<Confinement>, ConfigError> {
    let confined = if block.has("sandbox") { block.flag("sandbox")? } else { preset.is_some() };
    Ok(confined.then(|| preset.map_or(Confinement::UserCommand, |_| Confinement::VendorPreset)))
}

/// The tools of the block, checked against the preset.
fn parse_tools(
    block: &Block<'_>,
    preset: Option<&'static Preset>,
) -> Result<Option<Vec<String>>, ConfigError> {
    if !block.has("tools") {
        return Ok(None);
    }
    let tools = block.texts("tools")?;
    let wrong = |tool: &&String| tool.trim().is_empty() || tool.contains([',', '\n', '\r']);
    if let Some(tool) = tools.iter().find(wrong) {
        return Err(ConfigError::for_key("tools", format!("`{tool}` is not the name of a tool"))
            .with_help("list the names that the CLI has for its tools, one by one"));
    }
    match preset {
        None => Err(ConfigError::for_key("tools", "only a preset has tools that can be named")
            .with_help("a command of your own runs as `command` and `args` have it; leave `tools` out")),
        Some(Preset { judge: None, name, .. }) => match tools.is_empty() {
            true => Ok(Some(tools)),
            false => Err(ConfigError::for_key("tools", format!("the preset `{name}` has no tools"))
                .with_help("leave it out")),
        },
        Some(Preset { judge: Some(judge), name, .. }) => {
            judge.check_tools(name, &tools)?;
            Ok(Some(tools))
        }
    }
}

/// A flag without its value.
fn flag_name(arg: impl AsRef<str>) -> String {
    arg.as_ref().split('=').next().unwrap_or_default().to_owned()
}

fn preset_names() -> Vec<&'static str> {
    PRESETS.iter().map(|preset| preset.name).collect()
}

fn find_preset(key: &str, name: &str) -> Result<&'static Preset, ConfigError> {
    PRESETS.iter().find(|preset| [preset.name, preset.executor].contains(&name)).ok_or_else(|| {
        let names = preset_names();
        ConfigError::for_key(key, format!("there is no preset `{name}`")).with_help(
            match nearest(name, &names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("presets: {}; any other program is a `command`", quoted_list(&names)),
            },
        )
    })
}

/// The extra arguments, without those that the preset gives anyway. A flag that the preset sets to another value is
/// refused: it would appear twice, and which one wins depends on the CLI.
fn check_args(
    args: Vec<String>,
    preset: Option<&'static Preset>,
    model: Option<&str>,
) -> Result<Vec<String>, ConfigError> {
    let Some(preset) = preset else {
        return match (model, args.iter().find(|arg| flag_name(arg) == "--model")) {
            (Some(_), Some(_)) => {
                Err(ConfigError::for_key("args", "the model is named twice: in `model` and in `args`"))
            }
            _ => Ok(args),
        };
    };
    if preset.needs_model && model.is_none() {
        return Err(ConfigError::for_key("model", format!("the preset `{}` needs a `model`", preset.name))
            .with_help("name one: `--model llama3.2`, or `model = \"llama3.2\"` in the executor's table"));
    }
    if let Some(own) = args.iter().map(flag_name).find(|arg| preset.reserved_flags.contains(&arg.as_str())) {
        let help = match own.as_str() {
            "--model" | "-m" => "use the key `model`",
            _ => "leave it out; or leave `preset` out, and set `command`, `args` and `output`",
        };
        return Err(ConfigError::for_key("args", format!("`{own}` is set by the preset `{}`", preset.name))
            .with_help(help));
    }
    Ok(args.into_iter().filter(|arg| !preset.implied_flags.contains(&arg.as_str())).collect())
}

fn resolve_cwd(settings: &Settings, written: Option<&str>) -> Result<PathBuf, ConfigError> {
    let Some(written) = written else { return Ok(settings.dir.clone()) };
    let cwd = settings.dir.join(written);
    if cwd.is_dir() {
        Ok(cwd)
    } else {
        Err(ConfigError::for_key("cwd", format!("`{}` is not a directory", cwd.display())))
    }
}

fn parse_output(written: Option<&str>, preset: Option<&'static Preset>) -> Result<OutputFormat, ConfigError> {
    match (written, preset) {
        (None, None) => Ok(OutputFormat::Text),
        (None, Some(preset)) => Ok(preset.output),
        (Some(written), preset) => {
            let names = OutputFormat::ALL.map(OutputFormat::as_str);
            let output =
                OutputFormat::ALL.into_iter().find(|output| output.as_str() == written).ok_or_else(|| {
                    ConfigError::for_key("output", format!("there is no output `{written}`"))
                        .with_help(format!("known: {}", quoted_list(&names)))
                })?;
            match preset {
                Some(preset) if preset.output != output => Err(ConfigError::for_key(
                    "output",
                    format!("the preset `{}` prints `{}`", preset.name, preset.output.as_str()),
                )
                .with_help("leave `output` out; or leave `preset` out, and set `command` and `args`")),
                _ => Ok(output),
            }
        }
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
