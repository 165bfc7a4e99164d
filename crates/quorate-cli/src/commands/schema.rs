//! `quorate schema`.

use clap::Args;
use quorate_diagnostics::{Body, codes};
use quorate_manifest::doctype::{self, Doctype};
use quorate_manifest::tree::reader::nearest;
use quorate_protocol::Json;

use crate::exit::{Exit, exit_with_error};
use crate::render::Format;
use crate::terminal::Terminal;
use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::schemas::{ANSWERS, Output, answer};

/// The word before what a member has to answer.
const ANSWER: &str = "answer";

/// Print the JSON Schema of a doctype, of what a command prints, or of what a member has to answer
///
/// Editors complete and check manifests with it: `# yaml-language-server: $schema=assembly.schema.json` as the first
/// line of the frontmatter. `review`, `reviews` and `convene` are what these commands print with --format json, `plan`
/// is what `convene --dry-run` prints, and `answer FORM` is what an executor has to print.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate schema assembly > assembly.schema.json\n  quorate schema review\n  quorate schema answer deliberator\n  quorate schema             lists what has a schema\n  quorate schema answer      lists the answers"
)]
pub(super) struct Arguments {
    /// The doctype, `review`, `reviews`, `convene`, `plan`, or `answer`; without it all that have a schema are listed
    #[arg(value_name = "WHAT")]
    what: Option<String>,
    /// After `answer`: whose; without it all are listed
    #[arg(value_name = "FORM")]
    form: Option<String>,
}

pub(super) fn run(arguments: &Arguments, terminal: &Terminal) -> Exit {
    match text(arguments.what.as_deref(), arguments.form.as_deref()) {
        Ok(text) => {
            terminal.verbatim(&text);
            Exit::DONE
        }
        Err(error) => exit_with_error(&error, Format::Human, terminal),
    }
}

fn text(what: Option<&str>, form: Option<&str>) -> Result<String, ServiceError> {
    match (what, form) {
        (None, _) => Ok(all()),
        (Some(ANSWER), None) => {
            Ok(ANSWERS.iter().map(|(word, _, whose)| format!("{word:<18} {whose}\n")).collect())
        }
        (Some(ANSWER), Some(word)) => match answer(word) {
            Some(schema) => Ok(format!("{schema:#}\n")),
            None => Err(unknown("answer", word, &ANSWERS.map(|(known, ..)| known))),
        },
        (Some(word), None) => match schema(word) {
            Some(schema) => Ok(format!("{schema:#}\n")),
            None => {
                let doctypes = doctypes().map(Doctype::as_str);
                let words: Vec<&str> =
                    doctypes.chain(Output::ALL.map(Output::word)).chain([ANSWER]).collect();
                Err(unknown("doctype or output", word, &words))
            }
        },
        (Some(word), Some(form)) => {
            let body = Body::new(format!("`{form}` has no meaning after `{word}`"));
            let help = "only `answer` is followed by a word: `quorate schema answer deliberator`";
            Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body.help(help)))
        }
    }
}

fn doctypes() -> impl Iterator<Item = Doctype> {
    Doctype::ALL.into_iter().filter(|one| doctype::schema(*one).is_some())
}

/// What has a schema, a line each.
fn all() -> String {
    let doctypes = doctypes().map(|one| {
        let id = one.schema_id().or_else(|| one.file_name()).unwrap_or_default();
        (one.as_str(), id)
    });
    let outputs = Output::ALL.map(|one| (one.word(), one.id()));
    let answers = [(ANSWER, "what a member has to answer: `quorate schema answer` lists whose")];
    doctypes.chain(outputs).chain(answers).map(|(word, id)| format!("{word:<14} {id}\n")).collect()
}

fn schema(word: &str) -> Option<Json> {
    let named = |one: &Doctype| [Some(one.as_str()), one.schema_id(), one.file_name()].contains(&Some(word));
    let output = Output::ALL.into_iter().find(|one| [one.word(), one.id()].contains(&word));
    doctypes().find(named).and_then(doctype::schema).or_else(|| output.map(Output::json))
}

fn unknown(what: &str, word: &str, known: &[&str]) -> ServiceError {
    let body = Body::new(format!("there is no {what} `{word}` with a schema"));
    let help = match nearest(word, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("these have one: {}", known.join(", ")),
    };
    ServiceError::not_found(codes::USAGE, body.help(help))
}
