//! The contents of a report file: the proof of a run, the texts of the run, and what both say. A reader without the ledger
//! gets the same contents from the file alone, so that drawing the report again checks the file.

mod collect;
mod content;

use std::sync::Arc;

use quorate_ledger::prove::VerifiedProof;

pub use collect::{MAX_BYTES_WITHOUT_WARNING, Scope, absolute_paths, collect, warn};
pub use content::{Consulted, Content, Numbered};

/// The contents of a report file.
pub struct ReportFile {
    /// The proof, as `quorate ledger prove` writes it; with [`Scope::OutcomeOnly`] without the data of other records.
    pub proof: String,
    /// The texts, as the ledger keeps them, in the order of the run's inputs.
    pub texts: Vec<InputText>,
    pub proven: VerifiedProof,
    pub content: Content,
}

/// A text of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputText {
    /// Its place among the run's inputs.
    pub input: usize,
    pub name: String,
    pub text: Arc<str>,
}

/// Why a file's contents do not make a report.
#[derive(Debug, thiserror::Error)]
pub enum InvalidContents {
    #[error(transparent)]
    Proof(#[from] quorate_ledger::prove::InvalidProof),
    #[error("the proof does not cover one run from its first record on")]
    NotARun,
    #[error("text {0} differs from the run's input")]
    ForeignText(usize),
    #[error("cannot read its records: {0}")]
    Records(#[from] quorate_kernel::history::Error),
}

impl ReportFile {
    /// The contents of a proof and the texts beside it, each with its place among the run's inputs. Does not check the proof's
    /// key.
    ///
    /// # Errors
    /// [`InvalidContents`].
    pub fn read(proof: String, texts: Vec<(usize, Arc<str>)>) -> Result<ReportFile, InvalidContents> {
        let proven = quorate_ledger::prove::check_proof(&proof, &[], &[])?;
        let content = Content::of(&proven)?;
        let texts = content.named(texts)?;
        Ok(ReportFile { content: content.with_report(&texts), proof, texts, proven })
    }
}
