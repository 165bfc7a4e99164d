//! How fast one service is asked. Executors that name the same pool share it within this process: the number of calls at
//! once, one time before which no call is sent after the service said to wait, and since when the service fails.
//!
//! Several calls with one cached prefix start with one call; the others wait until its response begins.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use quorate_kernel::clock::{Clock as _, System};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::executor::{Admission, Failure, Progress};
use tokio::sync::{Notify, OwnedMutexGuard, Semaphore};
use tokio::time::Instant;

use super::wire::{Server, Wire};

/// How long a pool halves its calls at once after the service reported too many.
const HALVED_FOR: Duration = Duration::from_secs(60);

/// How long calls of a service that only fails are repeated, counted from its first failure. With the longest pause
/// between two calls, that is a minute at most, for all calls of the pool together.
const FAILS_FOR: Duration = Duration::from_secs(50);

/// A call that is sent this long after the last failure begins a new count: the service may have been mended.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// How long a wait that the service asks for holds for the other calls of a pool. A service that asks for years must not
/// stop a process that runs as long.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// Name and concurrency: an executor with another concurrency has a pool of its own.
static POOLS: Mutex<BTreeMap<(String, usize), Arc<Pool>>> = Mutex::new(BTreeMap::new());

pub(super) struct Pool {
    name: String,
    room: Arc<Semaphore>,
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct State {
    under_way: usize,
    /// How many calls may be under way since the service said that they were too many, and when it did.
    halved: Option<(usize, Instant)>,
    /// Before what time no call is sent.
    not_before: Option<Instant>,
    /// The first failure since the last answer, and the last one.
    failing: Option<(Instant, Instant)>,
}

/// How a call ended, as far as the pool is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The service answered, well or not.
    Answered,
    /// It asks for fewer calls, and says after what time, if it does.
    Limited(Option<Duration>),
    /// It was not reached, fell silent or broke off; it may say when to come back.
    Unavailable(Option<Duration>),
    /// It answered with an error, and may ask for a wait. It counts as failing since the request was sent.
    Failed(Option<Duration>),
    /// The call shows nothing about the service.
    Unknown,
}

impl Pool {
    /// The pool of a name.
    pub(super) fn named(name: &str, most: usize) -> Arc<Pool> {
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(pools.entry((name.to_owned(), most)).or_insert_with(|| Arc::new(Pool::new(name, most))))
    }

    fn new(name: &str, most: usize) -> Pool {
        let room = Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)));
        Pool { name: name.to_owned(), room, state: Mutex::default(), ended: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room for one more invocation, which is given back when the admission is dropped. How long a service asks
    /// to wait does not count here, but against the deadline of a call: a service could ask for years.
    pub(super) async fn admit(&self) -> Admission {
        // The semaphore is never closed.
        Arc::clone(&self.room).acquire_owned().await.map(Admission::with_permit).unwrap_or_default()
    }

    /// Waits until a call may be sent; `progress` is told how long. The call counts until [`UnderWay`] is dropped.
    ///
    /// # Errors
    /// When no call may be sent before the deadline.
    pub(super) async fn start(
        self: &Arc<Self>,
        deadline: Instant,
        progress: &Progress,
    ) -> Result<UnderWay, Failure> {
        let asked_by = format!("the service has calls through pool `{}` wait", self.name);
        loop {
            let until = self.state().not_before.filter(|until| Instant::now() < *until);
            let Some(until) = until else { break };
            wait(until, deadline, &asked_by, progress).await?;
        }
        self.wait_quota(deadline, progress).await?;
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // Registered before the check, so that no change in between is missed.
            ended.as_mut().enable();
            // A call that has ended meanwhile may have been asked to wait, for all.
            let (sent, until) = {
                let mut state = self.state();
                let until = state.not_before.filter(|until| Instant::now() < *until);
                (if until.is_none() { state.send() } else { None }, until)
            };
            if let Some(sent) = sent {
                return Ok(UnderWay { pool: Arc::clone(self), sent });
            }
            match until {
                Some(until) => wait(until, deadline, &asked_by, progress).await?,
                None => tokio::time::timeout_at(deadline, ended).await.map_err(|_| Failure::TimedOut)?,
            }
        }
    }

    /// Waits until the machines that share the pool's quota may make one more call.
    async fn wait_quota(&self, deadline: Instant, progress: &Progress) -> Result<(), Failure> {
        let Some(quota) = crate::executor::shared_quota() else { return Ok(()) };
        while let Some(pause) = quota.ask(&self.name).await {
            let asked_by = format!("the workers' quota has calls through pool `{}` wait", self.name);
            let until = Instant::now().checked_add(pause).unwrap_or(deadline);
            wait(until, deadline, &asked_by, progress).await?;
        }
        Ok(())
    }
}

/// Waits until a time that `asked_by` explains.
async fn wait(until: Instant, deadline: Instant, asked_by: &str, progress: &Progress) -> Result<(), Failure> {
    let pause = until.duration_since(Instant::now());
    if until >= deadline {
        return Err(Failure::never(format!("not asked: {asked_by} {}", past_deadline(pause))));
    }
    progress.waits(asked_by, pause);
    tokio::time::sleep_until(until).await;
    Ok(())
}

/// A wait that does not end before a call's deadline: `until 2026-11-29 07:20:51 UTC, longer than …`.
pub(super) fn past_deadline(pause: Duration) -> String {
    let ms = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
    let until = Timestamp::from_millisecond(System.now_ms().saturating_add(ms));
    let until = until.map_or_else(
        |_| format!("for {} s", pause.as_secs()),
        |until| format!("until {}", until.strftime("%Y-%m-%d %H:%M:%S UTC")),
    );
    format!("{until}, longer than the time that is left of the call's `timeout`")
}

impl State {
    /// Counts one more call if the limits allow it.
    fn send(&mut self) -> Option<Instant> {
        let now = Instant::now();
        self.halved = self.halved.filter(|(_, at)| now.duration_since(*at) < HALVED_FOR);
        let has_room = self.halved.is_none_or(|(most, _)| self.under_way < most);
        has_room.then(|| {
            self.under_way += 1;
            now
        })
    }

    /// Halves the calls under way, once for those that were sent together.
    fn halve(&mut self, sent: Instant) {
        if self.halved.is_none_or(|(_, at)| sent > at) {
            let most = self.halved.map_or(usize::MAX, |(most, _)| most).min(self.under_way);
            self.halved = Some(((most / 2).max(1), Instant::now()));
        }
    }

    /// Counts a failure of a call sent at `sent`, whose service counts as failing since `since` at the latest. Returns whether calls are
    /// repeated.
    fn fail(&mut self, sent: Instant, since: Instant) -> bool {
        let now = Instant::now();
        let known = self.failing.filter(|(_, last)| sent.duration_since(*last) < FORGOTTEN_AFTER);
        let since = known.map_or(since, |(first, _)| first);
        self.failing = Some((since, now));
        now.duration_since(since) < FAILS_FOR
    }
}

/// A call that is under way.
pub(super) struct UnderWay {
    pool: Arc<Pool>,
    sent: Instant,
}

impl UnderWay {
    /// Records the outcome of the call. Returns whether the call may be repeated: not if the service only fails and does not
    /// say when to come back.
    pub(super) fn end(self, outcome: Outcome) -> bool {
        let now = Instant::now();
        let mut state = self.pool.state();
        let asked = match outcome {
            Outcome::Limited(wait) | Outcome::Unavailable(wait) | Outcome::Failed(wait) => wait,
            Outcome::Answered | Outcome::Unknown => None,
        };
        // A wait of no time is none.
        let asked = asked.filter(|wait| !wait.is_zero()).map(|wait| wait.min(LONGEST_WAIT));
        if let Some(wait) = asked {
            state.not_before = state.not_before.max(Some(now + wait));
        }
        let may_repeat = match outcome {
            Outcome::Answered => {
                state.failing = None;
                true
            }
            Outcome::Limited(_) => {
                state.failing = None;
                if asked.is_none() {
                    state.halve(self.sent);
                }
                true
            }
            Outcome::Unavailable(_) => state.fail(self.sent, now) || asked.is_some(),
            Outcome::Failed(_) => state.fail(self.sent, self.sent) || asked.is_some(),
            Outcome::Unknown => true,
        };
        drop(state);
        if let (Outcome::Limited(Some(_)), Some(quota)) = (outcome, crate::executor::shared_quota()) {
            quota.limited(&self.pool.name, asked.unwrap_or_default());
        }
        may_repeat
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        state.under_way = state.under_way.saturating_sub(1);
        drop(state);
        self.pool.ended.notify_waiters();
    }
}

/// How long a call waits for the first one of its prefix at most.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// How long a prefix counts as cached after a response to it began: the shortest time that a vendor keeps one, less some.
const CACHED_FOR: Duration = Duration::from_secs(240);

/// Held by the first call with a prefix until its response begins; says until when the prefix is cached.
type Gate = Arc<tokio::sync::Mutex<Option<Instant>>>;

/// The gates of the prefixes that calls are sent with, by the prefix's hash.
static GATES: Mutex<BTreeMap<String, Gate>> = Mutex::new(BTreeMap::new());

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

/// The first call of a prefix. The others wait until its response begins or it is dropped.
#[derive(Debug)]
pub(super) struct Lead(OwnedMutexGuard<Option<Instant>>);

/// Waits until the call may be sent; `Some` where it is the first with this prefix. A call whose first one failed becomes
/// the first itself, and one that has waited long enough goes all the same.
pub(super) async fn enter_wave(key: String, deadline: Instant) -> Option<Lead> {
    let gate = {
        let mut gates = GATES.lock().unwrap_or_else(PoisonError::into_inner);
        // An entry that no call holds and whose prefix is not cached says nothing.
        gates.retain(|_, gate| {
            Arc::strong_count(gate) > 1 || gate.try_lock().is_ok_and(|gate| is_cached(*gate))
        });
        Arc::clone(gates.entry(key).or_default())
    };
    let until = deadline.min(Instant::now() + MAX_WAIT);
    let gate = tokio::time::timeout_at(until, gate.lock_owned()).await.ok()?;
    (!is_cached(*gate)).then_some(Lead(gate))
}

fn is_cached(until: Option<Instant>) -> bool {
    until.is_some_and(|until| Instant::now() < until)
}

impl Lead {
    /// Says that the response began: from here on the prefix is read from the cache.
    pub(super) fn begun(mut self) {
        *self.0 = Some(Instant::now() + CACHED_FOR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn pool(most: usize) -> Arc<Pool> {
        Arc::new(Pool::new("p", most))
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(3_600)
    }

    /// Makes a call that takes no time and ends so. Gives whether it may be repeated.
    async fn call(pool: &Arc<Pool>, outcome: Outcome) -> bool {
        pool.start(later(), &Progress::default()).await.unwrap().end(outcome)
    }

    async fn refusal(pool: &Arc<Pool>, deadline: Instant) -> String {
        let start = Instant::now();
        let refused = pool.start(deadline, &Progress::default()).await.map(drop).unwrap_err();
        assert_eq!(Instant::now(), start, "at once");
        refused.to_string()
    }

    #[tokio::test(start_paused = true)]
    async fn admissions_are_given_back() {
        let pool = pool(2);
        let held = [pool.admit().await, pool.admit().await];
        assert!(held.iter().all(Admission::has_permit));
        assert!(tokio::time::timeout(SECOND, pool.admit()).await.is_err());
        drop(held);
        assert!(pool.admit().await.has_permit());
        assert!(self::pool(0).admit().await.has_permit(), "there is room for one");
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_calls_at_once_halve_and_take_at_most_two_retries() {
        let pool = pool(8);
        let service = Arc::new(Mutex::new(0_usize));
        let mut members = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (pool, service) = (pool.clone(), service.clone());
            members.spawn(async move {
                let mut most_refusals = 0;
                for _ in 0..40 {
                    for refusals in 0.. {
                        let sent = pool.start(later(), &Progress::default()).await.unwrap();
                        let is_refused = {
                            let mut at_once = service.lock().unwrap();
                            *at_once += 1;
                            *at_once > 3
                        };
                        let takes = if is_refused { Duration::ZERO } else { Duration::from_millis(100) };
                        tokio::time::sleep(takes).await;
                        *service.lock().unwrap() -= 1;
                        if !is_refused {
                            sent.end(Outcome::Answered);
                            break;
                        }
                        assert!(sent.end(Outcome::Limited(None)));
                        most_refusals = most_refusals.max(refusals + 1);
                        tokio::time::sleep(Duration::from_millis(200 << refusals)).await;
                    }
                }
                most_refusals
            });
        }
        let most = members.join_all().await.into_iter().max();
        assert!((1..=2).contains(&most.unwrap()), "{most:?}");
        let state = pool.state();
        assert!(state.halved.is_some_and(|(most, _)| most <= 3) && state.under_way == 0);
    }

    #[tokio::test(start_paused = true)]
    async fn halved_calls_last_a_minute_and_calls_sent_together_count_once() {
        let pool = pool(8);
        let sent = async || pool.start(later(), &Progress::default()).await.unwrap();
        let together = [sent().await, sent().await, sent().await, sent().await];
        tokio::time::advance(SECOND).await;
        let ended = together.map(|call| call.end(Outcome::Limited(None)));
        assert_eq!(ended, [true; 4]);
        let two = [sent().await, sent().await];
        assert!(tokio::time::timeout(SECOND, sent()).await.is_err());
        tokio::time::advance(HALVED_FOR).await;
        let third = sent().await;
        assert_eq!(pool.state().under_way, 3);
        drop((two, third));
        // One call at a time is always left.
        for _ in 0..5 {
            tokio::time::advance(SECOND).await;
            assert!(call(&pool, Outcome::Limited(None)).await);
        }
        assert!(sent().await.end(Outcome::Answered));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_applies_to_all_calls_and_is_reported() {
        let told: Arc<Mutex<Vec<(String, Duration)>>> = Arc::default();
        let kept = told.clone();
        let progress = Progress::default()
            .with_waits(move |why, wait| kept.lock().unwrap().push((why.to_owned(), wait)));
        for outcome in [Outcome::Limited, Outcome::Unavailable, Outcome::Failed] {
            let (pool, start) = (pool(4), Instant::now());
            assert!(call(&pool, outcome(Some(8 * SECOND))).await);
            pool.start(later(), &progress).await.unwrap().end(Outcome::Answered);
            assert_eq!(start.elapsed(), 8 * SECOND);
            let (why, wait) = told.lock().unwrap().pop().unwrap();
            assert!(why.contains("pool `p`") && wait == 8 * SECOND, "{why}");
        }
        assert_eq!(told.lock().unwrap().len(), 0);
        // A wait of no time is none.
        let pool = pool(4);
        assert!(call(&pool, Outcome::Limited(Some(Duration::ZERO))).await);
        assert!(pool.state().not_before.is_none() && pool.state().halved.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_past_the_deadline_ends_a_call_at_once_and_says_until_when() {
        for years in [Duration::from_secs(700), Duration::from_secs(3_000_000_000), Duration::MAX] {
            let pool = pool(2);
            assert!(call(&pool, Outcome::Limited(Some(years))).await);
            assert!(pool.admit().await.has_permit());
            let refused = refusal(&pool, Instant::now() + 10 * SECOND).await;
            assert!(refused.contains("pool `p`") && refused.contains(" UTC, longer than"), "{refused}");
            // After ten minutes a call tries the service.
            tokio::time::advance(LONGEST_WAIT).await;
            assert!(call(&pool, Outcome::Answered).await);
            // If a service asks calls that were sent together for different waits, the longest counts.
            let sent = async || pool.start(later(), &Progress::default()).await.unwrap();
            for (call, wait) in [sent().await, sent().await].into_iter().zip([3 * SECOND, SECOND]) {
                assert!(call.end(Outcome::Limited(Some(wait))));
            }
            let start = Instant::now();
            assert!(call(&pool, Outcome::Answered).await);
            assert_eq!(start.elapsed(), 3 * SECOND);
        }
        assert!(past_deadline(Duration::MAX).contains("longer than the time that is left"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_only_fails_is_given_up_within_a_minute_for_all_calls() {
        let (pool, start) = (pool(1), Instant::now());
        while call(&pool, Outcome::Unavailable(None)).await {
            tokio::time::advance(3 * SECOND).await;
        }
        assert!((FAILS_FOR..=FAILS_FOR + 3 * SECOND).contains(&start.elapsed()), "{:?}", start.elapsed());
        assert!(!call(&pool, Outcome::Unavailable(None)).await, "another call is made once");
        assert!(call(&pool, Outcome::Answered).await);
        assert!(call(&pool, Outcome::Unavailable(None)).await, "the count begins anew");
    }

    #[tokio::test(start_paused = true)]
    async fn a_failing_service_that_says_when_to_come_back_is_asked_again() {
        let pool = pool(1);
        for _ in 0..10 {
            assert!(call(&pool, Outcome::Unavailable(Some(20 * SECOND))).await);
            assert!(call(&pool, Outcome::Failed(Some(20 * SECOND))).await);
        }
        assert!(!call(&pool, Outcome::Failed(None)).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_long_ago_does_not_count() {
        let pool = pool(1);
        assert!(call(&pool, Outcome::Unavailable(None)).await);
        assert!(call(&pool, Outcome::Unknown).await);
        tokio::time::advance(FORGOTTEN_AFTER).await;
        assert!(call(&pool, Outcome::Unavailable(None)).await, "the failure was another run's");
        // A slow failure belongs to the call before it.
        let slow = pool.start(later(), &Progress::default()).await.unwrap();
        tokio::time::advance(FORGOTTEN_AFTER * 2).await;
        assert!(!slow.end(Outcome::Unavailable(None)));
        // An answer that takes long to say that the service failed counts from the request on, silence does not.
        for (outcome, may_repeat) in [(Outcome::Failed(None), false), (Outcome::Unavailable(None), true)] {
            let slow = self::pool(1).start(later(), &Progress::default()).await.unwrap();
            tokio::time::advance(FAILS_FOR).await;
            assert_eq!(slow.end(outcome), may_repeat, "{outcome:?}");
        }
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
                if let Some(lead) = lead {
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
        let sent = wave("begins", async |lead| {
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
