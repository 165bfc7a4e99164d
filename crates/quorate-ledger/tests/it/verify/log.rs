//! `council_log.jsonl` compared with the ledger (D6): each line of this ledger's runs follows from the run's records,
//! in the order in which the lines were written.

use std::path::{Path, PathBuf};

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::{Append, Body, Durability, Entry, Kind, Ledger as _, Record};
use quorate_ledger::council_log::line::LogEvent;
use quorate_ledger::verify::{
    Divergence, DivergenceKind, LedgerPart, LogCheck, OtherLogs, StartPoint, UnknownLine, VerifyOptions,
    verify,
};
use quorate_ledger::{Store, council_log};
use quorate_protocol::Name;
use serde_json::{Value, json};
use sqlx::{Connection as _, SqliteConnection};

use super::world::{AT_MS, entry};

/// Two reviews, one after the other.
const A: &str = "raaaaaaaaaaaa";
const B: &str = "rbbbbbbbbbbbb";

/// A ledger and its log, in one directory.
struct Logged {
    dir: tempfile::TempDir,
    store: Store,
}

/// The records of a review with a line in this log.
fn review(log: &Path, verdict: &str) -> Vec<Entry> {
    vec![
        entry(Kind::RunOpened, opened(log, "council/1")),
        entry(Kind::Outcome, json!({"verdict": verdict})),
        entry(Kind::RunEnded, json!({"logged": true})),
    ]
}

fn opened(log: &Path, protocol: &str) -> Value {
    let sha256 = sha256_hex(b"What is reviewed.");
    json!({
        "protocol": protocol, "subject": "draft.md", "artifact_type": "post", "artifact_sha256": sha256,
        "fingerprint": {"council": "c0"}, "log_path": log, "inputs": [{"kind": "artifact", "name": "draft.md", "sha256": sha256}],
    })
}

fn overrides(verdict: &str, logged: bool) -> Entry {
    let data = json!({"verdict": verdict, "reason": "Not yet.", "by": "ada", "council_verdict": "SHIP", "logged": logged});
    entry(Kind::Override, data)
}

impl Logged {
    async fn empty() -> Logged {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::open(&dir.path().join("ledger.db")).await.expect("it opens").store;
        Logged { dir, store }
    }

    /// With two consecutive reviews.
    async fn new() -> Logged {
        let logged = Logged::empty().await;
        logged.append(A, &review(&logged.log(), "SHIP")).await;
        logged.append(B, &review(&logged.log(), "HOLD")).await;
        logged
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("council_log.jsonl")
    }

    async fn records(&self, run: &str) -> Vec<Record> {
        self.store.records(&run.into()).await.expect("read")
    }

    /// Continues a run.
    async fn append(&self, run: &str, entries: &[Entry]) {
        let from = self.store.records(&run.into()).await.map_or(0, |records| records.len() as u64);
        let text = "What is reviewed.".to_owned();
        let bodies = match from {
            0 => vec![Body { sha256: sha256_hex(text.as_bytes()), text: text.into() }],
            _ => Vec::new(),
        };
        let run = Name::from(run);
        let append = Append { run, from, entries: entries.to_vec(), bodies, durability: Durability::Written };
        self.store.append(append).await.expect("appended");
    }

    /// The line that follows from a review's first records.
    async fn line(&self, run: &str, records: usize, event: LogEvent) -> String {
        let run = Name::from(run);
        let records = self.records(&run).await[..records].to_vec();
        let history = History::from_records(&run, records).expect("a run");
        council_log::review_line(&history, event).expect("it is decided").to_string()
    }

    /// The line of a person's decision in record `n` of a run.
    async fn override_line(&self, run: &str, n: usize) -> String {
        let run = Name::from(run);
        let records = self.records(&run).await;
        let decision = records[n].read().expect("readable").expect("there");
        let history = History::from_records(&run, records[..n].to_vec()).expect("a run");
        council_log::override_line(&history, records[n].at_ms, &decision).to_string()
    }

    /// Verifies a log with these lines.
    async fn check(&self, lines: &[&str]) -> (LogCheck, Vec<Divergence>) {
        self.check_text(&lines.iter().map(|line| format!("{line}\n")).collect::<String>()).await
    }

    async fn check_text(&self, text: &str) -> (LogCheck, Vec<Divergence>) {
        std::fs::write(self.log(), text).expect("written");
        self.verify(VerifyOptions { log: Some(self.log()), ..VerifyOptions::default() }).await
    }

    async fn verify(&self, options: VerifyOptions) -> (LogCheck, Vec<Divergence>) {
        let report = verify(&self.store, options).await.expect("verified");
        assert!(
            report.divergences.iter().all(|found| found.part == LedgerPart::Log),
            "{:?}",
            report.divergences
        );
        (report.log.expect("checked"), report.divergences)
    }
}

/// A log's lines and the expected differences.
type Case<'a> = (Vec<&'a str>, Vec<(DivergenceKind, &'a str)>);

/// The differences in lines: kind, and run.
fn kinds(found: &[Divergence]) -> Vec<(DivergenceKind, &str)> {
    found.iter().map(|found| (found.kind, found.run.as_deref().unwrap_or_default())).collect()
}

#[tokio::test]
async fn a_line_that_does_not_follow_from_its_run_is_found() {
    let world = Logged::new().await;
    world.append(A, &[overrides("HOLD", true)]).await;
    let (a, b) = (&*world.line(A, 2, LogEvent::Verdict).await, &*world.line(B, 2, LogEvent::Verdict).await);
    let decided = &*world.override_line(A, 3).await;
    let (log, found) = world.check(&[a, b, decided]).await;
    assert_eq!((log, found), (LogCheck { ours: 3, ..LogCheck::default() }, vec![]));
    let said = |line: &str, this: &str, other: &str| {
        assert!(line.contains(this), "{line}");
        line.replacen(this, other, 1)
    };
    let another = said(a, "\"SHIP\"", "\"HOLD\"");
    let unexplained = said(decided, "Not yet.", "Never.");
    let spaced = said(b, ",", ", ");
    let both = said(a, &format!("\"run\":\"{A}\""), &format!("\"run\":\"{B}\""));
    let marked = json!({"v": 2, "event": "verdict", "parth_override": true, "span_id": A, "verdict": "SHIP"})
        .to_string();
    let unmarked = json!({"v": 2, "event": "verdict", "parth_override": false, "span_id": A}).to_string();
    let cases: Vec<Case<'_>> = vec![
        (
            vec![],
            vec![(DivergenceKind::Removed, A), (DivergenceKind::Removed, A), (DivergenceKind::Removed, B)],
        ),
        (vec![b, decided], vec![(DivergenceKind::Removed, A)]),
        (vec![a, b], vec![(DivergenceKind::Removed, A)]),
        (vec![&another, b, decided], vec![(DivergenceKind::Changed, A)]),
        (vec![a, b, &unexplained], vec![(DivergenceKind::Changed, A)]),
        (vec![a, &spaced, decided], vec![(DivergenceKind::Changed, B)]),
        (vec![a, a, b, decided], vec![(DivergenceKind::Inserted, A)]),
        (vec![a, b, decided, decided], vec![(DivergenceKind::Inserted, A)]),
        (vec![a, &marked, b, decided], vec![(DivergenceKind::Inserted, A)]),
        // A person's decision does not count as the council's verdict, or the other way round.
        (vec![a, b, &marked], vec![(DivergenceKind::Changed, A)]),
        (vec![b, &marked, decided], vec![(DivergenceKind::Removed, A), (DivergenceKind::Inserted, A)]),
        (vec![&unmarked, b, decided], vec![(DivergenceKind::Changed, A)]),
        // A line that names two runs is checked for both.
        (vec![a, b, decided, &both], vec![(DivergenceKind::Inserted, A), (DivergenceKind::Inserted, B)]),
        // The first run's line was written before the second run was opened.
        (vec![b, a, decided], vec![(DivergenceKind::Reordered, A)]),
        (vec![decided, a, b], vec![(DivergenceKind::Reordered, A), (DivergenceKind::Reordered, B)]),
    ];
    for (lines, wanted) in cases {
        let (_, found) = world.check(&lines).await;
        let mut kinds = kinds(&found);
        kinds.sort_by_key(|(_, run)| run.to_owned());
        assert_eq!(kinds, wanted, "{lines:#?}: {found:#?}");
    }
}

#[tokio::test]
async fn what_is_of_no_run_here_is_counted() {
    let world = Logged::new().await;
    let (a, b) = (world.line(A, 2, LogEvent::Verdict).await, world.line(B, 2, LogEvent::Verdict).await);
    let elsewhere = |run: &str| a.replace(A, run);
    let (y, z) = (elsewhere("ryyyyyyyyyyyy"), elsewhere("rzzzzzzzzzzzz"));
    let theirs = r#"{"v":2,"span_id":"council-ab12","event":"verdict","verdict":"HOLD"}"#;
    let other = json!({"v": 2, "event": "note", "run": A, "span_id": A}).to_string();
    let nameless = r#"{"v":2,"event":"override","verdict":"SHIP"}"#;
    // None of these lines names its run in this program's form.
    let mut unlike = y.clone();
    for line in [
        json!({"v": 2, "run": "rwwwwwwwwwwww", "span_id": "rwwwwwwwwwwww", "verdict": "SHIP"}),
        json!({"v": 2, "event": "verdict", "run": "rwwwwwwwwwwww", "verdict": "SHIP"}),
        json!({"v": 2, "event": "verdict", "span_id": "rwwwwwwwwwwww", "verdict": "SHIP"}),
        json!({"v": 2, "event": "verdict", "run": "rwwwwwwwwwwww", "span_id": "council-1", "verdict": "SHIP"}),
    ] {
        unlike = format!("{unlike}\n{line}");
    }
    assert_eq!(world.check_text(&format!("{a}\n{b}\n{unlike}\n")).await.0.unknown, 1);
    let torn = &b[..b.len() - 1];
    let text = format!("{theirs}\n\n \n{a}\n{y}\nno JSON\n[1]\n{other}\n{b}\n{z}\n{nameless}\n{torn}");
    let (log, found) = world.check_text(&text).await;
    let wanted = LogCheck {
        ours: 2,
        unknown: 2,
        first_unknown: Some(UnknownLine { line: 5, run: "ryyyyyyyyyyyy".into() }),
        unreadable: 3,
        ..LogCheck::default()
    };
    assert_eq!((log, found), (wanted, vec![]));
    // Readers of the log do not count a last line without its end.
    let (log, found) = world.check_text(&format!("{a}\n{b}")).await;
    assert_eq!(
        (log.ours, found.len(), &*found[0].run.clone().unwrap(), found[0].kind),
        (2, 1, B, DivergenceKind::Changed)
    );
}

#[tokio::test]
async fn a_line_that_need_not_be_there_yet_is_not_missed() {
    let world = Logged::new().await;
    let (c, d) = ("rcccccccccccc", "rdddddddddddd");
    let (a, b) = (&*world.line(A, 2, LogEvent::Verdict).await, &*world.line(B, 2, LogEvent::Verdict).await);
    // The run has an outcome but no end: the process crashed between the two.
    world.append(c, &review(&world.log(), "SHIP")[..2]).await;
    assert_eq!(world.check(&[a, b]).await.1, []);
    let line = world.line(c, 2, LogEvent::Verdict).await;
    assert_eq!(world.check(&[a, b, &line]).await.1, []);
    let found = world.check(&[a, b, &line.replace("\"SHIP\"", "\"HOLD\"")]).await.1;
    assert_eq!(kinds(&found), [(DivergenceKind::Changed, c)]);
    // So may the line of a decision, until the run ends again.
    world.append(A, &[overrides("HOLD", false)]).await;
    let decided = &*world.override_line(A, 3).await;
    assert_eq!(world.check(&[a, b]).await.1, []);
    assert_eq!(world.check(&[a, b, decided]).await.1, []);
    world.append(A, &[entry(Kind::RunEnded, json!({"logged": true}))]).await;
    assert_eq!(world.check(&[a, b, decided]).await.1, []);
    assert_eq!(kinds(&world.check(&[a, b]).await.1), [(DivergenceKind::Removed, A)]);
    // A run without an outcome has no line.
    world.append(d, &review(&world.log(), "SHIP")[..1]).await;
    let claimed = a.replace(A, d);
    let (log, found) = world.check(&[a, b, decided, &claimed]).await;
    assert_eq!((log.unknown, kinds(&found)), (0, vec![(DivergenceKind::Inserted, d)]));
    // Decisions of other groups are not logged.
    let e = "reeeeeeeeeeee";
    let mut vote = review(&world.log(), "ADOPTED");
    vote[0] = entry(Kind::RunOpened, opened(&world.log(), "voting/1"));
    world.append(e, &vote).await;
    assert_eq!(world.check(&[a, b, decided]).await.1, []);
}

#[tokio::test]
async fn a_run_that_was_taken_up_again_has_a_line_of_that() {
    let world = Logged::empty().await;
    world.append(A, &review(&world.log(), "INCOMPLETE")).await;
    let first = &*world.line(A, 2, LogEvent::Verdict).await;
    assert_eq!(world.check(&[first]).await.1, []);
    // Its second end as INCOMPLETE adds no line; a verdict does.
    let again =
        entry(Kind::RunIntent, json!({"invocations": [], "resumes": true, "supersedes": ["r1/skeptic"]}));
    let ended = entry(Kind::RunEnded, json!({"logged": true}));
    let outcome = |verdict: &str| entry(Kind::Outcome, json!({"verdict": verdict}));
    world.append(A, &[again.clone(), outcome("INCOMPLETE"), ended.clone()]).await;
    assert_eq!(world.check(&[first]).await.1, []);
    world.append(A, &[again, outcome("SHIP"), ended]).await;
    let resumed = &*world.line(A, 8, LogEvent::Resumed).await;
    assert_eq!(world.check(&[first, resumed]).await.1, []);
    assert_eq!(kinds(&world.check(&[first]).await.1), [(DivergenceKind::Removed, A)]);
    assert_eq!(kinds(&world.check(&[resumed]).await.1), [(DivergenceKind::Removed, A)]);
    assert_eq!(kinds(&world.check(&[resumed, first]).await.1), [(DivergenceKind::Reordered, A)]);
    let as_verdict = world.line(A, 8, LogEvent::Verdict).await;
    let found = world.check(&[first, &as_verdict]).await.1;
    assert_eq!(kinds(&found), [(DivergenceKind::Removed, A), (DivergenceKind::Inserted, A)]);
    // A run that is resumed without superseding anything keeps its outcome and its line.
    let world = Logged::new().await;
    let (a, b) = (world.line(A, 2, LogEvent::Verdict).await, world.line(B, 2, LogEvent::Verdict).await);
    let resumes = entry(Kind::RunIntent, json!({"invocations": [], "resumes": true}));
    world.append(B, &[resumes, entry(Kind::RunEnded, json!({"logged": true}))]).await;
    assert_eq!(world.check(&[&a, &b]).await.1, []);
}

#[tokio::test]
async fn what_is_logged_elsewhere_is_said_and_not_missed() {
    let world = Logged::new().await;
    let (a, b) = (&*world.line(A, 2, LogEvent::Verdict).await, &*world.line(B, 2, LogEvent::Verdict).await);
    let other = tempfile::tempdir().expect("a directory");
    let elsewhere = other.path().join("council_log.jsonl");
    std::fs::write(&elsewhere, "").expect("written");
    let (c, d) = ("rcccccccccccc", "rdddddddddddd");
    world.append(c, &review(&elsewhere, "SHIP")).await;
    world.append(d, &review(&elsewhere, "SHIP")).await;
    let counted = |log: &LogCheck| (log.ours, log.elsewhere.clone());
    let others = |runs| Some(OtherLogs { runs, file: elsewhere.display().to_string() });
    let (log, found) = world.check(&[a, b]).await;
    assert_eq!((counted(&log), found), ((2, others(2)), vec![]));
    // An existing line of such a run is still compared.
    let line = world.line(c, 2, LogEvent::Verdict).await;
    let (log, found) = world.check(&[a, b, &line]).await;
    assert_eq!((counted(&log), found), ((3, others(1)), vec![]));
    let (_, found) = world.check(&[a, b, &line.replace("\"SHIP\"", "\"HOLD\"")]).await;
    assert_eq!(kinds(&found), [(DivergenceKind::Changed, c)]);
    // A decision made here is logged here, or elsewhere if the run's end names another log.
    let said_there = entry(Kind::RunEnded, json!({"logged": true, "log_path": &elsewhere}));
    world.append(A, &[overrides("HOLD", false), said_there]).await;
    world.append(c, &[overrides("REVISE", false)]).await;
    world.append(c, &[entry(Kind::RunEnded, json!({"logged": true, "log_path": world.log()}))]).await;
    let decided = &*world.override_line(c, 3).await;
    assert_eq!(world.check(&[a, b, decided]).await.1, []);
    assert_eq!(kinds(&world.check(&[a, b]).await.1), [(DivergenceKind::Removed, c)]);
    // The other log is gone and one of its lines is here, so its lines were moved here. Missing ones are reported.
    std::fs::remove_file(&elsewhere).expect("removed");
    let (log, found) = world.check(&[a, b, decided]).await;
    let missed = [(DivergenceKind::Removed, A), (DivergenceKind::Removed, c), (DivergenceKind::Removed, d)];
    assert_eq!((log.elsewhere, kinds(&found)), (None, missed.to_vec()));
    // If none of its lines is here, it may be anywhere.
    let (log, found) = world.check(&[a, b]).await;
    assert_eq!((log.elsewhere, kinds(&found)), (others(2), vec![(DivergenceKind::Removed, c)]));
}

#[tokio::test]
async fn a_log_that_went_along_with_its_ledger_is_its_log() {
    let first = tempfile::tempdir().expect("a directory");
    let old = first.path().join("w/council_log.jsonl");
    let world = Logged::empty().await;
    world.append(A, &review(&old, "SHIP")).await;
    let a = world.line(A, 2, LogEvent::Verdict).await;
    world.store.close().await;
    let moved = first.path().join("moved/w");
    let other = first.path().join("moved/x");
    for dir in [&moved, &other] {
        std::fs::create_dir_all(dir).expect("made");
        std::fs::copy(world.dir.path().join("ledger.db"), dir.join("ledger.db")).expect("copied");
        std::fs::write(dir.join("council_log.jsonl"), "").expect("written");
    }
    let check = async |dir: &Path| {
        let store = Store::open(&dir.join("ledger.db")).await.expect("it opens").store;
        let log = Some(dir.join("council_log.jsonl"));
        let report =
            verify(&store, VerifyOptions { log, ..VerifyOptions::default() }).await.expect("verified");
        store.close().await;
        (report.log.expect("checked").elsewhere.map_or(0, |other| other.runs), report.divergences)
    };
    // It was in a directory of the same name beside its ledger, so its line was removed.
    let (elsewhere, found) = check(&moved).await;
    assert_eq!((elsewhere, kinds(&found)), (0, vec![(DivergenceKind::Removed, A)]));
    assert_eq!(check(&other).await, (1, vec![]), "another directory's log may be anywhere");
    // The old log is still there.
    std::fs::create_dir_all(old.parent().expect("a directory")).expect("made");
    std::fs::write(&old, format!("{a}\n")).expect("written");
    assert_eq!(check(&moved).await, (1, vec![]));
    // No log exists there.
    std::fs::remove_file(&old).expect("removed");
    std::fs::remove_file(moved.join("council_log.jsonl")).expect("removed");
    assert_eq!(check(&moved).await, (1, vec![]));
}

#[tokio::test]
async fn runs_before_the_trusted_checkpoint_and_imported_ones_are_not_compared() {
    let world = Logged::new().await;
    let (a, b) = (&*world.line(A, 2, LogEvent::Verdict).await, &*world.line(B, 2, LogEvent::Verdict).await);
    let d = "rddddddddddd0";
    world.append(d, &review(&world.log(), "SHIP")[..1]).await;
    world.store.seal(&[], AT_MS, false, Durability::Synced).await.expect("sealed");
    let c = "rcccccccccccc";
    world.append(c, &review(&world.log(), "SHIP")).await;
    let line = &*world.line(c, 2, LogEvent::Verdict).await;
    let since = || VerifyOptions {
        since: Some(StartPoint::Size(7)),
        log: Some(world.log()),
        ..VerifyOptions::default()
    };
    world.check(&[&a.replace("\"SHIP\"", "\"HOLD\""), b, line]).await;
    let (log, found) = world.verify(since()).await;
    assert_eq!((log.ours, found), (3, vec![]), "what came before is not looked at");
    std::fs::write(world.log(), format!("{a}\n{b}\n")).expect("written");
    assert_eq!(kinds(&world.verify(since()).await.1), [(DivergenceKind::Removed, c)]);
    // If a run began before the start, its outcome may also be from before it.
    world.append(d, &[entry(Kind::Rule, json!({"rule": "policy"}))]).await;
    std::fs::write(world.log(), format!("{a}\n{b}\n{line}\n{}\n", a.replace(A, d))).expect("written");
    let (log, found) = world.verify(since()).await;
    assert_eq!((log.unknown, found), (1, vec![]));
    // A missing log has no lines.
    std::fs::remove_file(world.log()).expect("removed");
    let missing = world.verify(VerifyOptions { log: Some(world.log()), ..VerifyOptions::default() }).await.1;
    assert_eq!(
        kinds(&missing),
        [(DivergenceKind::Removed, A), (DivergenceKind::Removed, B), (DivergenceKind::Removed, c)]
    );
    // An unreadable log is not an empty one.
    std::fs::create_dir(world.log()).expect("made");
    for log in [world.log(), world.dir.path().join("ledger.db/council_log.jsonl")] {
        verify(&world.store, VerifyOptions { log: Some(log), ..VerifyOptions::default() }).await.unwrap_err();
    }
}

#[tokio::test]
async fn counts_that_do_not_follow_from_the_log_are_found() {
    let world = Logged::new().await;
    let (a, b) = (&*world.line(A, 2, LogEvent::Verdict).await, &*world.line(B, 2, LogEvent::Verdict).await);
    assert_eq!(world.check(&[a, b]).await.1, []);
    council_log::sync(&world.store, &world.log()).await.expect("counted");
    assert_eq!(world.check(&[a, b]).await.1, []);
    let db = format!("sqlite://{}", world.dir.path().join("ledger.db").display());
    let mut sqlite = SqliteConnection::connect(&db).await.expect("it opens");
    sqlx::raw_sql("UPDATE log_line SET verdict = 'REVISE'").execute(&mut sqlite).await.expect("written");
    sqlite.close().await.expect("closed");
    let report = verify(&world.store, VerifyOptions { log: Some(world.log()), ..VerifyOptions::default() })
        .await
        .expect("verified");
    let found: Vec<(DivergenceKind, LedgerPart)> =
        report.divergences.iter().map(|found| (found.kind, found.part)).collect();
    assert_eq!(found, [(DivergenceKind::Changed, LedgerPart::LogIndex)]);
}

#[tokio::test]
async fn a_line_with_words_that_were_erased_is_compared_by_what_is_left() {
    // D4, D6: the answer was erased, so the line cannot be derived again, but its verdict can still be checked.
    let world = Logged::empty().await;
    let mut entries = review(&world.log(), "SHIP");
    let answer = json!({
        "invocation": "r1/skeptic", "step": "r1", "member": "skeptic", "status": "answered", "executor": "rubric",
        "answer": {"score": 4, "text": "It will do."}, "model": "m", "spent": {"calls": 1, "ms": 40},
    });
    entries[0].data.insert("setup".to_owned(), json!({"deliberators": ["skeptic"]}));
    entries.insert(1, entry(Kind::Consultation, answer));
    world.append(A, &entries).await;
    let line = &*world.line(A, 3, LogEvent::Verdict).await;
    assert!(line.contains("It will do."), "{line}");
    world.append(A, &[overrides("HOLD", true)]).await;
    let decided = &*world.override_line(A, 4).await;
    let db = format!("sqlite://{}", world.dir.path().join("ledger.db").display());
    let mut sqlite = SqliteConnection::connect(&db).await.expect("it opens");
    sqlx::raw_sql("UPDATE record SET data = NULL WHERE n = 1").execute(&mut sqlite).await.expect("written");
    sqlite.close().await.expect("closed");
    let check = async |lines: &[&str]| {
        let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        std::fs::write(world.log(), text).expect("written");
        let report =
            verify(&world.store, VerifyOptions { log: Some(world.log()), ..VerifyOptions::default() }).await;
        let found = report.expect("verified").divergences;
        found
            .into_iter()
            .filter(|found| found.part == LedgerPart::Log)
            .map(|found| found.kind)
            .collect::<Vec<_>>()
    };
    assert_eq!(check(&[line, decided]).await, []);
    assert_eq!(check(&[&line.replace("It will do.", "It did."), decided]).await, [], "its words are gone");
    assert_eq!(check(&[&line.replace("\"SHIP\"", "\"HOLD\""), decided]).await, [DivergenceKind::Changed]);
    assert_eq!(check(&[&line.replacen(',', ", ", 1), decided]).await, [DivergenceKind::Changed]);
    assert_eq!(check(&[line, &decided.replace("\"HOLD\"", "\"SHIP\"")]).await, [DivergenceKind::Changed]);
    assert_eq!(check(&[line]).await, [DivergenceKind::Removed]);
    assert_eq!(
        check(&[line, line]).await,
        [DivergenceKind::Removed, DivergenceKind::Inserted],
        "a verdict is not an override"
    );
}
