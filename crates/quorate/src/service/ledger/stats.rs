//! What the ledger holds, in numbers.

use std::path::Path;

use quorate_ledger::stats::Stats;

use crate::service::error::ServiceError;
use crate::service::paths::display_ledger;
use crate::service::session::LedgerSession;

/// How far back "recent" reaches, in days.
pub const RECENT_DAYS: i64 = 30;

#[derive(Debug, Clone)]
pub struct LedgerStats {
    /// The ledger, as the user calls it.
    pub ledger: String,
    /// How many bytes its files have, or its tables on a server.
    pub file_bytes: u64,
    pub stats: Stats,
}

/// Counts.
///
/// # Errors
/// When the ledger does not answer.
pub async fn stats(session: &LedgerSession) -> Result<LedgerStats, ServiceError> {
    let since_ms = session.environment.clock.now_ms().saturating_sub(RECENT_DAYS * 24 * 3_600_000);
    let address = session.store.address();
    let bytes = match address.file() {
        Some(path) => file_bytes(path),
        None => session.store.server_bytes().await?.unwrap_or_default(),
    };
    Ok(LedgerStats {
        ledger: display_ledger(&session.environment, address),
        file_bytes: bytes,
        stats: session.store.stats(since_ms).await?,
    })
}

/// How large a SQLite file and its log are together.
fn file_bytes(path: &Path) -> u64 {
    let wal = {
        let mut wal = path.as_os_str().to_owned();
        wal.push("-wal");
        wal
    };
    [path.as_os_str(), &wal].iter().filter_map(|file| std::fs::metadata(file).ok()).map(|one| one.len()).sum()
}
