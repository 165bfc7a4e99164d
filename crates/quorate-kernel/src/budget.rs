//! The budget of a run: what a call takes is reserved before it is made, and settled when it is over (X8).

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use quorate_manifest::money::{self, Money};
use quorate_protocol::answers;
use serde::{Deserialize, Deserializer, Serialize};
use tokio::sync::Notify;

use crate::ports::executor::{CallLimit, Executor, Usage};
use crate::record::Spent;

/// The caps of a run. `None` means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Caps {
    /// Calls, re-prompts and retries included.
    pub calls: Option<u32>,
    /// Tokens of prompts and answers.
    pub tokens: Option<u64>,
    /// The price of all calls.
    #[serde(rename = "usd_nanos", with = "money::nanos")]
    pub money: Option<Money>,
}

/// Tokens and money: of one call, or of all calls of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Amount {
    /// Tokens of prompts and answers.
    pub tokens: u64,
    /// The price. A sum that this version cannot read counts as the largest, so that no cap is missed.
    #[serde(deserialize_with = "money_or_most")]
    pub money: Money,
}

fn money_or_most<'de, D: Deserializer<'de>>(field: D) -> Result<Money, D::Error> {
    let read = serde_json::from_value(serde_json::Value::deserialize(field)?);
    Ok(read.unwrap_or(Money::MAX))
}

/// Why a call is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exhausted {
    /// No call is left.
    Calls { cap: u32 },
    /// The call may take more tokens than are left.
    Tokens { cap: u64, left: u64, needed: u64 },
    /// The call may cost more than is left.
    Money { cap: Money, left: Money, needed: Money },
    /// The most that the call may take is not known.
    Unknown,
}

/// Counts the calls, tokens and money of one run, over all its sessions.
#[derive(Debug)]
pub struct Budget {
    caps: Caps,
    calls: AtomicU32,
    amounts: Mutex<Amounts>,
    /// Notified whenever a reservation ends.
    settled: Notify,
}

#[derive(Debug, Default)]
struct Amounts {
    /// By calls that are over; where one's usage is not known, what was reserved for it.
    spent: Amount,
    /// For calls under way.
    reserved: Amount,
}

/// What is set aside for a call. Dropped without [`Reservation::settle`], it counts as spent: a call that was under way
/// may have been paid for.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    amount: Amount,
    /// What counts it, where a [`Meter`] reserved it.
    took: Option<Arc<Mutex<Took>>>,
}

impl Caps {
    /// These caps, and where one is not set, the other's.
    #[must_use]
    pub fn or(self, other: Caps) -> Caps {
        Caps {
            calls: self.calls.or(other.calls),
            tokens: self.tokens.or(other.tokens),
            money: self.money.or(other.money),
        }
    }

    /// The caps that remain after `spent`.
    #[must_use]
    pub fn less(self, spent: &Spent) -> Caps {
        let usage = spent.usage();
        let took = Amount::settled(Amount::default(), &usage);
        let calls = spent.calls.map_or(0, |calls| u32::try_from(calls).unwrap_or(u32::MAX));
        Caps {
            calls: self.calls.map(|cap| cap.saturating_sub(calls)),
            tokens: self.tokens.map(|cap| cap.saturating_sub(took.tokens)),
            money: self.money.map(|cap| cap.saturating_sub(took.money)),
        }
    }

    /// Whether tokens or money are capped, so that each call has to be reserved by what it may take.
    pub fn has_amounts(&self) -> bool {
        self.tokens.is_some() || self.money.is_some()
    }

    /// Whether these caps hold for calls of which this is the most that one takes; `None` where that is not known.
    pub fn can_hold(&self, limit: Option<CallLimit>) -> bool {
        !self.has_amounts() || limit.is_some_and(|limit| self.amount(limit).is_some())
    }

    /// The tokens and money that a call with this limit may take, of the capped ones; `None` if the price is unknown.
    fn amount(&self, limit: CallLimit) -> Option<Amount> {
        let money = match self.money {
            Some(_) => limit.money?,
            None => limit.money.unwrap_or_default(),
        };
        Some(Amount { tokens: limit.tokens, money })
    }
}

/// The most that a call of an executor takes whose prompt has at most so many tokens: nothing where no model is asked;
/// `None` where that is not known.
pub fn call_limit(executor: &dyn Executor, prompt_tokens: u64, answer: answers::Schema) -> Option<CallLimit> {
    const NOTHING: CallLimit = CallLimit { tokens: 0, money: Some(Money::ZERO) };
    let limit = executor.call_limit(prompt_tokens, answer);
    limit.or_else(|| (!executor.about().asks_a_model).then_some(NOTHING))
}

impl Amount {
    /// What a call took: its usage, and what was reserved for it where that is not known.
    pub fn settled(reserved: Amount, usage: &Usage) -> Amount {
        let tokens = usage.tokens_in.zip(usage.tokens_out);
        Amount {
            tokens: tokens.map_or(reserved.tokens, |(read, wrote)| read.saturating_add(wrote)),
            money: usage.money.unwrap_or(reserved.money),
        }
    }

    /// Adds another amount.
    pub fn add(&mut self, other: Amount) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.money = self.money.saturating_add(other.money);
    }

    /// The amount of several calls.
    #[must_use]
    pub(crate) fn times(self, calls: u64) -> Amount {
        Amount { tokens: self.tokens.saturating_mul(calls), money: self.money.saturating_mul(calls) }
    }

    fn take(&mut self, other: Amount) {
        self.tokens = self.tokens.saturating_sub(other.tokens);
        self.money = self.money.saturating_sub(other.money);
    }
}

impl Budget {
    /// With what earlier sessions spent.
    pub fn new(caps: Caps, calls: u32, spent: Amount) -> Self {
        let amounts = Mutex::new(Amounts { spent, reserved: Amount::default() });
        Budget { caps, calls: AtomicU32::new(calls), amounts, settled: Notify::new() }
    }

    /// The caps.
    pub fn caps(&self) -> &Caps {
        &self.caps
    }

    /// The calls that were made or reserved, and the price of those that ended.
    pub(crate) fn spent(&self) -> (u32, Money) {
        (self.calls.load(Ordering::Relaxed), self.lock().spent.money)
    }

    /// Whether this number of calls is left, and these amounts for all of them.
    pub fn has_left(&self, calls: usize, most: Amount) -> bool {
        let made = usize::try_from(self.calls.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        let calls_left = |cap| usize::try_from(cap).is_ok_and(|cap: usize| cap.saturating_sub(made) >= calls);
        let spent = self.lock().spent;
        self.caps.calls.is_none_or(calls_left) && self.fits(spent, most).is_ok()
    }

    /// Takes one call, if one is left, and never gives it back: a call that was under way when the
    /// process died may have been paid for.
    ///
    /// # Errors
    /// If no call is left.
    pub fn reserve_call(&self) -> Result<(), Exhausted> {
        let take = |taken: u32| match self.caps.calls {
            Some(cap) if taken >= cap => None,
            _ => taken.checked_add(1),
        };
        let cap = self.caps.calls.unwrap_or(u32::MAX);
        let taken = self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.map(drop).map_err(|_| Exhausted::Calls { cap })
    }

    /// Sets aside what a call may take at most. Where that fits only if calls under way take less than was reserved for
    /// them, it waits for these to end.
    ///
    /// # Errors
    /// If it does not fit even when the calls in progress cost nothing, or if its own limit is unknown while a cap applies.
    pub async fn reserve(self: &Arc<Self>, limit: Option<CallLimit>) -> Result<Reservation, Exhausted> {
        let budget = Arc::clone(self);
        if !self.caps.has_amounts() {
            return Ok(Reservation { budget, amount: Amount::default(), took: None });
        }
        let amount = limit.and_then(|limit| self.caps.amount(limit)).ok_or(Exhausted::Unknown)?;
        loop {
            let settled = self.settled.notified();
            tokio::pin!(settled);
            // From here on no end of a call is missed.
            settled.as_mut().enable();
            if self.try_reserve(amount)? {
                return Ok(Reservation { budget, amount, took: None });
            }
            settled.await;
        }
    }

    /// Whether an amount was reserved; `false` where it may fit later.
    fn try_reserve(&self, amount: Amount) -> Result<bool, Exhausted> {
        let mut amounts = self.lock();
        self.fits(amounts.spent, amount)?;
        let mut taken = amounts.spent;
        taken.add(amounts.reserved);
        let fits = self.fits(taken, amount).is_ok();
        if fits {
            amounts.reserved.add(amount);
        }
        Ok(fits)
    }

    fn fits(&self, taken: Amount, more: Amount) -> Result<(), Exhausted> {
        if let Some(cap) = self.caps.tokens {
            let left = cap.saturating_sub(taken.tokens);
            if more.tokens > left {
                return Err(Exhausted::Tokens { cap, left, needed: more.tokens });
            }
        }
        if let Some(cap) = self.caps.money {
            let left = cap.saturating_sub(taken.money);
            if more.money > left {
                return Err(Exhausted::Money { cap, left, needed: more.money });
            }
        }
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Amounts> {
        self.amounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// What is set aside.
    pub fn amount(&self) -> Amount {
        self.amount
    }

    /// Ends it with what the call took, as far as that is known.
    pub fn settle(mut self, usage: &Usage) {
        self.end(usage);
        (self.amount, self.took) = (Amount::default(), None);
    }

    fn end(&self, usage: &Usage) {
        let charged = Amount::settled(self.amount, usage);
        let mut amounts = self.budget.lock();
        amounts.reserved.take(self.amount);
        amounts.spent.add(charged);
        drop(amounts);
        if let Some(took) = &self.took {
            took.lock().unwrap_or_else(PoisonError::into_inner).add(0, *usage, charged);
        }
        self.budget.settled.notify_waiters();
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.amount != Amount::default() {
            self.end(&Usage::default());
        }
    }
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Exhausted::Calls { cap } => write!(f, "the run's {cap} calls (`budget.calls`) are made"),
            Exhausted::Tokens { cap, left, needed } => {
                write!(
                    f,
                    "a call takes up to {needed} tokens, and {left} of {cap} are left (`budget.tokens`)"
                )
            }
            Exhausted::Money { cap, left, needed } => {
                let [cap, left, needed] = [cap, left, needed].map(Money::amount);
                write!(f, "a call costs up to US$ {needed}, and {left} of {cap} are left (`budget.money`)")
            }
            Exhausted::Unknown => {
                f.write_str("what a call takes at most is not known, and the budget is capped")
            }
        }
    }
}

/// The most. Letters, blanks and control characters of ASCII make up words, of which a token has two bytes or more; each digit
/// and each sign may be a token of its own, and so may each byte of any other character.
pub fn most_tokens(text: &str) -> u64 {
    let (mut words, mut single) = (0_u64, 0_u64);
    for byte in text.bytes() {
        match byte.is_ascii_alphabetic() || byte.is_ascii_whitespace() {
            true => words += 1,
            false => single += 1,
        }
    }
    single + words.div_ceil(2)
}

/// How many letters of a script without blanks one token has at most.
const LETTERS_PER_TOKEN: usize = 8;

/// The fewest: tokens do not reach from one word to the next, so each word has one or more. Runs of one letter and of signs do
/// not count, since some tokenizers have a token for a whole line of them.
pub fn fewest_tokens(text: &str) -> u64 {
    text.split_whitespace().map(|word| fewest_of_word(word) as u64).sum()
}

fn fewest_of_word(word: &str) -> usize {
    let (mut wide, mut has_letter, mut last) = (0, false, None);
    for letter in word.chars().filter(|letter| letter.is_alphabetic()) {
        has_letter = true;
        // Chinese, Japanese and Korean write no blanks.
        if letter >= '\u{2e80}' && last != Some(letter) {
            wide += 1;
        }
        last = Some(letter);
    }
    usize::from(has_letter).max(wide / LETTERS_PER_TOKEN)
}

/// Reserves from the budget of a run, and counts what was reserved.
#[derive(Debug)]
pub struct Meter {
    budget: Arc<Budget>,
    took: Arc<Mutex<Took>>,
}

/// What requests took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Took {
    /// The number of requests.
    pub requests: u64,
    /// As far as the service reported it.
    pub usage: Usage,
    /// What counts against caps: where usage is not known, what was reserved.
    pub charged: Amount,
}

impl Took {
    fn add(&mut self, requests: u64, usage: Usage, charged: Amount) {
        self.requests += requests;
        self.usage.add(usage);
        self.charged.add(charged);
    }
}

impl Meter {
    pub(crate) fn new(budget: Arc<Budget>) -> Meter {
        Meter { budget, took: Arc::default() }
    }

    /// Without a budget.
    pub fn unlimited() -> Meter {
        Meter::new(Arc::new(Budget::new(Caps::default(), 0, Amount::default())))
    }

    /// Sets aside what a request takes at most. `None` is a limit that is not known.
    ///
    /// # Errors
    /// As [`Budget::reserve`].
    pub async fn reserve(&self, limit: Option<CallLimit>) -> Result<Reservation, Exhausted> {
        let mut reservation = self.budget.reserve(limit).await?;
        self.count(1, Usage::default(), Amount::default());
        reservation.took = Some(Arc::clone(&self.took));
        Ok(reservation)
    }

    /// What all requests took until now.
    pub fn took(&self) -> Took {
        *self.took.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn count(&self, requests: u64, usage: Usage, charged: Amount) {
        self.took.lock().unwrap_or_else(PoisonError::into_inner).add(requests, usage, charged);
    }
}

#[cfg(test)]
mod tokens_tests {
    use super::*;

    #[test]
    fn texts_have_at_least_the_fewest_and_at_most_the_most() {
        // The number of tokens in cl100k and o200k, the smaller and the larger.
        for (text, fewest, most) in [
            ("", 0, 0),
            ("The meeting moved to Tuesday at ten.", 8, 8),
            ("a b c d", 4, 4),
            ("1234567890", 4, 4),
            ("{\"would_block\": false}", 7, 7),
            ("会议改到星期二上午十点。", 7, 15),
            (&"=".repeat(64), 1, 1),
            ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 4, 4),
        ] {
            assert!(fewest_tokens(text) <= fewest && most <= most_tokens(text), "{text}");
        }
        // Scripts that a tokenizer does not know are read by the byte.
        assert_eq!(most_tokens("\u{12000}\u{12001}"), 8);
    }

    #[test]
    fn what_has_no_words_counts_as_little() {
        let rule = format!("{}\n", "-".repeat(200)).repeat(100);
        assert_eq!((fewest_tokens(&rule), fewest_tokens(&"w".repeat(50_000))), (0, 1));
        assert_eq!(fewest_tokens(&"哈".repeat(50_000)), 1);
        assert_eq!(fewest_tokens(&"word ".repeat(4_000)), 4_000);
        assert_eq!(fewest_tokens("会议改到星期二上午十点"), 1);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn tokens(cap: u64) -> Arc<Budget> {
        Arc::new(Budget::new(Caps { tokens: Some(cap), ..Caps::default() }, 0, Amount::default()))
    }

    fn limit(tokens: u64) -> Option<CallLimit> {
        Some(CallLimit { tokens, money: None })
    }

    fn used(read: u64, wrote: u64) -> Usage {
        Usage { tokens_in: Some(read), tokens_out: Some(wrote), ..Usage::default() }
    }

    #[test]
    fn a_recorded_sum_that_cannot_be_read_counts_as_the_largest() {
        for money in [
            serde_json::json!({"amount": "1", "currency": "EUR"}),
            serde_json::json!({"amount": "99999999999999", "currency": "USD"}),
            serde_json::json!({"amount": "-1", "currency": "USD"}),
            serde_json::json!({"amount": "1"}),
            serde_json::json!("1 USD"),
            serde_json::Value::Null,
        ] {
            let read: Amount =
                serde_json::from_value(serde_json::json!({"tokens": 7, "money": money})).unwrap();
            assert_eq!(read, Amount { tokens: 7, money: Money::MAX }, "{money}");
        }
        let read: Amount =
            serde_json::from_value(serde_json::json!({"tokens": 7, "money": Money::ZERO})).unwrap();
        assert_eq!(read.money, Money::ZERO);
    }

    #[test]
    fn no_more_than_the_cap_is_ever_taken() {
        // X8
        let of = |calls, spent| Budget::new(Caps { calls, ..Caps::default() }, spent, Amount::default());
        let calls = of(Some(3), 1);
        let taken = [(); 3].map(|()| calls.reserve_call().is_ok());
        assert_eq!(taken, [true, true, false]);
        let (none, three) = (Amount::default(), of(Some(3), 1));
        assert!(three.has_left(2, none) && !three.has_left(3, none) && of(None, 7).has_left(1_000, none));
        assert!((0..100).all(|_| of(None, 7).reserve_call().is_ok()));
    }

    #[tokio::test]
    async fn a_call_waits_for_those_under_way_and_is_refused_where_none_could_make_room() {
        let budget = tokens(100);
        let first = budget.reserve(limit(60)).await.unwrap();
        let mut second = Box::pin(budget.reserve(limit(60)));
        assert!(
            (&mut second).now_or_never().is_none(),
            "it fits once the first takes less than was reserved"
        );
        first.settle(&used(10, 20));
        let second = second.await.unwrap();
        assert_eq!(second.amount().tokens, 60);
        // 30 are spent, 60 reserved: 71 never fit.
        let refused = budget.reserve(limit(71)).await.unwrap_err();
        assert_eq!(refused, Exhausted::Tokens { cap: 100, left: 70, needed: 71 });
        drop(second);
        // What was dropped counts as spent.
        let refused = budget.reserve(limit(11)).await.unwrap_err();
        assert_eq!(refused, Exhausted::Tokens { cap: 100, left: 10, needed: 11 });
        budget.reserve(limit(10)).await.unwrap().settle(&Usage::default());
        assert!(budget.reserve(limit(1)).await.is_err(), "unknown usage keeps the reservation");
    }

    #[tokio::test]
    async fn a_call_that_waits_is_refused_once_the_others_took_what_was_left() {
        let budget = tokens(100);
        let first = budget.reserve(limit(60)).await.unwrap();
        let mut second = Box::pin(budget.reserve(limit(60)));
        assert!((&mut second).now_or_never().is_none());
        first.settle(&used(40, 20));
        assert_eq!(second.await.unwrap_err(), Exhausted::Tokens { cap: 100, left: 40, needed: 60 });
    }

    #[tokio::test]
    async fn money_needs_a_known_price_and_other_caps_do_not() {
        let caps = Caps { money: Some(Money::from_nanos(1_500_000_000)), ..Caps::default() };
        let budget =
            Arc::new(Budget::new(caps, 0, Amount { tokens: 9, money: Money::from_nanos(1_000_000_000) }));
        assert_eq!(budget.reserve(limit(1)).await.unwrap_err(), Exhausted::Unknown);
        assert_eq!(budget.reserve(None).await.unwrap_err(), Exhausted::Unknown);
        let dear = Some(CallLimit { tokens: 1, money: Some(Money::from_nanos(500_000_001)) });
        let refused = budget.reserve(dear).await.unwrap_err().to_string();
        assert_eq!(refused, "a call costs up to US$ 0.500000001, and 0.5 of 1.5 are left (`budget.money`)");
        let free = Arc::new(Budget::new(Caps::default(), 0, Amount::default()));
        assert!(free.reserve(None).await.is_ok());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn parallel_reservations_never_exceed_the_cap() {
        // Eight at a time, each of 30 with a cap of 100, and each settled with more or less than was reserved.
        let budget = tokens(100_000);
        let calls = (0..8_u64).map(|member| {
            let budget = Arc::clone(&budget);
            tokio::spawn(async move {
                let mut took = 0;
                for call in 0..400_u64 {
                    let Ok(reserved) = budget.reserve(limit(90)).await else { break };
                    tokio::task::yield_now().await;
                    let used_tokens = (member * 7 + call) % 91;
                    took += used_tokens;
                    reserved.settle(&used(used_tokens, 0));
                }
                took
            })
        });
        let took: u64 = futures::future::try_join_all(calls).await.unwrap().into_iter().sum();
        assert_eq!(budget.lock().reserved, Amount::default());
        assert_eq!(budget.lock().spent.tokens, took);
        assert!((99_900..=100_000).contains(&took), "{took}");
    }
}
