//! The `quorate` binary: sets the process up, parses the command line and runs one command. Each command calls the
//! library `quorate`, and `render` formats the result.

mod arguments;
mod commands;
mod environment;
mod events;
mod exit;
mod interrupt;
mod logging;
#[cfg(any(feature = "postgres", feature = "serve"))]
mod metrics;
mod progress;
mod render;
mod terminal;
#[cfg(feature = "otel")]
mod traces;

use std::process::ExitCode;

use mimalloc::MiMalloc;
use quorate::process;

/// A run makes thousands of small allocations; this allocator takes half the time of the system's.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // Before this call Ctrl-C ends the process without a message or an exit code of its own.
    interrupt::start_listening();
    process::take_over();
    commands::run()
}
