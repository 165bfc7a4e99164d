//! What can be the matter with a journal.

use std::io;
use std::path::Path;

use quorate_kernel::ports::substrate::Error;

/// Why something did not work.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The file system says so.
    Io(io::Error),
    /// The journal is not UTF-8 at this byte.
    Text(u64),
    /// The index is not the journal's.
    Doubt,
    /// The journal changes faster than it is read.
    Moving,
    /// The file has text in this line, and no turn.
    NoJournal(usize),
    /// The turn cannot be kept.
    Refused(Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble::Io(error)
    }
}

impl Trouble {
    /// As the port has it.
    pub(super) fn of(self, journal: &Path) -> Error {
        let journal = journal.display();
        let unavailable = |what| Error::Unavailable { what, source: None };
        match self {
            Trouble::Io(error) => Error::unavailable(format!("the journal {journal} does not answer"), error),
            Trouble::Text(byte) => unavailable(format!(
                "the journal {journal} is not UTF-8 at byte {byte}; nothing is read past it and nothing is lost: \
                 mend the text there"
            )),
            Trouble::Doubt | Trouble::Moving => unavailable(format!(
                "the journal {journal} was changed by another program at the same moment; try again"
            )),
            Trouble::NoJournal(line) => unavailable(format!(
                "{journal} is no journal: it has text (line {line}) and no turn, and nothing is appended to it; name \
                 another file in `path`, or make headings (`# …`) or comments (`<!-- … -->`) of the text"
            )),
            Trouble::Refused(error) => error,
        }
    }
}
