//! Arguments that several commands share.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{NonEmptyStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use quorate::input::{parse_duration, parse_since};
use quorate::review::FailOn;
use quorate::{
    Caps, Error, ErrorKind, Money, NatsServers, Producer, Quorate, RunOptions, Verdict, VerdictPolicy,
};
use quorate_diagnostics::{Body, codes};

#[derive(Debug, Clone, Args)]
pub(super) struct PathArguments {
    /// The council's file; by default the nearest council.yaml from the artifact's directory up, else the built-in council
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The ledger: a file or postgres://…; by default .quorate/ledger.db beside the configuration
    #[arg(long, value_name = "FILE|URL")]
    ledger: Option<PathBuf>,
}

impl PathArguments {
    /// The workspace with these files in place of its own.
    pub(super) fn apply(self, quorate: &Quorate) -> Quorate {
        quorate.with_paths(self.config, self.ledger)
    }
}

/// The NATS servers that carry events of runs.
#[derive(Debug, Clone, Args)]
pub(super) struct EventsArguments {
    /// NATS servers that carry events of runs, as nats://host:4222, with commas between; or QUORATE_NATS
    #[arg(long, value_name = "URL")]
    events: Option<String>,
    /// A .creds file for the NATS servers; or QUORATE_NATS_CREDS
    #[arg(long, value_name = "FILE")]
    events_creds: Option<PathBuf>,
}

impl EventsArguments {
    /// The servers, from the command line or the environment; `None` without any.
    pub(super) fn servers(self) -> Option<NatsServers> {
        let there = crate::environment::nats();
        let inbox = there.as_ref().and_then(|there| there.inbox.clone());
        let credentials = crate::environment::path("QUORATE_NATS_CREDS");
        let urls = self.events.or(there.map(|there| there.urls))?;
        Some(NatsServers { urls, credentials: self.events_creds.or(credentials), inbox })
    }
}

/// The producer of the reviewed text, which is hidden from its judges.
#[derive(Debug, Clone, Args)]
pub(super) struct ProducerArguments {
    /// The operator that produced it; `quorate playbook` learns from it, and it is hidden from the judges
    #[arg(long, value_name = "OPERATOR")]
    made_by: Option<String>,
    /// The shadow playbooks that were in its prompt (see `quorate weave --trying`)
    #[arg(long, value_name = "SLUG", value_delimiter = ',', requires = "made_by")]
    trying: Vec<String>,
}

impl ProducerArguments {
    pub(super) fn producer(&self) -> Option<Producer> {
        Producer::from_flags(self.made_by.as_deref(), &self.trying)
    }
}

/// Whether to queue what would be done, and for whom.
#[derive(Debug, Clone, Args)]
pub(super) struct QueueArguments {
    /// Queue it for workers (see `quorate worker`) in place of doing it; the ledger must be in a Postgres database
    #[arg(long)]
    pub(super) enqueue: bool,
    /// With --enqueue: wait until workers have ended it
    #[arg(long, requires = "enqueue")]
    pub(super) wait: bool,
    /// With --enqueue: for whom; workers serve tenants by turns
    #[arg(long, value_name = "NAME", requires = "enqueue", default_value = "default")]
    pub(super) tenant: String,
    /// With --enqueue: from 0, the most urgent, to 2
    #[arg(long, value_name = "0-2", requires = "enqueue", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub(super) priority: u8,
    /// With --enqueue: which workers take it (`quorate worker --class`)
    #[arg(long, value_name = "NAME", requires = "enqueue", default_value = "default")]
    pub(super) worker_class: String,
}

#[cfg(feature = "postgres")]
impl QueueArguments {
    pub(super) fn options(&self) -> quorate::cluster::queue::QueueOptions {
        quorate::cluster::queue::QueueOptions {
            tenant: self.tenant.clone(),
            class: self.worker_class.clone(),
            priority: self.priority,
        }
    }
}

/// The executor of a run, and its limits.
#[derive(Debug, Clone, Args)]
pub(super) struct ExecutorArguments {
    /// The executor: a table of quorate.toml, rubric, claude, codex, anthropic, openai, gemini, ollama …, each with `:MODEL`, or http://HOST/v1#MODEL; `quorate models` lists them
    #[arg(long, value_name = "NAME")]
    executor: Option<String>,
    /// The model, in place of the executor's own
    #[arg(long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    model: Option<String>,
    /// The most calls of a run, including re-prompts and retries
    #[arg(long, value_name = "N")]
    max_calls: Option<u32>,
    /// The most tokens of a run, prompts and answers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: Option<u64>,
    /// The most money of a run, for example "5 USD"
    #[arg(long, value_name = "AMOUNT", value_parser = Money::parse_cap)]
    max_money: Option<Money>,
    /// The timeout of each member, for example 90s or 5m
    #[arg(long, value_name = "D", value_parser = duration)]
    timeout: Option<Duration>,
}

impl ExecutorArguments {
    pub(super) fn options(&self) -> RunOptions {
        RunOptions {
            executor: self.executor.clone(),
            model: self.model.clone(),
            caps: Caps { calls: self.max_calls, tokens: self.max_tokens, money: self.max_money },
            timeout: self.timeout,
            ..RunOptions::default()
        }
    }
}

/// The options of a review.
#[derive(Debug, Clone, Args)]
pub(super) struct ReviewArguments {
    /// The verdict policy; by default council.yaml's, else lenient
    #[arg(long, value_parser = policy_parser())]
    pub(super) policy: Option<VerdictPolicy>,
    #[command(flatten)]
    pub(super) answers: ExecutorArguments,
}

/// Maps verdicts to exit codes.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct FailOnArguments {
    /// Exit with 0 on anything milder than this; by default each verdict has its own exit code
    #[arg(long, value_name = "VERDICT", value_parser = fail_on_parser())]
    pub(super) fail_on: Option<FailOn>,
}

fn fail_on_parser() -> impl TypedValueParser<Value = FailOn> {
    one_of([
        (
            "ship-with-blocks",
            FailOn::ShipWithBlocks,
            "SHIP over a block exits with 1, other verdicts as usual",
        ),
        ("revise", FailOn::Revise, "SHIP exits with 0, other verdicts as usual"),
        ("hold", FailOn::Hold, "REVISE exits with 0, too"),
        ("incomplete", FailOn::Incomplete, "Every verdict but INCOMPLETE exits with 0"),
    ])
}

#[derive(Debug, Clone, Args)]
pub(super) struct OutputArguments {
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    places: PathArguments,
}

impl OutputArguments {
    /// As [`PathArguments::apply`].
    pub(super) fn apply(self, quorate: &Quorate) -> Quorate {
        self.places.apply(quorate)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum HumanOrJson {
    /// Text to read
    Human,
    /// One JSON object
    Json,
}

/// Parses a `--since`, in milliseconds since the Unix epoch; `None` for all.
pub(super) fn since(text: &str, now_ms: i64) -> Result<Option<i64>, Error> {
    parse_since(text, now_ms)
        .map_err(|error| Error::new(ErrorKind::InvalidRequest, codes::USAGE, Body::new(error.to_string())))
}

/// Parses a duration, as in quorate.toml.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(zero) if zero.is_zero() => Err("it must be longer than nothing".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

/// The parser of a verdict policy.
fn policy_parser() -> impl TypedValueParser<Value = VerdictPolicy> {
    one_of([
        (
            "lenient",
            VerdictPolicy::Seed,
            "HOLD for 3+ blocks, unless none is irreducible and the adjudicator asks for REVISE; else SHIP with the brief",
        ),
        (
            "strict",
            VerdictPolicy::Strict,
            "HOLD for any irreducible objection, and for 3+ blocks unless the adjudicator asks for REVISE; REVISE for 1 or 2; else SHIP",
        ),
        ("seed", VerdictPolicy::Seed, "The name of `lenient` in records"),
    ])
}

/// The parser of a verdict: these, in lower case, each with its help.
pub(super) fn verdict_parser<const N: usize>(
    verdicts: [(Verdict, &'static str); N],
) -> impl TypedValueParser<Value = Verdict> {
    one_of(verdicts.map(|(verdict, help)| (verdict.as_str().to_lowercase(), verdict, help)))
}

/// The parser of one of these words, each with its value and its help.
pub(super) fn one_of<W: Into<clap::builder::Str>, T: Copy + Send + Sync + 'static, const N: usize>(
    choices: [(W, T, &'static str); N],
) -> impl TypedValueParser<Value = T> {
    let choices = choices.map(|(word, value, help)| (word.into(), value, help));
    let values = choices.clone().map(|(word, _, help)| PossibleValue::new(word).help(help));
    PossibleValuesParser::new(values).map(move |word| {
        let chosen = choices.iter().find(|(known, ..)| known.as_str().eq_ignore_ascii_case(&word));
        chosen.map(|(_, value, _)| *value).expect("a listed word")
    })
}
