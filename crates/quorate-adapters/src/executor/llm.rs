//! The `llm` executor: asks a model over HTTP. This file owns the executor, the list of a service's models, and the quota
//! that a program shares between machines. In `llm/`: `config` reads the table and knows services by name, `service` owns
//! addresses and keys, `wire` the formats as pure modules with `schema` and `fault`, `call` makes one request and finds
//! prompts that were cut, `pool` limits the rate of calls and lets one call fill a cache that others read, `prices`
//! computes costs, and `embed` is the embedder.

mod adapt;
mod call;
mod config;
pub mod decide;
pub mod embed;
pub mod fault;
mod pool;
pub(crate) mod prices;
pub mod schema;
mod service;
pub mod wire;

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use quorate_diagnostics::text::shell_quoted;
use quorate_kernel::budget::most_tokens;
use quorate_kernel::ports::executor::{
    About, Admission, CallLimit, ConfigError, Executor, Failure, Inspection, Invocation, Notes, Reply, Retry,
    Settings, SideEffect, Usage,
};
use quorate_manifest::money::Money;
use quorate_protocol::{Json, answers};

use adapt::{Change, Field, Learned};
use call::{Call, CallFailure, Reader};
use config::{Config, SchemaMode};
use pool::{Lead, Outcome, Pool, UnderWay, past_deadline};
use schema::{Dialect, Form};
use service::{Secret, Service};
use wire::{Cache, Event, Format, Request, Stream, Wire};

use crate::http;

pub use config::{PRESETS, ServicePreset, with_key};

/// The tokens at most that services and chat templates put around a prompt and its parts.
const ENVELOPE_TOKENS: u64 = 64;

/// How many fields of a request are left out at most.
const MAX_CHANGES: usize = 10;

/// The kind that `quorate.toml` names.
pub const KIND: &str = crate::optional_kinds::LLM;

/// Builds the executor from its table.
///
/// # Errors
/// When the table has an unknown key or an unusable value, or does not say where the model is.
pub fn new(settings: &Settings) -> Result<Arc<dyn Executor>, ConfigError> {
    if let Some(api) = decide::api(settings) {
        return decide::new(settings, api);
    }
    let config = Config::parse(settings)?;
    let pool = Pool::named(&config.pool, config.concurrency);
    let reader = Reader::new(config.wire, config.context, config.max_tokens);
    let learned = adapt::learned(config.service.base_url.as_str(), &config.model, config.wire);
    Ok(Arc::new(Llm { name: settings.name.clone(), config, pool, reader, learned }))
}

/// What is known of the parts of a request.
struct Prepared {
    form: Option<&'static Form>,
    /// The parts that a server may refuse.
    sent: Vec<Field>,
    tokens_field: String,
    max_tokens: u32,
}

struct Llm {
    name: String,
    config: Config,
    pool: Arc<Pool>,
    reader: Reader,
    learned: Learned,
}

impl Llm {
    async fn list_models(&self, deadline: tokio::time::Instant) -> Result<Vec<String>, Failure> {
        let (service, wire) = (&self.config.service, self.config.wire);
        let (client, key) = (service.client().await?, service.key().await?);
        // Headers of a wire that hold for all its requests stand in any request.
        let mut fixed = wire.encode(&Request::probe(&self.config.model)).headers;
        fixed.retain(|(name, _)| *name != "content-type");
        let call = Call { client, service, key: key.as_ref(), deadline };
        let other = self.config.other_address();
        let hint = other.map(|other| format!("try `quorate models {}`", shell_quoted(&other)));
        let list = call.get(models_path(wire), &fixed).await.map_err(|mut failed| {
            let lacks_api = failed.fault.as_deref().is_some_and(adapt::lacks_api);
            failed.add_hint(hint.clone().filter(|_| lacks_api));
            failed.failure
        })?;
        let hint = hint.map_or(String::new(), |hint| format!("; {hint}"));
        let names = read_models(wire, &list)
            .ok_or_else(|| Failure::never(format!("the answer is not a list of models{hint}")))?;
        Ok(names.into_iter().map(|name| service.without_keys(fault::quoted(&name), key.as_ref())).collect())
    }

    /// What is sent for an invocation, and the form that its answer is translated back from.
    fn request(&self, invocation: &Invocation, changes: &[Change]) -> (wire::HttpRequest, Prepared) {
        let config = &self.config;
        let has = |change| changes.contains(&change);
        let mut sent = vec![Field::Tokens];
        let (format, form) = self.format(invocation.answer_schema, changes);
        // The host's instruction is what no member and no author has written.
        let prompt = &*invocation.prompt;
        let start = invocation.cuts.first().copied().filter(|cut| prompt.is_char_boundary(*cut)).unwrap_or(0);
        let is_apart = start > 0 && config.system && !has(Change::NoSystem);
        let start = if is_apart { start } else { 0 };
        let (system, prompt) = prompt.split_at(start);
        let cuts: Vec<usize> =
            invocation.cuts.iter().skip(1).filter_map(|cut| cut.checked_sub(start)).collect();
        let max_tokens = changes.iter().fold(config.max_tokens, |most, change| match change {
            Change::MaxTokens(less) => most.min(*less),
            _ => most,
        });
        // With this setting a request says nothing of the cache.
        let silent = if config.wire == Wire::Messages { Cache::Off } else { Cache::Auto };
        let request = Request {
            model: &config.model,
            system: is_apart.then_some(system),
            prompt,
            cuts: &cuts,
            format,
            max_tokens,
            effort: config.effort.as_deref().filter(|_| !has(Change::NoEffort)),
            cache: if has(Change::NoCache) { silent } else { config.cache },
            context_tokens: (config.wire == Wire::Ollama)
                .then(|| self.context_tokens(invocation.prompt.len())),
            server: config.server,
        };
        sent.extend(is_apart.then_some(Field::System));
        sent.extend((!matches!(request.format, Format::Text)).then_some(Field::Schema));
        sent.extend(request.effort.map(|_| Field::Effort));
        let says_cache = config.wire.has_cache_control(config.server) && request.cache != silent;
        sent.extend(says_cache.then_some(Field::Cache));
        let mut http = config.wire.encode(&request);
        let asks_usage = config.wire == Wire::Chat && config.usage && !has(Change::NoUsage);
        sent.extend(asks_usage.then_some(Field::Usage));
        sent.extend((config.wire == Wire::Responses && !has(Change::NoStore)).then_some(Field::Store));
        let tokens_field = changes.iter().rev().find_map(|change| match change {
            Change::TokensField(name) => Some(*name),
            _ => None,
        });
        let tokens_field = tokens_field.or(config.tokens_field.as_deref());
        let encoded = config.wire.tokens_field(config.server);
        let is_renamed = tokens_field.filter(|name| Some(*name) != encoded).zip(encoded);
        let drops_usage = config.wire == Wire::Chat && !asks_usage;
        if is_renamed.is_some() || drops_usage || has(Change::NoStore) || !config.extra.is_empty() {
            adapt::edit(&mut http, |body| {
                if let Some((name, encoded)) = is_renamed
                    && let Some(most) = body.remove(encoded)
                {
                    body.insert(name.to_owned(), most);
                }
                if drops_usage {
                    body.remove("stream_options");
                }
                if has(Change::NoStore) {
                    body.remove("store");
                }
                adapt::merge(body, &adapt::with_own_seed(&config.extra, invocation.sample));
            });
        }
        let tokens_field = tokens_field.unwrap_or_default().to_owned();
        (http, Prepared { form, sent, tokens_field, max_tokens })
    }

    /// How a request states the form of an answer, without the parts that the service has refused.
    fn format(
        &self,
        answer: answers::Schema,
        changes: &[Change],
    ) -> (Format<'static>, Option<&'static Form>) {
        let config = &self.config;
        let has = |change| changes.contains(&change);
        let dialect = if has(Change::PlainSchema) { Dialect::Plain } else { config.dialect() };
        let form = schema::form(answer, dialect);
        let mode = match config.schema {
            _ if has(Change::NoSchema) => SchemaMode::Prompt,
            SchemaMode::Native if has(Change::JsonObject) => SchemaMode::Json,
            mode => mode,
        };
        match (mode, form) {
            (SchemaMode::Native, Some(form)) => {
                (Format::Schema { name: form.name, schema: &form.schema }, Some(form))
            }
            (SchemaMode::Json, Some(_)) => (Format::JsonObject, None),
            (SchemaMode::Prompt, _) | (_, None) => (Format::Text, None),
        }
    }

    /// The request that a service may accept after it has refused a field of this one; `None` where there is none.
    fn change(
        &self,
        field: Field,
        refused: &Prepared,
        fault: &fault::Fault,
        changes: &[Change],
    ) -> Option<Change> {
        let has = |change| changes.contains(&change);
        let wire = self.config.wire;
        let change = match field {
            Field::Tokens => {
                let change = adapt::change_tokens(fault, &refused.tokens_field, refused.max_tokens)?;
                let has_names = matches!(wire, Wire::Chat | Wire::Responses);
                match change {
                    Change::TokensField(name)
                        if !has_names || self.config.tokens_field.as_deref() == Some(name) =>
                    {
                        return None;
                    }
                    Change::MaxTokens(_) if refused.max_tokens < self.config.max_tokens => return None,
                    change => change,
                }
            }
            Field::Usage => Change::NoUsage,
            Field::System => Change::NoSystem,
            Field::Schema => match refused.form {
                Some(_) if self.config.dialect().has_nulls() && !has(Change::PlainSchema) => {
                    Change::PlainSchema
                }
                Some(_) if wire.has_json_mode() => Change::JsonObject,
                _ => Change::NoSchema,
            },
            Field::Effort => Change::NoEffort,
            Field::Cache => Change::NoCache,
            Field::Store => Change::NoStore,
        };
        (!has(change)).then_some(change)
    }

    /// The context that a local server is told to make room for: a power of two, so that it does not load its model anew
    /// for each prompt.
    fn context_tokens(&self, prompt_bytes: usize) -> u32 {
        let needed =
            u32::try_from(prompt_bytes / 2).unwrap_or(u32::MAX).saturating_add(self.config.max_tokens);
        self.config.context.unwrap_or_else(|| needed.clamp(8_192, 1 << 20).next_power_of_two())
    }

    /// What has to be there before a request is sent: a prompt that fits, the pool's leave, and the key.
    async fn ready(&self, invocation: &Invocation) -> Result<(UnderWay, Option<Secret>), Failure> {
        let too_long = |why| invocation.notes.without_stand_in(Failure::never(why));
        self.reader.check_fits(&invocation.prompt).map_err(too_long)?;
        let under_way = self.pool.start(invocation.deadline, &invocation.progress).await?;
        Ok((under_way, self.config.service.key().await?))
    }

    /// Waits while another call with the same start of its prompt fills the cache; `Some` where this call does.
    async fn first_wave(&self, invocation: &Invocation) -> Option<Lead> {
        let (config, prompt) = (&self.config, &*invocation.prompt);
        let shared = invocation.cuts.last().and_then(|end| prompt.get(..*end))?;
        let least = pool::least_bytes(config.wire, config.server)?;
        if config.cache == Cache::Off || shared.len() < least {
            return None;
        }
        let key = pool::prefix_key(config.service.base_url.as_str(), &config.model, shared);
        pool::enter_wave(key, invocation.deadline).await
    }

    /// Makes a call. If the service names a field of the request that it does not accept, the request is sent again without
    /// it. A deadline spans all of that, and a field is left out once.
    async fn adapted(
        &self,
        invocation: &Invocation,
        key: Option<&Secret>,
        mut lead: Option<Lead>,
    ) -> Result<(wire::Response, Option<&'static Form>), CallFailure> {
        let known = self.learned.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut changes = known.clone();
        loop {
            let (http, prepared) = self.request(invocation, &changes);
            let requests = changes.len() - known.len() + 1;
            if requests > 1 {
                invocation.notes.note(|noted| noted.requests = requests.try_into().ok());
            }
            let mut failed = match self.call(http, key, invocation, &mut lead).await {
                Ok(response) => {
                    self.learn(&changes, &invocation.notes);
                    return Ok((response, prepared.form));
                }
                Err(failed) => failed,
            };
            let Some(fault) = failed.fault.take() else { return Err(failed) };
            let field = adapt::refused_field(&fault, &prepared.sent);
            match field.and_then(|field| self.change(field, &prepared, &fault, &changes)) {
                Some(change) if changes.len() < MAX_CHANGES => changes.push(change),
                _ => {
                    // An answer that is cut off or empty also shows that the request was accepted.
                    if field.is_none() && fault.status.is_none() {
                        self.learn(&changes, &invocation.notes);
                    }
                    failed.add_hint(self.hint(field, &fault));
                    return Err(failed);
                }
            }
        }
    }

    /// The setting to change after a failure that another request does not avoid.
    fn hint(&self, field: Option<Field>, fault: &fault::Fault) -> Option<String> {
        let table = adapt::table(&self.name);
        if let Some(field) = field {
            return Some(format!("{} this part of the request, in {table}", field.keys()));
        }
        if let Some(key) = adapt::refused_extra(fault, &self.config.extra) {
            return Some(format!("remove `{key}` from `extra` in {table}"));
        }
        if adapt::blames_cap(fault) {
            return Some(format!("a smaller `max_tokens` leaves more room, in {table}"));
        }
        let is_unknown = fault.kind == fault::FaultKind::UnknownModel;
        let other = self.config.other_address().filter(|_| adapt::lacks_api(fault));
        if is_unknown && other.is_none() {
            return Some(format!("`quorate models {}` lists the models", shell_quoted(&self.name)));
        }
        other.map(|other| format!("the address may be `{other}`"))
    }

    /// Remembers the changes that a request needed, for later calls, and notes them.
    fn learn(&self, changes: &[Change], notes: &Notes) {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<Change> = changes.iter().filter(|change| !learned.contains(change)).copied().collect();
        learned.extend(&new);
        let host = http::host_and_port(&self.config.service.base_url);
        let lines = |changes: &[Change]| {
            let line = (!changes.is_empty()).then(|| adapt::note(changes, &host, &self.name));
            line.into_iter().collect()
        };
        notes.note(|noted| (noted.changed, noted.newly_changed) = (lines(changes), lines(&new)));
    }

    async fn call(
        &self,
        request: wire::HttpRequest,
        key: Option<&Secret>,
        invocation: &Invocation,
        lead: &mut Option<Lead>,
    ) -> Result<wire::Response, CallFailure> {
        let deadline = invocation.deadline;
        let service = &self.config.service;
        let client = service.client().await.map_err(CallFailure::unsent)?;
        if !invocation.fence.holds(deadline).await {
            return Err(CallFailure::unsent(Failure::not_driven()));
        }
        let notes = &invocation.notes;
        let stream = Stream::new(self.config.wire);
        let call = Call { client, service, key, deadline };
        let mut has_text = false;
        let answered = call.send((request, stream), |event| {
            has_text |= matches!(event, Event::Text(_));
            let answers = !matches!(event, Event::Ended(response) if response.text.is_err());
            if answers && let Some(lead) = lead.take() {
                lead.begun();
            }
            match event {
                Event::Text(delta) => invocation.progress.wrote(delta.len()),
                Event::Progress => invocation.progress.wrote(0),
                Event::Ended(response) => self.note(notes, response),
            }
        });
        // A service that has begun to answer has accepted the request.
        answered.await.map_err(|failed| CallFailure { fault: failed.fault.filter(|_| !has_text), ..failed })
    }

    /// Notes what a response cost, also where it has no answer.
    fn note(&self, notes: &Notes, response: &wire::Response) {
        let money = self.config.price.charge(&response.usage, response.model.as_deref());
        let usage = Usage { money, ..response.usage };
        notes.note(|noted| {
            noted.usage = Some(usage);
            noted.model = response.model.clone().or_else(|| Some(self.config.model.clone()));
        });
    }
}

#[async_trait]
impl Executor for Llm {
    fn about(&self) -> About {
        About { kind: KIND, asks_a_model: true, model: Some(self.config.model.clone()) }
    }

    fn side_effects(&self) -> Vec<SideEffect> {
        self.config.price.side_effects(self.config.service.side_effects())
    }

    async fn admit(&self) -> Admission {
        self.pool.admit().await
    }

    fn default_timeout(&self) -> Duration {
        Duration::from_secs(600)
    }

    fn default_retries(&self) -> u32 {
        2
    }

    async fn models(&self, deadline: tokio::time::Instant) -> Option<Result<Vec<String>, Failure>> {
        Some(self.list_models(deadline).await)
    }

    fn call_limit(&self, prompt_tokens: u64, answer: answers::Schema) -> Option<CallLimit> {
        // Services count a form of the answer as part of the prompt.
        let form = Some(answer).filter(|_| self.config.schema == SchemaMode::Native);
        let form = form.and_then(|answer| schema::form(answer, self.config.dialect()));
        let form = form.map_or(0, |form| most_tokens(&form.schema.to_string()));
        let (read, wrote) = (prompt_tokens + form + ENVELOPE_TOKENS, u64::from(self.config.max_tokens));
        let money = self.config.price.price.as_ref().map(|price| price.most(read, wrote));
        Some(CallLimit { tokens: read + wrote, money })
    }

    fn price(&self, usage: &Usage) -> Option<Money> {
        self.config.price.price.as_ref()?.cost(usage)
    }

    fn is_metered(&self) -> bool {
        self.config.price.price != Some(prices::Price::FREE)
    }

    async fn inspect(&self, _: tokio::time::Instant) -> Option<Result<Inspection, Failure>> {
        Some(match self.check_installed() {
            Ok(()) => Ok(Inspection { tried: true, detail: self.config.describe() }),
            Err(refused) => Err(Failure::never(refused.message)),
        })
    }

    fn tools(&self) -> Option<Vec<String>> {
        Some(Vec::new())
    }

    fn check_installed(&self) -> Result<(), ConfigError> {
        self.config.service.check_key()
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let lead = self.first_wave(&invocation).await;
        let (under_way, key) = match self.ready(&invocation).await {
            Ok(ready) => ready,
            Err(failure) => {
                // Nothing was sent, so nothing of the budget is taken.
                invocation.notes.note(|noted| noted.usage = Some(call::nothing()));
                return Err(failure);
            }
        };
        let answered = self.adapted(&invocation, key.as_ref(), lead).await;
        let failure = match answered {
            Ok((response, form)) => {
                under_way.end(Outcome::Answered);
                let (text, model, usage) =
                    (response.text.unwrap_or_default(), response.model, response.usage);
                let was_cut = |why| invocation.notes.without_stand_in(Failure::never(why));
                self.reader.check_read(&invocation.prompt, usage.tokens_in).map_err(was_cut)?;
                let text = form.map_or_else(|| text.clone(), |form| form.restore(&text));
                return Ok(Reply {
                    text: self.config.service.without_keys(text, key.as_ref()),
                    model,
                    usage,
                    posted: None,
                });
            }
            Err(failure) => failure,
        };
        Err(settle(failure, under_way, (&self.config.service, key.as_ref()), &invocation).await)
    }
}

/// Notes the details of a failed call, and returns whether and when it may be repeated.
async fn settle(
    failure: CallFailure,
    under_way: UnderWay,
    (service, key): (&Service, Option<&Secret>),
    invocation: &Invocation,
) -> Failure {
    invocation.notes.note(|noted| {
        noted.http_status = failure.http_status;
        noted.no_stand_in = failure.is_of_answer;
        noted.host = Some(http::host_and_port(&service.base_url));
        if failure.is_free {
            noted.usage = Some(call::nothing());
        }
    });
    let message = service.without_keys(failure.failure.to_string(), key);
    let may_repeat = under_way.end(failure.outcome);
    if failure.is_auth && service.renews_key(key).await {
        // A command's key may have expired: the next attempt has another.
        return failure.failure.with_retry(Retry::Soon);
    }
    let Failure::Failed { retry, .. } = failure.failure else { return failure.failure };
    let left = invocation.deadline.saturating_duration_since(tokio::time::Instant::now());
    match retry {
        Retry::After(wait) if wait >= left => {
            Failure::never(format!("{message}; the service asks to wait {}", past_deadline(wait)))
        }
        Retry::Soon | Retry::After(_) if !may_repeat => {
            Failure::never(format!("{message}; not tried again, as the service answers no call"))
        }
        retry => Failure::Failed { message, retry },
    }
}

/// Where the list is, below the base URL.
fn models_path(wire: Wire) -> &'static str {
    match wire {
        Wire::Messages => "/v1/models?limit=1000",
        Wire::Chat | Wire::Responses => "/models",
        Wire::Gemini => "/models?pageSize=1000",
        Wire::Ollama => "/api/tags",
    }
}

/// The names in a list, sorted; `None` where it is none.
fn read_models(wire: Wire, list: &Json) -> Option<Vec<String>> {
    let (items, name, prefix) = match wire {
        Wire::Messages | Wire::Chat | Wire::Responses => (list.get("data")?, "id", ""),
        Wire::Gemini => (list.get("models")?, "name", "models/"),
        Wire::Ollama => (list.get("models")?, "name", ""),
    };
    let names = items.as_array()?.iter().filter_map(|item| item.get(name)?.as_str());
    let mut names: Vec<String> =
        names.map(|name| name.strip_prefix(prefix).unwrap_or(name).to_owned()).collect();
    names.sort_unstable();
    names.dedup();
    Some(names)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_read_as_each_service_writes_them() {
        let openai = json!({"object": "list", "data": [{"id": "b"}, {"id": "a"}, {"id": "b"}, {"x": 1}]});
        for wire in [Wire::Messages, Wire::Chat, Wire::Responses] {
            assert_eq!(read_models(wire, &openai).unwrap(), ["a", "b"]);
        }
        let gemini = json!({"models": [{"name": "models/gemini-3.5-flash"}]});
        assert_eq!(read_models(Wire::Gemini, &gemini).unwrap(), ["gemini-3.5-flash"]);
        assert_eq!(
            read_models(Wire::Ollama, &json!({"models": [{"name": "qwen3:8b"}]})).unwrap(),
            ["qwen3:8b"]
        );
        assert_eq!(read_models(Wire::Chat, &gemini), None);
        assert_eq!(read_models(Wire::Chat, &json!({"data": "x"})), None);
    }
}
