//! The `quorate` binary: sets the process up, reads the command line and runs one command. Nothing is decided here:
//! each command calls the library `quorate`, and `render` shows what it gives.

mod arguments;
mod commands;
mod consent;
mod environment;
mod exit;
mod interrupt;
mod logging;
mod progress;
mod render;
mod session;
mod terminal;
mod workflow;

use std::process::ExitCode;

use quorate_adapters::process;

fn main() -> ExitCode {
    // The helper that ends members when this process is killed runs from the same file.
    process::run_guard_if_asked();
    // Until then Ctrl-C ends the process without a word and with no exit code of its own.
    interrupt::start_listening();
    process::deny_inspection();
    process::restore_signals();
    process::adopt_orphans();
    process::claim_orphans();
    process::enable_guard();
    commands::run()
}
