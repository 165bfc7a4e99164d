//! `quorate --help` with the commands in groups, `quorate completions` and `quorate man`.

use std::path::PathBuf;

use clap::builder::{StyledStr, Styles};
use clap::{Args, Command, CommandFactory as _};
use clap_complete::Shell;
use quorate::Quorate;

use crate::exit::{Ended, Exit};
use crate::terminal::Terminal;

/// The groups and their commands, in the order of the help. Each command is in one group.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Decide", &["review", "sweep", "convene", "resume", "override"]),
    ("Look", &["runs", "show", "watch", "report", "compare", "serve", "replay", "audit", "eval"]),
    ("Agents", &["run", "say", "log", "state", "weave", "playbook", "overlays", "mcp"]),
    ("Several machines", &["worker", "queue"]),
    ("Manifests", &["check", "resolve", "fmt", "schema", "locks"]),
    ("Ledger", &["ledger", "attest", "keys"]),
    (
        "Set up",
        &[
            "init",
            "hook",
            "github",
            "provision",
            "trust",
            "doctor",
            "models",
            "explain",
            "completions",
            "man",
            "help",
        ],
    ),
];

/// The command that clap adds.
const HELP: (&str, &str) = ("help", "Print the help of a command");

/// The template of the help: clap's, with the commands in groups.
pub(super) fn template(commands: &clap::Command) -> StyledStr {
    let about = |name: &str| {
        let command = commands.get_subcommands().find(|command| command.get_name() == name);
        let about = command.and_then(clap::Command::get_about).map(ToString::to_string);
        about.unwrap_or_else(|| if name == HELP.0 { HELP.1.to_owned() } else { String::new() })
    };
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter());
    let width = names.map(|name| name.len()).max().unwrap_or_default();
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut list = String::new();
    for (group, names) in GROUPS {
        list.push_str(&format!("\n\n{header}{group}:{header:#}"));
        for name in names {
            list.push_str(&format!("\n  {literal}{name}{literal:#}"));
            let gap = " ".repeat(width + 2 - name.len());
            let about = wrapped(&about(name), COLUMNS - width - 4, &" ".repeat(width + 4));
            list.push_str(&format!("{gap}{about}"));
        }
    }
    format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}{list}\n\n\
         {header}Options:{header:#}\n{{options}}{{after-help}}"
    )
    .into()
}

/// The width at which clap wraps the rest of the help.
const COLUMNS: usize = 100;

/// Wraps a text at `most` bytes, with an indent before later lines.
fn wrapped(text: &str, most: usize, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join(&format!("\n{indent}"))
}

/// Print shell completions
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  quorate completions bash > ~/.local/share/bash-completion/completions/quorate"
)]
pub(super) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run_completions(arguments: &CompletionsArguments, terminal: &Terminal) -> Ended {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::Arguments::command(), "quorate", &mut text);
    terminal.verbatim(&String::from_utf8_lossy(&text));
    Ok(Exit::DONE)
}

/// Print the man page, or write one for each command into a directory
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  quorate man | man -l -\n  quorate man --out target/man")]
pub(super) struct ManArguments {
    /// Write quorate.1, quorate-review.1, quorate-ledger-verify.1, … here; existing files are not changed
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(super) fn run_man(arguments: &ManArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let command = super::Arguments::command();
    let Some(dir) = &arguments.out else {
        terminal.verbatim(&page(command));
        return Ok(Exit::DONE);
    };
    let mut pages = Vec::new();
    add_pages(&command, "quorate".to_owned(), &mut pages);
    quorate.write_new(dir, &pages)?;
    Ok(Exit::DONE)
}

/// The page of a command, and those of its subcommands.
fn add_pages(command: &Command, name: String, pages: &mut Vec<(String, String)>) {
    for sub in command.get_subcommands() {
        add_pages(sub, format!("{name}-{}", sub.get_name()), pages);
    }
    pages.push((format!("{name}.1"), page(command.clone().name(name))));
}

fn page(command: Command) -> String {
    let mut text = Vec::new();
    // Writing into memory does not fail.
    let _ = clap_mangen::Man::new(command).render(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::{GROUPS, HELP};

    #[test]
    fn each_command_is_in_one_group() {
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let unique: BTreeSet<&str> = grouped.iter().copied().collect();
        assert_eq!(unique.len(), grouped.len(), "one is listed twice: {grouped:?}");
        let command = super::super::Arguments::command();
        let mut commands: BTreeSet<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        commands.insert(HELP.0);
        assert_eq!(unique, commands);
    }

    #[test]
    fn the_help_shows_each_command_once_with_what_it_does() {
        let help = super::super::Arguments::command().render_help().to_string();
        for (group, names) in GROUPS {
            assert!(help.contains(&format!("\n{group}:\n")), "{group} in\n{help}");
            for name in names {
                let lines: Vec<&str> =
                    help.lines().filter(|line| line.starts_with(&format!("  {name} "))).collect();
                let [line] = lines[..] else { panic!("{name} stands in {lines:?}") };
                assert!(line.trim_start().len() > name.len() + 2, "{line}");
            }
        }
        assert!(help.lines().all(|line| line.len() <= super::COLUMNS), "{help}");
        assert!(help.contains("--color") && help.contains("--quiet"), "{help}");
    }
}
