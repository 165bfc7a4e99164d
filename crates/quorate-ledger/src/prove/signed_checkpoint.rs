//! The base of an export or a proof: a checkpoint as a signed note, and whether its keys are trusted.

use crate::merkle::TreeHead;
use crate::note::{Checkpoint, Note, Verifier};
use crate::signing::PublicKey;

/// A key that the verifier trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustedKey {
    /// A key under the name of one log.
    Verifier(Verifier),
    /// A key, whichever log it signs for.
    Public(PublicKey),
}

/// A checkpoint, all of whose signatures verify with the keys that came with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedCheckpoint {
    pub origin: String,
    /// Its size and root.
    pub tree: TreeHead,
    /// The keys that signed. They came with the checkpoint, so their owner is not proven.
    pub keys: Vec<Verifier>,
}

impl TrustedKey {
    /// Reads a key: a verifier's line (`<name>+<id>+<key>`) or a public key (`quorate:ed25519:public:…`).
    ///
    /// # Errors
    /// Why it is neither, in words.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let line = text.trim();
        match PublicKey::from_text(line) {
            Ok(public) => Ok(TrustedKey::Public(public)),
            Err(_) => Verifier::from_text(line).map(TrustedKey::Verifier).map_err(|error| error.to_string()),
        }
    }

    fn matches(&self, verifier: &Verifier) -> bool {
        match self {
            TrustedKey::Verifier(trusted) => trusted == verifier,
            TrustedKey::Public(trusted) => trusted == verifier.key(),
        }
    }
}

impl SignedCheckpoint {
    /// Reads a signed note with the keys that are said to have signed it. Each signature has to be of one of them, and
    /// each of them has to have signed, so that no bit of the note or of a key can be another.
    ///
    /// # Errors
    /// Why it is invalid, in words.
    pub fn open(note: &str, keys: &[String]) -> Result<SignedCheckpoint, String> {
        let verifiers = keys.iter().map(|key| Verifier::from_text(key));
        let verifiers: Vec<Verifier> = verifiers
            .collect::<Result<_, _>>()
            .map_err(|error| format!("a key of the checkpoint: {error}"))?;
        let parsed = Note::parse(note.as_bytes()).map_err(|error| error.to_string())?;
        let signers = parsed.verify(&verifiers).map_err(|error| error.to_string())?;
        if signers.len() != verifiers.len()
            || parsed.signatures().len() != signers.len()
            || parsed.to_string() != note
        {
            return Err("the checkpoint's signatures are not those of its keys, one each".to_owned());
        }
        let checkpoint = Checkpoint::parse(parsed.text()).map_err(|error| error.to_string())?;
        if !checkpoint.extensions().is_empty() {
            return Err("the checkpoint has more lines than origin, size and root".to_owned());
        }
        if let Some(other) = verifiers.iter().find(|key| key.name() != checkpoint.origin()) {
            return Err(format!(
                "the key {} signs for another log than {}",
                other.name(),
                checkpoint.origin()
            ));
        }
        Ok(SignedCheckpoint {
            origin: checkpoint.origin().to_owned(),
            tree: *checkpoint.tree(),
            keys: verifiers,
        })
    }

    /// The first of its keys that the verifier trusts.
    pub fn trusted_key(&self, trusted: &[TrustedKey]) -> Option<&Verifier> {
        self.keys.iter().find(|key| trusted.iter().any(|candidate| candidate.matches(key)))
    }
}
