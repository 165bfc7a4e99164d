//! Verifies the ledger against its chain, its own key, trusted keys, a witness, and the log, and the workspace's
//! conversations against the ledger (D15). Writes nothing.

use std::path::Path;

use quorate_diagnostics::{Body, Report as Diagnostics, codes};
use quorate_kernel::ports::ledger::Ledger as _;
use quorate_ledger::Store;
use quorate_ledger::keys::KeyPurpose;
use quorate_ledger::local_checkpoints::CheckpointFiles;
use quorate_ledger::note::{Checkpoint, Note, Verifier};
use quorate_ledger::prove::TrustedKey;
use quorate_ledger::signing::{ExternalKeys, Keyring, PublicKey, SecretKey};
use quorate_ledger::store::STREAM;
use quorate_ledger::verify::{
    self, Divergence, DivergenceKind, KeyChangeReport, LedgerPart, StartPoint, VerifyError, VerifyOptions,
    VerifyReport,
};
use quorate_ledger::witness::Witness;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::confined::Root;
use super::super::disk::{self, absolute, display_ledger, display_path};
use super::super::environment::Environment;
use super::super::error::{Error, ErrorKind, error_chain};
use super::super::keys::WorkspaceKeys;
use super::super::runs::missing_ledger;
use super::super::runtime::{self, conversation};
use super::super::session::LedgerSession;
use super::super::trust::requests::Trust;
use super::super::witness::Witness as Configured;
use super::super::workspace::{self, PathOverrides, Workspace, find_root};
use super::super::{sealing, talks};
use crate::session::Outcome;

/// What a verification compares the ledger with, besides its own keys, its log and the configured witness.
#[derive(Debug, Clone, Default)]
pub struct VerifyRequest {
    /// A trusted checkpoint, so that only later records are verified: a number of records, `ledger/<n>`, or a file with a
    /// signed checkpoint.
    pub since: Option<String>,
    /// A file of checkpoints in place of the configured witness.
    pub witness: Option<String>,
    /// Keys that must have signed a checkpoint: verifiers' lines, public keys, or files of these.
    pub keys: Vec<String>,
    /// Whether unsigned and unsealed records are divergences, and so is the lack of a local checkpoint.
    pub strict: bool,
}

/// The result of a verification.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Verification(pub VerifyReport);

/// Verifies the ledger of the working directory.
///
/// # Errors
/// If configuration, keys or witness are unusable, the ledger does not exist or cannot be read, or there is no such
/// checkpoint. Divergences are part of the result, not an error.
#[crate::boxed]
pub(crate) async fn verify(
    environment: &Environment,
    places: &PathOverrides,
    request: &VerifyRequest,
) -> Result<Outcome<Verification>, Error> {
    let mut workspace = workspace::load(environment, places, &environment.directory)?;
    let mut warnings = std::mem::take(&mut workspace.report);
    let ledger = display_ledger(environment, &workspace.ledger);
    if !workspace.ledger.may_exist() {
        return Err(missing_ledger(environment, &workspace));
    }
    let keys = WorkspaceKeys::of(environment, &workspace);
    let given_keys =
        super::ledger_keys(environment, &request.keys)?.iter().map(to_public_key).collect::<Vec<_>>();
    let local_keys = own_keys(&keys, &mut warnings);
    let since = match &request.since {
        Some(since) => Some(parse_since(environment, since, local_keys.iter().chain(&given_keys))?),
        None => None,
    };
    let (witness, witness_shown) = witness_file(environment, request, &workspace, &mut warnings)?;
    let outside = keys.trusted_keys()?;
    let store = Store::open_read_only(&workspace.ledger).await;
    let store = store.map_err(|error| Error::from(error).corrupt_as_refused())?;
    // If the last checkpoint is unreadable, the ledger is compared with the copies for its file.
    let origin = store.last_checkpoint().await.ok().flatten().map(|sealed| sealed.origin);
    let copies = CheckpointFiles::new(&workspace.ledger, environment.state_dir.as_deref());
    let cosigned = match &workspace.witness {
        Some(Configured::Service(service)) => {
            let copy = origin.as_deref().and_then(|origin| copies.read_cosigned(origin, &service.key));
            Some((service.key.clone(), copy))
        }
        _ => None,
    };
    let options = VerifyOptions {
        ledger_keys: local_keys,
        trusted_keys: given_keys,
        candidate_keys: Vec::new(),
        outside,
        since,
        witness,
        local_checkpoints: Some(copies.read(origin.as_deref())),
        remote_witness: cosigned,
        strict: request.strict,
        is_on_server: store.is_shared(),
        log: Some(workspace.log.clone()),
    };
    let report = verify::verify(&store, options).await;
    let root = find_root(environment, None, &environment.directory);
    let altered = divergences(environment, &root, &store).await;
    store.close().await;
    let (mut report, altered) = (report.map_err(verify_error)?, altered?);
    report.add(altered);
    report.ledger = ledger;
    if let Some(log) = &mut report.log {
        log.file = display_path(environment, &workspace.log);
    }
    if let Some(witness) = &mut report.witness {
        witness.file = witness_shown;
    }
    Ok(Outcome { value: Verification(report), warnings })
}

/// Refuses to export or prove records of a ledger that diverges. `concerns` tells whether a divergence affects those
/// records. Does not check the log or the witness, nor whether keys were revoked or have expired: neither alters signed
/// records.
///
/// # Errors
/// The first divergence that concerns the records; or if the ledger cannot be verified.
pub(super) async fn ensure_unaltered(
    session: &LedgerSession,
    concerns: impl Fn(&Divergence) -> bool,
) -> Result<(), Error> {
    let help = "export after the ledger is restored; `quorate ledger verify` shows what differs";
    ensure_report(session, own_options(session), concerns, ErrorKind::Refused, help).await.map(drop)
}

/// As [`ensure_unaltered`], for vouching for a run: also checks the log, and that the run's keys could sign at the
/// time.
///
/// # Errors
/// As [`ensure_unaltered`].
pub(super) async fn ensure_intact(
    session: &LedgerSession,
    concerns: impl Fn(&Divergence) -> bool,
) -> Result<(), Error> {
    let options = VerifyOptions {
        outside: session.keys().trusted_keys()?,
        log: Some(session.workspace.log.clone()),
        ..own_options(session)
    };
    let help = "attest a run that holds; `quorate ledger verify` shows what differs";
    ensure_report(session, options, concerns, ErrorKind::Refused, help).await.map(drop)
}

/// As [`ensure_unaltered`], for commands that make a checkpoint.
///
/// # Errors
/// As [`ensure_unaltered`].
pub(super) async fn ensure_sealable(
    session: &LedgerSession,
    concerns: impl Fn(&Divergence) -> bool,
) -> Result<(), Error> {
    let help = "restore the ledger before making a checkpoint; `quorate ledger verify` shows what differs";
    ensure_report(session, own_options(session), concerns, ErrorKind::Altered, help).await.map(drop)
}

/// As [`ensure_sealable`], for accepting keys: a key of `candidates` that no earlier key vouches for is not a
/// divergence. Returns the ledger's records of such keys.
///
/// # Errors
/// As [`ensure_sealable`].
pub(super) async fn ensure_acceptable(
    session: &LedgerSession,
    candidates: Vec<PublicKey>,
    concerns: impl Fn(&Divergence) -> bool,
) -> Result<KeyChangeReport, Error> {
    let help = "no key is accepted for an altered ledger; a key that another machine brought in counts with `--key KEY`, if \
                you have it from its owner; `quorate ledger verify` shows what differs";
    // This machine's key need not have signed the last checkpoint.
    let options = VerifyOptions { candidate_keys: candidates, ..VerifyOptions::default() };
    let report = ensure_report(session, options, concerns, ErrorKind::Altered, help).await?;
    Ok(report.key_changes)
}

/// Verifies with the ledger's own keys.
fn own_options(session: &LedgerSession) -> VerifyOptions {
    let mut warnings = Diagnostics::new();
    let ledger_keys = own_keys(session.keys(), &mut warnings);
    session.absorb(warnings);
    VerifyOptions { ledger_keys, ..VerifyOptions::default() }
}

async fn ensure_report(
    session: &LedgerSession,
    options: VerifyOptions,
    concerns: impl Fn(&Divergence) -> bool,
    class: ErrorKind,
    help: &str,
) -> Result<VerifyReport, Error> {
    let address = session.store.address();
    let origin = session.store.last_checkpoint().await?.map(|sealed| sealed.origin);
    let copies = session.sealer().copies();
    let ExternalKeys { keyring, signers } = session.keys().trusted_keys()?;
    // A given keyring counts with the validity periods of its keys.
    let keyring = options.outside.keyring.or_else(|| keyring.as_ref().map(Keyring::unbounded));
    let options = VerifyOptions {
        outside: ExternalKeys { keyring, signers },
        local_checkpoints: Some(copies.read(origin.as_deref())),
        ..options
    };
    let report = verify::verify(&session.store, options).await.map_err(verify_error)?;
    let listed = report.divergences.len() as u64;
    // Divergences that are only counted may concern these records.
    let unlisted = report.divergence_count - listed;
    // A run whose input is not its artifact does not count, but nothing in the ledger was altered.
    let altered = report.divergences.iter().filter(|divergence| divergence.part != LedgerPart::Input);
    let found: Vec<&Divergence> = altered.filter(|divergence| concerns(divergence)).collect();
    let first = match found.first() {
        Some(first) => first,
        None if unlisted > 0 => &report.divergences[0],
        None => return Ok(report),
    };
    let others = (found.len() as u64 + unlisted).saturating_sub(1);
    let body = Body::new(divergence_message(&display_ledger(&session.environment, address), first, others));
    Err(Error::new(class, codes::LEDGER_CORRUPT, body.help(help)))
}

impl Verification {
    /// Whether nothing differs.
    pub fn holds(&self) -> bool {
        self.0.holds
    }

    /// The error of a ledger that differs from its records, with advice.
    pub fn divergence(&self) -> Option<Error> {
        let Verification(report) = self;
        let first = report.divergences.first()?;
        let others = report.divergence_count.saturating_sub(1);
        let body = Body::new(divergence_message(&report.ledger, first, others));
        let is_all_of = |part| report.divergences.iter().all(|divergence| divergence.part == part);
        let is_rollback =
            report.divergences.iter().any(|divergence| divergence.part == LedgerPart::LocalCheckpoint);
        let (code, help) = if is_all_of(LedgerPart::Conversation) {
            (codes::CONVERSATION_ALTERED, conversation::HELP)
        } else if is_rollback {
            (
                codes::LEDGER_DIVERGES,
                "keep the files as they are, and compare them with a copy; where a backup was restored or another ledger \
                 was begun on purpose, `quorate ledger accept-rollback --reason \"…\"` continues from the present ledger",
            )
        } else if report.keys.own == Some(false) || report.key_changes.own_refused {
            (
                codes::LEDGER_DIVERGES,
                "keep the files as they are; put the key back that signed the ledger; where that is lost and you have \
                 replaced it, see `quorate explain quorate:ledger_key_missing`",
            )
        } else {
            (
                codes::LEDGER_DIVERGES,
                "keep the files unchanged, and compare them with a copy; see `quorate explain quorate:ledger_diverges`",
            )
        };
        Some(Error::new(ErrorKind::Refused, code, body.help(help)))
    }
}

fn divergence_message(ledger: &str, first: &Divergence, others: u64) -> String {
    let ledger = if first.part == LedgerPart::Conversation { "a conversation" } else { ledger };
    let more = match others {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    format!("{ledger} differs from its records: {first}{more}")
}

fn verify_error(error: VerifyError) -> Error {
    match error {
        VerifyError::Store(error) => Error::from(error).corrupt_as_refused(),
        VerifyError::Since(error) => Error::not_found(
            codes::CHECKPOINT_UNKNOWN,
            Body::new(error.to_string()).help("`quorate ledger stats` shows the last one"),
        ),
    }
}

pub(super) fn to_public_key(key: &TrustedKey) -> PublicKey {
    match key {
        TrustedKey::Verifier(verifier) => *verifier.key(),
        TrustedKey::Public(key) => *key,
    }
}

/// The ledger's own keys. If they are unreadable, verification uses the others and warns.
fn own_keys(keys: &WorkspaceKeys, warnings: &mut Diagnostics) -> Vec<PublicKey> {
    let directory = keys.directory();
    // As in sealing, the variable overrides the file.
    let now = match sealing::key_from_environment(&keys.environment) {
        Some(text) => SecretKey::from_text(text).map(Some).map_err(|error| error_chain(&error)),
        None => directory.load(KeyPurpose::Ledger).map_err(|error| error_chain(&error)),
    };
    let now = now.map(|key| key.map(|key| key.public()));
    let retired = directory.retired(KeyPurpose::Ledger).map_err(|error| error_chain(&error));
    match (now, retired) {
        (Ok(now), Ok(retired)) => now.into_iter().chain(retired).collect(),
        (Err(error), _) | (_, Err(error)) => {
            let body = Body::new(format!("cannot read the ledger's own key: {error}"));
            let help =
                "verify checks the checkpoints against the keys that they name, and against those of `--key`";
            warnings.warn(codes::LEDGER_KEY_MISSING, body.help(help));
            Vec::new()
        }
    }
}

/// The trusted checkpoint.
fn parse_since<'a>(
    environment: &Environment,
    since: &str,
    keys: impl Iterator<Item = &'a PublicKey>,
) -> Result<StartPoint, Error> {
    if let Ok(size) = since.parse() {
        return Ok(StartPoint::Size(size));
    }
    let number = since.strip_prefix(STREAM).and_then(|rest| rest.strip_prefix('/')?.parse().ok());
    if let Some(n) = number {
        return Ok(StartPoint::Number(n));
    }
    let unusable = |why: &str| {
        let body = Body::new(format!("`{since}` is not a checkpoint: {why}"));
        let help = "give a number of records, `ledger/<n>`, or a file that `quorate ledger checkpoint` wrote";
        Error::configuration(codes::CHECKPOINT_UNKNOWN, body.help(help))
    };
    let text = disk::read_text(&absolute(&environment.directory, Path::new(since)));
    let text = match text.map_err(|error| unusable(&error_chain(&error)))? {
        Some(text) => text,
        None => {
            let body = Body::new(format!("`{since}` is not a checkpoint: no file has this name"));
            return Err(Error::not_found(codes::CHECKPOINT_UNKNOWN, body));
        }
    };
    let note = Note::parse(text.as_bytes()).map_err(|why| unusable(&why))?;
    let checkpoint = Checkpoint::parse(note.text()).map_err(|why| unusable(&why))?;
    let known = keys.filter_map(|key| Verifier::new(checkpoint.origin(), *key).ok()).collect::<Vec<_>>();
    note.verify(&known).map_err(|error| {
        let body = Body::new(format!("cannot trust the checkpoint {since}: {error}"));
        let help = "get the ledger's key from its owner and pass it with `--key`";
        Error::new(ErrorKind::Refused, codes::KEY_UNVOUCHED, body.help(help))
    })?;
    Ok(StartPoint::Tree(*checkpoint.tree()))
}

fn witness_file(
    environment: &Environment,
    request: &VerifyRequest,
    workspace: &Workspace,
    warnings: &mut Diagnostics,
) -> Result<(Option<Witness>, Option<String>), Error> {
    let witness_path = request.witness.as_ref().map(|path| absolute(&environment.directory, Path::new(path)));
    let is_asked = witness_path.is_some();
    let configured = workspace.witness.as_ref().and_then(|witness| witness.file());
    let Some(path) = witness_path.or_else(|| configured.map(Path::to_owned)) else { return Ok((None, None)) };
    let name = match display_path(environment, &path) {
        here if here.is_empty() => ".".to_owned(),
        name => name,
    };
    let text = disk::read_text(&path).map_err(|error| {
        let body = Body::new(format!("cannot read the witness {name}: {}", error_chain(&error)));
        Error::configuration(codes::WITNESS_UNREADABLE, body.help("pass a text file of signed checkpoints"))
    })?;
    match text {
        Some(text) => {
            let witness = Witness::parse(&text);
            if witness.notes.is_empty() {
                let body = Body::new(format!("the witness {name} has no signed checkpoint"));
                let help = "pass the file that checkpoints were appended to; if it had checkpoints before, restore it";
                return Err(Error::configuration(codes::WITNESS_UNREADABLE, body.help(help)));
            }
            if !witness.fragments.is_empty() {
                let body = Body::new(format!(
                    "{} parts of the witness {name} are not signed notes",
                    witness.fragments.len()
                ));
                let help = "they were skipped; if they were checkpoints, restore the file from its copy";
                warnings.warn(codes::WITNESS_BEHIND, body.help(help));
            }
            Ok((Some(witness), Some(name)))
        }
        None if is_asked => {
            let body = Body::new(format!("the witness {name} does not exist"));
            Err(Error::not_found(
                codes::WITNESS_UNREADABLE,
                body.help("pass an existing file with `--witness`"),
            ))
        }
        None => {
            let body = Body::new(format!("witness file {name} not found; witness check skipped"));
            let help = "the next checkpoint creates it; if it existed before, restore it first";
            warnings.warn(codes::WITNESS_BEHIND, body.help(help));
            Ok((None, None))
        }
    }
}

/// The altered turns of the conversations that a manifest below the root names and of which the ledger has a stream. A
/// conversation on a server is compared when it is read.
///
/// # Errors
/// If the root, a conversation or the ledger cannot be read.
#[crate::boxed]
async fn divergences(
    environment: &Environment,
    root: &Path,
    store: &Store,
) -> Result<Vec<Divergence>, Error> {
    let streams = store.streams("turns/").await?;
    if streams.is_empty() {
        return Ok(Vec::new());
    }
    // No member is called and no server contacted, so no trust is needed.
    let environment = &Environment { trust: Trust::default().trusting_all(), ..environment.clone() };
    let mut divergences = Vec::new();
    for talk in talks::list(environment, &Root::open(root.to_owned())?)? {
        let request = runtime::RuntimeRequest {
            path: talk.path.clone(),
            root: Some(root.to_owned()),
            ..runtime::RuntimeRequest::default()
        };
        // `check` reports manifests that cannot be opened.
        let Ok(opened) = runtime::open(environment, &PathOverrides::default(), &request) else {
            continue;
        };
        let stream = opened.stream();
        if !opened.is_readable_locally() || !streams.contains(&stream) {
            continue;
        }
        let divergence = |what: String| {
            Divergence::new(DivergenceKind::Changed, LedgerPart::Conversation, what).of_run(&stream)
        };
        let records = store.records(&stream).await?;
        let found = match opened.alterations(&records).await {
            Ok(found) => found,
            Err(error) => {
                divergences.push(divergence(format!("cannot read it: {}", error.first_message())));
                continue;
            }
        };
        divergences.extend(found.into_iter().map(|alteration| {
            let line = opened.substrate.locate(&alteration.turn);
            let place = line.map(|(file, line)| format!("{}:{line}: ", display_path(environment, &file)));
            divergence(place.unwrap_or_default() + &alteration.what)
        }));
    }
    Ok(divergences)
}
