//! The runs of a ledger as a table and as JSON, the comparison of two runs, the result of a replay, and the events of runs.

use std::collections::BTreeSet;

use quorate::service::compare::{ComparedRun, Comparison, Finding, PositionChange};
use quorate::service::live::{WatchEvent, WatchEventKind};
use quorate::service::resume::Replay;
use quorate::service::runs::{self, RunListEntry};
use quorate_diagnostics::render::TextOptions;
use quorate_kernel::history::Difference;
use quorate_ledger::runs::ListedRun;
use quorate_protocol::Json;
use serde_json::json;

use super::layout::{Paint, finish, one_line, truncate};
use super::layout::{hanging, table};
use super::wording::{amount, clock_time, list, minute, step};

/// The shortest prefix of an id that is shown.
const SHORT: usize = 7;
const LONG: usize = 13;

/// The runs as a table, in the given order. Columns that no run fills are left out.
pub(crate) fn human(runs: &[ListedRun], options: TextOptions) -> String {
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
    let difference = |listed: &ListedRun| {
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

/// `{"schema": …, "runs": [{run, opened, artifact, artifact_type, mode, …}]}`, as [`RunListEntry`] has it.
pub(crate) fn json(runs: &[ListedRun]) -> String {
    format!(
        "{:#}\n",
        json!({ "schema": runs::SCHEMA, "runs": runs.iter().map(RunListEntry::from).collect::<Vec<_>>() })
    )
}

fn row(listed: &ListedRun, short: &str) -> [String; 10] {
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
fn short(runs: &[ListedRun]) -> usize {
    let differ = |length: &usize| {
        let prefixes: BTreeSet<&str> =
            runs.iter().filter_map(|listed| listed.run.run.get(..*length)).collect();
        prefixes.len() == runs.len()
    };
    (SHORT..LONG).find(differ).unwrap_or(LONG)
}

/// A comparison for people.
pub(crate) fn comparison(compared: &Comparison, options: TextOptions) -> String {
    let text = match compared.same_text {
        true => "the same text",
        false => "another text",
    };
    let mut out = format!("{}\n\n", Paint::Strong.on(&one_line(&compared.artifact)));
    let runs = [("a", &compared.a), ("b", &compared.b)].map(|(name, run)| run_row(name, run));
    out.push_str(&table(&["", "run", "opened", "verdict", "why"], runs.into(), 0, options.width));
    let verdict = match compared.verdict_changed {
        true => "another verdict",
        false => "the same verdict",
    };
    out.push_str(&format!("\n{verdict}, {text}\n"));
    let findings = &compared.findings;
    let gone: Vec<&Finding> = findings.gone.iter().collect();
    let new: Vec<&Finding> = findings.new.iter().collect();
    let kept: Vec<&Finding> = findings.kept.iter().map(|kept| &kept.b).collect();
    for (name, all) in [("Gone", gone), ("New", new), ("Kept", kept)] {
        if all.is_empty() {
            continue;
        }
        out.push_str(&format!("\n{}\n", Paint::Strong.on(&format!("{name} ({})", all.len()))));
        all.into_iter().for_each(|finding| out.push_str(&finding_lines(finding, options.width)));
    }
    if !compared.positions.is_empty() {
        let rows = compared.positions.iter().map(position_row).collect();
        out.push_str(&format!("\n{}", table(&["member", "a", "b", ""], rows, 0, options.width)));
    }
    for note in &compared.notes {
        out.push_str(&format!("\n{}\n", one_line(note)));
    }
    finish(&out, options)
}

fn run_row(name: &str, run: &ComparedRun) -> Vec<String> {
    let verdict = run.verdict.as_deref().map_or_else(
        || Paint::Absent.on("open"),
        |word| Paint::of_word(word).on(&one_line(word).to_uppercase()),
    );
    vec![
        name.to_owned(),
        run.run.clone(),
        run.opened.clone(),
        verdict,
        one_line(run.because.as_deref().unwrap_or_default()),
    ]
}

fn finding_lines(finding: &Finding, width: usize) -> String {
    let line = finding.line.map_or_else(String::new, |line| format!(", line {line}"));
    let quote = match finding.quote.is_empty() {
        true => String::new(),
        false => format!(" “{}”", one_line(&finding.quote)),
    };
    let label = format!("{}{line}:{quote}", one_line(&finding.by));
    let mut out = hanging("-", &format!("{label} {}", one_line(&finding.issue)), 0, width);
    if let Some(fix) = &finding.fix {
        out.push_str(&hanging("fix:", &one_line(fix), 2, width));
    }
    out
}

fn position_row(position: &PositionChange) -> Vec<String> {
    let word = |word: &Option<String>| word.as_deref().map_or_else(|| "-".to_owned(), one_line);
    let changed = if position.changed { Paint::Strong.on("changed") } else { String::new() };
    vec![one_line(&position.member), word(&position.a), word(&position.b), changed]
}

/// The longest shown value, in characters.
const VALUE: usize = 160;

pub(crate) fn replay_text(replay: &Replay) -> String {
    let verdict = |word: &Option<String>| word.as_deref().map_or_else(|| "no verdict".to_owned(), one_line);
    let differences = &replay.result.differences;
    if differences.is_empty() {
        return format!(
            "identical: replaying run {} gives {} again; no member was asked\n",
            replay.run,
            verdict(&replay.replayed)
        );
    }
    let mut out = format!(
        "different: run {} recorded {}, and {} follows now ({})\n",
        replay.run,
        verdict(&replay.recorded),
        verdict(&replay.replayed),
        amount(differences.len() as u64, "difference")
    );
    for difference in differences {
        out.push_str(&described(difference));
    }
    out
}

/// `{run, identical, recorded, replayed, differences: [{kind, recorded, replayed}]}`.
pub(crate) fn replayed_json(replay: &Replay) -> String {
    let difference_json = |difference: &Difference| json!({"kind": difference.kind, "recorded": difference.recorded, "replayed": difference.replayed});
    let object = json!({
        "run": &*replay.run,
        "identical": replay.result.differences.is_empty(),
        "recorded": replay.recorded,
        "replayed": replay.replayed,
        "differences": replay.result.differences.iter().map(difference_json).collect::<Vec<_>>(),
    });
    format!("{object:#}\n")
}

/// The fields that differ; the whole record if one side has none.
fn described(difference: &Difference) -> String {
    let (Some(Json::Object(recorded)), Some(Json::Object(replayed))) =
        (&difference.recorded, &difference.replayed)
    else {
        let which = if difference.recorded.is_none() {
            "not recorded, but follows now"
        } else {
            "recorded, but does not follow"
        };
        return format!("  {}: {which}\n", one_line(&difference.kind));
    };
    let mut keys: Vec<&String> = recorded.keys().chain(replayed.keys()).collect();
    keys.sort();
    keys.dedup();
    let mut out = String::new();
    for key in keys.into_iter().filter(|key| recorded.get(*key) != replayed.get(*key)) {
        out.push_str(&format!("  {}.{}\n", one_line(&difference.kind), one_line(key)));
        out.push_str(&format!("    recorded: {}\n", value(recorded.get(key))));
        out.push_str(&format!("    replayed: {}\n", value(replayed.get(key))));
    }
    out
}

fn value(value: Option<&Json>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| truncate(&one_line(&value.to_string()), VALUE))
}

/// An event; with `named` the line starts with the run and its subject.
pub(crate) fn run_event(event: &WatchEvent, named: bool, options: TextOptions) -> String {
    let what = match &event.what {
        WatchEventKind::Opened => format!("opened: {}", one_line(&event.subject)),
        WatchEventKind::Asked(invocations) => asked(invocations),
        WatchEventKind::Answered { invocation, missing } => {
            let (member, missing) = (member(invocation), missing.as_deref());
            match missing {
                None => format!("{member} has answered"),
                Some(why) => {
                    format!("{member} {}", Paint::Absent.on(&format!("gave no answer: {}", one_line(why))))
                }
            }
        }
        WatchEventKind::Decided(word) => Paint::of_word(word).on(&one_line(word)),
        WatchEventKind::Overridden(word) => {
            format!("a person decided {}", Paint::of_word(word).on(&one_line(word)))
        }
        WatchEventKind::Ended => Paint::Faint.on("ended"),
    };
    let time = Paint::Faint.on(&clock_time(event.at_ms));
    let name = match named && event.what != WatchEventKind::Opened {
        true => format!("{}  {}  ", event.run.get(..SHORT).unwrap_or(&event.run), one_line(&event.subject)),
        false if named => format!("{}  ", event.run.get(..SHORT).unwrap_or(&event.run)),
        false => String::new(),
    };
    finish(&format!("{time}  {name}{what}\n"), options)
}

/// The members asked in each step.
fn asked(invocations: &[String]) -> String {
    let word = invocations.first().map_or("", |id| id.split('/').next().unwrap_or(id));
    let members: Vec<String> = invocations.iter().map(|id| member(id)).collect();
    let members: Vec<&str> = members.iter().map(String::as_str).collect();
    format!("{}: {} asked", step(word), list(&members))
}

fn member(invocation: &str) -> String {
    let name = invocation.split_once('/').map_or(invocation, |(_, member)| member);
    one_line(if name == "adjudicate" { "adjudicator" } else { name })
}

#[cfg(test)]
mod tests {
    use quorate_ledger::runs::RunRow;
    use serde_json::Value;

    use super::*;

    fn runs() -> Vec<ListedRun> {
        let run = |id: &str, subject: &str, verdict: Option<&str>, overridden: Option<&str>| RunRow {
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
        let listed = |run: RunRow| ListedRun {
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

#[cfg(test)]
mod compare_tests {
    use quorate::service::compare::{ComparedKind, Findings, KeptFinding, SCHEMA};

    use super::*;

    #[test]
    fn findings_are_grouped_by_what_became_of_them() {
        let run = |run: &str, verdict: &str| ComparedRun {
            run: run.to_owned(),
            opened: "2026-03-04T05:05:00.007Z".to_owned(),
            verdict: Some(verdict.to_owned()),
            because: None,
            artifact_sha256: None,
        };
        let finding = |by: &str, quote: &str, issue: &str| Finding {
            by: by.to_owned(),
            line: (!quote.is_empty()).then_some(3),
            quote: quote.to_owned(),
            issue: issue.to_owned(),
            fix: None,
        };
        let position = |member: &str, a: &str, b: &str| PositionChange {
            member: member.to_owned(),
            a: Some(a.to_owned()),
            b: Some(b.to_owned()),
            changed: a != b,
        };
        let compared = Comparison {
            schema: SCHEMA,
            kind: ComparedKind::Review,
            artifact_type: "blog_post".to_owned(),
            artifact: "draft.md".to_owned(),
            a: run("r1", "REVISE"),
            b: run("r2", "SHIP"),
            same_text: false,
            verdict_changed: true,
            findings: Findings {
                kept: vec![KeptFinding { a: finding("tone", "q", "old"), b: finding("tone", "q", "dull") }],
                new: vec![finding("facts", "", "no source\u{1b}[31m")],
                gone: Vec::new(),
            },
            positions: vec![position("tone", "blocks", "passes")],
            notes: Vec::new(),
        };
        let text = comparison(&compared, TextOptions::default());
        for shown in [
            "another verdict, another text",
            "New (1)\n- facts: no source",
            "Kept (1)\n- tone, line 3: “q” dull",
            "passes",
        ] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        assert!(!text.contains("Gone") && !text.contains('\u{1b}'), "{text}");
    }
}

#[cfg(test)]
mod replay_tests {
    use quorate_kernel::history::ReplayResult;

    use super::*;

    fn replayed(differences: Vec<Difference>) -> Replay {
        let word = Some("REVISE".to_owned());
        let result = ReplayResult { facts: Vec::new(), finished: true, differences };
        Replay { run: "r7k2m9q4xa1bc".into(), recorded: word.clone(), replayed: word, result }
    }

    #[test]
    fn identical_or_where_it_differs() {
        assert_eq!(
            replay_text(&replayed(Vec::new())),
            "identical: replaying run r7k2m9q4xa1bc gives REVISE again; no member was asked\n"
        );
        let differences = vec![
            Difference {
                kind: "rule".to_owned(),
                recorded: Some(json!({"blocks": 1, "policy": "seed/2"})),
                replayed: Some(json!({"blocks": 2, "policy": "seed/2"})),
            },
            Difference { kind: "outcome".to_owned(), recorded: None, replayed: Some(json!({})) },
        ];
        insta::assert_snapshot!(replay_text(&replayed(differences)), @"
        different: run r7k2m9q4xa1bc recorded REVISE, and REVISE follows now (2 differences)
          rule.blocks
            recorded: 1
            replayed: 2
          outcome: not recorded, but follows now
        ");
    }
}
