//! The first wave of a shared prompt: members that are asked together share the start of their prompts. Sent at once, each
//! would write it to the service's cache and none read it. So the first call of a prefix goes alone until its response
//! begins, and the others wait for that.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorate_kernel::entropy::sha256_hex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::wire::{Server, Wire};

/// How long a call waits for the first one of its prefix at most.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// How long a prefix counts as cached after a response to it began: the shortest time that a vendor keeps one, less some.
const CACHED_FOR: Duration = Duration::from_secs(240);

/// The prefixes that calls are sent with, by their hash.
static PREFIXES: Mutex<BTreeMap<String, Prefix>> = Mutex::new(BTreeMap::new());

#[derive(Debug)]
enum Prefix {
    /// The first call is under way, and its response has not begun.
    Leading(Arc<Notify>),
    /// A response began: it is cached until then.
    Cached(Instant),
}

/// The shortest prefix, in bytes, that a service caches by itself or as it is told to; `None` where it caches none that
/// others could read. A token has about four bytes.
pub(super) fn least_bytes(wire: Wire, server: Server) -> Option<usize> {
    match (wire, server) {
        // From 512 to 4,096 tokens, by model.
        (Wire::Messages, _) => Some(4 << 10),
        // 1,024 tokens.
        (Wire::Chat | Wire::Responses, Server::Vendor) => Some(4 << 10),
        // From 2,048 to 4,096 tokens, by model.
        (Wire::Gemini, _) => Some(16 << 10),
        (Wire::Chat | Wire::Responses, Server::Compatible) | (Wire::Ollama, _) => None,
    }
}

/// What identifies a prefix: the service, the model and the text.
pub(super) fn key(service: &str, model: &str, prefix: &str) -> String {
    sha256_hex(format!("{service}\0{model}\0{prefix}").as_bytes())
}

/// The first call of a prefix. The others wait until it says that its response began, or is dropped.
#[derive(Debug)]
pub(super) struct Lead {
    key: String,
    has_begun: bool,
}

/// Waits until the call may be sent; `Some` where it is the first with this prefix. A call whose first one failed becomes
/// the first itself, and one that has waited long enough goes all the same.
pub(super) async fn enter(key: String, deadline: Instant) -> Option<Lead> {
    let until = deadline.min(Instant::now() + MAX_WAIT);
    loop {
        let leading = {
            let mut prefixes = prefixes();
            let now = Instant::now();
            prefixes.retain(|_, prefix| !matches!(prefix, Prefix::Cached(until) if *until <= now));
            match prefixes.get(&key) {
                Some(Prefix::Cached(_)) => return None,
                Some(Prefix::Leading(leading)) => Arc::clone(leading),
                None => {
                    prefixes.insert(key.clone(), Prefix::Leading(Arc::default()));
                    return Some(Lead { key, has_begun: false });
                }
            }
        };
        let changed = leading.notified();
        tokio::pin!(changed);
        // Registered before the second look, so that a change in between is not missed.
        changed.as_mut().enable();
        let is_leading =
            matches!(prefixes().get(&key), Some(Prefix::Leading(now)) if Arc::ptr_eq(now, &leading));
        if is_leading && tokio::time::timeout_at(until, changed).await.is_err() {
            return None;
        }
    }
}

impl Lead {
    /// Says that the response began: from here on the prefix is read from the cache.
    pub(super) fn begun(&mut self) {
        if !self.has_begun {
            self.has_begun = true;
            self.release(Some(Prefix::Cached(Instant::now() + CACHED_FOR)));
        }
    }

    fn release(&self, next: Option<Prefix>) {
        let mut prefixes = prefixes();
        let before = match next {
            Some(next) => prefixes.insert(self.key.clone(), next),
            None => prefixes.remove(&self.key),
        };
        drop(prefixes);
        if let Some(Prefix::Leading(leading)) = before {
            leading.notify_waiters();
        }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        if !self.has_begun {
            self.release(None);
        }
    }
}

fn prefixes() -> MutexGuard<'static, BTreeMap<String, Prefix>> {
    PREFIXES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(600)
    }

    /// When each of three calls with a prefix may be sent, in milliseconds; the first begins after a time, or fails.
    async fn wave(name: &str, first: impl AsyncFn(Lead)) -> Vec<u128> {
        let start = Instant::now();
        let lead = enter(name.to_owned(), later()).await.expect("the first leads");
        let mut others = tokio::task::JoinSet::new();
        for _ in 0..3 {
            let name = name.to_owned();
            others.spawn(async move {
                let lead = enter(name, later()).await;
                let at = start.elapsed().as_millis();
                if let Some(mut lead) = lead {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    lead.begun();
                }
                at
            });
        }
        tokio::task::yield_now().await;
        first(lead).await;
        let mut sent = others.join_all().await;
        sent.sort_unstable();
        sent
    }

    #[tokio::test(start_paused = true)]
    async fn the_others_wait_until_the_first_response_begins() {
        let sent = wave("begins", async |mut lead| {
            tokio::time::sleep(Duration::from_secs(2)).await;
            lead.begun();
        });
        assert_eq!(sent.await, [2_000, 2_000, 2_000]);
        // What is cached is not waited for until it is forgotten.
        assert!(enter("begins".into(), later()).await.is_none());
        tokio::time::sleep(CACHED_FOR).await;
        assert!(enter("begins".into(), later()).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn where_the_first_fails_another_is_the_first() {
        let sent = wave("fails", async |lead| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(lead);
        });
        assert_eq!(sent.await, [1_000, 1_100, 1_100]);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_longer_than_ten_seconds_or_past_the_deadline() {
        let sent = wave("hangs", async |lead| {
            tokio::time::sleep(Duration::from_secs(60)).await;
            drop(lead);
        });
        assert_eq!(sent.await, [10_000, 10_000, 10_000]);
        let _lead = enter("short".into(), later()).await.unwrap();
        let start = Instant::now();
        assert!(enter("short".into(), start + Duration::from_secs(3)).await.is_none());
        assert_eq!(start.elapsed(), Duration::from_secs(3));
        assert!(enter("other".into(), later()).await.is_some(), "another prefix has its own first call");
    }

    #[test]
    fn a_prefix_is_of_one_service_model_and_text() {
        let keys = [
            key("a", "m", "p"),
            key("b", "m", "p"),
            key("a", "n", "p"),
            key("a", "m", "q"),
            key("am", "", "p"),
        ];
        assert_eq!(keys.iter().collect::<std::collections::BTreeSet<_>>().len(), keys.len());
    }
}
