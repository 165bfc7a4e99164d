//! Development tasks: `cargo run -p xtask -- tidy`.

#![expect(clippy::disallowed_methods, reason = "development tasks read the sources and ask git")]

mod tidy;

use std::process::ExitCode;

fn main() -> ExitCode {
    let task = std::env::args().nth(1);
    let done = match task.as_deref() {
        Some("tidy") => tidy::run(),
        _ => Err(anyhow::anyhow!("usage: cargo run -p xtask -- tidy")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
