//! The tag that every process of an invocation carries, so that Quorate recognizes it (X6).
//!
//! Two carriers are inherited by child processes. One is the variable `QUORATE_INVOCATION`; below another Quorate, the
//! outer tag comes first in it. The other, on Linux, survives an emptied environment: the soft limit on real-time CPU
//! time (`RLIMIT_RTTIME`), set to some hundred thousand years, whose low 60 bits are the tag. The limit has no other
//! effect, as it applies to real-time scheduling alone and is never reached.

#![cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "marks are looked for on Linux alone"))]

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Set in the processes of members.
pub const VARIABLE: &str = "QUORATE_INVOCATION";

/// Set in the processes of members: whose they are.
pub const MEMBER: &str = "QUORATE_MEMBER";

const CALL_BITS: u32 = 20;
const PROCESS_BITS: u32 = 40;
#[cfg(any(target_os = "linux", test))]
const LIMIT_MARKER: u64 = 1 << 62;

/// Covers all invocations of one Quorate process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessTag(u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallTag {
    process: ProcessTag,
    call: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Call(CallTag),
    Process(ProcessTag),
}

impl ProcessTag {
    /// The tag of this process: random, and constant while it lives.
    pub(super) fn current() -> Self {
        static OWN: OnceLock<ProcessTag> = OnceLock::new();
        *OWN.get_or_init(|| {
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_u32(std::process::id());
            ProcessTag(hasher.finish() & ((1 << PROCESS_BITS) - 1))
        })
    }

    /// Reads what [`Self::to_hex`] wrote.
    pub(super) fn parse(text: &str) -> Option<Self> {
        u64::from_str_radix(text, 16).ok().filter(|value| value >> PROCESS_BITS == 0).map(ProcessTag)
    }

    pub(super) fn to_hex(self) -> String {
        format!("{:010x}", self.0)
    }
}

impl CallTag {
    /// A tag that is unique among a million invocations of this process.
    pub(super) fn next() -> Self {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let call = CALLS.fetch_add(1, Ordering::Relaxed) & ((1 << CALL_BITS) - 1);
        CallTag { process: ProcessTag::current(), call }
    }

    /// The value of the variable, behind the value that this process itself was started with.
    pub(super) fn to_variable(self, inherited: Option<&str>) -> String {
        let tag = format!("{}.{:05x}", self.process.to_hex(), self.call);
        inherited.map_or_else(|| tag.clone(), |outer| format!("{outer}/{tag}"))
    }

    /// All tags in a value of the variable.
    pub(super) fn parse_variable(value: &str) -> impl Iterator<Item = CallTag> + '_ {
        value.split('/').filter_map(|tag| {
            let (process, call) = tag.split_once('.')?;
            let call = u32::from_str_radix(call, 16).ok().filter(|call| call >> CALL_BITS == 0)?;
            Some(CallTag { process: ProcessTag::parse(process)?, call })
        })
    }

    /// The tag as a soft limit.
    #[cfg(any(target_os = "linux", test))]
    pub(super) fn to_limit(self) -> u64 {
        LIMIT_MARKER | (self.process.0 << CALL_BITS) | u64::from(self.call)
    }

    /// The tag of a soft limit.
    #[cfg(any(target_os = "linux", test))]
    pub(super) fn from_limit(limit: u64) -> Option<Self> {
        let bits = limit ^ LIMIT_MARKER;
        (bits >> (PROCESS_BITS + CALL_BITS) == 0).then_some(CallTag {
            process: ProcessTag(bits >> CALL_BITS),
            call: (bits & ((1 << CALL_BITS) - 1)) as u32,
        })
    }
}

impl Scope {
    /// Whether the scope includes a tag.
    pub(super) fn covers(self, tag: CallTag) -> bool {
        match self {
            Scope::Call(call) => tag == call,
            Scope::Process(process) => tag.process == process,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CallTag, ProcessTag, Scope};

    #[test]
    fn a_mark_is_read_back_from_both_places() {
        let (first, second) = (CallTag::next(), CallTag::next());
        assert_ne!(first, second);
        assert_eq!(CallTag::from_limit(first.to_limit()), Some(first));
        assert_eq!(CallTag::parse_variable(&first.to_variable(None)).collect::<Vec<_>>(), [first]);
        let nested = second.to_variable(Some(&first.to_variable(None)));
        assert_eq!(CallTag::parse_variable(&nested).collect::<Vec<_>>(), [first, second]);
        assert!(Scope::Process(ProcessTag::current()).covers(first));
        assert!(!Scope::Call(first).covers(second));
        assert_eq!(ProcessTag::parse(&ProcessTag::current().to_hex()), Some(ProcessTag::current()));
    }

    #[test]
    fn what_is_no_mark_is_not_taken_for_one() {
        for limit in [0, 1_000_000, u64::MAX, 1 << 63, (1 << 62) - 1] {
            assert_eq!(CallTag::from_limit(limit), None, "{limit}");
        }
        assert_eq!(CallTag::parse_variable("yes/12.zz/.").count(), 0);
    }
}
