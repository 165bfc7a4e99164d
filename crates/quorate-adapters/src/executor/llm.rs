//! The `llm` executor: asks a model over HTTP. This file owns the executor, the list of a service's models, and the quota
//! that a program shares between machines. In `llm/`: `config` reads the table and knows services by name, `service` owns
//! addresses and keys, `wire` the formats as pure modules with `schema` and `fault`, `call` makes one request and finds
//! prompts that were cut, `pool` limits the rate of calls and lets one call fill a cache that others read, `shared_pool`
//! limits it over all processes, `prices` computes costs, and `embed` is the embedder.

mod call;
mod config;
pub mod embed;
pub mod fault;
mod pool;
pub(crate) mod prices;
pub mod schema;
mod service;
mod shared_pool;
pub mod wire;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::budget::most_tokens;
use quorate_kernel::ports::executor::{
    About, Admission, CallLimit, ConfigError, Executor, Failure, Inspection, Invocation, Notes, Reply, Retry,
    Settings, SideEffect, Usage,
};
use quorate_manifest::money::Money;
use quorate_protocol::{Json, answers};

use call::{Call, CallFailure, Reader};
use config::{Config, SchemaMode};
use pool::{Lead, Outcome, Pool};
use schema::Form;
use service::Secret;
use wire::{Cache, Event, Format, Request, Stream, Wire};

pub use config::{PRESETS, ServicePreset, with_key};
pub use shared_pool::{share_pools, sharing_failure};

/// The tokens at most that services and chat templates put around a prompt and its parts.
const ENVELOPE_TOKENS: u64 = 64;

/// The kind that `quorate.toml` names.
pub const KIND: &str = crate::optional_kinds::LLM;

/// Builds the executor from its table.
///
/// # Errors
/// When the table has an unknown key or an unusable value, or does not say where the model is.
pub fn new(settings: &Settings) -> Result<Arc<dyn Executor>, ConfigError> {
    let config = Config::parse(settings)?;
    let pool = Pool::named(&config.pool, config.concurrency);
    let reader = Reader::new(config.wire, config.context, config.max_tokens);
    Ok(Arc::new(Llm { config, pool, reader }))
}

struct Llm {
    config: Config,
    pool: Arc<Pool>,
    reader: Reader,
}

impl Llm {
    async fn list_models(&self, deadline: tokio::time::Instant) -> Result<Vec<String>, Failure> {
        let (service, wire) = (&self.config.service, self.config.wire);
        let (client, key) = (service.client().await?, service.key().await?);
        // Headers of a wire that hold for all its requests stand in any request.
        let mut fixed = wire.encode(&Request::probe(&self.config.model)).headers;
        fixed.retain(|(name, _)| *name != "content-type");
        let call = Call { client, service, key: key.as_ref(), deadline };
        let list = call.get(models_path(wire), &fixed).await.map_err(|failed| failed.failure)?;
        let names =
            read_models(wire, &list).ok_or_else(|| Failure::never("the answer is not a list of models"))?;
        Ok(names.into_iter().map(|name| service.without_keys(fault::quoted(&name), key.as_ref())).collect())
    }

    /// What is sent for an invocation, and the form that its answer is translated back from.
    fn request(&self, invocation: &Invocation) -> (wire::HttpRequest, Option<&'static Form>) {
        let config = &self.config;
        let form = schema::form(invocation.answer_schema, config.wire.dialect());
        let (format, form) = match (config.schema, form) {
            (SchemaMode::Native, Some(form)) => {
                (Format::Schema { name: form.name, schema: &form.schema }, Some(form))
            }
            (SchemaMode::Json, Some(_)) => (Format::JsonObject, None),
            (SchemaMode::Prompt, _) | (_, None) => (Format::Text, None),
        };
        // The host's instruction is what no member and no author has written.
        let prompt = &*invocation.prompt;
        let start = invocation.cuts.first().copied().filter(|cut| prompt.is_char_boundary(*cut)).unwrap_or(0);
        let (system, prompt) = prompt.split_at(start);
        let cuts: Vec<usize> =
            invocation.cuts.iter().skip(1).filter_map(|cut| cut.checked_sub(start)).collect();
        let request = Request {
            model: &config.model,
            system: Some(system).filter(|system| !system.is_empty()),
            prompt,
            cuts: &cuts,
            format,
            max_tokens: config.max_tokens,
            effort: config.effort.as_deref(),
            cache: config.cache,
            context_tokens: (config.wire == Wire::Ollama)
                .then(|| self.context_tokens(invocation.prompt.len())),
            server: config.server,
        };
        (config.wire.encode(&request), form)
    }

    /// The context that a local server is told to make room for: a power of two, so that it does not load its model anew
    /// for each prompt.
    fn context_tokens(&self, prompt_bytes: usize) -> u32 {
        let needed =
            u32::try_from(prompt_bytes / 2).unwrap_or(u32::MAX).saturating_add(self.config.max_tokens);
        self.config.context.unwrap_or_else(|| needed.clamp(8_192, 1 << 20).next_power_of_two())
    }

    /// What has to be there before a request is sent: a prompt that fits, the pool's leave, and the key.
    async fn ready(&self, invocation: &Invocation) -> Result<Option<Secret>, Failure> {
        self.reader.check_fits(&invocation.prompt).map_err(Failure::never)?;
        self.pool.wait_turn(invocation.deadline).await?;
        self.config.service.key().await
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

    async fn call(
        &self,
        request: wire::HttpRequest,
        key: Option<&Secret>,
        invocation: &Invocation,
        mut lead: Option<Lead>,
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
        call.send((request, stream), |event| {
            let answers = !matches!(event, Event::Ended(response) if response.text.is_err());
            if let Some(lead) = lead.as_mut().filter(|_| answers) {
                lead.begun();
            }
            match event {
                Event::Text(delta) => invocation.progress.wrote(delta.len()),
                Event::Progress => invocation.progress.wrote(0),
                Event::Ended(response) => self.note(notes, response),
            }
        })
        .await
    }

    /// Notes what a response cost, also where it has no answer.
    fn note(&self, notes: &Notes, response: &wire::Response) {
        let usage = Usage { money: self.cost(response), ..response.usage };
        notes.note(|noted| {
            noted.usage = Some(usage);
            noted.model = response.model.clone().or_else(|| Some(self.config.model.clone()));
        });
    }

    /// The cost of a response. A service may answer with another model than it was asked for: the dearer one counts.
    fn cost(&self, response: &wire::Response) -> Option<Money> {
        let price = self.config.price.price.as_ref();
        let asked = price.and_then(|price| price.cost(&response.usage));
        let served = response.model.as_deref().filter(|_| price != Some(&prices::Price::FREE));
        let served = served.and_then(|model| self.config.price.of_served(model)?.cost(&response.usage));
        asked.map(|asked| asked.max(served.unwrap_or_default()))
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
        let form = form.and_then(|answer| schema::form(answer, self.config.wire.dialect()));
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
        let key = match self.ready(&invocation).await {
            Ok(key) => key,
            Err(failure) => {
                // Nothing was sent, so nothing of the budget is taken.
                invocation.notes.note(|noted| noted.usage = Some(call::nothing()));
                return Err(failure);
            }
        };
        let (request, form) = self.request(&invocation);
        let answered = self.call(request, key.as_ref(), &invocation, lead).await;
        let failure = match answered {
            Ok(response) => {
                self.pool.ended(Outcome::Answered, "");
                let (text, model, usage) =
                    (response.text.unwrap_or_default(), response.model, response.usage);
                self.reader.check_read(&invocation.prompt, usage.tokens_in).map_err(Failure::never)?;
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
        invocation.notes.note(|noted| {
            noted.http_status = failure.http_status;
            if failure.is_free {
                noted.usage = Some(call::nothing());
            }
        });
        let wait = self.pool.ended(failure.outcome, &failure.failure.to_string());
        if failure.is_auth && self.config.service.renews_key(key.as_ref()).await {
            // A command's key may have expired: the next attempt has another.
            return Err(failure.failure.with_retry(Retry::Soon));
        }
        match failure.failure {
            Failure::Failed { message, retry } => {
                let message = self.config.service.without_keys(message, key.as_ref());
                let waits = retry == Retry::Soon && !wait.is_zero();
                Err(Failure::Failed { message, retry: if waits { Retry::After(wait) } else { retry } })
            }
            failure => Err(failure),
        }
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
