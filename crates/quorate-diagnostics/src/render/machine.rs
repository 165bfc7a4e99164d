//! Formats that programs read: JSON (`{"diagnostics": [{code, severity, file, line, column, path, message, help}]}`), GitHub
//! workflow commands, which GitHub shows as annotations at their lines, and SARIF 2.1.0, which code scanning tools read.
//! [`sarif_log`] builds a SARIF document from any findings; [`sarif`] builds one from diagnostics.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Level, LineIndexes, sorted_diagnostics};
use crate::invisible::escape_invisible;
use crate::text::Position;
use crate::{Report, codes};

pub fn json(report: &Report) -> String {
    let mut text = json!({ "diagnostics": diagnostics_json(report) }).to_string();
    text.push('\n');
    text
}

/// The output of `quorate check`: the diagnostics, and the numbers of files, refusals and warnings.
pub fn check_json(report: &Report, files: usize) -> Value {
    json!({
        "diagnostics": diagnostics_json(report),
        "files": files,
        "refusals": report.refusals.len(),
        "warnings": report.warnings.len(),
    })
}

/// As [`diagnostics_json`].
impl serde::Serialize for Report {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        diagnostics_json(self).serialize(serializer)
    }
}

/// The diagnostics as an array, for embedding in other documents. Unknown values are `null`; `path` is empty at the root.
pub fn diagnostics_json(report: &Report) -> Value {
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

/// Renders one command per diagnostic.
pub fn github(report: &Report) -> String {
    let lines = LineIndexes::new(report);
    let mut out = String::new();
    for item in sorted_diagnostics(report) {
        let file = item.body.place.as_ref().map_or("", |place| &place.file);
        let position = lines.positions(&item).map(|(start, _)| start);
        let message = match &item.body.help {
            Some(help) => format!("{}\n{help}", item.body.message),
            None => item.body.message.clone(),
        };
        out.push_str(&github_annotation(item.severity.into(), file, position, item.code, &message));
        out.push('\n');
    }
    out
}

/// One command, without a final line break. `file` and `title` may be empty.
pub fn github_annotation(
    level: Level,
    file: &str,
    position: Option<Position>,
    title: &str,
    message: &str,
) -> String {
    let name = match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "notice",
    };
    let mut properties = Vec::new();
    if !file.is_empty() {
        properties.push(format!("file={}", escape_property(file)));
        if let Some(Position { line, column }) = position {
            properties.push(format!("line={line},col={column}"));
        }
    }
    if !title.is_empty() {
        properties.push(format!("title={}", escape_property(title)));
    }
    let space = if properties.is_empty() { "" } else { " " };
    format!("::{name}{space}{}::{}", properties.join(","), escape_message(message))
}

/// Escapes characters that would end a message, and invisible characters.
fn escape_message(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in escape_invisible(text).chars() {
        match c {
            '%' => escaped.push_str("%25"),
            '\r' => escaped.push_str("%0D"),
            '\n' => escaped.push_str("%0A"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Escapes characters that would end a property.
fn escape_property(text: &str) -> String {
    escape_message(text).replace(':', "%3A").replace(',', "%2C")
}

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
    let log = sarif_log(&rules.collect::<Vec<_>>(), &findings.collect::<Vec<_>>());
    format!("{log:#}\n")
}

/// A SARIF log of one run of Quorate. Findings keep their order.
pub fn sarif_log(rules: &[Rule], findings: &[Finding]) -> Value {
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
    fn every_diagnostic_has_every_key() {
        let document = check_json(&fixture::report(), 1);
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

#[cfg(test)]
mod github_tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn each_diagnostic_is_one_command() {
        let text = github(&fixture::report());
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "::error title=quorate%3Ausage::no file was named");
        assert_eq!(
            lines[1],
            "::error file=council.yaml,line=1,col=1,title=quorate%3Acouncil_invalid::`id` is missing%0Aadd `id`: a name"
        );
        assert!(lines[3].starts_with("::warning file=council.yaml,line=2,col=16,"), "{}", lines[3]);
    }

    #[test]
    fn no_text_ends_the_command() {
        let at = Some(Position { line: 3, column: 7 });
        assert_eq!(
            github_annotation(Level::Note, "a,b:c%.md", at, "x: y, z", "50%\r\n::error::no"),
            "::notice file=a%2Cb%3Ac%25.md,line=3,col=7,title=x%3A y%2C z::50%25%0D%0A::error::no"
        );
        assert_eq!(github_annotation(Level::Error, "", None, "", "m"), "::error::m");
        assert_eq!(
            github_annotation(Level::Error, "a\u{202e}b", None, "\u{2066}", "c\u{2028}d\u{2029}"),
            "::error file=a[U+202E]b,title=[U+2066]::c[U+2028]d[U+2029]"
        );
    }
}

#[cfg(test)]
mod sarif_tests {
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
