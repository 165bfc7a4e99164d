//! Signatures over records (D3): Ed25519 (RFC 8032), detached, over a message that says what was signed.
//!
//! What is signed is the pre-authentication encoding of DSSE v1 with a context as its payload type and a record's leaf
//! as its payload, so that an envelope can be put around a signature later, without the secret. Which keys' signatures
//! count at which time, [`Keyring`] says. Files and their modes belong to whoever keeps the keys.

mod key;
mod keyring;
pub(crate) mod run;
mod signature;
mod voucher;

pub use key::{InvalidKey, KeyId, PublicKey, SecretKey};
pub use keyring::{InsertError, Key, Keyring, RejectedSignature};
pub use run::ExternalKeys;
pub use signature::{Context, InvalidSignature, Signature};
pub use voucher::{CheckedVoucher, Voucher};
