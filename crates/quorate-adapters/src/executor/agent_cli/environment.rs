//! The environment variables that a member sees (X10): a base set that programs need, the variables that the
//! executor's table lists, and no others. A member gets only two `QUORATE_*` variables, which `command` and
//! `config` set: that it is one, and its id.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

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

/// Set to `1` in the processes of members.
pub const MEMBER_VARIABLE: &str = "QUORATE_INVOCATION";

/// Set in the processes of members: whose they are.
pub const MEMBER_ID_VARIABLE: &str = "QUORATE_MEMBER";

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
