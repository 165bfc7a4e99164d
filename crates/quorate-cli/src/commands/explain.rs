//! `quorate explain`.

use clap::Args;
use quorate_diagnostics::{Body, codes};

use crate::exit::{Exit, exit_with_error};
use crate::render::Format;
use crate::terminal::Terminal;
use quorate::service::error::ServiceError;

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

/// The codes of outcomes, which `--format json` prints, and their meanings.
const OUTCOMES: [(&str, &str); 7] = [
    ("all_refused", "Every message of the peers violates a locked trait: `quorate show RUN` says which."),
    (
        "budget_exhausted",
        "The calls, tokens, money or time of the run (`[budget]`) were spent before it was decided.\n\
         What was answered is kept: `quorate resume RUN` with `--max-calls`, `--max-tokens` or `--max-money` goes on from it.",
    ),
    ("locked", "What would have been the result violates a locked trait: `quorate show RUN` says which."),
    (
        "missing_votes",
        "It would pass, but not if those who gave no vote had voted no. `quorate resume RUN` asks them again.",
    ),
    ("no_answer", "No member that was asked gave an answer that fits. `quorate resume RUN` asks again."),
    ("no_output", "The root of the hierarchy gave no output, and neither did any node below it."),
    ("no_voters", "No member votes on proposals of this class."),
];

/// The meaning of an outcome's code.
fn outcome(code: &str) -> Option<&'static str> {
    OUTCOMES.iter().find(|(listed, _)| *listed == code.trim()).map(|(_, meaning)| *meaning)
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
        None if outcome(code).is_some() => {
            terminal.verbatim(&format!("`{code}` is the code of an outcome, and no diagnostic.\n\n"));
            terminal.verbatim(&format!("{}\n", outcome(code).unwrap_or_default()));
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
