//! `quorate queue`.

use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use crate::arguments::{HumanOrJson, PathArguments, duration};

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
        common: Common,
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
        common: Common,
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
        common: Common,
    },
    /// Take tasks out that no worker has
    Cancel {
        /// Their runs, by id or the beginning of one
        #[arg(value_name = "RUN", required = true)]
        runs: Vec<String>,
        #[command(flatten)]
        common: Common,
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
        common: Common,
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
        common: Common,
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
        common: Common,
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
        common: Common,
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

#[derive(Debug, Args)]
struct Common {
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    places: PathArguments,
}

/// The states of tasks.
const STATES: [&str; 5] = ["ready", "leased", "done", "dead", "cancelled"];

#[cfg(feature = "postgres")]
pub(super) use managing::run;
#[cfg(not(feature = "postgres"))]
pub(super) use missing::run;

/// The command of a build without the feature.
#[cfg(not(feature = "postgres"))]
mod missing {
    use super::Arguments;
    use crate::exit::{Exit, exit_without_feature};
    use crate::terminal::Terminal;
    use quorate::service::environment::Environment;

    pub(crate) async fn run(_: Arguments, _: &Environment, terminal: &Terminal) -> Exit {
        exit_without_feature("postgres", terminal)
    }
}

/// The command of a build with the feature.
#[cfg(feature = "postgres")]
mod managing {
    use quorate_ledger::store::tasks::TenantChange;
    use quorate_ledger::store::tasks::{TaskFilter, TaskState};

    use super::{Arguments, Command};
    use crate::arguments::HumanOrJson;
    use crate::exit::Exit;
    use crate::exit::{print_result_as, with_session};
    use crate::interrupt::{Interrupted, until_interrupted};
    use crate::render;
    use crate::terminal::Terminal;
    use quorate::service::environment::Environment;
    use quorate::service::error::ServiceError;
    use quorate::service::queue::{self, manage};
    use quorate::service::session::LedgerSession;

    pub(crate) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
        let command = arguments.command;
        let common = match &command {
            Command::Status { common }
            | Command::List { common, .. }
            | Command::Retry { common, .. }
            | Command::Cancel { common, .. }
            | Command::Pause { common, .. }
            | Command::Drain { common, .. }
            | Command::Tenant { common, .. }
            | Command::Quota { common, .. } => common,
        };
        let format = common.format;
        let places = common.places.path_overrides();
        let opened = queue::open(environment, &places).await;
        with_session(opened, format.into(), terminal, async |session| {
            let done = done(session, &command, terminal).await?;
            let Some(result) = done else { return Ok(Exit::INTERRUPTED) };
            let text = match format {
                HumanOrJson::Human => result.human,
                HumanOrJson::Json => format!("{:#}\n", result.json),
            };
            Ok(print_result_as(format.into(), &text, session, terminal))
        })
        .await
    }

    /// The result of a command, for people and for machines.
    struct Outcome {
        human: String,
        json: serde_json::Value,
    }

    async fn done(
        session: &LedgerSession,
        command: &Command,
        terminal: &Terminal,
    ) -> Result<Option<Outcome>, ServiceError> {
        Ok(Some(match command {
            Command::Status { .. } => {
                let status = manage::status(session).await?;
                Outcome {
                    human: render::queue::status(&status, terminal.stdout),
                    json: manage::status_json(&status),
                }
            }
            Command::List { dead, state, tenant, batch, limit, .. } => {
                let state = match dead {
                    true => Some(TaskState::Dead),
                    false => TaskState::ALL.into_iter().find(|one| Some(one.as_str()) == state.as_deref()),
                };
                let filter = TaskFilter { state, tenant: tenant.clone(), batch: batch.clone() };
                let tasks = manage::list(session, &filter, *limit).await?;
                Outcome {
                    human: render::queue::list(&tasks, terminal.stdout),
                    json: manage::list_json(&tasks),
                }
            }
            Command::Retry { runs, tenant, .. } => {
                let filter = TaskFilter { tenant: tenant.clone(), ..TaskFilter::default() };
                counted(manage::retry(session, runs, &filter).await?, "tried again", "retried")
            }
            Command::Cancel { runs, .. } => {
                counted(manage::cancel(session, runs).await?, "taken out of the queue", "cancelled")
            }
            Command::Pause { tenant, off, .. } => {
                manage::pause(session, tenant.as_deref(), !off).await?;
                paused(tenant.as_deref(), !off)
            }
            Command::Tenant { name, weight, max_running, max_waiting, .. } => {
                let change = TenantChange {
                    weight: *weight,
                    max_running: max_running.map(|limit| limit.0),
                    max_waiting: max_waiting.map(|limit| limit.0),
                };
                let tenant = manage::tenant(session, name, &change).await?;
                Outcome {
                    human: render::queue::tenant(&tenant, terminal.stdout),
                    json: manage::tenant_json(&tenant),
                }
            }
            Command::Quota { pool, rate, burst, .. } => {
                let limit = |rate: u64| (rate, burst.unwrap_or_else(|| rate.div_ceil(3_600)));
                let change = pool.as_deref().zip(*rate).map(|(pool, rate)| (pool, rate.0.map(limit)));
                let quotas = manage::quotas(session, change).await?;
                Outcome {
                    human: render::queue::quotas(&quotas, terminal.stdout),
                    json: manage::quotas_json(&quotas),
                }
            }
            Command::Drain { tenant, timeout, .. } => {
                let last = std::cell::Cell::new(0);
                let progress = |leased: u64| {
                    if last.replace(leased) != leased {
                        terminal.hint(&format!("workers still have {}", render::queue::tasks(leased)));
                    }
                };
                match until_interrupted(manage::drain(session, tenant.as_deref(), *timeout, &progress)).await
                {
                    Err(Interrupted) => {
                        terminal.status(
                            "interrupted; the queue stays paused: `quorate queue pause --off` ends that",
                        );
                        return Ok(None);
                    }
                    Ok(drained) => drained?,
                }
                let mut result = paused(tenant.as_deref(), true);
                result.human = format!("Workers have nothing left. {}", result.human);
                result
            }
        }))
    }

    fn counted(count: u64, what: &str, key: &str) -> Outcome {
        let tasks = if count == 1 { "task is" } else { "tasks are" };
        Outcome { human: format!("{count} {tasks} {what}.\n"), json: serde_json::json!({key: count}) }
    }

    fn paused(tenant: Option<&str>, paused: bool) -> Outcome {
        let whose = tenant.map_or_else(|| "The queue".to_owned(), |tenant| format!("The tenant `{tenant}`"));
        let off = tenant.map_or_else(String::new, |tenant| format!(" --tenant {tenant}"));
        let human = match paused {
            true => {
                format!("{whose} is paused: `quorate queue pause --off{off}` lets workers claim again.\n")
            }
            false => format!("{whose} goes on.\n"),
        };
        Outcome { human, json: serde_json::json!({"tenant": tenant, "paused": paused}) }
    }
}
