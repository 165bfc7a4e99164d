//! How fast one service is asked: a number of calls at once that adapts to what it allows, one time before which no
//! call is sent after it said to wait, and a breaker for a service that cannot be reached. Executors that name the same pool
//! share it within this process, and through [`SharedPool`] with other processes.
//!
//! Several calls with one cached prefix start with one call; the others wait until its response begins.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::executor::{Admission, Failure};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::shared_pool::{LONGEST_WAIT, SharedPool};
use super::wire::{Server, Wire};

/// A service that says no time is left alone this long after it limited a call, doubled with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Limits within this time of each other are one: the calls were under way together.
const SAME_STORM: Duration = Duration::from_secs(1);

/// How long the number of calls stays below one that was limited, before one more is tried.
const PROBES_AFTER: Duration = Duration::from_secs(30);

/// So many calls in a row that reach nothing, or a failing server, open the breaker.
const BREAKS_AFTER: u32 = 3;

/// How long a broken pool refuses calls; then one is tried.
const BROKEN_FOR: Duration = Duration::from_secs(10);

/// Name and concurrency: an executor with another concurrency has a pool of its own.
static POOLS: Mutex<BTreeMap<(String, usize), Arc<Pool>>> = Mutex::new(BTreeMap::new());

pub(super) struct Pool {
    name: String,
    most: usize,
    shared: Option<SharedPool>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    /// How many calls may be under way; whole steps count.
    allowed: f64,
    under_way: usize,
    /// What `allowed` stays below, and until when.
    ceiling: Option<(f64, Instant)>,
    not_before: Option<Instant>,
    last_limit: Option<Instant>,
    /// Limits since the last answer.
    limits: u32,
    /// Failures to reach the service since something was answered.
    unreached: u32,
    /// The last of these failures, for the messages of calls that are not made.
    last_failure: String,
    broken_until: Option<Instant>,
}

/// How a call ended, as far as the pool is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The service answered, well or not.
    Answered,
    /// It asks for fewer calls, and says after what time, if it does.
    Limited(Option<Duration>),
    /// It was not reached, or failed itself.
    Unreached,
}

impl Pool {
    /// The pool of a name.
    pub(super) fn named(name: &str, most: usize) -> Arc<Pool> {
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(
            pools
                .entry((name.to_owned(), most))
                .or_insert_with(|| Arc::new(Pool::new(name, most, SharedPool::named(name, most)))),
        )
    }

    fn new(name: &str, most: usize, shared: Option<SharedPool>) -> Pool {
        #[expect(clippy::cast_precision_loss, reason = "a process has far fewer than 2^53 calls under way")]
        let state = State {
            allowed: most.max(1) as f64,
            under_way: 0,
            ceiling: None,
            not_before: None,
            last_limit: None,
            limits: 0,
            unreached: 0,
            last_failure: String::new(),
            broken_until: None,
        };
        Pool {
            name: name.to_owned(),
            most: most.max(1),
            shared,
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room for one more call. It is given back when the admission is dropped. How long a service asks to wait
    /// does not count here, but against the deadline of a call: a service could ask for years.
    pub(super) async fn admit(self: &Arc<Self>) -> Admission {
        let permit = self.permit().await;
        let slot = match &self.shared {
            Some(shared) => shared.slot().await,
            None => None,
        };
        Admission::with_permit((slot, permit))
    }

    async fn permit(self: &Arc<Self>) -> Permit {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that a change in between is not missed.
            changed.as_mut().enable();
            {
                let mut state = self.state();
                if state.has_room() {
                    state.under_way += 1;
                    return Permit(Arc::clone(self));
                }
            }
            changed.await;
        }
    }

    /// Waits until calls may be sent again.
    ///
    /// # Errors
    /// When that is not before the deadline, or the service was not reached just now.
    pub(super) async fn wait_turn(&self, deadline: Instant) -> Result<(), Failure> {
        loop {
            let now = Instant::now();
            let shared = self.shared.as_ref().and_then(|shared| now.checked_add(shared.wait()));
            let wait = {
                let state = self.state();
                if state.broken_until.is_some_and(|until| until > now) {
                    return Err(Failure::never(format!(
                        "not asked, as the last {BREAKS_AFTER} calls through pool `{}` failed: {}",
                        self.name, state.last_failure
                    )));
                }
                state.not_before.max(shared)
            };
            let Some(until) = wait.filter(|until| *until > now) else {
                return self.wait_quota(deadline).await;
            };
            if until >= deadline {
                let left = until.duration_since(now).as_secs();
                return Err(Failure::never(format!(
                    "not asked: the service has calls through pool `{}` wait for {left} s more, longer than the time that is left",
                    self.name
                )));
            }
            tokio::time::sleep_until(until).await;
        }
    }

    /// Waits until the machines that share the pool's quota may make one more call.
    async fn wait_quota(&self, deadline: Instant) -> Result<(), Failure> {
        let Some(quota) = crate::executor::shared_quota() else { return Ok(()) };
        while let Some(wait) = quota.ask(&self.name).await {
            let until = Instant::now() + wait;
            if until >= deadline {
                return Err(Failure::never(format!(
                    "not asked: the quota of pool `{}` has calls wait for {} s more, longer than the time that is left",
                    self.name,
                    wait.as_secs()
                )));
            }
            tokio::time::sleep_until(until).await;
        }
        Ok(())
    }

    /// Records the outcome of a call, with the message of a failure. Returns the shortest time that the caller must wait
    /// before it asks again.
    pub(super) fn ended(&self, outcome: Outcome, message: &str) -> Duration {
        let now = Instant::now();
        let mut state = self.state();
        let wait = match outcome {
            Outcome::Answered => {
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "a process has far fewer than 2^53 calls under way"
                )]
                let most = self.most as f64;
                let ceiling =
                    state.ceiling.filter(|(_, until)| *until > now).map_or(most, |(ceiling, _)| ceiling);
                state.allowed = (state.allowed + 1.0 / state.allowed).min(most).min(ceiling);
                (state.limits, state.unreached, state.broken_until) = (0, 0, None);
                Duration::ZERO
            }
            Outcome::Limited(after) => {
                state.unreached = 0;
                if state.last_limit.is_none_or(|last| now.duration_since(last) >= SAME_STORM) {
                    #[expect(
                        clippy::cast_precision_loss,
                        reason = "a process has far fewer than 2^53 calls under way"
                    )]
                    let ceiling = state.under_way.saturating_sub(1).max(1) as f64;
                    state.ceiling = Some((ceiling, now + PROBES_AFTER));
                    state.allowed = (state.allowed / 2.0).max(1.0);
                    state.last_limit = Some(now);
                }
                state.limits = state.limits.saturating_add(1);
                let pause = FIRST_PAUSE.saturating_mul(1 << state.limits.min(10)) / 2;
                let wait = after.unwrap_or(pause.min(LONGEST_PAUSE));
                // A service that asks for years must not stop a process that runs as long.
                state.not_before = state.not_before.max(now.checked_add(wait.min(LONGEST_WAIT)));
                wait
            }
            Outcome::Unreached => {
                state.unreached = state.unreached.saturating_add(1);
                message.clone_into(&mut state.last_failure);
                if state.unreached >= BREAKS_AFTER {
                    state.broken_until = Some(now + BROKEN_FOR);
                }
                Duration::ZERO
            }
        };
        drop(state);
        self.changed.notify_waiters();
        if let (Outcome::Limited(_), Some(shared)) = (outcome, &self.shared) {
            shared.limited(wait);
        }
        if let (Outcome::Limited(_), Some(quota)) = (outcome, crate::executor::shared_quota()) {
            quota.limited(&self.name, wait.min(LONGEST_WAIT));
        }
        wait
    }
}

impl State {
    #[expect(clippy::cast_precision_loss, reason = "a process has far fewer than 2^53 calls under way")]
    fn has_room(&self) -> bool {
        (self.under_way as f64) < self.allowed.floor()
    }
}

struct Permit(Arc<Pool>);

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.under_way = state.under_way.saturating_sub(1);
        drop(state);
        self.0.changed.notify_waiters();
    }
}

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

/// The shortest prefix, in bytes, that a service caches, by itself or on request; `None` if other calls cannot read
/// its cache. A token has about four bytes.
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
pub(super) fn prefix_key(service: &str, model: &str, prefix: &str) -> String {
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
pub(super) async fn enter_wave(key: String, deadline: Instant) -> Option<Lead> {
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
    use quorate_kernel::clock::Clock;

    use super::*;

    /// The paused clock, in the form that files have.
    struct Paused(Instant);

    impl Clock for Paused {
        fn now_ms(&self) -> i64 {
            1_800_000_000_000 + i64::try_from(self.0.elapsed().as_millis()).unwrap()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn two_processes_hold_as_many_slots_as_one_and_wait_for_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let (base, start) = (dir.path().join("pools"), Instant::now());
        let process = || {
            let shared = SharedPool::within(&base, "p", 4, Arc::new(Paused(start)));
            Arc::new(Pool::new("p", 4, Some(shared)))
        };
        let pools = [process(), process()];
        let at_once = Arc::new(Mutex::new((0_usize, 0_usize)));
        futures_of(16, |task| {
            let (pool, at_once) = (pools[task % 2].clone(), at_once.clone());
            async move {
                for _ in 0..5 {
                    let _admitted = pool.admit().await;
                    {
                        let mut at_once = at_once.lock().unwrap();
                        at_once.0 += 1;
                        at_once.1 = at_once.1.max(at_once.0);
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    at_once.lock().unwrap().0 -= 1;
                }
            }
        })
        .await;
        assert_eq!(*at_once.lock().unwrap(), (0, 4));
        // A limit of one process holds for the other: its time, and half the calls.
        pools[0].ended(Outcome::Limited(Some(Duration::from_secs(5))), "");
        let asked = Instant::now();
        let refused = pools[1].wait_turn(asked + Duration::from_secs(2)).await.unwrap_err();
        assert!(refused.to_string().contains("wait for 5 s more"), "{refused}");
        pools[1].wait_turn(asked + Duration::from_secs(60)).await.unwrap();
        assert_eq!(asked.elapsed(), Duration::from_secs(5));
        let held = [pools[1].admit().await, pools[1].admit().await];
        let soon = Duration::from_secs(1);
        assert!(tokio::time::timeout(soon, pools[1].admit()).await.is_err(), "two are under way");
        assert_eq!(pools[1].state().under_way, 2, "a call that no longer waits has no room");
        // After half a minute there is room for more.
        tokio::time::sleep(Duration::from_secs(30)).await;
        let third = tokio::time::timeout(soon, pools[1].admit()).await;
        assert!(third.is_ok());
        drop((held, third));
    }

    #[tokio::test(start_paused = true)]
    async fn eight_calls_converge_to_the_three_that_a_service_allows() {
        let pool = Arc::new(Pool::new("p", 8, None));
        let service = Arc::new(Mutex::new((0_usize, Vec::new(), None::<Instant>)));
        let after = Duration::from_secs(2);
        let call = |_| {
            let (pool, service) = (pool.clone(), service.clone());
            async move {
                for _ in 0..40 {
                    let _admitted = pool.admit().await;
                    loop {
                        pool.wait_turn(Instant::now() + Duration::from_secs(3_600)).await.unwrap();
                        let refused = {
                            let mut service = service.lock().unwrap();
                            assert!(
                                service.2.is_none_or(|until| Instant::now() >= until),
                                "it was told to wait"
                            );
                            service.0 += 1;
                            let under_way = service.0;
                            service.1.push(under_way);
                            under_way > 3
                        };
                        if !refused {
                            tokio::time::sleep(Duration::from_millis(100)).await;
                            service.lock().unwrap().0 -= 1;
                            pool.ended(Outcome::Answered, "");
                            break;
                        }
                        {
                            let mut state = service.lock().unwrap();
                            state.0 -= 1;
                            state.2 = state.2.max(Some(Instant::now() + after));
                        }
                        assert_eq!(pool.ended(Outcome::Limited(Some(after)), ""), after);
                        // The calls that were sent together may all be refused.
                        tokio::task::yield_now().await;
                    }
                }
            }
        };
        futures_of(8, call).await;
        let seen = &service.lock().unwrap().1;
        let late = &seen[seen.len() / 2..];
        assert!(late.iter().all(|under_way| *under_way <= 4), "{late:?}");
        assert!(late.iter().filter(|under_way| **under_way > 3).count() * 16 <= late.len(), "{late:?}");
    }

    async fn futures_of<F: Future<Output = ()> + Send + 'static>(count: usize, make: impl Fn(usize) -> F) {
        let mut tasks = tokio::task::JoinSet::new();
        (0..count).for_each(|at| drop(tasks.spawn(make(at))));
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_is_not_reached_is_left_alone_and_tried_again() {
        let pool = Arc::new(Pool::new("p", 2, None));
        let later = || Instant::now() + Duration::from_secs(60);
        for _ in 0..BREAKS_AFTER {
            pool.wait_turn(later()).await.unwrap();
            pool.ended(Outcome::Unreached, "refused");
        }
        assert!(pool.wait_turn(later()).await.unwrap_err().to_string().contains("failed: refused"));
        tokio::time::sleep(BROKEN_FOR).await;
        pool.wait_turn(later()).await.unwrap();
        pool.ended(Outcome::Unreached, "refused");
        assert!(pool.wait_turn(later()).await.is_err(), "one more failure breaks it again");
        tokio::time::sleep(BROKEN_FOR).await;
        pool.ended(Outcome::Answered, "");
        pool.ended(Outcome::Unreached, "refused");
        pool.wait_turn(later()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_asks_to_wait_for_years_holds_up_no_admission() {
        let pool = Arc::new(Pool::new("p", 2, None));
        let start = Instant::now();
        pool.ended(Outcome::Limited(Some(Duration::from_secs(3_000_000_000))), "");
        pool.ended(Outcome::Limited(Some(Duration::MAX)), "");
        assert!(pool.admit().await.has_permit());
        let deadline = start + Duration::from_secs(10);
        let refused = pool.wait_turn(deadline).await.unwrap_err().to_string();
        assert!(refused.contains("pool `p`") && refused.contains("600 s more"), "{refused}");
        assert_eq!(Instant::now(), start);
        // After ten minutes one call probes the service.
        pool.wait_turn(start + Duration::from_secs(3_600)).await.unwrap();
        assert_eq!(start.elapsed(), LONGEST_WAIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_past_the_deadline_ends_the_call_at_once() {
        let pool = Arc::new(Pool::new("p", 2, None));
        pool.ended(Outcome::Limited(Some(Duration::from_secs(100))), "");
        let start = Instant::now();
        let deadline = start + Duration::from_secs(10);
        assert!(pool.wait_turn(deadline).await.is_err());
        assert_eq!(Instant::now(), start);
        // Without a time of its own, the pause doubles.
        let pool = Arc::new(Pool::new("q", 2, None));
        let pauses: Vec<u128> = (0..8).map(|_| pool.ended(Outcome::Limited(None), "").as_millis()).collect();
        assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    }
}

#[cfg(test)]
mod first_wave_tests {
    use super::*;

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(600)
    }

    /// When each of three calls with a prefix may be sent, in milliseconds; the first begins after a time, or fails.
    async fn wave(name: &str, first: impl AsyncFn(Lead)) -> Vec<u128> {
        let start = Instant::now();
        let lead = enter_wave(name.to_owned(), later()).await.expect("the first leads");
        let mut others = tokio::task::JoinSet::new();
        for _ in 0..3 {
            let name = name.to_owned();
            others.spawn(async move {
                let lead = enter_wave(name, later()).await;
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
        // A call does not wait for a cached prefix until the entry expires.
        assert!(enter_wave("begins".into(), later()).await.is_none());
        tokio::time::sleep(CACHED_FOR).await;
        assert!(enter_wave("begins".into(), later()).await.is_some());
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
        let _lead = enter_wave("short".into(), later()).await.unwrap();
        let start = Instant::now();
        assert!(enter_wave("short".into(), start + Duration::from_secs(3)).await.is_none());
        assert_eq!(start.elapsed(), Duration::from_secs(3));
        assert!(enter_wave("other".into(), later()).await.is_some(), "another prefix has its own first call");
    }

    #[test]
    fn a_prefix_is_of_one_service_model_and_text() {
        let keys = [
            prefix_key("a", "m", "p"),
            prefix_key("b", "m", "p"),
            prefix_key("a", "n", "p"),
            prefix_key("a", "m", "q"),
            prefix_key("am", "", "p"),
        ];
        assert_eq!(keys.iter().collect::<std::collections::BTreeSet<_>>().len(), keys.len());
    }
}
