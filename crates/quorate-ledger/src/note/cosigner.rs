//! Witnesses of checkpoints (c2sp.org/tlog-cosignature, version 1): a witness signs the time and the whole text of a
//! checkpoint, in a signature line of a type of its own.

use super::key::{InvalidVerifier, parse_typed_key};
use super::signed_note::{Note, SignatureLine};
use crate::signing::PublicKey;

/// The signature type of cosignatures with Ed25519.
const COSIGNATURE_TYPE: u8 = 0x04;

/// The key of a witness, under its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cosigner {
    name: String,
    id: [u8; 4],
    key: PublicKey,
}

/// Why a note is not cosigned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CosignatureError {
    /// It has no line of this witness.
    #[error("it has no signature of the witness {name}")]
    Absent { name: String },
    /// It has one, which is not the witness's.
    #[error("the signature of the witness {name} does not verify")]
    Forged { name: String },
}

impl Cosigner {
    /// Reads a verifier's line of type 0x04.
    ///
    /// # Errors
    /// [`InvalidVerifier`] where it is anything but that.
    pub fn from_text(text: &str) -> Result<Self, InvalidVerifier> {
        let (name, id, key) = parse_typed_key(text, COSIGNATURE_TYPE)?;
        Ok(Cosigner { name, id, key })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The line of a note that this witness signed, and when it did, in seconds since the Unix epoch.
    ///
    /// # Errors
    /// [`CosignatureError`] if one of its lines does not verify, whatever the others do.
    pub fn find_signature<'a>(&self, note: &'a Note) -> Result<(&'a SignatureLine, u64), CosignatureError> {
        let lines = note.signatures().iter().filter(|line| line.name == self.name && line.id == self.id);
        let mut last = None;
        for line in lines {
            let time = self.verified_time(note.text(), &line.signature);
            let forged = || CosignatureError::Forged { name: self.name.clone() };
            last = Some((line, time.ok_or_else(forged)?));
        }
        last.ok_or_else(|| CosignatureError::Absent { name: self.name.clone() })
    }

    /// The time of a signature over a text; `None` where it does not verify.
    fn verified_time(&self, text: &str, signature: &[u8]) -> Option<u64> {
        let (time, signature) = signature.split_first_chunk::<8>()?;
        let time = u64::from_be_bytes(*time);
        let message = format!("cosignature/v1\ntime {time}\n{text}");
        let verifies = self.key.verifies(message.as_bytes(), signature.try_into().ok()?);
        (verifies && i64::try_from(time).is_ok()).then_some(time)
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use quorate_kernel::entropy::hex;
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::signing::SecretKey;

    const TEXT: &str = "quorate/a\n3\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";

    /// A witness's line for its key, and a note that it signed at a time.
    fn witness(kind: u8, time: u64, text: &str) -> (String, Note) {
        let secret = SecretKey::from_seed(&[5; 32]);
        let mut typed = vec![kind];
        typed.extend(secret.public().as_bytes());
        let id = &Sha256::digest([b"w.example/1\n", &typed[..]].concat())[..4];
        let line = format!("w.example/1+{}+{}", hex(id), STANDARD.encode(&typed));
        let message = format!("cosignature/v1\ntime {time}\n{text}");
        let signature = [id, &time.to_be_bytes(), &secret.sign_message(message.as_bytes())].concat();
        let note = format!("{TEXT}\n\u{2014} w.example/1 {}\n", STANDARD.encode(signature));
        (line, Note::parse(note.as_bytes()).unwrap())
    }

    #[test]
    fn a_cosignature_is_over_time_and_text() {
        // D12
        let (line, note) = witness(4, 1_679_315_147, TEXT);
        let cosigner = Cosigner::from_text(&line).unwrap();
        assert_eq!(cosigner.find_signature(&note).unwrap().1, 1_679_315_147);
        let (_, other) = witness(4, 1, &TEXT.replace('3', "4"));
        assert!(matches!(cosigner.find_signature(&other), Err(CosignatureError::Forged { .. })));
        let renamed = note.to_string().replacen("w.example/1", "w.example/2", 1);
        let renamed = Note::parse(renamed.as_bytes()).unwrap();
        assert!(matches!(cosigner.find_signature(&renamed), Err(CosignatureError::Absent { .. })));
        let (_, beyond) = witness(4, u64::MAX, TEXT);
        assert!(cosigner.find_signature(&beyond).is_err());
        let (line, _) = witness(1, 1, TEXT);
        assert!(matches!(Cosigner::from_text(&line), Err(InvalidVerifier::Type { kind: 1, .. })));
    }
}
