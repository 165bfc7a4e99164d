//! The embedder: texts as vectors of a model service, for locks that compare meanings (L4). `embed/api.rs` has the APIs;
//! reaching the service, its key and its faults are those of the executor.

pub mod api;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::ports::embedder::Embedder;
use quorate_kernel::ports::executor::{ConfigError, Failure, Retry, Settings, SideEffect};
use reqwest::Client;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::call;
use super::config::DEFAULT_CONCURRENCY;
use super::key::Secret;
use super::pool::{Outcome, Pool};
use super::service::{Defaults, Service, address, unknown_word};
use crate::block::Block;
use crate::http::{self, Redirects};
use api::Api;

/// The keys of the table.
const KEYS: &[&str] = &["wire", "model", "base_url", "key", "auth", "headers", "ca", "threshold"];

/// The texts and bytes of one request at most: what every service takes. A longer text goes alone.
const MAX_BATCH_TEXTS: usize = 96;
const MAX_BATCH_BYTES: usize = 64 << 10;

/// How often one request is sent at most.
const MAX_ATTEMPTS: u32 = 3;

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
    let pool = Pool::named(&http::host_and_port(&service.base_url), DEFAULT_CONCURRENCY);
    Ok(Arc::new(ServiceEmbedder {
        api,
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
    async fn ask(&self, texts: &[&str], deadline: Instant) -> Result<Vec<Vec<f32>>, Failure> {
        let mut pause = FIRST_PAUSE;
        for _ in 1..MAX_ATTEMPTS {
            let failure = match self.attempt(texts, deadline).await {
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
        self.attempt(texts, deadline).await
    }

    async fn attempt(&self, texts: &[&str], deadline: Instant) -> Result<Vec<Vec<f32>>, Failure> {
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
        let body = call::post(client, &self.service, key.as_ref(), request, deadline).await;
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
        self.service.side_effects()
    }

    fn check_installed(&self) -> Result<(), ConfigError> {
        self.service.check_key()
    }

    fn is_metered(&self) -> bool {
        !http::is_loopback(&self.service.base_url)
    }

    fn describe(&self) -> String {
        let Service { base_url, .. } = &self.service;
        let (wire, key) = (self.api.as_str(), self.service.describe_key());
        format!("`{}` at {base_url} ({wire}), {key}, threshold {}", self.model, self.threshold)
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, String> {
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
            let vectors = self.ask(batch, deadline).await.map_err(|failure| failure.to_string())?;
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
