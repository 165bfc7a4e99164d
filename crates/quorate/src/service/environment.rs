//! What the process around us gives: working directory, variables, clock.

use std::path::PathBuf;
use std::sync::Arc;

use quorate_kernel::clock::{Clock, System};

/// The surroundings of a use case.
#[derive(Clone)]
pub struct Environment {
    /// Where relative paths start.
    pub directory: PathBuf,
    /// `QUORATE_LEDGER`.
    pub ledger: Option<PathBuf>,
    /// Who is at work, for overrides.
    pub user: String,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

impl Environment {
    /// The surroundings of this process.
    #[expect(clippy::disallowed_methods, reason = "the one place where the environment is read")]
    pub fn of_process() -> Self {
        let name = std::env::var("USER")
            .or_else(|_| std::env::var("LOGNAME"))
            .or_else(|_| std::env::var("USERNAME"));
        Environment {
            directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            ledger: std::env::var_os("QUORATE_LEDGER").filter(|path| !path.is_empty()).map(PathBuf::from),
            user: name.unwrap_or_else(|_| "unknown".to_owned()),
            clock: Arc::new(System),
        }
    }
}

/// A variable that somebody named, if it is set and text.
#[expect(clippy::disallowed_methods, reason = "the one place where the environment is read")]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
