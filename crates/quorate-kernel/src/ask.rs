//! One invocation, from prompt to consultation, without I/O (SEMANTICS X4): attempts, one re-prompt, retries of
//! failures with backoff, one deadline. The caller makes the calls and keeps the time.

use quorate_protocol::answers::Schema;
use quorate_protocol::{AbsenceReason, Json};

use crate::answer;

/// The first pause before a retry; it doubles.
const BACKOFF_MS: u64 = 250;

/// What the caller is to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Reserve a call and make it.
    Call(Why),
    /// Wait, then [`Ask::waited`].
    Wait {
        /// How long, in milliseconds.
        ms: u64,
    },
    /// It is over.
    Done(Result<Json, AbsenceReason>),
}

/// Why a call is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It is the first.
    First,
    /// The call before failed.
    Retry,
    /// The answer before did not fit; these are the complaints to quote.
    RePrompt(Vec<String>),
}

impl Why {
    /// The word in the attempt's record.
    pub fn as_str(&self) -> &'static str {
        match self {
            Why::First => "first",
            Why::Retry => "retry",
            Why::RePrompt(_) => "re-prompt",
        }
    }
}

/// How one attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempted {
    /// Somebody said something.
    Said(String),
    /// The call failed.
    Failed,
    /// The deadline passed.
    TimedOut,
    /// There was no call left in the run's budget.
    NoCallLeft,
}

/// The state of one invocation.
#[derive(Debug)]
pub struct Ask {
    schema: Schema,
    retries_left: u32,
    may_re_prompt: bool,
    why: Why,
    backoff_ms: u64,
}

impl Ask {
    /// An invocation that may retry this many failures.
    pub fn new(schema: Schema, retries: u32) -> Self {
        Ask { schema, retries_left: retries, may_re_prompt: true, why: Why::First, backoff_ms: BACKOFF_MS }
    }

    /// What to do first, and after a wait.
    pub fn waited(&self) -> Next {
        Next::Call(self.why.clone())
    }

    /// Whether the answer, if one came, needed a re-prompt.
    pub fn repaired(&self) -> bool {
        !self.may_re_prompt
    }

    /// Takes how the attempt ended and says what is next, with the complaints about what was said. `material` is what
    /// the member was shown.
    pub fn attempted(&mut self, how: &Attempted, material: &[&str]) -> (Next, Vec<String>) {
        match how {
            Attempted::Said(text) => match answer::extract(self.schema, text, material) {
                Ok(answer) => (Next::Done(Ok(answer)), Vec::new()),
                Err(complaints) if self.may_re_prompt => {
                    self.may_re_prompt = false;
                    self.why = Why::RePrompt(complaints.clone());
                    (Next::Call(self.why.clone()), complaints)
                }
                Err(complaints) => (Next::Done(Err(AbsenceReason::SchemaFailed)), complaints),
            },
            Attempted::Failed if self.retries_left > 0 => {
                self.retries_left -= 1;
                if self.why == Why::First {
                    self.why = Why::Retry;
                }
                let ms = self.backoff_ms;
                self.backoff_ms = (ms * 2).min(8_000);
                (Next::Wait { ms }, Vec::new())
            }
            Attempted::Failed => (Next::Done(Err(AbsenceReason::Failed)), Vec::new()),
            Attempted::TimedOut => (Next::Done(Err(AbsenceReason::TimedOut)), Vec::new()),
            Attempted::NoCallLeft => (Next::Done(Err(AbsenceReason::RunOverBudget)), Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINE: &str = r#"{"would_block": false}"#;

    fn said(text: &str) -> Attempted {
        Attempted::Said(text.into())
    }

    #[test]
    fn one_re_prompt_and_no_second() {
        // X4
        let mut ask = Ask::new(Schema::FirstAnswer, 0);
        assert!(matches!(ask.attempted(&said("no json"), &[]).0, Next::Call(Why::RePrompt(_))));
        assert!(ask.repaired());
        assert_eq!(ask.attempted(&said("still none"), &[]).0, Next::Done(Err(AbsenceReason::SchemaFailed)));
        let mut ask = Ask::new(Schema::FirstAnswer, 0);
        ask.attempted(&said("no json"), &[]);
        assert!(matches!(ask.attempted(&said(FINE), &[]).0, Next::Done(Ok(_))));
    }

    #[test]
    fn failures_are_retried_and_timeouts_are_not() {
        // X4
        let mut ask = Ask::new(Schema::FirstAnswer, 2);
        assert_eq!(ask.attempted(&Attempted::Failed, &[]).0, Next::Wait { ms: 250 });
        assert_eq!(ask.waited(), Next::Call(Why::Retry));
        assert_eq!(ask.attempted(&Attempted::Failed, &[]).0, Next::Wait { ms: 500 });
        assert_eq!(ask.attempted(&Attempted::Failed, &[]).0, Next::Done(Err(AbsenceReason::Failed)));
        let mut ask = Ask::new(Schema::FirstAnswer, 5);
        assert_eq!(ask.attempted(&Attempted::TimedOut, &[]).0, Next::Done(Err(AbsenceReason::TimedOut)));
    }

    #[test]
    fn a_retry_after_a_re_prompt_still_quotes_the_complaints() {
        let mut ask = Ask::new(Schema::FirstAnswer, 1);
        ask.attempted(&said("no json"), &[]);
        ask.attempted(&Attempted::Failed, &[]);
        assert!(matches!(ask.waited(), Next::Call(Why::RePrompt(complaints)) if !complaints.is_empty()));
    }
}
