//! The other members' answers from the cross-read and the second answers, with their quotes located in the artifact.

use std::ops::Range;

use serde_json::Value;

use super::document::Document;
use super::lens::Lens;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct PeerAnswer {
    pub(super) id: String,
    /// By the member's id.
    pub(super) lens: Lens,
    /// `answered`, or the reason why there is no answer.
    pub(super) status: String,
    /// `None` if not shown.
    pub(super) would_block: Option<bool>,
    /// Whether it claims that no edit helps.
    pub(super) irreducible: bool,
    /// 1 to 5; `None` if not shown.
    pub(super) score: Option<f64>,
    pub(super) findings: Vec<PeerFinding>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PeerFinding {
    /// Words of the artifact.
    pub(super) quote: String,
    pub(super) issue: String,
    pub(super) fix: String,
    pub(super) line: Option<usize>,
    /// Where the artifact contains the quote, if it does.
    pub(super) span: Option<Range<usize>>,
}

impl PeerAnswer {
    pub(super) fn answered(&self) -> bool {
        self.status == "answered"
    }

    /// Whether it answered and would block.
    pub(super) fn blocks(&self) -> bool {
        self.answered() && self.would_block == Some(true)
    }
}

/// Reads a part: a JSON array of answers. Anything else is ignored.
pub(super) fn read(text: &str, document: &Document<'_>) -> Vec<PeerAnswer> {
    let Ok(Value::Array(members)) = serde_json::from_str(text) else { return Vec::new() };
    members.iter().filter_map(|member| read_one(member, document)).collect()
}

fn read_one(member: &Value, document: &Document<'_>) -> Option<PeerAnswer> {
    let id = member.get("deliberator")?.as_str()?.to_owned();
    let findings = member.get("findings").and_then(Value::as_array).into_iter().flatten();
    Some(PeerAnswer {
        lens: Lens::of(&id, ""),
        id,
        status: string(member, "status"),
        would_block: member.get("would_block").and_then(Value::as_bool),
        irreducible: member.get("irreducible").and_then(Value::as_bool).unwrap_or(false),
        score: member.get("score").and_then(Value::as_f64),
        findings: findings.map(|finding| parse_finding(finding, document)).collect(),
    })
}

fn parse_finding(finding: &Value, document: &Document<'_>) -> PeerFinding {
    let quote = string(finding, "quote");
    let stated_line = finding.get("line").and_then(Value::as_u64).and_then(|line| usize::try_from(line).ok());
    let span = locate(document, &quote, stated_line);
    let line = span.as_ref().map(|span| document.line_of(span.start)).or(stated_line);
    PeerFinding { issue: string(finding, "issue"), fix: string(finding, "fix"), quote, line, span }
}

fn string(object: &Value, key: &str) -> String {
    object.get(key).and_then(Value::as_str).unwrap_or_default().trim().to_owned()
}

/// The place of a quote: on its line, else the first in the text.
fn locate(document: &Document<'_>, quote: &str, line: Option<usize>) -> Option<Range<usize>> {
    if quote.is_empty() {
        return None;
    }
    let on_line = line.map(|line| document.line(line)).and_then(|line| {
        let rest = document.text.get(line.start..)?;
        rest.find(quote).map(|at| line.start + at).filter(|at| *at <= line.end)
    });
    let start = on_line.or_else(|| document.text.find(quote))?;
    Some(start..start + quote.len())
}

pub(super) fn overlaps(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Joins names in a sentence: `a`, `a and b`, `a, b and c`.
pub(super) fn join_names(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [name] => (*name).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_looked_up_on_their_line_first() {
        let document = Document::parse("", "one two\n\ntwo three\n");
        let span = |line| locate(&document, "two", line);
        assert_eq!(
            (span(Some(3)), span(Some(1)), span(None), span(Some(9))),
            (Some(9..12), Some(4..7), Some(4..7), Some(4..7))
        );
        assert_eq!(locate(&document, "four", Some(1)), None);
    }

    #[test]
    fn what_is_not_of_the_form_says_nothing() {
        let document = Document::parse("", "x");
        assert!(
            read("", &document).is_empty()
                && read("{}", &document).is_empty()
                && read("[1, {\"status\": 2}]", &document).is_empty()
        );
        let text = r#"[{"deliberator": "voice", "status": "answered", "would_block": "true", "findings": [{"line": -1}, 7]}]"#;
        let read = read(text, &document);
        assert_eq!((read.len(), read[0].would_block, read[0].findings.len()), (1, None, 2));
    }

    #[test]
    fn names_are_listed_as_one_says_them() {
        assert_eq!(join_names(&["a", "b", "c"]), "a, b and c");
    }
}
