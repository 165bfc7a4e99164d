//! Note keys: a name, an Ed25519 key, and the four-byte key id that signature lines use.
//!
//! A verifier's text is `<name>+<key id, 8 hexadecimal digits>+<base64 of the type and the key>`.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quorate_kernel::entropy::hex;
use sha2::{Digest, Sha256};

use crate::signing::{PublicKey, SecretKey};

/// The signature type of Ed25519.
const ED25519_TYPE: u8 = 0x01;

/// A key that signs notes, under a name.
#[derive(Debug)]
pub struct Signer {
    key: Arc<SecretKey>,
    verifier: Verifier,
}

/// A key that verifies notes, under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verifier {
    name: String,
    id: [u8; 4],
    key: PublicKey,
}

/// A text that is no key's name: empty, or with spaces, plus signs or control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key's name is not empty and has no spaces, plus signs or control characters")]
pub struct InvalidName;

/// Why a text is no verifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidVerifier {
    /// Not three parts joined by plus signs, the second of 8 hexadecimal digits in lower case, the third base64.
    #[error("a verifier key is <name>+<8 hexadecimal digits>+<base64>")]
    Form,
    /// The name is invalid.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// Another type of signature.
    #[error("its signature type is {kind:#04x}, and it has to be {wanted:#04x}")]
    Type {
        kind: u8,
        /// The one that is read here.
        wanted: u8,
    },
    /// No 32 bytes, or no usable public key.
    #[error("it has no usable Ed25519 public key")]
    Key,
    /// The key id is not that of the name and the key.
    #[error("its key id belongs to another name or key")]
    Id,
}

impl Signer {
    /// A key under a name.
    ///
    /// # Errors
    /// [`InvalidName`] if the name is invalid.
    pub fn new(name: &str, key: impl Into<Arc<SecretKey>>) -> Result<Self, InvalidName> {
        let key = key.into();
        let verifier = Verifier::new(name, key.public())?;
        Ok(Signer { key, verifier })
    }

    /// Who verifies what it signs.
    pub fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// Signs a note's text.
    pub(super) fn sign(&self, text: &str) -> [u8; 64] {
        self.key.sign_message(text.as_bytes())
    }
}

impl Verifier {
    /// A public key under a name.
    ///
    /// # Errors
    /// [`InvalidName`] if the name is invalid.
    pub fn new(name: &str, key: PublicKey) -> Result<Self, InvalidName> {
        if !is_name(name) {
            return Err(InvalidName);
        }
        Ok(Verifier { name: name.to_owned(), id: id_of(name, ED25519_TYPE, &key), key })
    }

    /// Reads a verifier's text, as its [`Display`](fmt::Display) writes it.
    ///
    /// # Errors
    /// [`InvalidVerifier`] where it is anything but that.
    pub fn from_text(text: &str) -> Result<Self, InvalidVerifier> {
        let (name, id, key) = parse_typed_key(text, ED25519_TYPE)?;
        Ok(Verifier { name, id, key })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key id: the first four bytes of SHA-256 over name, line end, type and key. An identifier, no protection.
    pub fn id(&self) -> [u8; 4] {
        self.id
    }

    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// Whether bytes are its signature over a note's text.
    pub(super) fn verifies(&self, text: &str, signature: &[u8]) -> bool {
        signature.try_into().is_ok_and(|signature| self.key.verifies(text.as_bytes(), signature))
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut typed = vec![ED25519_TYPE];
        typed.extend(self.key.as_bytes());
        write!(f, "{}+{}+{}", self.name, hex(&self.id), STANDARD.encode(typed))
    }
}

/// Whether a text may name a key.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(|c| c.is_whitespace() || c == '+' || c < ' ')
}

/// The first four bytes of SHA-256 over name, line end, type and key.
fn id_of(name: &str, kind: u8, key: &PublicKey) -> [u8; 4] {
    let hash =
        Sha256::new().chain_update(name).chain_update([b'\n', kind]).chain_update(key.as_bytes()).finalize();
    [hash[0], hash[1], hash[2], hash[3]]
}

/// Name, id and key of a verifier's text that is of a signature type.
pub(super) fn parse_typed_key(
    text: &str,
    wanted: u8,
) -> Result<(String, [u8; 4], PublicKey), InvalidVerifier> {
    // A name has no plus sign, and base64 may have some.
    let mut parts = text.splitn(3, '+');
    let (Some(name), Some(id), Some(encoded)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(InvalidVerifier::Form);
    };
    let bytes = STANDARD.decode(encoded).map_err(|_| InvalidVerifier::Form)?;
    let (&kind, key) = bytes.split_first().ok_or(InvalidVerifier::Form)?;
    if kind != wanted {
        return Err(InvalidVerifier::Type { kind, wanted });
    }
    let key = key.try_into().map_err(|_| InvalidVerifier::Key)?;
    let key = PublicKey::from_bytes(key).map_err(|_| InvalidVerifier::Key)?;
    if !is_name(name) {
        return Err(InvalidName.into());
    }
    let own_id = id_of(name, kind, &key);
    if hex(&own_id) != id {
        return Err(InvalidVerifier::Id);
    }
    Ok((name.to_owned(), own_id, key))
}
