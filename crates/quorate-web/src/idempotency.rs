//! Requests that were answered, by the key that their client chose: a repeated one is answered as the first was.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use quorate::http::sha256_hex;
use quorate_diagnostics::codes;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::failure::Failure;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The longest key.
const MAX_KEY_BYTES: usize = 200;

/// The most answers that are remembered; the oldest are forgotten.
const MAX_ANSWERS: usize = 1_000;

type Slot = Arc<OnceCell<(StatusCode, Value)>>;

/// The answers of this process.
#[derive(Default)]
pub(crate) struct Answered {
    all: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    by_key: BTreeMap<String, (u64, String, Slot)>,
    next: u64,
}

impl Answered {
    /// The answer of `work`, or the one that was given to this key before. A failure is not remembered.
    ///
    /// # Errors
    /// Those of `work`; and when the key is unusable, or was used for another request.
    pub(crate) async fn once(
        &self,
        route: &str,
        headers: &HeaderMap,
        body: &Bytes,
        work: impl Future<Output = Result<(StatusCode, Value), Failure>>,
    ) -> Result<(StatusCode, Value), Failure> {
        let Some(key) = headers.get(IDEMPOTENCY_KEY) else { return work.await };
        let key = key.to_str().ok().filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len()));
        let Some(key) = key else {
            let message = format!("`Idempotency-Key` has 1 to {MAX_KEY_BYTES} visible ASCII characters");
            return Err(Failure::usage(message, "choose another key, for example a UUID"));
        };
        let slot = self.slot(key, format!("{route} {}", sha256_hex(body)))?;
        slot.get_or_try_init(|| work).await.cloned()
    }

    fn slot(&self, key: &str, request: String) -> Result<Slot, Failure> {
        let mut memory = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known, slot)) = memory.by_key.get(key) {
            return match *known == request {
                true => Ok(slot.clone()),
                false => Err(Failure::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    codes::USAGE,
                    "the `Idempotency-Key` was used for another request",
                    "choose a new key for each new request",
                )),
            };
        }
        if memory.by_key.len() >= MAX_ANSWERS {
            let oldest = memory.by_key.iter().min_by_key(|(_, (at, ..))| *at).map(|(key, _)| key.clone());
            oldest.map(|key| memory.by_key.remove(&key));
        }
        let (at, slot) = (memory.next, Slot::default());
        memory.next += 1;
        memory.by_key.insert(key.to_owned(), (at, request, slot.clone()));
        Ok(slot)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers(key: &str) -> HeaderMap {
        HeaderMap::from_iter([(IDEMPOTENCY_KEY, key.parse().unwrap())])
    }

    async fn ask(answered: &Answered, key: &str, body: &'static str, n: u64) -> Result<Value, StatusCode> {
        let work = async move { Ok((StatusCode::ACCEPTED, json!(n))) };
        let (headers, body) = (headers(key), Bytes::from_static(body.as_bytes()));
        let answer = answered.once("POST /x", &headers, &body, work).await;
        answer.map(|(_, value)| value).map_err(|failure| failure.status)
    }

    #[tokio::test]
    async fn a_repeated_request_is_answered_as_the_first_was() {
        let answered = Answered::default();
        assert_eq!(ask(&answered, "a", "{}", 1).await, Ok(json!(1)));
        assert_eq!(ask(&answered, "a", "{}", 2).await, Ok(json!(1)));
        assert_eq!(ask(&answered, "b", "{}", 3).await, Ok(json!(3)));
        assert_eq!(ask(&answered, "a", "{\"x\":1}", 4).await, Err(StatusCode::UNPROCESSABLE_ENTITY));
        assert_eq!(ask(&answered, &"k".repeat(201), "{}", 5).await, Err(StatusCode::BAD_REQUEST));
    }

    #[tokio::test]
    async fn a_failure_is_not_remembered() {
        let answered = Answered::default();
        let work = async { Err(Failure::usage("no", "yes")) };
        assert!(answered.once("POST /x", &headers("a"), &Bytes::from_static(b"{}"), work).await.is_err());
        assert_eq!(ask(&answered, "a", "{}", 1).await, Ok(json!(1)));
    }

    #[tokio::test]
    async fn the_oldest_are_forgotten() {
        let answered = Answered::default();
        for n in 0..=MAX_ANSWERS as u64 {
            ask(&answered, &format!("k{n}"), "{}", n).await.unwrap();
        }
        assert_eq!(ask(&answered, "k0", "{}", 7).await, Ok(json!(7)));
        assert_eq!(ask(&answered, &format!("k{MAX_ANSWERS}"), "{}", 7).await, Ok(json!(MAX_ANSWERS)));
    }
}
