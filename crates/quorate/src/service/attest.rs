//! Attestations: decisions on a text as in-toto statements, which supply-chain tools verify.
//!
//! A *decision* has every field that a policy can check. A *simple verification result* exists only if the text may
//! ship unchanged, so that a gate that cannot read decisions can test for its presence.

use std::path::Path;
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy::hex;
use quorate_kernel::history::History;
use quorate_ledger::signing::SecretKey;
use quorate_ledger::store::CheckpointRecord;
use quorate_manifest::timestamp;
use quorate_protocol::assembly::AssemblyRequest;
use quorate_protocol::policy::Verdict;
use quorate_protocol::{Json, Name};
use serde::Serialize;
use serde_json::json;

use super::convene::report::AssemblyVerdict;
use super::error::{Error, ErrorKind};
use super::keys::SigningKey;
use super::ledger::export::unwritable;
use super::ledger::{self, prove};
use super::run_opened::{ensure_shown_artifact, is_assembly};
use super::session::LedgerSession;
use super::{convene, disk, report, resume};

/// The predicate type of a decision.
pub(crate) const DECISION: &str = "urn:quorate:attestation:decision:v1";
/// The predicate type of a simple verification result, of in-toto.
pub(crate) const RESULT: &str = "https://in-toto.io/attestation/svr/v0.2";
/// The verifier of a simple verification result.
const VERIFIER: &str = "urn:quorate:verifier:v1";
const STATEMENT: &str = "https://in-toto.io/Statement/v1";

/// The attestation of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Attestation {
    /// The run's id.
    pub run: Name,
    /// The text: its name, and the SHA-256 of its bytes.
    subject: Json,
    /// The predicate of the decision.
    pub decision: Json,
    /// Verdicts on the same bytes that were recorded here after this run, the oldest first.
    pub later: Vec<LaterVerdict>,
    /// The predicate of the simple verification result, or the reason why there is none.
    pub result: Result<Json, String>,
    /// The paths of the bundles that were written.
    pub files: Vec<String>,
}

/// A verdict on the same bytes after the attested one, by any council and executor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaterVerdict {
    /// The run's id.
    pub run: Name,
    /// The word of its verdict.
    pub verdict: String,
    /// The names of its executors.
    pub executor: String,
    /// When it was opened.
    pub at: String,
}

/// The decision of a run, reduced to what a gate asks for.
struct Decided {
    /// The word of its verdict.
    verdict: String,
    /// The property of a simple verification result; `None` if the text does not pass.
    passes_as: Option<&'static str>,
    /// The deciding policy: `strict/1`, or the protocol of an assembly.
    policy: String,
    missing: Vec<String>,
    /// The request to an assembly.
    request: Option<AssemblyRequest>,
    executor: String,
    model_asked: bool,
}

/// Attests a run that was recorded here. Verifies its records, derives the outcome from them again, and seals them. Writes
/// Sigstore bundles into `directory`, in place of earlier ones.
///
/// # Errors
/// If the run has no verdict, its input is not its artifact, its records were altered or erased, or the ledger cannot
/// be sealed, no key may sign, or a file cannot be written.
pub(crate) async fn attest(
    session: &LedgerSession,
    run: &str,
    directory: Option<&Path>,
) -> Result<Attestation, Error> {
    let run = session.find_own_run(run).await?;
    let file = |directory: &Path, kind: &str| {
        let path = directory.join(format!("{run}.{kind}.sigstore.json"));
        // No file of the workspace may occupy it.
        session.workspace.guard.ensure_output(&session.environment, &path)
    };
    if let Some(directory) = directory {
        // An outdated result could open a gate. Nothing is removed where a later file is refused.
        let files = ["decision", "svr"].map(|kind| file(directory, kind));
        let files = files.into_iter().collect::<Result<Vec<_>, _>>()?;
        files.iter().try_for_each(|path| disk::remove(path).map_err(|error| unwritable(path, &error)))?;
    }
    let mut attestation = try_attest(session, &run).await.map_err(Error::corrupt_as_refused)?;
    let Some(directory) = directory else { return Ok(attestation) };
    let key = signing_key(session).await?;
    let decision = key.sign_statement(&attestation.statement(DECISION, &attestation.decision).to_string());
    let result = attestation.result.as_ref().ok();
    let result = result.map(|result| key.sign_statement(&attestation.statement(RESULT, result).to_string()));
    for (kind, bundle) in [("decision", Some(decision)), ("svr", result)] {
        let Some(bundle) = bundle else { continue };
        let path = file(directory, kind)?;
        disk::write_new(&path, &format!("{bundle:#}\n")).map_err(|error| unwritable(&path, &error))?;
        attestation.files.push(disk::display_path(&session.environment, &path));
    }
    Ok(attestation)
}

async fn try_attest(session: &LedgerSession, run: &Name) -> Result<Attestation, Error> {
    let history = session.history(run).await?;
    ensure_shown_artifact(&history)?;
    let decided = decided(session, &history).await?;
    let others_hold = prove::ensure_run_holds(session, run).await?;
    let replayed = resume::replay(session, run).await?;
    if !replayed.identical {
        return Err(refuse(
            format!("the outcome of run {run} does not follow from its answers"),
            "run `quorate replay RUN` to see how they differ",
        ));
    }
    let sealed = ledger::checkpoint(session).await?;
    let opened = &history.opened;
    let digest = opened.artifact_sha256.clone().ok_or_else(|| {
        refuse(format!("run {run} does not record the text that it judged"), "attest a run on a text")
    })?;
    let name = opened.subject.clone().unwrap_or_default();
    let subject = json!([{"name": name, "digest": {"sha256": &digest}}]);
    let judges_bytes = history.inputs().iter().any(|(.., sha256)| *sha256 == digest);
    let decided_at = timestamp::format(history.decided_ms.unwrap_or_default());
    let later = later_verdicts(session, &history, &digest).await?;
    let mut decision = decision_predicate(&history, &decided, judges_bytes, &decided_at, &sealed);
    decision["laterVerdicts"] = json!(later);
    let result = match decided_elsewhere(session, &history, &digest).await? {
        Some(why) => Err(why),
        None if !others_hold => {
            Err("other records of the ledger were changed, and a person's decision on this text may be \
                                     among them: see `quorate ledger verify`"
                .to_owned())
        }
        None => result_predicate(&history, &decided, judges_bytes, &decided_at),
    };
    Ok(Attestation { run: run.clone(), subject, decision, later, result, files: Vec::new() })
}

/// The verdicts on the same bytes after this run.
async fn later_verdicts(
    session: &LedgerSession,
    history: &History,
    digest: &str,
) -> Result<Vec<LaterVerdict>, Error> {
    let mut later = Vec::new();
    for run in session.store.verdicts_after(&history.run, digest).await? {
        let opened = session.partial_history(&run.run).await?.opened;
        later.push(LaterVerdict {
            run: run.run,
            verdict: run.verdict.unwrap_or_default(),
            executor: opened.executor_names(),
            at: timestamp::format(run.opened_ms),
        });
    }
    Ok(later)
}

/// Whether a person decided on the same bytes in any run, or the same council reached a later verdict on them.
async fn decided_elsewhere(
    session: &LedgerSession,
    history: &History,
    digest: &str,
) -> Result<Option<String>, Error> {
    if let Some(run) = session.store.last_decision(digest).await? {
        let decision = session.partial_history(&run).await?.overrides.pop();
        let verdict = decision.map_or_else(String::new, |(_, decision)| decision.verdict);
        return Ok(Some(format!("a person decided {verdict} on this text (run {run})")));
    }
    let Some(council) = combined_fingerprint(history) else { return Ok(None) };
    let newest = session.store.last_judgement(council, digest).await?;
    Ok(newest
        .filter(|newest| *newest != history.run)
        .map(|newest| format!("run {newest} is newer and on the same text: attest that run")))
}

/// The hash of the council or assembly.
fn combined_fingerprint(history: &History) -> Option<&str> {
    ["council", "assembly"].iter().find_map(|key| history.opened.fingerprint.get(*key)?.as_str())
}

async fn decided(session: &LedgerSession, history: &History) -> Result<Decided, Error> {
    let undecided = || {
        refuse(
            format!("run {} has no verdict", history.run),
            "run `quorate resume RUN` to get the missing answers, then attest",
        )
    };
    if is_assembly(history) {
        let report = convene::report::load(session, history).await?;
        let verdict = report
            .verdict()
            .filter(|verdict| *verdict != AssemblyVerdict::Incomplete)
            .ok_or_else(undecided)?;
        let passes = verdict == AssemblyVerdict::Pass && report.decision.is_some();
        return Ok(Decided {
            passes_as: passes.then_some("QUORATE_VOTE_PASS"),
            verdict: verdict.as_str().to_owned(),
            policy: history.opened.protocol.clone(),
            missing: report.missing,
            request: Some(report.request),
            executor: report.executor,
            model_asked: report.model_asked,
        });
    }
    let report = report::load_from(session, history).await?;
    let verdict = report.verdict.filter(|verdict| *verdict != Verdict::Incomplete).ok_or_else(undecided)?;
    Ok(Decided {
        verdict: verdict.as_str().to_owned(),
        passes_as: (verdict == Verdict::Ship).then_some("QUORATE_REVIEW_SHIP"),
        policy: report.policy,
        missing: report.missing,
        request: None,
        executor: report.executor,
        model_asked: report.model_asked,
    })
}

fn decision_predicate(
    history: &History,
    decided: &Decided,
    judges_bytes: bool,
    decided_at: &str,
    sealed: &CheckpointRecord,
) -> Json {
    let person = history.overrides.last().map(|(at_ms, person)| {
        json!({"verdict": person.verdict, "by": person.by, "reason": person.reason, "at": timestamp::format(*at_ms)})
    });
    json!({
        "run": &*history.run,
        "verdict": decided.verdict,
        "policy": decided.policy,
        "protocol": history.opened.protocol,
        "request": decided.request,
        "fingerprint": history.opened.fingerprint,
        "decidedAt": decided_at,
        "executor": decided.executor,
        "modelAsked": decided.model_asked,
        "missing": decided.missing,
        "redactions": history.opened.redactions,
        // Whether the members saw the bytes of the subject, and not a redacted text.
        "judgedBytes": judges_bytes,
        "override": person,
        "checkpoint": {
            "origin": sealed.origin,
            "size": sealed.tree.size,
            "root": hex(&sealed.tree.root),
            "note": sealed.note,
        },
    })
}

/// If the text may not ship unchanged, returns the reason in a sentence.
fn result_predicate(
    history: &History,
    decided: &Decided,
    judges_bytes: bool,
    decided_at: &str,
) -> Result<Json, String> {
    let Some(property) = decided.passes_as else { return Err(format!("the verdict is {}", decided.verdict)) };
    if !decided.missing.is_empty() {
        return Err(format!("no output from {}", decided.missing.join(", ")));
    }
    if !judges_bytes {
        return Err("the members saw a redacted text, not these bytes".to_owned());
    }
    let scoped = |words: &str| words.to_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let mut properties = vec![property.to_owned(), format!("QUORATE_POLICY_{}", scoped(&decided.policy))];
    // The class decides which rules and members count.
    if let Some(AssemblyRequest::Voting { class: Some(class) }) = &decided.request {
        properties.push(format!("QUORATE_CLASS_{}", scoped(class)));
    }
    if decided.model_asked {
        properties.push("QUORATE_MODELS_ASKED".to_owned());
    }
    let whole = combined_fingerprint(history);
    let policies: Vec<Json> = whole
        .map(|sha256| json!({"name": decided.policy, "digest": {"sha256": sha256}}))
        .into_iter()
        .collect();
    Ok(json!({
        "verifier": {"id": VERIFIER, "policies": policies},
        "timeCreated": decided_at,
        "properties": properties,
    }))
}

impl Attestation {
    /// The statement of a predicate about the text.
    fn statement(&self, predicate_type: &str, predicate: &Json) -> Json {
        json!({"_type": STATEMENT, "subject": self.subject, "predicateType": predicate_type, "predicate": predicate})
    }
}

/// The key that signs records here.
///
/// # Errors
/// If there is none, or the keyring does not let it sign now.
async fn signing_key(session: &LedgerSession) -> Result<Arc<SecretKey>, Error> {
    let key = match session.keys().signing_key().await? {
        SigningKey::Available(key, _) => key,
        SigningKey::Missing(why) => {
            let body = Body::new(format!("cannot attest: no signing key: {why}"));
            return Err(Error::not_found(
                codes::KEY_UNKNOWN,
                body.help("run `quorate keys init` to make one"),
            ));
        }
    };
    let keyring = session.keys().trusted_keys()?.keyring.unwrap_or_default();
    match keyring.may_sign(key.public().id(), session.environment.clock.now_ms()) {
        Ok(_) => Ok(key),
        Err(why) => Err(refuse(
            why.to_string(),
            "attest with a key of the keyring: `quorate keys list` shows them, `quorate keys init` adds this machine's key",
        )),
    }
}

fn refuse(what: String, help: &str) -> Error {
    Error::new(ErrorKind::Refused, codes::NOT_ATTESTABLE, Body::new(what).help(help))
}
