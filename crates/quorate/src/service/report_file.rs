//! The contents of a report file: the proof of a run, the texts that the run is about, and what both say. A reader without
//! the ledger makes the same contents from the file alone, so that the file can be checked by drawing it again.

mod collect;
mod content;

use std::sync::Arc;

use quorate_ledger::prove::VerifiedProof;

pub use collect::{MAX_BYTES_WITHOUT_WARNING, Scope, absolute_paths, collect, warn};
pub use content::{Consulted, Content, Numbered};

/// What a report file holds.
pub struct ReportFile {
    /// The proof, as `quorate ledger prove` writes it; with [`Scope::OutcomeOnly`] without the data of other records.
    pub proof: String,
    /// The texts, as the ledger keeps them, in the order of the run's inputs.
    pub texts: Vec<InputText>,
    pub proven: VerifiedProof,
    pub content: Content,
}

/// A text that a run is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputText {
    /// Its place among the run's inputs.
    pub input: usize,
    pub name: String,
    pub text: Arc<str>,
}

/// Why a file's contents make no report.
#[derive(Debug, thiserror::Error)]
pub enum InvalidContents {
    #[error(transparent)]
    Proof(#[from] quorate_ledger::prove::InvalidProof),
    #[error("the proof is not of one run from its first record on")]
    NotARun,
    #[error("text {0} is not what the run was about")]
    ForeignText(usize),
    #[error("its records cannot be read: {0}")]
    Records(#[from] quorate_kernel::history::Error),
}

impl ReportFile {
    /// The contents of a proof and the texts beside it, each with its place among the run's inputs. The proof's key is not
    /// compared with any.
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
