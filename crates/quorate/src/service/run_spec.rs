//! A run of any protocol: its options, members and limits, its producer and fingerprint, its first record, and how
//! it is started and resumed.
//!
//! The fingerprint hashes the configuration. A resume compares it, and a sweep uses it to find artifacts that this
//! council has already judged.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::attempts::{MemberConfig, SharedAnswers};
use quorate_kernel::budget::Caps;
use quorate_kernel::driver::{Opening, RunConfig};
use quorate_kernel::entropy::{self, sha256_hex};
use quorate_kernel::extensions::Extensions;
use quorate_kernel::history::History;
use quorate_kernel::observer::Observer;
use quorate_kernel::ports::ledger::LedgerError;
use quorate_kernel::record::{self, ExecutorUsed, HiddenText, Input, RunOpened, Spent};
use quorate_manifest::config::{ExecutorTable, Fallback, MemberSettings};
use quorate_manifest::loader::Refs;
use quorate_manifest::playbook;
use quorate_manifest::tree::reader::meant_or;
use quorate_manifest::workspace::{Scope, WorkspacePath};
use quorate_playbook::bind::{Binding, Subject};
use quorate_playbook::gate::Sketch;
use quorate_playbook::weave::Composition;
use quorate_protocol::modes::assembly::version;
use quorate_protocol::modes::council::{Setup, VERSION};
use quorate_protocol::{Json, Name, Part, Protocol, assembly};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use super::artifact::Artifact;
use super::budget;
use super::compose::{self, Sources};
use super::environment::Environment;
use super::error::Error;
use super::executor::{
    self, NamedExecutor, NamedModel, SelectedBy, SelectedExecutor, SelectedMeaning, with_model,
};
use super::finalize::{conclude, finalize};
use super::manifests::Manifests;
use super::redaction::Redaction;
use super::run_opened::{ensure_shown_artifact, seed};
use super::session::LedgerSession;
use super::signer::{KeySource, Signer};
use super::trust::{self, Permit};
use super::workspace::Workspace;
use crate::playbook::library::load_operator;

/// A protocol's setup, as `run.opened` records it.
pub(crate) trait ProtocolSetup: Serialize {
    /// A protocol in its initial state.
    ///
    /// # Errors
    /// If a locked trait cannot be matched.
    fn protocol(&self) -> Result<Box<dyn Protocol>, Error>;
}

/// A member with its executor and prompt.
#[derive(Clone)]
pub(crate) struct PreparedMember {
    pub id: Name,
    /// The display name of the role.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "only bundles of the queue contain it")
    )]
    pub role: String,
    pub prompt: Arc<str>,
    /// Its persona, in the form that executors read.
    pub persona: Option<Arc<Json>>,
    /// Documents that only this member sees.
    pub context: Vec<Part>,
    pub weight: Option<f64>,
    pub executor: SelectedExecutor,
    /// The deadline of an invocation.
    pub timeout: Duration,
    /// The sources of its prompt, if its persona is an operator's.
    pub composed: Option<Arc<(Sources, Composition)>>,
    /// The fields that are recorded with each of its answers besides its composition.
    pub extra_fields: Map<String, Json>,
}

impl PreparedMember {
    fn config(&self, permit: Permit) -> MemberConfig {
        let mut executor = self.executor.clone();
        // The member's own deadline applies to each stand-in.
        if self.timeout != executor.timeout {
            executor.limit_time(Some(self.timeout));
        }
        MemberConfig {
            samples: executor.samples,
            role: self.prompt.clone(),
            persona: self.persona.clone(),
            context: self.context.clone(),
            weight: self.weight,
            extra_fields: self.composition_fields(),
            ..executor.into_member_config(permit)
        }
    }

    /// The playbooks in its prompt, recorded with each of its answers.
    pub(crate) fn composition_fields(&self) -> Map<String, Json> {
        let mut fields = self.extra_fields.clone();
        let Some((sources, composed)) = self.composed.as_deref() else { return fields };
        fields.insert("woven".to_owned(), json!(sources.hashes(composed, &[])));
        if !composed.shadows.is_empty() {
            fields.insert("shadows".to_owned(), compose::shadows(&composed.shadows));
        }
        fields
    }
}

/// Builds the executors of a run's members; members with the same choice share one. A person's choice comes before
/// `quorate.toml`, which comes before the manifest (C11, Q1).
pub(crate) struct MemberExecutors<'w> {
    workspace: &'w Workspace,
    options: &'w RunOptions,
    /// The file of the council or the assembly.
    manifest: &'w Path,
    built: Vec<(Choice<'w>, SelectedExecutor)>,
}

/// The executor, model and stand-ins of a member.
#[derive(Clone, Copy)]
struct Choice<'w> {
    source: ExecutorSource<'w>,
    /// The model that replaces the executor's own.
    model: Option<NamedModel<'w>>,
    /// The list of stand-ins of the member or of its `runtime`, and the file that has it.
    fallback: Option<(&'w Fallback, &'w Path)>,
}

/// What an executor is built from.
#[derive(Clone, Copy)]
pub(crate) enum ExecutorSource<'w> {
    Named(NamedExecutor<'w>),
    /// A `runtime` of council.yaml.
    Runtime(&'w ExecutorTable),
    /// No executor is named.
    Unnamed,
}

impl<'w> MemberExecutors<'w> {
    /// # Errors
    /// If a client has chosen an executor that is not offered.
    pub(crate) fn new(
        workspace: &'w Workspace,
        options: &'w RunOptions,
        manifest: &'w Path,
    ) -> Result<Self, Error> {
        let chosen = options.executor.as_ref().filter(|_| options.offered_only);
        workspace.executors().ensure_offered(chosen)?;
        Ok(MemberExecutors { workspace, options, manifest, built: Vec::new() })
    }

    /// The executor of a member with these settings, the most specific first, each with its file. `otherwise` counts where
    /// neither these nor a person name one, before that of `[defaults]`.
    ///
    /// # Errors
    /// If the executor is unknown or refuses its settings.
    pub(crate) fn select(
        &mut self,
        settings: &[(&'w MemberSettings, &'w Path)],
        otherwise: Option<ExecutorSource<'w>>,
    ) -> Result<SelectedExecutor, Error> {
        let choice = self.choice(settings, otherwise);
        let mut executor = match self.built.iter().find(|(known, _)| known.is_same(&choice)) {
            Some((_, executor)) => executor.clone(),
            None => {
                let executor = choice.build(self.workspace, self.manifest)?;
                self.built.push((choice, executor.clone()));
                executor
            }
        };
        executor.samples = settings.iter().find_map(|(own, _)| own.samples).unwrap_or(1);
        Ok(executor)
    }

    /// A model counts unless a place before its file names the executor.
    fn choice(
        &self,
        settings: &[(&'w MemberSettings, &'w Path)],
        otherwise: Option<ExecutorSource<'w>>,
    ) -> Choice<'w> {
        let (options, config) = (self.options, &self.workspace.config);
        let host = self.workspace.config_path.as_deref().unwrap_or(&config.dir);
        let person = options.executor.as_deref().map(NamedExecutor::by_person);
        let files = || settings.iter().copied().filter(|_| person.is_none());
        let by_file =
            || files().find_map(|(of, file)| Some(NamedExecutor::by_file(of.executor.as_ref()?, file)));
        let default = || config.defaults.executor.as_ref().map(|named| NamedExecutor::by_file(named, host));
        let named = person.or_else(by_file).map(ExecutorSource::Named).or(otherwise);
        let source =
            named.or_else(|| default().map(ExecutorSource::Named)).unwrap_or(ExecutorSource::Unnamed);
        let first = files().find(|(of, _)| of.executor.is_some() || of.model.is_some());
        let model = first
            .and_then(|(of, file)| NamedModel::by_file(of, Some(file).filter(|file| *file == self.manifest)));
        let by_runtime = || match source {
            ExecutorSource::Runtime(table) => Some((table.fallback.as_ref()?, self.manifest)),
            ExecutorSource::Named(_) | ExecutorSource::Unnamed => None,
        };
        let listed = files().find_map(|(of, file)| Some((of.fallback.as_ref()?, file)));
        Choice {
            source,
            model: options.model.as_deref().map(NamedModel::by_person).or(model),
            fallback: listed.or_else(by_runtime),
        }
    }
}

impl Choice<'_> {
    /// Whether members with these choices share an executor.
    fn is_same(&self, other: &Choice<'_>) -> bool {
        let has_same_source = match (self.source, other.source) {
            (ExecutorSource::Named(one), ExecutorSource::Named(other)) => {
                (one.name, one.by) == (other.name, other.by)
            }
            (ExecutorSource::Runtime(one), ExecutorSource::Runtime(other)) => std::ptr::eq(one, other),
            (ExecutorSource::Unnamed, ExecutorSource::Unnamed) => true,
            _ => false,
        };
        let same_model = self.model.map(|model| (model.name, model.council))
            == other.model.map(|model| (model.name, model.council));
        let names = |list: &Fallback| list.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let same_fallback =
            self.fallback.map(|(list, _)| names(list)) == other.fallback.map(|(list, _)| names(list));
        has_same_source && same_model && same_fallback
    }

    fn build(self, workspace: &Workspace, manifest: &Path) -> Result<SelectedExecutor, Error> {
        let executors = workspace.executors();
        let build = |extra: Map<String, Json>| match self.source {
            ExecutorSource::Named(named) => executors.by_name(named, extra),
            ExecutorSource::Runtime(table) => {
                let mut table = table.clone();
                table.block.json.extend(extra);
                executor::by_runtime(executors.registry, &table, &workspace.council.dir, manifest)
            }
            ExecutorSource::Unnamed => executors.fallback(extra),
        };
        let selected = with_model(self.model, build)?;
        match self.fallback {
            Some((list, file)) => selected.with_fallback(list, executors, SelectedBy::File(file)),
            None => Ok(selected),
        }
    }
}

/// Everything a run needs before it starts.
#[derive(Clone)]
pub(crate) struct RunSpec<S> {
    pub setup: S,
    /// The members, in roster order.
    pub members: Vec<PreparedMember>,
    pub redaction: Redaction,
    /// The number of secrets redacted in the setup.
    pub setup_redactions: usize,
    /// Problems that keep playbooks out of prompts, but do not stop the run.
    pub report: Report,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) extensions: Extensions,
    /// What compares meanings in the workspace, if the run needs it.
    pub(crate) meaning: Option<SelectedMeaning>,
    pub(crate) caps: Caps,
    pub(crate) wall: Option<Duration>,
    pub(crate) options: RunOptions,
    /// The answers that its runs share with others.
    pub(crate) shared: Option<Arc<SharedAnswers>>,
}

/// A new run's input, and its protocol's fields for the first record.
pub(crate) struct NewRun<'a> {
    /// The amount that its budget paid before it was opened.
    pub spent_before: Spent,
    pub artifact: Cow<'a, Artifact>,
    /// The artifact as members see it.
    pub part: Part,
    /// The number of secrets redacted in these texts.
    pub redactions: usize,
    pub signer: Signer,
    /// The fields that are specific to runs of this protocol.
    pub opened: RunOpened,
    /// What the prompts' nonce follows from; `None` for a random one. Runs share answers only if they have the same.
    pub seed: Option<[u8; 32]>,
}

impl<S: ProtocolSetup> RunSpec<S> {
    /// A run with these members in a workspace, without extensions and with nothing to report.
    pub(super) fn new(
        workspace: &Workspace,
        options: &RunOptions,
        setup: S,
        members: Vec<PreparedMember>,
        fingerprint: Fingerprint,
    ) -> Self {
        RunSpec {
            setup,
            members,
            redaction: workspace.redaction.clone(),
            setup_redactions: 0,
            report: Report::new(),
            fingerprint,
            extensions: Extensions::default(),
            meaning: None,
            caps: options.caps_within(budget::configured(&workspace.config)),
            wall: workspace.config.budget.wall,
            options: options.clone(),
            shared: None,
        }
    }

    /// The same run, which shares these answers with others.
    #[must_use]
    pub(crate) fn sharing(&self, answers: &Arc<SharedAnswers>) -> Self
    where
        S: Clone,
    {
        RunSpec { shared: Some(Arc::clone(answers)), ..self.clone() }
    }

    /// The fingerprint with an input, given the SHA-256 of its bytes.
    pub(crate) fn fingerprint(&self, input_sha256: &str) -> Fingerprint {
        self.fingerprint.clone().with_input(input_sha256)
    }

    /// Requests trust for all executors at once, and for what compares meanings.
    ///
    /// # Errors
    /// If a file that names an executor is not trusted, an executor's program is not installed, or a cap cannot be
    /// enforced.
    pub(crate) fn admit(&self, environment: &Environment) -> Result<Permit, Error> {
        let needs = self.members.iter().flat_map(|member| member.executor.needs());
        let needs =
            needs.chain(self.meaning.as_ref().map(SelectedMeaning::needs).unwrap_or_default()).collect();
        let permit = trust::admit(environment, needs)?;
        for PreparedMember { executor, .. } in &self.members {
            executor.ensure_installed()?;
            executor.ensure_enforceable(&self.caps)?;
        }
        if let Some(meaning) = &self.meaning {
            meaning.ensure_installed()?;
            meaning.ensure_enforceable(&self.caps)?;
        }
        Ok(permit)
    }

    /// The reason why a run would ask no member now, or not all of them: what [`admit`](Self::admit) refuses, or fewer calls
    /// than it needs. Asks no person.
    pub(crate) fn obstacle(&self, environment: &Environment, calls: u64) -> Option<String> {
        let silent = Environment { trust: environment.trust.without_asking(), ..environment.clone() };
        if let Err(refused) = self.admit(&silent) {
            return Some(format!("A run is refused now: {}.", refused.first_message()));
        }
        let most = self.caps.calls.filter(|most| u64::from(*most) < calls)?;
        Some(format!("The budget allows {most} of the {calls} calls: the members after them are not asked."))
    }

    /// Runs it to its end, finalizes it, and returns its history.
    ///
    /// # Errors
    /// If the ledger fails. Recorded answers stay, and the run can be resumed.
    pub(crate) async fn start(
        &self,
        session: &LedgerSession,
        new: NewRun<'_>,
        permit: Permit,
        observer: Arc<dyn Observer>,
    ) -> Result<History, Error> {
        let run = entropy::run_id();
        let _guard = session.acquire_run(&run).await?;
        self.record_compositions(session).await?;
        self.start_as(&run, session, new, permit, observer).await
    }

    /// Records the compositions of the members' prompts, and warns of omitted playbooks.
    pub(crate) async fn record_compositions(&self, session: &LedgerSession) -> Result<(), Error> {
        session.absorb(self.report.clone());
        for (sources, composed) in self.members.iter().filter_map(|member| member.composed.as_deref()) {
            sources.record(&session.store, composed, session.environment.clock.now_ms()).await?;
        }
        Ok(())
    }

    /// Runs a new run, whose guard the caller holds, to its end, and finalizes it. Returns its history.
    ///
    /// # Errors
    /// As [`RunSpec::start`].
    pub(crate) async fn start_as(
        &self,
        run: &Name,
        session: &LedgerSession,
        new: NewRun<'_>,
        permit: Permit,
        observer: Arc<dyn Observer>,
    ) -> Result<History, Error> {
        let seed = new.seed.unwrap_or_else(entropy::bytes);
        let caps = self.caps.less(&new.spent_before);
        let opened = self.run_opened(session, &new, caps, &seed)?;
        session.start_signing(run, new.signer);
        let opening = Opening { opened, inputs: vec![new.part] };
        let config = self.run_config(session, run, (caps, seed), permit, observer)?;
        let records = config.open(opening).await?;
        conclude(session, History::from_records(run, records)?).await
    }

    /// Continues a run whose guard the caller holds, finalizes it, and returns its history.
    ///
    /// # Errors
    /// If its input is not its artifact, a text was erased, or the ledger fails.
    pub(crate) async fn resume(
        &self,
        session: &LedgerSession,
        mut history: History,
        keys: KeySource,
        permit: Permit,
        observer: Arc<dyn Observer>,
    ) -> Result<History, Error> {
        let run = history.run.clone();
        ensure_shown_artifact(&history)?;
        if !session.resume_signing(&mut history, keys).await? {
            return Err(LedgerError::Conflict { run }.into());
        }
        let inputs = session.load_inputs(&history).await?;
        let seed = seed(&history)?;
        let superseded = match history.outcome() {
            Some(_) => history.reopen(inputs.clone(), &mut *self.setup.protocol()?),
            None => Vec::new(),
        };
        let config = self.run_config(session, &run, (self.caps, seed), permit, observer)?;
        config.resume(&history, inputs, superseded).await?;
        finalize(session, &run).await
    }

    fn member_config(&self, member: &PreparedMember, permit: Permit) -> MemberConfig {
        MemberConfig { shared: self.shared.clone(), ..member.config(permit) }
    }

    /// The kernel's run config.
    fn run_config(
        &self,
        session: &LedgerSession,
        run: &Name,
        (caps, seed): (Caps, [u8; 32]),
        permit: Permit,
        observer: Arc<dyn Observer>,
    ) -> Result<RunConfig, Error> {
        Ok(RunConfig {
            run: run.clone(),
            seed,
            protocol: self.setup.protocol()?,
            members: self
                .members
                .iter()
                .map(|member| (member.id.clone(), self.member_config(member, permit)))
                .collect(),
            caps,
            wall: self.wall,
            redactor: self.redaction.redactor.clone(),
            extensions: match &self.meaning {
                Some(meaning) => {
                    Extensions { meaning: Some(meaning.meaning(permit)), ..self.extensions.clone() }
                }
                None => self.extensions.clone(),
            },
            ledger: session.ledger(),
            clock: session.environment.clock.clone(),
            observer,
        })
    }

    /// The first record of the run.
    fn run_opened(
        &self,
        session: &LedgerSession,
        new: &NewRun<'_>,
        caps: Caps,
        seed: &[u8; 32],
    ) -> Result<RunOpened, Error> {
        let path = |path: Option<&Path>| path.map(|path| path.to_string_lossy().into_owned());
        let NewRun { artifact, part, .. } = new;
        // The configuration's files on the machine that happens to run a queued run are not recorded.
        let is_local = new.opened.queued.is_none();
        let artifact_path =
            path(artifact.path.as_deref()).filter(|path| self.redaction.redactor.redact(path).1 == 0);
        let mut opened = RunOpened {
            protocol: self.setup.protocol()?.version().to_owned(),
            program: concat!("quorate/", env!("CARGO_PKG_VERSION")).to_owned(),
            setup: json!(self.setup),
            fingerprint: self.fingerprint(&artifact.sha256).recorded(),
            seed: entropy::hex(seed),
            subject: Some(part.name.to_string()),
            artifact_path,
            artifact_sha256: Some(artifact.sha256.clone()),
            inputs: vec![Input {
                kind: part.kind.as_str().to_owned(),
                name: part.name.to_string(),
                sha256: entropy::sha256_hex(part.text.as_bytes()),
            }],
            redactions: (new.redactions + self.setup_redactions) as u64,
            hidden: Some(artifact.hidden.clone()).filter(|hidden| *hidden != HiddenText::default()),
            executors: executors_used(self.members.iter().map(|member| &member.executor)),
            stand_ins: executors_used(self.members.iter().flat_map(|member| &member.executor.stand_ins)),
            executor: Some(self.options.executor.clone()),
            model: self.options.model.clone(),
            max_calls: caps.calls,
            max_tokens: caps.tokens,
            max_money: caps.money,
            config: path(session.workspace.council_path.as_deref().filter(|_| is_local)),
            host: path(session.workspace.config_path.as_deref().filter(|_| is_local)),
            producer: match &self.options.producer {
                Some(producer) => Some(producer.recorded(&part.text)),
                None => new.opened.producer.clone(),
            },
            ..new.opened.clone()
        };
        self.redaction.redact_run_opened(&mut opened);
        Ok(opened)
    }
}

/// What is recorded of executors, without duplicates.
fn executors_used<'a>(executors: impl Iterator<Item = &'a SelectedExecutor>) -> Vec<ExecutorUsed> {
    let mut used: Vec<ExecutorUsed> = Vec::new();
    for executor in executors {
        let about = executor.about();
        let executor = ExecutorUsed {
            name: executor.name.to_string(),
            kind: about.kind.to_string(),
            model: about.model,
            asks_a_model: about.asks_a_model,
            tools: executor.tools(),
        };
        if !used.contains(&executor) {
            used.push(executor);
        }
    }
    used
}

/// The settings that the fingerprint covers of executors and of what compares meanings.
pub(crate) fn executor_settings(members: &[PreparedMember], meaning: Option<&SelectedMeaning>) -> Json {
    let of_members = members.iter().map(|member| json!([&*member.id, member.executor.recorded_settings()]));
    match meaning {
        Some(meaning) => json!([of_members.collect::<Json>(), meaning.settings]),
        None => of_members.collect(),
    }
}

/// The component that the combined hash leaves out.
const INPUT: &str = "input";
/// The component of the executors' settings.
const EXECUTORS: &str = "executors";
/// The component of the protocol's setup.
const SETUP: &str = "setup";
/// The component of the protocol's version.
const MODE: &str = "mode";

/// Hashes by component, and the combined hash of all but the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    /// The combined hash's key: `council` or `assembly`.
    whole: String,
    components: Vec<(String, String)>,
}

impl Fingerprint {
    /// The fingerprint of a council, without an input; `executors` has each member's settings.
    pub(crate) fn of_council(workspace: &Workspace, setup: &Setup, executors: &Json) -> Self {
        let council = &workspace.council;
        let member = |deliberator: &quorate_manifest::council::Deliberator| {
            let context: Vec<_> = deliberator.context.iter().map(|file| (&file.path, &*file.text)).collect();
            json!({"id": &*deliberator.id, "prompt": &*deliberator.prompt.text, "weight": deliberator.weight, "context": context})
        };
        let prompts = json!({
            "deliberators": council.deliberators.iter().map(member).collect::<Vec<_>>(),
            "adjudicator": &*council.adjudicator.text,
        });
        let components = vec![
            ("prompts", hash(&prompts)),
            (SETUP, hash(&json!(setup))),
            (EXECUTORS, hash(executors)),
            ("redaction", hash(workspace.redaction.settings())),
            (MODE, VERSION.to_owned()),
        ];
        Fingerprint::new("council", components)
    }

    /// The fingerprint of an assembly, without an input. `manifest` has the texts of the chain's files, root first.
    pub(crate) fn of_assembly(
        workspace: &Workspace,
        manifest: &Json,
        setup: &assembly::Setup,
        members: &[PreparedMember],
        meaning: Option<&SelectedMeaning>,
    ) -> Self {
        let prompts = members.iter().map(|member| json!([&*member.id, &*member.prompt])).collect();
        let components = vec![
            ("manifest", hash(manifest)),
            ("prompts", hash(&prompts)),
            (SETUP, hash(&json!(setup))),
            (EXECUTORS, hash(&executor_settings(members, meaning))),
            ("redaction", hash(workspace.redaction.settings())),
            (MODE, version(setup.mode).to_owned()),
        ];
        Fingerprint::new("assembly", components)
    }

    fn new(whole: &'static str, components: Vec<(&'static str, String)>) -> Self {
        let owned = components.into_iter().map(|(name, value)| (name.to_owned(), value));
        Fingerprint { whole: whole.to_owned(), components: owned.collect() }
    }

    /// Adds the input, by the SHA-256 of its bytes.
    pub(crate) fn with_input(mut self, sha256: &str) -> Self {
        self.components.push((INPUT.to_owned(), sha256.to_owned()));
        self
    }

    /// Sets the protocol's setup.
    #[must_use]
    pub(crate) fn with_setup(mut self, setup: &Json) -> Self {
        let value = hash(setup);
        let of_setup = self.components.iter_mut().filter(|(name, _)| name == SETUP);
        of_setup.for_each(|(_, old)| old.clone_from(&value));
        self
    }

    /// The combined hash.
    pub(crate) fn combined(&self) -> String {
        let parts: Vec<_> = self.components.iter().filter(|(name, _)| name != INPUT).collect();
        hash(&json!(parts))
    }

    /// The form of `run.opened`.
    pub(crate) fn recorded(&self) -> Map<String, Json> {
        let named = self.components.iter().map(|(name, value)| (name.clone(), json!(value)));
        let whole = (self.whole.clone(), json!(self.combined()));
        named.chain([whole]).collect()
    }

    /// The components that differ from those of the opened run.
    pub(crate) fn changed_components(&self, opened: &RunOpened) -> Vec<&str> {
        let differs = |(name, value): &&(String, String)| opened.fingerprint_of(name) != Some(value);
        self.components.iter().filter(differs).map(|(name, _)| &**name).collect()
    }
}

/// A bundle of the queue is compared without what each worker configures.
#[cfg(all(feature = "cluster", feature = "postgres"))]
impl Fingerprint {
    /// Replaces the executors' settings; `None` leaves them out, because another machine decides about them.
    pub(crate) fn with_executors(mut self, settings: Option<&Json>) -> Self {
        let value = settings.map_or_else(String::new, hash);
        let executors = self.components.iter_mut().filter(|(name, _)| name == EXECUTORS);
        executors.for_each(|(_, old)| old.clone_from(&value));
        self
    }

    /// The components, of setup and protocol version, that differ from the given ones.
    pub(crate) fn changed_rules(&self, setup: &Json, version: &str) -> Vec<&'static str> {
        let now = [(SETUP, hash(setup)), (MODE, version.to_owned())];
        let is_named = |(name, value): &(&str, String)| {
            self.components.iter().any(|(component, recorded)| component == name && recorded == value)
        };
        now.into_iter().filter(|now| !is_named(now)).map(|(name, _)| name).collect()
    }
}

fn hash(value: &Json) -> String {
    let text = quorate_kernel::canonical::object(&quorate_kernel::attempts::object(json!({"of": value})));
    sha256_hex(text.as_bytes())
}

/// Options of a run; `None` falls back to the workspace's settings or, in a resume, to those of the opened run.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// The executor of all members.
    pub executor: Option<String>,
    /// Whether that executor must be one of [`crate::Choices`]: for clients that may choose neither a program nor an address.
    pub offered_only: bool,
    /// The executor's model.
    pub model: Option<String>,
    /// The limits on calls, tokens and money.
    pub caps: Caps,
    /// The most calls if neither these options nor the workspace limit the run.
    pub default_calls: Option<u32>,
    /// The deadline of each invocation.
    pub timeout: Option<Duration>,
    /// The producer of the run's subject.
    pub producer: Option<Producer>,
}

/// The methods that set the options of a run that has not started.
macro_rules! run_option_methods {
    () => {
        /// All options of the run at once.
        pub fn options(mut self, options: $crate::RunOptions) -> Self {
            self.request.options = options;
            self
        }

        /// The executor of all members, instead of the configured one.
        pub fn executor(mut self, name: impl Into<String>) -> Self {
            self.request.options.executor = Some(name.into());
            self
        }

        /// The maximum number of calls, re-prompts and retries included.
        pub fn max_calls(mut self, calls: u32) -> Self {
            self.request.options.caps.calls = Some(calls);
            self
        }

        /// The maximum number of tokens, of prompts and answers together. It is never exceeded: the maximum of each call is
        /// reserved before the call, which is not made if that is more than what is left.
        pub fn max_tokens(mut self, tokens: u64) -> Self {
            self.request.options.caps.tokens = Some(tokens);
            self
        }

        /// The maximum price of all calls. It is never exceeded, as with [`max_tokens`](Self::max_tokens). A model without a
        /// known price is an error before any call.
        pub fn max_money(mut self, money: quorate_manifest::money::Money) -> Self {
            self.request.options.caps.money = Some(money);
            self
        }
    };
}

pub(crate) use run_option_methods;

impl RunOptions {
    /// The limits of a run in a workspace with these configured ones.
    pub(crate) fn caps_within(&self, configured: Caps) -> Caps {
        match self.caps.or(configured) {
            caps if caps == Caps::default() => Caps { calls: self.default_calls, ..caps },
            caps => caps,
        }
    }

    /// The options of a resumed run: those that it was opened with, unless the caller gives others. A default limit is chosen
    /// where neither the caller nor the workspace limits it.
    pub(crate) fn resumed(&self, workspace: &Workspace, opened: &RunOpened) -> RunOptions {
        let (configured, recorded) = (budget::configured(&workspace.config), budget::recorded(opened));
        RunOptions {
            executor: self.executor.clone().or(opened.executor.clone().flatten()),
            model: self.model.clone().or(opened.model.clone()),
            caps: match self.default_calls {
                Some(_) if configured == Caps::default() => self.caps_within(configured).or(recorded),
                _ => self.caps.or(recorded),
            },
            ..self.clone()
        }
    }
}

/// An operator that produced an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Producer {
    /// Its slug.
    pub operator: String,
    /// The shadow playbooks in its prompt at the time.
    pub trying: Vec<String>,
}

impl Producer {
    /// The producer as the caller names it: a slug or a ref; `None` if it is not named.
    pub fn from_flags(made_by: Option<&str>, trying: &[String]) -> Option<Self> {
        let operator = made_by?;
        let slug = operator.rsplit('/').next().unwrap_or(operator);
        Some(Producer { operator: slug.to_owned(), trying: trying.to_vec() })
    }

    /// The record in `run.opened`, with a sketch of the artifact: a gate counts each artifact once.
    pub fn recorded(&self, made: &str) -> record::Producer {
        record::Producer {
            operator: self.operator.clone(),
            trying: self.trying.clone(),
            sketch: json!(Sketch::new(made)),
        }
    }
}

/// Refuses an unknown operator, and a playbook that does not exist or does not target it: such runs would never count,
/// without a warning. Looks them up in each scope in turn.
///
/// # Errors
/// A usage error with a suggestion.
pub(crate) fn check_producer(
    producer: &Producer,
    environment: &Environment,
    root: &Path,
    scopes: &[Scope],
) -> Result<(), Error> {
    let manifests = Manifests::open(environment, root, Refs::Followed)?;
    let loader = manifests.loader(&*environment.registries);
    let operators = |scope: &Scope| {
        let folder = scope.path(OPERATORS);
        WorkspacePath::new(&folder).map_or_else(|_| Vec::new(), |folder| loader.folder_names(&folder))
    };
    let is_here = |scope: &&Scope| operators(scope).contains(&producer.operator);
    let Some(scope) = scopes.iter().find(is_here) else {
        let known: Vec<String> = scopes.iter().flat_map(operators).collect();
        let help = "create operators/<slug>/OPERATOR.md, or correct the name";
        return Err(unknown(
            format!("unknown operator `{}`", producer.operator),
            &producer.operator,
            &known,
            help,
        ));
    };
    if producer.trying.is_empty() {
        return Ok(());
    }
    let operating = load_operator(&loader, scope, &format!("ws://operators/{}", producer.operator))?;
    let subject = Subject::from_operator(&operating.operator);
    let shelf = playbook::load_all(&loader, scope);
    let known: Vec<String> = shelf.playbooks.iter().map(|book| book.playbook.slug.clone()).collect();
    for slug in &producer.trying {
        let Some(book) = shelf.playbooks.iter().find(|book| book.playbook.slug == *slug) else {
            let help = "run `quorate playbook list` to see the available playbooks";
            return Err(unknown(format!("unknown playbook `{slug}`"), slug, &known, help));
        };
        if Binding::new(&book.playbook).matches(&subject).is_none() {
            let body = Body::new(format!("the playbook `{slug}` does not target `{}`", producer.operator));
            let help = format!("run `quorate playbook show {slug}` to see its targets");
            return Err(Error::usage(body.help(help)));
        }
    }
    Ok(())
}

const OPERATORS: &str = "operators";

fn unknown(message: String, written: &str, known: &[String], otherwise: &str) -> Error {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let help = meant_or(written, &known, || otherwise.to_owned());
    Error::usage(Body::new(message).help(help))
}

/// A resume asks the same members about the same text (X7).
///
/// # Errors
/// [`codes::FINGERPRINT_CHANGED`], with the components that changed since the run was opened.
pub(crate) fn ensure_unchanged(history: &History, now: &Fingerprint) -> Result<(), Error> {
    let changed = now.changed_components(&history.opened);
    if changed.is_empty() {
        return Ok(());
    }
    let message =
        format!("run {} cannot continue: changed since it was opened: {}", history.run, changed.join(", "));
    let body = Body::new(message).help("restore the changed files, or start a new run");
    Err(Error::configuration(codes::FINGERPRINT_CHANGED, body))
}
