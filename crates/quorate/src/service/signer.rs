//! The signer of a run (D3): the key, if any, that signs its records. It is chosen before any member is asked and named
//! in the run's first record, so that removed signatures are detected.

use std::sync::Arc;

use quorate_diagnostics::{Body, RefusalCode, Report, codes};
use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::Ledger as _;
use quorate_kernel::record::RunAudit;
use quorate_ledger::Store;
use quorate_ledger::signing::{KeyId, PublicKey, SecretKey, SigningContext, Voucher};
use quorate_manifest::assembly::load::Retention;
use quorate_manifest::assembly::{ResolvedAssembly, Signing};
use quorate_manifest::keyring::Key;
use quorate_protocol::Name;

use super::error::{Error, ErrorKind};
use super::keys::{self, SigningKey, WorkspaceKeys};

/// Whose signatures count for a resumed run.
#[derive(Debug, Clone)]
pub enum KeySource {
    /// The keys that its assembly binds now; `None` is the workspace's keyring.
    Resolved(Option<Vec<Key>>),
    /// The first record's choice: the workspace's current keyring, or the keys that governance bound then.
    Recorded,
}

/// The key that signs a run's records, if any, and the keys whose signatures count.
#[derive(Debug, Clone)]
pub struct Signer {
    signing: Signing,
    governed: bool,
    keyring: Vec<Arc<str>>,
    key: Option<Arc<SecretKey>>,
}

impl Signer {
    /// The signer of a new run. `bound` is the keys that governance binds; `None` is the workspace's keyring.
    ///
    /// # Errors
    /// If signatures are required and the keyring lets no key sign now, or a key or the keyring exists but is unusable.
    pub async fn new(
        keys: &WorkspaceKeys,
        signing: Signing,
        bound: Option<Vec<Key>>,
    ) -> Result<Signer, Error> {
        if signing == Signing::None {
            return Ok(Signer { signing, governed: false, keyring: Vec::new(), key: None });
        }
        let governed = bound.is_some();
        let ring = match bound {
            Some(keys) => keys,
            None => keys.load_keyring()?.keys,
        };
        let usable = usable_key(keys, &ring, keys.signing_key().await?);
        let key = match (usable, signing) {
            (Ok(key), _) => Some(key),
            (Err(why), Signing::Required) => return Err(key_missing(keys, governed, &why)),
            (Err(_), _) => None,
        };
        Ok(Signer { signing, governed, keyring: ring.into_iter().map(|key| key.public).collect(), key })
    }

    /// The signer of an assembly's new run.
    ///
    /// # Errors
    /// As [`Signer::new`], and if governance asks for approvals, which Quorate cannot check.
    pub async fn of_assembly(keys: &WorkspaceKeys, resolved: &ResolvedAssembly) -> Result<Signer, Error> {
        ensure_signable(resolved)?;
        Signer::new(keys, resolved.audit.signing, resolved.policies.effective_keys()).await
    }

    /// Signs the run's records from here on, if a key was chosen.
    pub fn sign(&self, store: &Store, run: &Name) {
        if let Some(key) = &self.key {
            store.sign_run(run, Arc::clone(key));
        }
    }

    /// Its field in the first record of an assembly's run.
    pub fn assembly_audit(&self, resolved: &ResolvedAssembly) -> RunAudit {
        let audit = &resolved.audit;
        self.audit(audit.retention_days, audit.consultations == Retention::Full)
    }

    /// Its field in the first record of another run; `None` for an unsigned run.
    pub fn run_audit(&self) -> Option<RunAudit> {
        (self.signing != Signing::None).then(|| self.audit(None, true))
    }

    /// Its field in the first record of a run with this retention.
    pub fn audit(&self, retention_days: Option<u32>, keep_consultations: bool) -> RunAudit {
        RunAudit {
            signing: self.signing.as_str().to_owned(),
            signer: self.key.as_ref().map(|key| key.public().id().to_string()),
            keyring: self.keyring.iter().map(ToString::to_string).collect(),
            governed: self.governed,
            retention_days,
            keep_consultations: Some(keep_consultations),
        }
    }

    /// Whether signatures are required.
    pub fn signing(&self) -> Signing {
        self.signing
    }

    /// The signer for appending to a run that began with signatures, with the vouchers to record first if its key is
    /// newer than the run; `None` for an unsigned run.
    ///
    /// # Errors
    /// If the run is signed, and no key may sign for it.
    pub async fn for_existing_run(
        keys: &WorkspaceKeys,
        store: &Store,
        history: &History,
        whose: KeySource,
    ) -> Result<Option<(Signer, Vec<Voucher>)>, Error> {
        if !store.is_signed(&history.run).await? {
            return Ok(None);
        }
        let mut all = keys::vouchers(&keys.load_keyring()?.keys);
        let bound = match whose {
            KeySource::Resolved(bound) => bound,
            KeySource::Recorded => recorded_keys(history, &keys.load_keyring()?.keys, &all),
        };
        all.extend(keys::vouchers(bound.as_deref().unwrap_or_default()));
        let signer = Signer::new(keys, Signing::Required, bound).await?;
        let (Some(key), Some(counting)) = (&signer.key, store.run_keys(&history.run).await?) else {
            return Ok(Some((signer, Vec::new())));
        };
        let id = key.public().id();
        match Voucher::chain_to(SigningContext::VOUCHER, id, counting.iter().copied(), &all) {
            Some(vouchers) => Ok(Some((signer, vouchers))),
            None => Err(unvouched(&history.run, id, &counting)),
        }
    }

    /// Signs a runtime's records as `[keys] sign` asks: from the beginning of its stream, or not at all.
    ///
    /// # Errors
    /// As [`Signer::new`]; if the stream is signed and no key may sign; and if it must be signed but began unsigned.
    pub async fn sign_stream(keys: &WorkspaceKeys, store: &Store, stream: &Name) -> Result<(), Error> {
        let signed = store.is_signed(stream).await?;
        if !signed && keys.signing_mode() == Signing::Required && !store.records(stream).await?.is_empty() {
            let body = Body::new(format!(
                "`[keys] sign` is required, but the stream {stream} began without signatures"
            ));
            let help = "record it in another ledger with `--ledger`, or write sign = \"optional\"";
            return Err(Error::configuration(codes::SIGNING_KEY_MISSING, body.help(help)));
        }
        let signing = if signed { Signing::Required } else { keys.signing_mode() };
        Signer::new(keys, signing, None).await?.sign(store, stream);
        Ok(())
    }
}

/// A key that the keyring lets sign now, or the reason why none may.
fn usable_key(keys: &WorkspaceKeys, ring: &[Key], found: SigningKey) -> Result<Arc<SecretKey>, String> {
    match found {
        SigningKey::Missing(why) => Err(why),
        SigningKey::Available(key, from) => {
            match keys::unusable_reason(&keys::to_keyring(ring), key.public().id(), keys.now_ms()) {
                None => Ok(key),
                Some(why) => Err(format!("{why}; it comes from {from}")),
            }
        }
    }
}

/// The problems that would keep `convene` from signing an assembly's run on this machine, as warnings for `check`. A
/// key that a command prints counts as available, since `check` runs no command.
pub(crate) fn signing_warnings(keys: &WorkspaceKeys, resolved: &ResolvedAssembly) -> Report {
    let mut report = Report::new();
    let Err(error) = ensure_supported(resolved).and_then(|()| ensure_key(keys, resolved)) else {
        return report;
    };
    let chain = &resolved.chain;
    for refusal in error.report.refusals {
        let mut body = Body::new(format!("`convene` refuses this assembly: {}", refusal.body.message));
        body.help = refusal.body.help;
        if let Some(node) = chain.merged.at_path(&["audit", "signing"]) {
            let document = chain.document_of(node);
            report.add_source(Arc::clone(&document.shown), Arc::clone(&document.text));
            body = body.at(chain.place(node, "audit.signing"));
        }
        report.warn(refusal.code.as_warning(), body);
    }
    report
}

/// Refuses required signatures that no available key can make.
fn ensure_key(keys: &WorkspaceKeys, resolved: &ResolvedAssembly) -> Result<(), Error> {
    let Some(found) = keys.signing_key_without_command()? else { return Ok(()) };
    let bound = resolved.policies.effective_keys();
    let governed = bound.is_some();
    let ring = match bound {
        Some(bound) => bound,
        None => keys.load_keyring()?.keys,
    };
    usable_key(keys, &ring, found).map(|_| ()).map_err(|why| key_missing(keys, governed, &why))
}

/// The refusal of a key that is newer than the run and that none of the run's keys vouches for.
fn unvouched(run: &Name, id: KeyId, counting: &[PublicKey]) -> Error {
    let names: Vec<String> = counting.iter().map(|key| key.id().to_string()).collect();
    let body = Body::new(format!(
        "cannot sign for run {run}: the key {id} is not in its keyring, and none of its keys vouches for it"
    ));
    let help = format!(
        "run `quorate keys vouch {id}` on a machine whose key signs it ({}), then use the keyring that it writes",
        names.join(", ")
    );
    Error::configuration(codes::SIGNING_KEY_MISSING, body.help(help))
}

/// The keys that governance bound a run to when it began, and those they vouch for; the workspace's keyring bounds
/// their times. `None` for a run without governance.
fn recorded_keys(history: &History, ring: &[Key], vouchers: &[Voucher]) -> Option<Vec<Key>> {
    let audit = history.opened.audit.as_ref().filter(|audit| audit.governed)?;
    let key = |text: &str| {
        let known = ring.iter().find(|key| &*key.public == text).cloned();
        known.or_else(|| PublicKey::from_text(text).ok().map(|_| unbounded_key(text)))
    };
    let mut bound: Vec<Key> = audit.keyring.iter().filter_map(|text| key(text)).collect();
    let counting: Vec<PublicKey> = bound.iter().filter_map(keys::public_key).collect();
    let came_later = ring.iter().filter(|key| {
        let public = keys::public_key(key).filter(|public| !counting.contains(public));
        public.is_some_and(|public| {
            Voucher::chain_to(SigningContext::VOUCHER, public.id(), counting.iter().copied(), vouchers)
                .is_some()
        })
    });
    bound.extend(came_later.cloned());
    Some(bound)
}

fn unbounded_key(text: &str) -> Key {
    let place = quorate_diagnostics::Place { file: "run.opened".into(), span: 0..0, path: String::new() };
    let bound = None;
    Key {
        public: text.into(),
        label: None,
        not_before_ms: bound,
        not_after_ms: bound,
        revoked_at_ms: bound,
        vouchers: Vec::new(),
        place,
    }
}

/// Governance that asks for approvals blocks a run: Quorate cannot check whether they were given.
///
/// # Errors
/// If it asks for approvals.
pub(crate) fn ensure_no_approvals(resolved: &ResolvedAssembly) -> Result<(), Error> {
    let policies = &resolved.policies;
    let asking = policies.files.iter().find_map(|file| Some((file, file.governance.approvals.clone()?)));
    let Some((bound, place)) = asking else { return Ok(()) };
    let body = Body::new(format!("{} asks for approvals, which this version cannot check", bound.file))
        .at(place)
        .related(bound.bound_at.clone(), "bound here")
        .help("check approvals elsewhere, for example in your forge, and leave `approvals` to that policy");
    Err(error_with_sources(resolved, codes::GOVERNANCE_UNCHECKED, body))
}

/// Refuses an assembly whose governance has requirements that Quorate cannot meet.
///
/// # Errors
/// If it asks for approvals, or requires signatures of another kind.
pub(crate) fn ensure_signable(resolved: &ResolvedAssembly) -> Result<(), Error> {
    ensure_no_approvals(resolved)?;
    ensure_supported(resolved)
}

/// Refuses required signatures if no key has a type that Quorate can sign with.
fn ensure_supported(resolved: &ResolvedAssembly) -> Result<(), Error> {
    let policies = &resolved.policies;
    let foreign =
        policies.files.iter().rev().find_map(|file| Some((file, file.governance.foreign_keys.first()?)));
    let (Signing::Required, Some((bound, place))) = (resolved.audit.signing, foreign) else { return Ok(()) };
    if policies.effective_keys().is_some_and(|keys| !keys.is_empty()) {
        return Ok(());
    }
    let body =
        Body::new(format!("`audit.signing` is required, but {} has no key of a supported type", bound.file))
            .at(place.clone())
            .related(bound.bound_at.clone(), "bound here")
            .help("add an Ed25519 key, as printed by `quorate keys export`");
    Err(error_with_sources(resolved, codes::ASSEMBLY_SIGNING_UNSUPPORTED, body))
}

/// A refusal with the source texts of the assembly and its governance.
fn error_with_sources(resolved: &ResolvedAssembly, code: RefusalCode, body: Body) -> Error {
    let mut report = Report::new();
    report.sources.extend(resolved.policies.report.sources.clone());
    for document in &resolved.chain.documents {
        report.add_source(Arc::clone(&document.shown), Arc::clone(&document.text));
    }
    report.refuse(code, body);
    Error::from_report(ErrorKind::Configuration, report)
}

fn key_missing(keys: &WorkspaceKeys, governed: bool, why: &str) -> Error {
    let body = Body::new(format!("cannot sign the records, although signatures are required: {why}"));
    let ring =
        if governed { "the governance file".to_owned() } else { keys.display_path(&keys.keyring_path()) };
    let help = format!(
        "run `quorate keys init` to make a key, or `quorate keys list` to see the available keys; its public half must be in {ring}"
    );
    Error::configuration(codes::SIGNING_KEY_MISSING, body.help(help))
}
