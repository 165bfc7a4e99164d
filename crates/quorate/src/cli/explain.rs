//! `quorate explain`.

use clap::Args;
use quorate_diagnostics::{Body, codes};

use super::exit::{Exit, exit_with_error};
use super::render::Format;
use super::terminal::Terminal;
use crate::service::error::ServiceError;

/// Explain a diagnostic's code
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate explain quorate:prompt_missing\n  quorate explain            lists all codes"
)]
pub(super) struct Arguments {
    /// The code, with or without its prefix; without it all codes are listed
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

pub(super) fn run(arguments: &Arguments, terminal: &Terminal) -> Exit {
    let Some(code) = &arguments.code else {
        let width = codes::all().iter().map(|page| page.code.len()).max().unwrap_or_default();
        let line = |page: &codes::Page| {
            format!("{:<width$}  {:<8} {}\n", page.code, page.severity.as_str(), page.summary())
        };
        terminal.verbatim(&codes::all().iter().map(line).collect::<String>());
        return Exit::DONE;
    };
    match codes::explain(code) {
        Some(page) => {
            terminal.verbatim(page.markdown);
            Exit::DONE
        }
        None => {
            let body = Body::new(format!("there is no code `{code}`"));
            let body = match codes::nearest(code) {
                Some(near) => body.help(format!("did you mean `{near}`?")),
                None => body.help("`quorate explain` lists all codes"),
            };
            exit_with_error(&ServiceError::not_found(codes::USAGE, body), Format::Human, terminal)
        }
    }
}
