//! How the keys of an ASSEMBLY.md are merged along a chain (AIP-24, "Merge strategy"; M6).

use crate::merge::Row;
use crate::merge::Strategy::{ById, Deep, Fields, Local, Override, Union};
use crate::merge::row;

/// One row for each key, in the order of AIP-24's table. `inherited_minimums.rs` checks the one-way keys.
pub const TABLE: &[Row] = &[
    row("schema", Override),
    row("name", Override),
    row("title", Override),
    row("description", Override),
    row("version", Override),
    row("extends", Local),
    row("appliesTo", Local),
    row("mode", Override),
    row("members", ById("id")),
    row("synthesis", Fields(SYNTHESIS)),
    row("lockedTraits", Union),
    row("matchMode", Override),
    row("audit", Fields(AUDIT)),
    row("identity", Override),
    row("governance", Override),
    row("work", Override),
    row("executor", Override),
    row("defaults", Fields(&[])),
    row("display", Fields(&[])),
    row("metadata", Deep),
];

const SYNTHESIS: &[Row] = &[row("rules", ById("id")), row("riskLevels", Override)];

const AUDIT: &[Row] =
    &[row("consultations", Fields(&[])), row("overlays", Fields(&[])), row("signing", Override)];
