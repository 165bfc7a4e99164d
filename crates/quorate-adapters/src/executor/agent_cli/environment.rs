//! The environment variables that a member sees (X10): a base set that programs need, the variables that the
//! executor's table lists, and no others. A member gets only two `QUORATE_*` variables, which `command` and
//! `config` set: the tag of its invocation, by which `process_tree` finds its processes, and its id.

#![cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "only Linux looks for the mark in the limits")
)]

use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use quorate_kernel::ports::executor::ConfigError;

const BASE: &[&str] = &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "TZ", "TERM"];
const BASE_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Whether a variable names a ledger on a server, perhaps with a password: a member writes no records.
fn names_ledger_server(name: &OsStr, value: &OsStr) -> bool {
    name == "QUORATE_LEDGER" && value.to_string_lossy().contains("://")
}

/// Which variables are passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Environment {
    names: Vec<String>,
    base: BaseVariables,
}

/// Whether the base set is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BaseVariables {
    Inherited,
    Dropped,
}

impl Environment {
    /// The names in addition to the base set.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The base set and `listed`.
    ///
    /// # Errors
    /// When an entry is not a name.
    pub(super) fn new(listed: Vec<String>, base: BaseVariables) -> Result<Self, ConfigError> {
        match listed.iter().find(|name| name.is_empty() || name.contains(['=', '*', ' '])) {
            None => Ok(Environment { names: listed, base }),
            Some(entry) => {
                Err(ConfigError::for_key("env", format!("`{entry}` is not the name of a variable"))
                    .with_help("list names alone, each in full; the values are taken from the environment"))
            }
        }
    }

    /// The variables of this process that are passed on.
    pub(super) fn variables(&self) -> Vec<(OsString, OsString)> {
        self.variables_with(&[])
    }

    /// The variables that are passed on, and those named in `more`.
    #[expect(clippy::disallowed_methods, reason = "this is where the environment is read")]
    pub(super) fn variables_with(&self, more: &[String]) -> Vec<(OsString, OsString)> {
        let passes = |name: &OsStr| self.is_passed(name) || more.iter().any(|extra| name == extra.as_str());
        std::env::vars_os()
            .filter(|(name, value)| passes(name) && !names_ledger_server(name, value))
            .collect()
    }

    fn is_passed(&self, name: &OsStr) -> bool {
        let Some(name) = name.to_str() else { return false };
        self.names.iter().any(|listed| listed == name)
            || (self.base == BaseVariables::Inherited
                && (BASE.contains(&name) || BASE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))))
    }
}

/// The search path for commands: this process's `PATH`, even if the member does not see it.
#[expect(clippy::disallowed_methods, reason = "this is where the environment is read")]
pub(super) fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"))
}

#[expect(clippy::disallowed_methods, reason = "this is where the environment is read")]
pub(super) fn home_dir() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}

pub(super) fn temp_dir() -> PathBuf {
    std::env::temp_dir()
}

/// The tag of the invocation that this process itself belongs to.
#[expect(clippy::disallowed_methods, reason = "this is where the environment is read")]
pub(super) fn outer_tag() -> Option<String> {
    std::env::var(MEMBER_VARIABLE).ok()
}

/// Set in the processes of members.
pub const MEMBER_VARIABLE: &str = "QUORATE_INVOCATION";

/// Set in the processes of members: whose they are.
pub const MEMBER_ID_VARIABLE: &str = "QUORATE_MEMBER";

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
    use std::ffi::OsStr;

    use super::{BaseVariables, Environment, names_ledger_server};

    fn passes(listed: &[&str], base: BaseVariables, name: &str) -> bool {
        let names = listed.iter().map(ToString::to_string).collect();
        Environment::new(names, base).unwrap().is_passed(OsStr::new(name))
    }

    #[test]
    fn the_base_set_and_what_is_listed_pass_and_nothing_else() {
        for name in ["PATH", "HOME", "LC_ALL", "XDG_CONFIG_HOME", "TZ"] {
            assert!(passes(&[], BaseVariables::Inherited, name), "{name}");
            assert!(!passes(&[], BaseVariables::Dropped, name), "{name}");
        }
        assert!(!passes(&[], BaseVariables::Inherited, "AWS_SECRET_ACCESS_KEY"));
        // D3, X10
        for name in ["QUORATE_SIGNING_KEY", "QUORATE_LEDGER", "QUORATE_TRUST", "QUORATE_", "QUORATE_X"] {
            assert!(!passes(&[], BaseVariables::Inherited, name), "{name}");
        }
        assert!(passes(&["QUORATE_LEDGER"], BaseVariables::Inherited, "QUORATE_LEDGER"));
        assert!(passes(&["API_KEY"], BaseVariables::Inherited, "API_KEY"));
        assert!(passes(&["API_KEY"], BaseVariables::Dropped, "API_KEY"));
        assert!(!passes(&["API_KEY"], BaseVariables::Inherited, "API_KEY_2"));
    }

    #[test]
    fn the_address_of_a_server_stays_here() {
        // X10
        let ledger = OsStr::new("QUORATE_LEDGER");
        assert!(names_ledger_server(ledger, OsStr::new("postgres://ada:s3cret@db/quorate")));
        assert!(!names_ledger_server(ledger, OsStr::new(".quorate/ledger.db")));
    }

    #[test]
    fn a_value_in_the_list_is_refused() {
        let error = Environment::new(vec!["API_KEY=secret".into()], BaseVariables::Inherited).unwrap_err();
        assert_eq!(error.key.as_deref(), Some("env"));
    }
}

#[cfg(test)]
mod process_tag_tests {
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
