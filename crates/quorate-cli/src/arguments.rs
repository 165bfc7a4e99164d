//! Arguments that several commands share.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use quorate_diagnostics::{Body, codes};
use quorate_protocol::policy::Policy;

use super::render::Format;
use quorate::service::environment::Environment;
use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::producer::Producer;
use quorate::service::report::FailOn;
use quorate::service::run_options::RunOptions;
use quorate::service::since;
use quorate::service::workspace::PathOverrides;

/// Where configuration and ledger are.
#[derive(Debug, Clone, Args)]
pub(super) struct PathArguments {
    /// The council's file; without it council.yaml is looked for from the artifact up, else the built-in council sits
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The ledger's file; without it .quorate/ledger.db beside the configuration
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
}

impl PathArguments {
    pub(super) fn path_overrides(&self) -> PathOverrides {
        PathOverrides { config: self.config.clone(), ledger: self.ledger.clone() }
    }
}

/// Who has made what is judged, which nobody who judges it is told.
#[derive(Debug, Clone, Args)]
pub(super) struct ProducerArguments {
    /// The operator that made it; `quorate playbook` learns from it, and whoever judges is not told
    #[arg(long, value_name = "OPERATOR")]
    made_by: Option<String>,
    /// The playbooks in shadow that were in its prompt then (see `quorate weave --trying`)
    #[arg(long, value_name = "SLUG", value_delimiter = ',', requires = "made_by")]
    trying: Vec<String>,
}

impl ProducerArguments {
    pub(super) fn producer(&self) -> Option<Producer> {
        Producer::from_flags(self.made_by.as_deref(), &self.trying)
    }
}

/// Who answers, and what it may cost.
#[derive(Debug, Clone, Args)]
pub(super) struct ExecutorArguments {
    /// Who answers: a table of quorate.toml, claude, codex, gemini, ollama, or rubric
    #[arg(long, value_name = "NAME")]
    executor: Option<String>,
    /// Which model answers, in place of the one that the executor is set up with
    #[arg(long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    model: Option<String>,
    /// How many calls a run may make, re-prompts and retries included
    #[arg(long, value_name = "N")]
    max_calls: Option<u32>,
    /// How long each member may take, for example 90s or 5m
    #[arg(long, value_name = "D", value_parser = duration)]
    timeout: Option<Duration>,
}

impl ExecutorArguments {
    pub(super) fn options(&self) -> RunOptions {
        RunOptions {
            executor: self.executor.clone(),
            model: self.model.clone(),
            max_calls: self.max_calls,
            timeout: self.timeout,
            producer: None,
        }
    }
}

/// How a review is held.
#[derive(Debug, Clone, Args)]
pub(super) struct ReviewArguments {
    /// The verdict policy; without it the one that council.yaml names, else seed
    #[arg(long, value_enum)]
    policy: Option<PolicyArgument>,
    #[command(flatten)]
    pub(super) answers: ExecutorArguments,
}

impl ReviewArguments {
    pub(super) fn policy(&self) -> Option<Policy> {
        self.policy.map(|policy| match policy {
            PolicyArgument::Seed => Policy::Seed,
            PolicyArgument::Strict => Policy::Strict,
        })
    }
}

/// What the exit code says of a verdict.
#[derive(Debug, Clone, Args)]
pub(super) struct FailOnArguments {
    /// Exit with 0 on anything milder than this; without it each verdict has its own exit code
    #[arg(long, value_enum, value_name = "VERDICT")]
    fail_on: Option<FailOnArgument>,
}

impl FailOnArguments {
    pub(super) fn fail_on(&self) -> Option<FailOn> {
        self.fail_on.map(|threshold| match threshold {
            FailOnArgument::ShipWithBlocks => FailOn::ShipWithBlocks,
            FailOnArgument::Revise => FailOn::Revise,
            FailOnArgument::Hold => FailOn::Hold,
            FailOnArgument::Incomplete => FailOn::Incomplete,
        })
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FailOnArgument {
    /// SHIP over a block exits with 1, the others as ever
    ShipWithBlocks,
    /// SHIP exits with 0, the others as ever
    Revise,
    /// REVISE exits with 0, too
    Hold,
    /// Only INCOMPLETE does not exit with 0
    Incomplete,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PolicyArgument {
    /// 3+ irreducible blocks hold, 3+ blocks hold or are reasoned down to REVISE, the rest ships with the brief
    Seed,
    /// Any irreducible dissent or 3+ blocks hold, 1 or 2 revise, none ships
    Strict,
}

/// How it is printed, and where configuration and ledger are.
#[derive(Debug, Clone, Args)]
pub(super) struct OutputArguments {
    /// How it is printed
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    pub(super) format: HumanOrJson,
    #[command(flatten)]
    pub(super) places: PathArguments,
}

/// A format for people or programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum HumanOrJson {
    /// For people
    Human,
    /// One JSON object
    Json,
}

impl From<HumanOrJson> for Format {
    fn from(format: HumanOrJson) -> Format {
        match format {
            HumanOrJson::Human => Format::Human,
            HumanOrJson::Json => Format::Json,
        }
    }
}

/// Reads a `--since`: how far back, in milliseconds since the Unix epoch; `None` for all.
pub(super) fn since(text: &str, environment: &Environment) -> Result<Option<i64>, ServiceError> {
    since::parse(text, environment.clock.now_ms())
        .map_err(|error| ServiceError::new(ExitClass::Usage, codes::USAGE, Body::new(error.to_string())))
}

/// A duration as quorate.toml writes it.
fn duration(text: &str) -> Result<Duration, String> {
    match quorate_manifest::duration::parse(text) {
        Ok(zero) if zero.is_zero() => Err("it must be longer than nothing".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}
