//! Development tasks: `cargo run -p xtask -- tidy` and `licences TARGET`.

#![expect(clippy::disallowed_methods, reason = "development tasks read the sources and ask git")]

mod licences;
mod tidy;

use std::process::ExitCode;

fn main() -> ExitCode {
    let task = std::env::args().nth(1);
    let done = match task.as_deref() {
        Some("tidy") => tidy::run(),
        Some("licences") => licences::run(std::env::args().nth(2).as_deref()),
        _ => Err(anyhow::anyhow!("usage: cargo run -p xtask -- tidy | licences TARGET")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
