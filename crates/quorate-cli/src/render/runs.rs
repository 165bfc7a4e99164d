//! The runs of a ledger, as a table and as JSON.

use std::collections::BTreeSet;

use quorate_diagnostics::render::TextOptions;
use quorate_ledger::runs::Listed;
use serde_json::json;

use super::layout::table;
use super::paint::{Paint, finish, one_line};
use super::wording::minute;
use quorate::service::runs::{self, ListedRun};

/// The shortest prefix of an id that is shown.
const SHORT: usize = 7;
const LONG: usize = 13;

/// The runs as a table, in the given order. Columns that no run fills are left out.
pub(crate) fn human(runs: &[Listed], options: TextOptions) -> String {
    if runs.is_empty() {
        return "No runs yet: `quorate review FILE` makes the first. `quorate log` shows conversations.\n"
            .to_owned();
    }
    let length = short(runs);
    let rows: Vec<[String; 10]> = runs
        .iter()
        .map(|listed| row(listed, listed.run.run.get(..length).unwrap_or(&listed.run.run)))
        .collect();
    let is_filled = |at: &usize| {
        OPTIONAL.iter().all(|optional| optional != at) || rows.iter().any(|row| !row[*at].is_empty())
    };
    let shown: Vec<usize> = (0..HEADINGS.len()).filter(is_filled).collect();
    let headings: Vec<&str> = shown.iter().map(|at| HEADINGS[*at]).collect();
    let rows = rows.iter().map(|row| shown.iter().map(|at| row[*at].clone()).collect()).collect();
    let table = table(&headings, rows, 0, options.width);
    let difference = |listed: &Listed| {
        let what = one_line(listed.difference()?);
        Some(format!("\n{} is {}: {what}", listed.run.run, listed.run.verdict.as_deref().unwrap_or_default()))
    };
    let differences: String = runs.iter().filter_map(difference).collect();
    let rest = if differences.is_empty() { String::new() } else { format!("\n{differences}\n") };
    finish(&format!("{}{rest}", table.trim_end()), options)
}

const HEADINGS: [&str; 10] = [
    "run",
    "opened (UTC)",
    "verdict",
    "override",
    "blocks",
    "missing",
    "sealed",
    "made by",
    "type",
    "artifact",
];
/// The columns that are left out where they are empty.
const OPTIONAL: [usize; 5] = [3, 4, 5, 6, 7];

/// `{"schema": …, "runs": [{run, opened, artifact, artifact_type, mode, …}]}`, as [`ListedRun`] has it.
pub(crate) fn json(runs: &[Listed]) -> String {
    format!(
        "{:#}\n",
        json!({ "schema": runs::SCHEMA, "runs": runs.iter().map(ListedRun::from).collect::<Vec<_>>() })
    )
}

fn row(listed: &Listed, short: &str) -> [String; 10] {
    let run = &listed.run;
    // Assemblies record their outcomes in lower case; all outcomes are shown in capitals.
    let word = |word: &str| Paint::of_word(word).on(&one_line(word).to_uppercase());
    let count = |names: &[String]| if names.is_empty() { String::new() } else { names.len().to_string() };
    [
        Paint::Strong.on(short),
        minute(run.opened_ms),
        run.verdict.as_deref().map_or_else(|| Paint::Absent.on("open"), word),
        run.overridden.as_deref().map_or_else(String::new, word),
        count(&listed.blockers),
        count(&listed.missing),
        if listed.sealed { "" } else { "no" }.to_owned(),
        one_line(&listed.producer),
        one_line(&run.artifact_type),
        if run.imported { format!("{} (imported)", one_line(&run.subject)) } else { one_line(&run.subject) },
    ]
}

/// The shortest length at which the ids of a list differ.
fn short(runs: &[Listed]) -> usize {
    let differ = |length: &usize| {
        let prefixes: BTreeSet<&str> =
            runs.iter().filter_map(|listed| listed.run.run.get(..*length)).collect();
        prefixes.len() == runs.len()
    };
    (SHORT..LONG).find(differ).unwrap_or(LONG)
}

#[cfg(test)]
mod tests {
    use quorate_ledger::runs::Run;
    use serde_json::Value;

    use super::*;

    fn runs() -> Vec<Listed> {
        let run = |id: &str, subject: &str, verdict: Option<&str>, overridden: Option<&str>| Run {
            run: id.into(),
            opened_ms: 1_772_600_700_007,
            subject: subject.to_owned(),
            artifact_type: "blog_post".to_owned(),
            verdict: verdict.map(str::to_owned),
            overridden: overridden.map(str::to_owned),
            log_path: String::new(),
            ended: true,
            imported: id.starts_with("ry"),
        };
        let listed = |run: Run| Listed {
            mode: if run.subject == "p.md" { "voting" } else { "council" }.to_owned(),
            producer: String::new(),
            blockers: if run.verdict.as_deref() == Some("HOLD") {
                vec!["ada".to_owned(), "bob".to_owned()]
            } else {
                Vec::new()
            },
            missing: Vec::new(),
            sealed: run.verdict.is_some(),
            finding: None,
            place: None,
            run,
        };
        let all = [
            run("r7k2m9q4xa1bc", "drafts/launch.md", Some("REVISE"), Some("SHIP")),
            run("r7k2m9q5xa1bc", "drafts/日本.md", None, None),
            run("rzzzzzz4xa1bc", "-", Some("HOLD"), None),
            run("ryyyyyy4xa1bc", "p.md", Some("pass"), None),
        ];
        all.into_iter().map(listed).collect()
    }

    #[test]
    fn a_row_for_each_run() {
        insta::assert_snapshot!(human(&runs(), TextOptions::default()), @"
        run       opened (UTC)      verdict  override  blocks  sealed  type       artifact
        ──────────────────────────────────────────────────────────────────────────────────────────
        r7k2m9q4  2026-03-04 05:05  REVISE   SHIP                      blog_post  drafts/launch.md
        r7k2m9q5  2026-03-04 05:05  open                       no      blog_post  drafts/日本.md
        rzzzzzz4  2026-03-04 05:05  HOLD               2               blog_post  -
        ryyyyyy4  2026-03-04 05:05  PASS                               blog_post  p.md (imported)
        ");
        assert!(human(&[], TextOptions::default()).starts_with("No runs yet"));
    }

    #[test]
    fn json_has_the_whole_id() {
        let object: Value = serde_json::from_str(&json(&runs())).unwrap();
        assert_eq!(
            object["runs"][1],
            json!({
                "run": "r7k2m9q5xa1bc", "opened": "2026-03-04T05:05:00.007Z", "artifact": "drafts/日本.md",
                "artifact_type": "blog_post", "mode": "council", "producer": null, "verdict": null, "difference": null, "override": null,
                "blockers": [], "missing": [], "open": true, "sealed": false, "imported": false,
            })
        );
    }
}
