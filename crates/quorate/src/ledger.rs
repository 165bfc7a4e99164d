//! The ledger: sealing, verifying, proving, exporting, importing, and erasing answers past their retention. Proofs and
//! exports are checked without a ledger.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, codes};
use quorate_ledger::note::Verifier;
use quorate_ledger::prove;

use super::builder::Quorate;
use super::error::{Error, ErrorKind};
use super::reports::{self, ReportFormat};
use super::service::ledger::export::{StagedFile, unwritable};
use super::service::ledger::{self, export, gc, prove as proving, verify};
use super::service::session::LedgerSession;
use super::service::{open_session, runs, workspace};
use super::session::Outcome;

pub use super::reports::CheckedProof;
pub use super::service::ledger::export::{ExportRequest, Import, ImportRequest};
pub use super::service::ledger::gc::{Erasure, HoldChange, Holds};
pub use super::service::ledger::prove::{CheckRequest, ExportCheck};
pub use super::service::ledger::verify::{Verification, VerifyRequest};
pub use super::service::ledger::{AcceptKeyRequest, AcceptedKeys, AcceptedRollback, LedgerStats, Sealed};
pub use quorate_ledger::export::{ExportFormat, ExportSummary};
pub use quorate_ledger::import::ImportSummary;
pub use quorate_ledger::prove::{InvalidProof, Proof, TrustedKey, VerifiedProof};
pub use quorate_ledger::retention::{LegalHold, PlannedErasure};
pub use quorate_ledger::signing::PublicKey;
pub use quorate_ledger::stats::LedgerCounts;
pub use quorate_ledger::store::CheckpointRecord;
pub use quorate_ledger::verify::{Divergence, VerifyReport};

impl Quorate {
    /// Verifies the ledger: its chain, signatures and log. Differences are in the result, not an error.
    ///
    /// # Errors
    /// If configuration, keys or witness are unusable, or the ledger does not exist or cannot be read.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::{Quorate, ledger::VerifyRequest};
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// assert!(quorate.verify(VerifyRequest::default()).await?.holds());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn verify(&self, request: VerifyRequest) -> Result<Outcome<Verification>, Error> {
        self.ensure_keys_only(&request.keys)?;
        for file in [&request.witness, &request.since].into_iter().flatten() {
            self.named_path(PathBuf::from(file))?;
        }
        verify::verify(&self.environment, &self.places, &request).await
    }

    /// The proof of a run's records, or of one of them (`run/n`), for a reader without access to the ledger. The run is given
    /// by its id, a prefix of it, or `latest`.
    ///
    /// # Errors
    /// If the record does not exist, is not sealed yet, or was changed.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::{Quorate, ledger};
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let review = quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// let proof = quorate.prove(&review.run).await?.text()?;
    ///
    /// // A verifier needs neither ledger nor workspace, only the ledger's key from a trusted channel.
    /// let checked = ledger::check(&proof, &[], &[])?;
    /// assert!(checked.trusted_key.is_none(), "no trusted key was given");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn prove(&self, what: &str) -> Result<Outcome<Proof>, Error> {
        self.on_ledger(|session| async move { proving::prove(&session, what).await }).await
    }

    /// Verifies the ledger and signs its number of records and the root of their tree. Without new records, the last
    /// checkpoint. With `signs_unsigned`, first signs the ledger's own records that an older version wrote unsigned.
    ///
    /// # Errors
    /// If the ledger differs from its records, no key can sign it, or it does not answer.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// // The review sealed its records when it ended.
    /// let sealed = quorate.seal(false).await?;
    /// assert!(!sealed.is_new);
    /// println!("{}", sealed.note());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn seal(&self, signs_unsigned: bool) -> Result<Outcome<Sealed>, Error> {
        let session = self.open(runs::open(&self.environment, &self.places)).await?;
        let sealed = ledger::checkpoint_verified(&session, signs_unsigned).await;
        session.finish(sealed).await
    }

    /// The ledger's size and growth, its last checkpoint and its unsealed records.
    ///
    /// # Errors
    /// If the ledger does not exist or does not answer.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// let stats = quorate.ledger_stats().await?;
    /// assert_eq!((stats.counts.runs, stats.counts.open), (1, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn ledger_stats(&self) -> Result<Outcome<LedgerStats>, Error> {
        self.on_ledger(|session| async move { ledger::stats(&session).await }).await
    }

    /// Erases members' answers past their retention, permanently; hashes and outcomes stay. A dry run lists them.
    ///
    /// # Errors
    /// If the ledger does not answer; then nothing is erased.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// let dry_run = quorate.erase_expired(true).await?;
    /// assert!(dry_run.due.is_empty(), "reviews are kept unless quorate.toml sets a retention");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn erase_expired(&self, dry_run: bool) -> Result<Outcome<Erasure>, Error> {
        self.on_ledger(|session| async move { gc::gc(&session, dry_run).await }).await
    }

    /// Puts a run on legal hold, which protects it from erasure. The run is given by its id, a prefix of it or `latest`, a
    /// conversation's stream by its whole name.
    ///
    /// # Errors
    /// If there is no such run, the reason is blank, or the ledger rejects the record.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// let held = quorate.hold_run("latest", Some("claim 2026-14")).await?;
    /// assert!(held.held);
    /// assert_eq!(quorate.held_runs().await?.holds[0].run, held.run);
    /// assert!(!quorate.release_run("latest").await?.held);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn hold_run(&self, run: &str, reason: Option<&str>) -> Result<Outcome<HoldChange>, Error> {
        self.on_ledger(|session| async move { gc::hold(&session, run, reason).await }).await
    }

    /// Releases a run from legal hold: past its retention it may be erased.
    ///
    /// # Errors
    /// If there is no such run, or the ledger rejects the record.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// let released = quorate.release_run("latest").await?;
    /// assert!(!released.fresh, "it was not on hold");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn release_run(&self, run: &str) -> Result<Outcome<HoldChange>, Error> {
        self.on_ledger(|session| async move { gc::set_hold(&session, run, false, None).await }).await
    }

    /// The runs on legal hold.
    ///
    /// # Errors
    /// If the ledger does not exist or does not answer.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// assert!(quorate.held_runs().await?.holds.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn held_runs(&self) -> Result<Outcome<Holds>, Error> {
        self.on_ledger(|session| async move { Ok(Holds { holds: session.store.holds().await? }) }).await
    }

    /// Continues with a ledger that was restored from a backup, or that replaces another ledger. Records who accepts the
    /// loss and why, and signs a new checkpoint.
    ///
    /// # Errors
    /// If the reason is blank, the ledger rejects the record, or the kept checkpoint cannot be moved.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// let accepted = quorate.accept_rollback("restored Monday's backup").await?;
    /// assert!(!accepted.accepted, "no record is missing");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn accept_rollback(&self, reason: &str) -> Result<Outcome<AcceptedRollback>, Error> {
        self.on_ledger(|session| async move { ledger::accept_rollback(&session, reason).await }).await
    }

    /// Continues with a ledger whose key is lost, with keys that no earlier key vouches for. Records who accepts them and
    /// why.
    ///
    /// # Errors
    /// If the reason is blank, no key is usable, the ledger differs from its records, or a file cannot be written.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// use quorate::ledger::AcceptKeyRequest;
    ///
    /// let reason = "the disk with the old key failed".to_owned();
    /// let accepted = quorate.accept_keys(AcceptKeyRequest { reason, keys: Vec::new() }).await?;
    /// assert!(accepted.keys.is_empty(), "the ledger has its key");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn accept_keys(&self, request: AcceptKeyRequest) -> Result<Outcome<AcceptedKeys>, Error> {
        self.ensure_keys_only(&request.keys)?;
        self.on_ledger(|session| async move { ledger::accept_key(&session, &request).await }).await
    }

    /// Seals the ledger and writes its records in a format for other programs. `None` if the reader closed the pipe.
    ///
    /// # Errors
    /// If there is nothing to export, the ledger differs from its records, or the export cannot be written.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// use quorate::ledger::ExportRequest;
    ///
    /// let mut lines = Vec::new();
    /// let summary = quorate.export(&ExportRequest::default(), &mut lines).await?.value.expect("it is written");
    /// assert!(summary.records > 0 && lines.ends_with(b"\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn export(
        &self,
        request: &ExportRequest,
        out: &mut (dyn Write + Send),
    ) -> Result<Outcome<Option<ExportSummary>>, Error> {
        self.on_ledger(|session| async move {
            export::export(&session, request, out).await.map_err(Error::corrupt_as_refused)
        })
        .await
    }

    /// As [`Quorate::export`], to a file that is replaced once the export is complete. It must be a regular file, and not
    /// the ledger, its keys, its log or the configuration.
    ///
    /// # Errors
    /// As [`Quorate::export`], and if the file cannot be written.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// use quorate::ledger::{ExportFormat, ExportRequest};
    ///
    /// let request = ExportRequest { format: ExportFormat::Csv, ..ExportRequest::default() };
    /// quorate.export_to(&request, "records.csv".as_ref()).await?;
    /// assert!(dir.path().join("records.csv").exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn export_to(
        &self,
        request: &ExportRequest,
        path: &Path,
    ) -> Result<Outcome<Option<ExportSummary>>, Error> {
        let path = self.named_path(path.to_owned())?;
        self.on_ledger(|session| async move { export_to(&session, request, &path).await }).await
    }

    /// Verifies an export of another ledger, and merges the runs that this ledger lacks, byte for byte. A dry run writes
    /// nothing.
    ///
    /// # Errors
    /// If the file is not an export, is invalid, has no trusted signer, or contradicts this ledger; then nothing is merged.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// use quorate::ledger::{ExportRequest, ImportRequest};
    /// use quorate::keys::{KeyFormat, KeySelector};
    ///
    /// let (file, other) = (dir.path().join("theirs.jsonl"), tempfile::tempdir()?);
    /// quorate.export_to(&ExportRequest::default(), &file).await?;
    /// let key = quorate.export_key(KeySelector::Ledger, KeyFormat::Text).await?.value;
    /// let here = quorate::Quorate::builder().workspace(other.path()).build()?;
    /// let request = ImportRequest { file: file.display().to_string(), keys: vec![key], ..Default::default() };
    /// assert_eq!(here.import(request).await?.summary.runs.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn import(&self, request: ImportRequest) -> Result<Outcome<Import>, Error> {
        self.ensure_keys_only(request.keys.iter().chain(&request.signers))?;
        self.named_path(PathBuf::from(&request.file))?;
        let workspace = workspace::load(&self.environment, &self.places, &self.environment.directory)?;
        if self.held.is_none() && !workspace.ledger.may_exist() {
            let preview = export::preview(&self.environment, &workspace, &request).await?;
            if request.dry_run || preview.summary.runs.is_empty() {
                return Ok(preview.into());
            }
        }
        let session = self.open(open_session::open(self.environment.clone(), workspace)).await?;
        let imported = export::import(&session, &request).await;
        session.finish(imported).await
    }

    /// Checks a proof or a report from its file alone. A report, which `reports` can read, is drawn again from its proof
    /// and texts; both must be identical, byte for byte.
    ///
    /// # Errors
    /// If the file is not a proof, is invalid, or shows something else than its proof says.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// use quorate::ledger::CheckRequest;
    ///
    /// let proof = quorate.prove("latest").await?.text()?;
    /// std::fs::write(dir.path().join("proof.json"), proof)?;
    /// let request = CheckRequest { file: "proof.json".to_owned(), ..CheckRequest::default() };
    /// let checked = quorate.check_proof(&request, None)?;
    /// assert!(!checked.holds, "no trusted key was given");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_proof(
        &self,
        request: &CheckRequest,
        reports: Option<&ReportFormat>,
    ) -> Result<CheckedProof, Error> {
        self.ensure_checkable(request)?;
        reports::check_proof(&self.environment, request, reports)
    }

    /// Checks an export from its file alone.
    ///
    /// # Errors
    /// If the file is not an export, or is invalid.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// use quorate::ledger::{CheckRequest, ExportRequest};
    ///
    /// quorate.export_to(&ExportRequest::default(), "ledger.jsonl".as_ref()).await?;
    /// let request = CheckRequest { file: "ledger.jsonl".to_owned(), ..CheckRequest::default() };
    /// let checked = quorate.check_export(&request)?;
    /// assert!(checked.records > 0 && !checked.holds, "no trusted key was given");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_export(&self, request: &CheckRequest) -> Result<ExportCheck, Error> {
        self.ensure_checkable(request)?;
        proving::check_export(&self.environment, request)
    }

    fn ensure_checkable(&self, request: &CheckRequest) -> Result<(), Error> {
        self.ensure_keys_only(request.keys.iter().chain(&request.signers))?;
        if request.file != "-" {
            self.named_path(PathBuf::from(&request.file))?;
        }
        Ok(())
    }

    /// A confined workspace accepts no files of keys.
    fn ensure_keys_only<'a>(&self, keys: impl IntoIterator<Item = &'a String>) -> Result<(), Error> {
        let is_key = |text: &str| Verifier::from_text(text).is_ok() || PublicKey::from_text(text).is_ok();
        match keys.into_iter().find(|key| self.root.is_some() && !is_key(key)) {
            Some(invalid) => {
                let body = Body::new(format!("`keys` has `{invalid}`, which is not a key")).help(
                    "give a verifier's line, as `quorate keys export ledger --format note` prints it, or a public key",
                );
                Err(Error::new(ErrorKind::Configuration, codes::USAGE, body))
            }
            None => Ok(()),
        }
    }
}

async fn export_to(
    session: &LedgerSession,
    request: &ExportRequest,
    path: &Path,
) -> Result<Option<ExportSummary>, Error> {
    let mut staged = BufWriter::new(StagedFile::create(session, path)?);
    let written = export::export(session, request, &mut staged).await.map_err(Error::corrupt_as_refused)?;
    match staged.into_inner() {
        Ok(staged) => staged.persist()?,
        Err(error) => return Err(unwritable(path, error.error())),
    }
    Ok(written)
}

/// Checks a proof without ledger or workspace: its records were in a ledger whose key signed them.
/// [`VerifiedProof::trusted_key`] is `None` if none of `keys` signed it; that includes forged proofs.
/// [`TrustedKey::from_text`] reads a key that `quorate keys export ledger` printed.
///
/// # Errors
/// If the text is not a proof, or the proof is invalid.
pub fn check(proof: &str, keys: &[TrustedKey], signers: &[PublicKey]) -> Result<VerifiedProof, InvalidProof> {
    prove::check_proof(proof, keys, signers)
}
