//! The commands in groups, as `quorate --help` lists them.

use clap::builder::{StyledStr, Styles};

/// A group's name, and the commands in it, in the order in which they are listed. Each command is in one group.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Decide", &["review", "sweep", "convene", "resume", "override"]),
    ("Look", &["runs", "show", "replay", "audit"]),
    ("Agents", &["run", "say", "log", "state", "weave", "playbook", "overlays", "mcp"]),
    ("Manifests", &["check", "resolve", "fmt", "schema", "locks"]),
    ("Ledger", &["ledger", "keys"]),
    ("Set up", &["init", "provision", "trust", "doctor", "explain", "completions", "man", "help"]),
];

/// What clap itself adds.
const HELP: (&str, &str) = ("help", "Print the help of a command");

/// The template of the help: as clap has it, with the commands in their groups.
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
    let mut listed = String::new();
    for (group, names) in GROUPS {
        listed.push_str(&format!("\n\n{header}{group}:{header:#}"));
        for name in names {
            listed.push_str(&format!("\n  {literal}{name}{literal:#}"));
            let gap = " ".repeat(width + 2 - name.len());
            let about = wrapped(&about(name), COLUMNS - width - 4, &" ".repeat(width + 4));
            listed.push_str(&format!("{gap}{about}"));
        }
    }
    format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}{listed}\n\n\
         {header}Options:{header:#}\n{{options}}{{after-help}}"
    )
    .into()
}

/// How wide clap makes the rest of the help.
const COLUMNS: usize = 100;

/// A text in lines of so many bytes at most, the later ones after an indent.
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
        let listed: BTreeSet<&str> = grouped.iter().copied().collect();
        assert_eq!(listed.len(), grouped.len(), "one is listed twice: {grouped:?}");
        let command = super::super::Arguments::command();
        let mut there: BTreeSet<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        there.insert(HELP.0);
        assert_eq!(listed, there);
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
