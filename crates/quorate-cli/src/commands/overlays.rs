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

/// See and take away what advisory runs have put into agents' prompts
///
/// In a tenant's folder it is about that tenant's assemblies alone.
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
    /// List those that hold, the weightiest first, and those whose time is over and that nobody has swept
    List(ListArguments),
    /// Show one: what it says, where it comes from, how long it holds
    Show(OverlayArguments),
    /// Take one away before its time
    Expire(OverlayArguments),
    /// Let go of everything whose time is over
    Sweep(ListArguments),
}

#[derive(Debug, Args)]
struct ListArguments {
    /// Only those of this assembly
    #[arg(long, value_name = "NAME")]
    assembly: Option<String>,
    /// How they are printed
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    places: PathArguments,
}

#[derive(Debug, Args)]
struct OverlayArguments {
    /// The overlay's id, or the beginning of it
    #[arg(value_name = "OVERLAY")]
    overlay: String,
    /// How it is printed
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    places: PathArguments,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let (format, places) = match &arguments.verb {
        Verb::List(all) | Verb::Sweep(all) => (all.format, all.places.path_overrides()),
        Verb::Show(one) | Verb::Expire(one) => (one.format, one.places.path_overrides()),
    };
    let whose = |assembly: Option<&str>| OverlayFilter::for_directory(environment, assembly);
    let opened = runs::open_read_only(environment, &places).await;
    let now_ms = environment.clock.now_ms();
    let look = terminal.stdout;
    with_session(opened, format.into(), terminal, async |session| {
        let text = match &arguments.verb {
            Verb::List(all) => {
                let listed = overlays::list(session, &whose(all.assembly.as_deref())).await?;
                render::overlays::list(&listed, now_ms, format, look)
            }
            Verb::Show(one) => {
                let listed = overlays::find(session, &whose(None), &one.overlay).await?;
                render::overlays::show(&listed, now_ms, format, look)
            }
            Verb::Expire(one) => render::overlays::expired(
                &overlays::expire(session, &whose(None), &one.overlay).await?,
                format,
            ),
            Verb::Sweep(all) => {
                let evicted = overlays::sweep(session, &whose(all.assembly.as_deref())).await?;
                render::overlays::swept(&evicted, format)
            }
        };
        Ok(print_result(&text, session, terminal))
    })
    .await
}
