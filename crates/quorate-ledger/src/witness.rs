//! The witness file: a file elsewhere, perhaps in a repository, that each signed checkpoint is appended to. An attacker who
//! truncates or rewrites the ledger cannot change that file.
//!
//! It holds signed notes, each followed by an empty line.

pub mod remote;

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use crate::checkpoint::ORIGIN_PREFIX;
use crate::files;
use crate::note::{Checkpoint, Note};

/// Why a witness does not take a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read or written.
    #[error("it cannot be written")]
    Io(#[from] std::io::Error),
    /// The text to append is not a signed checkpoint.
    #[error("{0}")]
    NotACheckpoint(String),
    /// It is another file.
    #[error("it contains other text than checkpoints")]
    NotAWitness,
    /// Its last checkpoint and this one cannot both be of one ledger.
    #[error("{0}")]
    Contradicts(String),
}

/// What a witness holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Witness {
    /// Its notes in order, verbatim and unverified.
    pub notes: Vec<String>,
    /// Other content, such as an incomplete note.
    pub fragments: Vec<String>,
}

impl Witness {
    /// Whether it is another kind of file: it has content, but no note.
    fn is_foreign(&self, text: &str) -> bool {
        self.notes.is_empty() && !text.trim().is_empty()
    }

    /// Reads a witness's text.
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

/// Whether an existing file looks like a witness; it is only read.
///
/// # Errors
/// [`Error::NotAWitness`], and where it cannot be read.
pub fn ensure_witness_at(path: &Path) -> Result<(), Error> {
    let mut text = Vec::new();
    match files::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        opened => opened?.read_to_end(&mut text)?,
    };
    let text = String::from_utf8(text).map_err(|_| Error::NotAWitness)?;
    // The first note may have been torn while it was written.
    let is_begun = text.starts_with(ORIGIN_PREFIX) || ORIGIN_PREFIX.starts_with(&*text);
    match Witness::parse(&text).is_foreign(&text) && !is_begun {
        true => Err(Error::NotAWitness),
        false => Ok(()),
    }
}

/// Appends a signed checkpoint, to stay; one that is the last already is not written again.
///
/// # Errors
/// [`Error`]; then the file is as it was.
pub fn append(path: &Path, note: &str) -> Result<(), Error> {
    let new = parse_checkpoint(note).map_err(Error::NotACheckpoint)?;
    let mut file = files::open_append(path)?;
    file.lock()?;
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_string(&mut text)?;
    let witness = Witness::parse(&text);
    // The first note may have been torn while it was written.
    let origin = new.origin();
    let is_begun = text.lines().next().is_some_and(|line| line == origin) || origin.starts_with(&*text);
    if witness.is_foreign(&text) && !is_begun {
        return Err(Error::NotAWitness);
    }
    if let Some(last) = witness.notes.last() {
        let last = parse_checkpoint(last)
            .map_err(|why| Error::Contradicts(format!("its last checkpoint cannot be read: {why}")))?;
        if last == new {
            return Ok(());
        }
        let (before, after) = (last.tree(), new.tree());
        if last.origin() != new.origin() {
            return Err(Error::Contradicts(format!(
                "its last checkpoint is of the ledger {}, and this one of {}",
                last.origin(),
                new.origin()
            )));
        }
        if after.size < before.size {
            return Err(Error::Contradicts(format!(
                "its last checkpoint is over {} records, and this one over {}",
                before.size, after.size
            )));
        }
        if after.size == before.size && after.root != before.root {
            return Err(Error::Contradicts(format!(
                "its last checkpoint has another root for the same {} records",
                after.size
            )));
        }
    }
    // What was torn stays, on lines of its own.
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

fn parse_checkpoint(note: &str) -> Result<Checkpoint, String> {
    let note = Note::parse(note.as_bytes()).map_err(|error| error.to_string())?;
    Checkpoint::parse(note.text()).map_err(|error| error.to_string())
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
        append(&path, &note("a", 3, 1)).unwrap();
        append(&path, &note("a", 3, 1)).unwrap();
        append(&path, &note("a", 5, 2)).unwrap();
        for wrong in [note("a", 4, 3), note("a", 5, 3), note("b", 9, 3), "no note\n".to_owned()] {
            let before = std::fs::read_to_string(&path).unwrap();
            append(&path, &wrong).unwrap_err();
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
            assert!(matches!(append(&path, &note("a.example", 3, 1)), Err(Error::NotAWitness)));
            assert!(matches!(ensure_witness_at(&path), Err(Error::NotAWitness)));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), foreign);
        }
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        append(&path, &note("a.example", 3, 1)).unwrap_err();
        assert_eq!(std::fs::read(&path).unwrap(), [0xff, 0xfe]);
        // The first note of all may be torn, too.
        let first = note("quorate/a", 3, 1);
        for cut in (0..first.len()).filter(|cut| first.is_char_boundary(*cut)) {
            std::fs::write(&path, &first[..cut]).unwrap();
            ensure_witness_at(&path).unwrap();
            append(&path, &note("quorate/a", 5, 2)).unwrap();
        }
    }

    #[test]
    fn a_torn_note_stays_and_hides_nothing_that_follows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("witness.txt");
        append(&path, &note("a", 3, 1)).unwrap();
        let whole = std::fs::read_to_string(&path).unwrap();
        let next = note("a", 5, 2);
        for cut in 1..next.len() {
            if !next.is_char_boundary(cut) {
                continue;
            }
            std::fs::write(&path, format!("{whole}{}", &next[..cut])).unwrap();
            append(&path, &next).unwrap();
            let notes = Witness::parse(&std::fs::read_to_string(&path).unwrap()).notes;
            let last = notes.last().unwrap();
            assert_eq!(last, &next, "cut at {cut}");
        }
    }
}
