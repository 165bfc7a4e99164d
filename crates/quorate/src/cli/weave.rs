//! `quorate weave`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::arguments::{PlaceArguments, Tabular};
use super::exit::{Exit, stopped};
use super::render::{self, Format};
use super::terminal::Terminal;
use crate::service::environment::Environment;
use crate::service::host::Host;
use crate::service::weave::{self, Request};

/// Print the prompt of a persona with the overlays that hold woven in
///
/// Without --assembly the overlays of every operator that is this persona are woven. What was woven, and what was not
/// and why, is said on standard error.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate weave --persona support-agent --assembly council-of-mentors\n  quorate weave --persona support-agent --format json"
)]
pub(super) struct Arguments {
    /// The persona: its folder's name in personas/, or a ws:// ref
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    persona: String,
    /// Weave every overlay of this assembly, whoever it is for
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    assembly: Option<String>,
    /// The workspace that refs resolve in
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// How it is printed
    #[arg(long, value_enum, default_value_t = Tabular::Human)]
    format: Tabular,
    #[command(flatten)]
    places: PlaceArguments,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.format;
    let request = Request { persona: arguments.persona, assembly: arguments.assembly, root: arguments.root };
    match weave::weave(environment, &arguments.places.places(), &request, &Host::new()).await {
        Ok(woven) => {
            terminal.talk(&render::diagnostics(&woven.report, Format::Human, terminal.stderr));
            match format {
                Tabular::Human => {
                    terminal.talk(&render::weave::told(&woven));
                    terminal.data(&render::weave::prompt(&woven));
                }
                Tabular::Json => terminal.data(&render::weave::json(&woven)),
            }
            Exit::DONE
        }
        Err(stop) => stopped(&stop, format.into(), terminal),
    }
}
