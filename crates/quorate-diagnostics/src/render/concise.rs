//! One line per diagnostic: `file:line:column: refusal[code] message`, then the help in brackets.

use std::fmt::Write;

use super::{LineIndexes, one_line, sorted_diagnostics};
use crate::Report;

pub fn concise(report: &Report) -> String {
    let lines = LineIndexes::new(report);
    let mut out = String::new();
    for item in sorted_diagnostics(report) {
        if let Some(place) = &item.body.place {
            let _ = write!(out, "{}:", one_line(&place.file));
            if let Some((start, _)) = lines.positions(&item) {
                let _ = write!(out, "{}:{}:", start.line, start.column);
            }
            out.push(' ');
        }
        let _ = write!(out, "{}[{}] {}", item.severity.as_str(), item.code, one_line(&item.body.message));
        if let Some(help) = &item.body.help {
            let _ = write!(out, " ({})", one_line(help));
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn each_diagnostic_has_one_line() {
        assert_eq!(
            concise(&fixture::report()),
            "refusal[quorate:usage] no file was named\n\
             council.yaml:1:1: refusal[quorate:council_invalid] `id` is missing (add `id`: a name)\n\
             council.yaml:2:16: refusal[quorate:syntax] the key `ä` is there twice\n\
             council.yaml:2:16: warning[quorate:field_without_effect] nothing reads \\u{1b}[31m this\n"
        );
        assert_eq!(concise(&Report::new()), "");
    }
}
