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
    extensions: Vec<String>,
}

/// Why a text is not a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCheckpoint {
    /// Fewer than three lines, an empty line, or no line end at the end.
    #[error("a checkpoint must have at least three lines, each non-empty and with a line end")]
    Lines,
    #[error("the checkpoint has a control character")]
    Control,
    /// The second line is not a size.
    #[error("the size is not a decimal number of 64 bits without leading zeros")]
    Size,
    /// The third line is not a root.
    #[error("the root is not the base64 of 32 bytes")]
    Root,
}

impl Checkpoint {
    /// The statement of the log `origin` about its tree. The origin must be one line. Prefer a name like
    /// `example.com/ledger`, equal to the signer's.
    ///
    /// # Errors
    /// [`InvalidCheckpoint`] where the origin is empty or not one line.
    pub fn new(origin: &str, tree: TreeHead) -> Result<Self, InvalidCheckpoint> {
        line(origin)?;
        Ok(Checkpoint { origin: origin.to_owned(), tree, extensions: Vec::new() })
    }

    /// Adds an extension line. The specification advises against extensions: monitors of a log cannot check them, and
    /// newer witnesses do not sign them.
    ///
    /// # Errors
    /// [`InvalidCheckpoint`] where it is empty or not one line.
    pub fn with_extension(mut self, extension: &str) -> Result<Self, InvalidCheckpoint> {
        line(extension)?;
        self.extensions.push(extension.to_owned());
        Ok(self)
    }

    /// Reads a signed note. Does not check its signatures.
    ///
    /// # Errors
    /// The reason why it is not the note of a checkpoint.
    pub fn from_note(note: &str) -> Result<Self, String> {
        let note = Note::parse(note.as_bytes()).map_err(|error| error.to_string())?;
        Checkpoint::parse(note.text()).map_err(|error| error.to_string())
    }

    /// Reads a note's text.
    ///
    /// # Errors
    /// [`InvalidCheckpoint`] for the first malformed part.
    pub fn parse(text: &str) -> Result<Self, InvalidCheckpoint> {
        let mut lines = text.strip_suffix('\n').ok_or(InvalidCheckpoint::Lines)?.split('\n');
        let (Some(origin), Some(size), Some(root)) = (lines.next(), lines.next(), lines.next()) else {
            return Err(InvalidCheckpoint::Lines);
        };
        [origin, size, root].into_iter().try_for_each(line)?;
        let checkpoint = Checkpoint::new(origin, TreeHead { size: number(size)?, root: hash(root)? })?;
        lines.try_fold(checkpoint, Checkpoint::with_extension)
    }

    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The tree's size and root.
    pub fn tree(&self) -> &TreeHead {
        &self.tree
    }

    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }

    /// The checkpoint as a note with this key's signature. The caller must have checked that it does not contradict any
    /// checkpoint that the log signed before.
    ///
    /// # Errors
    /// [`MalformedNote`] if the note would be longer than a readable note.
    pub fn sign(&self, signer: &Signer) -> Result<Note, MalformedNote> {
        let mut note = Note::new(&self.to_string())?;
        note.sign(signer)?;
        Ok(note)
    }
}

/// The text that is signed.
impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Checkpoint { origin, tree: TreeHead { size, root }, extensions } = self;
        writeln!(f, "{origin}\n{size}\n{}", STANDARD.encode(root))?;
        extensions.iter().try_for_each(|extension| writeln!(f, "{extension}"))
    }
}

/// Whether a text may be a line of a checkpoint.
fn line(text: &str) -> Result<(), InvalidCheckpoint> {
    if text.is_empty() || text.contains('\n') {
        Err(InvalidCheckpoint::Lines)
    } else if text.bytes().any(|byte| byte < b' ') {
        Err(InvalidCheckpoint::Control)
    } else {
        Ok(())
    }
}

fn number(text: &str) -> Result<u64, InvalidCheckpoint> {
    let number: u64 = text.parse().map_err(|_| InvalidCheckpoint::Size)?;
    // Each number has exactly one text: no sign, no leading zeros.
    if number.to_string() == text { Ok(number) } else { Err(InvalidCheckpoint::Size) }
}

fn hash(text: &str) -> Result<Hash, InvalidCheckpoint> {
    let bytes = STANDARD.decode(text).map_err(|_| InvalidCheckpoint::Root)?;
    bytes.try_into().map_err(|_| InvalidCheckpoint::Root)
}

/// The signature type of cosignatures with Ed25519.
const COSIGNATURE_TYPE: u8 = 0x04;

/// The key of a witness, under its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cosigner(Verifier);

/// Why a witness's signature on a note does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CosignatureError {
    /// The note has no line of this witness.
    #[error("the witness {name} did not sign it")]
    Absent { name: String },
    /// The witness's line does not verify.
    #[error("the signature of the witness {name} does not verify")]
    Forged { name: String },
}

impl Cosigner {
    /// Reads a verifier's line of type 0x04.
    ///
    /// # Errors
    /// [`InvalidVerifier`] if the line is malformed.
    pub fn from_text(text: &str) -> Result<Self, InvalidVerifier> {
        parse_typed_key(text, COSIGNATURE_TYPE).map(Cosigner)
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The line of a note that this witness signed, and the time of its signature in seconds since the Unix epoch.
    ///
    /// # Errors
    /// [`CosignatureError`] if any of the witness's lines does not verify, even if another one does.
    pub fn find_signature<'a>(&self, note: &'a Note) -> Result<(&'a SignatureLine, u64), CosignatureError> {
        let lines = note.signatures().iter().filter(|line| line.is_by(&self.0));
        let mut last = None;
        for line in lines {
            let time = self.verified_time(note.text(), &line.signature);
            let forged = || CosignatureError::Forged { name: self.0.name.clone() };
            last = Some((line, time.ok_or_else(forged)?));
        }
        last.ok_or_else(|| CosignatureError::Absent { name: self.0.name.clone() })
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

/// A text that is not a key name: it is empty, or has spaces, plus signs or control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key name must not be empty or contain spaces, plus signs or control characters")]
pub struct InvalidName;

/// Why a text is not a verifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidVerifier {
    /// Not three parts joined by plus signs, the second of 8 hexadecimal digits in lower case, the third base64.
    #[error("a verifier key is <name>+<8 hexadecimal digits>+<base64>")]
    Form,
    /// The name is malformed.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The signature type is not the expected one.
    #[error("its signature type is {kind:#04x}, expected {wanted:#04x}")]
    Type {
        kind: u8,
        /// The expected type.
        wanted: u8,
    },
    /// Not 32 bytes, or not a usable public key.
    #[error("it has no usable Ed25519 public key")]
    Key,
    /// The key id does not match the name and the key.
    #[error("its key id does not match its name and key")]
    Id,
}

impl Signer {
    /// A key under a name.
    ///
    /// # Errors
    /// [`InvalidName`] if the name is malformed.
    pub fn new(name: &str, key: impl Into<Arc<SecretKey>>) -> Result<Self, InvalidName> {
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
    /// [`InvalidName`] if the name is malformed.
    pub fn new(name: &str, key: PublicKey) -> Result<Self, InvalidName> {
        if !is_name(name) {
            return Err(InvalidName);
        }
        Ok(Verifier { name: name.to_owned(), id: id_of(name, ED25519_TYPE, &key), key })
    }

    /// Reads a verifier's text, as its [`Display`](fmt::Display) writes it.
    ///
    /// # Errors
    /// [`InvalidVerifier`] if the text is malformed.
    pub fn from_text(text: &str) -> Result<Self, InvalidVerifier> {
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

/// The first four bytes of SHA-256 over name, line end, type and key.
fn id_of(name: &str, kind: u8, key: &PublicKey) -> [u8; 4] {
    let hash =
        Sha256::new().chain_update(name).chain_update([b'\n', kind]).chain_update(key.as_bytes()).finalize();
    [hash[0], hash[1], hash[2], hash[3]]
}

/// Reads a verifier's text of a signature type.
fn parse_typed_key(text: &str, wanted: u8) -> Result<Verifier, InvalidVerifier> {
    // A name has no plus sign; base64 may have some.
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
    let own = Verifier { name: name.to_owned(), id: id_of(name, kind, &key), key };
    if hex(&own.id) == id { Ok(own) } else { Err(InvalidVerifier::Id) }
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

/// Why bytes are not a signed note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MalformedNote {
    /// More than [`MAX_NOTE_BYTES`].
    #[error("the note has {bytes} bytes, more than the maximum of {MAX_NOTE_BYTES}")]
    TooLong {
        /// The length in bytes.
        bytes: usize,
    },
    /// Not UTF-8.
    #[error("the note is not UTF-8")]
    Utf8,
    /// A control character other than a line end.
    #[error("the note has a control character")]
    Control,
    /// The text is empty or does not end in a line end.
    #[error("the note's text does not end in a line end")]
    Text,
    /// No empty line before signatures, or no signatures after it.
    #[error("the note has no signatures after an empty line")]
    Unsigned,
    /// A line after the last empty one is not a signature line.
    #[error("signature line {line} must be an em dash, a key name and base64")]
    Line {
        /// The number of the line among the signatures, from 1.
        line: usize,
    },
    /// More than [`MAX_SIGNATURES`].
    #[error("the note has more than {MAX_SIGNATURES} signatures")]
    TooManySignatures,
}

/// Why a note's text must be ignored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// A signature that names a known key does not verify.
    #[error("the signature of {name} does not verify")]
    Forged { name: String },
    /// No known key signed it.
    #[error("no known key signed it")]
    Unknown,
}

impl Note {
    /// An unsigned text.
    ///
    /// # Errors
    /// [`MalformedNote`] if the text does not end in a line end, has control characters or is too long.
    pub fn new(text: &str) -> Result<Self, MalformedNote> {
        check_characters(text)?;
        if !text.ends_with('\n') {
            return Err(MalformedNote::Text);
        }
        Ok(Note { text: text.to_owned(), signatures: Vec::new() })
    }

    /// Reads a signed note.
    ///
    /// # Errors
    /// [`MalformedNote`] for the first malformed part.
    pub fn parse(bytes: &[u8]) -> Result<Self, MalformedNote> {
        if bytes.len() > MAX_NOTE_BYTES {
            return Err(MalformedNote::TooLong { bytes: bytes.len() });
        }
        let note = std::str::from_utf8(bytes).map_err(|_| MalformedNote::Utf8)?;
        check_characters(note)?;
        // The text may contain empty lines: the last one ends it.
        let (text, lines) =
            note.rfind("\n\n").map(|at| (&note[..=at], &note[at + 2..])).ok_or(MalformedNote::Unsigned)?;
        if lines.is_empty() {
            return Err(MalformedNote::Unsigned);
        }
        let mut signatures = Vec::new();
        for (line, at) in lines.split_inclusive('\n').zip(1..) {
            if at > MAX_SIGNATURES {
                return Err(MalformedNote::TooManySignatures);
            }
            signatures.push(signature_line(line).ok_or(MalformedNote::Line { line: at })?);
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
    /// [`MalformedNote`] if the note would be longer than a readable note.
    pub fn sign(&mut self, signer: &Signer) -> Result<(), MalformedNote> {
        let Verifier { name, id, .. } = signer.verifier().clone();
        let signature = signer.key.sign_message(self.text.as_bytes()).to_vec();
        self.signatures.retain(|signature| !signature.is_by(signer.verifier()));
        *self = self.with_signature(SignatureLine { name, id, signature })?;
        Ok(())
    }

    /// The note with an additional signature line.
    ///
    /// # Errors
    /// [`MalformedNote`] if the result would not parse.
    pub fn with_signature(&self, line: SignatureLine) -> Result<Note, MalformedNote> {
        let signatures = self.signatures.iter().cloned().chain([line]).collect();
        // The result must parse again; otherwise the checkpoint would be unreadable later.
        Note::parse(Note { text: self.text.clone(), signatures }.to_string().as_bytes())
    }

    /// The keys that signed the note, each once, in the order of its signatures.
    ///
    /// # Errors
    /// [`NoteError`] if none of the keys signed it, or if a signature that names one of them does not verify. In that
    /// case the note is refused even if others signed it.
    pub fn verify<'a>(&self, known: &'a [Verifier]) -> Result<Vec<&'a Verifier>, NoteError> {
        let mut signers: Vec<&Verifier> = Vec::new();
        for line in &self.signatures {
            // Two keys may be crafted to share name and id. In that case one of them must verify the signature.
            let mut named = known.iter().filter(|key| line.is_by(key)).peekable();
            if named.peek().is_none() {
                continue;
            }
            let signed = named.find(|key| key.verifies(&self.text, &line.signature));
            let verifier = signed.ok_or_else(|| NoteError::Forged { name: line.name.clone() })?;
            if !signers.contains(&verifier) {
                signers.push(verifier);
            }
        }
        if signers.is_empty() { Err(NoteError::Unknown) } else { Ok(signers) }
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
fn check_characters(note: &str) -> Result<(), MalformedNote> {
    if note.len() > MAX_NOTE_BYTES {
        return Err(MalformedNote::TooLong { bytes: note.len() });
    }
    let control = note.bytes().any(|byte| byte < b' ' && byte != b'\n');
    if control { Err(MalformedNote::Control) } else { Ok(()) }
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
