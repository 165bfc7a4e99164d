//! The embedder: texts as vectors of a model service, for locks that compare meanings (L4). Address, key and faults are
//! those of the executor.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::budget::most_tokens;
use quorate_kernel::ports::executor::{
    CallLimit, ConfigError, Failure, Progress, Retry, Settings, SideEffect, Usage,
};
use quorate_kernel::ports::extension::{Embedder, ExtensionError, Meter};
use quorate_manifest::money::Money;
use quorate_protocol::Json;
use reqwest::Method;
use serde::Deserialize as _;
use serde_json::json;
use tokio::time::Instant;

use super::call::{self, Call};
use super::service::{Asked, Service, address};
use crate::block::Block;
use crate::executor::llm::fault::{self, Fault, FaultKind};
use crate::executor::llm::wire::{Auth, HttpRequest, Wire, path_segment};

/// The keys of the table.
const KEYS: &[&str] = &["wire", "model", "base_url", "key", "auth", "headers", "ca", "threshold", "price"];

/// The wires whose vendors and compatible servers have an API for embeddings.
pub const WIRES: [Wire; 3] = [Wire::Chat, Wire::Gemini, Wire::Ollama];

/// The texts and bytes of one request at most: what every service takes. A longer text goes alone.
const MAX_BATCH_TEXTS: usize = 96;
const MAX_BATCH_BYTES: usize = 64 << 10;

/// How often one request is sent at most.
const MAX_ATTEMPTS: u32 = 3;

/// The tokens at most that a model puts around a text.
const MARKS_OF_TEXT: u64 = 4;

/// The pause before the second attempt; that before the third is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The most texts whose vectors are kept.
const MAX_KEPT: usize = 4_096;

/// Builds the embedder from its table.
///
/// # Errors
/// When the table has an unknown key or an unusable value, or lacks `wire`, `model` or `threshold`.
pub fn new(settings: &Settings) -> Result<Arc<dyn Embedder>, ConfigError> {
    let block = Block::parse(&settings.block, KEYS)?;
    let names = WIRES.map(Wire::as_str);
    let parse = |word: &str| Wire::parse(word).filter(|wire| WIRES.contains(wire));
    let Some(wire) = block.word("wire", parse, &names)? else {
        let help = format!("set `wire`: one of {}", names.join(", "));
        return Err(ConfigError::for_block("nothing says which API the embedder has").with_help(help));
    };
    let Some(model) = block.text("model")? else {
        return Err(ConfigError::for_block("no model is named").with_help("set `model`"));
    };
    let base_url = address(block.text("base_url")?.unwrap_or(wire.default_base_url()))?;
    // Ollama needs no key; a gateway before it takes a bearer's.
    let auth = if wire == Wire::Ollama { Auth::Bearer } else { wire.default_auth() };
    let asked = Asked { base_url, preset: None, auth, model, is_whole: true, output_price: Some(0.0) };
    Ok(Arc::new(ServiceEmbedder {
        wire,
        threshold: threshold(&block)?,
        timeout: settings.timeout,
        service: Service::parse(&block, settings, asked)?,
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
    wire: Wire,
    threshold: f32,
    timeout: Duration,
    service: Service,
    /// The vectors that the service gave before, by text.
    known: Mutex<BTreeMap<String, Vec<f32>>>,
}

impl ServiceEmbedder {
    /// The vectors of texts, all asked for in one request.
    async fn ask(&self, texts: &[&str], deadline: Instant, meter: &Meter) -> Result<Vec<Vec<f32>>, Failure> {
        let mut attempt = 1;
        loop {
            let failure = match self.attempt(texts, deadline, meter).await {
                Ok(vectors) => return Ok(vectors),
                Err(failure) => failure,
            };
            let wait = match &failure {
                Failure::Failed { retry: Retry::Soon, .. } => FIRST_PAUSE * attempt,
                Failure::Failed { retry: Retry::After(wait), .. } => *wait,
                Failure::Failed { retry: Retry::Never, .. } | Failure::TimedOut => return Err(failure),
            };
            let until = Instant::now().checked_add(wait).filter(|until| *until < deadline);
            match until.filter(|_| attempt < MAX_ATTEMPTS) {
                Some(until) => tokio::time::sleep_until(until).await,
                None => return Err(failure),
            }
            attempt += 1;
        }
    }

    async fn attempt(
        &self,
        texts: &[&str],
        deadline: Instant,
        meter: &Meter,
    ) -> Result<Vec<Vec<f32>>, Failure> {
        let service = &self.service;
        let admitted = tokio::time::timeout_at(deadline, service.pool.admit()).await;
        let _room = admitted.map_err(|_| Failure::TimedOut)?;
        let under_way = service.pool.start(deadline, &Progress::default()).await?;
        let (client, key) = (service.client().await?, service.key().await?);
        let call = Call { client, service, key: key.as_ref(), deadline };
        let reserved = meter.reserve(Some(self.limit(texts))).await;
        let reserved = reserved.map_err(|why| Failure::never(why.to_string()))?;
        let body = call.document(Method::POST, encode(self.wire, &service.model, texts)).await;
        match &body {
            Ok(body) => {
                let usage = service.charge(read_usage(body), None);
                let free = (!service.is_metered()).then_some(Money::ZERO);
                reserved.settle(&Usage { money: usage.money.or(free), ..usage });
            }
            Err(failed) if failed.is_free => reserved.settle(&call::nothing()),
            // Its usage is unknown, so the whole reservation counts.
            Err(_) => drop(reserved),
        }
        let decode = |body| decode(self.wire, &body, texts.len()).map_err(|fault| call.failed(fault));
        match body.and_then(decode) {
            Ok(vectors) => Ok(vectors),
            Err(failed) => Err(failed.end(under_way, service, key.as_ref()).await),
        }
    }

    /// The most that one request for these texts takes.
    fn limit(&self, texts: &[&str]) -> CallLimit {
        self.service.limit(texts.iter().map(|text| most_tokens(text) + MARKS_OF_TEXT).sum(), 0)
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Vec<f32>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Embedder for ServiceEmbedder {
    fn model(&self) -> &str {
        &self.service.model
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
        self.service.is_metered()
    }

    fn call_limit(&self, texts: &[&str]) -> Option<CallLimit> {
        let CallLimit { tokens, money } = self.limit(texts);
        let attempts = u64::from(MAX_ATTEMPTS);
        let money = money.map(|once| once.saturating_mul(attempts));
        Some(CallLimit { tokens: tokens.saturating_mul(attempts), money })
    }

    fn describe(&self) -> String {
        self.service.describe(self.wire.as_str(), &format!(", threshold {}", self.threshold))
    }

    async fn embed(&self, texts: &[&str], meter: &Meter) -> Result<Vec<Vec<f32>>, ExtensionError> {
        let deadline = Instant::now() + self.timeout;
        let mut found: BTreeMap<&str, Vec<f32>> = {
            let known = self.known();
            texts.iter().filter_map(|text| Some((*text, known.get(*text)?.clone()))).collect()
        };
        let mut missing: Vec<&str> = Vec::new();
        for text in texts {
            if !found.contains_key(text) && !missing.contains(text) {
                missing.push(text);
            }
        }
        for batch in batches(&missing) {
            let vectors = self.ask(batch, deadline, meter).await;
            let vectors = vectors.map_err(|failure| ExtensionError::new(failure.to_string()))?;
            found.extend(batch.iter().copied().zip(vectors));
        }
        same_length(found.values()).map_err(|fault| ExtensionError::new(fault.to_string()))?;
        let mut known = self.known();
        for text in missing {
            if let Some(vector) = found.get(text).filter(|_| known.len() < MAX_KEPT) {
                known.insert(text.to_owned(), vector.clone());
            }
        }
        Ok(texts.iter().filter_map(|text| found.get(text)).cloned().collect())
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

/// The request for the vectors of some texts.
pub fn encode(wire: Wire, model: &str, texts: &[&str]) -> HttpRequest {
    match wire {
        Wire::Gemini => {
            let model = model.strip_prefix("models/").unwrap_or(model);
            let request = |text: &&str| {
                let content = json!({"role": "user", "parts": [{"text": text}]});
                json!({"model": format!("models/{model}"), "content": content})
            };
            let body = json!({"requests": texts.iter().map(request).collect::<Vec<_>>()});
            HttpRequest::new(format!("/models/{}:batchEmbedContents", path_segment(model)), &body)
        }
        // A text that the server cut would be compared in part.
        Wire::Ollama => {
            HttpRequest::new("/api/embed", &json!({"model": model, "input": texts, "truncate": false}))
        }
        _ => {
            let body = json!({"model": model, "input": texts, "encoding_format": "float"});
            HttpRequest::new("/embeddings", &body)
        }
    }
}

/// The vectors in a response to a request for `count` texts, in the order of the texts.
///
/// # Errors
/// When the response is an error, has another number of vectors, vectors of different lengths, or one without a
/// direction.
pub fn decode(wire: Wire, body: &Json, count: usize) -> Result<Vec<Vec<f32>>, Fault> {
    let malformed = |said: String| Err(Fault::new(FaultKind::Malformed, said));
    let list = body.get(if wire == Wire::Chat { "data" } else { "embeddings" });
    let Some(list) = list.and_then(Json::as_array) else {
        return match body.get("error").is_some_and(|error| !error.is_null()) {
            true => Err(fault::from_event(body)),
            false => malformed("it has no list of vectors".to_owned()),
        };
    };
    if list.len() != count {
        return malformed(format!("it has {} vectors for {count} texts", list.len()));
    }
    let mut vectors = vec![Vec::new(); count];
    for (at, item) in list.iter().enumerate() {
        let (at, numbers) = match wire {
            Wire::Gemini => (at, item.get("values")),
            Wire::Ollama => (at, Some(item)),
            _ => (read_place(item, at, count)?, item.get("embedding")),
        };
        if !vectors[at].is_empty() {
            return malformed(format!("it has two vectors for text {at}"));
        }
        let numbers = numbers.and_then(|numbers| Vec::<f32>::deserialize(numbers).ok());
        let Some(numbers) = numbers.filter(|numbers| !numbers.is_empty()) else {
            return malformed("a vector is not a list of numbers".to_owned());
        };
        // The length that a comparison divides by, computed as it computes it.
        let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
        if !(length > 0.0 && length.is_finite()) {
            let said = "a vector has no direction: its length is zero, or too large to compute";
            return malformed(said.to_owned());
        }
        vectors[at] = numbers;
    }
    same_length(&vectors)?;
    Ok(vectors)
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

/// Refuses vectors of different lengths, which cannot be compared.
fn same_length<'v>(vectors: impl IntoIterator<Item = &'v Vec<f32>>) -> Result<(), Fault> {
    let mut lengths = vectors.into_iter().map(Vec::len);
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
        decode(Wire::Chat, &json!({"data": items}), count)
    }

    #[test]
    fn vectors_are_read_in_the_order_of_the_texts() {
        let two = json!([{"index": 1, "embedding": [0, 1.5]}, {"index": 0, "embedding": [1, 0]}]);
        assert_eq!(openai(two).unwrap(), [[1.0, 0.0], [0.0, 1.5]]);
        let two = json!([{"embedding": [0, 1]}, {"index": null, "embedding": [1, 0]}]);
        assert_eq!(openai(two).unwrap(), [[0.0, 1.0], [1.0, 0.0]]);
        let gemini = json!({"embeddings": [{"values": [0.5, 1]}]});
        assert_eq!(decode(Wire::Gemini, &gemini, 1).unwrap(), [[0.5, 1.0]]);
        let ollama = json!({"model": "m", "embeddings": [[0.5, 1]], "prompt_eval_count": 3});
        assert_eq!(decode(Wire::Ollama, &ollama, 1).unwrap(), [[0.5, 1.0]]);
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
            (json!([{"index": 0, "embedding": [1, null]}]), "not a list of numbers"),
            (json!([{"index": 0, "embedding": [1, "1"]}]), "not a list of numbers"),
            (json!([{"index": 0, "embedding": [1e300]}]), "no direction"),
            (json!([{"index": 0, "embedding": [0, 0.0]}]), "no direction"),
            (json!([{"index": 0, "embedding": [1e-30]}]), "no direction"),
            (json!([{"index": 0, "embedding": [1e30]}]), "no direction"),
            (json!([{"embedding": [1]}, {"embedding": [1, 2]}]), "of 1 and of 2 numbers"),
            (json!({"index": 0}), "no list of vectors"),
        ] {
            let fault = openai(items).unwrap_err();
            assert!(fault.kind == FaultKind::Malformed && fault.said.contains(says), "{says}: {fault:?}");
        }
        let fault = decode(Wire::Ollama, &json!({"embeddings": [[1]]}), 2).unwrap_err();
        assert!(fault.said.contains("1 vectors for 2 texts"), "{fault:?}");
        for wire in WIRES {
            let error = json!({"error": {"message": "model is loading", "code": 503}});
            let fault = decode(wire, &error, 1).unwrap_err();
            assert_eq!((fault.kind, &*fault.said), (FaultKind::Overloaded, "model is loading"));
        }
    }
}
