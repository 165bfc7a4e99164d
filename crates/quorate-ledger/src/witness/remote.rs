//! The HTTP protocol of witnesses (c2sp.org/tlog-witness): requests, and the meaning of answers. Does no I/O.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quorate_kernel::ports::ledger::Error;

use crate::Store;
use crate::merkle::{self, Hash, TreeHead};
use crate::note::{Cosigner, Note};
use crate::store::tiles;

/// The longest answer that is read, in bytes.
pub const MAX_BYTES: usize = 64 << 10;

/// What a witness answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It signed: the checkpoint with the log's signatures and the witness's.
    Cosigned(String),
    /// It has seen this many records, and requires a proof that the checkpoint extends them.
    Seen(u64),
}

/// The body of a request: that a checkpoint follows one over `old` records.
pub fn request(old: u64, path: &[Hash], note: &str) -> String {
    let path: String = path.iter().map(|hash| STANDARD.encode(hash) + "\n").collect();
    format!("old {old}\n{path}\n{note}")
}

/// Reads an answer to a request about a note.
///
/// # Errors
/// Why it is no cosignature, in words.
pub fn answer(status: u16, body: &[u8], note: &str, cosigner: &Cosigner) -> Result<Answer, String> {
    match status {
        200 => merge_cosignature(body, note, cosigner).map(Answer::Cosigned),
        409 => {
            let text = std::str::from_utf8(body).ok().and_then(|text| text.strip_suffix('\n'));
            let size = text.and_then(|text| text.parse::<u64>().ok().filter(|size| size.to_string() == text));
            size.map(Answer::Seen)
                .ok_or_else(|| "it has seen another tree and does not say of what size".to_owned())
        }
        400 => Err("it cannot read the request (400)".to_owned()),
        403 => Err("it does not trust the ledger's key (403)".to_owned()),
        404 => Err("it does not know this ledger (404)".to_owned()),
        422 => Err("it has seen a tree that this one does not continue (422)".to_owned()),
        other => Err(format!("it answered with the status {other}")),
    }
}

/// The note with the witness's signature. Lines of other keys are left out.
fn merge_cosignature(body: &[u8], note: &str, cosigner: &Cosigner) -> Result<String, String> {
    let lines = std::str::from_utf8(body).map_err(|_| "its answer is not UTF-8".to_owned())?;
    let signed = Note::parse(note.as_bytes()).map_err(|error| error.to_string())?;
    // What it adds are signature lines; an empty one would make another text of the note.
    if !lines.split_inclusive('\n').all(|line| line.starts_with("\u{2014} ") && line.ends_with('\n')) {
        return Err("its answer is not signature lines".to_owned());
    }
    let all =
        Note::parse(format!("{note}{lines}").as_bytes()).map_err(|error| format!("its answer: {error}"))?;
    let (line, _) = cosigner.find_signature(&all).map_err(|error| error.to_string())?;
    signed.with_signature(line.clone()).map(|note| note.to_string()).map_err(|error| error.to_string())
}

impl Store {
    /// The hashes that lead from the tree of the first `old` records to that of a checkpoint.
    ///
    /// # Errors
    /// When the store does not answer, or its stored tree is not whole.
    #[crate::boxed]
    pub async fn consistency(&self, old: u64, tree: &TreeHead) -> Result<Vec<Hash>, Error> {
        let mut connection = self.writer().await;
        let engine = connection.engine().await.map_err(|error| self.error(error))?;
        let ranges = merkle::consistency_ranges(old, tree.size);
        let fetched =
            tiles::fetch(engine, ranges, tree.size).await.map_err(|error| self.tree_error(error))?;
        let proof = merkle::consistency(&fetched, old, tree.size);
        let absent =
            |error: &dyn std::fmt::Display| self.tree_error(tiles::TreeError::Incomplete(error.to_string()));
        Ok(proof.map_err(|error| absent(&error))?.path)
    }
}
