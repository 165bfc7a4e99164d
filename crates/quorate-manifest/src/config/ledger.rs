//! `ledger`: location, witness and retention of the ledger. Either a path alone, or a table.

use super::Ledger;
use crate::tree::{Field, Kind};

/// Reads `ledger`.
pub(super) fn read(field: &Field<'_>) -> Ledger {
    if !matches!(field.kind(), Kind::Map(_)) {
        return Ledger { path: path(field), ..Ledger::default() };
    }
    let Some(mut fields) = field.fields() else { return Ledger::default() };
    let ledger = Ledger {
        path: fields.optional("path").and_then(|field| path(&field)),
        witness: fields.optional("witness").and_then(|f| Some((f.non_blank_text()?.to_owned(), f.place()))),
        witness_key: fields
            .optional("witness_key")
            .and_then(|f| Some((f.non_blank_text()?.to_owned(), f.place()))),
        retention_days: fields.optional("retention").and_then(|field| retention(&field)),
    };
    fields.finish();
    ledger
}

fn path(field: &Field<'_>) -> Option<String> {
    let written = field.non_blank_text()?;
    if written.contains("://")
        && !["postgres://", "postgresql://"].iter().any(|scheme| written.starts_with(scheme))
    {
        field.invalid_with(
            "a ledger is a file or a Postgres database",
            "write a path relative to this file, or `postgres://user@host/database`",
        );
        return None;
    }
    Some(written.to_owned())
}

fn retention(field: &Field<'_>) -> Option<u32> {
    let written = field.non_blank_text()?;
    if written == "forever" {
        return None;
    }
    let days =
        written.strip_prefix("days:").filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
    let days = days.and_then(|digits| digits.parse().ok()).filter(|days| *days > 0);
    if days.is_none() {
        let message =
            format!("`{}` is `{written}`; it has to be forever or days:<n>, at least one", field.path());
        field.invalid_with(message, "write it like `days:90`");
    }
    days
}
