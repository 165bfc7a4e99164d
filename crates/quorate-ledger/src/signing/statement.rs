//! Signatures over in-toto statements, and public keys in the form that tools for them read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::key::{PublicKey, SecretKey};

/// The payload type of a statement in an envelope of DSSE v1. No record, voucher or checkpoint is signed under it, so a
/// statement cannot be taken for one.
const IN_TOTO: &str = "application/vnd.in-toto+json";

/// The form of a Sigstore bundle.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// What comes before the 32 bytes of an Ed25519 key in its SubjectPublicKeyInfo (RFC 8410).
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

impl SecretKey {
    /// Signs an in-toto statement, and gives it as a Sigstore bundle: an envelope of DSSE v1 with one signature. The key is
    /// named by the hash of its SubjectPublicKeyInfo, and not enclosed: those who verify have it from elsewhere.
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
