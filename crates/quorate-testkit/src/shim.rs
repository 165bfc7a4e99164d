//! Faults of the real process: a small library (`shim/shim.c`) that is loaded before a program's own and stands between it and
//! its files below one directory. It counts and traces every call, makes a chosen one fail, or ends the process there.
//!
//! `shim/trace.rs` reads what it traced, and `shim/image.rs` makes of that what a loss of power could have left.

pub mod image;
pub mod trace;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

const SOURCE: &str = include_str!("shim/shim.c");

#[derive(Debug, Clone)]
pub struct Shim {
    library: PathBuf,
}

/// What kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// Opening a file or directory.
    Open,
    Read,
    Write,
    Sync,
    /// Setting a file's length.
    Truncate,
    /// Renaming, or giving a second name.
    Rename,
    Unlink,
    Mkdir,
    /// What was written to standard output; traced alone.
    Out,
    /// What was written to standard error; traced alone.
    Err,
    /// A member was asked; a member that is a test's own script writes that into the trace.
    Ask,
}

/// What is done to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultAction {
    /// The process ends before it, by SIGKILL.
    KillBefore,
    /// The process ends after it.
    KillAfter,
    /// Half of what is written is; then the process ends.
    KillTorn,
    /// Half of what is written is, and the caller is told so.
    Short,
    Eio,
    /// No space is left.
    Enospc,
    /// The file system is read-only.
    Erofs,
}

/// A fault: which call, and what is done to it. Written `kind:pattern:at:deed`, as in `sync:ledger.db-wal:2:EIO`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Calls of this kind; of every kind where there is none.
    pub call: Option<Call>,
    /// A shell pattern of the path below the directory.
    pub path: String,
    /// Which of these calls, from 0.
    pub at: u64,
    /// Whether all calls after it, too.
    pub and_later: bool,
    pub action: FaultAction,
}

const CALLS: [(Call, &str); 11] = [
    (Call::Open, "open"),
    (Call::Read, "read"),
    (Call::Write, "write"),
    (Call::Sync, "sync"),
    (Call::Truncate, "truncate"),
    (Call::Rename, "rename"),
    (Call::Unlink, "unlink"),
    (Call::Mkdir, "mkdir"),
    (Call::Out, "out"),
    (Call::Err, "err"),
    (Call::Ask, "ask"),
];

const ACTIONS: [(FaultAction, &str); 7] = [
    (FaultAction::KillBefore, "kill-before"),
    (FaultAction::KillAfter, "kill-after"),
    (FaultAction::KillTorn, "kill-torn"),
    (FaultAction::Short, "short"),
    (FaultAction::Eio, "EIO"),
    (FaultAction::Enospc, "ENOSPC"),
    (FaultAction::Erofs, "EROFS"),
];

fn name_of_value<T: PartialEq>(names: &[(T, &'static str)], wanted: &T) -> &'static str {
    names.iter().find(|(one, _)| one == wanted).map_or("", |(_, name)| name)
}

fn value_of_name<T: Copy>(names: &[(T, &'static str)], wanted: &str) -> Option<T> {
    names.iter().find(|(_, name)| *name == wanted).map(|(one, _)| *one)
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = self.call.map_or("any", |call| name_of_value(&CALLS, &call));
        let (ever, deed) = (if self.and_later { "+" } else { "" }, name_of_value(&ACTIONS, &self.action));
        write!(f, "{call}:{}:{}{ever}:{deed}", self.path, self.at)
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Fault, String> {
        let wrong = || format!("`{text}` is no fault; one is written as `sync:ledger.db-wal:2:EIO`");
        let parts: Vec<&str> = text.split(':').collect();
        let [call, path, at, deed] = parts[..] else { return Err(wrong()) };
        let call = match call {
            "any" => None,
            call => Some(value_of_name(&CALLS, call).ok_or_else(wrong)?),
        };
        let and_later = at.ends_with('+');
        let at = at.trim_end_matches('+').parse().map_err(|_| wrong())?;
        let action = value_of_name(&ACTIONS, deed).ok_or_else(wrong)?;
        Ok(Fault { call, path: path.to_owned(), at, and_later, action })
    }
}

impl Shim {
    /// Builds the library into a directory, unless it is there already.
    ///
    /// # Errors
    /// Why it cannot be built here: not on Linux, or without a C compiler.
    pub fn build(into: &Path) -> Result<Shim, String> {
        if !cfg!(all(target_os = "linux", target_pointer_width = "64")) {
            return Err("faults of the real process need 64-bit Linux".to_owned());
        }
        let hash = SOURCE.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let library = into.join(format!("quorate-shim-{hash:016x}.so"));
        if library.is_file() {
            return Ok(Shim { library });
        }
        // Other test processes build it at the same time: each under a name of its own.
        let own = into.join(format!("quorate-shim-{}", std::process::id()));
        let (source, built) = (own.with_extension("c"), own.with_extension("so"));
        let put = |error: std::io::Error| format!("{}: {error}", into.display());
        compile(&source, &built).map_err(put)??;
        install(&source, &built, &library).map_err(put)?;
        Ok(Shim { library })
    }

    /// Has a command run behind the shim. `dir` is the directory whose files it watches; it need not be there yet.
    pub fn preload(&self, command: &mut Command, dir: &Path) {
        command.env("LD_PRELOAD", &self.library).env("QUORATE_SHIM_DIR", dir);
    }

    /// And has every call traced to a file.
    pub fn trace(command: &mut Command, trace: &Path) {
        command.env("QUORATE_SHIM_TRACE", trace);
    }

    /// And does something to a call.
    pub fn fault(command: &mut Command, fault: &Fault) {
        command.env("QUORATE_SHIM_FAULT", fault.to_string());
    }

    /// And adds to the wall clock from its `at`-th reading on.
    pub fn clock(command: &mut Command, offset_ms: i64, at: u64) {
        command.env("QUORATE_SHIM_CLOCK", format!("{offset_ms}:{at}"));
    }
}

#[expect(clippy::disallowed_methods, reason = "this module starts the C compiler")]
fn compile(source: &Path, built: &Path) -> std::io::Result<Result<(), String>> {
    std::fs::write(source, SOURCE)?;
    let made = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-U_FORTIFY_SOURCE", "-pthread", "-o"])
        .args([built, source])
        .output();
    Ok(match made {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("cc does not build the shim: {}", String::from_utf8_lossy(&output.stderr))),
        Err(error) => Err(format!("there is no C compiler: {error}")),
    })
}

#[expect(clippy::disallowed_methods, reason = "this module puts the library in its place")]
fn install(source: &Path, built: &Path, library: &Path) -> std::io::Result<()> {
    std::fs::remove_file(source)?;
    std::fs::rename(built, library)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_reads_as_it_is_written() {
        for text in ["sync:ledger.db-wal:2:EIO", "any:*:17:kill-torn", "write:live/*:0+:ENOSPC"] {
            assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
        }
        for text in ["", "sync:*:2", "synk:*:2:EIO", "sync:*:two:EIO", "sync:*:2:EEK"] {
            assert!(text.parse::<Fault>().is_err(), "{text}");
        }
    }
}
