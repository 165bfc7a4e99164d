//! Signed notes (c2sp.org/signed-note): a text that ends in a line end, an empty line, and signature lines
//! `— <key name> <base64 of key id and signature>`.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::key::{Signer, Verifier, is_name};

/// The longest note that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// The most signatures of a note that is read. The specification asks for no less than 16.
pub const MAX_SIGNATURES: usize = 100;

/// What a signature line begins with: an em dash and a space.
const DASH: &str = "\u{2014} ";

/// A parsed note. Only [`Note::verify`] says whether it is signed.
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
    /// The signature: 64 bytes for Ed25519, others for other types.
    pub signature: Vec<u8>,
}

/// Why bytes are no signed note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MalformedNote {
    /// More than [`MAX_BYTES`].
    #[error("the note has {bytes} bytes, more than the maximum of {MAX_BYTES}")]
    TooLong {
        /// How many bytes it has.
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
    /// A line after the last empty one that is no signature line.
    #[error("signature line {line} is not an em dash, a key's name and base64")]
    Line {
        /// Which one, from 1.
        line: usize,
    },
    /// More than [`MAX_SIGNATURES`].
    #[error("the note has more than {MAX_SIGNATURES} signatures")]
    TooManySignatures,
}

/// Why a note's text must be ignored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// A signature that is said to be of a known key is not.
    #[error("the signature of {name} does not verify")]
    Forged { name: String },
    /// No signature is of a known key.
    #[error("no signature is of a known key")]
    Unknown,
}

impl Note {
    /// An unsigned text.
    ///
    /// # Errors
    /// [`MalformedNote`] where the text does not end in a line end, has control characters or is too long.
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
    /// [`MalformedNote`] at the first thing that does not fit.
    pub fn parse(bytes: &[u8]) -> Result<Self, MalformedNote> {
        if bytes.len() > MAX_BYTES {
            return Err(MalformedNote::TooLong { bytes: bytes.len() });
        }
        let note = std::str::from_utf8(bytes).map_err(|_| MalformedNote::Utf8)?;
        check_characters(note)?;
        // The text may have empty lines of its own: the last one ends it.
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

    /// The text, with its last line end. It must be ignored until [`Note::verify`] says whose it is.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The signature lines in their order.
    pub fn signatures(&self) -> &[SignatureLine] {
        &self.signatures
    }

    /// Adds a signature. What the same key signed before it replaces.
    ///
    /// # Errors
    /// [`MalformedNote`] where the note would grow past what is read.
    pub fn sign(&mut self, signer: &Signer) -> Result<(), MalformedNote> {
        let verifier = signer.verifier();
        let line = SignatureLine {
            name: verifier.name().to_owned(),
            id: verifier.id(),
            signature: signer.sign(&self.text).to_vec(),
        };
        let others = self.signatures.iter().filter(|signature| !signature.is_by(verifier));
        let signatures: Vec<SignatureLine> = others.cloned().chain([line]).collect();
        let signed = Note { text: self.text.clone(), signatures };
        // The written note must parse, or its checkpoint would be lost when it is needed.
        *self = Note::parse(signed.to_string().as_bytes())?;
        Ok(())
    }

    /// The note with a signature line more.
    ///
    /// # Errors
    /// [`MalformedNote`] where it would not read back.
    pub fn with_signature(&self, line: SignatureLine) -> Result<Note, MalformedNote> {
        let signatures = self.signatures.iter().cloned().chain([line]).collect();
        Note::parse(Note { text: self.text.clone(), signatures }.to_string().as_bytes())
    }

    /// Which of these keys signed the note, in the order of its signatures, each once.
    ///
    /// # Errors
    /// [`VerifyError`] where none did, or where a signature that names one of them is not its: then the note is refused
    /// even if others signed it.
    pub fn verify<'a>(&self, known: &'a [Verifier]) -> Result<Vec<&'a Verifier>, VerifyError> {
        let mut signers: Vec<&Verifier> = Vec::new();
        for line in &self.signatures {
            // Two keys may be crafted to share name and id; then the signature is of one of them.
            let mut named = known.iter().filter(|key| line.is_by(key)).peekable();
            if named.peek().is_none() {
                continue;
            }
            let signed = named.find(|key| key.verifies(&self.text, &line.signature));
            let verifier = signed.ok_or_else(|| VerifyError::Forged { name: line.name.clone() })?;
            if !signers.contains(&verifier) {
                signers.push(verifier);
            }
        }
        if signers.is_empty() { Err(VerifyError::Unknown) } else { Ok(signers) }
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
    /// Whether it names this key.
    fn is_by(&self, verifier: &Verifier) -> bool {
        self.name == verifier.name() && self.id == verifier.id()
    }
}

/// Holds a note's length and characters against what the specification forbids: control characters below U+0020.
fn check_characters(note: &str) -> Result<(), MalformedNote> {
    if note.len() > MAX_BYTES {
        return Err(MalformedNote::TooLong { bytes: note.len() });
    }
    let control = note.bytes().any(|byte| byte < b' ' && byte != b'\n');
    if control { Err(MalformedNote::Control) } else { Ok(()) }
}

/// Reads a signature line with its line end.
fn signature_line(line: &str) -> Option<SignatureLine> {
    let (name, encoded) = line.strip_suffix('\n')?.strip_prefix(DASH)?.split_once(' ')?;
    let bytes = STANDARD.decode(encoded).ok()?;
    let (id, signature) = bytes.split_first_chunk()?;
    let fits = is_name(name) && !signature.is_empty();
    fits.then(|| SignatureLine { name: name.to_owned(), id: *id, signature: signature.to_vec() })
}
