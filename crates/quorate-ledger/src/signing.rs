//! Signatures over records (D3): Ed25519 (RFC 8032), detached, over a message with a purpose.
//!
//! The signed bytes are the pre-authentication encoding of DSSE v1 with a context as payload type and a record's leaf as
//! payload, so that an envelope can be made later without the secret. [`Keyring`] decides which keys' signatures count at
//! which time. The caller owns files and their modes.

mod key;
mod keyring;
pub(crate) mod run;
mod signature;
mod statement;
mod voucher;

pub use key::{InvalidKey, KeyId, PublicKey, SecretKey};
pub use keyring::{InsertError, Key, Keyring, RejectedSignature};
pub use run::ExternalKeys;
pub use signature::{Context, InvalidSignature, Signature};
pub use voucher::{CheckedVoucher, Voucher};
