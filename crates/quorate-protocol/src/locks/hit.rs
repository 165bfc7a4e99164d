//! A hit: which trait, where, and how far the text had to be folded to see it.

use std::ops::Range;
use std::sync::Arc;

/// A place in a text that a locked trait forbids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The index of the trait.
    pub trait_index: usize,
    /// The trait as its author wrote it.
    pub trait_text: Arc<str>,
    pub layer: Layer,
    /// The bytes of the text as given that the hit covers, on character boundaries.
    pub span: Range<usize>,
}

/// What saw a hit, the least folded first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// The text as given, but for case.
    AsGiven,
    /// A pattern, on the text as given.
    Regex,
    /// Characters folded: compatibility forms, accents, invisible characters, entities, runs of white space.
    Folded,
    /// A pattern, on folded text.
    RegexFolded,
    /// Also markup and line-end hyphens taken out.
    Unmarked,
    /// Also characters replaced by those that they look like.
    Skeleton,
    /// Also letters that were set apart put together.
    SetApart,
    /// An embedder that compared meanings.
    Meaning,
}

impl Layer {
    /// The layers, the least folded first.
    pub const ALL: [Layer; 8] = [
        Layer::AsGiven,
        Layer::Regex,
        Layer::Folded,
        Layer::RegexFolded,
        Layer::Unmarked,
        Layer::Skeleton,
        Layer::SetApart,
        Layer::Meaning,
    ];

    /// The word that records use.
    pub fn as_str(self) -> &'static str {
        match self {
            Layer::AsGiven => "as-given",
            Layer::Regex => "regex",
            Layer::Folded => "folded",
            Layer::RegexFolded => "regex-folded",
            Layer::Unmarked => "unmarked",
            Layer::Skeleton => "skeleton",
            Layer::SetApart => "set-apart",
            Layer::Meaning => "meaning",
        }
    }

    /// One sentence for people.
    pub fn description(self) -> &'static str {
        match self {
            Layer::AsGiven => "The text says it as it stands, upper and lower case aside.",
            Layer::Regex => "The pattern fits the text as it stands.",
            Layer::Folded => {
                "The text says it once widths, accents, invisible characters, entities and runs of space are evened out."
            }
            Layer::RegexFolded => "The pattern fits the text once it is folded.",
            Layer::Unmarked => {
                "The text says it once Markdown marks, HTML tags and line-end hyphens are taken out."
            }
            Layer::Skeleton => "The text says it once characters are replaced by those that they look like.",
            Layer::SetApart => "The text says it once letters that were set apart are put together.",
            Layer::Meaning => "The text means it, by the embedder's comparison.",
        }
    }
}
