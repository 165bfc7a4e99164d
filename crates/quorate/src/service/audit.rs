//! Audit: statistics on a council over time, on its producers and on its members' agreement, from its log; costs, from
//! the ledger. Its JSON has counts, and rates, which are `null` without a denominator.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use quorate_adapters::executor::{cassette, inline, rubric, script};
use quorate_diagnostics::{Body, codes};
use quorate_kernel::ports::executor::Usage;
use quorate_ledger::Store;
use quorate_ledger::council_log::stats::{
    self, Agreement, DeliberatorStats, Drift, LogStats, MIN_SHARED, Pair, ProducerStats, Producers,
    ReviewCounts,
};
use quorate_ledger::council_log::{self, CountedLog};
use quorate_ledger::stats::{MemberCost, ReviewFilter};
use quorate_manifest::money::Money;
use quorate_protocol::Name;
use schemars::JsonSchema;
use serde::Serialize;

use super::disk::{self, absolute, display_path};
use super::environment::Environment;
use super::error::Error;
use super::guard::Guard;
use super::session::LedgerSession;
use super::time_text::{day, instant};
use super::workspace::{self, PathOverrides};

/// What an audit counts.
#[derive(Debug, Clone, Default)]
pub struct AuditRequest {
    /// The reviews that count.
    pub filter: ReviewFilter,
    /// A log to count on its own, without ledger or configuration.
    pub log: Option<PathBuf>,
    /// Whether to read the whole log instead of its index.
    pub reindex: bool,
    /// Whether a log without a ledger is an error. Otherwise a ledger is created for its index.
    pub read_only: bool,
    /// The file that the audit will be written to ([`Quorate::write_audit`](crate::Quorate::write_audit)): an error if it
    /// belongs to the ledger.
    pub output: Option<PathBuf>,
}

/// The counts that an audit reports.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) stats: LogStats,
    pub(crate) producers: Producers,
    pub(crate) agreement: Agreement,
    /// The costs of the ledger's runs; a log alone has none.
    pub(crate) costs: Costs,
    /// Runs whose lines or rows differ from their records, with what differs; they are not counted (D13).
    pub(crate) altered: BTreeMap<Name, String>,
    /// Lines of the log that cannot be read.
    pub(crate) corrupt_lines: u64,
    pub(crate) log_exists: bool,
}

/// An empty audit, for a workspace with neither log nor ledger; creates neither.
///
/// # Errors
/// If the configuration is refused.
pub(crate) fn empty(
    environment: &Environment,
    places: &PathOverrides,
    request: &AuditRequest,
) -> Result<Option<Audit>, Error> {
    let workspace = workspace::load(environment, places, &environment.directory)?;
    let nothing = !workspace.log.is_file() && !workspace.ledger.may_exist();
    let log = display_path(environment, &workspace.log);
    Ok(nothing.then(|| Audit::new(log, &request.filter, Counts::default())))
}

/// Audits a log on its own, without ledger or configuration.
///
/// # Errors
/// If the log does not exist or cannot be read.
#[crate::boxed]
pub(crate) async fn audit_file(
    environment: &Environment,
    log: &Path,
    filter: &ReviewFilter,
) -> Result<Audit, Error> {
    let path = absolute(&environment.directory, log);
    if !path.exists() {
        let body = Body::new(format!("cannot read the log {}: it does not exist", log.display()));
        let help =
            "pass a council_log.jsonl with `--log`; without `--log` the audit reads this workspace's log";
        return Err(Error::not_found(codes::FILE_UNREADABLE, body.help(help)));
    }
    if path.is_dir() {
        let body = Body::new(format!("cannot read the log {}: it is a directory", log.display()));
        let help = "pass the file, as in `--log .quorate/council_log.jsonl`";
        return Err(Error::configuration(codes::FILE_UNREADABLE, body.help(help)));
    }
    let store = Store::open_log_only(&path).await?;
    let indexed = council_log::sync(&store, &path).await?;
    let counted = council_log::without_ledger(&store, indexed).await?;
    let counts = Counts { corrupt_lines: indexed.corrupt, log_exists: true, ..Counts::default() };
    let counts = count(&store, counted, filter, counts).await?;
    Ok(Audit::new(display_path(environment, &path), filter, counts))
}

/// Counts the lines of a log.
async fn count(
    store: &Store,
    counted: CountedLog,
    filter: &ReviewFilter,
    counts: Counts,
) -> Result<Counts, Error> {
    let (stats, producers) = stats::stats(store, &counted, filter).await?;
    let agreement = stats::agreement(store, &counted, filter).await?;
    Ok(Counts { stats, producers, agreement, altered: counted.altered, ..counts })
}

/// Writes an audit to a file, replacing it. Refuses the audited log and the ledger's own files.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write(environment: &Environment, audit: &Audit, path: &Path, text: &str) -> Result<(), Error> {
    let path = absolute(&environment.directory, path);
    let refused = |why: &str| {
        let body =
            Body::new(format!("cannot write the audit to {}: {why}", display_path(environment, &path)));
        Error::configuration(codes::FILE_UNWRITABLE, body.help("choose another name"))
    };
    Guard::of_log(&environment.directory.join(&audit.log)).ensure_free(environment, &path)?;
    if disk::canonical_or_new(&path).ancestors().skip(1).any(|dir| dir.ends_with(".quorate")) {
        return Err(refused("a ledger is stored there"));
    }
    disk::write_file(&path, text.as_bytes()).map_err(|error| refused(&error.to_string()))
}

/// Audits the session's log.
///
/// # Errors
/// If log or ledger cannot be read, or the output is a file of the ledger.
#[crate::boxed]
pub(crate) async fn audit(session: &LedgerSession, request: &AuditRequest) -> Result<Audit, Error> {
    let (workspace, filter) = (&session.workspace, &request.filter);
    if let Some(output) = &request.output {
        workspace.guard.ensure_free(&session.environment, output)?;
    }
    if request.reindex {
        council_log::forget_index(&session.store, &workspace.log).await?;
    }
    let indexed = session.compared_log_index().await?;
    let counted = council_log::compare(&session.store, &workspace.log, indexed).await?;
    let counts = Counts {
        costs: Costs::load(session, filter).await?,
        corrupt_lines: indexed.corrupt,
        log_exists: workspace.log.is_file(),
        ..Counts::default()
    };
    let counts = count(&session.store, counted, filter, counts).await?;
    Ok(Audit::new(display_path(&session.environment, &workspace.log), filter, counts))
}

/// Kinds of executors that ask no model. Any other may ask one, even if it reports neither tokens nor a price.
const ASK_NO_MODEL: [&str; 4] = [cassette::KIND, inline::KIND, rubric::KIND, script::KIND];

/// Sums of costs.
#[derive(Default)]
pub(crate) struct Costs {
    all: SumReport,
    /// By executor, with the model that answered or was asked.
    executors: BTreeMap<(String, Option<String>), SumReport>,
    members: BTreeMap<String, SumReport>,
    /// By type of artifact; by the ledger's stream for questions outside of runs.
    types: BTreeMap<String, SumReport>,
    /// By month, such as `2026-11`.
    months: BTreeMap<String, SumReport>,
}

impl Costs {
    /// Sums up the costs that the ledger has recorded.
    async fn load(session: &LedgerSession, filter: &ReviewFilter) -> Result<Costs, Error> {
        let mut costs = Costs::default();
        session.store.member_costs(filter, |cost| costs.add(cost)).await?;
        Ok(costs)
    }

    fn add(&mut self, cost: MemberCost) {
        if cost.usage == Usage::default() && ASK_NO_MODEL.contains(&&*cost.kind) {
            return;
        }
        self.all.add(&cost);
        let month = cost.at.get(..7).unwrap_or_default().to_owned();
        self.months.entry(month).or_default().add(&cost);
        self.types.entry(cost.artifact_type.clone()).or_default().add(&cost);
        self.members.entry(cost.member.clone()).or_default().add(&cost);
        self.executors.entry((cost.executor.clone(), cost.model.clone())).or_default().add(&cost);
    }
}

/// The version of the JSON that `audit` prints.
pub(crate) const SCHEMA: &str = "quorate.audit/v1";

/// Reviews by verdict.
type Verdicts = BTreeMap<String, u64>;

/// Verdicts, members' behaviour, producers, agreement, drift, overrides and cost of a period
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AuditReport")]
pub struct Audit {
    #[schemars(extend("const" = "quorate.audit/v1"))]
    schema: &'static str,
    /// The log that was counted
    pub log: String,
    /// Whether the log exists
    pub present: bool,
    /// Lines of the log that cannot be read
    pub corrupt_lines: u64,
    /// Runs whose rows or lines differ from their records; they are not counted
    pub altered: Vec<AlteredRun>,
    /// The filter that was applied
    pub filter: AppliedFilter,
    /// Reviews that were counted: without closed ones, and one that was resumed to a verdict once
    pub reviews: u64,
    /// Reviews by type of artifact, then by verdict
    pub verdicts: BTreeMap<String, Verdicts>,
    /// Deliberators of the counted reviews, by name
    pub deliberators: Vec<Deliberator>,
    /// Weeks, the earliest first
    pub weeks: Vec<Week>,
    /// Types of artifact whose verdicts became stricter or milder in three weeks in a row
    pub drift: Vec<TypeDrift>,
    /// Producers of the counted reviews, by name
    pub producers: Vec<Producer>,
    /// Agreement of pairs of deliberators
    pub agreement: AgreementReport,
    /// Tokens read and written, in the reviews that record them; null if none does
    pub tokens: Option<u64>,
    /// Reviews that record tokens
    #[serde(skip)]
    pub reviews_with_tokens: u64,
    /// Mean number of tokens of the reviews that record them; null if none does
    pub tokens_per_review: Option<f64>,
    /// Calls of members, in the reviews that record them
    pub calls: u64,
    /// Mean number of calls of the reviews that record them; null if none does
    pub calls_per_review: Option<f64>,
    /// Time spent in the reviews, in milliseconds
    pub elapsed_ms: u64,
    /// Mean time of a review, in milliseconds; null without reviews
    pub elapsed_ms_per_review: Option<f64>,
    /// Costs that the ledger has recorded; zero for a log without its ledger
    pub costs: CostsReport,
    /// Reviews that people decided otherwise on
    pub overrides: u64,
    /// Share of reviews that were overridden, 0 to 1; null without reviews
    pub override_rate: Option<f64>,
}

/// A run whose rows or lines differ from its records
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AlteredRun {
    /// The run's id
    pub run: String,
    /// What differs
    pub difference: String,
}

/// The filter of an audit
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppliedFilter {
    /// Earliest time of the counted reviews, RFC 3339 in UTC; null without a limit
    pub since: Option<String>,
    /// The only verdict that is counted, in upper case; null for all
    pub verdict: Option<String>,
    /// The only type of artifact that is counted; null for all
    pub artifact_type: Option<String>,
}

/// How a deliberator behaves: counts of reviews, and their shares
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Deliberator {
    /// The deliberator's id
    pub id: String,
    /// Reviews in which it took part
    pub reviews: u64,
    /// It blocked at the end
    pub block: u64,
    /// Share of its reviews in which it blocked at the end, 0 to 1; null without reviews
    pub block_rate: Option<f64>,
    /// Reviews in which it marked its objection as one that no edit can repair
    pub irreducible: u64,
    /// Share of its reviews with such an objection, 0 to 1; null without reviews
    pub irreducible_rate: Option<f64>,
    /// Its block changed from round 1 to round 2
    pub flip: u64,
    /// Share of its reviews in which its block changed, 0 to 1; null without reviews
    pub flip_rate: Option<f64>,
    /// It gave an answer that did not fit
    pub schema_failed: u64,
    /// Share of its reviews with an answer that did not fit, 0 to 1; null without reviews
    pub schema_failed_rate: Option<f64>,
    /// Reviews in which it timed out
    pub timed_out: u64,
    /// Share of its reviews in which it timed out, 0 to 1; null without reviews
    pub timed_out_rate: Option<f64>,
    /// Mean score in round 1; null without scores
    pub avg_r1_score: Option<f64>,
    /// Mean score in round 2; null without scores
    pub avg_r2_score: Option<f64>,
    /// Repeated questions after invalid answers
    pub reprompts: u64,
}

/// Verdicts of a week
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Week {
    /// Its Monday
    pub week: String,
    /// Reviews by type of artifact, then by verdict
    pub verdicts: BTreeMap<String, Verdicts>,
}

/// A type of artifact whose verdicts became stricter or milder in three weeks in a row
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TypeDrift {
    /// The type of artifact
    pub artifact_type: String,
    /// `improving` or `tightening`
    pub direction: &'static str,
    /// Mondays of the three weeks, the earliest first
    pub weeks: Vec<String>,
    /// The mean verdict of each week: SHIP is 1, REVISE 0.5, HOLD and INCOMPLETE 0
    pub means: Vec<f64>,
}

/// An operator whose artifacts were reviewed
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Producer {
    /// The operator's name
    pub producer: String,
    /// All reviews of its artifacts
    #[serde(flatten)]
    pub all: Reviews,
    /// Reviews that people decided otherwise on
    pub overrides: u64,
    /// Share of its reviews that were overridden, 0 to 1; null without reviews
    pub override_rate: Option<f64>,
    /// Weeks, the earliest first; reviews without a time are in none
    pub weeks: Vec<ProducerWeek>,
    /// Its last drift; null without one
    pub drift: Option<ProducerDrift>,
}

/// A producer's reviews in a week
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ProducerWeek {
    /// Its Monday
    pub week: String,
    /// Its Monday, as a day number since the Unix epoch
    #[serde(skip)]
    pub monday: i64,
    /// Reviews of the week
    #[serde(flatten)]
    pub all: Reviews,
}

/// Reviews of a producer's artifacts
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Reviews {
    /// Number of reviews
    pub reviews: u64,
    /// Reviews by verdict
    pub verdicts: Verdicts,
    /// SHIP is 1, REVISE 0.5, HOLD and INCOMPLETE 0
    pub mean_verdict: Option<f64>,
    /// Positions of deliberators in decided reviews
    pub positions: u64,
    /// Of these, positions that block
    pub blocks: u64,
    /// Share of positions that block, 0 to 1; null without positions
    pub block_rate: Option<f64>,
    /// Deliberators that scored in decided reviews
    pub scores: u64,
    /// The mean of each one's last score
    pub mean_score: Option<f64>,
}

/// Three weeks in a row in which verdicts on a producer's artifacts became stricter or milder
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProducerDrift {
    /// `improving` or `tightening`
    pub direction: &'static str,
    /// Mondays of the three weeks, the earliest first
    pub weeks: Vec<String>,
    /// The mean verdict of each week: SHIP is 1, REVISE 0.5, HOLD and INCOMPLETE 0
    pub means: Vec<f64>,
}

/// How often pairs of deliberators take the same position
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgreementReport {
    /// The fewest shared reviews for which a rate is given
    pub min_shared: u64,
    /// Decided reviews in which each deliberator has a position
    pub members: BTreeMap<String, u64>,
    /// Pairs of deliberators with shared reviews
    pub pairs: Vec<PairReport>,
    /// Deliberators that are not paired, since there are too many
    pub omitted: u64,
}

/// Positions of two deliberators in the reviews that they share
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PairReport {
    /// Ids of the first and the second deliberator
    pub members: [String; 2],
    /// Decided reviews in which both have a position
    pub shared: u64,
    /// Shared reviews in which both block
    pub both_block: u64,
    /// Shared reviews in which neither blocks
    pub both_pass: u64,
    /// Only the first one blocks
    pub first_blocks: u64,
    /// Only the second one blocks
    pub second_blocks: u64,
    /// The share in which they agree; null below `min_shared`
    pub agreement: Option<f64>,
    /// Cohen's kappa; null below `min_shared`, and where both always take the same position
    pub kappa: Option<f64>,
}

/// Costs that the ledger has recorded, in total and by group; executors that ask no model are left out
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostsReport {
    /// Total costs
    pub all: SumReport,
    /// Costs by executor and model
    pub executors: Vec<ExecutorCosts>,
    /// Costs by member
    pub members: Vec<MemberCosts>,
    /// Costs by type of artifact; those of questions outside of runs by stream
    pub artifact_types: Vec<TypeCosts>,
    /// Costs by month, the earliest first
    pub months: Vec<MonthCosts>,
}

/// Calls and what they took, as far as executors say
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct SumReport {
    /// Number of calls
    pub calls: u64,
    /// Calls without a known price
    pub unpriced_calls: u64,
    /// Tokens of prompts, cached ones included; null if no executor reports them
    pub tokens_in: Option<u64>,
    /// Tokens of prompts that were read from a cache; null if no executor reports them
    pub tokens_cached: Option<u64>,
    /// Tokens that models wrote, reasoning included; null if no executor reports them
    pub tokens_out: Option<u64>,
    /// The known prices
    pub money: Option<Money>,
}

impl SumReport {
    fn add(&mut self, cost: &MemberCost) {
        self.calls += cost.calls;
        if cost.usage.money.is_none() {
            self.unpriced_calls += cost.calls;
        }
        let SumReport { tokens_in, tokens_cached, tokens_out, money, .. } = *self;
        let mut usage = Usage { tokens_in, tokens_cached, tokens_out, money, ..Usage::default() };
        usage.add(cost.usage);
        (self.tokens_in, self.tokens_cached) = (usage.tokens_in, usage.tokens_cached);
        (self.tokens_out, self.money) = (usage.tokens_out, usage.money);
    }
}

/// Costs of an executor with one model
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ExecutorCosts {
    /// The executor's name
    pub executor: String,
    /// The model that answered, or the requested one; null if unknown
    pub model: Option<String>,
    /// Calls and their costs
    #[serde(flatten)]
    pub sum: SumReport,
}

/// Costs of a member
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MemberCosts {
    /// The member's id
    pub member: String,
    /// Calls and their costs
    #[serde(flatten)]
    pub sum: SumReport,
}

/// Costs of a type of artifact
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TypeCosts {
    /// The type of artifact; the name of the stream for questions outside of runs
    pub artifact_type: String,
    /// Calls and their costs
    #[serde(flatten)]
    pub sum: SumReport,
}

/// Costs of a month in UTC
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MonthCosts {
    /// Such as `2026-11`
    pub month: String,
    /// Calls and their costs
    #[serde(flatten)]
    pub sum: SumReport,
}

impl Audit {
    pub(crate) fn new(log: String, filter: &ReviewFilter, counts: Counts) -> Audit {
        let stats = &counts.stats;
        let reviews = stats.reviews();
        let (counting, calls) = stats.calls;
        let (telling, tokens) = stats.tokens;
        let week = |(monday, types): (&i64, &BTreeMap<String, Verdicts>)| Week {
            week: day(*monday),
            verdicts: types.clone(),
        };
        let filter = AppliedFilter {
            since: filter.since_ms.map(instant),
            verdict: filter.verdict.clone(),
            artifact_type: filter.artifact_type.clone(),
        };
        let producer_drift = stats::producer_drifts(&counts.producers);
        let producer = |(name, stats): (&String, &ProducerStats)| {
            producer(name, stats, producer_drift.iter().find(|drift| drift.of == *name))
        };
        Audit {
            schema: SCHEMA,
            log,
            present: counts.log_exists,
            corrupt_lines: counts.corrupt_lines,
            altered: counts
                .altered
                .iter()
                .map(|(run, what)| AlteredRun { run: run.to_string(), difference: what.clone() })
                .collect(),
            filter,
            reviews,
            verdicts: stats.verdicts.clone(),
            deliberators: stats.deliberators.iter().map(|(id, stats)| deliberator(id, stats)).collect(),
            weeks: stats.weeks.iter().map(week).collect(),
            drift: stats::find_drift(stats).into_iter().map(type_drift).collect(),
            producers: counts.producers.iter().map(producer).collect(),
            agreement: AgreementReport {
                min_shared: MIN_SHARED,
                members: counts.agreement.members.clone(),
                pairs: counts.agreement.pairs.iter().map(|(names, pair)| pair_report(names, pair)).collect(),
                omitted: counts.agreement.omitted,
            },
            tokens: (telling > 0).then_some(tokens),
            reviews_with_tokens: telling,
            tokens_per_review: rate(tokens, telling),
            calls,
            calls_per_review: rate(calls, counting),
            elapsed_ms: stats.elapsed_ms,
            elapsed_ms_per_review: rate(stats.elapsed_ms, reviews),
            costs: CostsReport::from(counts.costs),
            overrides: stats.overrides,
            override_rate: rate(stats.overrides, reviews),
        }
    }
}

fn deliberator(id: &str, stats: &DeliberatorStats) -> Deliberator {
    let share = |count: u64| rate(count, stats.reviews);
    let mean = |(count, sum): (u64, u64)| rate(sum, count * 100);
    Deliberator {
        id: id.to_owned(),
        reviews: stats.reviews,
        block: stats.blocks,
        block_rate: share(stats.blocks),
        irreducible: stats.irreducible,
        irreducible_rate: share(stats.irreducible),
        flip: stats.flipped,
        flip_rate: share(stats.flipped),
        schema_failed: stats.schema_failed,
        schema_failed_rate: share(stats.schema_failed),
        timed_out: stats.timed_out,
        timed_out_rate: share(stats.timed_out),
        avg_r1_score: mean(stats.first_scores),
        avg_r2_score: mean(stats.last_scores),
        reprompts: stats.reprompts,
    }
}

fn drift_weeks(drift: &Drift) -> (Vec<String>, Vec<f64>) {
    drift.weeks.iter().map(|(monday, mean)| (day(*monday), *mean)).unzip()
}

fn type_drift(drift: Drift) -> TypeDrift {
    let (weeks, means) = drift_weeks(&drift);
    TypeDrift { direction: drift.direction.as_str(), artifact_type: drift.of, weeks, means }
}

fn producer(name: &str, stats: &ProducerStats, drift: Option<&Drift>) -> Producer {
    let week = |(monday, counts): (&i64, &ReviewCounts)| ProducerWeek {
        week: day(*monday),
        monday: *monday,
        all: Reviews::from(counts),
    };
    let drift = drift.map(|drift| {
        let (weeks, means) = drift_weeks(drift);
        ProducerDrift { direction: drift.direction.as_str(), weeks, means }
    });
    Producer {
        producer: name.to_owned(),
        all: Reviews::from(&stats.all),
        overrides: stats.overrides,
        override_rate: rate(stats.overrides, stats.all.reviews()),
        weeks: stats.weeks.iter().map(week).collect(),
        drift,
    }
}

impl From<&ReviewCounts> for Reviews {
    fn from(counts: &ReviewCounts) -> Self {
        Reviews {
            reviews: counts.reviews(),
            verdicts: counts.verdicts.clone(),
            mean_verdict: counts.mean_verdict().map(rounded),
            positions: counts.positions.0,
            blocks: counts.positions.1,
            block_rate: counts.block_rate().map(rounded),
            scores: counts.scores.0,
            mean_score: counts.mean_score().map(rounded),
        }
    }
}

fn pair_report((first, second): &(String, String), pair: &Pair) -> PairReport {
    PairReport {
        members: [first.clone(), second.clone()],
        shared: pair.shared(),
        both_block: pair.both_block,
        both_pass: pair.both_pass,
        first_blocks: pair.first_blocks,
        second_blocks: pair.second_blocks,
        agreement: pair.rate().map(rounded),
        kappa: pair.kappa().map(rounded),
    }
}

impl From<Costs> for CostsReport {
    fn from(costs: Costs) -> Self {
        fn list<K, T>(sums: BTreeMap<K, SumReport>, entry: fn((K, SumReport)) -> T) -> Vec<T> {
            sums.into_iter().map(entry).collect()
        }
        CostsReport {
            all: costs.all,
            executors: list(costs.executors, |((executor, model), sum)| ExecutorCosts {
                executor,
                model,
                sum,
            }),
            members: list(costs.members, |(member, sum)| MemberCosts { member, sum }),
            artifact_types: list(costs.types, |(artifact_type, sum)| TypeCosts { artifact_type, sum }),
            months: list(costs.months, |(month, sum)| MonthCosts { month, sum }),
        }
    }
}

fn rate(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| rounded(part as f64 / of as f64))
}

/// To four decimal places.
fn rounded(number: f64) -> f64 {
    (number * 10_000.0).round() / 10_000.0
}
