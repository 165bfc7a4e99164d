//! The ledger that is shown: opened for reading alone, once for all requests, and again when it was replaced.

use std::path::Path;
use std::sync::Arc;

use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::open_session;
use quorate::service::runs;
use quorate::service::session::LedgerSession;
use quorate::service::workspace::{self, PathOverrides};
use quorate_diagnostics::codes;
use tokio::sync::Mutex;

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
    /// The session; `None` while there is no ledger.
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
    /// As [`Reader::session`], and when there is no ledger.
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
        let session = Arc::new(open_session::open_read_only(environment.clone(), workspace).await?);
        *opened = Some(Opened { session: session.clone(), file });
        Ok(session)
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
