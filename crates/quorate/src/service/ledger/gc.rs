//! Erases members' answers when they expire: after their retention period (D4), or at the end of a run that keeps none
//! (D5). Hashes and outcomes stay. Texts of a run on legal hold are not erased, whatever their age, until the run is
//! released.

use quorate_diagnostics::{Body, codes};
use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::Entry;
use quorate_kernel::record::{Held, Released, RunOpened};
use quorate_ledger::retention::{ErasurePlan, LegalHold, PlannedErasure, RetentionSettings};
use quorate_ledger::store::lease::LockOutcome;
use quorate_ledger::store::{ErasureReport, WipeMode};
use quorate_protocol::Name;
use serde::{Serialize, Serializer};
use serde_json::json;

use super::super::disk::{display_ledger, display_path};
use super::super::error::Error;
use super::super::finalize::{drops_answers_at_end, record_run_ended};
use super::super::run_opened::is_assembly_opening;
use super::super::session::LedgerSession;
use super::super::time_text::instant;
use super::non_empty;

/// Erased answers; in a dry run, those that would be erased.
#[derive(Debug, Clone, Serialize)]
pub struct Erasure {
    /// The ledger's path as shown to the user.
    pub ledger: String,
    /// Whether it was a dry run.
    pub dry_run: bool,
    /// The erased records, by run.
    #[serde(rename = "erased", serialize_with = "as_erased")]
    pub due: Vec<PlannedErasure>,
    /// Logs with answers of an erased run, by path as shown to the user.
    #[serde(skip)]
    pub logs: Vec<String>,
    /// Expired runs on hold.
    pub held: Vec<Name>,
    /// The number of unfinished runs.
    pub open: u64,
    /// Why erased texts may still be in the ledger's files.
    pub remains: Option<String>,
    /// Other places that may still have erased texts.
    pub elsewhere: Option<&'static str>,
}

fn as_erased<S: Serializer>(due: &[PlannedErasure], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(due.iter().map(|due| {
        json!({
            "run": &*due.run,
            "ended": due.ended_ms.map(instant),
            "reason": due.period.reason(),
            "days": due.period.days(),
            "records": due.records,
            "count": due.count(),
            "bytes": due.bytes,
            "bodies": due.texts,
            "log": due.log_path,
        })
    }))
}

impl Erasure {
    /// The error after which erased texts may remain; the erasure continues when it is repeated.
    pub fn unfinished(&self) -> Option<Error> {
        let body = erasure_incomplete(&self.ledger, self.remains.as_deref()?);
        Some(Error::configuration(codes::ERASURE_UNFINISHED, body))
    }
}

/// Erases expired answers; with `dry_run` it only lists them.
///
/// # Errors
/// If the ledger does not answer. Then nothing is erased.
#[crate::boxed]
pub(crate) async fn gc(session: &LedgerSession, dry_run: bool) -> Result<Erasure, Error> {
    let now_ms = session.environment.clock.now_ms();
    let days = session.workspace.config.ledger.retention_days;
    let unsaid = default_retention(days);
    let mut plan: ErasurePlan = session
        .store
        .plan_erasure(&RetentionSettings { now_ms, default_days: &unsaid, conversation_days: days })
        .await?;
    let (held, open) = (std::mem::take(&mut plan.held), plan.open);
    let erased = match dry_run {
        true => ErasureReport { runs: plan.erasures, ..ErasureReport::default() },
        false => {
            let key = match plan.erasures.is_empty() {
                true => None,
                false => Some(session.sealer().required_key().await?),
            };
            session.store.erase(plan, now_ms, WipeMode::Rebuild, key.as_deref()).await?
        }
    };
    let mut logs: Vec<String> = Vec::new();
    for log in erased.runs.iter().filter_map(|due| due.log_path.as_deref()) {
        let log = display_path(&session.environment, std::path::Path::new(log));
        if !logs.contains(&log) {
            logs.push(log);
        }
    }
    Ok(Erasure {
        ledger: display_ledger(&session.environment, session.store.address()),
        dry_run,
        due: erased.runs,
        logs,
        held,
        open,
        remains: erased.residue,
        elsewhere: erased.server_residue,
    })
}

fn erasure_incomplete(ledger: &str, why: &str) -> Body {
    Body::new(format!("erased text may remain in the files of {ledger}: {why}"))
        .help("end the processes that read the ledger or free disk space, then run `quorate ledger gc` again: it continues where this run stopped")
}

/// Ends a decided run that keeps no answers: erases its answers, then records the end. After a crash in between, the
/// next process that opens the ledger continues. Does nothing for other runs.
///
/// # Errors
/// If the ledger does not answer.
#[crate::boxed]
pub(crate) async fn after_run(session: &LedgerSession, mut history: History) -> Result<(), Error> {
    let run = &history.run.clone();
    if history.ended.is_some() || history.outcome().is_none() || !drops_answers_at_end(&history) {
        return Ok(());
    }
    // If another process holds the run, that process ends it.
    let LockOutcome::Acquired(_held) = session.store.lock_run(run).await? else { return Ok(()) };
    let now_ms = session.environment.clock.now_ms();
    let terms = RetentionSettings { now_ms, default_days: &default_retention(None), conversation_days: None };
    let plan = session.store.plan_erasure_at_end(run, &terms).await?;
    let key = match session.sealer().required_key().await {
        Ok(key) => key,
        // The answers stay until they can be erased completely: the next process that opens the ledger retries.
        Err(error) => {
            let body = Body::new(format!("cannot erase the answers of run {run}: {}", error.first_message()));
            session
                .warn(codes::ERASURE_BEHIND, body.help("the next command with the ledger's key erases them"));
            return Ok(());
        }
    };
    let erased = session.store.erase(plan, now_ms, WipeMode::InPlace, Some(&key)).await?;
    if let Some(why) = erased.residue {
        let ledger = display_ledger(&session.environment, session.store.address());
        session.warn(codes::ERASURE_BEHIND, erasure_incomplete(&ledger, &why));
    }
    record_run_ended(session, &mut history, false).await
}

/// The default retention of runs' texts, in days; an assembly's own setting overrides it.
fn default_retention(days: Option<u32>) -> impl Fn(&RunOpened) -> Option<u32> + Sync {
    move |opened| days.filter(|_| !is_assembly_opening(opened))
}

/// The hold of a run, and whether it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HoldChange {
    /// The run.
    pub run: Name,
    /// Whether the run is on hold now.
    pub held: bool,
    /// Whether this command changed it.
    pub fresh: bool,
}

/// The runs on hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Holds {
    /// The oldest hold first.
    pub holds: Vec<LegalHold>,
}

/// Puts a run on hold. Idempotent.
///
/// # Errors
/// If there is no such run, the reason is empty, or the ledger rejects the record.
#[crate::boxed]
pub(crate) async fn hold(
    session: &LedgerSession,
    prefix: &str,
    reason: Option<&str>,
) -> Result<HoldChange, Error> {
    let help = "give a reason, or leave `--reason` out";
    let reason = reason.map(|reason| non_empty(reason, "the reason of a hold is empty", help)).transpose()?;
    let reason = reason.map(|reason| session.workspace.redaction.redactor.redact(reason).0);
    set_hold(session, prefix, true, reason).await
}

/// Changes the hold of a run. Idempotent.
///
/// # Errors
/// If there is no such run, or the ledger rejects the record.
pub(crate) async fn set_hold(
    session: &LedgerSession,
    prefix: &str,
    held: bool,
    reason: Option<String>,
) -> Result<HoldChange, Error> {
    let run = find_run_or_stream(session, prefix).await?;
    let fresh = session.store.is_on_hold(&run).await? != held;
    if fresh {
        let (name, by) = (run.to_string(), session.environment.user.clone());
        let at_ms = session.environment.clock.now_ms();
        let entry = match held {
            true => Entry::of(&Held { run: name, by, reason }, at_ms),
            false => Entry::of(&Released { run: name, by }, at_ms),
        };
        let key = session.sealer().required_key().await?;
        session.store.append_ledger_record(entry, &key).await?;
    }
    Ok(HoldChange { run, held, fresh })
}

/// A run by prefix, or a conversation's stream by its full name.
async fn find_run_or_stream(session: &LedgerSession, prefix: &str) -> Result<Name, Error> {
    match session.store.streams("turns/").await?.into_iter().find(|stream| **stream == *prefix) {
        Some(stream) => Ok(stream),
        None => Ok(session.find_run(prefix).await?.run),
    }
}
