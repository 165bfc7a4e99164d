//! The `llm` executor: asks a model over HTTP. This file owns the executor and what a chat model is asked. In `llm/`:
//! `service` reads where a model is, with its key, and knows services by name; `config` reads how a chat model is asked;
//! `wire` has the formats as pure modules, with `schema` and `fault`; `call` makes one request, `adapt` changes one that a
//! server refused, `pool` limits the rate of calls and lets one call fill a cache that others read, `prices` computes costs,
//! `decide` asks decision models, and `embed` is the embedder.

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
    About, Admission, CallLimit, ConfigError, Executor, Failure, Inspection, Invocation, Notes, Reply,
    Settings, SideEffect, Usage,
};
use quorate_manifest::money::Money;
use quorate_protocol::answers;
use reqwest::Method;

use adapt::{Change, Learned};
use call::{Call, CallFailure};
use config::{Config, SchemaMode};
use decide::Decider;
use pool::{Lead, UnderWay};
use schema::{Dialect, Form};
use service::{Field, KNOWN, Secret, Service};
use wire::{Cache, Event, Format, Request, Stream, Wire};

use crate::http;

pub use config::with_key;
pub use service::ServicePreset;

/// The tokens at most that services and chat templates put around a prompt and its parts.
const ENVELOPE_TOKENS: u64 = 64;

/// How many fields of a request are left out at most.
const MAX_CHANGES: usize = 10;

/// The kind that `quorate.toml` names.
pub const KIND: &str = crate::optional_kinds::LLM;

/// The services that are known by name, sorted.
pub fn presets() -> &'static [ServicePreset] {
    &KNOWN.preset
}

/// Builds the executor from its table.
///
/// # Errors
/// When the table has an unknown key or an unusable value, or does not say where the model is.
pub fn new(settings: &Settings) -> Result<Arc<dyn Executor>, ConfigError> {
    let (service, model) = match decide::api(settings) {
        Some(api) => {
            let (service, decider) = Decider::parse(settings, api)?;
            (service, Model::Decides(decider))
        }
        None => {
            let (service, config) = Config::parse(settings)?;
            let learned = adapt::learned(service.base_url.as_str(), &service.model, config.wire);
            (service, Model::Writes(Box::new(Chat { name: settings.name.clone(), config, learned })))
        }
    };
    Ok(Arc::new(Llm { service, model }))
}

struct Llm {
    service: Service,
    model: Model,
}

enum Model {
    Writes(Box<Chat>),
    /// A decision model.
    Decides(Decider),
}

/// How a model is asked that writes its answer.
struct Chat {
    /// The name of the executor.
    name: String,
    config: Config,
    learned: Learned,
}

/// What is known of the parts of a request.
struct Prepared {
    form: Option<&'static Form>,
    /// The parts that a server may refuse.
    sent: Vec<Field>,
    tokens_field: String,
    max_tokens: u32,
}

#[async_trait]
impl Executor for Llm {
    fn about(&self) -> About {
        About { kind: KIND, asks_a_model: true, model: Some(self.service.model.clone()) }
    }

    fn side_effects(&self) -> Vec<SideEffect> {
        self.service.side_effects()
    }

    async fn admit(&self) -> Admission {
        self.service.pool.admit().await
    }

    fn default_timeout(&self) -> Duration {
        Duration::from_secs(if matches!(self.model, Model::Writes(_)) { 600 } else { 180 })
    }

    fn default_retries(&self) -> u32 {
        2
    }

    fn threshold(&self) -> Option<f64> {
        match &self.model {
            Model::Writes(_) => None,
            Model::Decides(decider) => Some(decider.threshold),
        }
    }

    fn refuses(&self, answer: answers::Schema) -> Option<String> {
        match &self.model {
            Model::Writes(_) => None,
            Model::Decides(_) => decide::refusal(answer),
        }
    }

    async fn models(&self, deadline: tokio::time::Instant) -> Option<Result<Vec<String>, Failure>> {
        Some(self.list_models(deadline).await)
    }

    fn call_limit(&self, prompt_tokens: u64, answer: answers::Schema) -> Option<CallLimit> {
        let Model::Writes(chat) = &self.model else {
            // A router's options repeat its roster.
            return Some(self.service.limit(prompt_tokens * 2 + ENVELOPE_TOKENS, decide::ANSWER_TOKENS));
        };
        let config = &chat.config;
        // Services count a form of the answer as part of the prompt.
        let form = Some(answer).filter(|_| config.schema == SchemaMode::Native);
        let form = form.and_then(|answer| schema::form(answer, config.dialect));
        let form = form.map_or(0, |form| most_tokens(&form.schema.to_string()));
        Some(self.service.limit(prompt_tokens + form + ENVELOPE_TOKENS, config.max_tokens.into()))
    }

    fn price(&self, usage: &Usage) -> Option<Money> {
        self.service.cost(usage)
    }

    fn is_metered(&self) -> bool {
        self.service.is_metered()
    }

    async fn inspect(&self, _: tokio::time::Instant) -> Option<Result<Inspection, Failure>> {
        let detail = match &self.model {
            Model::Writes(chat) => self.service.describe(chat.config.wire.as_str(), ""),
            Model::Decides(decider) => decider.describe(&self.service),
        };
        let checked = self.check_installed().map_err(|refused| Failure::never(refused.message));
        Some(checked.map(|()| Inspection { tried: true, detail }))
    }

    fn tools(&self) -> Option<Vec<String>> {
        Some(Vec::new())
    }

    fn check_installed(&self) -> Result<(), ConfigError> {
        self.service.check_key()
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        // Until a request is sent, nothing of the budget is taken.
        invocation.notes.note(|noted| noted.usage = Some(call::nothing()));
        match &self.model {
            Model::Writes(chat) => chat.ask(&self.service, &invocation).await,
            Model::Decides(decider) => decider.ask(&self.service, &invocation).await,
        }
    }
}

impl Llm {
    async fn list_models(&self, deadline: tokio::time::Instant) -> Result<Vec<String>, Failure> {
        let service = &self.service;
        let (client, key) = (service.client().await?, service.key().await?);
        let call = Call { client, service, key: key.as_ref(), deadline };
        let (forms, other) = match &self.model {
            Model::Writes(chat) => (vec![chat.config.wire], chat.other_address(service)),
            Model::Decides(_) => (vec![Wire::Chat, Wire::Ollama], None),
        };
        let hint = other.map(|other| format!("try `quorate models {}`", shell_quoted(&other)));
        let list = call.document(Method::GET, forms[0].models_request()).await.map_err(|mut failed| {
            let lacks_api = failed.fault.as_deref().is_some_and(adapt::lacks_api);
            failed.add_hint(hint.clone().filter(|_| lacks_api));
            failed.failure
        })?;
        let hint = hint.map_or(String::new(), |hint| format!("; {hint}"));
        let names = forms.iter().find_map(|form| form.read_models(&list));
        let names =
            names.ok_or_else(|| Failure::never(format!("the answer is not a list of models{hint}")))?;
        Ok(names.iter().map(|name| service.shown_name(name, key.as_ref())).collect())
    }
}

impl Chat {
    fn other_address(&self, service: &Service) -> Option<String> {
        config::other_address(self.config.wire, &service.base_url)
    }

    /// What is sent for an invocation, and the form that its answer is translated back from.
    fn request(
        &self,
        model: &str,
        invocation: &Invocation,
        changes: &[Change],
    ) -> (wire::HttpRequest, Prepared) {
        let Config { wire, server, .. } = self.config;
        let config = &self.config;
        let has = |change| changes.contains(&change);
        let (format, form) = self.format(invocation.answer_schema, changes);
        // The host's instruction is what no member and no author has written.
        let prompt = &*invocation.prompt;
        let start = invocation.cuts.first().copied().filter(|cut| prompt.is_char_boundary(*cut)).unwrap_or(0);
        let start = if config.system && !has(Change::NoSystem) { start } else { 0 };
        let (system, prompt) = prompt.split_at(start);
        let system = (start > 0).then_some(system);
        let cuts: Vec<usize> =
            invocation.cuts.iter().skip(1).filter_map(|cut| cut.checked_sub(start)).collect();
        let caps = changes.iter().map(|change| match change {
            Change::MaxTokens(less) => *less,
            _ => config.max_tokens,
        });
        let max_tokens = caps.fold(config.max_tokens, u32::min);
        // With this setting a request says nothing of the cache.
        let silent = if wire == Wire::Messages { Cache::Off } else { Cache::Auto };
        let cache = if has(Change::NoCache) { silent } else { config.cache };
        let effort = config.effort.as_deref().filter(|_| !has(Change::NoEffort));
        let context_tokens = (wire == Wire::Ollama).then(|| self.context_tokens(invocation.prompt.len()));
        let request = Request {
            model,
            system,
            prompt,
            cuts: &cuts,
            format,
            max_tokens,
            effort,
            cache,
            context_tokens,
            server,
        };
        let mut http = wire.encode(&request);
        let asks_usage = wire == Wire::Chat && config.usage && !has(Change::NoUsage);
        let parts = [
            (Field::Tokens, true),
            (Field::System, system.is_some()),
            (Field::Schema, !matches!(format, Format::Text)),
            (Field::Effort, effort.is_some()),
            (Field::Cache, wire.has_cache_control(server) && cache != silent),
            (Field::Usage, asks_usage),
            (Field::Store, wire == Wire::Responses && !has(Change::NoStore)),
        ];
        let sent = parts.into_iter().filter(|(_, is_sent)| *is_sent).map(|(field, _)| field).collect();
        let tokens_field = changes.iter().rev().find_map(|change| match change {
            Change::TokensField(name) => Some(*name),
            _ => None,
        });
        let tokens_field = tokens_field.or(config.tokens_field.as_deref());
        adapt::edit(&mut http, |body| {
            if let Some((name, encoded)) = tokens_field.zip(wire.tokens_field(server))
                && let Some(most) = body.remove(encoded)
            {
                body.insert(name.to_owned(), most);
            }
            if !asks_usage {
                body.remove("stream_options");
            }
            if has(Change::NoStore) {
                body.remove("store");
            }
            adapt::merge(body, &adapt::with_own_seed(&config.extra, invocation.sample));
        });
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
        let dialect = if has(Change::PlainSchema) { Dialect::Plain } else { config.dialect };
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
            Field::Tokens => match adapt::change_tokens(fault, &refused.tokens_field, refused.max_tokens)? {
                Change::TokensField(name)
                    if !matches!(wire, Wire::Chat | Wire::Responses)
                        || self.config.tokens_field.as_deref() == Some(name) =>
                {
                    return None;
                }
                Change::MaxTokens(_) if refused.max_tokens < self.config.max_tokens => return None,
                change => change,
            },
            Field::Usage => Change::NoUsage,
            Field::System => Change::NoSystem,
            Field::Schema => match refused.form {
                Some(_) if self.config.dialect.has_nulls() && !has(Change::PlainSchema) => {
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

    /// Waits while another call with the same start of its prompt fills the cache; `Some` where this call does.
    async fn first_wave(&self, service: &Service, invocation: &Invocation) -> Option<Lead> {
        let Config { wire, server, cache, .. } = self.config;
        let shared = invocation.cuts.last().and_then(|end| invocation.prompt.get(..*end))?;
        let is_cached = cache != Cache::Off && shared.len() >= wire.least_cached(server)?;
        let url = service.base_url.as_str();
        match is_cached {
            true => pool::enter_wave(url, &service.model, shared, invocation.deadline).await,
            false => None,
        }
    }

    /// What has to be there before a request is sent: a prompt that fits, the pool's leave, and the key.
    async fn ready(
        &self,
        service: &Service,
        invocation: &Invocation,
    ) -> Result<(UnderWay, Option<Secret>), Failure> {
        let too_long = |why| invocation.notes.without_stand_in(Failure::never(why));
        self.config.check_fits(&invocation.prompt).map_err(too_long)?;
        let under_way = service.pool.start(invocation.deadline, &invocation.progress).await?;
        Ok((under_way, service.key().await?))
    }

    async fn ask(&self, service: &Service, invocation: &Invocation) -> Result<Reply, Failure> {
        let lead = self.first_wave(service, invocation).await;
        let (under_way, key) = self.ready(service, invocation).await?;
        invocation.notes.note(|noted| noted.usage = None);
        let key = key.as_ref();
        match self.adapted(service, invocation, key, lead).await {
            Ok((wire::Response { text, model, usage }, form)) => {
                let text = text.unwrap_or_default();
                let was_cut = |why| invocation.notes.without_stand_in(Failure::never(why));
                self.config.check_read(&invocation.prompt, usage.tokens_in).map_err(was_cut)?;
                let text = form.map_or_else(|| text.clone(), |form| form.restore(&text));
                Ok(Reply { text: service.without_keys(text, key), model, usage, posted: None })
            }
            Err(failed) => Err(failed.settle(under_way, service, key, invocation).await),
        }
    }

    /// Makes a call. If the service names a field of the request that it does not accept, the request is sent again without
    /// it. A deadline spans all of that, and a field is left out once.
    async fn adapted(
        &self,
        service: &Service,
        invocation: &Invocation,
        key: Option<&Secret>,
        mut lead: Option<Lead>,
    ) -> Result<(wire::Response, Option<&'static Form>), CallFailure> {
        let known = self.learned.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut changes = known.clone();
        loop {
            let (http, prepared) = self.request(&service.model, invocation, &changes);
            let requests = changes.len() - known.len() + 1;
            if requests > 1 {
                invocation.notes.note(|noted| noted.requests = requests.try_into().ok());
            }
            let mut failed = match self.call(service, http, key, invocation, &mut lead).await {
                Ok(response) => {
                    self.learn(service, &changes, &invocation.notes);
                    return Ok((response, prepared.form));
                }
                Err(failed) => failed,
            };
            let Some(fault) = failed.fault.as_deref() else { return Err(failed) };
            let field = adapt::refused_field(fault, &prepared.sent);
            match field.and_then(|field| self.change(field, &prepared, fault, &changes)) {
                Some(change) if changes.len() < MAX_CHANGES => changes.push(change),
                _ => {
                    // An answer that is cut off or empty also shows that the request was accepted.
                    if field.is_none() && fault.status.is_none() {
                        self.learn(service, &changes, &invocation.notes);
                    }
                    let hint = self.hint(service, field, fault);
                    failed.add_hint(hint);
                    return Err(failed);
                }
            }
        }
    }

    /// The setting to change after a failure that another request does not avoid.
    fn hint(&self, service: &Service, field: Option<Field>, fault: &fault::Fault) -> Option<String> {
        let table = adapt::table(&self.name);
        if let Some(field) = field {
            return Some(format!("{} this part of the request, in {table}", adapt::keys(field)));
        }
        if let Some(key) = adapt::refused_extra(fault, &self.config.extra) {
            return Some(format!("remove `{key}` from `extra` in {table}"));
        }
        if adapt::blames_cap(fault) {
            return Some(format!("a smaller `max_tokens` leaves more room, in {table}"));
        }
        let is_unknown = fault.kind == fault::FaultKind::UnknownModel;
        let other = self.other_address(service).filter(|_| adapt::lacks_api(fault));
        if is_unknown && other.is_none() {
            return Some(format!("`quorate models {}` lists the models", shell_quoted(&self.name)));
        }
        other.map(|other| format!("the address may be `{other}`"))
    }

    /// Remembers the changes that a request needed, for later calls, and notes them.
    fn learn(&self, service: &Service, changes: &[Change], notes: &Notes) {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<Change> = changes.iter().filter(|change| !learned.contains(change)).copied().collect();
        learned.extend(&new);
        let host = http::host_and_port(&service.base_url);
        let lines = |changes: &[Change]| {
            let line = (!changes.is_empty()).then(|| adapt::note(changes, &host, &self.name));
            line.into_iter().collect()
        };
        notes.note(|noted| (noted.changed, noted.newly_changed) = (lines(changes), lines(&new)));
    }

    async fn call(
        &self,
        service: &Service,
        request: wire::HttpRequest,
        key: Option<&Secret>,
        invocation: &Invocation,
        lead: &mut Option<Lead>,
    ) -> Result<wire::Response, CallFailure> {
        let deadline = invocation.deadline;
        let client = service.client().await.map_err(CallFailure::unsent)?;
        if !invocation.fence.holds(deadline).await {
            return Err(CallFailure::unsent(Failure::not_driven()));
        }
        let stream = Stream::new(self.config.wire);
        let call = Call { client, service, key, deadline };
        let mut has_text = false;
        let answered = call.stream((request, stream), |event| {
            let answers = !matches!(event, Event::Ended(response) if response.text.is_err());
            if answers && let Some(lead) = lead.take() {
                lead.begun();
            }
            match event {
                Event::Text(delta) => {
                    has_text = true;
                    invocation.progress.wrote(delta.len());
                }
                Event::Progress => invocation.progress.wrote(0),
                // What a response cost counts also where it has no answer.
                Event::Ended(response) => invocation.notes.note(|noted| {
                    noted.usage = Some(service.charge(response.usage, response.model.as_deref()));
                    noted.model = response.model.clone().or_else(|| Some(service.model.clone()));
                }),
            }
        });
        answered.await.map_err(|mut failed| {
            // A service that has begun to answer has accepted the request.
            if let Some(fault) = failed.fault.as_mut().filter(|_| has_text) {
                fault.details.clear();
            }
            failed
        })
    }
}
