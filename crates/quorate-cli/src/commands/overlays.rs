//! `quorate overlays`.

use clap::{Args, Subcommand};

use crate::arguments::{HumanOrJson, PathArguments};
use crate::exit::Exit;
use crate::render;
use crate::session::{print_result, with_session};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::overlays::{self, OverlayFilter};
use quorate::service::runs;

/// List and remove the advice of advisory runs in agents' prompts
///
/// In a tenant's folder it covers only that tenant's assemblies.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate overlays list\n  quorate overlays show o7k2\n  quorate overlays expire o7k2\n  quorate overlays sweep"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List active overlays, the heaviest first, and expired ones that were not swept
    List(ListArguments),
    /// Show an overlay: its text, its origin, its expiry
    Show(OverlayArguments),
    /// Expire an overlay early
    Expire(OverlayArguments),
    /// Remove expired overlays
    Sweep(ListArguments),
}

#[derive(Debug, Args)]
struct ListArguments {
    /// Only those of this assembly
    #[arg(long, value_name = "NAME")]
    assembly: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    places: PathArguments,
}

#[derive(Debug, Args)]
struct OverlayArguments {
    /// The overlay's id, or a prefix of it
    #[arg(value_name = "OVERLAY")]
    overlay: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    places: PathArguments,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let (format, places) = match &arguments.verb {
        Verb::List(all) | Verb::Sweep(all) => (all.format, all.places.path_overrides()),
        Verb::Show(single) | Verb::Expire(single) => (single.format, single.places.path_overrides()),
    };
    let filter = |assembly: Option<&str>| OverlayFilter::for_directory(environment, assembly);
    let opened = runs::open_read_only(environment, &places).await;
    let now_ms = environment.clock.now_ms();
    let options = terminal.stdout;
    with_session(opened, format.into(), terminal, async |session| {
        let text = match &arguments.verb {
            Verb::List(all) => {
                let listed = overlays::list(session, &filter(all.assembly.as_deref())).await?;
                render::overlays::list(&listed, now_ms, format, options)
            }
            Verb::Show(arguments) => {
                let listed = overlays::find(session, &filter(None), &arguments.overlay).await?;
                render::overlays::show(&listed, now_ms, format, options)
            }
            Verb::Expire(arguments) => render::overlays::expired(
                &overlays::expire(session, &filter(None), &arguments.overlay).await?,
                format,
            ),
            Verb::Sweep(all) => {
                let evicted = overlays::sweep(session, &filter(all.assembly.as_deref())).await?;
                render::overlays::swept(&evicted, format)
            }
        };
        Ok(print_result(&text, session, terminal))
    })
    .await
}
