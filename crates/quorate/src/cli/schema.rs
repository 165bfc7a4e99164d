//! `quorate schema`.

use clap::Args;
use quorate_diagnostics::{Body, codes};
use quorate_manifest::doctype::{self, Doctype};
use quorate_manifest::tree::reader::nearest;

use super::exit::{Exit, stopped};
use super::render::Format;
use super::terminal::Terminal;
use crate::service::stop::Stop;

/// Print the JSON Schema of a doctype
///
/// Editors complete and check manifests with it: `# yaml-language-server: $schema=assembly.schema.json` as the first
/// line of the frontmatter.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate schema assembly > assembly.schema.json\n  quorate schema             lists the doctypes"
)]
pub(super) struct Arguments {
    /// The doctype; without it all that have a schema are listed
    #[arg(value_name = "DOCTYPE")]
    doctype: Option<String>,
}

pub(super) fn run(arguments: &Arguments, terminal: &Terminal) -> Exit {
    let all = || Doctype::ALL.into_iter().filter(|one| doctype::schema(*one).is_some());
    let Some(word) = &arguments.doctype else {
        let line = |one: Doctype| {
            let id = one.schema_id().or_else(|| one.file_name()).unwrap_or_default();
            format!("{:<14} {id}\n", one.word())
        };
        terminal.verbatim(&all().map(line).collect::<String>());
        return Exit::DONE;
    };
    let is =
        |one: &Doctype| [Some(one.word()), one.schema_id(), one.file_name()].contains(&Some(word.as_str()));
    match all().find(is).and_then(doctype::schema) {
        Some(schema) => {
            terminal.verbatim(&format!("{schema:#}\n"));
            Exit::DONE
        }
        None => {
            let words: Vec<&str> = all().map(Doctype::word).collect();
            let body = Body::new(format!("there is no doctype `{word}` with a schema"));
            let help = match nearest(word, &words) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the doctypes are: {}", words.join(", ")),
            };
            stopped(&Stop::not_found(codes::USAGE, body.help(help)), Format::Human, terminal)
        }
    }
}
