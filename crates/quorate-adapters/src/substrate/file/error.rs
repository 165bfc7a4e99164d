//! Errors of a journal.

use std::io;
use std::path::Path;

use quorate_kernel::ports::substrate::Error;
use quorate_protocol::Name;

#[derive(Debug)]
pub(super) enum JournalError {
    Io(io::Error),
    /// The journal is not UTF-8 at this offset.
    NotUtf8(u64),
    /// The note of a turn, at this offset, cannot be read.
    UnreadableNote {
        byte: u64,
        turn: Name,
        error: serde_json::Error,
    },
    /// The index does not match the journal.
    StaleIndex,
    /// The journal changes faster than it can be read.
    ConcurrentChange,
    /// The file has text in this line, and no turn.
    NotAJournal(usize),
    /// The turn cannot be stored.
    Refused(Error),
}

impl From<io::Error> for JournalError {
    fn from(error: io::Error) -> Self {
        JournalError::Io(error)
    }
}

impl JournalError {
    pub(super) fn into_port_error(self, journal: &Path) -> Error {
        let journal = journal.display();
        let unavailable = |what| Error::Unavailable { what, source: None };
        match self {
            JournalError::Io(error) => {
                Error::unavailable(format!("the journal {journal} does not answer"), error)
            }
            JournalError::NotUtf8(byte) => unavailable(format!(
                "the journal {journal} is not UTF-8 at byte {byte}; nothing is read past it and nothing is lost: \
                 mend the text there"
            )),
            JournalError::UnreadableNote { byte, turn, error } => Error::unavailable(
                format!(
                    "cannot read the note of turn {turn} in the journal {journal} at byte {byte}; nothing is read past \
                     it: correct the line, or remove it if the turn's state and metadata may go"
                ),
                error,
            ),
            JournalError::StaleIndex | JournalError::ConcurrentChange => unavailable(format!(
                "the journal {journal} was changed by another program at the same moment; try again"
            )),
            JournalError::NotAJournal(line) => unavailable(format!(
                "{journal} is no journal: it has text (line {line}) and no turn, and nothing is appended to it; name \
                 another file in `path`, or make headings (`# …`) or comments (`<!-- … -->`) of the text"
            )),
            JournalError::Refused(error) => error,
        }
    }
}
