//! Checks of a Postgres ledger: its server, its clock, and the queue.

use quorate_ledger::store::ServerFacts;
use quorate_ledger::store::tasks::TaskState;

use super::{DoctorCheck, failed, failed_by, passed, warning};
use crate::service::error::Error;
use crate::service::session::LedgerSession;

/// The smallest difference of clocks that makes times in records misleading, in milliseconds.
const MAX_CLOCK_DIFFERENCE: i64 = 2_000;

/// The checks of the server; empty for a ledger in a file.
pub(super) async fn checks(session: &LedgerSession) -> Vec<DoctorCheck> {
    let before_ms = session.environment.clock.now_ms();
    let facts = match session.store.server_facts().await {
        Ok(None) => return Vec::new(),
        Ok(Some(facts)) => facts,
        Err(error) => return vec![failed_by("database", &Error::from(error))],
    };
    let here_ms = i64::midpoint(before_ms, session.environment.clock.now_ms());
    vec![database(&facts), clock(facts.clock_ms - here_ms), queue(session, &facts).await]
}

fn database(facts: &ServerFacts) -> DoctorCheck {
    let version = format!("Postgres {}.{}", facts.version / 10_000, facts.version % 10_000);
    match &facts.unsafe_settings[..] {
        [] => passed("database", version),
        settings => failed(
            "database",
            format!(
                "{version} has `{} = off`: a crash of its machine loses acknowledged records",
                settings.join("` and `")
            ),
        ),
    }
}

/// Leases, quotas and the queue use the server's clock; times in records come from this machine's clock.
fn clock(ahead_ms: i64) -> DoctorCheck {
    let seconds = ahead_ms.unsigned_abs().div_ceil(1000);
    let side = if ahead_ms < 0 { "behind" } else { "ahead of" };
    match ahead_ms.abs() > MAX_CLOCK_DIFFERENCE {
        true => warning(
            "clock",
            format!("the database's clock is {seconds} s {side} this machine's: times in records mislead"),
        ),
        false => passed("clock", format!("within {} s of the database's", MAX_CLOCK_DIFFERENCE / 1000)),
    }
}

async fn queue(session: &LedgerSession, facts: &ServerFacts) -> DoctorCheck {
    let counts = match session.store.count_tasks().await {
        Ok(counts) => counts,
        Err(error) => return failed_by("queue", &Error::from(error)),
    };
    let tasks = |state: TaskState| -> u64 {
        counts.iter().filter(|count| count.state == state).map(|count| count.tasks).sum()
    };
    let (ready, leased, dead) = (tasks(TaskState::Ready), tasks(TaskState::Leased), tasks(TaskState::Dead));
    let detail = format!("tasks: {ready} ready, {leased} held by workers, {dead} dead");
    match (facts.may_queue, dead) {
        (false, _) => warning(
            "queue",
            format!(
                "{detail}; this user may neither queue nor execute tasks: see docs/postgres.md, \"Roles\""
            ),
        ),
        (true, 0) => passed("queue", detail),
        (true, _) => warning("queue", format!("{detail}: run `quorate queue list --dead` to see why")),
    }
}
