//! An audit as Markdown.

use super::super::escape::inline;
use super::{summary, tables};
use quorate::service::audit::Audit;

pub(crate) fn markdown(audit: &Audit) -> String {
    let mut out = "## Audit of the council\n".to_owned();
    for sentence in summary(audit) {
        out.push_str(&format!("\n- {}", inline(&sentence)));
    }
    out.push('\n');
    for table in tables(audit) {
        out.push_str(&format!(
            "\n### {}\n\n| {} |\n| --- |{}\n",
            table.title,
            table.headings.iter().map(|heading| inline(heading)).collect::<Vec<_>>().join(" | "),
            " ---: |".repeat(table.headings.len() - 1)
        ));
        for row in &table.rows {
            let cells: Vec<String> = row.iter().map(|cell| inline(cell)).collect();
            out.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        if let Some(note) = &table.note {
            out.push_str(&format!("\n{}\n", inline(note)));
        }
    }
    out
}
