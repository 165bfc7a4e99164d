//! Reads and checks the block of one executor, and turns an invocation into a command line. The key `cli`
//! names a manifest that describes a CLI.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use quorate_kernel::ports::executor::{ConfigError, Failure, Invocation, Servers, Settings, SideEffect};
use quorate_manifest::{frontmatter, tree};
use quorate_protocol::Json;
use quorate_protocol::answers::Schema;
use serde::Deserialize;
use serde_json::json;

use super::call::{AttemptFiles, Concurrency};
use super::command::{Launch, check_no_nul};
use super::environment::{BaseVariables, Environment};
use super::judge::{Judge, JudgeConfig, JudgeSetup, PrivateDir};
use super::judge::{flag_name, lists};
use super::presets::{ArgumentInputs, CliPreset, OutputFormat, PRESETS, ServerPassing};
use super::sandbox::{Confinement, Sandbox};
use super::tool_grants::ToolGrants;
use super::{environment, oneshot};
use crate::block;
use crate::block::{Block, nearest, quoted_list};
use quorate_kernel::files;

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
    preset: Option<&'static CliPreset>,
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
            preset = cli.preset;
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
            output: parse_output(&block, preset)?,
            turn_schema: block::parse_answer_form(block.text("answer")?)?,
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

    /// What its answers depend on, apart from its settings block.
    pub(super) fn fingerprint(&self) -> Json {
        self.cli.as_ref().map_or(Json::Null, Cli::fingerprint)
    }

    /// The side effect that a user trusts. It omits the preset's own arguments, since the workspace does not choose them.
    pub(super) fn side_effect(&self) -> SideEffect {
        let env = self.environment.names();
        let mut side_effect =
            super::side_effect::of_command(&self.command, &self.args, env, &self.dir, &self.cwd);
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
        variables.extend(member.map(|member| (environment::MEMBER_ID_VARIABLE.into(), member.into())));
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
        let program = super::command::find_command(&self.command, &self.dir)?;
        let cwd = private.as_ref().map_or_else(|| self.cwd.clone(), PrivateDir::work);
        let sandbox = self.sandbox.map(|confinement| Sandbox::new(confinement, &program, &cwd)).transpose();
        let sandbox = sandbox.map_err(|error| {
            Failure::failed(format!("cannot make a temporary directory: {error}; check TMPDIR"))
        })?;
        Ok(Launch {
            program,
            arguments,
            variables,
            cwd,
            sandbox: sandbox.flatten(),
            _private_dir: private.map(|private| private.dir),
        })
    }

    /// Learns the version of a preset's program.
    pub(super) async fn learn_version(&self) {
        if let (Some(_), Ok(launch)) = (self.preset, self.query_launch(&[])) {
            oneshot::probe_version(launch).await;
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
        match self.args.iter().map(|arg| flag_name(arg)).find(|flag| lists(preset.tool_flags, flag)) {
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
    preset: Option<&CliPreset>,
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
fn parse_sandbox(block: &Block<'_>, preset: Option<&CliPreset>) -> Result<Option<Confinement>, ConfigError> {
    let confined = if block.has("sandbox") { block.flag("sandbox")? } else { preset.is_some() };
    Ok(confined.then(|| preset.map_or(Confinement::UserCommand, |_| Confinement::VendorPreset)))
}

/// The tools of the block, checked against the preset.
fn parse_tools(
    block: &Block<'_>,
    preset: Option<&'static CliPreset>,
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
        Some(CliPreset { judge: None, name, .. }) => match tools.is_empty() {
            true => Ok(Some(tools)),
            false => Err(ConfigError::for_key("tools", format!("the preset `{name}` has no tools"))
                .with_help("leave it out")),
        },
        Some(CliPreset { judge: Some(judge), name, .. }) => {
            judge.check_tools(name, &tools)?;
            Ok(Some(tools))
        }
    }
}

fn preset_names() -> Vec<&'static str> {
    PRESETS.iter().map(|preset| preset.name).collect()
}

fn find_preset(key: &str, name: &str) -> Result<&'static CliPreset, ConfigError> {
    PRESETS.iter().find(|preset| [preset.name, preset.executor].contains(&name)).ok_or_else(|| {
        let names = preset_names();
        ConfigError::for_key(key, format!("unknown preset `{name}`")).with_help(match nearest(name, &names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("presets: {}; any other program is a `command`", quoted_list(&names)),
        })
    })
}

/// The extra arguments, without those that the preset gives anyway. A flag that the preset sets to another value is
/// refused: it would appear twice, and which one wins depends on the CLI.
fn check_args(
    args: Vec<String>,
    preset: Option<&'static CliPreset>,
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
    if let Some(own) = args.iter().map(|arg| flag_name(arg)).find(|flag| lists(preset.reserved_flags, flag)) {
        let help = match own {
            "--model" | "-m" => "use the key `model`",
            _ => "leave it out; or leave `preset` out, and set `command`, `args` and `output`",
        };
        return Err(ConfigError::for_key("args", format!("`{own}` is set by the preset `{}`", preset.name))
            .with_help(help));
    }
    Ok(args.into_iter().filter(|arg| !lists(preset.implied_flags, arg)).collect())
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

fn parse_output(block: &Block<'_>, preset: Option<&'static CliPreset>) -> Result<OutputFormat, ConfigError> {
    let known = OutputFormat::ALL.map(OutputFormat::as_str);
    let written = block.word("output", OutputFormat::parse, &known)?;
    match (written, preset) {
        (Some(output), Some(preset)) if preset.output != output => {
            let message = format!("the preset `{}` prints `{}`", preset.name, preset.output.as_str());
            Err(ConfigError::for_key("output", message)
                .with_help("leave `output` out; or leave `preset` out, and set `command` and `args`"))
        }
        (written, preset) => Ok(written.or(preset.map(|preset| preset.output)).unwrap_or(OutputFormat::Text)),
    }
}

const CLI_KEY: &str = "cli";
/// The longest manifest that is read, in bytes.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;
/// The placeholder for the model's name in a template.
const MODEL_PLACEHOLDER: &str = "{value}";

#[derive(Debug, Default)]
struct Cli {
    /// The preset of that name, or of the manifest's `bin`.
    preset: Option<&'static CliPreset>,
    command: Option<String>,
    /// Its arguments for one prompt; `None` if neither preset nor manifest gives them.
    args: Option<Vec<String>>,
    /// The model unless the block names another.
    model: Option<String>,
    path: Option<PathBuf>,
    /// The arguments that set the model, with [`MODEL_PLACEHOLDER`] in the model's place.
    model_args: Option<Vec<String>>,
}

impl Cli {
    /// Reads the key's value; a path is relative to `dir`.
    fn resolve(written: &str, dir: &Path) -> Result<Self, ConfigError> {
        let is_path = written.contains('/') || Path::new(written).extension().is_some();
        if !is_path {
            return Ok(Cli { preset: Some(find_preset(CLI_KEY, written)?), ..Cli::default() });
        }
        let path = dir.join(written);
        let refuse = |problem: String| {
            ConfigError::for_key(CLI_KEY, format!("`{}` {problem}", path.display())).with_help(format!(
                "name the AIP-45 manifest of a CLI by its path, or one of {}",
                quoted_list(&preset_names())
            ))
        };
        let text = files::read_text(&path, MAX_MANIFEST_BYTES).map_err(|error| match error.kind() {
            std::io::ErrorKind::FileTooLarge => {
                refuse(format!("is larger than {} MiB", MAX_MANIFEST_BYTES >> 20))
            }
            _ => refuse(format!("cannot be read: {error}")),
        })?;
        let yaml = frontmatter::split(&text)
            .map_err(|problem| refuse(format!("is not a manifest: {}", problem.message)))?;
        let manifest = match tree::yaml::parse(&text[yaml.yaml]) {
            (Some(node), problems) if problems.is_empty() => node.to_json(),
            (_, problems) => {
                let why = problems.first().map_or("it is empty", |problem| &problem.message);
                return Err(refuse(format!("cannot be read: {why}")));
            }
        };
        let manifest = serde_json::from_value(manifest);
        let manifest = manifest.map_err(|error| refuse(format!("is not a manifest of a CLI: {error}")))?;
        Ok(Cli::from_manifest(manifest, &path))
    }

    fn from_manifest(manifest: CliManifest, path: &Path) -> Self {
        let CliManifest { bin, protocol, bin_args, models, options } = manifest;
        let preset = PRESETS.iter().find(|preset| bin.rsplit('/').next() == Some(preset.command));
        let model_option = options.into_iter().flatten().find(|option| option.id.as_deref() == Some("model"));
        let model_args = model_option.and_then(|option| option.bin_args_template);
        let passes_models = preset.is_some() || model_args.is_some();
        Cli {
            preset,
            command: Some(resolve_bin(&bin, path)),
            args: (preset.is_none() && protocol == "proprietary").then(|| bin_args.unwrap_or_default()),
            model: models
                .and_then(|models| models.default)
                .filter(|default| passes_models && !default.is_empty()),
            path: Some(path.to_owned()),
            model_args: model_args.filter(|_| preset.is_none()),
        }
    }

    /// The arguments that set the model; `None` without a template.
    fn model_args(&self, model: &str) -> Option<Vec<String>> {
        let template = self.model_args.as_ref()?;
        Some(template.iter().map(|arg| arg.replace(MODEL_PLACEHOLDER, model)).collect())
    }

    /// What answers depend on: everything that was read from the manifest.
    fn fingerprint(&self) -> Json {
        let preset = self.preset.map(|preset| preset.name);
        json!({"preset": preset, "command": self.command, "args": self.args, "model": self.model,
               "model_args": self.model_args})
    }
}

/// A program with a `/` is relative to its manifest.
fn resolve_bin(bin: &str, path: &Path) -> String {
    let folder = path.parent().unwrap_or(Path::new(""));
    if bin.contains('/') { folder.join(bin).to_string_lossy().into_owned() } else { bin.to_owned() }
}

/// The keys of a CLI's manifest that apply here.
#[derive(Deserialize)]
struct CliManifest {
    bin: String,
    protocol: String,
    bin_args: Option<Vec<String>>,
    models: Option<CliModels>,
    options: Option<Vec<CliOption>>,
}

#[derive(Deserialize)]
struct CliModels {
    default: Option<String>,
}

#[derive(Deserialize)]
struct CliOption {
    id: Option<String>,
    bin_args_template: Option<Vec<String>>,
}

#[cfg(test)]
mod cli_tests {
    #![expect(clippy::disallowed_methods, reason = "the tests write manifests")]

    use super::*;

    fn read(frontmatter: &str) -> Result<Cli, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("AGENT-CLI.md"), format!("---\n{frontmatter}\n---\nText\n")).unwrap();
        Cli::resolve("AGENT-CLI.md", dir.path())
    }

    #[test]
    fn a_name_is_a_preset() {
        let cli = Cli::resolve("codex", Path::new("/")).unwrap();
        assert_eq!((cli.preset.map(|preset| preset.name), cli.command), (Some("codex"), None));
        let error = Cli::resolve("codxe", Path::new("/")).unwrap_err();
        assert_eq!(
            (error.key.as_deref(), error.help.as_deref()),
            (Some("cli"), Some("did you mean `codex`?"))
        );
    }

    #[test]
    fn a_cli_that_a_preset_knows_is_called_as_the_preset_has_it() {
        let cli =
            read("bin: gemini\nbin_args: [--acp]\nprotocol: proprietary\nmodels: {default: m}").unwrap();
        assert_eq!(
            (cli.preset.map(|preset| preset.name), cli.command.as_deref(), cli.args.as_ref()),
            (Some("gemini"), Some("gemini"), None)
        );
        assert_eq!((cli.model.as_deref(), cli.model_args("m")), (Some("m"), None));
    }

    #[test]
    fn any_other_is_called_with_its_arguments_unless_they_start_a_server() {
        let options =
            "options:\n  - id: model\n    type: string\n    bin_args_template: [\"-m={value}\", run]";
        let cli = read(&format!("bin: talk\nbin_args: [--plain]\nprotocol: proprietary\n{options}")).unwrap();
        assert_eq!(cli.args.as_deref(), Some(&["--plain".to_owned()][..]));
        assert_eq!(cli.model_args("x"), Some(vec!["-m=x".to_owned(), "run".to_owned()]));
        for protocol in ["acp", "mcp"] {
            let cli = read(&format!("bin: hermes\nbin_args: [acp]\nprotocol: {protocol}")).unwrap();
            assert_eq!((cli.args, cli.model), (None, None));
        }
    }

    #[test]
    fn a_program_with_a_slash_is_beside_the_manifest() {
        assert_eq!(resolve_bin("bin/talk", Path::new("/srv/cli/AGENT-CLI.md")), "/srv/cli/bin/talk");
        assert_eq!(resolve_bin("/opt/talk", Path::new("/srv/cli/AGENT-CLI.md")), "/opt/talk");
    }

    #[test]
    fn what_is_no_manifest_says_so() {
        for (frontmatter, says) in [
            ("protocol: acp", "missing field `bin`"),
            ("bin: x", "missing field `protocol`"),
            ("bin: x\nprotocol: acp\nbin_args: acp", "expected a sequence"),
            ("bin: [", "invalid YAML"),
        ] {
            let error = read(frontmatter).unwrap_err();
            assert!(error.message.contains(says), "{error:?}");
        }
        assert!(
            Cli::resolve("gone/AGENT-CLI.md", Path::new("/")).unwrap_err().message.contains("cannot be read")
        );
    }
}

#[cfg(test)]
mod tests {
    //! Which blocks are accepted and which are refused, by key and with help.

    #![expect(clippy::disallowed_methods, reason = "the manifests that blocks name are written here")]

    use std::sync::Arc;
    use std::time::Duration;

    use quorate_kernel::ports::executor::{ConfigError, Invocation};
    use quorate_kernel::single_call;
    use quorate_protocol::answers::Schema;
    use serde_json::{Value, json};

    use super::{Config, Confinement, Launch};
    use crate::block::test_settings;
    use crate::executor::agent_cli::tool_grants::fixture;

    fn read(block: Value) -> Result<Config, ConfigError> {
        read_in(std::path::Path::new("/"), block)
    }

    fn read_in(dir: &std::path::Path, block: Value) -> Result<Config, ConfigError> {
        Config::parse(&test_settings(dir, &block))
    }

    #[track_caller]
    fn refused(block: Value, key: Option<&str>, says: &str) {
        let error = read(block).unwrap_err();
        assert_eq!(error.key.as_deref(), key, "{error:?}");
        assert!(error.message.contains(says), "{error:?}");
    }

    #[test]
    fn a_block_says_what_to_start() {
        refused(json!({}), None, "neither `command` nor `preset`");
        refused(json!({"command": ["x"]}), Some("command"), "must be a text, not a list");
        refused(json!({"preset": "claud"}), Some("preset"), "unknown preset `claud`");
        refused(json!({"command": "a\0b"}), Some("command"), "NUL");
        refused(json!({"command": "x", "args": ["y", "\0"]}), Some("args"), "NUL");
        assert_eq!(read(json!({"preset": "claude"})).unwrap().command_name(), "claude");
        assert_eq!(read(json!({"preset": "claude", "command": "bin/mine"})).unwrap().command_name(), "mine");
    }

    #[test]
    fn what_nothing_reads_is_refused() {
        refused(json!({"command": "x", "timout": 3}), Some("timout"), "unknown key");
        refused(json!({"command": "x", "output": "xml"}), Some("output"), "cannot be `xml`");
        refused(json!({"preset": "claude", "output": "text"}), Some("output"), "prints `claude-json`");
        refused(json!({"command": "x", "env": ["A=b"]}), Some("env"), "not the name");
        refused(json!({"command": "x", "cwd": "no/such"}), Some("cwd"), "not a directory");
        refused(json!({"command": "x", "env_clear": "yes"}), Some("env_clear"), "true or false");
    }

    #[test]
    fn flags_are_not_given_twice() {
        let recipe = read(json!({"preset": "claude", "args": ["--print", "--verbose", "-p"]})).unwrap();
        assert_eq!(recipe.args, ["--verbose"]);
        refused(
            json!({"preset": "claude", "args": ["--output-format=text"]}),
            Some("args"),
            "set by the preset",
        );
        refused(json!({"preset": "gemini", "args": ["-m", "x"]}), Some("args"), "set by the preset");
        refused(json!({"command": "x", "model": "m", "args": ["--model", "n"]}), Some("args"), "named twice");
    }

    #[test]
    fn ollama_needs_a_model() {
        refused(json!({"preset": "ollama"}), Some("model"), "needs a `model`");
        assert!(read(json!({"preset": "ollama", "model": "m"})).is_ok());
    }

    fn words(recipe: &Config, invocation: &Invocation) -> Vec<String> {
        let launch = recipe.prepare(invocation, None).unwrap().launch;
        launch.arguments.iter().map(|word| word.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn an_answer_is_text_or_an_object() {
        assert_eq!(read(json!({"command": "x"})).unwrap().turn_schema, Schema::PlainText);
        assert_eq!(read(json!({"command": "x", "answer": "text"})).unwrap().turn_schema, Schema::PlainText);
        assert_eq!(read(json!({"command": "x", "answer": "json"})).unwrap().turn_schema, Schema::Turn);
        refused(json!({"command": "x", "answer": "xml"}), Some("answer"), "unknown form of answer `xml`");
    }

    #[test]
    fn a_cli_is_named_or_described() {
        let dir = tempfile::tempdir().unwrap();
        let manifest = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        manifest(
            "talk.md",
            "---\nbin: sh\nbin_args: [-s]\nprotocol: proprietary\nmodels: {default: d}\noptions:\n  - {id: model, type: string, bin_args_template: [-m, \"{value}\"]}\n---\n",
        );
        manifest("server.md", "---\nbin: sh\nbin_args: [acp]\nprotocol: acp\n---\n");
        let invocation = single_call::probe_question(Duration::from_secs(1));
        let read = |block| read_in(dir.path(), block);
        assert_eq!(words(&read(json!({"cli": "talk.md"})).unwrap(), &invocation), ["-s", "-m", "d"]);
        let manifest_and_args = json!({"cli": "./talk.md", "args": ["-x"], "model": "n"});
        assert_eq!(words(&read(manifest_and_args).unwrap(), &invocation), ["-x", "-m", "n"]);
        assert_eq!(words(&read(json!({"cli": "server.md", "args": []})).unwrap(), &invocation), [""; 0]);
        let error = read(json!({"cli": "server.md"})).unwrap_err();
        assert_eq!(error.key.as_deref(), Some("args"));
        assert!(error.help.unwrap().contains("one prompt on stdin"));
        assert_eq!(read(json!({"cli": "claude", "command": "sh"})).unwrap().command_name(), "sh");
        assert_eq!(
            read(json!({"cli": "claude", "preset": "claude"})).unwrap_err().key.as_deref(),
            Some("cli")
        );
        assert_ne!(read(json!({"cli": "talk.md"})).unwrap().fingerprint(), Value::Null);
    }

    #[test]
    fn the_block_does_not_widen_what_the_manifest_allows() {
        let mut invocation = single_call::probe_question(Duration::from_secs(1));
        let recipe =
            read(json!({"preset": "claude", "command": "sh", "args": ["--allowedTools=Bash"]})).unwrap();
        let failure = recipe.prepare(&invocation, None).err().unwrap().to_string();
        assert!(failure.contains("`--allowedTools`") && failure.contains("a judge"), "X15: {failure}");
        invocation.conversation = Some(Arc::new(fixture::conversation(None, &[])));
        assert!(
            words(&recipe, &invocation).contains(&"--allowedTools=Bash".to_owned()),
            "no restriction applies"
        );
        invocation.conversation = Some(Arc::new(fixture::conversation(Some(&["Read"]), &[])));
        let failure = recipe.prepare(&invocation, None).err().unwrap().to_string();
        assert!(failure.contains("`--allowedTools`") && failure.contains("effectors"), "{failure}");
    }

    #[test]
    fn text_is_asked_for_without_a_schema() {
        let recipe = read(json!({"preset": "claude", "command": "sh"})).unwrap();
        let mut invocation = single_call::probe_question(Duration::from_secs(1));
        assert!(words(&recipe, &invocation).contains(&"--json-schema".to_owned()));
        invocation.answer_schema = Schema::PlainText;
        assert!(!words(&recipe, &invocation).contains(&"--json-schema".to_owned()));
    }

    #[test]
    fn a_preset_is_confined_and_a_command_of_the_users_own_is_not_unless_its_table_says_so() {
        // X15
        let whose = |block: Value| read(block).unwrap().sandbox;
        assert_eq!(whose(json!({"preset": "claude"})), Some(Confinement::VendorPreset));
        assert_eq!(whose(json!({"preset": "claude", "sandbox": false})), None);
        assert_eq!(whose(json!({"command": "x"})), None);
        assert_eq!(whose(json!({"command": "x", "sandbox": true})), Some(Confinement::UserCommand));
        refused(json!({"command": "x", "sandbox": "yes"}), Some("sandbox"), "must be true or false");
    }

    #[test]
    fn the_room_of_an_executor_is_one_for_all_that_build_it() {
        for wrong in [json!(0), json!(-1), json!(1.5)] {
            refused(json!({"command": "x", "max_processes": wrong}), Some("max_processes"), "whole number");
        }
        let enter = |block: Value| {
            let recipe = read(block).unwrap();
            async move { tokio::time::timeout(Duration::from_millis(50), recipe.concurrency.acquire()).await }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let block = || json!({"command": "x", "max_processes": 2});
            let (first, second) = (enter(block()).await.unwrap(), enter(block()).await.unwrap());
            assert!(first.has_permit() && second.has_permit());
            assert!(enter(block()).await.is_err(), "the limit is two");
            drop(second);
            assert!(enter(block()).await.is_ok());
            assert!(enter(json!({"command": "x"})).await.is_ok(), "another room");
        });
    }

    #[test]
    fn tools_are_those_that_the_preset_has() {
        // X15
        refused(json!({"command": "x", "tools": ["Read"]}), Some("tools"), "only a preset");
        refused(json!({"preset": "ollama", "model": "m", "tools": ["Read"]}), Some("tools"), "has no tools");
        refused(json!({"preset": "codex", "tools": ["Read"]}), Some("tools"), "no tool `Read`");
        refused(json!({"preset": "gemini", "tools": ["read_file"]}), Some("tools"), "no tool `read_file`");
        refused(json!({"preset": "claude", "tools": ["Read,Bash"]}), Some("tools"), "not the name");
        assert_eq!(read(json!({"command": "x"})).unwrap().tools(), None);
        assert_eq!(read(json!({"preset": "claude"})).unwrap().tools(), Some(&[][..]));
    }

    #[test]
    fn a_judge_runs_in_a_private_directory_and_a_participant_in_its_own() {
        // X15
        let recipe =
            read(json!({"preset": "claude", "command": "sh", "tools": ["Read"], "cwd": "tmp"})).unwrap();
        let mut invocation = single_call::probe_question(Duration::from_secs(1));
        let launch = recipe.prepare(&invocation, None).unwrap().launch;
        assert!(launch._private_dir.is_some() && launch.cwd.read_dir().unwrap().count() == 0, "{launch:?}");
        let words: Vec<_> = launch.arguments.iter().filter_map(|word| word.to_str()).collect();
        for word in
            ["--tools=Read", "--allowedTools=Read", "--add-dir=/tmp", "--safe-mode", "--setting-sources="]
        {
            assert!(words.contains(&word), "{word}: {words:?}");
        }
        let off = |launch: &Launch| {
            launch.variables.iter().any(|(name, _)| name == "CLAUDE_CODE_DISABLE_ATTACHMENTS")
        };
        assert!(off(&launch));
        invocation.conversation = Some(Arc::new(fixture::conversation(None, &[])));
        let launch = recipe.prepare(&invocation, None).unwrap().launch;
        assert!(
            launch._private_dir.is_none() && launch.cwd == std::path::Path::new("/tmp") && off(&launch),
            "{launch:?}"
        );
        assert!(launch.arguments.iter().any(|word| word == "--tools=Read"));
        let free = read(json!({"preset": "claude", "command": "sh"})).unwrap();
        assert!(!off(&free.prepare(&invocation, None).unwrap().launch), "its manifest restricts nothing");
    }
}
