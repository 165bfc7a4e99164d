//! The embedder: texts as vectors of a model service, for locks that compare meanings (L4). `embed/api.rs` has the APIs;
//! reaching the service, its key and its faults are those of the executor.

pub mod api;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::budget::tokens::most_tokens;
use quorate_kernel::ports::embedder::{Embedder, Meter};
use quorate_kernel::ports::executor::{CallLimit, ConfigError, Failure, Retry, Settings, SideEffect, Usage};
use reqwest::Client;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::call;
use super::config::DEFAULT_CONCURRENCY;
use super::key::Secret;
use super::pool::{Outcome, Pool};
use super::prices::{Price, Priced};
use super::service::{Defaults, Service, address, unknown_word};
use crate::block::Block;
use crate::http::{self, Redirects};
use api::Api;

/// The keys of the table.
const KEYS: &[&str] = &["wire", "model", "base_url", "key", "auth", "headers", "ca", "threshold", "price"];

/// The texts and bytes of one request at most: what every service takes. A longer text goes alone.
const MAX_BATCH_TEXTS: usize = 96;
const MAX_BATCH_BYTES: usize = 64 << 10;

/// How often one request is sent at most.
const MAX_ATTEMPTS: u32 = 3;

/// The tokens at most that a model puts around a text.
const MARKS_OF_TEXT: u64 = 4;

/// The pause before the second attempt; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The most that is kept of vectors, in numbers: 64 MiB.
const MAX_KEPT_NUMBERS: usize = 16 << 20;

/// Builds the embedder from its table.
///
/// # Errors
/// When the table has an unknown key or an unusable value, or lacks `wire`, `model` or `threshold`.
pub fn new(settings: &Settings) -> Result<Arc<dyn Embedder>, ConfigError> {
    let block = Block::parse(&settings.block, KEYS)?;
    let names = Api::ALL.map(Api::as_str);
    let Some(word) = block.text("wire")? else {
        let help = format!("set `wire`: one of {}", names.join(", "));
        return Err(ConfigError::for_block("nothing says which API the embedder has").with_help(help));
    };
    let api = Api::read(word).ok_or_else(|| unknown_word("wire", word, &names))?;
    let Some(model) = block.text("model")? else {
        return Err(ConfigError::for_block("no model is named").with_help("set `model`"));
    };
    let base_url = address(block.text("base_url")?.unwrap_or(api.default_base_url()))?;
    let defaults = Defaults { base_url, auth: api.default_auth(), variables: &[], idle: settings.timeout };
    let service = Service::parse(&block, &settings.dir, defaults)?;
    let pool = Pool::named(&service.pool(None), DEFAULT_CONCURRENCY);
    let is_local = http::is_loopback(&service.base_url);
    let price = Priced::of(&block, model, is_local, settings.prices.as_deref(), Some(0.0))?;
    Ok(Arc::new(ServiceEmbedder {
        api,
        price,
        model: model.to_owned(),
        threshold: threshold(&block)?,
        timeout: settings.timeout,
        service,
        pool,
        client: OnceCell::new(),
        known: Mutex::default(),
    }))
}

/// The threshold. It has no default, since it depends on the model.
fn threshold(block: &Block<'_>) -> Result<f32, ConfigError> {
    const HELP: &str =
        "measure it: the similarity that sentences which mean a trait reach, and others do not";
    let Some(threshold) = block.number("threshold")? else {
        return Err(
            ConfigError::for_block("`threshold` is missing, and depends on the model").with_help(HELP)
        );
    };
    #[expect(clippy::cast_possible_truncation, reason = "similarities are computed in this precision")]
    match threshold > 0.0 && threshold < 1.0 {
        true => Ok(threshold as f32),
        false => {
            let message = format!("`threshold` must be above 0 and below 1, not {threshold}");
            Err(ConfigError::for_key("threshold", message).with_help(HELP))
        }
    }
}

struct ServiceEmbedder {
    api: Api,
    model: String,
    threshold: f32,
    timeout: Duration,
    service: Service,
    price: Priced,
    pool: Arc<Pool>,
    client: OnceCell<Client>,
    known: Mutex<Known>,
}

/// The vectors that the service gave before, by text.
#[derive(Default)]
struct Known {
    vectors: BTreeMap<String, Arc<[f32]>>,
    numbers: usize,
}

impl ServiceEmbedder {
    /// The vectors of texts, all asked for in one request.
    async fn ask(&self, texts: &[&str], deadline: Instant, meter: &Meter) -> Result<Vec<Vec<f32>>, Failure> {
        let mut pause = FIRST_PAUSE;
        for _ in 1..MAX_ATTEMPTS {
            let failure = match self.attempt(texts, deadline, meter).await {
                Ok(vectors) => return Ok(vectors),
                Err(failure) => failure,
            };
            let wait = match &failure {
                Failure::Failed { retry: Retry::Soon, .. } => pause,
                Failure::Failed { retry: Retry::After(wait), .. } => *wait,
                Failure::Failed { retry: Retry::Never, .. } | Failure::TimedOut => return Err(failure),
            };
            match Instant::now().checked_add(wait).filter(|until| *until < deadline) {
                Some(until) => tokio::time::sleep_until(until).await,
                None => return Err(failure),
            }
            pause *= 2;
        }
        self.attempt(texts, deadline, meter).await
    }

    async fn attempt(
        &self,
        texts: &[&str],
        deadline: Instant,
        meter: &Meter,
    ) -> Result<Vec<Vec<f32>>, Failure> {
        let admitted = tokio::time::timeout_at(deadline, self.pool.admit()).await;
        let _room = admitted.map_err(|_| Failure::TimedOut)?;
        self.pool.wait_turn(deadline).await?;
        let key = match &self.service.key {
            Some(key) => Some(key.get().await?),
            None => None,
        };
        let request = self.api.encode(&self.model, texts);
        let make =
            || async { http::client(&self.service.base_url, self.service.ca.as_deref(), Redirects::Refused) };
        let client = self.client.get_or_try_init(make).await.map_err(Failure::never)?;
        let reserved = meter.reserve(Some(self.limit(texts))).await;
        let reserved = reserved.map_err(|why| Failure::never(why.to_string()))?;
        let body = call::post(client, &self.service, key.as_ref(), request, deadline).await;
        match &body {
            Ok(body) => reserved.settle(&self.usage(body)),
            Err(failed) if failed.is_free => reserved.settle(&call::nothing()),
            // What it took is not known, so all of it counts.
            Err(_) => drop(reserved),
        }
        let decoded = body.and_then(|body| {
            let decoded = self.api.decode(&body, texts.len());
            decoded.map_err(|fault| call::failed(&self.service, key.as_ref(), fault))
        });
        let failed = match decoded {
            Ok(vectors) => {
                self.pool.ended(Outcome::Answered, "");
                return Ok(vectors);
            }
            Err(failed) => failed,
        };
        self.pool.ended(failed.outcome, &failed.failure.to_string());
        Err(match self.renews_key(failed.is_auth, key.as_ref()).await {
            true => failed.failure.with_retry(Retry::Soon),
            false => failed.failure,
        })
    }

    /// The most that one request for these texts takes.
    fn limit(&self, texts: &[&str]) -> CallLimit {
        let tokens = texts.iter().map(|text| most_tokens(text) + MARKS_OF_TEXT).sum();
        CallLimit { tokens, usd_nanos: self.price.price.as_ref().map(|price| price.most(tokens, 0)) }
    }

    fn usage(&self, body: &quorate_protocol::Json) -> Usage {
        let usage = api::usage(body);
        let free = self.price.price == Some(Price::FREE);
        let usd_nanos = self.price.price.as_ref().and_then(|price| price.cost(&usage)).or(free.then_some(0));
        Usage { usd_nanos, ..usage }
    }

    /// Whether the next attempt has another key than the one that was not accepted.
    async fn renews_key(&self, is_refused: bool, key: Option<&Secret>) -> bool {
        match (&self.service.key, key) {
            (Some(source), Some(key)) if is_refused => source.forget(key).await,
            _ => false,
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn keep(&mut self, text: &str, vector: &Arc<[f32]>) {
        if self.numbers + vector.len() <= MAX_KEPT_NUMBERS
            && self.vectors.insert(text.to_owned(), Arc::clone(vector)).is_none()
        {
            self.numbers += vector.len();
        }
    }
}

#[async_trait]
impl Embedder for ServiceEmbedder {
    fn model(&self) -> &str {
        &self.model
    }

    fn threshold(&self) -> f32 {
        self.threshold
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn side_effects(&self) -> Vec<SideEffect> {
        self.price.side_effects(self.service.side_effects())
    }

    fn check_installed(&self) -> Result<(), ConfigError> {
        self.service.check_key()
    }

    fn is_metered(&self) -> bool {
        self.price.price != Some(Price::FREE)
    }

    fn call_limit(&self, texts: &[&str]) -> Option<CallLimit> {
        let CallLimit { tokens, usd_nanos } = self.limit(texts);
        let all = |once: u64| once.saturating_mul(MAX_ATTEMPTS.into());
        Some(CallLimit { tokens: all(tokens), usd_nanos: usd_nanos.map(all) })
    }

    fn describe(&self) -> String {
        let Service { base_url, .. } = &self.service;
        let (wire, key) = (self.api.as_str(), self.service.describe_key());
        let (cost, threshold) = (self.price.describe(), self.threshold);
        format!("`{}` at {base_url} ({wire}), {key}, threshold {threshold}, {cost}", self.model)
    }

    async fn embed(&self, texts: &[&str], meter: &Meter) -> Result<Vec<Vec<f32>>, String> {
        let deadline = Instant::now() + self.timeout;
        let mut found: BTreeMap<&str, Arc<[f32]>> = BTreeMap::new();
        let mut missing: Vec<&str> = Vec::new();
        {
            let known = self.known();
            for text in texts {
                match known.vectors.get(*text) {
                    Some(vector) => drop(found.insert(text, Arc::clone(vector))),
                    None if missing.contains(text) => {}
                    None => missing.push(text),
                }
            }
        }
        for batch in batches(&missing) {
            let vectors = self.ask(batch, deadline, meter).await.map_err(|failure| failure.to_string())?;
            let vectors = vectors.into_iter().map(Arc::from);
            found.extend(batch.iter().copied().zip(vectors));
        }
        api::same_length(found.values().map(|vector| &**vector)).map_err(|fault| fault.to_string())?;
        let mut known = self.known();
        for text in missing {
            found.get(text).into_iter().for_each(|vector| known.keep(text, vector));
        }
        drop(known);
        Ok(texts.iter().filter_map(|text| found.get(text)).map(|vector| vector.to_vec()).collect())
    }
}

/// The texts in the order given, as many in a part as one request has.
fn batches<'t, 's>(texts: &'t [&'s str]) -> Vec<&'t [&'s str]> {
    let mut batches = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, text) in texts.iter().enumerate() {
        if at > start && (at - start == MAX_BATCH_TEXTS || bytes + text.len() > MAX_BATCH_BYTES) {
            batches.push(&texts[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes += text.len();
    }
    if start < texts.len() {
        batches.push(&texts[start..]);
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_what_one_request_takes_and_each_text_is_in_one() {
        let long = "x".repeat(MAX_BATCH_BYTES + 1);
        let texts = [vec!["a"; 100], vec![&*long; 2], vec!["b"]].concat();
        let lengths: Vec<usize> = batches(&texts).iter().map(|batch| batch.len()).collect();
        assert_eq!(lengths, [96, 4, 1, 1, 1]);
        assert_eq!(batches(&texts).concat(), texts);
        assert!(batches(&[]).is_empty());
    }
}
