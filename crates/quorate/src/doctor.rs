//! Whether everything that a review needs is in place, and which models an executor has. Each executor is called once, except
//! for recorded answers; one that costs money only on request.

#[cfg(feature = "postgres")]
mod server;

use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::budget::{Amount, Budget, most_tokens};
use quorate_kernel::clock::rfc3339;
use quorate_kernel::meaning::Meaning;
use quorate_kernel::ports::executor::{CallLimit, Executor, Failure, Retry};
use quorate_kernel::ports::extension::Meter;
use quorate_kernel::{answer, single_call};
use quorate_ledger::stats::LedgerCounts;
use quorate_manifest::council::{Protocol, Rounds};
use quorate_manifest::money::Money;
use quorate_playbook::log::NEVER_GATED;
use quorate_protocol::Json;
use quorate_protocol::answers::Schema;
use quorate_protocol::modes::council::ADJUDICATOR;
use serde::Serialize;
use serde_json::{Map, json};

use super::builder::Quorate;
use super::error::{Error, ErrorKind};
use super::service::disk::{display_ledger, display_path, shell_quoted};
use super::service::environment::{Environment, NatsServers};
use super::service::executor::{self, NamedExecutor, SelectedBy, SelectedExecutor};
use super::service::run_spec::RunOptions;
use super::service::session::{self, LedgerSession};
use super::service::trust::{self, Permit};
use super::service::workspace::{self, PathOverrides, Workspace};
use super::service::{ledger, review, runs};
use crate::playbook::inspect;
use crate::playbook::library::Library;
use crate::view::{Doc, Table, Text, Tone};

/// How to check a workspace.
#[derive(Clone)]
pub struct DoctorRequest {
    /// The timeout of each call of an executor.
    pub timeout: Duration,
    /// Also ask executors that are paid for each question.
    pub ask: bool,
    /// Servers through which an event makes a round trip.
    pub events: Option<NatsServers>,
}

impl Default for DoctorRequest {
    fn default() -> Self {
        DoctorRequest { timeout: Duration::from_secs(60), ask: false, events: None }
    }
}

/// The checks of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// The checks.
    pub checks: Vec<DoctorCheck>,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DoctorCheck {
    /// What was checked.
    pub name: String,
    /// The result.
    #[serde(rename = "state")]
    pub status: CheckStatus,
    /// How it is, in a sentence.
    pub detail: String,
    /// The answer of a model that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<ProbeAnswer>,
}

/// A model's answer to one small question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProbeAnswer {
    /// Milliseconds until the answer was complete.
    pub ms: u64,
    /// The model that says it answered, if known.
    pub model: Option<String>,
    /// Whether a member could have given this answer.
    pub fits: bool,
    /// Whether the answer is JSON and nothing else.
    pub json_alone: bool,
    /// The tokens of the prompt, if the service reports them.
    pub tokens_in: Option<u64>,
    /// The tokens of the answer, if the service reports them.
    pub tokens_out: Option<u64>,
    /// The price, if it is known.
    pub money: Option<Money>,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum CheckStatus {
    /// It works.
    #[serde(rename = "good")]
    Passed,
    /// It works, with a warning.
    #[serde(rename = "noted")]
    Warning,
    /// It does not work.
    #[serde(rename = "bad")]
    Failed,
}

/// An executor that asks a model over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct ModelService {
    /// Its name, as `--executor` takes it.
    pub name: String,
    /// Why it cannot be asked, such as a key that is not set; `None` if nothing is missing.
    pub problem: Option<String>,
}

impl ModelService {
    /// A line for each, and the command that lists the models of one.
    pub fn doc(services: &[ModelService]) -> Doc {
        let mut doc = Doc::new();
        let row = |service: &ModelService| match &service.problem {
            Some(problem) => [Text::toned(Tone::Bad, "no"), (&service.name).into(), problem.into()],
            None => {
                [Text::toned(Tone::Good, "yes"), (&service.name).into(), "its settings are complete".into()]
            }
        };
        doc.table(Table::new(["", "executor", "how it is"]).with_rows(services.iter().map(row)));
        doc.line("This checks keys and settings, and connects to no service.");
        let ready = services.iter().find(|service| service.problem.is_none());
        let name = ready.map_or("http://localhost:8080/v1", |service| &service.name);
        doc.line(format!("`quorate models {name}` lists its models. An address such as `http://localhost:8080/v1` is also an executor."));
        doc
    }
}

impl Diagnosis {
    /// Whether something does not work.
    pub fn has_failed(&self) -> bool {
        self.failed() > 0
    }

    fn failed(&self) -> usize {
        self.checks.iter().filter(|check| check.status == CheckStatus::Failed).count()
    }

    /// A line for each check, and their sum.
    pub fn doc(&self) -> Doc {
        let mut doc = Doc::new();
        let word = |status| match status {
            CheckStatus::Passed => Text::toned(Tone::Good, "ok"),
            CheckStatus::Warning => Text::toned(Tone::Fair, "note"),
            CheckStatus::Failed => Text::toned(Tone::Bad, "bad"),
        };
        let row = |check: &DoctorCheck| [word(check.status), (&check.name).into(), (&check.detail).into()];
        doc.table(Table::new(["", "what", "how it is"]).with_rows(self.checks.iter().map(row)));
        doc.line(match self.failed() {
            0 => "Everything works.".to_owned(),
            1 => "1 thing does not work.".to_owned(),
            more => format!("{more} things do not work."),
        });
        doc
    }
}

impl Quorate {
    /// Checks the configuration, the executors, the playbooks and the ledger. It calls each executor once, with a harmless
    /// text.
    ///
    /// # Errors
    /// If the configuration is refused; every other problem is a check.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::Quorate;
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let diagnosis = quorate.doctor(Default::default()).await?;
    /// assert!(diagnosis.checks.iter().any(|check| check.name == "ledger"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn doctor(&self, request: DoctorRequest) -> Result<Diagnosis, Error> {
        let (environment, places) = (&self.environment, &self.places);
        let DoctorRequest { timeout, ask, events } = request;
        let workspace = workspace::load(environment, places, &environment.directory)?;
        session::deny_to_members(&workspace);
        let mut checks = configuration(environment, &workspace);
        checks.extend(executors(environment, &workspace, timeout, ask).await);
        checks.extend(embedder(environment, &workspace, timeout, ask).await);
        checks.push(processes());
        checks.push(sandbox(&workspace));
        checks.extend(playbooks(environment, places));
        match runs::open(environment, places).await {
            Ok(session) => {
                checks.extend(ledger(environment, &session).await);
                #[cfg(feature = "postgres")]
                checks.extend(server::checks(&session).await);
                let log = display_path(environment, &session.workspace.log);
                checks.push(match session.sync_log_index().await {
                    Ok(indexed) if indexed.corrupt > 0 => {
                        warning("log", format!("{log}: {} lines cannot be read", indexed.corrupt))
                    }
                    Ok(indexed) if indexed.is_cut => {
                        warning("log", format!("{log}: the last line has no line end, and is not counted"))
                    }
                    Ok(indexed) => {
                        passed("log", format!("{log}: {} bytes, every line can be read", indexed.bytes))
                    }
                    Err(error) => failed_by("log", &error),
                });
                session.close().await;
            }
            Err(error) => checks.push(failed_by("ledger", &error)),
        }
        if let Some(servers) = events {
            checks.push(match round_trip(&servers).await {
                Ok(detail) => passed("events", detail),
                Err(error) => failed("events", error.first_message()),
            });
        }
        Ok(Diagnosis { checks })
    }

    /// The executors that ask a model over HTTP: the tables of `quorate.toml`, then the presets. None is called.
    ///
    /// # Errors
    /// If the configuration is refused.
    pub fn model_services(&self) -> Result<Vec<ModelService>, Error> {
        let (environment, places) = (&self.environment, &self.places);
        let workspace = workspace::load(environment, places, &environment.directory)?;
        let (registry, config) = (&workspace.registry, &workspace.config);
        let is_service = |kind: Option<&str>| kind.is_some() && kind == registry.url_kind;
        let tables = config.executors.keys().cloned();
        let presets = registry.presets().filter(|name| is_service(registry.preset_kind(name)));
        let presets = presets.filter(|name| !config.executors.contains_key(*name)).map(str::to_owned);
        let service = |name: String| {
            let built = lister(&workspace, &name);
            let kind = built.as_ref().ok().map(|built| built.about().kind);
            let usable = built.and_then(|built| built.ensure_installed());
            let prefix = format!("executor `{name}`: ");
            let problem = usable.err().map(|error| error.first_message());
            let problem = problem.map(|problem| problem.trim_start_matches(&prefix).to_owned());
            (kind.is_none() || is_service(kind)).then_some(ModelService { name, problem })
        };
        Ok(tables.chain(presets).filter_map(service).collect())
    }

    /// The models of an executor: a table of `quorate.toml`, a preset or an address. `timeout` limits the whole call.
    ///
    /// # Errors
    /// If the executor is unknown, its key is missing, it cannot list models, or the service does not answer.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use std::time::Duration;
    ///
    /// use quorate::Quorate;
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let error = quorate.models("rubric", Duration::from_secs(30)).await.unwrap_err();
    /// assert!(error.to_string().contains("has no list of models"), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn models(&self, executor: &str, timeout: Duration) -> Result<Vec<String>, Error> {
        let (environment, places) = (&self.environment, &self.places);
        let workspace = workspace::load(environment, places, &environment.directory)?;
        let chosen = lister(&workspace, executor)?;
        chosen.ensure_installed()?;
        let admitted = trust::admit(environment, chosen.needs())?;
        let deadline = tokio::time::Instant::now() + timeout;
        let failed = |why: String| {
            let help = match &*why {
                NO_LIST => "`quorate models` lists the executors that have models".to_owned(),
                why => {
                    let is_away = why.starts_with("cannot reach");
                    let first = if is_away {
                        "start the server or correct its address"
                    } else {
                        "fix what the message names"
                    };
                    format!("{first}, and run `quorate models {}` again", shell_quoted(executor))
                }
            };
            let body = Body::new(format!("cannot list the models of `{executor}`: {why}")).help(help);
            Error::new(ErrorKind::Configuration, codes::EXECUTOR_INVALID, body)
        };
        match chosen.executor(admitted).models(deadline).await {
            None => Err(failed(NO_LIST.to_owned())),
            Some(Err(failure)) => Err(failed(failure.to_string())),
            Some(Ok(models)) => Ok(models),
        }
    }
}

/// Why an executor that asks no service cannot list models.
const NO_LIST: &str = "this kind of executor has no list of models";

/// The executor that lists models: without its stand-ins, and with any model if it names none.
fn lister(workspace: &Workspace, name: &str) -> Result<SelectedExecutor, Error> {
    let named = NamedExecutor::by_person(name);
    let select = |extra| workspace.executors().by_name(named, extra);
    let any = Map::from_iter([("model".to_owned(), json!("any"))]);
    let mut built = select(Map::new()).or_else(|refused| select(any).map_err(|_| refused))?;
    built.stand_ins.clear();
    Ok(built)
}

#[cfg(feature = "nats")]
use crate::cluster::nats::round_trip;

#[cfg(not(feature = "nats"))]
#[expect(clippy::unused_async, reason = "as with NATS")]
async fn round_trip(_: &NatsServers) -> Result<String, Error> {
    let body = Body::new("this program was built without the feature `nats`");
    Err(Error::configuration(codes::FEATURE_MISSING, body))
}

/// The ledger's size, checkpoint and signatures.
async fn ledger(environment: &Environment, session: &LedgerSession) -> Vec<DoctorCheck> {
    let path = display_ledger(environment, session.store.address());
    let mut checks = vec![match session.store.read_only_reason() {
        Some(why) => failed("ledger", format!("{path} cannot be written: {why}")),
        None => passed("ledger", format!("{path} can be written")),
    }];
    let counted = match ledger::stats(session).await {
        Ok(counted) => counted,
        Err(error) => return vec![failed_by("ledger", &error)],
    };
    let LedgerCounts {
        records,
        runs,
        open,
        conversations,
        signed,
        recent,
        checkpoint,
        checkpoint_at_ms,
        unsealed,
        ..
    } = &counted.counts;
    checks.push(passed(
        "ledger's size",
        format!(
            "{records} records of {runs} runs ({open} open) and {conversations} {} in {} KiB; {} records in the last {} days",
            if *conversations == 1 { "conversation" } else { "conversations" },
            counted.file_bytes.div_ceil(1024),
            recent.records,
            recent.days
        ),
    ));
    checks.push(match checkpoint {
        None if *records == 0 => passed("seal", "no records to seal"),
        None => {
            warning("seal", format!("{unsealed} records and no checkpoint: run `quorate ledger checkpoint`"))
        }
        Some(last) if last.note.is_none() => warning(
            "seal",
            format!("the last checkpoint, which covers {} records, is unsigned", last.tree.size),
        ),
        Some(last) => passed(
            "seal",
            format!(
                "the last checkpoint covers {} records, at {}; {unsealed} were appended since",
                last.tree.size,
                rfc3339(checkpoint_at_ms.unwrap_or_default())
            ),
        ),
    });
    checks.push(passed("signatures", format!("the records of {signed} runs are signed")));
    checks
}

/// Whether the playbooks match their histories and the ledger; `None` without playbooks.
fn playbooks(environment: &Environment, places: &PathOverrides) -> Option<DoctorCheck> {
    let library = match Library::open(environment, places, None) {
        Ok(library) => library,
        Err(error) => return Some(failed_by("playbooks", &error)),
    };
    let report = inspect::findings(&library, &|_| true);
    let count = library.catalogue.books.len();
    let books = library.catalogue.books.iter();
    let never_gated: Vec<&str> =
        books.filter(|book| library.gating(book).is_never_gated()).map(|book| &*book.playbook.slug).collect();
    let more = match &*never_gated.join(", ") {
        "" => "`quorate check .` says what to do".to_owned(),
        slugs => format!("{NEVER_GATED}: {slugs}; `quorate check .` says what to do"),
    };
    if let Some(refusal) = report.refusals.first() {
        return Some(failed("playbooks", format!("{}; {more}", refusal.body.message)));
    }
    if let Some(noted) = report.warnings.first() {
        let detail = format!("{}; {more}", noted.body.message);
        return Some(warning("playbooks", detail));
    }
    (count > 0).then(|| passed("playbooks", format!("{count}, matching their histories and the ledger")))
}

fn configuration(environment: &Environment, workspace: &Workspace) -> Vec<DoctorCheck> {
    let config = match &workspace.config_path {
        Some(path) => display_path(environment, path),
        None => "no quorate.toml here or above".to_owned(),
    };
    let council = match &workspace.council_path {
        Some(path) => display_path(environment, path),
        None => "no council.yaml here or above; using the built-in council".to_owned(),
    };
    let mut checks = vec![passed("host", config), passed("council", council)];
    let warnings = workspace.report.warnings.iter();
    checks.extend(warnings.map(|noted| warning("warning", &*noted.body.message)));
    let unusable = executor::server_errors(&workspace.config, |_| true);
    checks.extend(unusable.iter().map(|error| failed_by("MCP server", error)));
    checks
}

/// Calls the executors that a review would use, and every executor of quorate.toml.
async fn executors(
    environment: &Environment,
    workspace: &Workspace,
    timeout: Duration,
    ask: bool,
) -> Vec<DoctorCheck> {
    let options = RunOptions::default();
    let mut checks: Vec<DoctorCheck> = Vec::new();
    let mut chosen = Vec::new();
    match review::select_executors(workspace, &options) {
        Ok(selected) => {
            checks.push(passed("members", asked_through(&selected)));
            chosen.extend(selected.into_iter().map(|(member, executor)| (member.to_owned(), Ok(executor))));
        }
        Err(error) => checks.push(failed_by("members", &error)),
    }
    let members = chosen.len();
    let calls = review_calls(&workspace.council.protocol, &chosen);
    let (config, file) = (&workspace.config, workspace.config.path());
    let named = config.named_executors().map(|(name, _)| name);
    for name in config.executors.keys().chain(named) {
        let named = NamedExecutor { name, place: None, by: SelectedBy::File(&file) };
        let built = workspace.executors().by_name(named, Map::new());
        chosen.push((name.clone(), built));
    }
    let meaning = config.meaning.as_ref().map(|table| &table.executor);
    let answers_closed =
        [&config.council.tiers, &config.playbooks.judge].into_iter().flatten().chain(meaning);
    let answers_closed: Vec<&str> = answers_closed.map(|(name, _)| &**name).collect();
    let is_own = |stand_in: &SelectedExecutor| {
        let mut own = chosen.iter().take(members).filter_map(|(_, built)| built.as_ref().ok());
        own.any(|one| one.settings == stand_in.settings)
    };
    let stand_ins = chosen.iter().filter_map(|(_, built)| built.as_ref().ok()).flat_map(|one| &one.stand_ins);
    let stand_ins: Vec<SelectedExecutor> = stand_ins.filter(|one| !is_own(one)).cloned().collect();
    let titles: Vec<String> =
        stand_ins.iter().flat_map(|one| [executor_title(&one.name), judges_title(&one.name)]).collect();
    chosen.extend(stand_ins.into_iter().map(|one| (one.name.to_string(), Ok(one))));
    let all = chosen.iter().filter_map(|(_, built)| built.as_ref().ok());
    let asked = trust::admit(environment, all.flat_map(SelectedExecutor::needs).collect());
    let mut seen: Vec<Json> = Vec::new();
    let caps = super::service::budget::configured(config);
    let budget = Arc::new(Budget::new(caps, 0, Amount::default()));
    for (number, (name, built)) in chosen.into_iter().enumerate() {
        let check = match built {
            Ok(chosen) => {
                if seen.contains(&chosen.settings) {
                    continue;
                }
                seen.push(chosen.settings.clone());
                let mut title = executor_title(&chosen.name);
                if checks.iter().any(|check| check.name == title) {
                    // Two `runtime` blocks of one type.
                    title = format!("{title} of {name}");
                }
                let admit = || trust::admit_silently(environment, chosen.needs());
                let admitted = match asked.as_ref().ok().copied().map_or_else(admit, Ok) {
                    Ok(admitted) => admitted,
                    Err(error) => {
                        checks.push(failed_by(&title, &error));
                        continue;
                    }
                };
                let program = inspect(&chosen, admitted, timeout).await;
                let recordings = chosen.executor(admitted).recordings();
                if let Some(recordings) = recordings {
                    checks.push(match recordings {
                        Ok(count) => {
                            passed(&title, format!("{count} recorded answers; does not ask a model"))
                        }
                        Err(refused) => failed(&title, refused.message),
                    });
                    continue;
                }
                let callable = program.as_ref().is_none_or(|check| check.status != CheckStatus::Failed);
                checks.extend(program);
                let executor = chosen.executor(admitted);
                // Members come first, so that none of them uses this one.
                let is_closed = number >= members && answers_closed.contains(&&*name);
                let schema = match is_closed && executor.refuses(Schema::Predicate).is_none() {
                    true => Schema::Predicate,
                    false => single_call::probe_schema(&*executor),
                };
                match callable {
                    true if executor.is_metered() && !ask => {
                        passed(&title, not_asked(&*executor, calls, schema))
                    }
                    true => call(&title, schema, &chosen, admitted, timeout, &budget).await,
                    false => failed(&title, "not asked: it cannot run as a judge"),
                }
            }
            Err(error) => failed_by(&executor_title(&name), &error),
        };
        checks.push(check);
    }
    // Members can be asked without their stand-ins.
    for check in checks.iter_mut().filter(|check| titles.contains(&check.name)) {
        if check.status == CheckStatus::Failed {
            *check =
                warning(&check.name, format!("stands in for another executor, and fails: {}", check.detail));
        }
    }
    checks
}

fn executor_title(name: &str) -> String {
    format!("executor {name}")
}

fn judges_title(name: &str) -> String {
    format!("judges of {name}")
}

/// Which members of the council are asked through which executor.
fn asked_through(selected: &[(&str, SelectedExecutor)]) -> String {
    let mut groups: Vec<(&SelectedExecutor, Vec<&str>)> = Vec::new();
    for (member, executor) in selected {
        let is_same = |known: &SelectedExecutor| known.recorded_settings() == executor.recorded_settings();
        match groups.iter_mut().find(|(known, _)| is_same(known)) {
            Some((_, members)) => members.push(member),
            None => groups.push((executor, vec![member])),
        }
    }
    let through = |executor: &SelectedExecutor| {
        let model = executor.about().model.map_or_else(String::new, |model| format!(" ({model})"));
        let stand_ins = executor.stand_ins.iter().map(|one| format!("`{}`", one.name)).collect::<Vec<_>>();
        let stand_ins = match stand_ins.is_empty() {
            true => String::new(),
            false => format!(", with {} standing in", stand_ins.join(", then ")),
        };
        format!("`{}`{model}{stand_ins}", executor.name)
    };
    match &groups[..] {
        [(executor, _)] => format!("all are asked through {}", through(executor)),
        groups => {
            let line = |(executor, members): &(&SelectedExecutor, Vec<&str>)| {
                format!("{} through {}", members.join(", "), through(executor))
            };
            groups.iter().map(line).collect::<Vec<_>>().join("; ")
        }
    }
}

/// Whether the configured embedder can be asked, or why the executor of `[meaning]` cannot; else `None`.
async fn embedder(
    environment: &Environment,
    workspace: &Workspace,
    timeout: Duration,
    ask: bool,
) -> Option<DoctorCheck> {
    let name = if workspace.config.meaning.is_some() { "meaning" } else { "embedder" };
    let chosen = match workspace.executors().configured_meaning() {
        Ok(chosen) => chosen?,
        Err(error) => return Some(failed_by(name, &error)),
    };
    let admitted = trust::admit(environment, chosen.needs());
    let admitted = match admitted.and_then(|permit| chosen.ensure_installed().map(|()| permit)) {
        Ok(admitted) => admitted,
        Err(error) => return Some(failed_by(name, &error)),
    };
    // The executor of `[meaning]` is checked with the others.
    let Meaning::Embedder(embedder) = chosen.meaning(admitted) else { return None };
    let described = embedder.describe();
    if embedder.is_metered() && !ask {
        let detail = format!("{described}; not asked: `quorate doctor --ask` embeds one word");
        return Some(passed(name, detail));
    }
    let started = tokio::time::Instant::now();
    let asked = tokio::time::timeout(timeout, embedder.embed(&["ping"], &Meter::unlimited())).await;
    let took = started.elapsed().as_millis();
    Some(match asked {
        Ok(Ok(vectors)) => {
            let numbers = vectors.first().map_or(0, Vec::len);
            passed(name, format!("{described}; answered in {took} ms with a vector of {numbers} numbers"))
        }
        Ok(Err(why)) => failed(name, format!("{described}; {why}")),
        Err(_) => failed(name, format!("{described}; no answer within {} s", timeout.as_secs())),
    })
}

/// The calls of a review without retries: the rounds of the deliberators, and the adjudicator, each with all samples. Where the
/// council cannot be asked, those of the built-in one.
fn review_calls(protocol: &Protocol, members: &[(String, Result<SelectedExecutor, Error>)]) -> u64 {
    let rounds = if protocol.rounds == Rounds::One { 1 } else { 2 };
    let calls = |(member, executor): &(String, Result<SelectedExecutor, Error>)| {
        let samples = executor.as_ref().map_or(1, |executor| u64::from(executor.samples));
        if member == ADJUDICATOR { samples } else { samples * rounds }
    };
    if members.is_empty() { 9 } else { members.iter().map(calls).sum() }
}

/// The most tokens of one of their prompts for a text of a page or two.
const REVIEW_PROMPT_TOKENS: u64 = 5_000;

/// The model, the tokens, the cost and whether the answer is plain JSON; unknown parts are left out.
fn spent(answer: &ProbeAnswer) -> String {
    let mut text = answer.model.as_ref().map_or(String::new(), |model| format!(", `{model}`"));
    if let (Some(read), Some(wrote)) = (answer.tokens_in, answer.tokens_out) {
        text.push_str(&format!(", {read} tokens in, {wrote} out"));
    }
    if let Some(money) = answer.money.filter(|money| *money != Money::ZERO) {
        text.push_str(&format!(", {} USD", money.amount()));
    }
    text.push_str(match answer.json_alone {
        true => ", the answer is JSON alone",
        false => ", the answer stands in other text",
    });
    text
}

/// Why a paid executor is not asked, and the price of a review if it can deliberate.
fn not_asked(executor: &dyn Executor, calls: u64, schema: Schema) -> String {
    let most = |limit: CallLimit| Some(limit.money?.saturating_mul(calls));
    let cost = match executor.call_limit(REVIEW_PROMPT_TOKENS, schema).and_then(most) {
        _ if schema == Schema::Predicate => "the price of a review does not depend on it".to_owned(),
        #[expect(clippy::cast_precision_loss, reason = "the message shows cents")]
        Some(most) => format!("a review of a page or two costs at most {:.2} USD", most.nanos() as f64 / 1e9),
        None => "the price of a review is unknown".to_owned(),
    };
    format!("not asked: `quorate doctor --ask` asks one small question; {cost}")
}

/// Compares the tools that an executor gives a judge with those it needs.
async fn inspect(chosen: &SelectedExecutor, admitted: Permit, timeout: Duration) -> Option<DoctorCheck> {
    let deadline = tokio::time::Instant::now() + timeout;
    let name = judges_title(&chosen.name);
    Some(match chosen.executor(admitted).inspect(deadline).await? {
        Ok(inspected) if inspected.tried => passed(&name, inspected.detail),
        Ok(inspected) => warning(&name, inspected.detail),
        Err(Failure::TimedOut) => failed(&name, format!("no version within {} s", timeout.as_secs())),
        Err(Failure::Failed { message, .. }) => failed(&name, message),
    })
}

/// Asks one small question, within the caps of `[budget]`.
async fn call(
    title: &str,
    schema: Schema,
    chosen: &SelectedExecutor,
    admitted: Permit,
    timeout: Duration,
    budget: &Arc<Budget>,
) -> DoctorCheck {
    let executor = chosen.executor(admitted);
    let started = tokio::time::Instant::now();
    let mut has_waited = false;
    let (reserved, notes, replied) = loop {
        let question = single_call::probe_question_in(schema, timeout.saturating_sub(started.elapsed()));
        let limit = chosen.call_limit(most_tokens(&question.prompt), schema);
        let reserved = match budget.reserve_call() {
            Ok(()) => budget.reserve(limit).await,
            Err(exhausted) => Err(exhausted),
        };
        let reserved = match reserved {
            Ok(reserved) => reserved,
            Err(why) => return warning(title, format!("not asked: {why}")),
        };
        let notes = question.notes.clone();
        let replied = executor.invoke(question).await;
        // One refusal for the rate or the load says little: a review would ask again as well.
        let wait = match &replied {
            Err(Failure::Failed { retry: Retry::After(wait), .. }) => Some(*wait),
            Err(Failure::Failed { retry: Retry::Soon, .. }) => Some(Duration::from_secs(1)),
            _ => None,
        };
        let wait = wait.filter(|_| matches!(notes.read().http_status, Some(429 | 503 | 529)));
        let wait = wait.filter(|wait| !has_waited && started.elapsed() + *wait < timeout);
        let Some(wait) = wait else { break (reserved, notes, replied) };
        has_waited = true;
        tokio::time::sleep(wait).await;
    };
    let took = started.elapsed().as_millis();
    let about = chosen.about();
    let kind =
        if about.asks_a_model { about.kind.to_owned() } else { format!("{}, without a model", about.kind) };
    match replied {
        Ok(reply) => {
            let noted = notes.read();
            let usage = noted.usage.unwrap_or(reply.usage);
            reserved.settle(&usage);
            let fits = answer::extract(schema, &reply.text, &[]);
            let answer = ProbeAnswer {
                ms: u64::try_from(took).unwrap_or(u64::MAX),
                model: reply.model.or(noted.model),
                fits: fits.is_ok(),
                json_alone: serde_json::from_str::<Json>(&reply.text).is_ok(),
                tokens_in: usage.tokens_in,
                tokens_out: usage.tokens_out,
                money: usage.money.or_else(|| chosen.price(&usage)),
            };
            let known = if noted.usage.is_some() { spent(&answer) } else { String::new() };
            let checked = match fits {
                Ok(_) if noted.changed.is_empty() => {
                    passed(title, format!("answered in {took} ms ({kind}{known})"))
                }
                Ok(_) => {
                    let changed = noted.changed.join("; ");
                    warning(title, format!("answered in {took} ms ({kind}{known}); {changed}"))
                }
                Err(why) => {
                    let why = why.join("; ");
                    let effect = match schema {
                        Schema::Predicate => "its questions would have no answer",
                        _ => "its members would count as missing",
                    };
                    let help = format!("{effect}: name a larger model, or one that follows a JSON Schema");
                    let detail = format!("answered in {took} ms, but its answer does not match: {why}");
                    match about.asks_a_model {
                        true => failed(title, format!("{detail} ({help})")),
                        false => warning(title, detail),
                    }
                }
            };
            DoctorCheck { answer: about.asks_a_model.then_some(answer), ..checked }
        }
        Err(Failure::TimedOut) => {
            let words = notes.read().last_words;
            let words = words.map_or(String::new(), |words| format!("; its last lines on stderr: {words}"));
            failed(title, format!("no answer within {} s{words}", timeout.as_secs()))
        }
        Err(Failure::Failed { message, .. }) => failed(title, message),
    }
}

fn processes() -> DoctorCheck {
    match quorate_adapters::process::ends_descendants() {
        true => passed("processes", "ending a member ends every process that it started"),
        false => warning(
            "processes",
            "ending a member ends its process group, but not processes that left the group",
        ),
    }
}

/// Warns about executors that can read the signing keys.
fn sandbox(workspace: &Workspace) -> DoctorCheck {
    if let Err(why) = quorate_adapters::process::can_confine() {
        return warning("sandbox", format!("{why}: the commands of executors can read the signing keys"));
    }
    let registry = &workspace.registry;
    let starts = |block: &Map<String, Json>| block.contains_key("command") || block.contains_key("preset");
    let reaches = workspace.config.executors.iter().filter(|(_, table)| {
        let block = &table.block.json;
        let preset = block.get("preset").and_then(Json::as_str);
        let default = preset.is_some_and(|preset| registry.preset_kind(preset).is_some());
        starts(block) && !block.get("sandbox").and_then(Json::as_bool).unwrap_or(default)
    });
    let names: Vec<String> = reaches.map(|(name, _)| format!("`{name}`")).collect();
    match names.is_empty() {
        true => passed("sandbox", "Landlock keeps presets from reading keys, ledger and log"),
        false => warning(
            "sandbox",
            format!(
                "{} can read the signing keys; set `sandbox = true` in its table to prevent this",
                names.join(", ")
            ),
        ),
    }
}

fn check(name: &str, status: CheckStatus, detail: impl Into<String>) -> DoctorCheck {
    DoctorCheck { name: name.to_owned(), status, detail: detail.into(), answer: None }
}

fn passed(name: &str, detail: impl Into<String>) -> DoctorCheck {
    check(name, CheckStatus::Passed, detail)
}

fn warning(name: &str, detail: impl Into<String>) -> DoctorCheck {
    check(name, CheckStatus::Warning, detail)
}

fn failed(name: &str, detail: impl Into<String>) -> DoctorCheck {
    check(name, CheckStatus::Failed, detail)
}

/// The check of a part that an error keeps from working.
fn failed_by(name: &str, error: &Error) -> DoctorCheck {
    failed(name, error_line(error))
}

fn error_line(error: &Error) -> String {
    let line = |refusal: &quorate_diagnostics::Refusal| {
        let help = refusal.body.help.as_ref().map_or(String::new(), |help| format!(" ({help})"));
        format!("{}: {}{help}", refusal.code, refusal.body.message)
    };
    error.report.refusals.iter().map(line).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use quorate_diagnostics::render::TextOptions;

    use super::*;

    #[test]
    fn a_line_for_each_check() {
        let checks = vec![
            passed("ledger", ".quorate/ledger.db can be written"),
            warning("log", "council_log.jsonl: 2 lines cannot be read"),
            failed("executor claude", "no answer within 60 s"),
        ];
        insta::assert_snapshot!(Diagnosis { checks }.doc().text(TextOptions::default()), @"
              what             how it is
        ────────────────────────────────────────────────────────────────
        ok    ledger           .quorate/ledger.db can be written
        note  log              council_log.jsonl: 2 lines cannot be read
        bad   executor claude  no answer within 60 s

        1 thing does not work.
        ");
    }
}
