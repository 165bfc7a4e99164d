//! Signed notes and checkpoints (D2), as in C2SP `signed-note` and `tlog-checkpoint` (c2sp.org): what a ledger says of
//! its tree, in a form that other people's tools verify and their witnesses sign too.
//!
//! [`Note`] is any text with signatures, [`Checkpoint`] the text that names a tree's size and root, [`Signer`] and
//! [`Verifier`] the keys, with the names that lines give them. Signatures are Ed25519 (type 0x01), the one type that this
//! program makes and verifies; lines of other types are kept and ignored, as the specification has it.

mod checkpoint;
mod cosigner;
mod key;
mod signed_note;

pub use checkpoint::{Checkpoint, InvalidCheckpoint, OpenError, VerifiedCheckpoint};
pub use cosigner::{CosignatureError, Cosigner};
pub use key::{InvalidName, InvalidVerifier, Signer, Verifier};
pub use signed_note::{MAX_BYTES, MAX_SIGNATURES, MalformedNote, Note, SignatureLine, VerifyError};
