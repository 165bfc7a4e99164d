//! The groups of commands in `quorate --help`.

use clap::builder::{StyledStr, Styles};

/// The groups and their commands, in the order of the help. Each command is in one group.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Decide", &["review", "sweep", "convene", "resume", "override"]),
    ("Look", &["runs", "show", "watch", "report", "compare", "serve", "replay", "audit"]),
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
