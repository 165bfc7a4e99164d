//! How the keys of a PERSONA.md are merged along a chain (AIP-25).

use crate::merge::Row;
use crate::merge::Strategy::{ById, Deep, Fields, Local, Override, Union};
use crate::merge::row;

/// One row for each key, in the order of AIP-25's table. A non-blank body overrides the parent's.
pub const TABLE: &[Row] = &[
    row("schema", Override),
    row("name", Override),
    row("title", Override),
    row("description", Override),
    row("version", Override),
    row("extends", Local),
    row("avatar", Override),
    row("backstory", Fields(&[row("archetypes", Union)])),
    row("voice", Fields(&[row("signaturePhrases", Union), row("tonality", Union)])),
    row(
        "boundaries",
        Fields(&[row("refuses", Union), row("defers", Union), row("redirects", ById("topic"))]),
    ),
    row("defaultLocale", Override),
    row("multilingual", Union),
    row("relationships", ById("persona")),
    row("identity", Override),
    row("appliesTo", Local),
    row("tags", Union),
    row("metadata", Deep),
];
