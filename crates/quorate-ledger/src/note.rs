//! Signed notes and checkpoints (D2), as in C2SP `signed-note` and `tlog-checkpoint` (c2sp.org): what a ledger says of
//! its tree, in a form that other people's tools verify and their witnesses sign too.
//!
//! [`Note`] is any text with signatures, [`Checkpoint`] the text that names a tree's size and root, [`Signer`] and
//! [`Verifier`] the keys, with the names that lines give them. Signatures are Ed25519 (type 0x01), the one type that this
//! program makes and verifies; lines of other types are kept and ignored, as the specification has it.

mod checkpoint;
mod cosigner;
mod key;
mod signed;

pub use checkpoint::{BadCheckpoint, Checkpoint, Opened, Unopened};
pub use cosigner::{Cosigner, Uncosigned};
pub use key::{BadName, BadVerifier, Signer, Verifier};
pub use signed::{MAX_BYTES, MAX_SIGNATURES, Malformed, Note, SignatureLine, Unverified};
