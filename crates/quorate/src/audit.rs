//! Statistics on a council over time.

use quorate_diagnostics::Report;
use serde_json::Value;

use super::builder::Quorate;
use super::error::Error;
use super::service::{audit, runs};

pub use quorate_ledger::stats::ReviewFilter;

impl Quorate {
    /// The statistics of the council that the filter selects; empty for a workspace with neither log nor ledger.
    ///
    /// # Errors
    /// If the configuration is refused, or log or ledger cannot be read.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::{Quorate, audit::ReviewFilter};
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// let audit = quorate.audit(ReviewFilter::default()).await?;
    /// assert_eq!(audit.to_json()["reviews"], 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn audit(&self, filter: ReviewFilter) -> Result<CouncilAudit, Error> {
        let request = audit::AuditRequest { filter, reindex: false };
        if let Some(empty) = audit::empty(&self.environment, &self.places, &request)? {
            return Ok(CouncilAudit { audit: empty, warnings: Report::new() });
        }
        let session = runs::open(&self.environment, &self.places).await?;
        let audited = audit::audit(&session, request).await;
        let warnings = session.close().await;
        Ok(CouncilAudit { audit: audited?, warnings })
    }
}

/// The statistics of a council.
#[derive(Debug, Clone)]
pub struct CouncilAudit {
    audit: audit::Audit,
    warnings: Report,
}

impl CouncilAudit {
    /// The report as `quorate audit --format json` prints it; `quorate schema audit` prints its schema.
    pub fn to_json(&self) -> Value {
        audit::json(&self.audit)
    }

    /// The warnings of the workspace.
    pub fn warnings(&self) -> &Report {
        &self.warnings
    }
}
