//! Statistics on a council over time.

use std::path::Path;

use super::builder::Quorate;
use super::error::Error;
use super::service::{audit, runs};
use super::session::Outcome;

pub use super::service::audit::{
    AgreementReport, AlteredRun, AppliedFilter, Audit, AuditRequest, CostsReport, Deliberator, ExecutorCosts,
    MemberCosts, MonthCosts, PairReport, Producer, ProducerDrift, ProducerWeek, Reviews, SumReport,
    TypeCosts, TypeDrift, Week,
};
pub use quorate_ledger::stats::ReviewFilter;

impl Quorate {
    /// The statistics of the council, from its log and ledger or from one log alone; empty for a workspace with neither.
    ///
    /// # Errors
    /// If the configuration is refused, or log or ledger cannot be read.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::Quorate;
    /// use quorate::audit::AuditRequest;
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// let audit = quorate.audit(AuditRequest::default()).await?;
    /// assert_eq!((audit.reviews, audit.overrides), (1, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn audit(&self, request: AuditRequest) -> Result<Outcome<Audit>, Error> {
        let (environment, places) = (&self.environment, &self.places);
        if let Some(log) = &request.log {
            let log = self.named_path(log.clone())?;
            return Ok(audit::audit_file(environment, &log, &request.filter).await?.into());
        }
        if self.held.is_none()
            && let Some(empty) = audit::empty(environment, places, &request)?
        {
            return Ok(empty.into());
        }
        let session = match request.read_only {
            true => self.open_existing().await?,
            false => self.open(runs::open(environment, places)).await?,
        };
        let audited = audit::audit(&session, &request).await;
        session.finish(audited).await
    }

    /// Writes an audit as the caller laid it out to a file, replacing it. Refuses the audited log and the ledger's own
    /// files.
    ///
    /// # Errors
    /// If the file cannot be written.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// use quorate::audit::AuditRequest;
    ///
    /// let audit = quorate.audit(AuditRequest::default()).await?;
    /// quorate.write_audit(&audit, "audit.md".as_ref(), &audit.doc().markdown())?;
    /// assert!(dir.path().join("audit.md").exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_audit(&self, audit: &Audit, file: &Path, text: &str) -> Result<(), Error> {
        let file = self.named_path(file.to_owned())?;
        audit::write(&self.environment, audit, &file, text)
    }
}
