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

/// The word before the name of an answer's schema.
const ANSWER: &str = "answer";

/// Print the JSON Schema of a doctype, of a command's output, or of a member's answer
///
/// Editors complete and check manifests with it: `# yaml-language-server: $schema=assembly.schema.json` as the first
/// line of the frontmatter. `review`, `reviews`, `convene` and `audit` are the output of these commands with --format json, `estimate` that of
/// `review --dry-run`, `plan`
/// is the output of `convene --dry-run`, `compare` that of `quorate compare`, `runs` that of `quorate runs`, `verify` that of `quorate ledger verify`, and `answer FORM` is the output of an executor.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate schema assembly > assembly.schema.json\n  quorate schema review\n  quorate schema answer deliberator\n  quorate schema             lists what has a schema\n  quorate schema answer      lists the answers"
)]
pub(super) struct Arguments {
    /// The doctype, `review`, `reviews`, `estimate`, `convene`, `plan`, `compare`, `audit`, `runs`, `verify`, or `answer`; without it all schemas are listed
    #[arg(value_name = "WHAT")]
    what: Option<String>,
    /// After `answer`: the form; without it all are listed
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

fn text(kind: Option<&str>, form: Option<&str>) -> Result<String, ServiceError> {
    match (kind, form) {
        (None, _) => Ok(all()),
        (Some(ANSWER), None) => {
            Ok(ANSWERS.iter().map(|(word, _, description)| format!("{word:<18} {description}\n")).collect())
        }
        (Some(ANSWER), Some(word)) => match answer(word) {
            Some(schema) => Ok(format!("{schema:#}\n")),
            None => Err(unknown("answer", word, &ANSWERS.map(|(word, ..)| word))),
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
            let body = Body::new(format!("unexpected `{form}` after `{word}`"));
            let help = "only `answer` is followed by a word: `quorate schema answer deliberator`";
            Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body.help(help)))
        }
    }
}

fn doctypes() -> impl Iterator<Item = Doctype> {
    Doctype::ALL.into_iter().filter(|doctype| doctype::schema(*doctype).is_some())
}

/// All schemas, one line each.
fn all() -> String {
    let doctypes = doctypes().map(|doctype| {
        let id = doctype.schema_id().or_else(|| doctype.file_name()).unwrap_or_default();
        (doctype.as_str(), id)
    });
    let outputs = Output::ALL.map(|output| (output.word(), output.id()));
    let answers = [(ANSWER, "a member's answer: `quorate schema answer` lists the forms")];
    doctypes.chain(outputs).chain(answers).map(|(word, id)| format!("{word:<14} {id}\n")).collect()
}

fn schema(word: &str) -> Option<Json> {
    let matches = |doctype: &Doctype| {
        [Some(doctype.as_str()), doctype.schema_id(), doctype.file_name()].contains(&Some(word))
    };
    let output = Output::ALL.into_iter().find(|output| [output.word(), output.id()].contains(&word));
    doctypes().find(matches).and_then(doctype::schema).or_else(|| output.map(Output::json))
}

fn unknown(noun: &str, word: &str, known: &[&str]) -> ServiceError {
    let body = Body::new(format!("unknown {noun} `{word}`"));
    let help = match nearest(word, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use one of {}", known.join(", ")),
    };
    ServiceError::not_found(codes::USAGE, body.help(help))
}
