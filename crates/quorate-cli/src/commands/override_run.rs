//! `quorate override`.

use clap::{Args, ValueEnum};
use quorate_protocol::policy::Verdict;

use crate::arguments::PathArguments;
use crate::exit::{Exit, exit_with_error};
use crate::render::{self, Extent, Format};
use crate::session::{print_error, print_result, seal_and_close};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::{override_run, runs};

/// Record a person's decision against the council's
///
/// The council's verdict stays; the decision, its reason and its author are recorded with it, in the ledger and as a line
/// of the log. `quorate audit` counts overrides. The author is `--by`, else Git's identity in this directory.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  quorate override r7k2 --verdict ship --reason \"legal cleared the price claim\" --by \"Ada <ada@example.org>\""
)]
pub(super) struct Arguments {
    /// The run's id, a prefix of it, or `latest`
    #[arg(value_name = "RUN")]
    run: String,
    /// The decision
    #[arg(long, value_enum, ignore_case = true)]
    verdict: VerdictArgument,
    /// The reason
    #[arg(long, value_name = "R")]
    reason: String,
    /// The author; by default Git's `user.name <user.email>`
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    #[command(flatten)]
    places: PathArguments,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum VerdictArgument {
    /// Publish it
    Ship,
    /// Change it first
    Revise,
    /// Do not publish it
    Hold,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let (session, run) = match runs::open_run_for_append(
        environment,
        &arguments.places.path_overrides(),
        &arguments.run,
    )
    .await
    {
        Ok(opened) => opened,
        Err(error) => return exit_with_error(&error, Format::Human, terminal),
    };
    let verdict = match arguments.verdict {
        VerdictArgument::Ship => Verdict::Ship,
        VerdictArgument::Revise => Verdict::Revise,
        VerdictArgument::Hold => Verdict::Hold,
    };
    let decision = override_run::Decision { verdict, reason: &arguments.reason, by: arguments.by.as_deref() };
    let exit = match override_run::override_run(&session, &run, decision).await {
        Ok(report) => print_result(
            &render::report(&report, Format::Human, Extent::Screen, terminal.stdout),
            &session,
            terminal,
        ),
        Err(error) => print_error(&error, &session, Format::Human, terminal),
    };
    Box::pin(seal_and_close(session, terminal)).await;
    exit
}
