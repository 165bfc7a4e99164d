//! [`Quorate`] and its [`Builder`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_kernel::clock::Clock;
use quorate_kernel::ports::dispatcher::Dispatcher;
use quorate_kernel::ports::executor::{ConfigError, Executor, Settings};
use quorate_kernel::ports::extension::{Embedder, Gather, Rule};
use quorate_kernel::ports::state::State;
use quorate_kernel::ports::substrate::Substrate;
use quorate_kernel::ports::telemetry::Lifecycle;
use quorate_kernel::registry::{self, BuildContext};
use serde_json::Value;
use tempfile::TempDir;

use super::error::Error;
use super::service::confined::Root;
use super::service::environment::{Environment, NatsServers};
use super::service::redaction::built_in_redactor;
use super::service::registries::Registries;
use super::service::session::LedgerSession;
use super::service::trust::requests::Consent;
use super::service::workspace::{self, PathOverrides, find_root};
use super::service::{disk, trust};

/// Whether Quorate may run commands and hooks, contact servers and send keys that workspace files name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Trust {
    /// Only what `quorate trust` has recorded in the state directory; without a state directory, nothing.
    #[default]
    Recorded,
    /// Everything that workspace files name: the program vouches for them.
    Workspace,
}

/// A configured workspace. Cloning it is cheap; each operation opens the ledger and closes it again.
#[derive(Clone)]
pub struct Quorate {
    pub(crate) environment: Environment,
    pub(crate) places: PathOverrides,
    /// The directory that confines named paths; `None` if the caller may name any file.
    pub(crate) root: Option<Root>,
    /// The ledger that the caller holds open; `None` if each call opens it.
    pub(crate) held: Option<Arc<LedgerSession>>,
}

/// The choices of a client that may name neither programs nor addresses.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// The executors: tables of `quorate.toml`, and the built-in default.
    pub executors: Vec<String>,
    /// The directories of `assemblies/` that hold an assembly.
    pub assemblies: Vec<String>,
}

impl Quorate {
    /// Returns an empty builder; [`Builder::workspace`] is required.
    ///
    /// ```
    /// use quorate::Quorate;
    ///
    /// let dir = tempfile::tempdir()?;
    /// let quorate = Quorate::builder().workspace(dir.path()).user("press desk").build()?;
    /// # let _ = quorate;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder() -> Builder {
        Builder {
            environment: Environment::new(PathBuf::new()),
            workspace: None,
            in_memory: false,
            config: None,
            trust: Trust::default(),
            variables: Vec::new(),
            registries: Registries::default(),
            refused: None,
        }
    }

    /// The environment, for the benchmarks of this workspace.
    #[doc(hidden)]
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The same workspace with another council file or ledger; `None` keeps the present one.
    #[must_use]
    pub fn with_paths(&self, council: Option<PathBuf>, ledger: Option<PathBuf>) -> Quorate {
        let PathOverrides { config, ledger: present } = self.places.clone();
        let places = PathOverrides { config: council.or(config), ledger: ledger.or(present) };
        Quorate { places, held: None, ..self.clone() }.with_its_redaction()
    }

    /// The root of the workspace that contains this directory: the outermost directory with a `quorate.toml`, else the
    /// directory itself.
    pub fn root(&self) -> PathBuf {
        find_root(&self.environment, None, &self.environment.directory)
    }

    /// The same settings in another directory; a relative path starts from the present one.
    #[must_use]
    pub fn in_directory(&self, directory: impl AsRef<Path>) -> Quorate {
        let directory = disk::absolute(&self.environment.directory, directory.as_ref());
        let environment = Environment { directory, ..self.environment.clone() };
        Quorate { environment, held: None, ..self.clone() }.with_its_redaction()
    }

    /// The same workspace, whose files cannot change the redaction of texts for display: they may be a stranger's.
    #[must_use]
    pub fn with_built_in_redaction(&self) -> Quorate {
        let redactor = built_in_redactor(&self.environment.variables);
        Quorate { environment: Environment { redactor, ..self.environment.clone() }, ..self.clone() }
    }

    /// The workspace with the redaction of its configuration; with the built-in one, if that is refused. Nothing that the
    /// configuration names is reached, so that nobody is asked to trust it.
    fn with_its_redaction(self) -> Quorate {
        let trust = self.environment.trust.clone().trusting_all();
        let reading =
            Quorate { environment: Environment { trust, ..self.environment.clone() }, ..self.clone() };
        let redactor = match reading.with_read_redaction() {
            Ok(read) => read.environment.redactor,
            Err(_) => built_in_redactor(&self.environment.variables),
        };
        Quorate { environment: Environment { redactor, ..self.environment.clone() }, ..self }
    }

    fn with_read_redaction(mut self) -> Result<Quorate, Error> {
        let workspace = workspace::load(&self.environment, &self.places, &self.environment.directory)?;
        self.environment.redactor = workspace.redaction.redactor.without_patterns();
        Ok(self)
    }

    /// Confines all paths that callers name to this directory, for a server whose clients name them. A path that leads
    /// out, also by a symlink, is an error, and so is one into `.quorate` or `.git`. Reviews, assemblies and
    /// conversations are read only below the directory, a sweep skips other files, and keys cannot be files.
    ///
    /// # Errors
    /// If the directory does not exist or cannot be opened.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::Quorate;
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?.confined()?;
    /// let error = quorate.review("../../etc/passwd").await.unwrap_err();
    /// assert_eq!(error.code(), "quorate:path_outside");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn confined(&self) -> Result<Quorate, Error> {
        let root = Root::open(self.environment.directory.clone())?;
        Ok(Quorate { root: Some(root), ..self.clone() })
    }

    /// The choices of a client that may name neither programs nor addresses.
    ///
    /// # Errors
    /// If `quorate.toml` or the council's file is refused.
    pub fn choices(&self) -> Result<Choices, Error> {
        let workspace = workspace::load(&self.environment, &self.places, &self.environment.directory)?;
        let found = disk::walk_to_depth(&self.root().join("assemblies"), 2).unwrap_or_default();
        let manifests = found.iter().filter(|file| file.path.ends_with("ASSEMBLY.md"));
        let name = |path: &Path| path.parent()?.file_name()?.to_str().map(str::to_owned);
        Ok(Choices {
            executors: workspace.executors().offered(),
            assemblies: manifests.filter_map(|file| name(&file.path)).collect(),
        })
    }

    /// A path that the caller names. A confined workspace refuses one that leads out.
    ///
    /// # Errors
    /// If the path leads out of a confined workspace.
    pub fn named_path(&self, path: PathBuf) -> Result<PathBuf, Error> {
        self.root.as_ref().map_or(Ok(path.clone()), |root| root.path(&path))
    }

    /// The user name that records carry.
    pub fn user(&self) -> &str {
        &self.environment.user
    }

    /// Replaces the secrets of this workspace in a text for display.
    pub fn redact_text(&self, text: &str) -> String {
        self.environment.redactor.redact(text).0
    }

    /// Replaces the secrets of this workspace in a value for display.
    pub fn redact_json(&self, value: Value) -> Value {
        self.environment.redactor.redact_json(value).0
    }

    /// The time of the workspace's clock, in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> i64 {
        self.environment.clock.now_ms()
    }
}

impl std::fmt::Debug for Quorate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Quorate").field("workspace", &self.environment.directory).finish_non_exhaustive()
    }
}

/// Configures a [`Quorate`]. [`Builder::build`] fails without [`Builder::workspace`].
#[must_use = "nothing is built before `build`"]
pub struct Builder {
    environment: Environment,
    workspace: Option<PathBuf>,
    in_memory: bool,
    config: Option<PathBuf>,
    trust: Trust,
    variables: Vec<(String, String)>,
    registries: Registries,
    /// The first extension that cannot be registered.
    refused: Option<String>,
}

impl Builder {
    /// The directory that relative paths start from; its `quorate.toml` and `council.yaml` are read if they exist.
    pub fn workspace(mut self, directory: impl Into<PathBuf>) -> Self {
        self.workspace = Some(directory.into());
        self
    }

    /// The ledger: a file, or `postgres://…` with the feature `postgres`. Default: the one `quorate.toml` names, else
    /// `.quorate/ledger.db`.
    pub fn ledger(mut self, ledger: impl Into<PathBuf>) -> Self {
        self.environment.ledger = Some(ledger.into());
        self
    }

    /// Keeps the ledger, its keys and its log in memory, in place of a file, as long as a clone of the workspace exists:
    /// nothing is written to the disk. On a system without `/dev/shm` they are in a private directory for temporary
    /// files.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::init::InitTemplate;
    /// use quorate::ports::Mode;
    /// use quorate::{Draft, Quorate};
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).ledger_in_memory().build()?;
    /// let board = quorate.init_manifest(".".as_ref(), InitTemplate::Assembly(Mode::Voting), "board")?;
    /// let proposal = Draft::of_text("# A second region\n\nResolution: open it.\n".to_owned(), None);
    /// let decision = quorate.convene(&board.done[0]).proposal(proposal).await?;
    /// assert!(quorate.show(&decision.run).await.is_ok());
    /// assert!(!dir.path().join(".quorate").exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ledger_in_memory(mut self) -> Self {
        self.in_memory = true;
        self
    }

    /// The council file, instead of the workspace's `council.yaml`.
    pub fn council(mut self, file: impl Into<PathBuf>) -> Self {
        self.config = Some(file.into());
        self
    }

    /// The directory for data that outlives a workspace: recorded trust, and copies of the last signed checkpoints,
    /// which detect a ledger that was rolled back. Without it, neither is kept.
    pub fn state_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.environment.state_dir = Some(directory.into());
        self
    }

    /// Whether commands that workspace files name may run.
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Asks a person whether to trust files that name commands. Without it, untrusted files are an error.
    pub fn consent(mut self, consent: impl Consent + 'static) -> Self {
        self.environment.trust = self.environment.trust.with_consent(Arc::new(consent));
        self
    }

    /// A user whose configuration files are used although another user runs this process, such as the one who called
    /// `sudo`.
    pub fn owner(mut self, user: u32) -> Self {
        self.environment.trusted_uids.push(user);
        self
    }

    /// The NATS servers of remote conversations and participants.
    pub fn nats(mut self, servers: NatsServers) -> Self {
        self.environment.nats = Some(servers);
        self
    }

    /// The user name that records carry.
    pub fn user(mut self, name: impl Into<String>) -> Self {
        self.environment.user = name.into();
        self
    }

    /// The clock; default: the system's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.environment.clock = clock;
        self
    }

    /// The variables that configurations may name, such as `QUORATE_SIGNING_KEY`; values of secret ones are redacted.
    /// Default: none. The process's own environment is never read.
    pub fn variables(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.variables.extend(variables);
        self
    }

    /// Registers an executor under a kind that manifests and `quorate.toml` can name.
    pub fn executor(self, kind: &str, executor: impl Executor + 'static) -> Self {
        let executor: Arc<dyn Executor> = Arc::new(executor);
        self.executor_with(kind, move |_| Ok(executor.clone()))
    }

    /// Registers an executor that is built from the settings of its table.
    pub fn executor_with(
        mut self,
        kind: &str,
        new: impl Fn(&Settings) -> Result<Arc<dyn Executor>, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        let added = self.registries.registry_mut().executor(kind, new);
        self.checked(added)
    }

    /// Registers a synthesis rule under a kind that assemblies can name.
    pub fn rule(mut self, kind: &str, rule: impl Rule + 'static) -> Self {
        let added = self.registries.add_rule(kind, Arc::new(rule));
        self.checked(added)
    }

    /// Registers a gather strategy for assemblies; its name begins with `custom:`.
    pub fn gather(mut self, strategy: &str, gather: impl Gather + 'static) -> Self {
        let added = self.registries.add_gather(strategy, Arc::new(gather));
        self.checked(added)
    }

    /// Registers the embedder that compares texts for assemblies with `matchMode: semantic`.
    pub fn embedder(mut self, embedder: impl Embedder + 'static) -> Self {
        self.registries.set_embedder(Arc::new(embedder));
        self
    }

    /// Registers a substrate under a kind that runtime manifests can name.
    pub fn substrate(
        mut self,
        kind: &str,
        new: impl Fn(&BuildContext<'_>) -> Result<Arc<dyn Substrate>, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        let added = registry::add(&mut self.registries.registry_mut().substrates, kind, new);
        self.checked(added)
    }

    /// Registers a dispatcher under a kind that runtime manifests can name.
    pub fn dispatcher(
        mut self,
        kind: &str,
        new: impl Fn(&BuildContext<'_>) -> Result<Arc<dyn Dispatcher>, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        let added = registry::add(&mut self.registries.registry_mut().dispatchers, kind, new);
        self.checked(added)
    }

    /// Registers a store for participants' memory under a kind that runtime manifests can name.
    pub fn state(
        mut self,
        kind: &str,
        new: impl Fn(&BuildContext<'_>) -> Result<Arc<dyn State>, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        let added = registry::add(&mut self.registries.registry_mut().states, kind, new);
        self.checked(added)
    }

    /// Adds a lifecycle listener that receives conversation events after the hooks of the manifest.
    pub fn lifecycle(mut self, lifecycle: impl Lifecycle + 'static) -> Self {
        self.registries.lifecycles.push(Arc::new(lifecycle));
        self
    }

    /// Keeps the reason why an extension was not registered.
    fn checked(mut self, added: Result<(), impl ToString>) -> Self {
        if let Err(error) = added {
            self.refused.get_or_insert_with(|| error.to_string());
        }
        self
    }

    /// Builds the workspace and validates its configuration.
    ///
    /// # Errors
    /// If no workspace was named, a kind was registered twice, or the configuration is invalid.
    ///
    /// ```
    /// use quorate::{ErrorKind, Quorate};
    ///
    /// let dir = tempfile::tempdir()?;
    /// std::fs::write(dir.path().join("quorate.toml"), "ledgre = 'here.db'\n")?;
    /// let error = Quorate::builder().workspace(dir.path()).build().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Configuration);
    /// assert!(error.to_string().contains("`ledger`"), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build(self) -> Result<Quorate, Error> {
        self.assemble()?.with_read_redaction()
    }

    /// Builds the workspace, and leaves the validation of its configuration to each call. Texts for display are redacted as the
    /// configuration says; if it is invalid, by the built-in rules.
    ///
    /// # Errors
    /// If no workspace was named, or a kind was registered twice, or a ledger in memory cannot be created.
    pub fn build_unvalidated(self) -> Result<Quorate, Error> {
        Ok(self.assemble()?.with_its_redaction())
    }

    fn assemble(self) -> Result<Quorate, Error> {
        let directory = self
            .workspace
            .ok_or_else(|| Error::invalid_request("no workspace was named: `Builder::workspace`"))?;
        if let Some(refused) = self.refused {
            return Err(Error::invalid_request(refused));
        }
        let mut environment = self.environment.with_variables(self.variables.into_iter().collect());
        environment.directory = absolute(&directory)?;
        environment.registries = Arc::new(self.registries);
        environment.inventory = Some(trust::decide::inventory_of_workspace);
        if self.in_memory {
            let memory = memory_directory()?;
            environment.ledger = Some(memory.path().join("ledger/ledger.db"));
            environment.memory = Some(Arc::new(memory));
            environment.keeps_ledgers = false;
        }
        if self.trust == Trust::Workspace {
            environment.trust = environment.trust.trusting_all();
        }
        let places = PathOverrides { config: self.config, ledger: None };
        Ok(Quorate { environment, places, root: None, held: None })
    }
}

/// A private directory in memory, if the system has one.
fn memory_directory() -> Result<TempDir, Error> {
    let created = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    created.map_err(|error| Error::invalid_request(format!("cannot keep a ledger in memory: {error}")))
}

/// Makes the workspace absolute, since the process's working directory may change.
fn absolute(directory: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(directory).map_err(|error| {
        Error::invalid_request(format!("cannot open the workspace `{}`: {error}", directory.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::trust::requests::ConsentAnswer;

    /// A workspace with this `quorate.toml`, and a program that has a secret variable.
    #[expect(clippy::disallowed_methods, reason = "a test's own file")]
    fn workspace(settings: &str, secret: &str) -> (TempDir, Quorate) {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("quorate.toml"), settings).expect("a file");
        let variables = [("SHOP_TOKEN".to_owned(), secret.to_owned())];
        let quorate = Quorate::builder().workspace(dir.path()).variables(variables).build().expect("valid");
        (dir, quorate)
    }

    #[test]
    fn two_workspaces_share_neither_secrets_nor_settings() {
        // X10
        let (_first, first) = workspace("", "q7Rz2Xk9Vb4Tn6Ww");
        let (second_dir, second) = workspace("[redact]\nbuiltin = false\n", "m3Lp8Yd5Hc1Js0Gf");
        let text = "q7Rz2Xk9Vb4Tn6Ww, m3Lp8Yd5Hc1Js0Gf, password=hunter2Xy9";
        let of_first = "[REDACTED], m3Lp8Yd5Hc1Js0Gf, password=[REDACTED]";
        assert_eq!(first.redact_text(text), of_first);
        assert_eq!(second.redact_text(text), "q7Rz2Xk9Vb4Tn6Ww, [REDACTED], password=hunter2Xy9");
        // Another use reads the second configuration again, and the first keeps its own.
        second.choices().expect("valid");
        assert_eq!(first.redact_text(text), of_first);
        let moved = first.in_directory(second_dir.path());
        assert_eq!(moved.redact_text(text), "[REDACTED], m3Lp8Yd5Hc1Js0Gf, password=hunter2Xy9");
        assert_eq!(moved.with_built_in_redaction().redact_text(text), of_first);
    }

    /// A person who must not be asked.
    struct Never;

    impl Consent for Never {
        fn ask(&self, lines: &[String]) -> std::io::Result<ConsentAnswer> {
            panic!("a person was asked about {lines:?}")
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test's own file")]
    fn nobody_is_asked_for_trust_to_redact_what_is_shown() {
        let dir = tempfile::tempdir().expect("a directory");
        let outside = tempfile::tempdir().expect("a directory");
        let ledger = outside.path().join("ledger.db");
        let settings = format!(
            "[ledger]\npath = {:?}\n[redact]\npatterns = ['zq[0-9]+']\n",
            ledger.display().to_string()
        );
        std::fs::write(dir.path().join("quorate.toml"), settings).expect("a file");
        let builder = || {
            Quorate::builder().workspace(dir.path()).state_dir(outside.path().join("state")).consent(Never)
        };
        let quorate = builder().build_unvalidated().expect("it is not validated");
        let moved = quorate.with_paths(None, Some("other.db".into())).in_directory(dir.path());
        assert_eq!(moved.redact_text("password=hunter2Xy9"), "password=[REDACTED]");
    }
}
