//! Statistics of the ledger.

use std::path::Path;

use quorate_ledger::stats::LedgerCounts;

use crate::service::error::ServiceError;
use crate::service::paths::display_ledger;
use crate::service::session::LedgerSession;

/// The number of days that count as recent.
pub const RECENT_DAYS: i64 = 30;

#[derive(Debug, Clone)]
pub struct LedgerStats {
    /// The ledger's path as shown to the user.
    pub ledger: String,
    /// The size of its files, or of its tables on a server, in bytes.
    pub file_bytes: u64,
    pub stats: LedgerCounts,
}

///
/// # Errors
/// If the ledger does not answer.
#[crate::boxed]
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

/// The size of a SQLite file with its log.
fn file_bytes(path: &Path) -> u64 {
    let wal = {
        let mut wal = path.as_os_str().to_owned();
        wal.push("-wal");
        wal
    };
    [path.as_os_str(), &wal].iter().filter_map(|file| std::fs::metadata(file).ok()).map(|one| one.len()).sum()
}
