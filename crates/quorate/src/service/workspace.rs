//! Finds the configuration, the ledger and the log (M10, Q), and lists the side effects of a configuration outside of
//! its workspace: a ledger in a database or elsewhere on the disk, a witness, a log. Files below the root need no
//! trust, links included.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::files::Resolver;
use quorate_kernel::ports::executor::SideEffect;
use quorate_kernel::registry::Registry;
use quorate_ledger::council_log;
use quorate_ledger::store::address::StoreAddress;
use quorate_manifest::config::{self, Configuration, KeySource};
use quorate_manifest::council::{self, Council};
use quorate_manifest::doctype::COUNCIL_FILES;
use quorate_manifest::{Loaded, Source, workspace};

use super::disk::{self, Disk, absolute, display_path, entry_exists, find_outermost, is_inside, leads_out};
use super::environment::Environment;
use super::error::{Error, ErrorKind};
use super::executor::Executors;
use super::guard::{Guard, GuardedPlaces};
use super::redaction::Redaction;
use super::trust::requests::{Trust, TrustRequest};
use super::witness::Witness;
use super::{policy, trust};

/// Paths given by the user.
#[derive(Debug, Clone, Default)]
pub struct PathOverrides {
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--ledger`: a file, or the address of a Postgres database.
    pub ledger: Option<PathBuf>,
}

/// A loaded configuration.
#[derive(Debug)]
pub struct Workspace {
    /// Whether the working directory has the same configuration and ledger by default.
    pub is_found_here: bool,
    /// `quorate.toml`, or its defaults.
    pub config: Configuration,
    /// The file that it was read from.
    pub config_path: Option<PathBuf>,
    pub council: Council,
    /// The file that it was read from; `None` for the built-in one.
    pub council_path: Option<PathBuf>,
    /// The ledger's address.
    pub ledger: StoreAddress,
    /// `council_log.jsonl`.
    pub log: PathBuf,
    /// The witness of the ledger's checkpoints.
    pub witness: Option<Witness>,
    /// The adapters, by port and kind.
    pub registry: Arc<Registry>,
    pub redaction: Redaction,
    /// The guard of the workspace's files.
    pub guard: Guard,
    /// Warnings of both files, with their sources.
    pub report: Report,
}

impl Workspace {
    /// The adapters and the tables that executors are built from.
    pub(crate) fn executors(&self) -> Executors<'_> {
        Executors { registry: &self.registry, config: &self.config }
    }

    /// Another workspace's configuration with the ledger, the log and the witness of this one.
    pub(super) fn with_configuration(&self, other: Workspace) -> Workspace {
        Workspace {
            is_found_here: other.is_found_here && other.ledger == self.ledger,
            ledger: self.ledger.clone(),
            log: self.log.clone(),
            witness: self.witness.clone(),
            guard: self.guard.clone(),
            ..other
        }
    }
}

/// Finds and reads the configuration for the directory `start`.
///
/// # Errors
/// If a named file does not exist, or a file found is refused.
pub(crate) fn load(
    environment: &Environment,
    named: &PathOverrides,
    start: &Path,
) -> Result<Workspace, Error> {
    let start = absolute(&environment.directory, start);
    let links = Resolver::default();
    let mut report = Report::new();
    let found = FoundFiles::of(environment, named.config.as_deref(), &start, &mut report)?;
    let chosen = named.ledger.clone().or_else(|| environment.ledger.clone());
    let FoundFiles { config, config_path, council_path } = &found;
    let root = found.root();
    let mut council = council::built_in_council();
    match council_path {
        Some(path) => {
            let root = root.or(path.parent()).unwrap_or(&environment.directory);
            let found = FoundFile { root, file: path };
            // A person may name a link.
            let source: &dyn Source = if named.config.is_some() { &Disk } else { &found };
            let shown = display_path(environment, path);
            let mut loaded = load_council(environment, path, &shown, root, source);
            // `check` reports it; repeated by each command, it would hide other warnings.
            loaded.report.warnings.retain(|warning| warning.code != codes::WEIGHT_UNCOUNTED);
            council = accept(loaded, &mut report)?;
        }
        None => council.dir = root.unwrap_or(&environment.directory).to_owned(),
    }
    let ledger = found.ledger(environment, chosen.as_deref())?;
    let in_memory = environment.memory.is_some() && named.ledger.is_none();
    let log = match &council.logging.log_path {
        Some(path) if !in_memory => absolute(&council.dir, path),
        _ => ledger.dir().join("council_log.jsonl"),
    };
    found.check_bounds(environment, &council, (&ledger, chosen.is_some()), &log, &links)?;
    let witness = if in_memory { None } else { Witness::of(config)? };
    let places = GuardedPlaces {
        config,
        configured: [config_path.as_deref(), council_path.as_deref()],
        root: &absolute(&environment.directory, root.unwrap_or(&council.dir)),
        ledger: &ledger,
        log: &log,
        witness: witness.as_ref(),
        links: &links,
    };
    let guard = Guard::of(environment, places)?;
    let redaction = Redaction::of(config, &council, &environment.variables)?;
    let registry = environment.registries.registry().clone();
    let is_above = |path: &Option<PathBuf>| {
        path.as_deref().and_then(Path::parent).is_none_or(|dir| environment.directory.starts_with(dir))
    };
    let is_found_here = named.config.is_none()
        && named.ledger.is_none()
        && start.starts_with(&environment.directory)
        && is_above(config_path)
        && is_above(council_path);
    let FoundFiles { config, config_path, council_path } = found;
    Ok(Workspace {
        is_found_here,
        config,
        config_path,
        council,
        council_path,
        ledger,
        log,
        witness,
        registry,
        redaction,
        guard,
        report,
    })
}

/// The address of the ledger of the working directory's own configuration, if that could be loaded.
///
/// # Errors
/// If `quorate.toml` is refused, there are several councils, or the address is invalid.
pub(crate) fn default_ledger(environment: &Environment) -> Result<StoreAddress, Error> {
    let found = FoundFiles::of(environment, None, &environment.directory, &mut Report::new())?;
    found.ledger(environment, environment.ledger.as_deref())
}

/// The configuration of a directory, and the file of its council.
struct FoundFiles {
    config: Configuration,
    config_path: Option<PathBuf>,
    council_path: Option<PathBuf>,
}

impl FoundFiles {
    fn of(
        environment: &Environment,
        named: Option<&Path>,
        start: &Path,
        report: &mut Report,
    ) -> Result<FoundFiles, Error> {
        let config_path = find_outermost(start, "quorate.toml");
        let mut config = Configuration::default();
        if let Some(path) = &config_path {
            trust::check_owner(environment, path)?;
            config = accept(load_configuration(environment, path), report)?;
        }
        let root = config_path.as_deref().and_then(Path::parent);
        let council_path = match named {
            Some(named) => Some(explicit_config(environment, named)?),
            None => {
                let found = find_council(environment, start, root)?;
                found.as_deref().map_or(Ok(()), |path| trust::check_owner(environment, path))?;
                found
            }
        };
        Ok(FoundFiles { config, config_path, council_path })
    }

    /// The directory of `quorate.toml`.
    fn root(&self) -> Option<&Path> {
        self.config_path.as_deref().and_then(Path::parent)
    }

    /// The directory of the council, which the default ledger is in.
    fn beside<'a>(&'a self, environment: &'a Environment) -> &'a Path {
        let council = self.council_path.as_deref().and_then(Path::parent);
        council.or(self.root()).unwrap_or(&environment.directory)
    }

    /// The ledger: `--ledger`, `QUORATE_LEDGER`, `quorate.toml`, else `.quorate/` beside the configuration. The local files
    /// of a database ledger are in the latter.
    fn ledger(&self, environment: &Environment, chosen: Option<&Path>) -> Result<StoreAddress, Error> {
        let dir = self.beside(environment).join(".quorate");
        let (base, named) = match (chosen, &self.config.ledger.path) {
            (Some(path), _) => (&environment.directory, path.to_owned()),
            (None, Some(written)) => (&self.config.dir, PathBuf::from(written)),
            (None, None) => return Ok(StoreAddress::File(dir.join("ledger.db"))),
        };
        match named.to_str() {
            Some(text) if StoreAddress::is_mistyped(text) => Err(malformed_address(text, chosen)),
            Some(url) if StoreAddress::is_postgres(url) => {
                in_database(StoreAddress::Postgres { url: url.to_owned(), dir })
            }
            Some(url) if url.contains("://") => {
                let scheme = url.split("://").next().unwrap_or_default();
                let body = Body::new(format!("unsupported ledger address `{scheme}://`"));
                let help = "write a file, or a Postgres database: `postgres://user@host/database`";
                Err(Error::new(ErrorKind::Ledger, codes::LEDGER_UNAVAILABLE, body.help(help)))
            }
            _ => Ok(StoreAddress::File(absolute(base, &named))),
        }
    }

    /// Refuses a ledger, a log or a witness outside of the root unless the file that names it is trusted, and a directory of
    /// records that belongs to another user. `chosen` says whether the user chose the ledger.
    fn check_bounds(
        &self,
        environment: &Environment,
        council: &Council,
        (ledger, chosen): (&StoreAddress, bool),
        log: &Path,
        links: &Resolver,
    ) -> Result<(), Error> {
        let root = self.root().unwrap_or(self.beside(environment));
        let of_ledger = of_ledger(&self.config, links).filter(|_| !chosen);
        let of_config = of_ledger.iter().cloned().chain(of_witness(&self.config, links)).collect();
        let of_council = of_council(council, root, links);
        let (elsewhere, logs_elsewhere) = (of_ledger.is_some(), !of_council.is_empty());
        let file = self.council_path.as_deref().unwrap_or(root).to_owned();
        let needs = vec![
            TrustRequest { file: self.config.path(), acts: of_config },
            TrustRequest { file, acts: of_council },
        ];
        trust::admit(environment, needs)?;
        let home = ledger.dir().parent().unwrap_or(ledger.dir());
        ensure_no_outside_links(links, if chosen || elsewhere { home } else { root }, ledger.dir())?;
        if chosen {
            return Ok(());
        }
        if !elsewhere {
            ensure_inside(links, root, ledger.dir(), "ledger")?;
            ledger.file().map_or(Ok(()), |file| ensure_inside(links, root, file, "ledger"))?;
            trust::check_owner(environment, &ledger.dir().join("ledger.db"))?;
        }
        match logs_elsewhere || elsewhere {
            true => Ok(()),
            false => ensure_inside(links, root, log, "log"),
        }
    }
}

/// Problems of a directory's configured output files: two files in one place, one over a protected file, or one over
/// another existing file. Other refusals are not reported here.
pub(crate) fn check_files(environment: &Environment, config: Option<PathBuf>, start: &Path) -> Option<Error> {
    // Nothing is written, so no trust is needed.
    let environment = &Environment { trust: Trust::default().trusting_all(), ..environment.clone() };
    let loaded = load(environment, &PathOverrides { config, ledger: None }, start);
    let of_places =
        |error: &Error| error.report.refusals.iter().any(|refusal| refusal.code == codes::FILE_UNWRITABLE);
    match loaded {
        Err(error) => Some(error).filter(of_places),
        Ok(workspace) => ensure_log(environment, &workspace.log)
            .and_then(|()| {
                workspace.witness.as_ref().map_or(Ok(()), |witness| witness.ensure_file(environment))
            })
            .err(),
    }
}

/// Refuses a log path that names a file of another kind.
///
/// # Errors
/// [`codes::LOG_UNWRITABLE`].
fn ensure_log(environment: &Environment, log: &Path) -> Result<(), Error> {
    match council_log::ensure_log_at(log) {
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            Err(log_unwritable(environment, log, &error))
        }
        _ => Ok(()),
    }
}

/// The error of a log that cannot be appended to.
pub(crate) fn log_unwritable(environment: &Environment, log: &Path, error: &std::io::Error) -> Error {
    let shown = display_path(environment, log);
    let shown = if shown.is_empty() { "." } else { &shown };
    let body = Body::new(format!("cannot append to {shown}: {error}"));
    let help = match error.kind() {
        std::io::ErrorKind::InvalidData => {
            "choose another file in `logging.log_path` of council.yaml; this one was not changed"
        }
        _ => "make it writable, or set `logging.log_path` in council.yaml",
    };
    Error::configuration(codes::LOG_UNWRITABLE, body.help(help))
}

/// Reads a `quorate.toml` that is inside its directory, and refuses misspelled keys of its executors.
pub(crate) fn load_configuration(environment: &Environment, path: &Path) -> Loaded<Configuration> {
    let found = FoundFile { root: path.parent().unwrap_or(path), file: path };
    let mut loaded = config::load(path, &display_path(environment, path), &found);
    if let Some(config) = &loaded.value {
        let typos = Executors { registry: environment.registries.registry(), config }.typos();
        typos.into_iter().for_each(|error| loaded.report.absorb(*error.report));
    }
    Loaded { value: loaded.value.filter(|_| !loaded.report.has_refusals()), ..loaded }
}

/// Reads a workspace's council. Its documents may be below the root, or in the working directory if that contains the
/// council and the file is trusted.
pub(crate) fn load_council(
    environment: &Environment,
    path: &Path,
    shown: &str,
    root: &Path,
    source: &dyn Source,
) -> Loaded<Council> {
    let beside = path.parent().unwrap_or(root);
    let working = &*environment.directory;
    let links = Resolver::default();
    let is_within = |path: &Path| links.is_inside(root, path) || links.is_inside(beside, path);
    let is_beside = links.is_inside(working, beside);
    let may_be_shown = |path: &Path| is_within(path) || (is_beside && links.is_inside(working, path));
    let surroundings = council::FileAccess {
        working_dir: Some(working),
        may_read: &may_be_shown,
        is_in_workspace: &is_within,
    };
    policy::checked(council::load_in(path, shown, source, surroundings))
}

fn explicit_config(environment: &Environment, named: &Path) -> Result<PathBuf, Error> {
    let path = absolute(&environment.directory, named);
    match Disk.read(&path) {
        Err(quorate_manifest::workspace::SourceError::Missing) => Err(Error::configuration(
            codes::CONFIG_MISSING,
            Body::new(format!("cannot read {}: the file does not exist", named.display()))
                .help("run `quorate init council` to write one"),
        )),
        _ => Ok(path),
    }
}

/// An invalid address. Shows only its scheme: a password may be anywhere in the rest.
fn malformed_address(text: &str, chosen: Option<&Path>) -> Error {
    let scheme = text.split(':').next().filter(|scheme| scheme.to_ascii_lowercase().starts_with("postgres"));
    let shown = if scheme.is_some() { "postgres:…" } else { "…@…" };
    let body =
        Body::new(format!("cannot use the ledger address `{shown}`: it does not begin with `postgres://`"));
    let body = body.help("write `postgres://user@host/database`; for a file of such a name, write `./NAME`");
    // A given path is an invalid command line; a configured one is an invalid file.
    let class = if chosen.is_some() { ErrorKind::InvalidRequest } else { ErrorKind::Configuration };
    Error::new(class, codes::LEDGER_ADDRESS, body)
}

#[cfg(feature = "postgres")]
fn in_database(address: StoreAddress) -> Result<StoreAddress, Error> {
    match address.check() {
        Ok(()) => Ok(address),
        Err(refused) => {
            let body = Body::new(format!("cannot use the ledger address {address}: {refused}"));
            Err(Error::configuration(codes::LEDGER_ADDRESS, body.help(refused.help)))
        }
    }
}

#[cfg(not(feature = "postgres"))]
fn in_database(address: StoreAddress) -> Result<StoreAddress, Error> {
    let body = Body::new(format!(
        "cannot open the ledger {address}: this program was built without the feature `postgres`"
    ));
    let help = "build it with `cargo install --path crates/quorate-cli --features postgres`";
    Err(Error::configuration(codes::FEATURE_MISSING, body.help(help)))
}

fn accept<T>(loaded: Loaded<T>, report: &mut Report) -> Result<T, Error> {
    report.absorb(loaded.report);
    match loaded.value {
        Some(value) if !report.has_refusals() => Ok(value),
        _ => Err(Error::from_report(ErrorKind::Configuration, std::mem::take(report))),
    }
}

/// The nearest council file at or above `start`, up to the workspace's root; without a `quorate.toml` up to the
/// repository's root. Elsewhere the search stops at a directory that belongs to another user or is world-writable: its
/// files could belong to any user, and a council's file names commands.
fn find_council(
    environment: &Environment,
    start: &Path,
    root: Option<&Path>,
) -> Result<Option<PathBuf>, Error> {
    let end = root.or_else(|| start.ancestors().find(|dir| entry_exists(&dir.join(".git"))));
    for dir in start.ancestors() {
        if end.is_none() && dir != start && !trust::is_own(environment, dir) {
            break;
        }
        let existing: Vec<PathBuf> =
            COUNCIL_FILES.map(|name| dir.join(name)).into_iter().filter(|path| entry_exists(path)).collect();
        match existing.as_slice() {
            [] => {}
            [one] => return Ok(Some(one.clone())),
            [..] => {
                let body = Body::new(format!(
                    "two councils in one directory: {}",
                    existing
                        .iter()
                        .map(|path| display_path(environment, path))
                        .collect::<Vec<_>>()
                        .join(" and ")
                ));
                let help = "remove one of them, or choose one with `--config`";
                return Err(Error::configuration(codes::COUNCIL_INVALID, body.help(help)));
            }
        }
        if end == Some(dir) {
            break;
        }
    }
    Ok(None)
}

/// The side effects of a `quorate.toml` outside of its directory.
pub(crate) fn of_configuration(config: &Configuration) -> Vec<SideEffect> {
    let key = config.keys.signing.as_ref().and_then(|(source, _)| match source {
        KeySource::File(path) => of_key(&config.dir, &absolute(&config.dir, path.as_ref())),
        KeySource::Env(_) | KeySource::Command(_) => None,
    });
    let links = Resolver::default();
    of_ledger(config, &links).into_iter().chain(of_witness(config, &links)).chain(key).collect()
}

/// The ledger of a `quorate.toml`, if it is outside.
fn of_ledger(config: &Configuration, links: &Resolver) -> Option<SideEffect> {
    let written = config.ledger.path.as_deref()?;
    if StoreAddress::is_postgres(written) {
        let address = StoreAddress::Postgres { url: written.to_owned(), dir: config.dir.clone() };
        return Some(SideEffect::new(format!("keep the ledger in {address}")));
    }
    let path = absolute(&config.dir, written.as_ref());
    (!links.is_inside(&config.dir, &path))
        .then(|| SideEffect::new(format!("keep the ledger at {}", path.display())))
}

/// The witness of a `quorate.toml`, if it is outside.
fn of_witness(config: &Configuration, links: &Resolver) -> Option<SideEffect> {
    let (written, _) = config.ledger.witness.as_ref()?;
    if written.contains("://") {
        return Some(SideEffect::new(format!("send checkpoints to {written}")));
    }
    let path = absolute(&config.dir, written.as_ref());
    (!links.is_inside(&config.dir, &path))
        .then(|| SideEffect::new(format!("append checkpoints to {}", path.display())))
}

/// The key of a root's `quorate.toml`, if it is outside.
pub(crate) fn of_key(root: &Path, path: &Path) -> Option<SideEffect> {
    (!is_inside(root, path)).then(|| SideEffect::new(format!("sign with the key {}", path.display())))
}

/// The files outside of a root and of its own directory that a council reads and writes: prompts and documents that it
/// shows to members, and its log.
pub(crate) fn of_council(council: &Council, root: &Path, links: &Resolver) -> Vec<SideEffect> {
    let outside = |path: &Path| {
        let path = absolute(&council.dir, path);
        let is_outside = !links.is_inside(root, &path) && !links.is_inside(&council.dir, &path);
        is_outside.then(|| path.display().to_string())
    };
    let read = council.files.iter().filter_map(|(written, _)| outside(written.as_ref()));
    let read = read.map(|path| SideEffect::new(format!("show members the file {path}")));
    let log = council.logging.log_path.as_ref().and_then(|path| outside(path));
    read.chain(log.map(|path| SideEffect::new(format!("append verdicts to {path}")))).collect()
}

/// The watched folders of a council outside of a root and of its own directory, which a sweep shows members.
pub(crate) fn of_watch(council: &Council, root: &Path) -> Vec<SideEffect> {
    let folders = council.watch.paths.iter().map(|written| absolute(&council.dir, written.as_ref()));
    let outside = folders.filter(|path| !is_inside(root, path) && !is_inside(&council.dir, path));
    outside.map(|path| SideEffect::new(format!("show members the files below {}", path.display()))).collect()
}

/// Refuses a path that is below a root by its name, but leads out by a link.
///
/// # Errors
/// [`codes::WORKSPACE_UNTRUSTED`].
fn ensure_inside(links: &Resolver, root: &Path, path: &Path, what: &str) -> Result<(), Error> {
    let target = links.resolve(path);
    if target.starts_with(links.resolve(root)) {
        return Ok(());
    }
    let body = Body::new(format!(
        "cannot keep the {what} at {}: a link leads out of the workspace, to {}",
        path.display(),
        target.display()
    ));
    let help = "remove the link, or choose the place yourself: `--ledger PATH`";
    Err(Error::new(ErrorKind::Untrusted, codes::WORKSPACE_UNTRUSTED, body.help(help)))
}

/// The entries of a ledger's directory that must not lead elsewhere.
const LEDGER_ENTRIES: [&str; 5] = ["keys", "aside", "live", "keys/checkpoints", ".gitignore"];

/// Refuses a ledger's directory with an entry that leads out of a root by a link: a key, a checkpoint, a file moved
/// aside.
///
/// # Errors
/// [`codes::WORKSPACE_UNTRUSTED`].
fn ensure_no_outside_links(links: &Resolver, root: &Path, dir: &Path) -> Result<(), Error> {
    for kept in LEDGER_ENTRIES {
        ensure_inside(links, root, &dir.join(kept), kept)?;
    }
    let own_dir = dir.ends_with(".quorate").then(|| dir.to_owned());
    for dir in own_dir.into_iter().chain(LEDGER_ENTRIES.map(|kept| dir.join(kept))) {
        for link in disk::links_in(&dir) {
            ensure_inside(links, root, &link, "files of the ledger")?;
        }
    }
    Ok(())
}

/// The disk for a file that was found in a workspace and not named by a person. A file that is a link out of the root
/// is not read, so that no line of it is shown.
pub(crate) struct FoundFile<'a> {
    pub root: &'a Path,
    /// The checked file; other files are read without this check.
    pub file: &'a Path,
}

impl Source for FoundFile<'_> {
    fn read(&self, path: &Path) -> Result<Vec<u8>, workspace::SourceError> {
        match path == self.file && leads_out(self.root, path) {
            true => Err(workspace::SourceError::Unreadable(std::io::Error::other(
                "it leads out of its workspace",
            ))),
            false => Disk.read(path),
        }
    }
}

/// The workspace's root (M10): `root` if given, else the outermost directory with a `quorate.toml`, else `start`.
pub(crate) fn find_root(environment: &Environment, said: Option<&Path>, start: &Path) -> PathBuf {
    let found =
        || find_outermost(start, "quorate.toml").and_then(|file| file.parent().map(Path::to_path_buf));
    match said {
        Some(root) => absolute(&environment.directory, root),
        None => found().unwrap_or_else(|| start.to_owned()),
    }
}

/// What a name without its folder means: the first of these paths of the workspace that exists, with the name in place of
/// `*`.
pub(crate) fn by_name(
    environment: &Environment,
    root: Option<&Path>,
    named: &Path,
    forms: &[&str],
) -> Option<PathBuf> {
    let mut parts = named.components();
    let (Some(Component::Normal(name)), None) = (parts.next(), parts.next()) else { return None };
    let (root, name) = (find_root(environment, root, &environment.directory), name.to_str()?);
    forms.iter().map(|form| root.join(form.replace('*', name))).find(|path| path.exists())
}

/// The directory where the search for a file's workspace starts: the file's directory if it or a parent has a
/// `quorate.toml`, else the working directory if the file is below it.
pub(crate) fn search_start(environment: &Environment, file: &Path) -> PathBuf {
    let directory = file.parent().map_or_else(|| environment.directory.clone(), Path::to_path_buf);
    let below = file.starts_with(&environment.directory);
    if below && find_outermost(&directory, "quorate.toml").is_none() {
        environment.directory.clone()
    } else {
        directory
    }
}
