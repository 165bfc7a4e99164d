//! DSSE envelopes (github.com/secure-systems-lab/dsse, v1): the format of a record's detached signature in exports and
//! proofs. The payload is the record's leaf, and the payload type is signed, too.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::merkle::Hash;
use crate::signing::{Context, KeyId, PublicKey, Signature};

/// An envelope around one signature of one record. Its fields are in the order of canonical JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// The record's leaf, 32 bytes in standard base64.
    pub payload: String,
    /// What the signature says of it.
    #[serde(rename = "payloadType")]
    pub payload_type: String,
    /// The signature, exactly one.
    pub signatures: Vec<EnvelopeSignature>,
}

/// A signature of an envelope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvelopeSignature {
    /// The key's name, 32 hexadecimal digits.
    pub keyid: String,
    /// 64 bytes in standard base64.
    pub sig: String,
}

impl Envelope {
    /// Builds an envelope from a stored signature: the key's name and the signature's text.
    pub fn new(leaf: &Hash, keyid: &str, sig: &str) -> Self {
        Envelope {
            payload: STANDARD.encode(leaf),
            payload_type: Context::RECORD.name().to_owned(),
            signatures: vec![EnvelopeSignature { keyid: keyid.to_owned(), sig: sig.to_owned() }],
        }
    }

    /// Verifies it for a leaf and known keys; returns the key that signed. Signatures of keys of which only the
    /// names are known are taken as they are.
    ///
    /// # Errors
    /// Why it is invalid, in words.
    pub fn verify(&self, leaf: &Hash, known: &[PublicKey], unknown: &[KeyId]) -> Result<KeyId, String> {
        if self.payload_type != Context::RECORD.name() {
            return Err(format!("an envelope has the payload type `{}`", self.payload_type));
        }
        if self.payload != STANDARD.encode(leaf) {
            return Err("an envelope's payload is not the record's leaf".to_owned());
        }
        let [signed] = &self.signatures[..] else {
            return Err(format!("an envelope has {} signatures and not one", self.signatures.len()));
        };
        let id = KeyId::from_text(&signed.keyid).map_err(|error| format!("a signature's key: {error}"))?;
        let signature = Signature::from_text(&signed.sig).map_err(|error| error.to_string())?;
        if unknown.contains(&id) {
            return Ok(id);
        }
        let Some(key) = known.iter().find(|key| key.id() == id) else {
            return Err(format!("it is signed by the key {id}, whose public half is not known"));
        };
        key.verify(Context::RECORD, leaf, &signature)
            .map_err(|_| format!("the signature of the key {id} does not verify"))?;
        Ok(id)
    }
}
