//! Signed notes and checkpoints (D2), as in C2SP `signed-note` and `tlog-checkpoint` (c2sp.org): a ledger's statement about
//! its tree, in a format that other tools verify and their witnesses cosign.
//!
//! [`Note`] is any text with signatures, [`Checkpoint`] the text with a tree's size and root, [`Signer`] and [`Verifier`]
//! named keys. Signatures are Ed25519 (type 0x01), the only type that this program makes and verifies; lines of other types
//! are kept and ignored, as the specification requires.

mod checkpoint;
mod cosigner;
mod key;
mod signed_note;

pub use checkpoint::{Checkpoint, InvalidCheckpoint, OpenError, VerifiedCheckpoint};
pub use cosigner::{CosignatureError, Cosigner};
pub use key::{InvalidName, InvalidVerifier, Signer, Verifier};
pub use signed_note::{MAX_BYTES, MAX_SIGNATURES, MalformedNote, Note, SignatureLine, VerifyError};
