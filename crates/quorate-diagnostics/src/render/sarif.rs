//! SARIF 2.1.0, the format that code scanning tools read. [`log`] builds a document from any findings; [`sarif`] builds
//! one from diagnostics.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Level, LineIndexes, sorted_diagnostics};
use crate::text::Position;
use crate::{Report, codes};

/// A kind of finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// For example `quorate:syntax` or `evidence/unsourced-number`.
    pub id: String,
    /// One sentence.
    pub summary: String,
    /// Markdown; may be empty.
    pub help: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub rule: String,
    pub level: Level,
    pub message: String,
    /// A path with `/`, relative to the working directory.
    pub file: Option<String>,
    pub region: Option<Region>,
    pub fix: Option<String>,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    pub start: Position,
    /// The position after the last character.
    pub end: Position,
    pub snippet: Option<String>,
}

/// Renders a report as a SARIF document.
pub fn sarif(report: &Report) -> String {
    let lines = LineIndexes::new(report);
    let items = sorted_diagnostics(report);
    let page = |item: &super::Diagnostic<'_>| codes::explain(item.code);
    let rules: BTreeMap<_, _> = items.iter().filter_map(page).map(|page| (page.code, page)).collect();
    let rules = rules.into_values().map(|page| Rule {
        id: page.code.to_owned(),
        summary: page.summary().to_owned(),
        help: page.markdown.to_owned(),
    });
    let findings = items.iter().map(|item| Finding {
        rule: item.code.to_owned(),
        level: item.severity.into(),
        message: item.body.message.clone(),
        file: item.body.place.as_ref().map(|place| place.file.to_string()),
        region: lines.positions(item).map(|(start, end)| Region {
            start,
            end,
            snippet: snippet(report, item),
        }),
        fix: item.body.help.clone(),
    });
    let log = log(&rules.collect::<Vec<_>>(), &findings.collect::<Vec<_>>());
    format!("{log:#}\n")
}

/// A SARIF log of one run of Quorate. Findings keep their order.
pub fn log(rules: &[Rule], findings: &[Finding]) -> Value {
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "quorate",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(rule).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": findings.iter().map(|finding| result(rules, finding)).collect::<Vec<_>>(),
        }],
    })
}

fn rule(rule: &Rule) -> Value {
    let mut value = json!({ "id": rule.id, "shortDescription": { "text": rule.summary } });
    if !rule.help.is_empty() {
        value["help"] = json!({ "text": rule.help, "markdown": rule.help });
    }
    value
}

fn result(rules: &[Rule], finding: &Finding) -> Value {
    let level = match finding.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    };
    // A SARIF fix is a replacement of text; advice in words belongs to the message.
    let message = match &finding.fix {
        Some(fix) => format!("{}\n\n{fix}", finding.message),
        None => finding.message.clone(),
    };
    let mut value = json!({ "ruleId": finding.rule, "level": level, "message": { "text": message } });
    if let Some(index) = rules.iter().position(|rule| rule.id == finding.rule) {
        value["ruleIndex"] = json!(index);
    }
    if let Some(fix) = &finding.fix {
        value["properties"] = json!({ "fix": fix });
    }
    if let Some(file) = &finding.file {
        let mut physical = Map::from_iter([("artifactLocation".to_owned(), json!({ "uri": uri(file) }))]);
        physical.extend(finding.region.as_ref().map(|part| ("region".to_owned(), region(part))));
        value["locations"] = json!([{ "physicalLocation": physical }]);
    }
    value
}

fn region(region: &Region) -> Value {
    let mut value = json!({
        "startLine": region.start.line,
        "startColumn": region.start.column,
        "endLine": region.end.line,
        "endColumn": region.end.column,
    });
    if let Some(snippet) = &region.snippet {
        value["snippet"] = json!({ "text": snippet });
    }
    value
}

fn snippet(report: &Report, item: &super::Diagnostic<'_>) -> Option<String> {
    let place = item.body.place.as_ref()?;
    let text = report.sources.get(&place.file)?.get(place.span.clone())?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// A path as a URI reference: an absolute path becomes a `file:` URI; unsafe bytes are percent-encoded.
fn uri(path: &str) -> String {
    let mut uri = String::from(if path.starts_with('/') { "file://" } else { "" });
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' | b'~' | b'+' | b'@' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn a_report_becomes_results_with_regions() {
        let log: Value = serde_json::from_str(&sarif(&fixture::report())).expect("JSON");
        assert_eq!(log["version"], "2.1.0");
        let run = &log["runs"][0];
        let results = run["results"].as_array().expect("results");
        assert_eq!(results.len(), 4);
        for result in results {
            let index = usize::try_from(result["ruleIndex"].as_u64().expect("an index")).expect("small");
            assert_eq!(run["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
        }
        assert!(results[0].get("locations").is_none());
        assert_eq!(
            results[2]["locations"][0]["physicalLocation"],
            json!({
                "artifactLocation": { "uri": "council.yaml" },
                "region": { "startLine": 2, "startColumn": 16, "endLine": 2, "endColumn": 17, "snippet": { "text": "ä" } },
            })
        );
        assert_eq!(results[1]["message"]["text"], "`id` is missing\n\nadd `id`: a name");
    }

    #[test]
    fn paths_are_uris() {
        assert_eq!(uri("a b/ü.md"), "a%20b/%C3%BC.md");
        assert_eq!(uri("/tmp/x:y.md"), "file:///tmp/x%3Ay.md");
        assert_eq!(uri("-"), "-");
    }
}
