//! Scripted members: executors whose answers are a function of the invocation, and that record their calls.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::attempts::MemberConfig;
use quorate_kernel::clock::Clock;
use quorate_kernel::ports::executor::{About, Executor, Failure, Invocation, Reply};

/// A member's action for an invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Answers with this text after a delay in milliseconds.
    Say(String, u64),
    /// Fails after a delay in milliseconds.
    Fail(u64),
    /// Hangs until the deadline.
    Hang,
}

type Script = dyn Fn(&Invocation) -> Action + Send + Sync;

/// An executor whose answers a function gives.
pub struct ScriptedExecutor {
    script: Box<Script>,
    asks_a_model: bool,
    calls: Arc<Mutex<Vec<(String, u32)>>>,
}

impl ScriptedExecutor {
    /// The member config of this executor.
    pub fn into_member_config(self: Arc<Self>) -> MemberConfig {
        MemberConfig {
            executor: self,
            executor_name: "scripted".into(),
            timeout: Duration::from_secs(5),
            retries: 1,
            stand_ins: Arc::default(),
            samples: 1,
            role: "role".into(),
            persona: None,
            context: Vec::new(),
            weight: None,
            extra_fields: serde_json::Map::new(),
            conversation: None,
            shared: None,
        }
    }

    /// The function must depend on the invocation alone, so that a repeated run is the same.
    pub fn new(script: impl Fn(&Invocation) -> Action + Send + Sync + 'static) -> Self {
        ScriptedExecutor { script: Box::new(script), asks_a_model: false, calls: Arc::default() }
    }

    /// Says that its answers come from a model, and so cost something.
    #[must_use]
    pub fn as_model(mut self) -> Self {
        self.asks_a_model = true;
        self
    }

    /// Records calls in a list that outlives the executor.
    #[must_use]
    pub fn with_call_log(mut self, calls: Arc<Mutex<Vec<(String, u32)>>>) -> Self {
        self.calls = calls;
        self
    }

    /// The calls in order: invocation id and attempt.
    pub fn calls(&self) -> Vec<(String, u32)> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Executor for ScriptedExecutor {
    fn about(&self) -> About {
        About { kind: "scripted", asks_a_model: self.asks_a_model, model: None }
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let call = (invocation.id.to_string(), invocation.attempt);
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        let wait = |ms| tokio::time::sleep(std::time::Duration::from_millis(ms));
        match (self.script)(&invocation) {
            Action::Say(text, ms) => {
                wait(ms).await;
                Ok(Reply { text, ..Reply::default() })
            }
            Action::Fail(ms) => {
                wait(ms).await;
                Err(Failure::failed("scripted to fail"))
            }
            Action::Hang => {
                tokio::time::sleep_until(invocation.deadline).await;
                Err(Failure::TimedOut)
            }
        }
    }
}

/// A small generator (SplitMix64), good enough to choose among faults.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The same seed gives the same sequence.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// From a seed and a text, so that each member has a sequence of its own.
    pub fn from_seed_and_name(seed: u64, text: &str) -> Self {
        let mixed = text.bytes().fold(seed ^ 0x9e37_79b9_7f4a_7c15, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Rng(mixed)
    }

    /// The next number of the sequence.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which must not be 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next_u64() % end
    }

    /// True in `so_many` percent of cases.
    pub fn percent(&mut self, so_many: u64) -> bool {
        self.below(100) < so_many
    }
}

/// Starts at a fixed time and advances by one millisecond at each reading.
#[derive(Debug)]
pub struct TickingClock(AtomicI64);

impl Default for TickingClock {
    fn default() -> Self {
        TickingClock(AtomicI64::new(1_800_000_000_000))
    }
}

impl Clock for TickingClock {
    fn now_ms(&self) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// A clock that ticks, and sometimes jumps forward or back by minutes or days, determined by its seed.
#[derive(Debug)]
pub struct JumpingClock(Mutex<(i64, Rng)>);

impl JumpingClock {
    /// Starts at a time determined by its seed.
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::from_seed_and_name(seed, "clock");
        let start_ms = 1_800_000_000_000 + jump_ms(&mut rng);
        JumpingClock(Mutex::new((start_ms, rng)))
    }
}

impl Clock for JumpingClock {
    fn now_ms(&self) -> i64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (now_ms, rng) = &mut *state;
        *now_ms += if rng.percent(5) { jump_ms(rng) } else { 1 };
        *now_ms
    }
}

/// Up to two hours, or up to twelve days, in either direction.
fn jump_ms(rng: &mut Rng) -> i64 {
    let most = [7_200_000, 1_036_800_000][usize::from(rng.percent(30))];
    let leap = i64::try_from(rng.below(most)).unwrap_or(0);
    if rng.percent(50) { leap } else { -leap }
}
