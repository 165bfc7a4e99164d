//! Fingerprints identify a finding across reviews of a changing text: its member, file and quoted words. Code hosts show a
//! finding with a known fingerprint once, even after its line has moved.

use quorate_kernel::entropy::sha256_hex;
use serde_json::json;

use quorate::service::report::{Finding, Report};

/// Where a member raises several about the same words, their order tells them apart.
pub(super) fn of_finding(report: &Report, finding: &Finding) -> String {
    let about = |finding: &Finding| match finding.quote.trim() {
        "" => finding.issue.clone(),
        quote => quote.to_owned(),
    };
    let is_alike = |other: &&Finding| other.by == finding.by && about(other) == about(finding);
    let before = report.findings.iter().take_while(|other| !std::ptr::eq(*other, finding)).filter(is_alike);
    hash(&json!([finding.by, report.hosted_path(), about(finding), before.count()]))
}

pub(super) fn of_verdict(report: &Report) -> String {
    hash(&json!(["council", report.hosted_path()]))
}

pub(super) fn of_failure(report: &Report, member: &str, round: Option<u8>) -> String {
    hash(&json!(["council", report.hosted_path(), member, round]))
}

fn hash(parts: &serde_json::Value) -> String {
    sha256_hex(parts.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::fixture::revise;
    use super::*;

    #[test]
    fn a_line_that_moves_changes_nothing_and_other_words_do() {
        let report = revise();
        let first = of_finding(&report, &report.findings[0]);
        let mut moved = report.clone();
        moved.findings[0].line = Some(99);
        moved.findings[0].issue = "The same in other words.".to_owned();
        assert_eq!(of_finding(&moved, &moved.findings[0]), first);
        moved.findings[0].quote = "other words of the text".to_owned();
        assert_ne!(of_finding(&moved, &moved.findings[0]), first);
        let mut twice = report.clone();
        twice.findings.insert(1, twice.findings[0].clone());
        assert_ne!(of_finding(&twice, &twice.findings[1]), first);
        assert_eq!(of_finding(&twice, &twice.findings[0]), first);
    }
}
