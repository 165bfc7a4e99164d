//! The block of one executor, read and checked, and what it makes of an invocation.

use std::path::PathBuf;

use quorate_kernel::ports::executor::{Failure, Invocation, Refused, Settings};

use crate::block::{Block, listed, nearest};
use super::environment::{Base, Environment};
use super::files::AnswerFiles;
use super::output::Output;
use super::presets::{Ask, PRESETS, Preset};
use super::spawn::Launch;

const KEYS: &[&str] = &["command", "preset", "args", "model", "env", "env_clear", "cwd", "output"];

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
    /// What stdout means.
    pub(super) output: Output,
}

/// One attempt, ready to start.
pub(super) struct Prepared {
    /// What to start.
    pub(super) launch: Launch,
    /// The files it was promised, which must outlive it.
    pub(super) files: Option<AnswerFiles>,
}

impl Recipe {
    /// Reads the block.
    pub(super) fn read(settings: &Settings) -> Result<Self, Refused> {
        let block = Block::of(&settings.block, KEYS)?;
        let preset = block.text("preset")?.map(preset_named).transpose()?;
        let command = match (block.text("command")?, preset) {
            (Some(command), _) => command.to_owned(),
            (None, Some(preset)) => preset.command.to_owned(),
            (None, None) => {
                return Err(Refused::whole("neither `command` nor `preset` says what to start")
                    .with_help(format!("set `command`, or `preset` to one of {}", listed(&preset_names()))));
            }
        };
        let model = block.text("model")?.map(str::to_owned);
        let args = checked_args(block.texts("args")?, preset, model.as_deref())?;
        let base = if block.flag("env_clear")? { Base::Dropped } else { Base::Kept };
        Ok(Recipe {
            command,
            preset,
            args,
            environment: Environment::new(block.texts("env")?, base)?,
            cwd: cwd(settings, block.text("cwd")?)?,
            dir: settings.dir.clone(),
            output: output(block.text("output")?, preset)?,
            model,
        })
    }

    /// What the command is called in messages.
    pub(super) fn name(&self) -> String {
        self.command.rsplit('/').next().unwrap_or(&self.command).to_owned()
    }

    /// Everything that is needed to start one attempt.
    pub(super) fn prepare(&self, invocation: &Invocation) -> Result<Prepared, Failure> {
        let files = match self.preset {
            Some(preset) if preset.wants_files => Some(AnswerFiles::new(&invocation.schema)?),
            _ => None,
        };
        let ask = Ask {
            model: self.model.as_deref(),
            extra: &self.args,
            schema: &invocation.schema,
            files: files.as_ref(),
        };
        let arguments = self.preset.map_or_else(|| ask.plain(), |preset| (preset.arguments)(&ask));
        let launch = Launch {
            program: super::command::find(&self.command, &self.dir)?,
            arguments,
            variables: self.environment.variables(),
            cwd: self.cwd.clone(),
        };
        Ok(Prepared { launch, files })
    }
}

fn preset_names() -> Vec<&'static str> {
    PRESETS.iter().map(|preset| preset.name).collect()
}

fn preset_named(name: &str) -> Result<&'static Preset, Refused> {
    PRESETS.iter().find(|preset| preset.name == name).ok_or_else(|| {
        let names = preset_names();
        Refused::key("preset", format!("there is no preset `{name}`")).with_help(
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
) -> Result<Vec<String>, Refused> {
    let flag = |arg: &String| arg.split('=').next().unwrap_or(arg).to_owned();
    let Some(preset) = preset else {
        return match (model, args.iter().find(|arg| flag(arg) == "--model")) {
            (Some(_), Some(_)) => {
                Err(Refused::key("args", "the model is named twice: in `model` and in `args`"))
            }
            _ => Ok(args),
        };
    };
    if preset.needs_model && model.is_none() {
        return Err(Refused::key("model", format!("the preset `{}` needs a `model`", preset.name))
            .with_help("for example `model = \"llama3.2\"` in the executor's table"));
    }
    if let Some(own) = args.iter().map(flag).find(|arg| preset.own_flags.contains(&arg.as_str())) {
        let help = match own.as_str() {
            "--model" | "-m" => "use the key `model`",
            _ => "leave it out; or leave `preset` out, and set `command`, `args` and `output`",
        };
        return Err(
            Refused::key("args", format!("`{own}` is set by the preset `{}`", preset.name)).with_help(help)
        );
    }
    Ok(args.into_iter().filter(|arg| !preset.implied.contains(&arg.as_str())).collect())
}

fn cwd(settings: &Settings, written: Option<&str>) -> Result<PathBuf, Refused> {
    let Some(written) = written else { return Ok(settings.dir.clone()) };
    let cwd = settings.dir.join(written);
    if cwd.is_dir() {
        Ok(cwd)
    } else {
        Err(Refused::key("cwd", format!("`{}` is not a directory", cwd.display())))
    }
}

fn output(written: Option<&str>, preset: Option<&'static Preset>) -> Result<Output, Refused> {
    match (written, preset) {
        (None, None) => Ok(Output::Text),
        (None, Some(preset)) => Ok(preset.output),
        (Some(written), preset) => {
            let names = Output::ALL.map(Output::as_str);
            let output =
                Output::ALL.into_iter().find(|output| output.as_str() == written).ok_or_else(|| {
                    Refused::key("output", format!("there is no output `{written}`"))
                        .with_help(format!("known: {}", listed(&names)))
                })?;
            match preset {
                Some(preset) if preset.output != output => Err(Refused::key(
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
