//! `quorate init`.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use quorate_diagnostics::{Body, codes};
use quorate_manifest::assembly::Mode;

use crate::exit::{Exit, exit_with_error};
use crate::render::Format;
use crate::terminal::Terminal;
use quorate::service::disk::{absolute, display_path};
use quorate::service::environment::Environment;
use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::init::{self, InitTemplate, WiredTool};

/// Write example files to start from; existing files are not changed
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate init council editorial\n  quorate init assembly --mode voting --name release-board\n  quorate init persona --name ciso\n  quorate init playbook --name plain-words\n  quorate init runtime --name support\n  quorate init wiring claude"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: InitCommand,
}

#[derive(Debug, Subcommand)]
enum InitCommand {
    /// A commented council.yaml, its five prompts, an example draft and a quorate.toml
    Council {
        /// The directory
        #[arg(value_name = "DIR", default_value = ".")]
        dir: PathBuf,
    },
    /// A commented ASSEMBLY.md and a persona for each of its members
    Assembly {
        /// How its members decide; without it the terminal asks
        #[arg(long, value_name = "MODE", value_parser = mode)]
        mode: Option<Mode>,
        #[command(flatten)]
        named: NamedArguments,
    },
    /// A commented PERSONA.md
    Persona(NamedArguments),
    /// A commented playbook
    Playbook(NamedArguments),
    /// A commented runtime manifest
    Runtime(NamedArguments),
    /// The files with which another tool calls Quorate: reviews of written drafts, skills, MCP tools
    ///
    /// Existing files are not changed; the command prints what to add to them.
    #[command(
        after_help = "Examples:\n  quorate init wiring claude\n  quorate init wiring pre-commit\n  quorate init wiring claude --remove"
    )]
    Wiring {
        #[arg(value_name = "TOOL", value_parser = tools())]
        tool: WiredTool,
        /// The directory of the project
        #[arg(value_name = "DIR", default_value = ".")]
        dir: PathBuf,
        /// Remove those files that were not changed since
        #[arg(long)]
        remove: bool,
    },
}

#[derive(Debug, Args)]
struct NamedArguments {
    /// Its name, in kebab case; without it the terminal asks
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The directory of the workspace to write into
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

fn tools() -> impl TypedValueParser<Value = WiredTool> {
    let values = WiredTool::ALL.map(|tool| PossibleValue::new(tool.word()).help(tool.about()));
    PossibleValuesParser::new(values)
        .try_map(|word| WiredTool::ALL.into_iter().find(|tool| tool.word() == word).ok_or("unknown tool"))
}

fn mode(word: &str) -> Result<Mode, String> {
    Mode::parse(word).ok_or_else(|| format!("the modes are: {}", Mode::ALL.map(Mode::as_str).join(", ")))
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let written = match arguments.command {
        InitCommand::Council { dir } => council(&dir, environment, terminal),
        InitCommand::Assembly { mode: None, named } => {
            ask("mode (advisory, voting, peer, hierarchy)", "--mode")
                .and_then(|word| mode(&word).map_err(|why| usage(&why)))
                .and_then(|mode| manifest(InitTemplate::Assembly(mode), named, environment, terminal))
        }
        InitCommand::Assembly { mode: Some(mode), named } => {
            manifest(InitTemplate::Assembly(mode), named, environment, terminal)
        }
        InitCommand::Persona(named) => manifest(InitTemplate::Persona, named, environment, terminal),
        InitCommand::Playbook(named) => manifest(InitTemplate::Playbook, named, environment, terminal),
        InitCommand::Runtime(named) => manifest(InitTemplate::Runtime, named, environment, terminal),
        InitCommand::Wiring { tool, dir, remove: false } => wire(tool, &dir, environment, terminal),
        InitCommand::Wiring { tool, dir, remove: true } => unwire(tool, &dir, environment, terminal),
    };
    match written {
        Ok(()) => Exit::DONE,
        Err(error) => exit_with_error(&error, Format::Human, terminal),
    }
}

fn council(dir: &Path, environment: &Environment, terminal: &Terminal) -> Result<(), ServiceError> {
    let written = init::council(&absolute(&environment.directory, dir))?;
    for path in &written {
        terminal.data(&format!("{}\n", display_path(environment, path)));
    }
    if let Some(draft) = written.iter().find(|path| path.extension().is_some_and(|end| end == "md")) {
        terminal.hint(&format!("next: quorate review {}", display_path(environment, draft)));
    }
    Ok(())
}

fn wire(
    tool: WiredTool,
    dir: &Path,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<(), ServiceError> {
    let wired = init::wire(&absolute(&environment.directory, dir), tool)?;
    for path in &wired.done {
        terminal.data(&format!("{}\n", display_path(environment, path)));
    }
    for path in &wired.same {
        terminal.hint(&format!("{} is there already", display_path(environment, path)));
    }
    for (path, text) in &wired.other {
        let shown = display_path(environment, path);
        terminal.status(&format!("{shown} exists and is not changed; add this to it:\n\n{text}"));
    }
    if !wired.done.is_empty() {
        terminal.hint(&format!("next: {}", tool.next()));
    }
    Ok(())
}

fn unwire(
    tool: WiredTool,
    dir: &Path,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<(), ServiceError> {
    let unwired = init::unwire(&absolute(&environment.directory, dir), tool)?;
    for path in &unwired.done {
        terminal.data(&format!("removed {}\n", display_path(environment, path)));
    }
    for (path, _) in &unwired.other {
        terminal.status(&format!(
            "kept {}, which was changed: remove the parts that call quorate",
            display_path(environment, path)
        ));
    }
    Ok(())
}

fn manifest(
    template: InitTemplate,
    named: NamedArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<(), ServiceError> {
    let name = match named.name {
        Some(name) => name,
        None => ask("name, in kebab case", "--name")?,
    };
    let written = init::manifest(environment, &named.dir, template, &name)?;
    for path in &written.files {
        terminal.data(&format!("{}\n", display_path(environment, path)));
    }
    for path in &written.existing {
        terminal.hint(&format!("{} exists and is used unchanged", display_path(environment, path)));
    }
    if matches!(template, InitTemplate::Assembly(Mode::Advisory)) {
        let advised = init::ADVISED_OPERATOR;
        terminal.hint(&format!("advice goes to `{advised}`: `quorate weave {advised}` shows its prompt"));
    }
    if let Some(main) = written.files.first() {
        let next = if matches!(template, InitTemplate::Assembly(_)) { "resolve" } else { "check" };
        terminal.hint(&format!("next: quorate {next} {}", display_path(environment, main)));
    }
    Ok(())
}

/// Asks at the terminal; without one the command line is wrong.
fn ask(question: &str, flag: &str) -> Result<String, ServiceError> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(usage(&format!("{flag} is missing")));
    }
    anstream::eprint!("{question}: ");
    let mut line = String::new();
    match stdin.lock().read_line(&mut line) {
        Ok(read) if read > 0 && !line.trim().is_empty() => Ok(line.trim().to_owned()),
        _ => Err(usage(&format!("{flag} is missing"))),
    }
}

fn usage(message: &str) -> ServiceError {
    ServiceError::new(
        ExitClass::Usage,
        codes::USAGE,
        Body::new(message).help("`quorate init --help` shows examples"),
    )
}
