//! A character of a text as the matcher reads it.

use super::character::{Class, Entry, entry};

/// A character, and where in the text it comes from. Items follow each other without gaps: one ends where the next
/// that has another start begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) c: char,
    /// The byte at which its source begins.
    pub(super) start: u32,
}

impl Item {
    #[inline]
    pub(super) fn class(self) -> Class {
        self.entry().class
    }

    /// The entry of its character.
    #[inline]
    pub(super) fn entry(self) -> &'static Entry {
        entry(self.c)
    }
}
