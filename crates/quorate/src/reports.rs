//! Runs for readers without the ledger: reports, which prove what they show, and attestations of decisions for tools that
//! deploy or publish a text.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::builder::Quorate;
use super::error::Error;
use super::service::attest;
use super::service::ledger::export::{StagedFile, unwritable};
use super::service::report_file;
use super::service::session::LedgerSession;
use super::session::Outcome;

pub use super::service::attest::{Attestation, LaterVerdict};
pub use super::service::report_file::{
    Embedded, InputText, InvalidContents, Numbered, ReportContent, ReportFile, ReportFormat, ReportScope,
};
pub use quorate_kernel::canonical::text as canonical_json;
pub use quorate_kernel::entropy::{hex, sha256_hex, unhex};
pub use quorate_kernel::record::{Consultation as ConsultationRecord, Outcome as OutcomeRecord};

/// A report to draw.
#[derive(Debug, Clone, Default)]
pub struct ReportRequest {
    /// The run's id, a prefix of it, or `latest`.
    pub run: String,
    /// The parts of the run that the report holds.
    pub scope: ReportScope,
    /// The file to write. It must be a regular file, and not the ledger, its keys, its log or the configuration.
    pub out: Option<PathBuf>,
}

impl Quorate {
    /// The contents of a run's report: its proof, its texts, and what both say. Seals new records first.
    ///
    /// # Errors
    /// If the run does not exist, was changed or cannot be proven, or the ledger does not answer.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::{Quorate, reports::ReportScope};
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// let report = quorate.report_file("latest", ReportScope::Everything).await?;
    /// assert_eq!(&*report.texts[0].text, "The meeting moved to Tuesday at ten.\n");
    /// assert!(report.content.outcome.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn report_file(&self, run: &str, scope: ReportScope) -> Result<Outcome<ReportFile>, Error> {
        let session = self.open_existing().await?;
        let file = collect(&session, run, scope).await;
        session.finish(file).await
    }

    /// Draws a run's report in a format, and writes it if the request names a file. Returns the page.
    ///
    /// # Errors
    /// As [`Quorate::report_file`], and if the page cannot be drawn or written.
    #[crate::boxed]
    pub async fn report(
        &self,
        request: &ReportRequest,
        format: &ReportFormat,
    ) -> Result<Outcome<String>, Error> {
        let out = request.out.clone().map(|out| self.named_path(out)).transpose()?;
        let session = self.open_existing().await?;
        let page = report(&session, request, out.as_deref(), format).await;
        session.finish(page).await
    }

    /// Attests the decision of a run on a text, for a gate that deploys or publishes it. Verifies the run's records, and
    /// seals them. Writes signed bundles into `directory`, if it is given: the decision, and the simple verification
    /// result, which exists only if the text may ship unchanged. Bundles of an earlier call are removed first.
    ///
    /// # Errors
    /// If the run has no verdict or was changed, the workspace has no key that may sign, or a file cannot be written.
    #[crate::boxed]
    pub async fn attest(&self, run: &str, directory: Option<&Path>) -> Result<Outcome<Attestation>, Error> {
        let directory = directory.map(|directory| self.named_path(directory.to_owned())).transpose()?;
        let session = self.open_existing().await?;
        let attested = attest::attest(&session, run, directory.as_deref()).await;
        session.finish(attested).await
    }
}

async fn collect(session: &LedgerSession, run: &str, scope: ReportScope) -> Result<ReportFile, Error> {
    let run = session.find_run(run).await.map_err(Error::corrupt_as_refused)?.run;
    session.ensure_unaltered(&run).await.map_err(Error::corrupt_as_refused)?;
    report_file::collect(session, &run, scope).await
}

async fn report(
    session: &LedgerSession,
    request: &ReportRequest,
    out: Option<&Path>,
    format: &ReportFormat,
) -> Result<String, Error> {
    let staged = out.map(|path| Ok((path, StagedFile::create(session, path)?)));
    let staged = staged.transpose().map_err(|error: Error| error)?;
    let file = collect(session, &request.run, request.scope).await?;
    let page = report_file::draw(session, &file, format)?;
    if let Some((path, mut staged)) = staged {
        staged.write_all(page.as_bytes()).map_err(|error| unwritable(path, &error))?;
        staged.persist()?;
    }
    Ok(page)
}
