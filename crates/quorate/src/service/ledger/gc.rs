//! Erasing what members said once it is not to be kept any more: its days are over (D4), or it was to be kept until the run
//! ends and no longer (D5). Hashes stay, and so does what a run came to.

use quorate_diagnostics::{Body, codes};
use quorate_kernel::record::RunOpened;
use quorate_ledger::retention::{Plan, PlannedErasure, Settings};
use quorate_ledger::store::lease::LockOutcome;
use quorate_ledger::store::{ErasureReport, WipeMode};
use quorate_protocol::Name;

use crate::service::error::ServiceError;
use crate::service::finalize::{drops_answers_at_end, record_run_ended};
use crate::service::paths::{display_ledger, display_path};
use crate::service::run_opened::is_assembly_opening;
use crate::service::session::LedgerSession;

/// What was erased, or would be.
#[derive(Debug, Clone)]
pub struct GcResult {
    /// The ledger, as the user calls it.
    pub ledger: String,
    /// Whether nothing was touched.
    pub dry_run: bool,
    /// Of which runs, and what.
    pub due: Vec<PlannedErasure>,
    /// Logs that have a line of such a run, with answers in it, as the user calls them.
    pub logs: Vec<String>,
    /// Runs that are of age and on hold.
    pub held: Vec<Name>,
    /// How many runs have not ended.
    pub open: u64,
    /// Why something that was erased can still be found in the ledger's files.
    pub remains: Option<String>,
    /// Where else it can still be found, whatever is done here.
    pub elsewhere: Option<&'static str>,
}

/// Erases what is not to be kept any more; with `dry_run` it only says what that is.
///
/// # Errors
/// When the ledger does not answer. Then nothing is erased.
pub async fn gc(session: &LedgerSession, dry_run: bool) -> Result<GcResult, ServiceError> {
    let now_ms = session.environment.clock.now_ms();
    let days = session.workspace.host.ledger.retention_days;
    let unsaid = default_retention(days);
    let mut plan: Plan = session
        .store
        .plan_erasure(&Settings { now_ms, default_days: &unsaid, conversation_days: days })
        .await?;
    let (held, open) = (std::mem::take(&mut plan.held), plan.open);
    let erased = match dry_run {
        true => ErasureReport { runs: plan.erasures, ..ErasureReport::default() },
        false => {
            let key = match plan.erasures.is_empty() {
                true => None,
                false => Some(session.sealer().required_key().await?),
            };
            session.store.erase(plan, now_ms, WipeMode::Rebuild, key.as_ref()).await?
        }
    };
    let mut logs: Vec<String> = Vec::new();
    for log in erased.runs.iter().filter_map(|due| due.log_path.as_deref()) {
        let log = display_path(&session.environment, std::path::Path::new(log));
        if !logs.contains(&log) {
            logs.push(log);
        }
    }
    Ok(GcResult {
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

/// What is to be done where something that was erased can still be found.
pub fn unfinished_error(collected: &GcResult) -> Option<ServiceError> {
    let body = erasure_incomplete(&collected.ledger, collected.remains.as_deref()?);
    Some(ServiceError::configuration(codes::ERASURE_UNFINISHED, body))
}

fn erasure_incomplete(ledger: &str, why: &str) -> Body {
    Body::new(format!("what was erased can still be found in the files of {ledger}: {why}"))
        .help("end what reads the ledger or make room, and repeat `quorate ledger gc`: it goes on where this stopped")
}

/// Ends a run that keeps no answers, if it has come to something: its answers are erased, and then it has ended. Whoever
/// dies in between leaves that to the next one who opens the ledger. Of any other run it does nothing.
///
/// # Errors
/// When the ledger does not answer.
pub async fn after_run(session: &LedgerSession, run: &Name) -> Result<(), ServiceError> {
    let history = session.partial_history(run).await?;
    if history.ended.is_some() || history.outcome().is_none() || !drops_answers_at_end(&history) {
        return Ok(());
    }
    // Another process that has hold of the run ends it.
    let LockOutcome::Acquired(_held) = session.store.lock_run(run).await? else { return Ok(()) };
    let now_ms = session.environment.clock.now_ms();
    let terms = Settings { now_ms, default_days: &default_retention(None), conversation_days: None };
    let plan = session.store.plan_erasure_at_end(run, &terms).await?;
    let key = match session.sealer().required_key().await {
        Ok(key) => key,
        // They stay until they can be erased so that it counts: the next one who opens the ledger tries again.
        Err(error) => {
            let body =
                Body::new(format!("the answers of run {run} are not erased: {}", error.first_message()));
            session.warn(
                codes::ERASURE_BEHIND,
                body.help("they are erased at the next start that has the ledger's key"),
            );
            return Ok(());
        }
    };
    let erased = session.store.erase(plan, now_ms, WipeMode::InPlace, Some(&key)).await?;
    if let Some(why) = erased.residue {
        let ledger = display_ledger(&session.environment, session.store.address());
        session.warn(codes::ERASURE_BEHIND, erasure_incomplete(&ledger, &why));
    }
    record_run_ended(session, &history, false).await
}

/// For how many days bodies of runs are kept that do not say so themselves: assemblies do, whatever they say.
fn default_retention(days: Option<u32>) -> impl Fn(&RunOpened) -> Option<u32> + Sync {
    move |opened| days.filter(|_| !is_assembly_opening(opened))
}
