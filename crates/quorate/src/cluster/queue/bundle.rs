//! A bundle: a council or an assembly in the form that workers read. It contains everything except the executors, which the
//! worker's `quorate.toml` names. It is one redacted text, which all tasks of a batch share.

use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::budget::Caps;
use quorate_kernel::extensions::Extensions;
use quorate_kernel::record::RunOpened;
use quorate_manifest::assembly::load::Retention;
use quorate_manifest::assembly::{ResolvedAssembly, Signing};
use quorate_manifest::config::MAX_SAMPLES;
use quorate_manifest::keyring::Key;
use quorate_protocol::modes::council::ADJUDICATOR;
use quorate_protocol::{Json, Part, PartKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use crate::error::Error;
use crate::service::environment::Environment;
use crate::service::executor::{NamedExecutor, SelectedBy, SelectedExecutor};
use crate::service::redaction::Redaction;
use crate::service::run_spec::{
    Fingerprint, PreparedMember, ProtocolSetup, RunOptions, RunSpec, executor_settings,
};
use crate::service::workspace::Workspace;

/// The version of the format; a worker refuses others.
const VERSION: u32 = 1;

/// Whether a council or an assembly decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum BundleKind {
    Council,
    Assembly,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Bundle {
    version: u32,
    pub(super) kind: BundleKind,
    setup: Json,
    setup_redactions: usize,
    /// The fingerprint without the executors.
    fingerprint: Fingerprint,
    members: Vec<Member>,
    /// Whether the assembly compares meanings, for which the worker needs `[meaning]` or `[embedder]`.
    compares: bool,
    caps: Caps,
    executor: Option<String>,
    /// The fields of the runs' first record that all tasks share.
    pub(super) opened: RunOpened,
    /// How an assembly's runs are signed and kept. For a council, the worker's `quorate.toml` decides.
    audit: Option<Audit>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Member {
    id: String,
    role: String,
    prompt: String,
    persona: Option<Json>,
    context: Vec<(String, String)>,
    weight: Option<f64>,
    /// The executor's name in `quorate.toml`.
    executor: String,
    /// How many times it is asked for each answer; `None` for once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    samples: Option<u32>,
    /// `None` for the executor's timeout.
    timeout_ms: Option<u64>,
    /// Fields that are recorded with each answer.
    extra_fields: Map<String, Json>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Audit {
    /// Whether the runs are signed.
    pub(super) signing: Signing,
    /// The keys that governance binds; `None` for the worker's keyring.
    pub(super) keys: Option<Vec<Key>>,
    pub(super) retention_days: Option<u32>,
    pub(super) keep_consultations: bool,
}

impl Bundle {
    /// The bundle of a spec. `opened` has the shared fields of the runs' first record.
    ///
    /// # Errors
    /// If a worker cannot look up an executor or a model by name.
    pub(super) fn of<S: ProtocolSetup>(
        kind: BundleKind,
        spec: &RunSpec<S>,
        workspace: &Workspace,
        opened: RunOpened,
        audit: Option<Audit>,
    ) -> Result<Bundle, Error> {
        let options = &spec.options;
        let is_council = kind == BundleKind::Council;
        let by_files = is_council && options.executor.is_none();
        if by_files && workspace.council.runtimes().next().is_some() {
            return Err(super::invalid(
                "cannot queue `runtime` of council.yaml: a worker does not run commands of another machine",
                "name an executor with `--executor NAME` that is a table of quorate.toml, here and on the workers",
            ));
        }
        let mut settings = workspace.config.council.members.values().chain(workspace.council.settings());
        if options.model.is_some() || (by_files && settings.any(|member| member.model.is_some())) {
            return Err(super::invalid(
                "cannot name a model for a queued run: a worker asks the models of its own quorate.toml",
                "name an executor with `--executor NAME` whose table has this `model`, here and on the workers",
            ));
        }
        // Workers know the lists of tables, and not those of members.
        let has_own_list = |member: &PreparedMember| {
            let table = workspace.config.executors.get(&*member.executor.name);
            let listed = table.into_iter().flat_map(|table| table.fallback.iter().flatten());
            let stand_ins = member.executor.stand_ins.iter().map(|stand_in| &*stand_in.name);
            !stand_ins.eq(listed.map(|(name, _)| &**name))
        };
        if spec.members.iter().any(has_own_list) {
            return Err(super::invalid(
                "cannot queue the `fallback` of a member: a worker asks the executors of its own quorate.toml",
                "set `fallback` in the executor's table of quorate.toml, here and on the workers",
            ));
        }
        let redactor = &spec.redaction.redactor;
        let member = |member: &PreparedMember| {
            let of_assembly = (!is_council).then_some(member.timeout);
            let timeout = options.timeout.or(of_assembly);
            let context = member
                .context
                .iter()
                .map(|part| (redactor.redact(&part.name).0, redactor.redact(&part.text).0));
            Member {
                id: member.id.to_string(),
                role: redactor.redact(&member.role).0,
                prompt: redactor.redact(&member.prompt).0,
                persona: member.persona.as_ref().map(|persona| redactor.redact_json((**persona).clone()).0),
                context: context.collect(),
                weight: member.weight,
                executor: member.executor.name.to_string(),
                samples: Some(member.executor.samples).filter(|samples| *samples > 1),
                timeout_ms: timeout.map(|timeout| timeout.as_millis().try_into().unwrap_or(u64::MAX)),
                extra_fields: member.composition_fields(),
            }
        };
        let mut opened = opened;
        spec.redaction.redact_run_opened(&mut opened);
        Ok(Bundle {
            version: VERSION,
            kind,
            setup: json!(spec.setup),
            setup_redactions: spec.setup_redactions,
            fingerprint: spec.fingerprint.clone().with_executors(None),
            members: spec.members.iter().map(member).collect(),
            compares: spec.meaning.is_some(),
            caps: spec.caps,
            executor: options.executor.clone(),
            opened,
            audit,
        })
    }

    /// How an assembly's runs are signed and kept; always `None` for a council, even if the text has a value.
    pub(super) fn audit(&self) -> Option<&Audit> {
        self.audit.as_ref().filter(|_| self.kind == BundleKind::Assembly)
    }

    /// Parses the text of a bundle.
    ///
    /// # Errors
    /// If the text is not a bundle, or has another version.
    pub(super) fn parse(text: &str) -> Result<Bundle, Error> {
        let invalid = |why: String| {
            let message = format!("cannot read a queued council: {why}");
            super::invalid(message, "use the same version of Quorate to queue tasks and on the workers")
        };
        let bundle: Bundle = serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
        match bundle.version {
            VERSION => Ok(bundle),
            other => {
                Err(invalid(format!("its format has version {other}, and this program reads {VERSION}")))
            }
        }
    }

    /// Identifies the council together with its executors. Equal bundles have equal identities.
    pub(super) fn identity(&self) -> String {
        let executors = self.members.iter().map(|member| match member.samples {
            Some(samples) => json!([member.executor, samples]),
            None => json!(member.executor),
        });
        json!([self.fingerprint.combined(), executors.collect::<Json>()]).to_string()
    }

    /// The spec of its runs, with the executors of this machine's `quorate.toml`.
    ///
    /// # Errors
    /// If an executor, or what compares meanings, is missing, or refuses its settings.
    pub(super) fn spec<S: ProtocolSetup + DeserializeOwned>(
        &self,
        environment: &Environment,
        workspace: &Workspace,
    ) -> Result<RunSpec<S>, Error> {
        let setup = serde_json::from_value(quorate_kernel::canonical::normalize(self.setup.clone()));
        let setup: S = setup.map_err(|error| {
            let body = Body::new(format!("cannot read a queued council: {error}"));
            Error::configuration(codes::QUEUE_INVALID, body)
        })?;
        self.check_fingerprint(&setup)?;
        self.check_members(&workspace.redaction)?;
        let configured = self.compares.then(|| workspace.executors().configured_meaning());
        let meaning = configured.transpose()?.flatten();
        if self.compares && meaning.is_none() {
            return Err(super::invalid(
                "the queued assembly compares meanings, and this worker has neither `[meaning]` nor `[embedder]`",
                "add the table [meaning] to the worker's quorate.toml",
            ));
        }
        let members = self.members.iter().map(|member| member.prepare(workspace));
        let members = members.collect::<Result<Vec<_>, Error>>()?;
        Ok(RunSpec {
            setup,
            fingerprint: self
                .fingerprint
                .clone()
                .with_executors(Some(&executor_settings(&members, meaning.as_ref()))),
            members,
            redaction: workspace.redaction.clone(),
            setup_redactions: self.setup_redactions,
            report: Report::new(),
            extensions: match self.kind {
                BundleKind::Council => Extensions::default(),
                BundleKind::Assembly => environment.registries.extensions(),
            },
            meaning,
            caps: self.caps,
            wall: workspace.config.budget.wall,
            options: RunOptions { executor: self.executor.clone(), ..RunOptions::default() },
            shared: None,
        })
    }
}

impl Bundle {
    /// Refuses a setup that differs from the fingerprint: its verdict would count as the verdict of another council.
    fn check_fingerprint<S: ProtocolSetup>(&self, setup: &S) -> Result<(), Error> {
        let changed = self.fingerprint.changed_rules(&self.setup, setup.protocol()?.version());
        if changed.is_empty() {
            return Ok(());
        }
        let message =
            format!("cannot use a queued council: changed since it was queued: {}", changed.join(", "));
        let body = Body::new(message).help("queue the text again with `--force`");
        Err(Error::configuration(codes::FINGERPRINT_CHANGED, body))
    }

    /// Refuses members that differ from the setup's: the run could not be executed.
    fn check_members(&self, redaction: &Redaction) -> Result<(), Error> {
        let id = |value: &Json| value.as_str().or_else(|| value["id"].as_str()).map(str::to_owned);
        let list = |key: &str| self.setup[key].as_array().into_iter().flatten().filter_map(id);
        let mut wanted: Vec<String> = match self.kind {
            BundleKind::Council => list("deliberators").chain([ADJUDICATOR.to_owned()]).collect(),
            BundleKind::Assembly => list("members").collect(),
        };
        let mut members: Vec<String> = self.members.iter().map(|member| member.id.clone()).collect();
        redaction.check_ids(members.iter().map(String::as_str))?;
        wanted.sort();
        members.sort();
        let is_repeated = members.windows(2).any(|pair| pair[0] == pair[1]);
        if wanted == members && !is_repeated && wanted.len() > 1 {
            return Ok(());
        }
        let message = "cannot read a queued council: its members differ from those of its setup";
        Err(super::invalid(message, super::REQUEUE))
    }
}

impl Member {
    fn prepare(&self, workspace: &Workspace) -> Result<PreparedMember, Error> {
        let mut executor = executor_of(workspace, &self.executor)?;
        executor.samples = self.samples.unwrap_or(1).clamp(1, MAX_SAMPLES);
        let context = self.context.iter();
        Ok(PreparedMember {
            id: self.id.as_str().into(),
            role: self.role.clone(),
            prompt: self.prompt.as_str().into(),
            persona: self.persona.clone().map(Arc::new),
            context: context
                .map(|(name, text)| Part::new(PartKind::Context, name.as_str(), text.as_str()))
                .collect(),
            weight: self.weight,
            timeout: self.timeout_ms.map_or(executor.timeout, Duration::from_millis),
            executor,
            composed: None,
            extra_fields: self.extra_fields.clone(),
        })
    }
}

/// Looks up an executor of this machine. A name that its `quorate.toml` lacks could be a command or an address that another
/// machine chooses, so it is refused.
fn executor_of(workspace: &Workspace, name: &str) -> Result<SelectedExecutor, Error> {
    let config = &workspace.config;
    let is_default = config.defaults.executor.as_ref().is_some_and(|(default, _)| default == name);
    if config.executors.contains_key(name) || is_default {
        let named = NamedExecutor { name, place: None, by: SelectedBy::File(&config.path()) };
        return workspace.executors().by_name(named, Map::new());
    }
    if workspace.registry.default_kind == Some(name) {
        return workspace.executors().fallback(Map::new());
    }
    let body =
        Body::new(format!("the task asks the executor `{name}`, which this worker's quorate.toml lacks"));
    let help = format!("add the table [executors.{name}] to the worker's quorate.toml");
    Err(Error::configuration(codes::KIND_UNKNOWN, body.help(help)))
}

impl Audit {
    /// The audit settings of an assembly.
    pub(super) fn of(resolved: &ResolvedAssembly) -> Audit {
        let audit = &resolved.audit;
        Audit {
            signing: audit.signing,
            keys: resolved.policies.effective_keys(),
            retention_days: audit.retention_days,
            keep_consultations: audit.consultations == Retention::Full,
        }
    }
}
