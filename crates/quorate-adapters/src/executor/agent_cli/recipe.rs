//! The block of one executor, read and checked, and what it makes of an invocation. What `cli` names is read in
//! `recipe/cli.rs`.

mod cli;

use std::ffi::OsString;
use std::path::PathBuf;

use quorate_kernel::ports::executor::{ConfigError, Failure, Invocation, Servers, Settings, SideEffect};
use quorate_protocol::Json;
use quorate_protocol::answers::Schema;

use super::command::startable;
use super::environment::{Base, Environment};
use super::files::AnswerFiles;
use super::granted::Granted;
use super::judge::{Desk, Judge};
use super::output::Output;
use super::presets::{Ask, PRESETS, Preset, TakesServers};
use super::private_dir::{Furniture, PrivateDir};
use super::room::Room;
use super::sandbox::{Sandbox, Whose};
use super::spawn::Launch;
use super::version;
use crate::block::{Block, listed, nearest};
use cli::Cli;

const TEXT: &str = "text";
const JSON: &str = "json";
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
pub(super) struct Recipe {
    command: String,
    preset: Option<&'static Preset>,
    args: Vec<String>,
    environment: Environment,
    dir: PathBuf,
    cwd: PathBuf,
    /// The model that the settings name.
    pub(super) model: Option<String>,
    pub(super) output: Output,
    /// The form of its turns in a conversation.
    pub(super) turns: Schema,
    cli: Option<Cli>,
    servers: Servers,
    /// How many of it may run at once.
    pub(super) room: Room,
    /// How it is confined; `None` where the block wants that.
    sandbox: Option<Whose>,
    /// The tools that the block names.
    tools: Option<Vec<String>>,
}

/// One attempt, ready to start.
pub(super) struct Prepared {
    pub(super) launch: Launch,
    /// The files it was promised, which must outlive it.
    pub(super) files: Option<AnswerFiles>,
}

impl Recipe {
    pub(super) fn read(settings: &Settings) -> Result<Self, ConfigError> {
        let block = Block::of(&settings.block, KEYS)?;
        let mut preset = block.text("preset")?.map(|name| preset_named("preset", name)).transpose()?;
        let cli = block.text("cli")?.map(|cli| Cli::read(cli, &settings.dir)).transpose()?;
        if let Some(cli) = &cli {
            if preset.is_some() {
                return Err(ConfigError::for_key("cli", "`cli` and `preset` both say what to start")
                    .with_help("leave one of them out"));
            }
            preset = cli.preset.map(|name| preset_named("cli", name)).transpose()?;
        }
        let declared = cli.as_ref().and_then(|cli| cli.command.as_deref());
        let command = match (block.text("command")?.or(declared), preset) {
            (Some(command), _) => command.to_owned(),
            (None, Some(preset)) => preset.command.to_owned(),
            (None, None) => {
                return Err(ConfigError::for_block("neither `command` nor `preset` says what to start")
                    .with_help(format!("set `command`, or `preset` to one of {}", listed(&preset_names()))));
            }
        };
        startable(&command, &block.texts("args")?)?;
        let given = block.text("model")?.or(cli.as_ref().and_then(|cli| cli.model.as_deref()));
        let model = given.map(str::to_owned);
        let args = checked_args(arguments(&block, cli.as_ref(), preset)?, preset, model.as_deref())?;
        let base = if block.flag("env_clear")? { Base::Dropped } else { Base::Kept };
        Ok(Recipe {
            command,
            preset,
            args,
            environment: Environment::new(block.texts("env")?, base)?,
            cwd: cwd(settings, block.text("cwd")?)?,
            dir: settings.dir.clone(),
            output: output(block.text("output")?, preset)?,
            turns: turns(block.text("answer")?)?,
            servers: settings.servers.clone(),
            room: Room::of(settings, block.count("max_processes")?),
            sandbox: sandbox(&block, preset)?,
            tools: tools(&block, preset)?,
            cli,
            model,
        })
    }

    /// Refuses where the command is not there.
    pub(super) fn installed(&self) -> Result<(), ConfigError> {
        let known = self.preset.filter(|preset| preset.command == self.command);
        super::command::installed(&self.command, &self.dir, known.map(|preset| preset.install))
    }

    /// What the command is called in messages.
    pub(super) fn name(&self) -> String {
        self.command.rsplit('/').next().unwrap_or(&self.command).to_owned()
    }

    /// Whether the command is given the MCP servers that a participant may use.
    pub(super) fn passes_servers(&self) -> bool {
        self.preset.is_some_and(|preset| preset.servers != TakesServers::Not)
    }

    /// What its answers depend on beside its block.
    pub(super) fn fingerprint(&self) -> Json {
        self.cli.as_ref().map_or(Json::Null, Cli::fingerprint)
    }

    /// What starting it means. The preset's own arguments are not the workspace's to choose, so they are left out.
    pub(super) fn act(&self) -> SideEffect {
        let mut act = super::act::start(&self.command, &self.args, self.environment.listed(), &self.cwd);
        if self.command.contains('/') {
            act.files.extend(super::command::find(&self.command, &self.dir).ok());
        }
        if self.cwd != self.dir {
            act.what.push_str(&format!(" in {}", self.cwd.display()));
        }
        act.files.extend(self.cli.as_ref().and_then(|cli| cli.path.clone()));
        act
    }

    /// How its CLI is called as a judge, where it has something to take away.
    pub(super) fn judge(&self) -> Option<&'static Judge> {
        self.preset.and_then(|preset| preset.judge)
    }

    /// The tools that a judge of it has; `None` where nothing is known of them.
    pub(super) fn tools(&self) -> Option<&[String]> {
        self.preset.map(|_| self.tools.as_deref().unwrap_or_default())
    }

    /// A call of the CLI for what it says of itself, with no prompt behind it.
    pub(super) fn asks_itself(&self, arguments: &[&str]) -> Result<Launch, Failure> {
        let private = PrivateDir::new()?;
        let arguments = arguments.iter().map(Into::into).collect();
        let mut variables = self.environment.variables();
        // It needs no login, and leaves nothing in the user's directory.
        variables.extend(self.judge().map(|judge| (judge.home.into(), private.home().into())));
        self.launch(arguments, variables, Some(private))
    }

    /// Everything that is needed to start one attempt. `before` is what the judge's call before has printed.
    pub(super) fn prepare(&self, invocation: &Invocation, before: Option<&str>) -> Result<Prepared, Failure> {
        let schema = self.schema(invocation);
        let mut granted = Granted::of(invocation.conversation.as_deref(), &self.servers, &self.dir);
        let judged = self.judge().filter(|_| invocation.conversation.is_none());
        if invocation.conversation.is_some() {
            granted.allowed = granted.allowed.or(self.tools.as_deref());
        }
        self.may_restrict(&granted)?;
        let files = self.files(schema.as_ref(), &granted)?;
        let named = self.model.as_deref();
        let by_template = named.zip(self.cli.as_ref()).and_then(|(model, cli)| cli.model_args(model));
        let model = named.filter(|_| by_template.is_none());
        let extra = [self.args.clone(), by_template.unwrap_or_default()].concat();
        // Whoever is given a server is given what the server needs.
        let needed = if self.passes_servers() { granted.variables() } else { Vec::new() };
        let mut variables = self.environment.variables_and(&needed);
        let private = judged.map(|judge| self.private(judge, before, &extra, &variables)).transpose()?;
        let furniture = private.as_ref().map(|(_, furniture)| furniture);
        let ask = Ask {
            model,
            extra: &extra,
            schema: schema.as_ref(),
            files: files.as_ref(),
            granted: &granted,
            furniture,
        };
        let arguments = self.preset.map_or_else(|| ask.plain(), |preset| (preset.arguments)(&ask));
        // What the manifest or the table restricts, `@path` in what others say must not widen.
        let attachments =
            self.preset.filter(|_| granted.allowed.is_some()).and_then(|preset| preset.no_attachments);
        let more = attachments.map(|name| (name.into(), "1".into()));
        variables.extend(
            more.into_iter().chain(furniture.into_iter().flat_map(|all| all.variables.iter().cloned())),
        );
        let launch = self.launch(arguments, variables, private.map(|(private, _)| private))?;
        Ok(Prepared { launch, files })
    }

    /// The start of the program: in a private directory, where there is one.
    fn launch(
        &self,
        arguments: Vec<OsString>,
        variables: Vec<(OsString, OsString)>,
        private: Option<PrivateDir>,
    ) -> Result<Launch, Failure> {
        let program = super::command::find(&self.command, &self.dir)?;
        let cwd = private.as_ref().map_or_else(|| self.cwd.clone(), PrivateDir::work);
        let sandbox = self.sandbox.map(|whose| Sandbox::of(whose, &program, &cwd)).transpose();
        let sandbox = sandbox.map_err(|error| {
            Failure::failed(format!("cannot make a temporary directory: {error}; check TMPDIR"))
        })?;
        Ok(Launch { program, arguments, variables, cwd, sandbox: sandbox.flatten(), _private: private })
    }

    /// Learns the version of a program that is known by name.
    pub(super) async fn learn_version(&self) {
        if let (Some(_), Ok(launch)) = (self.preset, self.asks_itself(&[])) {
            version::learn(launch).await;
        }
    }

    /// The private directory of a judge, furnished.
    fn private(
        &self,
        judge: &Judge,
        before: Option<&str>,
        extra: &[String],
        variables: &[(OsString, OsString)],
    ) -> Result<(PrivateDir, Furniture), Failure> {
        judge.refuses(extra)?;
        let private = PrivateDir::new()?;
        let tools = self.tools.as_deref().unwrap_or_default();
        let desk = Desk { private: private.path(), tools, dir: &self.cwd, extra, variables, before };
        let furniture = (judge.furnish)(&desk).map_err(|why| judge.too_different(&self.name(), &why))?;
        private.furnish(&furniture)?;
        Ok((private, furniture))
    }

    /// The schema of a structured answer, as the CLI takes it.
    fn schema(&self, invocation: &Invocation) -> Option<Json> {
        let schema = invocation.answer_schema.is_structured().then_some(&*invocation.json_schema)?;
        match self.preset {
            Some(preset) => (preset.schema)(invocation.answer_schema, schema),
            None => Some(schema.clone()),
        }
    }

    fn files(&self, schema: Option<&Json>, granted: &Granted<'_>) -> Result<Option<AnswerFiles>, Failure> {
        let Some(preset) = self.preset else { return Ok(None) };
        let servers =
            (preset.servers == TakesServers::InFile && !granted.servers.is_empty()).then(|| granted.config());
        match preset.wants_files || servers.is_some() {
            true => AnswerFiles::new(schema, servers.as_ref()).map(Some),
            false => Ok(None),
        }
    }

    /// What the manifest restricts, the block must not widen behind its back.
    fn may_restrict(&self, granted: &Granted<'_>) -> Result<(), Failure> {
        let Some(preset) = self.preset.filter(|_| granted.restricts()) else { return Ok(()) };
        match self.args.iter().map(flag).find(|arg| preset.tool_flags.contains(&arg.as_str())) {
            None => Ok(()),
            Some(own) => Err(Failure::failed(format!(
                "the manifest's `effectors` say which tools this participant has, and so does `{own}` in the `args` of \
                 its executor; leave one of them out"
            ))),
        }
    }
}

/// The arguments for one prompt: the block's, else those of the manifest that `cli` names.
fn arguments(
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

/// A preset is confined unless the block says otherwise. A command of the user's own runs as it is written (X15), since it
/// may make files beside the ledger's directory, which no sandbox that protects the ledger can allow.
fn sandbox(block: &Block<'_>, preset: Option<&Preset>) -> Result<Option<Whose>, ConfigError> {
    let confined = if block.has("sandbox") { block.flag("sandbox")? } else { preset.is_some() };
    Ok(confined.then(|| preset.map_or(Whose::Own, |_| Whose::Vendor)))
}

/// The tools that the block names, checked as far as the preset knows them.
fn tools(block: &Block<'_>, preset: Option<&'static Preset>) -> Result<Option<Vec<String>>, ConfigError> {
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
            judge.check(name, &tools)?;
            Ok(Some(tools))
        }
    }
}

fn turns(written: Option<&str>) -> Result<Schema, ConfigError> {
    match written {
        None | Some(TEXT) => Ok(Schema::PlainText),
        Some(JSON) => Ok(Schema::Turn),
        Some(other) => Err(ConfigError::for_key("answer", format!("there is no answer `{other}`")).with_help(
            "`text`: what is printed is what is said; `json`: an object with `content`, `meta` and `stateUpdate`",
        )),
    }
}

/// A flag without its value.
fn flag(arg: impl AsRef<str>) -> String {
    arg.as_ref().split('=').next().unwrap_or_default().to_owned()
}

fn preset_names() -> Vec<&'static str> {
    PRESETS.iter().map(|preset| preset.name).collect()
}

fn preset_named(key: &str, name: &str) -> Result<&'static Preset, ConfigError> {
    PRESETS.iter().find(|preset| preset.name == name).ok_or_else(|| {
        let names = preset_names();
        ConfigError::for_key(key, format!("there is no preset `{name}`")).with_help(
            match nearest(name, &names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("presets: {}; any other program is a `command`", listed(&names)),
            },
        )
    })
}

/// The extra arguments, without those that the preset gives anyway. A flag that the preset sets to a value of its own
/// would be there twice, and who wins is the CLI's secret: refused.
fn checked_args(
    args: Vec<String>,
    preset: Option<&'static Preset>,
    model: Option<&str>,
) -> Result<Vec<String>, ConfigError> {
    let Some(preset) = preset else {
        return match (model, args.iter().find(|arg| flag(arg) == "--model")) {
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
    if let Some(own) = args.iter().map(flag).find(|arg| preset.own_flags.contains(&arg.as_str())) {
        let help = match own.as_str() {
            "--model" | "-m" => "use the key `model`",
            _ => "leave it out; or leave `preset` out, and set `command`, `args` and `output`",
        };
        return Err(ConfigError::for_key("args", format!("`{own}` is set by the preset `{}`", preset.name))
            .with_help(help));
    }
    Ok(args.into_iter().filter(|arg| !preset.implied.contains(&arg.as_str())).collect())
}

fn cwd(settings: &Settings, written: Option<&str>) -> Result<PathBuf, ConfigError> {
    let Some(written) = written else { return Ok(settings.dir.clone()) };
    let cwd = settings.dir.join(written);
    if cwd.is_dir() {
        Ok(cwd)
    } else {
        Err(ConfigError::for_key("cwd", format!("`{}` is not a directory", cwd.display())))
    }
}

fn output(written: Option<&str>, preset: Option<&'static Preset>) -> Result<Output, ConfigError> {
    match (written, preset) {
        (None, None) => Ok(Output::Text),
        (None, Some(preset)) => Ok(preset.output),
        (Some(written), preset) => {
            let names = Output::ALL.map(Output::as_str);
            let output =
                Output::ALL.into_iter().find(|output| output.as_str() == written).ok_or_else(|| {
                    ConfigError::for_key("output", format!("there is no output `{written}`"))
                        .with_help(format!("known: {}", listed(&names)))
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
#[path = "recipe_tests.rs"]
mod tests;
