//! A report as a GitLab Code Quality report: a list with an entry for each finding, one for a verdict that is not SHIP, and
//! one for each missing answer.

use quorate_diagnostics::render::Level;
use quorate_protocol::policy::Verdict;
use serde_json::{Value, json};

use super::wording::{self, undecided};
use super::{fingerprint, level, sarif};
use quorate::service::report::{Finding, Report};

/// One list for several reports.
pub(crate) fn gitlab_of(reports: &[&Report]) -> String {
    let entries: Vec<Value> = reports.iter().flat_map(|report| entries(report)).collect();
    format!("{:#}\n", Value::Array(entries))
}

fn entries(report: &Report) -> Vec<Value> {
    let mut entries: Vec<Value> = report.findings.iter().map(|finding| entry(report, finding)).collect();
    if report.verdict != Some(Verdict::Ship) {
        let because = match report.verdict {
            Some(_) => report.because.clone(),
            None => undecided(&report.run, report.imported, report.queued),
        };
        entries.push(json!({
            "description": format!("{}: {because} (run {})", report.verdict_word(), report.run),
            "check_name": "council",
            "fingerprint": fingerprint::of_verdict(report),
            "severity": severity(level::of_verdict(report.verdict)),
            "location": {"path": report.hosted_path(), "lines": {"begin": 1}},
        }));
    }
    entries.extend(report.failures().into_iter().map(|(member, round, failure)| {
        json!({
            "description": wording::failure(member, round, failure),
            "check_name": sarif::id(member),
            "fingerprint": fingerprint::of_failure(report, member, round),
            "severity": severity(level::of_failure(report)),
            "location": {"path": report.hosted_path(), "lines": {"begin": 1}},
            "failure": failure,
        })
    }));
    entries
}

fn entry(report: &Report, finding: &Finding) -> Value {
    let fix = finding.fix.as_ref().map_or_else(String::new, |fix| format!(" Fix: {fix}"));
    json!({
        "description": format!("{}{fix}", finding.issue),
        "check_name": sarif::id(&finding.by),
        "fingerprint": fingerprint::of_finding(report, finding),
        "severity": severity(level::of_member(report, &finding.by)),
        "location": {"path": report.hosted_path(), "lines": {"begin": finding.line.unwrap_or(1).max(1)}},
    })
}

fn severity(level: Level) -> &'static str {
    match level {
        Level::Error => "critical",
        Level::Warning => "major",
        Level::Note => "info",
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{hold, incomplete, open, revise, ship};
    use super::*;

    #[test]
    fn every_entry_is_what_gitlab_requires() {
        for report in [ship(), revise(), hold(), incomplete(), open()] {
            let list: Vec<Value> = serde_json::from_str(&gitlab_of(&[&report])).unwrap();
            let is_ship = report.verdict == Some(Verdict::Ship);
            let failures = report.failures();
            assert_eq!(list.len(), report.findings.len() + usize::from(!is_ship) + failures.len());
            for (member, _, failure) in failures {
                let names = |entry: &&Value| {
                    let description = entry["description"].as_str().unwrap();
                    description.contains(member)
                        && description.contains(failure.message.split('\n').next().unwrap())
                };
                assert!(list.iter().any(|entry| names(&entry)), "{member}: {list:#?}");
            }
            let mut fingerprints: Vec<&str> = Vec::new();
            for entry in &list {
                assert!(entry["location"]["lines"]["begin"].as_u64().unwrap() >= 1);
                assert_eq!(entry["location"]["path"], "drafts/launch.md");
                assert!(!entry["description"].as_str().unwrap().is_empty());
                assert!(matches!(entry["severity"].as_str(), Some("critical" | "major" | "info")));
                fingerprints.push(entry["fingerprint"].as_str().unwrap());
            }
            fingerprints.sort_unstable();
            fingerprints.dedup();
            assert_eq!(fingerprints.len(), list.len());
        }
        assert_eq!(gitlab_of(&[]), "[]\n");
    }
}
