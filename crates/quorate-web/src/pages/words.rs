//! Texts that are compared word by word, as templates show them.

use quorate::service::diff::{Change, Piece};

/// A piece of a comparison.
pub(super) struct Word {
    pub(super) is_removed: bool,
    pub(super) is_added: bool,
    pub(super) text: String,
}

/// The pieces for `words.html`.
pub(super) fn words(pieces: &[Piece]) -> Vec<Word> {
    let word = |piece: &Piece| Word {
        is_removed: piece.change == Change::Removed,
        is_added: piece.change == Change::Added,
        text: piece.text.clone(),
    };
    pieces.iter().map(word).collect()
}
