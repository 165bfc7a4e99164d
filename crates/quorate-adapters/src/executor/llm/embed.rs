//! The embedder: texts as vectors of a model service, for locks that compare meanings (L4). [`Api`] has the
//! APIs; address, key and faults are those of the executor.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::budget::most_tokens;
use quorate_kernel::ports::executor::{
    CallLimit, ConfigError, Failure, Progress, Retry, Settings, SideEffect, Usage,
};
use quorate_kernel::ports::extension::{Embedder, ExtensionError, Meter};
use quorate_manifest::money::Money;
use quorate_protocol::Json;
use serde_json::json;
use tokio::time::Instant;

use super::call::{self, Call};
use super::config::DEFAULT_CONCURRENCY;
use super::pool::{Outcome, Pool};
use super::prices::{Price, Priced};
use super::service::{Defaults, Service, address};
use crate::block::Block;
use crate::executor::llm::fault::{self, Fault, FaultKind};
use crate::executor::llm::wire::{Auth, HttpRequest, Wire, path_segment};
use crate::http;

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
    let Some(api) = block.word("wire", Api::parse, &names)? else {
        let help = format!("set `wire`: one of {}", names.join(", "));
        return Err(ConfigError::for_block("nothing says which API the embedder has").with_help(help));
    };
    let Some(model) = block.text("model")? else {
        return Err(ConfigError::for_block("no model is named").with_help("set `model`"));
    };
    let base_url = address(block.text("base_url")?.unwrap_or(api.default_base_url()))?;
    let defaults = Defaults {
        base_url,
        auth: api.default_auth(),
        variables: &[],
        idle: settings.timeout,
        is_slow_to_start: false,
    };
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
        let under_way = self.pool.start(deadline, &Progress::default()).await?;
        let key = self.service.key().await?;
        let request = self.api.encode(&self.model, texts);
        let client = self.service.client().await?;
        let call = Call { client, service: &self.service, key: key.as_ref(), deadline };
        let reserved = meter.reserve(Some(self.limit(texts))).await;
        let reserved = reserved.map_err(|why| Failure::never(why.to_string()))?;
        let body = call.post(request).await;
        match &body {
            Ok(body) => reserved.settle(&self.usage(body)),
            Err(failed) if failed.is_free => reserved.settle(&call::nothing()),
            // Its usage is unknown, so the whole reservation counts.
            Err(_) => drop(reserved),
        }
        let decoded =
            body.and_then(|body| self.api.decode(&body, texts.len()).map_err(|fault| call.failed(fault)));
        let failed = match decoded {
            Ok(vectors) => {
                under_way.end(Outcome::Answered);
                return Ok(vectors);
            }
            Err(failed) => failed,
        };
        let may_repeat = under_way.end(failed.outcome);
        Err(match failed.is_auth && self.service.renews_key(key.as_ref()).await {
            true => failed.failure.with_retry(Retry::Soon),
            false if may_repeat => failed.failure,
            false => failed.failure.with_retry(Retry::Never),
        })
    }

    /// The most that one request for these texts takes.
    fn limit(&self, texts: &[&str]) -> CallLimit {
        let tokens = texts.iter().map(|text| most_tokens(text) + MARKS_OF_TEXT).sum();
        CallLimit { tokens, money: self.price.price.as_ref().map(|price| price.most(tokens, 0)) }
    }

    fn usage(&self, body: &quorate_protocol::Json) -> Usage {
        let usage = read_usage(body);
        let free = self.price.price == Some(Price::FREE);
        let money = self.price.price.as_ref().and_then(|price| price.cost(&usage));
        Usage { money: money.or(free.then_some(Money::ZERO)), ..usage }
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
        let CallLimit { tokens, money } = self.limit(texts);
        let attempts = u64::from(MAX_ATTEMPTS);
        let money = money.map(|once| once.saturating_mul(attempts));
        Some(CallLimit { tokens: tokens.saturating_mul(attempts), money })
    }

    fn describe(&self) -> String {
        let Service { base_url, .. } = &self.service;
        let (wire, key) = (self.api.as_str(), self.service.describe_key());
        let (cost, threshold) = (self.price.describe(), self.threshold);
        format!("`{}` at {base_url} ({wire}), {key}, threshold {threshold}, {cost}", self.model)
    }

    async fn embed(&self, texts: &[&str], meter: &Meter) -> Result<Vec<Vec<f32>>, ExtensionError> {
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
            let vectors = self.ask(batch, deadline, meter).await;
            let vectors = vectors.map_err(|failure| ExtensionError::new(failure.to_string()))?;
            let vectors = vectors.into_iter().map(Arc::from);
            found.extend(batch.iter().copied().zip(vectors));
        }
        same_length(found.values().map(|vector| &**vector))
            .map_err(|fault| ExtensionError::new(fault.to_string()))?;
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

/// An API for embeddings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// OpenAI's, and the servers compatible with it.
    OpenAi,
    /// Google's Gemini API.
    Gemini,
    /// Ollama's own.
    Ollama,
}

quorate_manifest::words!(Api { OpenAi = "chat", Gemini = "gemini", Ollama = "ollama" });

impl Api {
    /// Where the vendor serves it; a path is appended.
    pub fn default_base_url(self) -> &'static str {
        self.wire().default_base_url()
    }

    /// How the vendor's own client sends the key. Ollama needs none; a gateway before it takes a bearer's.
    pub fn default_auth(self) -> Auth {
        match self {
            Api::Ollama => Auth::Bearer,
            api => api.wire().default_auth(),
        }
    }

    /// The wire of the same vendor's chat API.
    fn wire(self) -> Wire {
        match self {
            Api::OpenAi => Wire::Chat,
            Api::Gemini => Wire::Gemini,
            Api::Ollama => Wire::Ollama,
        }
    }

    /// The request for the vectors of some texts.
    pub fn encode(self, model: &str, texts: &[&str]) -> HttpRequest {
        match self {
            Api::OpenAi => {
                let body = json!({"model": model, "input": texts, "encoding_format": "float"});
                HttpRequest::new("/embeddings", &body)
            }
            Api::Gemini => {
                let model = model.strip_prefix("models/").unwrap_or(model);
                let request = |text: &&str| {
                    let content = json!({"role": "user", "parts": [{"text": text}]});
                    json!({"model": format!("models/{model}"), "content": content})
                };
                let body = json!({"requests": texts.iter().map(request).collect::<Vec<_>>()});
                HttpRequest::new(format!("/models/{}:batchEmbedContents", path_segment(model)), &body)
            }
            // A text that the server cut would be compared in part.
            Api::Ollama => {
                let body = json!({"model": model, "input": texts, "truncate": false});
                HttpRequest::new("/api/embed", &body)
            }
        }
    }

    /// The vectors in a response to a request for `count` texts, in the order of the texts.
    ///
    /// # Errors
    /// When the response is an error, has another number of vectors, vectors of different lengths, or one without a
    /// direction.
    pub fn decode(self, body: &Json, count: usize) -> Result<Vec<Vec<f32>>, Fault> {
        let list = match self {
            Api::OpenAi => body.get("data"),
            Api::Gemini | Api::Ollama => body.get("embeddings"),
        };
        let Some(list) = list.and_then(Json::as_array) else {
            return Err(match body.get("error").is_some_and(|error| !error.is_null()) {
                true => fault::from_event(body),
                false => Fault::new(FaultKind::Malformed, "it has no list of vectors"),
            });
        };
        if list.len() != count {
            let said = format!("it has {} vectors for {count} texts", list.len());
            return Err(Fault::new(FaultKind::Malformed, said));
        }
        let mut vectors = vec![Vec::new(); count];
        for (at, item) in list.iter().enumerate() {
            let (at, numbers) = match self {
                Api::OpenAi => (read_place(item, at, count)?, item.get("embedding")),
                Api::Gemini => (at, item.get("values")),
                Api::Ollama => (at, Some(item)),
            };
            if !vectors[at].is_empty() {
                return Err(Fault::new(FaultKind::Malformed, format!("it has two vectors for text {at}")));
            }
            vectors[at] = read_vector(numbers)?;
        }
        same_length(vectors.iter().map(Vec::as_slice))?;
        Ok(vectors)
    }
}

/// The usage that a response reports. Gemini reports none.
fn read_usage(body: &Json) -> Usage {
    let count = |key: &str| body.get("usage").and_then(|usage| usage.get(key)).or_else(|| body.get(key));
    let tokens = ["prompt_tokens", "prompt_eval_count"].into_iter().find_map(|key| count(key)?.as_u64());
    // No text has no tokens: a gateway that does not count says 0.
    let tokens_in = tokens.filter(|tokens| *tokens > 0);
    Usage { tokens_in, tokens_out: tokens_in.map(|_| 0), ..Usage::default() }
}

/// The text that an item's vector is of. Without an index the order counts.
fn read_place(item: &Json, at: usize, count: usize) -> Result<usize, Fault> {
    let Some(index) = item.get("index").filter(|index| !index.is_null()) else { return Ok(at) };
    let place = index.as_u64().and_then(|index| usize::try_from(index).ok());
    place.filter(|place| *place < count).ok_or_else(|| {
        Fault::new(FaultKind::Malformed, format!("it has a vector for text {index} of {count} texts"))
    })
}

fn read_vector(numbers: Option<&Json>) -> Result<Vec<f32>, Fault> {
    let bad = |said: &str| Fault::new(FaultKind::Malformed, said);
    let numbers = numbers.and_then(Json::as_array).filter(|numbers| !numbers.is_empty());
    let numbers = numbers.ok_or_else(|| bad("a vector is not a list of numbers"))?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a number too large becomes infinite, and is refused"
    )]
    let read =
        |number: &Json| number.as_f64().map(|number| number as f32).filter(|number| number.is_finite());
    let vector: Option<Vec<f32>> = numbers.iter().map(read).collect();
    let vector = vector.ok_or_else(|| bad("a vector has an entry that is not a finite number"))?;
    // The length that a comparison divides by, computed as it computes it.
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    match length > 0.0 && length.is_finite() {
        true => Ok(vector),
        false => Err(bad("a vector has no direction: its length is zero, or too large to compute")),
    }
}

/// Refuses vectors of different lengths, which cannot be compared.
fn same_length<'v>(vectors: impl IntoIterator<Item = &'v [f32]>) -> Result<(), Fault> {
    let mut lengths = vectors.into_iter().map(<[f32]>::len);
    let Some(first) = lengths.next() else { return Ok(()) };
    match lengths.find(|length| *length != first) {
        Some(other) => {
            let said = format!("the service gave vectors of {first} and of {other} numbers");
            Err(Fault::new(FaultKind::Malformed, said))
        }
        None => Ok(()),
    }
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

#[cfg(test)]
mod api_tests {
    use super::*;

    fn openai(items: Json) -> Result<Vec<Vec<f32>>, Fault> {
        let count = items.as_array().map_or(1, Vec::len);
        Api::OpenAi.decode(&json!({"data": items}), count)
    }

    #[test]
    fn vectors_are_read_in_the_order_of_the_texts() {
        let two = json!([{"index": 1, "embedding": [0, 1.5]}, {"index": 0, "embedding": [1, 0]}]);
        assert_eq!(openai(two).unwrap(), [[1.0, 0.0], [0.0, 1.5]]);
        let two = json!([{"embedding": [0, 1]}, {"index": null, "embedding": [1, 0]}]);
        assert_eq!(openai(two).unwrap(), [[0.0, 1.0], [1.0, 0.0]]);
        let gemini = json!({"embeddings": [{"values": [0.5, 1]}]});
        assert_eq!(Api::Gemini.decode(&gemini, 1).unwrap(), [[0.5, 1.0]]);
        let ollama = json!({"model": "m", "embeddings": [[0.5, 1]], "prompt_eval_count": 3});
        assert_eq!(Api::Ollama.decode(&ollama, 1).unwrap(), [[0.5, 1.0]]);
    }

    #[test]
    fn what_was_read_is_taken_from_each_form_and_nothing_is_unknown() {
        let tokens = |body: Json| read_usage(&body).tokens_in;
        assert_eq!(tokens(json!({"usage": {"prompt_tokens": 7, "total_tokens": 7}})), Some(7));
        assert_eq!(tokens(json!({"embeddings": [], "prompt_eval_count": 9})), Some(9));
        for body in [json!({}), json!({"usage": null}), json!({"usage": {"prompt_tokens": "7"}}), json!([])] {
            assert_eq!(tokens(body), None);
        }
        assert_eq!(read_usage(&json!({"usage": {"prompt_tokens": 0}})), Usage::default());
    }

    #[test]
    fn what_cannot_be_compared_is_a_fault() {
        for (items, says) in [
            (
                json!([{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]),
                "two vectors for text 0",
            ),
            (json!([{"index": 7, "embedding": [1]}]), "for text 7 of 1"),
            (json!([{"index": "0", "embedding": [1]}]), "for text \"0\""),
            (json!([{"index": 0}]), "not a list of numbers"),
            (json!([{"index": 0, "embedding": []}]), "not a list of numbers"),
            (json!([{"index": 0, "embedding": "AACAPwAAAAA="}]), "not a list of numbers"),
            (json!([{"index": 0, "embedding": [1, null]}]), "not a finite number"),
            (json!([{"index": 0, "embedding": [1, "1"]}]), "not a finite number"),
            (json!([{"index": 0, "embedding": [1e300]}]), "not a finite number"),
            (json!([{"index": 0, "embedding": [0, 0.0]}]), "no direction"),
            (json!([{"index": 0, "embedding": [1e-30]}]), "no direction"),
            (json!([{"index": 0, "embedding": [1e30]}]), "no direction"),
            (json!([{"embedding": [1]}, {"embedding": [1, 2]}]), "of 1 and of 2 numbers"),
            (json!({"index": 0}), "no list of vectors"),
        ] {
            let fault = openai(items).unwrap_err();
            assert!(fault.kind == FaultKind::Malformed && fault.said.contains(says), "{says}: {fault:?}");
        }
        let fault = Api::Ollama.decode(&json!({"embeddings": [[1]]}), 2).unwrap_err();
        assert!(fault.said.contains("1 vectors for 2 texts"), "{fault:?}");
        for api in Api::ALL {
            let error = json!({"error": {"message": "model is loading", "code": 503}});
            let fault = api.decode(&error, 1).unwrap_err();
            assert_eq!((fault.kind, &*fault.said), (FaultKind::Overloaded, "model is loading"));
        }
    }
}
