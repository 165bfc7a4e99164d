//! Development tasks: `cargo run -p xtask -- tidy`.

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
