//! Events of a run in progress: the one stream that progress displays, servers and embedding programs observe.

use std::time::Duration;

use quorate_manifest::money::Money;
use quorate_protocol::{Invoke, Json, Name, answers};

use crate::budget::Caps;
use crate::record::Status;

/// Something that happened in a run. `step` is what a member is asked for: `r1`, `vote`, …
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunEvent {
    /// The run is recorded, and can be resumed from now on.
    Opened {
        /// Its id.
        run: Name,
    },
    /// Members are asked several times for each answer of the run that begins. Each sample is a call.
    Sampled {
        /// The members, and how many times each is asked.
        members: Vec<(Name, u32)>,
    },
    /// A member is asked.
    Asked {
        /// The id of the invocation in the run.
        invocation: Name,
        /// Who is asked.
        member: Name,
        /// What for.
        step: Name,
        /// The limit for the answer, counted from the time at which its executor has a place for the call. A stand-in has
        /// its own limit.
        timeout: Duration,
    },
    /// The member's executor is busy with other calls: the call waits for a place, and its limit has not begun.
    Queued {
        /// The id of the invocation.
        invocation: Name,
    },
    /// A queued call has its place, and its limit begins.
    Admitted {
        /// The id of the invocation.
        invocation: Name,
    },
    /// The calls, tokens and money of the run, with its earlier sessions; follows each change.
    Spent {
        /// The calls that were made or reserved.
        calls: u32,
        /// The known price of the calls that ended.
        money: Money,
        /// The limits.
        caps: Caps,
    },
    /// A part of a member's answer arrived. Executors that stream report this, at most several times a second.
    Writing {
        /// The id of the invocation.
        invocation: Name,
        /// Who answers.
        member: Name,
        /// The bytes of the attempt's answer so far; 0 while a model reasons.
        bytes: usize,
    },
    /// An attempt gave no usable answer, and another follows.
    Retried {
        /// The id of the invocation.
        invocation: Name,
        /// Who is asked again.
        member: Name,
        /// What for.
        step: Name,
        /// The first complaint about the answer, or the failure.
        why: String,
    },
    /// A member waits for more than two seconds before it is asked again, or at all.
    Waiting {
        /// The id of the invocation.
        invocation: Name,
        /// Who waits.
        member: Name,
        /// What for.
        step: Name,
        /// Why, without secrets: `HTTP 503 from 127.0.0.1:8080`.
        why: String,
        /// How long.
        wait: Duration,
        /// The number of the retry that follows, and how many there are; `None` where the service asked for the wait.
        retry: Option<(u32, u32)>,
    },
    /// Another executor is asked in place of a member's own, whose service failed; or a service refused a part of a request,
    /// and answered another form of it, which is said once for each service and model.
    Noted {
        /// The id of the invocation.
        invocation: Name,
        /// Who is asked.
        member: Name,
        /// What happened, in one line without secrets.
        line: String,
    },
    /// An invocation ended.
    Answered {
        /// The id of the invocation.
        invocation: Name,
        /// Who was asked.
        member: Name,
        /// What for.
        step: Name,
        status: Status,
        /// How long it took, with all attempts.
        took: Duration,
        /// Where the member stands, by its answer: `blocks`, `ships`, `yes`.
        position: Option<&'static str>,
    },
}

impl RunEvent {
    pub(crate) fn asked(invoke: &Invoke, timeout: Duration) -> RunEvent {
        let Invoke { id, member, step, .. } = invoke;
        RunEvent::Asked { invocation: id.clone(), member: member.clone(), step: step.clone(), timeout }
    }

    pub(crate) fn retried(invoke: &Invoke, why: &str) -> RunEvent {
        let Invoke { id, member, step, .. } = invoke;
        let (invocation, member, step) = (id.clone(), member.clone(), step.clone());
        RunEvent::Retried { invocation, member, step, why: why.to_owned() }
    }

    /// A wait, a stand-in, a changed request or the samples of members in one line: `skeptic: HTTP 503 from 127.0.0.1:8080,
    /// trying again in 4 s (6 of 20)`; `None` for other events.
    pub fn wait_line(&self) -> Option<String> {
        match self {
            RunEvent::Waiting { member, why, wait, retry, .. } => {
                let retry = retry.map_or_else(String::new, |(number, of)| format!(" ({number} of {of})"));
                Some(format!("{member}: {why}, trying again in {:.0} s{retry}", wait.as_secs_f64()))
            }
            RunEvent::Noted { line, .. } => Some(line.clone()),
            RunEvent::Sampled { members } => {
                let sampled = |(member, samples): &(Name, u32)| format!("{samples} samples of {member}");
                let sampled = members.iter().map(sampled).collect::<Vec<_>>().join(", ");
                Some(format!("asking for each answer: {sampled}"))
            }
            _ => None,
        }
    }

    pub(crate) fn waiting(
        invoke: &Invoke,
        why: String,
        wait: Duration,
        retry: Option<(u32, u32)>,
    ) -> RunEvent {
        let Invoke { id, member, step, .. } = invoke;
        let (invocation, member, step) = (id.clone(), member.clone(), step.clone());
        RunEvent::Waiting { invocation, member, step, why, wait, retry }
    }

    pub(crate) fn noted(invoke: &Invoke, line: String) -> RunEvent {
        RunEvent::Noted { invocation: invoke.id.clone(), member: invoke.member.clone(), line }
    }

    /// The end of an invocation; `answer` is the valid answer, if there is one.
    pub(crate) fn answered(
        invoke: &Invoke,
        status: Status,
        took: Duration,
        answer: Option<&Json>,
    ) -> RunEvent {
        let Invoke { id, member, step, .. } = invoke;
        let (invocation, member, step) = (id.clone(), member.clone(), step.clone());
        let position = answer.and_then(|answer| answers::position(invoke.schema, answer));
        RunEvent::Answered { invocation, member, step, status, took, position }
    }
}

/// Watches a run, and cannot change it. It must not block.
pub trait Observer: Send + Sync {
    /// Takes note of an event.
    fn observe(&self, event: RunEvent);
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopObserver;

impl<F: Fn(RunEvent) + Send + Sync> Observer for F {
    fn observe(&self, event: RunEvent) {
        self(event);
    }
}

impl Observer for NoopObserver {
    fn observe(&self, _: RunEvent) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_one_line() {
        let line = |wait_ms, retry| {
            let (invocation, member, step) = ("r1/skeptic".into(), "skeptic".into(), "r1".into());
            let (why, wait) = ("HTTP 503 from 127.0.0.1:18911".to_owned(), Duration::from_millis(wait_ms));
            RunEvent::Waiting { invocation, member, step, why, wait, retry }.wait_line().unwrap_or_default()
        };
        let begin = "skeptic: HTTP 503 from 127.0.0.1:18911, trying again in";
        assert_eq!(line(8_000, Some((2, 3))), format!("{begin} 8 s (2 of 3)"));
        assert_eq!(line(7_600, None), format!("{begin} 8 s"));
        assert_eq!(line(90_000, None), format!("{begin} 90 s"));
        assert_eq!(RunEvent::Opened { run: "r".into() }.wait_line(), None);
    }
}
