//! The witness file: a file elsewhere, perhaps in a repository, that each signed checkpoint is appended to. An attacker who
//! truncates or rewrites the ledger cannot change that file.
//!
//! It holds signed notes, each followed by an empty line.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quorate_kernel::ports::ledger::LedgerError;

use crate::checkpoint::ORIGIN_PREFIX;
use crate::merkle::{self, Hash, TreeHead};
use crate::note::{Checkpoint, Cosigner, Note};
use crate::store::tiles::StoredTree;
use crate::{Store, files};

/// Why a checkpoint cannot be added to a witness file.
#[derive(Debug, thiserror::Error)]
pub enum WitnessError {
    /// It cannot be read or written.
    #[error("it cannot be written")]
    Io(#[from] std::io::Error),
    /// The text to append is not a signed checkpoint.
    #[error("{0}")]
    NotACheckpoint(String),
    /// The file is not a witness file.
    #[error("the file contains text other than checkpoints")]
    NotAWitness,
    /// Its last checkpoint and the new one contradict each other.
    #[error("{0}")]
    Contradicts(String),
}

/// The contents of a witness file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Witness {
    /// Its notes in order, verbatim and unverified.
    pub notes: Vec<String>,
    /// Other content, such as an incomplete note.
    pub fragments: Vec<String>,
}

impl Witness {
    /// Whether the file is of another kind: it has content, but no note, and does not begin like one. The first note may be
    /// incomplete.
    fn is_foreign(&self, text: &str) -> bool {
        let is_begun = text.starts_with(ORIGIN_PREFIX) || ORIGIN_PREFIX.starts_with(text);
        self.notes.is_empty() && !text.trim().is_empty() && !is_begun
    }

    /// Parses a witness file.
    pub fn parse(text: &str) -> Self {
        let mut witness = Witness::default();
        let mut waiting: Option<String> = None;
        for part in paragraphs(text) {
            // A note is two parts: a checkpoint's text has no empty line, and signatures begin with a dash.
            match (waiting.take(), part.starts_with('\u{2014}')) {
                (Some(before), true) => {
                    let note = format!("{before}\n{part}");
                    match Note::parse(note.as_bytes()) {
                        Ok(_) => witness.notes.push(note),
                        Err(_) => witness.fragments.push(note),
                    }
                }
                (before, false) => {
                    witness.fragments.extend(before);
                    waiting = Some(part);
                }
                (None, true) => witness.fragments.push(part),
            }
        }
        witness.fragments.extend(waiting);
        witness
    }
}

/// The lines between empty lines.
fn paragraphs(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for line in text.split_inclusive('\n') {
        match (line.trim_end_matches(['\r', '\n']).is_empty(), parts.last_mut()) {
            (false, Some(part)) => part.push_str(line),
            _ => parts.push(String::new()),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Checks that an existing file looks like a witness file. Only reads it.
///
/// # Errors
/// [`WitnessError::NotAWitness`], and if the file cannot be read.
pub fn ensure_witness_at(path: &Path) -> Result<(), WitnessError> {
    let mut text = Vec::new();
    match files::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        opened => opened?.read_to_end(&mut text)?,
    };
    let text = String::from_utf8(text).map_err(|_| WitnessError::NotAWitness)?;
    match Witness::parse(&text).is_foreign(&text) {
        true => Err(WitnessError::NotAWitness),
        false => Ok(()),
    }
}

/// Appends a signed checkpoint and syncs the file. Does nothing if it is the last one already.
///
/// # Errors
/// [`WitnessError`]. The file is unchanged.
pub fn append_to_witness(path: &Path, note: &str) -> Result<(), WitnessError> {
    let new = Checkpoint::from_note(note).map_err(WitnessError::NotACheckpoint)?;
    let mut file = files::open_append(path)?;
    file.lock()?;
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_string(&mut text)?;
    let witness = Witness::parse(&text);
    if witness.is_foreign(&text) {
        return Err(WitnessError::NotAWitness);
    }
    if let Some(last) = witness.notes.last() {
        let last = Checkpoint::from_note(last)
            .map_err(|why| WitnessError::Contradicts(format!("its last checkpoint cannot be read: {why}")))?;
        if last == new {
            return Ok(());
        }
        let (before, after) = (last.tree(), new.tree());
        let what = if last.origin() != new.origin() {
            format!("is of the ledger {}, but this one is of {}", last.origin(), new.origin())
        } else if after.size < before.size {
            format!("covers {} records, but this one only {}", before.size, after.size)
        } else if after.size == before.size && after.root != before.root {
            format!("has another root for the same {} records", after.size)
        } else {
            String::new()
        };
        if !what.is_empty() {
            return Err(WitnessError::Contradicts(format!("its last checkpoint {what}")));
        }
    }
    // An incomplete note stays, on lines of its own.
    let parted = if text.is_empty() || text.ends_with("\n\n") {
        ""
    } else if text.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    };
    file.write_all(format!("{parted}{note}\n").as_bytes())?;
    file.sync_all()?;
    Ok(())
}

/// The longest accepted answer, in bytes.
pub const MAX_ANSWER_BYTES: usize = 64 << 10;

/// The answer of a witness to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WitnessAnswer {
    /// It signed: the checkpoint with the signatures of the log and the witness.
    Cosigned(String),
    /// It has seen a checkpoint over this many records, and requires a proof that the new one extends it.
    Seen(u64),
}

/// The body of a request to sign a checkpoint, with a proof that it extends a checkpoint over `old` records.
pub fn witness_request(old: u64, path: &[Hash], note: &str) -> String {
    let path: String = path.iter().map(|hash| STANDARD.encode(hash) + "\n").collect();
    format!("old {old}\n{path}\n{note}")
}

/// Parses the answer to a request about a note.
///
/// # Errors
/// The reason why it is not a cosignature.
pub fn read_witness_answer(
    status: u16,
    body: &[u8],
    note: &str,
    cosigner: &Cosigner,
) -> Result<WitnessAnswer, String> {
    match status {
        200 => merge_cosignature(body, note, cosigner).map(WitnessAnswer::Cosigned),
        409 => {
            let text = std::str::from_utf8(body).ok().and_then(|text| text.strip_suffix('\n'));
            let size = text.and_then(|text| text.parse::<u64>().ok().filter(|size| size.to_string() == text));
            size.map(WitnessAnswer::Seen)
                .ok_or_else(|| "it has seen another tree, but did not report its size".to_owned())
        }
        400 => Err("it cannot read the request (400)".to_owned()),
        403 => Err("it does not trust the ledger's key (403)".to_owned()),
        404 => Err("it does not know this ledger (404)".to_owned()),
        422 => Err("it has seen a tree that this one does not continue (422)".to_owned()),
        other => Err(format!("it answered with the status {other}")),
    }
}

/// The note with the witness's signature. Lines of other keys are dropped.
fn merge_cosignature(body: &[u8], note: &str, cosigner: &Cosigner) -> Result<String, String> {
    let lines = std::str::from_utf8(body).map_err(|_| "its answer is not UTF-8".to_owned())?;
    let signed = Note::parse(note.as_bytes())?;
    // The answer adds signature lines. An empty line would change the note's text.
    if !lines.split_inclusive('\n').all(|line| line.starts_with("\u{2014} ") && line.ends_with('\n')) {
        return Err("its answer is not signature lines".to_owned());
    }
    let all =
        Note::parse(format!("{note}{lines}").as_bytes()).map_err(|error| format!("its answer: {error}"))?;
    let (line, _) = cosigner.find_signature(&all)?;
    signed.with_signature(line.clone()).map(|note| note.to_string())
}

impl Store {
    /// The proof that a checkpoint's tree extends the tree of the first `old` records.
    ///
    /// # Errors
    /// When the store does not answer, or its stored tree is not whole.
    #[crate::boxed]
    pub async fn consistency(&self, old: u64, tree: &TreeHead) -> Result<Vec<Hash>, LedgerError> {
        let ranges = merkle::consistency_ranges(old, tree.size);
        self.read(async |engine| Ok(StoredTree::default().path(engine, ranges).await?)).await
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests look at files")]
mod tests {
    use super::*;
    use crate::merkle::TreeHead;
    use crate::note::Signer;
    use crate::signing::SecretKey;

    fn note(origin: &str, size: u64, root: u8) -> String {
        let signer = Signer::new(origin, SecretKey::from_seed(&[7; 32])).unwrap();
        let tree = TreeHead { size, root: [root; 32] };
        Checkpoint::new(origin, tree).unwrap().sign(&signer).unwrap().to_string()
    }

    #[test]
    fn it_takes_what_goes_on_and_nothing_else() {
        // D2
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("witness.txt");
        append_to_witness(&path, &note("a", 3, 1)).unwrap();
        append_to_witness(&path, &note("a", 3, 1)).unwrap();
        append_to_witness(&path, &note("a", 5, 2)).unwrap();
        for wrong in [note("a", 4, 3), note("a", 5, 3), note("b", 9, 3), "no note\n".to_owned()] {
            let before = std::fs::read_to_string(&path).unwrap();
            append_to_witness(&path, &wrong).unwrap_err();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
        }
        let witness = Witness::parse(&std::fs::read_to_string(&path).unwrap());
        assert_eq!(witness.notes, [note("a", 3, 1), note("a", 5, 2)]);
        assert_eq!(witness.fragments, Vec::<String>::new());
    }

    #[test]
    fn another_file_is_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes.txt");
        for foreign in ["notes", "notes\n\nmore\n", "a line\n", "quorate:ed25519:secret:AAAA\n"] {
            std::fs::write(&path, foreign).unwrap();
            assert!(matches!(
                append_to_witness(&path, &note("a.example", 3, 1)),
                Err(WitnessError::NotAWitness)
            ));
            assert!(matches!(ensure_witness_at(&path), Err(WitnessError::NotAWitness)));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), foreign);
        }
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        append_to_witness(&path, &note("a.example", 3, 1)).unwrap_err();
        assert_eq!(std::fs::read(&path).unwrap(), [0xff, 0xfe]);
        // The very first note may also be incomplete.
        let first = note("quorate/a", 3, 1);
        for cut in (0..first.len()).filter(|cut| first.is_char_boundary(*cut)) {
            std::fs::write(&path, &first[..cut]).unwrap();
            ensure_witness_at(&path).unwrap();
            append_to_witness(&path, &note("quorate/a", 5, 2)).unwrap();
        }
    }

    #[test]
    fn a_torn_note_stays_and_hides_nothing_that_follows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("witness.txt");
        append_to_witness(&path, &note("a", 3, 1)).unwrap();
        let whole = std::fs::read_to_string(&path).unwrap();
        let next = note("a", 5, 2);
        for cut in 1..next.len() {
            if !next.is_char_boundary(cut) {
                continue;
            }
            std::fs::write(&path, format!("{whole}{}", &next[..cut])).unwrap();
            append_to_witness(&path, &next).unwrap();
            let notes = Witness::parse(&std::fs::read_to_string(&path).unwrap()).notes;
            let last = notes.last().unwrap();
            assert_eq!(last, &next, "cut at {cut}");
        }
    }
}
