//! `quorate completions`.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::exit::Exit;
use crate::terminal::Terminal;

/// Print shell completions
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  quorate completions bash > ~/.local/share/bash-completion/completions/quorate"
)]
pub(super) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(arguments: &Arguments, terminal: &Terminal) -> Exit {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::Arguments::command(), "quorate", &mut text);
    terminal.verbatim(&String::from_utf8_lossy(&text));
    Exit::DONE
}
