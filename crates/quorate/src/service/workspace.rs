//! Where things are: which configuration holds, and where ledger and log lie (INTERFACES, M10, Q).

use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, Report, codes};
use quorate_manifest::council::{self, Council};
use quorate_manifest::host::{self, Configuration};
use quorate_manifest::{Loaded, Source as _};

use super::disk::Disk;
use super::environment::Environment;
use super::stop::{Class, Stop};

/// What the user said about places.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--ledger`.
    pub ledger: Option<PathBuf>,
}

/// A configuration that holds.
#[derive(Debug)]
pub struct Workspace {
    /// `quorate.toml`, or nothing said.
    pub host: Configuration,
    /// The file that it was read from.
    pub host_path: Option<PathBuf>,
    /// The council.
    pub council: Council,
    /// The file that it was read from; `None` for the built-in one.
    pub council_path: Option<PathBuf>,
    /// The ledger's file.
    pub ledger: PathBuf,
    /// `council_log.jsonl`.
    pub log: PathBuf,
    /// Warnings of both files, with their texts.
    pub report: Report,
}

/// Finds and reads the configuration for work that starts at `start`, a directory.
///
/// # Errors
/// When a file that was named is not there, or one that was found is refused.
pub fn load(environment: &Environment, places: &Places, start: &Path) -> Result<Workspace, Stop> {
    let start = absolute(&environment.directory, start);
    let mut report = Report::new();
    let host_path = outermost(&start, "quorate.toml");
    let mut host = Configuration::default();
    if let Some(path) = &host_path {
        host = take(host::load(path, &shown(environment, path), &Disk), &mut report)?;
    }
    let root = host_path.as_deref().and_then(Path::parent);
    let council_path = match &places.config {
        Some(named) => Some(named_config(environment, named)?),
        None => nearest(&start, root.unwrap_or(&environment.directory), "council.yaml"),
    };
    let mut council = council::built_in();
    match &council_path {
        Some(path) => council = take(council::load(path, &shown(environment, path), &Disk), &mut report)?,
        None => council.dir = root.unwrap_or(&environment.directory).to_owned(),
    }
    let beside = council_path.as_deref().and_then(Path::parent).or(root).unwrap_or(&environment.directory);
    let ledger = ledger(environment, places, &host, beside)?;
    let log = match &council.logging.log_path {
        Some(path) => absolute(&council.dir, path),
        None => ledger.parent().unwrap_or(beside).join("council_log.jsonl"),
    };
    Ok(Workspace { host, host_path, council, council_path, ledger, log, report })
}

/// Says a path the way a user in this directory would.
pub fn shown(environment: &Environment, path: &Path) -> String {
    path.strip_prefix(&environment.directory).unwrap_or(path).display().to_string()
}

fn named_config(environment: &Environment, named: &Path) -> Result<PathBuf, Stop> {
    let path = absolute(&environment.directory, named);
    match Disk.read(&path) {
        Err(quorate_manifest::source::Error::Missing) => Err(Stop::configuration(
            codes::CONFIG_MISSING,
            Body::new(format!("there is no file {}", named.display()))
                .help("`quorate init council` writes one"),
        )),
        _ => Ok(path),
    }
}

/// Where the ledger is: `--ledger`, `QUORATE_LEDGER`, `quorate.toml`, else `.quorate/` beside the configuration.
fn ledger(
    environment: &Environment,
    places: &Places,
    host: &Configuration,
    beside: &Path,
) -> Result<PathBuf, Stop> {
    let named = places.ledger.clone().or_else(|| environment.ledger.clone());
    if let Some(address) = named.as_ref().filter(|path| path.to_string_lossy().contains("://")) {
        let body =
            Body::new(format!("{} is no file; this version keeps its ledger in a file", address.display()));
        return Err(Stop::configuration(codes::LEDGER_UNAVAILABLE, body));
    }
    Ok(match (named, &host.ledger) {
        (Some(path), _) => absolute(&environment.directory, &path),
        (None, Some(written)) => absolute(&host.dir, Path::new(written)),
        (None, None) => beside.join(".quorate").join("ledger.db"),
    })
}

fn take<T>(loaded: Loaded<T>, report: &mut Report) -> Result<T, Stop> {
    report.absorb(loaded.report);
    match loaded.value {
        Some(value) if !report.refused() => Ok(value),
        _ => Err(Stop::report(Class::Configuration, std::mem::take(report))),
    }
}

/// A path as it is from a directory.
pub fn absolute(directory: &Path, path: &Path) -> PathBuf {
    let joined = directory.join(path);
    std::path::absolute(&joined).unwrap_or(joined)
}

/// The outermost directory at or above `start` that has the file (M10).
pub(super) fn outermost(start: &Path, name: &str) -> Option<PathBuf> {
    start.ancestors().map(|dir| dir.join(name)).filter(|path| is_there(path)).last()
}

/// Whether there is anything of that name: a directory or a dangling link is no configuration either, and is refused
/// where it is read, not passed over.
pub(super) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// The nearest file at or above `start`, no further up than `root`; where `start` is not below `root`, beside the
/// start alone. A file further up could belong to somebody else, and a council's file names commands.
fn nearest(start: &Path, root: &Path, name: &str) -> Option<PathBuf> {
    let levels = if start.starts_with(root) {
        start.ancestors().take_while(|dir| dir.starts_with(root)).count()
    } else {
        1
    };
    start.ancestors().take(levels).map(|dir| dir.join(name)).find(|path| is_there(path))
}
