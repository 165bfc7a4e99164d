//! `quorate init`.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use quorate::init::{ADVISED_OPERATOR, EXAMPLE_TURN, InitOutcome, InitTemplate, WiredTool};
use quorate::ports::Mode;
use quorate::{Error, Quorate};

use crate::exit::{Ended, Exit};
use crate::terminal::Terminal;

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
    /// A commented ASSEMBLY.md, a persona for each of its members and an example to convene them on
    Assembly {
        /// How its members decide: advisory, voting, peer or hierarchy
        #[arg(long, value_name = "MODE", value_parser = mode, default_value = "voting")]
        mode: Mode,
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
    /// Its name, in kebab case
    #[arg(long, value_name = "NAME", default_value = "example")]
    name: String,
    /// The directory of the workspace to write into
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

fn tools() -> impl TypedValueParser<Value = WiredTool> {
    let values = WiredTool::ALL.map(|tool| PossibleValue::new(tool.as_str()).help(tool.about()));
    PossibleValuesParser::new(values).try_map(|word| WiredTool::parse(&word).ok_or("unknown tool"))
}

fn mode(word: &str) -> Result<Mode, String> {
    Mode::parse(word).ok_or_else(|| format!("the modes are: {}", Mode::ALL.map(Mode::as_str).join(", ")))
}

pub(super) fn run(arguments: Arguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let manifest = |template, named| manifest(template, named, quorate, terminal);
    match arguments.command {
        InitCommand::Council { dir } => council(&dir, quorate, terminal),
        InitCommand::Assembly { mode, named } => manifest(InitTemplate::Assembly(mode), named),
        InitCommand::Persona(named) => manifest(InitTemplate::Persona, named),
        InitCommand::Playbook(named) => manifest(InitTemplate::Playbook, named),
        InitCommand::Runtime(named) => manifest(InitTemplate::Runtime, named),
        InitCommand::Wiring { tool, dir, remove: false } => wire(tool, &dir, quorate, terminal),
        InitCommand::Wiring { tool, dir, remove: true } => unwire(tool, &dir, quorate, terminal),
    }?;
    Ok(Exit::DONE)
}

/// Prints the written files, and hints at those that exist.
fn print(outcome: &InitOutcome, there: &str, quorate: &Quorate, terminal: &Terminal) {
    for path in &outcome.done {
        terminal.data(&format!("{}\n", quorate.display_path(path)));
    }
    for path in &outcome.same {
        terminal.hint(&format!("{} {there}", quorate.display_path(path)));
    }
}

fn council(dir: &Path, quorate: &Quorate, terminal: &Terminal) -> Result<(), Error> {
    let written = quorate.init_council(dir)?;
    print(&written, "", quorate, terminal);
    if let Some(draft) = written.done.iter().find(|path| path.extension().is_some_and(|end| end == "md")) {
        terminal.hint(&format!("next: quorate review {}", quorate.quoted_path(draft)));
    }
    Ok(())
}

fn wire(tool: WiredTool, dir: &Path, quorate: &Quorate, terminal: &Terminal) -> Result<(), Error> {
    let wired = quorate.wire(dir, tool)?;
    print(&wired, "is there already", quorate, terminal);
    for (path, text) in &wired.other {
        let shown = quorate.display_path(path);
        terminal.status(&format!("{shown} exists and is not changed; add this to it:\n\n{text}"));
    }
    if !wired.done.is_empty() {
        terminal.hint(&format!("to finish: {}", tool.next().replace("DIR", &quorate.quoted_path(dir))));
        terminal.hint(&format!("next: {}", quorate.next_after_wiring(dir)?));
    }
    Ok(())
}

fn unwire(tool: WiredTool, dir: &Path, quorate: &Quorate, terminal: &Terminal) -> Result<(), Error> {
    let unwired = quorate.unwire(dir, tool)?;
    for path in &unwired.done {
        terminal.data(&format!("removed {}\n", quorate.display_path(path)));
    }
    for (path, _) in &unwired.other {
        terminal.status(&format!(
            "kept {}, which was changed: remove the parts that call quorate",
            quorate.display_path(path)
        ));
    }
    Ok(())
}

fn manifest(
    template: InitTemplate,
    named: NamedArguments,
    quorate: &Quorate,
    terminal: &Terminal,
) -> Result<(), Error> {
    let written = quorate.init_manifest(&named.dir, template, &named.name)?;
    print(&written, "exists and is used unchanged", quorate, terminal);
    if matches!(template, InitTemplate::Assembly(Mode::Advisory)) {
        let advised = ADVISED_OPERATOR;
        terminal.hint(&format!("advice goes to `{advised}`: `quorate weave {advised}` shows its prompt"));
    }
    if let Some(main) = written.done.first() {
        let (dir, path) = (main.parent().unwrap_or(main), quorate.quoted_path(main));
        let next = match template {
            InitTemplate::Assembly(mode) => {
                let subject = match mode {
                    Mode::Advisory => "conversation",
                    Mode::Voting => "proposal",
                    Mode::Peer => "topic",
                    Mode::Hierarchy => "request",
                };
                let example = quorate.quoted_path(&dir.join("example.md"));
                format!("convene {} --{subject} {example}", quorate.quoted_path(dir))
            }
            InitTemplate::Runtime => format!("run {path} --say '{EXAMPLE_TURN}'"),
            InitTemplate::Persona | InitTemplate::Playbook => format!("check {path}"),
        };
        terminal.hint(&format!("next: quorate {next}"));
    }
    Ok(())
}
