//! Detached signatures, and the signed message: the pre-authentication encoding (PAE) of DSSE v1.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::key::{PublicKey, SecretKey};
use crate::merkle::Hash;

/// What a signature says of a leaf. It is the payload type of the envelope that an export puts around the signature, and
/// it is signed, so that a signature made for one purpose is invalid for another.
///
/// A ledger's key also signs checkpoints, and no message here is a checkpoint's text: what comes before the leaf has no
/// line end, so size and root would have to be in the leaf's 32 bytes, and a root alone takes 44.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Context(&'static str);

impl Context {
    /// The signer recorded this: the leaf is a ledger record's.
    pub const RECORD: Context = Context::new("application/vnd.quorate.record-leaf.v1");

    /// The signer lets another key's signatures count where its own do: the leaf is what a [`Voucher`](super::Voucher) says.
    pub const VOUCHER: Context = Context::new("application/vnd.quorate.key-voucher.v1");

    /// A ledger's key lets the key that replaces it sign the checkpoints after its own.
    pub const LEDGER_VOUCHER: Context = Context::new("application/vnd.quorate.ledger-key-voucher.v1");

    /// The signer queued this task: the leaf is a hash of what a worker is to do.
    pub const TASK: Context = Context::new("application/vnd.quorate.queue-task.v1");

    /// A context of another name.
    ///
    /// # Panics
    /// Where the name is empty or has other than visible ASCII characters; a constant does so when it is compiled.
    pub const fn new(name: &'static str) -> Self {
        let letters = name.as_bytes();
        assert!(!letters.is_empty(), "a context has a name");
        let mut at = 0;
        while at < letters.len() {
            assert!(letters[at].is_ascii_graphic(), "a context's name has visible ASCII characters alone");
            at += 1;
        }
        Context(name)
    }

    /// The name, which is the payload type of an envelope.
    pub fn name(self) -> &'static str {
        self.0
    }

    /// What is signed for a leaf: `DSSEv1 <length> <name> 32 <leaf>`. The lengths leave one reading of it.
    fn message(self, leaf: &Hash) -> Vec<u8> {
        let mut message = format!("DSSEv1 {} {} {} ", self.0.len(), self.0, leaf.len()).into_bytes();
        message.extend(leaf);
        message
    }
}

/// A detached Ed25519 signature: 64 bytes, as text in standard base64.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; 64]);

/// Why a text is no signature, or a signature does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSignature {
    /// Not the base64 of 64 bytes.
    #[error("a signature is the base64 of 64 bytes")]
    Encoding,
    /// It is not this key's over this leaf in this context.
    #[error("the signature does not verify")]
    Forged,
}

impl Signature {
    /// Takes the 64 bytes of RFC 8032.
    pub fn from_bytes(bytes: [u8; 64]) -> Self {
        Signature(bytes)
    }

    /// Its 64 bytes.
    pub fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }

    /// Reads a signature's text.
    ///
    /// # Errors
    /// [`InvalidSignature::Encoding`] if it is malformed.
    pub fn from_text(text: &str) -> Result<Self, InvalidSignature> {
        // 64 bytes are 88 letters, and nothing longer is looked at.
        if text.len() != 88 {
            return Err(InvalidSignature::Encoding);
        }
        let bytes = STANDARD.decode(text).map_err(|_| InvalidSignature::Encoding)?;
        bytes.try_into().map(Signature).map_err(|_| InvalidSignature::Encoding)
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({self})")
    }
}

impl SecretKey {
    /// Signs a record's leaf for a purpose.
    pub fn sign(&self, context: Context, leaf: &Hash) -> Signature {
        Signature(self.sign_message(&context.message(leaf)))
    }
}

impl PublicKey {
    /// Whether this is the key's signature over the leaf for this purpose.
    ///
    /// # Errors
    /// [`InvalidSignature::Forged`] where it is not.
    pub fn verify(
        &self,
        context: Context,
        leaf: &Hash,
        signature: &Signature,
    ) -> Result<(), InvalidSignature> {
        if self.verifies(&context.message(leaf), signature.as_bytes()) {
            Ok(())
        } else {
            Err(InvalidSignature::Forged)
        }
    }
}
