//! An export as comma-separated values (RFC 4180): one line for each record, for spreadsheets. It contains no member's
//! text, and spreadsheets read no cell as a formula.

use std::io::Write;

use quorate_kernel::entropy::hex;
use quorate_protocol::Json;

use super::{CheckedRecords, ExportError};
use crate::prove::CheckedRecord;

/// The columns. They never change.
pub const COLUMNS: [&str; 18] = [
    "seq",
    "run",
    "n",
    "at",
    "kind",
    "member",
    "step",
    "status",
    "verdict",
    "executor",
    "model",
    "calls",
    "tokens_in",
    "tokens_out",
    "ms",
    "data_sha256",
    "leaf",
    "signed_by",
];

pub(super) async fn write(
    records: &mut CheckedRecords<'_>,
    out: &mut (dyn Write + Send),
) -> Result<(), ExportError> {
    out.write_all(row(&COLUMNS.map(str::to_owned)).as_bytes())?;
    while let Some(page) = records.next_page().await? {
        for (item, exported) in page {
            out.write_all(row(&cells(item.index + 1, &exported)).as_bytes())?;
        }
    }
    Ok(())
}

fn cells(seq: u64, exported: &CheckedRecord) -> [String; 18] {
    let data = exported.data.as_ref();
    let text_of = |value: Option<&Json>| match value {
        Some(Json::String(text)) => text.clone(),
        Some(Json::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let value = |key: &str| text_of(data.and_then(|data| data.get(key)));
    let spent = |key: &str| text_of(data.and_then(|data| data.get("spent")?.get(key)));
    let signers: Vec<String> = exported.signers.iter().map(ToString::to_string).collect();
    [
        seq.to_string(),
        exported.head.run.clone(),
        exported.head.n.to_string(),
        exported.head.at.clone(),
        exported.head.kind.clone(),
        value("member"),
        value("step"),
        value("status"),
        value("verdict"),
        value("executor"),
        value("model"),
        spent("calls"),
        spent("tokens_in"),
        spent("tokens_out"),
        spent("ms"),
        exported.head.data_sha256.clone(),
        hex(&exported.leaf),
        signers.join(" "),
    ]
}

fn row(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| self::cell(cell)).collect();
    cells.join(",") + "\r\n"
}

/// One cell. A text that a spreadsheet would evaluate as a formula gets a leading apostrophe.
fn cell(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    match text.contains(['"', ',', '\r', '\n']) || formula {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula_and_each_is_one_cell() {
        for (text, written) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"no\"", "\"say \"\"no\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("=1+1", "\"'=1+1\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            ("\t=1", "\"'\t=1\""),
            ("", ""),
        ] {
            assert_eq!(cell(text), written);
        }
    }
}
