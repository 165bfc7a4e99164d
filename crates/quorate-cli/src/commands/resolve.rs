//! `quorate resolve`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use quorate_diagnostics::{Body, codes};
use quorate_manifest::loader::Refs;

use crate::exit::{Exit, exit_with_error};
use crate::render::{self, Format};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::resolve::{self, Request};

/// Show an assembly with its chain merged, and the origin of each part
///
/// Exits with 1 if the assembly is refused; the refusals say why.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate resolve operators/lead/ASSEMBLY.md\n  quorate resolve . --explain audit.signing\n  quorate resolve ASSEMBLY.md --explain 'members[ciso]' --format json"
)]
pub(super) struct Arguments {
    /// The ASSEMBLY.md, or the directory that holds it
    #[arg(value_name = "ASSEMBLY.md")]
    path: PathBuf,
    /// Only this field, with the line that sets it and what that line overrides
    #[arg(long, value_name = "FIELD")]
    explain: Option<String>,
    /// Check the form of refs, and not whether their targets exist
    #[arg(long)]
    no_refs: bool,
    /// The workspace in which refs resolve
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Human)]
    format: OutputFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// Text to read
    Human,
    /// The merged manifest, as a root manifest that can replace the leaf
    Yaml,
    /// One JSON object
    Json,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = if arguments.format == OutputFormat::Json { Format::Json } else { Format::Human };
    let refs = if arguments.no_refs { Refs::ShapeOnly } else { Refs::Followed };
    let request = Request { path: arguments.path, root: arguments.root, refs };
    let view = match resolve::resolve(environment, &request, &*environment.host) {
        Ok(view) => view,
        Err(error) => return exit_with_error(&error, format, terminal),
    };
    if arguments.format != OutputFormat::Json {
        terminal.status(&render::diagnostics(&view.report, Format::Human, terminal.stderr));
    }
    let text = match &arguments.explain {
        None => match arguments.format {
            OutputFormat::Human => render::resolve::human(&view, terminal.stdout),
            OutputFormat::Yaml => match view.flatten() {
                Ok(standalone) => render::resolve::yaml(&view, &standalone),
                Err(error) => return exit_with_error(&error, format, terminal),
            },
            OutputFormat::Json => render::resolve::json(&view),
        },
        Some(field) => {
            let origins = view.explain(field);
            if origins.is_empty() {
                let body = Body::new(format!("`{field}` has no value in this assembly"));
                let body = match view.nearest(field) {
                    Some(near) => body.help(format!("did you mean `{near}`?")),
                    None => body.help("`quorate resolve --format json` lists all fields"),
                };
                return exit_with_error(&ServiceError::not_found(codes::USAGE, body), format, terminal);
            }
            match arguments.format {
                OutputFormat::Json => render::resolve::explain_json(&origins),
                _ => render::resolve::explain(&origins, terminal.stdout),
            }
        }
    };
    match (arguments.format, &arguments.explain) {
        (OutputFormat::Yaml, None) => terminal.raw_data(&text),
        _ => terminal.data(&text),
    }
    Exit::DONE
}
