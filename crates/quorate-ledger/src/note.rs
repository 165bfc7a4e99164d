//! Signed notes and checkpoints (D2), as in C2SP `signed-note` and `tlog-checkpoint` (c2sp.org): a ledger's statement about
//! its tree, in a format that other tools verify and their witnesses cosign.
//!
//! [`Note`] is any text with signatures, [`Checkpoint`] the text with a tree's size and root, [`Signer`] and [`Verifier`]
//! named keys. Signatures are Ed25519 (type 0x01), the only type that this program makes and verifies; lines of other types
//! are kept and ignored, as the specification requires.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quorate_kernel::entropy::hex;
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::merkle::{Hash, TreeHead};
use crate::signing::{PublicKey, SecretKey};

/// A log's statement about its tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    origin: String,
    tree: TreeHead,
}

impl Checkpoint {
    /// The statement of the log `origin` about its tree. The origin must be one line. Prefer a name like
    /// `example.com/ledger`, equal to the signer's.
    ///
    /// # Errors
    /// If the origin is empty or not one line.
    pub fn new(origin: &str, tree: TreeHead) -> Result<Self, String> {
        line(origin)?;
        Ok(Checkpoint { origin: origin.to_owned(), tree })
    }

    /// Reads a signed note. Does not check its signatures.
    ///
    /// # Errors
    /// The reason why it is not the note of a checkpoint.
    pub fn from_note(note: &str) -> Result<Self, String> {
        Checkpoint::parse(Note::parse(note.as_bytes())?.text())
    }

    /// Reads a note's text. Refuses the further lines that the specification allows but advises against: no ledger
    /// writes any.
    ///
    /// # Errors
    /// The first malformed part.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.strip_suffix('\n').ok_or(NOT_LINES)?.split('\n');
        let (Some(origin), Some(size), Some(root)) = (lines.next(), lines.next(), lines.next()) else {
            return Err(NOT_LINES.to_owned());
        };
        [origin, size, root].into_iter().chain(lines.clone()).try_for_each(line)?;
        if lines.next().is_some() {
            return Err("the checkpoint has more lines than origin, size and root".to_owned());
        }
        Checkpoint::new(origin, TreeHead { size: number(size)?, root: hash(root)? })
    }

    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The tree's size and root.
    pub fn tree(&self) -> &TreeHead {
        &self.tree
    }

    /// The checkpoint as a note with this key's signature. The caller must have checked that it does not contradict any
    /// checkpoint that the log signed before.
    ///
    /// # Errors
    /// If the note would be longer than a readable note.
    pub fn sign(&self, signer: &Signer) -> Result<Note, String> {
        let mut note = Note::new(&self.to_string())?;
        note.sign(signer)?;
        Ok(note)
    }
}

/// The text that is signed.
impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Checkpoint { origin, tree: TreeHead { size, root } } = self;
        writeln!(f, "{origin}\n{size}\n{}", STANDARD.encode(root))
    }
}

/// Why a text does not have the lines of a checkpoint.
const NOT_LINES: &str = "a checkpoint must have three lines, each non-empty and with a line end";

/// Checks that a text may be a line of a checkpoint.
fn line(text: &str) -> Result<(), String> {
    if text.is_empty() || text.contains('\n') {
        Err(NOT_LINES.to_owned())
    } else if text.bytes().any(|byte| byte < b' ') {
        Err("the checkpoint has a control character".to_owned())
    } else {
        Ok(())
    }
}

fn number(text: &str) -> Result<u64, String> {
    // Each number has exactly one text: no sign, no leading zeros.
    let number = text.parse::<u64>().ok().filter(|number| number.to_string() == text);
    number.ok_or_else(|| "the size is not a decimal number of 64 bits without leading zeros".to_owned())
}

fn hash(text: &str) -> Result<Hash, String> {
    let bytes = STANDARD.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| "the root is not the base64 of 32 bytes".to_owned())
}

/// The signature type of cosignatures with Ed25519.
const COSIGNATURE_TYPE: u8 = 0x04;

/// The key of a witness, under its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cosigner(Verifier);

impl Cosigner {
    /// Reads a verifier's line of type 0x04.
    ///
    /// # Errors
    /// The reason why it is malformed.
    pub fn from_text(text: &str) -> Result<Self, String> {
        parse_typed_key(text, COSIGNATURE_TYPE).map(Cosigner)
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The line of a note that this witness signed, and the time of its signature in seconds since the Unix epoch.
    ///
    /// # Errors
    /// If the witness did not sign it, or if any of the witness's lines does not verify, even if another one does.
    pub fn find_signature<'a>(&self, note: &'a Note) -> Result<(&'a SignatureLine, u64), String> {
        let lines = note.signatures().iter().filter(|line| line.is_by(&self.0));
        let mut last = None;
        for line in lines {
            let time = self.verified_time(note.text(), &line.signature);
            let forged = || format!("the signature of the witness {} does not verify", self.0.name);
            last = Some((line, time.ok_or_else(forged)?));
        }
        last.ok_or_else(|| format!("the witness {} did not sign it", self.0.name))
    }

    /// The time of a signature over a text; `None` if it does not verify.
    fn verified_time(&self, text: &str, signature: &[u8]) -> Option<u64> {
        let (time, signature) = signature.split_first_chunk::<8>()?;
        let time = u64::from_be_bytes(*time);
        let message = format!("cosignature/v1\ntime {time}\n{text}");
        let verifies = self.0.key.verifies(message.as_bytes(), signature.try_into().ok()?);
        (verifies && i64::try_from(time).is_ok()).then_some(time)
    }
}

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

impl Signer {
    /// A key under a name.
    ///
    /// # Errors
    /// If the name is malformed.
    pub fn new(name: &str, key: impl Into<Arc<SecretKey>>) -> Result<Self, String> {
        let key = key.into();
        let verifier = Verifier::new(name, key.public())?;
        Ok(Signer { key, verifier })
    }

    /// The verifier of its signatures.
    pub fn verifier(&self) -> &Verifier {
        &self.verifier
    }
}

impl Verifier {
    /// A public key under a name.
    ///
    /// # Errors
    /// If the name is malformed.
    pub fn new(name: &str, key: PublicKey) -> Result<Self, String> {
        check_name(name)?;
        Ok(Verifier { name: name.to_owned(), id: id_of(name, ED25519_TYPE, &key), key })
    }

    /// Reads a verifier's text, as its [`Display`](fmt::Display) writes it.
    ///
    /// # Errors
    /// The reason why it is malformed.
    pub fn from_text(text: &str) -> Result<Self, String> {
        parse_typed_key(text, ED25519_TYPE)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key id: the first four bytes of SHA-256 over name, line end, type and key. It identifies a key, but protects
    /// nothing.
    pub fn id(&self) -> [u8; 4] {
        self.id
    }

    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// Whether this key signed a note's text.
    fn verifies(&self, text: &str, signature: &[u8]) -> bool {
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

impl Serialize for Verifier {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Whether a text is a valid key name.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(|c| c.is_whitespace() || c == '+' || c < ' ')
}

fn check_name(text: &str) -> Result<(), String> {
    match is_name(text) {
        true => Ok(()),
        false => {
            Err("a key name must not be empty or contain spaces, plus signs or control characters".to_owned())
        }
    }
}

/// The first four bytes of SHA-256 over name, line end, type and key.
fn id_of(name: &str, kind: u8, key: &PublicKey) -> [u8; 4] {
    let hash =
        Sha256::new().chain_update(name).chain_update([b'\n', kind]).chain_update(key.as_bytes()).finalize();
    [hash[0], hash[1], hash[2], hash[3]]
}

/// Why a text is not a verifier.
const NOT_A_VERIFIER: &str = "a verifier key is <name>+<8 hexadecimal digits>+<base64>";

/// Reads a verifier's text of a signature type.
fn parse_typed_key(text: &str, wanted: u8) -> Result<Verifier, String> {
    // A name has no plus sign; base64 may have some.
    let (name, rest) = text.split_once('+').ok_or(NOT_A_VERIFIER)?;
    let (id, encoded) = rest.split_once('+').ok_or(NOT_A_VERIFIER)?;
    let bytes = STANDARD.decode(encoded).map_err(|_| NOT_A_VERIFIER)?;
    let (kind, key) = bytes.split_first().ok_or(NOT_A_VERIFIER)?;
    if *kind != wanted {
        return Err(format!("its signature type is {kind:#04x}, expected {wanted:#04x}"));
    }
    let key = key.try_into().ok().and_then(|key| PublicKey::from_bytes(key).ok());
    let key = key.ok_or("it has no usable Ed25519 public key")?;
    check_name(name)?;
    let own = Verifier { name: name.to_owned(), id: id_of(name, *kind, &key), key };
    match hex(&own.id) == id {
        true => Ok(own),
        false => Err("its key id does not match its name and key".to_owned()),
    }
}

/// The longest note that is parsed, in bytes.
pub const MAX_NOTE_BYTES: usize = 1 << 20;

/// The most signatures that a note may have. The specification requires a limit of at least 16.
pub const MAX_SIGNATURES: usize = 100;

/// The prefix of a signature line: an em dash and a space.
const DASH: &str = "\u{2014} ";

/// A parsed note. Its signatures are unverified until [`Note::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    text: String,
    signatures: Vec<SignatureLine>,
}

/// A signature line, of any type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureLine {
    pub name: String,
    pub id: [u8; 4],
    /// The signature: 64 bytes for Ed25519, another length for other types.
    pub signature: Vec<u8>,
}

impl Note {
    /// An unsigned text.
    ///
    /// # Errors
    /// If the text does not end in a line end, has control characters or is too long.
    pub fn new(text: &str) -> Result<Self, String> {
        check_characters(text)?;
        if !text.ends_with('\n') {
            return Err("the note's text does not end in a line end".to_owned());
        }
        Ok(Note { text: text.to_owned(), signatures: Vec::new() })
    }

    /// Reads a signed note.
    ///
    /// # Errors
    /// The first malformed part.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let note = std::str::from_utf8(bytes).map_err(|_| "the note is not UTF-8")?;
        check_characters(note)?;
        // The text may contain empty lines: the last one ends it.
        let (text, lines) = note
            .rfind("\n\n")
            .map(|at| (&note[..=at], &note[at + 2..]))
            .filter(|(_, lines)| !lines.is_empty())
            .ok_or("the note has no signatures after an empty line")?;
        let mut signatures = Vec::new();
        for (line, at) in lines.split_inclusive('\n').zip(1..) {
            if at > MAX_SIGNATURES {
                return Err(format!("the note has more than {MAX_SIGNATURES} signatures"));
            }
            let wrong = || format!("signature line {at} must be an em dash, a key name and base64");
            signatures.push(signature_line(line).ok_or_else(wrong)?);
        }
        Ok(Note { text: text.to_owned(), signatures })
    }

    /// The text, with its last line end. Do not use it before [`Note::verify`].
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The signature lines, in order.
    pub fn signatures(&self) -> &[SignatureLine] {
        &self.signatures
    }

    /// Adds a signature. Replaces an earlier signature by the same key.
    ///
    /// # Errors
    /// If the note would be longer than a readable note.
    pub fn sign(&mut self, signer: &Signer) -> Result<(), String> {
        let Verifier { name, id, .. } = signer.verifier().clone();
        let signature = signer.key.sign_message(self.text.as_bytes()).to_vec();
        self.signatures.retain(|signature| !signature.is_by(signer.verifier()));
        *self = self.with_signature(SignatureLine { name, id, signature })?;
        Ok(())
    }

    /// The note with an additional signature line.
    ///
    /// # Errors
    /// If the result would not parse.
    pub fn with_signature(&self, line: SignatureLine) -> Result<Note, String> {
        let signatures = self.signatures.iter().cloned().chain([line]).collect();
        // The result must parse again; otherwise the checkpoint would be unreadable later.
        Note::parse(Note { text: self.text.clone(), signatures }.to_string().as_bytes())
    }

    /// The keys that signed the note, each once, in the order of its signatures.
    ///
    /// # Errors
    /// If none of the keys signed it, or if a signature that names one of them does not verify. In that
    /// case the note is refused even if others signed it.
    pub fn verify<'a>(&self, known: &'a [Verifier]) -> Result<Vec<&'a Verifier>, String> {
        let mut signers: Vec<&Verifier> = Vec::new();
        for line in &self.signatures {
            // Two keys may be crafted to share name and id. In that case one of them must verify the signature.
            let mut named = known.iter().filter(|key| line.is_by(key)).peekable();
            if named.peek().is_none() {
                continue;
            }
            let signed = named.find(|key| key.verifies(&self.text, &line.signature));
            let verifier = signed.ok_or_else(|| format!("the signature of {} does not verify", line.name))?;
            if !signers.contains(&verifier) {
                signers.push(verifier);
            }
        }
        if signers.is_empty() { Err("no known key signed it".to_owned()) } else { Ok(signers) }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        for SignatureLine { name, id, signature } in &self.signatures {
            writeln!(f, "{DASH}{name} {}", STANDARD.encode([id, signature.as_slice()].concat()))?;
        }
        Ok(())
    }
}

impl SignatureLine {
    /// Whether the line names this key.
    fn is_by(&self, verifier: &Verifier) -> bool {
        self.name == verifier.name() && self.id == verifier.id()
    }
}

/// Checks a note's length and characters: the specification forbids control characters below U+0020.
fn check_characters(note: &str) -> Result<(), String> {
    if note.len() > MAX_NOTE_BYTES {
        return Err(format!("the note has {} bytes, more than the maximum of {MAX_NOTE_BYTES}", note.len()));
    }
    match note.bytes().any(|byte| byte < b' ' && byte != b'\n') {
        true => Err("the note has a control character".to_owned()),
        false => Ok(()),
    }
}

/// Parses a signature line with its line end.
fn signature_line(line: &str) -> Option<SignatureLine> {
    let (name, encoded) = line.strip_suffix('\n')?.strip_prefix(DASH)?.split_once(' ')?;
    let bytes = STANDARD.decode(encoded).ok()?;
    let (id, signature) = bytes.split_first_chunk()?;
    let fits = is_name(name) && !signature.is_empty();
    fits.then(|| SignatureLine { name: name.to_owned(), id: *id, signature: signature.to_vec() })
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
        assert!(cosigner.find_signature(&other).unwrap_err().ends_with("does not verify"));
        let renamed = note.to_string().replacen("w.example/1", "w.example/2", 1);
        let renamed = Note::parse(renamed.as_bytes()).unwrap();
        assert!(cosigner.find_signature(&renamed).unwrap_err().ends_with("did not sign it"));
        let (_, beyond) = witness(4, u64::MAX, TEXT);
        assert!(cosigner.find_signature(&beyond).is_err());
        let (line, _) = witness(1, 1, TEXT);
        assert!(Cosigner::from_text(&line).unwrap_err().starts_with("its signature type is 0x01"));
    }
}
