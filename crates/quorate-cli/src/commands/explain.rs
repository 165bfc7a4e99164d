//! `quorate explain`.

use clap::Args;
use quorate_diagnostics::{Body, codes};

use crate::exit::{Exit, exit_with_error};
use crate::render::Format;
use crate::terminal::Terminal;
use quorate::service::error::ServiceError;

/// Explain the code of a diagnostic or an outcome
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate explain quorate:prompt_missing\n  quorate explain            lists all codes"
)]
pub(super) struct Arguments {
    /// The code, with or without its prefix; without it all codes are listed
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

/// The codes of outcomes, which `--format json` prints as `code` (assemblies) and `incomplete` (councils), with what each
/// means; the first sentence is its line in the list. `lock_unchecked` and `out_of_reach` are codes of refused texts.
const OUTCOMES: [(&str, &str); 16] = [
    ("all_refused", "Every message of the peers was refused. `quorate show RUN` says why."),
    (
        "budget_exhausted",
        "The calls, tokens, money or time of the run (`[budget]`) were spent before it was decided.\n\
         What was answered is kept: `quorate resume RUN` with `--max-calls`, `--max-tokens` or `--max-money` goes on from it.",
    ),
    (
        "fail_fast",
        "A deliberator failed, and the council has `fail_fast_on_runtime_error: true`.\n\
         `quorate resume RUN` asks those again that did not answer.",
    ),
    (
        "first_round",
        "Fewer deliberators than `min_deliberators_for_verdict` gave a valid answer in round 1.\n\
         `quorate show RUN` says why; `quorate resume RUN` asks those again that did not answer.",
    ),
    (
        "lock_unchecked",
        "A text could not be compared with the locked traits by its meaning, and was refused.\n\
         The `[embedder]` gave no answer: `quorate show RUN` says why. Once it answers, convene again.",
    ),
    ("locked", "The result would violate a locked trait. `quorate show RUN` names the trait."),
    (
        "missing_could_block",
        "The verdict would be SHIP, but blocks by those who gave no answer could change that.\n\
         `quorate resume RUN` asks them again.",
    ),
    (
        "missing_votes",
        "It would pass, but a missing vote could change that. `quorate resume RUN` asks those members again.",
    ),
    ("no_adjudication", "The adjudicator gave no valid answer. `quorate resume RUN` asks it again."),
    ("no_answer", "No member that was asked gave a valid answer. `quorate resume RUN` asks again."),
    (
        "no_output",
        "The root of the hierarchy gave no output, and neither did any node below it. `quorate show RUN` says why.",
    ),
    ("no_voters", "No member votes on proposals of this class."),
    ("no_votes", "No member cast a valid vote. `quorate resume RUN` asks again."),
    ("out_of_reach", "A message was addressed to members whom its author cannot reach, and was refused."),
    (
        "rule_failed",
        "A custom rule of the embedding program could not be applied, and nothing is decided without it.\n\
         `quorate show RUN` says why. Once it is mended, convene again.",
    ),
    (
        "second_round",
        "Fewer deliberators than `min_deliberators_for_verdict` gave a valid answer in round 2.\n\
         `quorate show RUN` says why; `quorate resume RUN` asks those again that did not answer.",
    ),
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
        let outcomes = OUTCOMES.iter().map(|(code, meaning)| {
            let summary = meaning.split_inclusive('.').next().unwrap_or(meaning);
            format!("{code:<width$}  outcome  {summary}\n")
        });
        terminal.verbatim(&codes::all().iter().map(line).chain(outcomes).collect::<String>());
        return Exit::DONE;
    };
    match codes::explain(code) {
        Some(page) => {
            terminal.verbatim(page.markdown);
            Exit::DONE
        }
        None if outcome(code).is_some() => {
            terminal.verbatim(&format!("`{code}` is the code of an outcome, not of a diagnostic.\n\n"));
            terminal.verbatim(&format!("{}\n", outcome(code).unwrap_or_default()));
            Exit::DONE
        }
        None => {
            let body = Body::new(format!("unknown code `{code}`"));
            let body = match codes::nearest(code) {
                Some(near) => body.help(format!("did you mean `{near}`?")),
                None => body.help("run `quorate explain` to list all codes"),
            };
            exit_with_error(&ServiceError::not_found(codes::USAGE, body), Format::Human, terminal)
        }
    }
}
