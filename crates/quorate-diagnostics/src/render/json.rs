//! Diagnostics as JSON: `{"diagnostics": [{code, severity, file, line, column, path, message, help}]}`.

use serde_json::{Value, json};

use super::{LineIndexes, sorted_diagnostics};
use crate::Report;

pub fn json(report: &Report) -> String {
    let mut text = json!({ "diagnostics": diagnostics(report) }).to_string();
    text.push('\n');
    text
}

/// The output of `quorate check`: the diagnostics, and the numbers of files, refusals and warnings.
pub fn check(report: &Report, files: usize) -> Value {
    json!({
        "diagnostics": diagnostics(report),
        "files": files,
        "refusals": report.refusals.len(),
        "warnings": report.warnings.len(),
    })
}

/// The diagnostics as an array, for embedding in other documents. Unknown values are `null`; `path` is empty at the root.
pub fn diagnostics(report: &Report) -> Value {
    let lines = LineIndexes::new(report);
    let diagnostic = |item: super::Diagnostic<'_>| {
        let start = lines.positions(&item).map(|(start, _)| start);
        let place = item.body.place.as_ref();
        json!({
            "code": item.code,
            "severity": item.severity.as_str(),
            "file": place.map(|place| place.file.as_ref()),
            "line": start.map(|start| start.line),
            "column": start.map(|start| start.column),
            "path": place.map(|place| place.path.as_str()),
            "message": item.body.message,
            "help": item.body.help,
        })
    };
    Value::Array(sorted_diagnostics(report).into_iter().map(diagnostic).collect())
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn every_diagnostic_has_every_key() {
        let document = check(&fixture::report(), 1);
        assert_eq!(document["files"], 1);
        assert_eq!(document["refusals"], 3);
        assert_eq!(document["warnings"], 1);
        assert_eq!(
            document["diagnostics"][1],
            json!({
                "code": "quorate:council_invalid", "severity": "refusal", "file": "council.yaml", "line": 1,
                "column": 1, "path": "", "message": "`id` is missing", "help": "add `id`: a name",
            })
        );
        assert_eq!(
            document["diagnostics"][0],
            json!({
                "code": "quorate:usage", "severity": "refusal", "file": null, "line": null, "column": null,
                "path": null, "message": "no file was named", "help": null,
            })
        );
        assert_eq!(json(&Report::new()), "{\"diagnostics\":[]}\n");
    }
}
