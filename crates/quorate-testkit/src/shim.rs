//! Faults of a real process: a small preloaded library (`shim/shim.c`) between a program and its files below one directory.
//! It counts and traces every call, makes a chosen one fail, or ends the process there.
//!
//! `shim/trace.rs` reads the trace, and `shim/image.rs` derives the disk contents that a power failure could leave.

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

/// The kind of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    Open,
    Read,
    Write,
    Sync,
    Truncate,
    /// Renaming or linking.
    Rename,
    Unlink,
    Mkdir,
    /// Writing to standard output; only traced.
    Out,
    /// Writing to standard error; only traced.
    Err,
    /// A call of a member; a test's own script writes it into the trace.
    Ask,
}

/// The effect on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultAction {
    /// SIGKILL before the call.
    KillBefore,
    /// SIGKILL after the call.
    KillAfter,
    /// Half of the data is written; then SIGKILL.
    KillTorn,
    /// Half of the data is written, and the caller learns it.
    Short,
    Eio,
    Enospc,
    Erofs,
}

/// A fault: a call, and the effect on it. Written `kind:pattern:at:action`, as in `sync:ledger.db-wal:2:EIO`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Calls of this kind; `None` for every kind.
    pub call: Option<Call>,
    /// A shell pattern for the path below the directory.
    pub path: String,
    /// The index of the call among those that match, from 0.
    pub at: u64,
    /// Whether the fault also affects all later calls.
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

fn name_of_value<T: PartialEq>(names: &[(T, &'static str)], value: &T) -> &'static str {
    names.iter().find(|(candidate, _)| candidate == value).map_or("", |(_, name)| name)
}

fn value_of_name<T: Copy>(names: &[(T, &'static str)], name: &str) -> Option<T> {
    names.iter().find(|(_, known)| *known == name).map(|(value, _)| *value)
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = self.call.map_or("any", |call| name_of_value(&CALLS, &call));
        let (ever, action) = (if self.and_later { "+" } else { "" }, name_of_value(&ACTIONS, &self.action));
        write!(f, "{call}:{}:{}{ever}:{action}", self.path, self.at)
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Fault, String> {
        let wrong = || format!("`{text}` is not a fault such as `sync:ledger.db-wal:2:EIO`");
        let parts: Vec<&str> = text.split(':').collect();
        let [call, path, at, action_name] = parts[..] else { return Err(wrong()) };
        let call = match call {
            "any" => None,
            call => Some(value_of_name(&CALLS, call).ok_or_else(wrong)?),
        };
        let and_later = at.ends_with('+');
        let at = at.trim_end_matches('+').parse().map_err(|_| wrong())?;
        let action = value_of_name(&ACTIONS, action_name).ok_or_else(wrong)?;
        Ok(Fault { call, path: path.to_owned(), at, and_later, action })
    }
}

impl Shim {
    /// Builds the library into a directory, unless it exists.
    ///
    /// # Errors
    /// Why it cannot be built: another system than Linux, or no C compiler.
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
        // Concurrent test processes build it under names of their own.
        let temporary = into.join(format!("quorate-shim-{}", std::process::id()));
        let (source, built) = (temporary.with_extension("c"), temporary.with_extension("so"));
        let io_error = |error: std::io::Error| format!("{}: {error}", into.display());
        compile(&source, &built).map_err(io_error)??;
        install(&source, &built, &library).map_err(io_error)?;
        Ok(Shim { library })
    }

    /// Preloads the shim into a command. `dir` is the directory whose files it watches; it need not exist yet.
    pub fn preload(&self, command: &mut Command, dir: &Path) {
        command.env("LD_PRELOAD", &self.library).env("QUORATE_SHIM_DIR", dir);
    }

    /// Traces every call to a file.
    pub fn trace(command: &mut Command, trace: &Path) {
        command.env("QUORATE_SHIM_TRACE", trace);
    }

    pub fn fault(command: &mut Command, fault: &Fault) {
        command.env("QUORATE_SHIM_FAULT", fault.to_string());
    }

    /// Adds to the wall clock from its `at`-th reading on.
    pub fn clock(command: &mut Command, offset_ms: i64, at: u64) {
        command.env("QUORATE_SHIM_CLOCK", format!("{offset_ms}:{at}"));
    }
}

#[expect(clippy::disallowed_methods, reason = "this module starts the C compiler")]
fn compile(source: &Path, built: &Path) -> std::io::Result<Result<(), String>> {
    std::fs::write(source, SOURCE)?;
    let output = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-U_FORTIFY_SOURCE", "-pthread", "-o"])
        .args([built, source])
        .output();
    Ok(match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("cc cannot build the shim: {}", String::from_utf8_lossy(&output.stderr))),
        Err(error) => Err(format!("cannot run the C compiler: {error}")),
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
