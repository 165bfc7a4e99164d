//! The mark that every process of an invocation carries, so that it is known as ours wherever it goes (X6).
//!
//! It is written in two places that a child hands on to its children. One is the variable `QUORATE_INVOCATION`; where
//! we run below another Quorate, its mark stays in front of ours. The other, on Linux, survives an emptied environment:
//! the soft limit on real-time CPU time (`RLIMIT_RTTIME`), set to some hundred thousand years, whose low 60 bits are
//! the mark. The limit has no other effect, as it counts for real-time scheduling alone and is never reached.

#![cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "marks are looked for on Linux alone"))]

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

pub(super) const VARIABLE: &str = "QUORATE_INVOCATION";

const CALL_BITS: u32 = 20;
const PROCESS_BITS: u32 = 40;
#[cfg(any(target_os = "linux", test))]
const LIMIT_TAG: u64 = 1 << 62;

/// All invocations of one process of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessMark(u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    process: ProcessMark,
    call: u32,
}

/// Whose processes are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Those of one invocation.
    Call(Mark),
    /// Those of every invocation of a process.
    Process(ProcessMark),
}

impl ProcessMark {
    /// The mark of this process: random, the same for as long as it lives.
    pub(super) fn own() -> Self {
        static OWN: OnceLock<ProcessMark> = OnceLock::new();
        *OWN.get_or_init(|| {
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_u32(std::process::id());
            ProcessMark(hasher.finish() & ((1 << PROCESS_BITS) - 1))
        })
    }

    /// The mark that [`ProcessMark::text`] wrote.
    pub(super) fn parse(text: &str) -> Option<Self> {
        u64::from_str_radix(text, 16).ok().filter(|value| value >> PROCESS_BITS == 0).map(ProcessMark)
    }

    /// The mark as text.
    pub(super) fn text(self) -> String {
        format!("{:010x}", self.0)
    }
}

impl Mark {
    /// A mark that no other invocation of this process has, for the next million invocations.
    pub(super) fn next() -> Self {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let call = CALLS.fetch_add(1, Ordering::Relaxed) & ((1 << CALL_BITS) - 1);
        Mark { process: ProcessMark::own(), call }
    }

    /// The value of the variable, behind the one that this process itself was started with.
    pub(super) fn variable(self, inherited: Option<&str>) -> String {
        let own = format!("{}.{:05x}", self.process.text(), self.call);
        inherited.map_or_else(|| own.clone(), |outer| format!("{outer}/{own}"))
    }

    /// All marks in a value of the variable.
    pub(super) fn in_variable(value: &str) -> impl Iterator<Item = Mark> + '_ {
        value.split('/').filter_map(|mark| {
            let (process, call) = mark.split_once('.')?;
            let call = u32::from_str_radix(call, 16).ok().filter(|call| call >> CALL_BITS == 0)?;
            Some(Mark { process: ProcessMark::parse(process)?, call })
        })
    }

    /// The mark as a limit.
    #[cfg(any(target_os = "linux", test))]
    pub(super) fn limit(self) -> u64 {
        LIMIT_TAG | (self.process.0 << CALL_BITS) | u64::from(self.call)
    }

    /// The mark in a limit.
    #[cfg(any(target_os = "linux", test))]
    pub(super) fn in_limit(limit: u64) -> Option<Self> {
        let bits = limit ^ LIMIT_TAG;
        (bits >> (PROCESS_BITS + CALL_BITS) == 0).then_some(Mark {
            process: ProcessMark(bits >> CALL_BITS),
            call: (bits & ((1 << CALL_BITS) - 1)) as u32,
        })
    }
}

impl Scope {
    /// Whether a process with this mark is looked for.
    pub(super) fn covers(self, mark: Mark) -> bool {
        match self {
            Scope::Call(call) => mark == call,
            Scope::Process(process) => mark.process == process,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Mark, ProcessMark, Scope};

    #[test]
    fn a_mark_is_read_back_from_both_places() {
        let (one, other) = (Mark::next(), Mark::next());
        assert_ne!(one, other);
        assert_eq!(Mark::in_limit(one.limit()), Some(one));
        assert_eq!(Mark::in_variable(&one.variable(None)).collect::<Vec<_>>(), [one]);
        let nested = other.variable(Some(&one.variable(None)));
        assert_eq!(Mark::in_variable(&nested).collect::<Vec<_>>(), [one, other]);
        assert!(Scope::Process(ProcessMark::own()).covers(one));
        assert!(!Scope::Call(one).covers(other));
        assert_eq!(ProcessMark::parse(&ProcessMark::own().text()), Some(ProcessMark::own()));
    }

    #[test]
    fn what_is_no_mark_is_not_taken_for_one() {
        for limit in [0, 1_000_000, u64::MAX, 1 << 63, (1 << 62) - 1] {
            assert_eq!(Mark::in_limit(limit), None, "{limit}");
        }
        assert_eq!(Mark::in_variable("yes/12.zz/.").count(), 0);
    }
}
