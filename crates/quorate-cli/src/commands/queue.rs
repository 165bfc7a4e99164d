//! `quorate queue`.

use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use quorate::Quorate;

use crate::arguments::{OutputArguments, duration};
use crate::exit::Ended;
use crate::terminal::Terminal;

/// Show and change the queue of runs that workers decide
///
/// `quorate sweep --enqueue` and `quorate convene --enqueue` fill it, and `quorate worker` empties it. It is in the
/// ledger's Postgres database.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate queue status\n  quorate queue list --dead\n  quorate queue retry r4n9k2m\n  quorate queue drain --tenant blog"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Count the tasks by tenant and state
    Status {
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// List tasks, the oldest first
    List {
        /// Only dead ones, with the reason
        #[arg(long, conflicts_with = "state")]
        dead: bool,
        /// Only this state
        #[arg(long, value_name = "STATE", value_parser = PossibleValuesParser::new(STATES))]
        state: Option<String>,
        /// Only of this tenant
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
        /// Only of this batch: what one command has queued
        #[arg(long, value_name = "ID")]
        batch: Option<String>,
        /// The most tasks
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Have dead tasks tried again
    Retry {
        /// Their runs, by id or the beginning of one
        #[arg(value_name = "RUN", required_unless_present = "all_dead")]
        runs: Vec<String>,
        /// All dead tasks
        #[arg(long, conflicts_with = "runs")]
        all_dead: bool,
        /// With --all-dead: only of this tenant
        #[arg(long, value_name = "NAME", requires = "all_dead")]
        tenant: Option<String>,
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Take tasks out that no worker has
    Cancel {
        /// Their runs, by id or the beginning of one
        #[arg(value_name = "RUN", required = true)]
        runs: Vec<String>,
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Stop workers from claiming tasks; what they have goes on
    Pause {
        /// Only those of this tenant
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
        /// Let them claim again
        #[arg(long)]
        off: bool,
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Pause, and wait until workers have ended what they have
    Drain {
        /// Only the tasks of this tenant
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
        /// Exit with 1 if it takes longer
        #[arg(long, value_name = "TIME", value_parser = duration)]
        timeout: Option<Duration>,
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Show a tenant's share and limits, or change them
    Tenant {
        #[arg(value_name = "NAME")]
        name: String,
        /// Its share of the workers, compared with the other tenants' (1)
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
        weight: Option<u64>,
        /// The most of its tasks that workers have at once, or none for no limit
        #[arg(long, value_name = "N", value_parser = limit)]
        max_running: Option<Limit>,
        /// The most of its tasks that wait; more are refused when they are queued
        #[arg(long, value_name = "N", value_parser = limit)]
        max_waiting: Option<Limit>,
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Show how fast workers ask each pool of a model service, or bound it for all of them together
    Quota {
        /// The pool, as the list names it
        #[arg(value_name = "POOL", requires = "rate")]
        pool: Option<String>,
        /// Calls in a second, minute or hour, for example 50/s, or none for no limit
        #[arg(long, value_name = "N/TIME", requires = "pool", value_parser = rate)]
        rate: Option<Rate>,
        /// How many calls may be saved up; by default those of one second
        #[arg(long, value_name = "N", requires = "rate", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
        burst: Option<u64>,
        #[command(flatten)]
        shape: OutputArguments,
    },
}

/// A limit, or none.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "only a database has a queue"))]
struct Limit(Option<u64>);

fn limit(text: &str) -> Result<Limit, String> {
    match text {
        "none" => Ok(Limit(None)),
        number => match number.parse() {
            Ok(limit @ 1..=1_000_000_000) => Ok(Limit(Some(limit))),
            _ => Err("it is a number from 1 to 1,000,000,000, or none".to_owned()),
        },
    }
}

/// Calls an hour, or no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rate(Option<u64>);

fn rate(text: &str) -> Result<Rate, String> {
    if text == "none" {
        return Ok(Rate(None));
    }
    let wrong =
        || "it is a number of calls and a time, for example 50/s, 600/min or 1000/h; or none".to_owned();
    let (number, unit) = text.split_once('/').ok_or_else(wrong)?;
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let an_hour = match unit {
        "s" => number.checked_mul(3_600),
        "min" => number.checked_mul(60),
        "h" => Some(number),
        _ => None,
    };
    an_hour.filter(|rate| (1..=1_000_000_000).contains(rate)).map(|rate| Rate(Some(rate))).ok_or_else(wrong)
}

/// The states of tasks.
const STATES: [&str; 5] = ["ready", "leased", "done", "dead", "cancelled"];

/// The command of a build without the feature.
#[cfg(not(feature = "postgres"))]
pub(super) async fn run(_: Arguments, _: &Quorate, _: &Terminal) -> Ended {
    Err(crate::exit::feature_missing("postgres"))
}

#[cfg(feature = "postgres")]
pub(super) async fn run(arguments: Arguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    use quorate::cluster::queue::{
        Changed, Pause, Pools, QueueStatus, TaskFilter, TaskState, Tasks, TenantChange, tenant_doc,
    };
    use quorate::view::wording::amount;

    use crate::exit::{Exit, show};
    use crate::interrupt::{Interrupted, until_interrupted};

    let of = |shape: OutputArguments| shape.apply(quorate).queue();
    match arguments.command {
        Command::Status { shape } => show(of(shape).status().await, QueueStatus::doc, terminal),
        Command::List { dead, state, tenant, batch, limit, shape } => {
            let named = |one: &TaskState| Some(one.as_str()) == state.as_deref();
            let state = if dead { Some(TaskState::Dead) } else { TaskState::ALL.into_iter().find(named) };
            let tasks = of(shape).tasks(&TaskFilter { state, tenant, batch }, limit).await;
            show(tasks, Tasks::doc, terminal)
        }
        Command::Retry { runs, tenant, shape, .. } => {
            show(of(shape).retry(&runs, tenant).await, Changed::doc, terminal)
        }
        Command::Cancel { runs, shape } => show(of(shape).cancel(&runs).await, Changed::doc, terminal),
        Command::Pause { tenant, off, shape } => {
            show(of(shape).pause(tenant, !off).await, Pause::doc, terminal)
        }
        Command::Tenant { name, weight, max_running, max_waiting, shape } => {
            let change = TenantChange {
                weight,
                max_running: max_running.map(|limit| limit.0),
                max_waiting: max_waiting.map(|limit| limit.0),
            };
            show(of(shape).tenant(&name, &change).await, tenant_doc, terminal)
        }
        Command::Quota { pool, rate, burst, shape } => {
            let limit = |rate: u64| (rate, burst.unwrap_or_else(|| rate.div_ceil(3_600)));
            let change = pool.as_deref().zip(rate).map(|(pool, rate)| (pool, rate.0.map(limit)));
            show(of(shape).pools(change).await, Pools::doc, terminal)
        }
        Command::Drain { tenant, timeout, shape } => {
            let last = std::cell::Cell::new(0);
            let progress = |leased: u64| {
                if last.replace(leased) != leased {
                    terminal.hint(&format!("workers still have {}", amount(leased, "task")));
                }
            };
            match until_interrupted(of(shape).drain(tenant, timeout, progress)).await {
                Err(Interrupted) => {
                    terminal
                        .status("interrupted; the queue stays paused: `quorate queue pause --off` ends that");
                    Ok(Exit::INTERRUPTED)
                }
                Ok(drained) => show(drained, Pause::doc, terminal),
            }
        }
    }
}
