//! Checkpoints (c2sp.org/tlog-checkpoint): a note whose text has a log's name, its size and its root, a line each, and
//! optional extension lines.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::key::{Signer, Verifier};
use super::signed_note::{MalformedNote, Note, VerifyError};
use crate::merkle::{Hash, TreeHead};

/// What a log says of its tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    origin: String,
    tree: TreeHead,
    extensions: Vec<String>,
}

/// A checkpoint with verified signers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedCheckpoint<'a> {
    pub checkpoint: Checkpoint,
    /// Those of the known keys that signed it; at least one. Whether one of them speaks for this origin is for the caller
    /// to decide.
    pub signers: Vec<&'a Verifier>,
}

/// Why a text is no checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCheckpoint {
    /// Fewer than three lines, an empty line, or no line end at the end.
    #[error("a checkpoint is three or more lines, none of them empty, each with its end")]
    Lines,
    #[error("the checkpoint has a control character")]
    Control,
    /// The second line is no size.
    #[error("the size is not a decimal number of 64 bits without leading zeros")]
    Size,
    /// The third line is no root.
    #[error("the root is not the base64 of 32 bytes")]
    Root,
}

/// Why bytes are no checkpoint that may be believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// They are no signed note.
    #[error(transparent)]
    Note(#[from] MalformedNote),
    /// None of the known keys signed it, or one did not that is named.
    #[error(transparent)]
    Signature(#[from] VerifyError),
    /// The note's text is no checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] InvalidCheckpoint),
}

impl Checkpoint {
    /// What the log `origin` says of its tree. The origin is one line; a name like
    /// `example.com/ledger`, the same as the signer's, is best.
    ///
    /// # Errors
    /// [`InvalidCheckpoint`] where the origin is empty or not one line.
    pub fn new(origin: &str, tree: TreeHead) -> Result<Self, InvalidCheckpoint> {
        line(origin)?;
        Ok(Checkpoint { origin: origin.to_owned(), tree, extensions: Vec::new() })
    }

    /// Adds an extension line. The specification advises against them: monitors of a log cannot check them, and newer
    /// witnesses do not sign them.
    ///
    /// # Errors
    /// [`InvalidCheckpoint`] where it is empty or not one line.
    pub fn with_extension(mut self, extension: &str) -> Result<Self, InvalidCheckpoint> {
        line(extension)?;
        self.extensions.push(extension.to_owned());
        Ok(self)
    }

    /// Reads a note's text.
    ///
    /// # Errors
    /// [`InvalidCheckpoint`] at the first thing that does not fit.
    pub fn parse(text: &str) -> Result<Self, InvalidCheckpoint> {
        let mut lines = text.strip_suffix('\n').ok_or(InvalidCheckpoint::Lines)?.split('\n');
        let (Some(origin), Some(size), Some(root)) = (lines.next(), lines.next(), lines.next()) else {
            return Err(InvalidCheckpoint::Lines);
        };
        [origin, size, root].into_iter().try_for_each(line)?;
        let checkpoint = Checkpoint::new(origin, TreeHead { size: number(size)?, root: hash(root)? })?;
        lines.try_fold(checkpoint, Checkpoint::with_extension)
    }

    /// Reads a signed checkpoint and holds its signatures against known keys.
    ///
    /// # Errors
    /// [`OpenError`] if it is not a checkpoint, or not trustworthy.
    pub fn open<'a>(note: &[u8], known: &'a [Verifier]) -> Result<VerifiedCheckpoint<'a>, OpenError> {
        let note = Note::parse(note)?;
        let signers = note.verify(known)?;
        let checkpoint = Checkpoint::parse(note.text())?;
        Ok(VerifiedCheckpoint { checkpoint, signers })
    }

    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Its tree's size and root.
    pub fn tree(&self) -> &TreeHead {
        &self.tree
    }

    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }

    /// The checkpoint as a note with this key's signature. A log signs no checkpoint that contradicts one that it signed
    /// before, which the caller has checked.
    ///
    /// # Errors
    /// [`MalformedNote`] where it is longer than a note that is read.
    pub fn sign(&self, signer: &Signer) -> Result<Note, MalformedNote> {
        let mut note = Note::new(&self.to_string())?;
        note.sign(signer)?;
        Ok(note)
    }
}

/// The text that is signed.
impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Checkpoint { origin, tree: TreeHead { size, root }, extensions } = self;
        writeln!(f, "{origin}\n{size}\n{}", STANDARD.encode(root))?;
        extensions.iter().try_for_each(|extension| writeln!(f, "{extension}"))
    }
}

/// Whether a text may stand as a line.
fn line(text: &str) -> Result<(), InvalidCheckpoint> {
    if text.is_empty() || text.contains('\n') {
        Err(InvalidCheckpoint::Lines)
    } else if text.bytes().any(|byte| byte < b' ') {
        Err(InvalidCheckpoint::Control)
    } else {
        Ok(())
    }
}

fn number(text: &str) -> Result<u64, InvalidCheckpoint> {
    let number: u64 = text.parse().map_err(|_| InvalidCheckpoint::Size)?;
    // One number has one text: no sign, no leading zeros.
    if number.to_string() == text { Ok(number) } else { Err(InvalidCheckpoint::Size) }
}

fn hash(text: &str) -> Result<Hash, InvalidCheckpoint> {
    let bytes = STANDARD.decode(text).map_err(|_| InvalidCheckpoint::Root)?;
    bytes.try_into().map_err(|_| InvalidCheckpoint::Root)
}
