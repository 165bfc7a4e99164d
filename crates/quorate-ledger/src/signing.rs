//! Signatures over records (D3): Ed25519 (RFC 8032), detached, over a message with a purpose.
//!
//! The signed bytes are the pre-authentication encoding of DSSE v1 with a context as payload type and a record's leaf
//! as payload, so that an envelope can be made later without the secret. [`Keyring`] decides which keys' signatures
//! count at which time. The caller owns key files and their modes.

mod keyring;
pub(crate) mod run;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};
use quorate_kernel::entropy::{self, hex};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::merkle::Hash;

pub use keyring::{CheckedVoucher, Keyring, KeyringEntry, KeyringError, RejectedSignature, Voucher};
pub use run::ExternalKeys;

const SEED_PREFIX: &str = "quorate:ed25519:seed:";
const PUBLIC_PREFIX: &str = "quorate:ed25519:public:";

/// The length of 32 bytes in base64.
const ENCODED_LEN: usize = 44;

/// A secret key. Its memory is overwritten on drop, it cannot be copied, and it prints as its public half.
pub struct SecretKey(SigningKey);

/// A public key for strict verification. It is never a point of small order, under which one signature fits many
/// messages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

/// A key's name: the first 16 bytes of SHA-256 over its public text, as 32 hexadecimal digits. The name follows from
/// the key, so two keys cannot swap names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 16]);

/// Why a text is not a key. It never repeats the text, which may be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    /// The prefix is missing or another one.
    #[error("it does not start with `{expected}`")]
    Prefix {
        /// The expected prefix.
        expected: &'static str,
    },
    /// The rest is not the base64 of 32 bytes.
    #[error("the text after its prefix is not the base64 of 32 bytes")]
    Encoding,
    /// The 32 bytes are not a public key, or are a point of small order, under which one signature fits many messages.
    #[error("its 32 bytes are not a usable Ed25519 public key")]
    Point,
    /// Not 32 hexadecimal digits in lower case.
    #[error("a key's name is 32 hexadecimal digits in lower case")]
    Name,
}

impl SecretKey {
    /// A new key, from the operating system's random source.
    ///
    /// # Panics
    /// If the operating system cannot supply random bytes.
    pub fn generate() -> Self {
        SecretKey::from_seed(&Zeroizing::new(entropy::bytes()))
    }

    /// The key with this seed, which is RFC 8032's private key.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        SecretKey(SigningKey::from_bytes(seed))
    }

    /// Reads a key's text, with or without one line end.
    ///
    /// # Errors
    /// [`InvalidKey`] if it is malformed.
    pub fn from_text(text: &str) -> Result<Self, InvalidKey> {
        let line = text.strip_suffix('\n').unwrap_or(text);
        Ok(SecretKey::from_seed(&*decode(SEED_PREFIX, line)?))
    }

    /// The key's text, one line without its end. It is the secret itself.
    pub fn to_text(&self) -> Zeroizing<String> {
        // Allocated once: a growing buffer would leave copies of the secret behind.
        let mut text = Zeroizing::new(String::with_capacity(SEED_PREFIX.len() + ENCODED_LEN));
        let mut encoded = Zeroizing::new([0; ENCODED_LEN]);
        let bytes = self.0.as_bytes();
        let length = STANDARD.encode_slice(bytes, &mut *encoded).expect("32 bytes are 44 letters of base64");
        text.push_str(SEED_PREFIX);
        text.extend(encoded[..length].iter().copied().map(char::from));
        text
    }

    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs a message without a context. The caller ensures that messages of different purposes never coincide.
    pub(crate) fn sign_message(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretKey").field("public", &self.public()).finish_non_exhaustive()
    }
}

impl PublicKey {
    /// Converts the 32 bytes of RFC 8032.
    ///
    /// # Errors
    /// [`InvalidKey::Point`] if they are not a usable key.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, InvalidKey> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| InvalidKey::Point)?;
        if key.is_weak() { Err(InvalidKey::Point) } else { Ok(PublicKey(key)) }
    }

    /// Its 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// Reads a public key's text, as its [`Display`](fmt::Display) writes it, with or without one line end.
    ///
    /// # Errors
    /// [`InvalidKey`] if it is malformed.
    pub fn from_text(text: &str) -> Result<Self, InvalidKey> {
        let line = text.strip_suffix('\n').unwrap_or(text);
        PublicKey::from_bytes(&*decode(PUBLIC_PREFIX, line)?)
    }

    pub fn id(&self) -> KeyId {
        let hash = Sha256::digest(self.to_string().as_bytes());
        KeyId(std::array::from_fn(|at| hash[at]))
    }

    /// Verifies this key's signature over the message strictly: each signature has one encoding, and points of small
    /// order are refused.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(signature);
        self.0.verify_strict(message, &signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PUBLIC_PREFIX}{}", STANDARD.encode(self.as_bytes()))
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl KeyId {
    /// Reads a key's name.
    ///
    /// # Errors
    /// [`InvalidKey::Name`] if it is invalid.
    pub fn from_text(text: &str) -> Result<Self, InvalidKey> {
        if text.len() != 32 || !text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(InvalidKey::Name);
        }
        let id = u128::from_str_radix(text, 16).map_err(|_| InvalidKey::Name)?;
        Ok(KeyId(id.to_be_bytes()))
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl Serialize for KeyId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Parses 32 bytes after a prefix, in canonical base64.
fn decode(prefix: &'static str, line: &str) -> Result<Zeroizing<[u8; 32]>, InvalidKey> {
    let encoded = line.strip_prefix(prefix).ok_or(InvalidKey::Prefix { expected: prefix })?;
    if encoded.len() != ENCODED_LEN {
        return Err(InvalidKey::Encoding);
    }
    // The decoder requires room for 33 bytes, because it sees the padding last.
    let mut room = Zeroizing::new([0; 33]);
    let length = STANDARD.decode_slice(encoded, &mut *room).map_err(|_| InvalidKey::Encoding)?;
    let mut bytes = Zeroizing::new([0; 32]);
    if length != bytes.len() {
        return Err(InvalidKey::Encoding);
    }
    bytes.copy_from_slice(&room[..length]);
    Ok(bytes)
}

/// The statement that a signature makes about a leaf. It is the payload type of a signature's envelope in an export. It
/// is part of the signed bytes, so a signature made for one purpose is invalid for another.
///
/// A ledger's key also signs checkpoints, and no message here is a checkpoint's text. The bytes before the leaf contain
/// no line end, so size and root would have to fit into the leaf's 32 bytes, and a root alone takes 44.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SigningContext(&'static str);

impl SigningContext {
    /// The signer recorded this ledger record, whose leaf it is.
    pub const RECORD: SigningContext = SigningContext::new("application/vnd.quorate.record-leaf.v1");

    /// The signer extends its authority over runs to another key. The leaf is the hash of a
    /// [`Voucher`].
    pub const VOUCHER: SigningContext = SigningContext::new("application/vnd.quorate.key-voucher.v1");

    /// A ledger's key authorizes its replacement to sign later checkpoints.
    pub const LEDGER_VOUCHER: SigningContext =
        SigningContext::new("application/vnd.quorate.ledger-key-voucher.v1");

    /// The signer queued this task. The leaf is a hash of the worker's input.
    pub const TASK: SigningContext = SigningContext::new("application/vnd.quorate.queue-task.v1");

    /// A context with another name, which must consist of visible ASCII characters.
    pub const fn new(name: &'static str) -> Self {
        SigningContext(name)
    }

    /// The payload type of an envelope.
    pub fn name(self) -> &'static str {
        self.0
    }

    /// The signed bytes for a leaf: `DSSEv1 <length> <name> 32 <leaf>`. The lengths make the encoding unambiguous.
    fn message(self, leaf: &Hash) -> Vec<u8> {
        let mut message = format!("DSSEv1 {} {} {} ", self.0.len(), self.0, leaf.len()).into_bytes();
        message.extend(leaf);
        message
    }
}

/// A detached Ed25519 signature: 64 bytes, as text in standard base64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; 64]);

/// Why a text is not a signature, or a signature is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSignature {
    /// Not the base64 of 64 bytes.
    #[error("a signature must be the base64 of 64 bytes")]
    Encoding,
    /// This key did not sign this leaf in this context.
    #[error("the signature does not verify")]
    Forged,
}

impl Signature {
    /// Converts the 64 bytes of RFC 8032.
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
        // 64 bytes are 88 letters. A longer text is not decoded.
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

impl SecretKey {
    /// Signs a record's leaf for a purpose.
    pub fn sign(&self, context: SigningContext, leaf: &Hash) -> Signature {
        Signature(self.sign_message(&context.message(leaf)))
    }
}

impl PublicKey {
    /// Checks that the key signed the leaf for this purpose.
    ///
    /// # Errors
    /// [`InvalidSignature::Forged`] if it did not.
    pub fn verify(
        &self,
        context: SigningContext,
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

/// The payload type of a statement in an envelope of DSSE v1. No record, voucher or checkpoint uses it, so a statement
/// cannot be mistaken for one.
const IN_TOTO: &str = "application/vnd.in-toto+json";

/// The media type of a Sigstore bundle.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// The DER prefix of an Ed25519 key's SubjectPublicKeyInfo (RFC 8410).
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

impl SecretKey {
    /// Signs an in-toto statement and returns a Sigstore bundle: an envelope of DSSE v1 with one signature. It names
    /// the key by the hash of its SubjectPublicKeyInfo and does not contain it, because verifiers must get the key from
    /// another source.
    pub fn sign_statement(&self, statement: &str) -> Value {
        let message = format!("DSSEv1 {} {IN_TOTO} {} {statement}", IN_TOTO.len(), statement.len());
        let signature = self.sign_message(message.as_bytes());
        let hint = STANDARD.encode(Sha256::digest(self.public().to_spki()));
        json!({
            "mediaType": BUNDLE,
            "verificationMaterial": {"publicKey": {"hint": hint}},
            "dsseEnvelope": {
                "payload": STANDARD.encode(statement),
                "payloadType": IN_TOTO,
                "signatures": [{"sig": STANDARD.encode(signature)}],
            },
        })
    }
}

impl PublicKey {
    /// Its SubjectPublicKeyInfo in DER, 44 bytes.
    pub fn to_spki(&self) -> Vec<u8> {
        [&SPKI_PREFIX[..], self.as_bytes()].concat()
    }

    /// Its SubjectPublicKeyInfo in PEM, with a line end.
    pub fn to_pem(&self) -> String {
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(self.to_spki()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unhex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }

    /// RFC 8032, section 7.1: seed, public key, message, signature.
    const RFC_8032: &[[&str; 4]] = &[
        [
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        ],
        [
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ],
        [
            "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
            "af82",
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
        ],
        [
            "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
            "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
            "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
        ],
    ];

    #[test]
    fn the_vectors_of_rfc_8032_hold() {
        // D3
        for [seed, public, message, signature] in RFC_8032 {
            let key = SecretKey::from_seed(&unhex(seed).try_into().unwrap());
            let (message, signature) = (unhex(message), unhex(signature));
            assert_eq!(key.public().as_bytes().as_slice(), unhex(public));
            assert_eq!(key.sign_message(&message).as_slice(), signature);
            assert!(key.public().verifies(&message, &signature.try_into().unwrap()));
        }
    }

    #[test]
    fn a_signature_has_one_form() {
        // D3: S and S + L are equal to a lax verifier. One of the two would be a second valid signature.
        const ORDER: &str = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";
        let key = SecretKey::from_seed(&[7; 32]);
        let mut signature = key.sign_message(b"message");
        assert!(key.public().verifies(b"message", &signature));
        let mut carry = 0;
        for (byte, order) in signature[32..].iter_mut().zip(unhex(ORDER)) {
            let sum = u16::from(*byte) + u16::from(order) + carry;
            *byte = sum.to_le_bytes()[0];
            carry = sum >> 8;
        }
        assert_eq!(carry, 0, "the sum fits 32 bytes");
        assert!(!key.public().verifies(b"message", &signature));
    }
}

#[cfg(test)]
mod statement_tests {
    use super::*;

    /// The first test key of RFC 8032, section 7.1, and its form in PEM as OpenSSL prints it.
    #[test]
    fn a_key_in_pem_is_what_others_write() {
        let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let bytes: Vec<u8> =
            (0..32).map(|at| u8::from_str_radix(&seed[2 * at..2 * at + 2], 16).unwrap()).collect();
        let key = SecretKey::from_seed(&bytes.try_into().unwrap());
        assert_eq!(
            key.public().to_pem(),
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n"
        );
    }
}
