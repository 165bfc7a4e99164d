//! The ledger that is shown: opened for reading alone, once for all requests, and again when it was replaced.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::open_session;
use quorate::service::runs;
use quorate::service::session::LedgerSession;
use quorate::service::workspace::{self, PathOverrides, Workspace};
use quorate_diagnostics::codes;
use tokio::sync::Mutex;

/// How often a ledger that does not answer is tried again, and after what time.
const ATTEMPTS: u32 = 5;
const INTERVAL: Duration = Duration::from_millis(100);

/// The ledger of the workspace, for reading.
#[derive(Default)]
pub(crate) struct Reader {
    opened: Mutex<Option<Opened>>,
}

struct Opened {
    session: Arc<LedgerSession>,
    file: Option<FileIdentity>,
}

/// What tells a file from one that replaced it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileIdentity(u64, u64);

impl Reader {
    /// The session; `None` until the ledger exists.
    ///
    /// # Errors
    /// When configuration or ledger are unusable.
    pub(crate) async fn session(
        &self,
        environment: &Environment,
        places: &PathOverrides,
    ) -> Result<Option<Arc<LedgerSession>>, ServiceError> {
        match self.existing(environment, places).await {
            Ok(session) => Ok(Some(session)),
            Err(error) if error.report.refusals.iter().all(|refusal| refusal.code == codes::RUN_UNKNOWN) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The session of a workspace that must have a ledger.
    ///
    /// # Errors
    /// As [`Reader::session`], and if the ledger does not exist.
    pub(crate) async fn existing(
        &self,
        environment: &Environment,
        places: &PathOverrides,
    ) -> Result<Arc<LedgerSession>, ServiceError> {
        let mut opened = self.opened.lock().await;
        if let Some(opened) = &*opened
            && opened.file == opened.session.store.address().file().and_then(identity)
        {
            return Ok(opened.session.clone());
        }
        *opened = None;
        let workspace = workspace::load(environment, places, &environment.directory)?;
        if !workspace.ledger.may_exist() {
            return Err(runs::missing_ledger(environment, &workspace));
        }
        let file = workspace.ledger.file().and_then(identity);
        let session = Arc::new(open(environment, places, workspace).await?);
        *opened = Some(Opened { session: session.clone(), file });
        Ok(session)
    }
}

/// Opens the ledger. One that another process is making has no tables for a moment, so it is tried again.
async fn open(
    environment: &Environment,
    places: &PathOverrides,
    mut workspace: Workspace,
) -> Result<LedgerSession, ServiceError> {
    let mut left = ATTEMPTS;
    loop {
        let opened = open_session::open_read_only(environment.clone(), workspace).await;
        if left == 0 || !opened.as_ref().is_err_and(ServiceError::is_ledger_unavailable) {
            return opened;
        }
        left -= 1;
        tokio::time::sleep(INTERVAL).await;
        workspace = workspace::load(environment, places, &environment.directory)?;
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<FileIdentity> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).ok().map(|file| FileIdentity(file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Path) -> Option<FileIdentity> {
    None
}
