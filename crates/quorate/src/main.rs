//! The `quorate` binary: sets the process up and hands over to [`quorate::cli`].

use std::process::ExitCode;

use quorate_adapters::process;

fn main() -> ExitCode {
    // The helper that ends members when this process is killed runs from the same file.
    process::run_guard_if_asked();
    quorate::cli::handle_signals();
    process::close_to_others();
    process::restore_signals();
    process::adopt_orphans();
    process::claim_orphans();
    process::enable_guard();
    quorate::cli::run()
}
