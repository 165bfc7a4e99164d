//! `quorate show`.

use clap::Args;

use super::arguments::PlaceArguments;
use super::exit::{Exit, stopped};
use super::render::{self, Format};
use super::review::{failed, warnings};
use super::terminal::Terminal;
use crate::service::environment::Environment;
use crate::service::runs::{self, Shown};

/// Show what a run came to, and why
///
/// Exits with 0 whatever the verdict was: only `review`, `convene` and `resume` judge.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  quorate show r7k2\n  quorate show r7k2 --format markdown | pbcopy")]
pub(super) struct Arguments {
    /// The run's id, or the beginning of it
    #[arg(value_name = "RUN")]
    run: String,
    /// How it is printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    #[command(flatten)]
    places: PlaceArguments,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.format;
    let (desk, run) = match runs::open_here(environment, &arguments.places.places(), &arguments.run).await {
        Ok(opened) => opened,
        Err(stop) => return stopped(&stop, format, terminal),
    };
    let exit = match runs::shown(&desk, &run).await {
        Ok(shown) => {
            warnings(&desk, terminal);
            terminal.data(&match shown {
                Shown::Review(report) => render::report(&report, format, terminal.stdout),
                Shown::Assembly(report) => render::convene::report(&report, format, terminal.stdout),
            });
            Exit::DONE
        }
        Err(stop) => failed(&stop, &desk, format, terminal),
    };
    desk.close().await;
    exit
}
