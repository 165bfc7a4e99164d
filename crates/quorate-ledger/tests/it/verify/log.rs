//! `council_log.jsonl` against the ledger (D6): each line of a run of this ledger is the one that follows from its records,
//! in the order in which the lines were written.

use std::path::{Path, PathBuf};

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::{Append, Body, Durability, Entry, Kind as Word, Ledger as _, Record};
use quorate_ledger::Store;
use quorate_ledger::council_log::line::Event;
use quorate_ledger::council_log::{self, view};
use quorate_ledger::verify::{Divergence, Kind, LogCheck, Options, Part, StartPoint, verify};
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

/// The records of a review whose line is in this log.
fn review(log: &Path, verdict: &str) -> Vec<Entry> {
    vec![
        entry(Word::RunOpened, opened(log, "council/1")),
        entry(Word::Outcome, json!({"verdict": verdict})),
        entry(Word::RunEnded, json!({"logged": true})),
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
    entry(Word::Override, data)
}

impl Logged {
    async fn empty() -> Logged {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::open(&dir.path().join("ledger.db")).await.expect("it opens").store;
        Logged { dir, store }
    }

    /// With two reviews that came one after the other.
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

    /// The line that a review's first records have written.
    async fn line(&self, run: &str, records: usize, event: Event) -> String {
        let run = Name::from(run);
        let records = self.records(&run).await[..records].to_vec();
        let history = History::from_records(&run, records).expect("a run");
        view::review_line(&history, event).expect("it is decided").to_string()
    }

    /// The line of a person's decision, which is record `n` of a run.
    async fn override_line(&self, run: &str, n: usize) -> String {
        let run = Name::from(run);
        let records = self.records(&run).await;
        let decision = records[n].read().expect("readable").expect("there");
        let history = History::from_records(&run, records[..n].to_vec()).expect("a run");
        view::override_line(&history, records[n].at_ms, &decision).to_string()
    }

    /// Verifies a log of these lines.
    async fn check(&self, lines: &[&str]) -> (LogCheck, Vec<Divergence>) {
        self.check_text(&lines.iter().map(|line| format!("{line}\n")).collect::<String>()).await
    }

    async fn check_text(&self, text: &str) -> (LogCheck, Vec<Divergence>) {
        std::fs::write(self.log(), text).expect("written");
        self.verify(Options { log: Some(self.log()), ..Options::default() }).await
    }

    async fn verify(&self, options: Options) -> (LogCheck, Vec<Divergence>) {
        let report = verify(&self.store, options).await.expect("verified");
        assert!(report.divergences.iter().all(|found| found.part == Part::Log), "{:?}", report.divergences);
        (report.log.expect("checked"), report.divergences)
    }
}

/// The lines of a log, and how they differ.
type Case<'a> = (Vec<&'a str>, Vec<(Kind, &'a str)>);

/// How lines differ: kind, and the run that they are of.
fn kinds(found: &[Divergence]) -> Vec<(Kind, &str)> {
    found.iter().map(|found| (found.kind, found.run.as_deref().unwrap_or_default())).collect()
}

#[tokio::test]
async fn a_line_that_does_not_follow_from_its_run_is_found() {
    let world = Logged::new().await;
    world.append(A, &[overrides("HOLD", true)]).await;
    let (a, b) = (&*world.line(A, 2, Event::Verdict).await, &*world.line(B, 2, Event::Verdict).await);
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
        (vec![], vec![(Kind::Removed, A), (Kind::Removed, A), (Kind::Removed, B)]),
        (vec![b, decided], vec![(Kind::Removed, A)]),
        (vec![a, b], vec![(Kind::Removed, A)]),
        (vec![&another, b, decided], vec![(Kind::Changed, A)]),
        (vec![a, b, &unexplained], vec![(Kind::Changed, A)]),
        (vec![a, &spaced, decided], vec![(Kind::Changed, B)]),
        (vec![a, a, b, decided], vec![(Kind::Inserted, A)]),
        (vec![a, b, decided, decided], vec![(Kind::Inserted, A)]),
        (vec![a, &marked, b, decided], vec![(Kind::Inserted, A)]),
        // A person's decision is no verdict of the council, nor the other way round.
        (vec![a, b, &marked], vec![(Kind::Changed, A)]),
        (vec![b, &marked, decided], vec![(Kind::Removed, A), (Kind::Inserted, A)]),
        (vec![&unmarked, b, decided], vec![(Kind::Changed, A)]),
        // A line of two runs is one of both.
        (vec![a, b, decided, &both], vec![(Kind::Inserted, A), (Kind::Inserted, B)]),
        // The first run had its line before the second one was opened.
        (vec![b, a, decided], vec![(Kind::Reordered, A)]),
        (vec![decided, a, b], vec![(Kind::Reordered, A), (Kind::Reordered, B)]),
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
    let (a, b) = (world.line(A, 2, Event::Verdict).await, world.line(B, 2, Event::Verdict).await);
    let elsewhere = |run: &str| a.replace(A, run);
    let (y, z) = (elsewhere("ryyyyyyyyyyyy"), elsewhere("rzzzzzzzzzzzz"));
    let theirs = r#"{"v":2,"span_id":"council-ab12","event":"verdict","verdict":"HOLD"}"#;
    let other = json!({"v": 2, "event": "note", "run": A, "span_id": A}).to_string();
    let nameless = r#"{"v":2,"event":"override","verdict":"SHIP"}"#;
    // None of these names its run as this program does.
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
        first_unknown: Some((5, "ryyyyyyyyyyyy".into())),
        unreadable: 3,
        ..LogCheck::default()
    };
    assert_eq!((log, found), (wanted, vec![]));
    // A last line without its end is not counted by those who read the log.
    let (log, found) = world.check_text(&format!("{a}\n{b}")).await;
    assert_eq!(
        (log.ours, found.len(), &*found[0].run.clone().unwrap(), found[0].kind),
        (2, 1, B, Kind::Changed)
    );
}

#[tokio::test]
async fn a_line_that_need_not_be_there_yet_is_not_missed() {
    let world = Logged::new().await;
    let (c, d) = ("rcccccccccccc", "rdddddddddddd");
    let (a, b) = (&*world.line(A, 2, Event::Verdict).await, &*world.line(B, 2, Event::Verdict).await);
    // The outcome is there, and the end is not: a process was stopped between the two.
    world.append(c, &review(&world.log(), "SHIP")[..2]).await;
    assert_eq!(world.check(&[a, b]).await.1, []);
    let line = world.line(c, 2, Event::Verdict).await;
    assert_eq!(world.check(&[a, b, &line]).await.1, []);
    let found = world.check(&[a, b, &line.replace("\"SHIP\"", "\"HOLD\"")]).await.1;
    assert_eq!(kinds(&found), [(Kind::Changed, c)]);
    // So is a decision whose line is still to be written, until the run ends once more.
    world.append(A, &[overrides("HOLD", false)]).await;
    let decided = &*world.override_line(A, 3).await;
    assert_eq!(world.check(&[a, b]).await.1, []);
    assert_eq!(world.check(&[a, b, decided]).await.1, []);
    world.append(A, &[entry(Word::RunEnded, json!({"logged": true}))]).await;
    assert_eq!(world.check(&[a, b, decided]).await.1, []);
    assert_eq!(kinds(&world.check(&[a, b]).await.1), [(Kind::Removed, A)]);
    // A run without an outcome has no line.
    world.append(d, &review(&world.log(), "SHIP")[..1]).await;
    let claimed = a.replace(A, d);
    let (log, found) = world.check(&[a, b, decided, &claimed]).await;
    assert_eq!((log.unknown, kinds(&found)), (0, vec![(Kind::Inserted, d)]));
    // What other groups decide is not logged.
    let e = "reeeeeeeeeeee";
    let mut vote = review(&world.log(), "ADOPTED");
    vote[0] = entry(Word::RunOpened, opened(&world.log(), "voting/1"));
    world.append(e, &vote).await;
    assert_eq!(world.check(&[a, b, decided]).await.1, []);
}

#[tokio::test]
async fn a_run_that_was_taken_up_again_has_a_line_of_that() {
    let world = Logged::empty().await;
    world.append(A, &review(&world.log(), "INCOMPLETE")).await;
    let first = &*world.line(A, 2, Event::Verdict).await;
    assert_eq!(world.check(&[first]).await.1, []);
    // Its second end as INCOMPLETE says nothing new, and the verdict does.
    let again =
        entry(Word::RunIntent, json!({"invocations": [], "resumes": true, "supersedes": ["r1/skeptic"]}));
    let ended = entry(Word::RunEnded, json!({"logged": true}));
    let outcome = |verdict: &str| entry(Word::Outcome, json!({"verdict": verdict}));
    world.append(A, &[again.clone(), outcome("INCOMPLETE"), ended.clone()]).await;
    assert_eq!(world.check(&[first]).await.1, []);
    world.append(A, &[again, outcome("SHIP"), ended]).await;
    let resumed = &*world.line(A, 8, Event::Resumed).await;
    assert_eq!(world.check(&[first, resumed]).await.1, []);
    assert_eq!(kinds(&world.check(&[first]).await.1), [(Kind::Removed, A)]);
    assert_eq!(kinds(&world.check(&[resumed]).await.1), [(Kind::Removed, A)]);
    assert_eq!(kinds(&world.check(&[resumed, first]).await.1), [(Kind::Reordered, A)]);
    let as_verdict = world.line(A, 8, Event::Verdict).await;
    let found = world.check(&[first, &as_verdict]).await.1;
    assert_eq!(kinds(&found), [(Kind::Removed, A), (Kind::Inserted, A)]);
    // One that is taken up without taking anything back keeps its outcome, and its line.
    let world = Logged::new().await;
    let (a, b) = (world.line(A, 2, Event::Verdict).await, world.line(B, 2, Event::Verdict).await);
    let resumes = entry(Word::RunIntent, json!({"invocations": [], "resumes": true}));
    world.append(B, &[resumes, entry(Word::RunEnded, json!({"logged": true}))]).await;
    assert_eq!(world.check(&[&a, &b]).await.1, []);
}

#[tokio::test]
async fn what_is_logged_elsewhere_is_said_and_not_missed() {
    let world = Logged::new().await;
    let (a, b) = (&*world.line(A, 2, Event::Verdict).await, &*world.line(B, 2, Event::Verdict).await);
    let other = tempfile::tempdir().expect("a directory");
    let elsewhere = other.path().join("council_log.jsonl");
    std::fs::write(&elsewhere, "").expect("written");
    let (c, d) = ("rcccccccccccc", "rdddddddddddd");
    world.append(c, &review(&elsewhere, "SHIP")).await;
    world.append(d, &review(&elsewhere, "SHIP")).await;
    let counted = |log: &LogCheck| (log.ours, log.elsewhere, log.first_elsewhere.clone());
    let (log, found) = world.check(&[a, b]).await;
    assert_eq!((counted(&log), found), ((2, 2, Some(elsewhere.clone())), vec![]));
    // A line of such a run that is here all the same is compared.
    let line = world.line(c, 2, Event::Verdict).await;
    let (log, found) = world.check(&[a, b, &line]).await;
    assert_eq!((counted(&log), found), ((3, 1, Some(elsewhere.clone())), vec![]));
    let (_, found) = world.check(&[a, b, &line.replace("\"SHIP\"", "\"HOLD\"")]).await;
    assert_eq!(kinds(&found), [(Kind::Changed, c)]);
    // A person who decides here has it logged here, and elsewhere where the end says so.
    let said_there = entry(Word::RunEnded, json!({"logged": true, "log_path": &elsewhere}));
    world.append(A, &[overrides("HOLD", false), said_there]).await;
    world.append(c, &[overrides("REVISE", false)]).await;
    world.append(c, &[entry(Word::RunEnded, json!({"logged": true, "log_path": world.log()}))]).await;
    let decided = &*world.override_line(c, 3).await;
    assert_eq!(world.check(&[a, b, decided]).await.1, []);
    assert_eq!(kinds(&world.check(&[a, b]).await.1), [(Kind::Removed, c)]);
    // The other log is gone, and a line of it is here: its lines were moved here, and those that are not here are missed.
    std::fs::remove_file(&elsewhere).expect("removed");
    let (log, found) = world.check(&[a, b, decided]).await;
    let missed = [(Kind::Removed, A), (Kind::Removed, c), (Kind::Removed, d)];
    assert_eq!((log.elsewhere, kinds(&found)), (0, missed.to_vec()));
    // With none of its lines here, it may be anywhere.
    let (log, found) = world.check(&[a, b]).await;
    assert_eq!((log.elsewhere, kinds(&found)), (2, vec![(Kind::Removed, c)]));
}

#[tokio::test]
async fn a_log_that_went_along_with_its_ledger_is_its_log() {
    let first = tempfile::tempdir().expect("a directory");
    let old = first.path().join("w/council_log.jsonl");
    let world = Logged::empty().await;
    world.append(A, &review(&old, "SHIP")).await;
    let a = world.line(A, 2, Event::Verdict).await;
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
        let report = verify(&store, Options { log, ..Options::default() }).await.expect("verified");
        store.close().await;
        (report.log.expect("checked").elsewhere, report.divergences)
    };
    // It lay in a directory of the same name beside its ledger: its line was taken out.
    let (elsewhere, found) = check(&moved).await;
    assert_eq!((elsewhere, kinds(&found)), (0, vec![(Kind::Removed, A)]));
    assert_eq!(check(&other).await, (1, vec![]), "another directory's log may be anywhere");
    // The old log is still there.
    std::fs::create_dir_all(old.parent().expect("a directory")).expect("made");
    std::fs::write(&old, format!("{a}\n")).expect("written");
    assert_eq!(check(&moved).await, (1, vec![]));
    // No log lies there at all.
    std::fs::remove_file(&old).expect("removed");
    std::fs::remove_file(moved.join("council_log.jsonl")).expect("removed");
    assert_eq!(check(&moved).await, (1, vec![]));
}

#[tokio::test]
async fn runs_before_the_trusted_checkpoint_and_imported_ones_are_not_compared() {
    let world = Logged::new().await;
    let (a, b) = (&*world.line(A, 2, Event::Verdict).await, &*world.line(B, 2, Event::Verdict).await);
    let d = "rddddddddddd0";
    world.append(d, &review(&world.log(), "SHIP")[..1]).await;
    world.store.seal(&[], AT_MS, false, Durability::Synced).await.expect("sealed");
    let c = "rcccccccccccc";
    world.append(c, &review(&world.log(), "SHIP")).await;
    let line = &*world.line(c, 2, Event::Verdict).await;
    let since = || Options { since: Some(StartPoint::Size(7)), log: Some(world.log()), ..Options::default() };
    world.check(&[&a.replace("\"SHIP\"", "\"HOLD\""), b, line]).await;
    let (log, found) = world.verify(since()).await;
    assert_eq!((log.ours, found), (3, vec![]), "what came before is not looked at");
    std::fs::write(world.log(), format!("{a}\n{b}\n")).expect("written");
    assert_eq!(kinds(&world.verify(since()).await.1), [(Kind::Removed, c)]);
    // Of a run that began before it, the outcome may be from before as well.
    world.append(d, &[entry(Word::Rule, json!({"rule": "policy"}))]).await;
    std::fs::write(world.log(), format!("{a}\n{b}\n{line}\n{}\n", a.replace(A, d))).expect("written");
    let (log, found) = world.verify(since()).await;
    assert_eq!((log.unknown, found), (1, vec![]));
    // Without a log there are no lines.
    std::fs::remove_file(world.log()).expect("removed");
    let missing = world.verify(Options { log: Some(world.log()), ..Options::default() }).await.1;
    assert_eq!(kinds(&missing), [(Kind::Removed, A), (Kind::Removed, B), (Kind::Removed, c)]);
    // A log that cannot be read is no empty one.
    std::fs::create_dir(world.log()).expect("made");
    for log in [world.log(), world.dir.path().join("ledger.db/council_log.jsonl")] {
        verify(&world.store, Options { log: Some(log), ..Options::default() }).await.unwrap_err();
    }
}

#[tokio::test]
async fn counts_that_do_not_follow_from_the_log_are_found() {
    let world = Logged::new().await;
    let (a, b) = (&*world.line(A, 2, Event::Verdict).await, &*world.line(B, 2, Event::Verdict).await);
    assert_eq!(world.check(&[a, b]).await.1, []);
    council_log::sync(&world.store, &world.log()).await.expect("counted");
    assert_eq!(world.check(&[a, b]).await.1, []);
    let db = format!("sqlite://{}", world.dir.path().join("ledger.db").display());
    let mut sqlite = SqliteConnection::connect(&db).await.expect("it opens");
    sqlx::raw_sql("UPDATE log_line SET verdict = 'REVISE'").execute(&mut sqlite).await.expect("written");
    sqlite.close().await.expect("closed");
    let report = verify(&world.store, Options { log: Some(world.log()), ..Options::default() })
        .await
        .expect("verified");
    let found: Vec<(Kind, Part)> = report.divergences.iter().map(|found| (found.kind, found.part)).collect();
    assert_eq!(found, [(Kind::Changed, Part::LogIndex)]);
}

#[tokio::test]
async fn a_line_with_words_that_were_erased_is_compared_by_what_is_left() {
    // D4, D6: the answer was erased, so that the line cannot be made again; its verdict can still be read.
    let world = Logged::empty().await;
    let mut entries = review(&world.log(), "SHIP");
    let answer = json!({
        "invocation": "r1/skeptic", "step": "r1", "member": "skeptic", "status": "answered", "executor": "rubric",
        "answer": {"score": 4, "text": "It will do."}, "model": "m", "spent": {"calls": 1, "ms": 40},
    });
    entries[0].data.insert("setup".to_owned(), json!({"deliberators": ["skeptic"]}));
    entries.insert(1, entry(Word::Consultation, answer));
    world.append(A, &entries).await;
    let line = &*world.line(A, 3, Event::Verdict).await;
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
        let report = verify(&world.store, Options { log: Some(world.log()), ..Options::default() }).await;
        let found = report.expect("verified").divergences;
        found.into_iter().filter(|found| found.part == Part::Log).map(|found| found.kind).collect::<Vec<_>>()
    };
    assert_eq!(check(&[line, decided]).await, []);
    assert_eq!(check(&[&line.replace("It will do.", "It did."), decided]).await, [], "its words are gone");
    assert_eq!(check(&[&line.replace("\"SHIP\"", "\"HOLD\""), decided]).await, [Kind::Changed]);
    assert_eq!(check(&[&line.replacen(',', ", ", 1), decided]).await, [Kind::Changed]);
    assert_eq!(check(&[line, &decided.replace("\"HOLD\"", "\"SHIP\"")]).await, [Kind::Changed]);
    assert_eq!(check(&[line]).await, [Kind::Removed]);
    assert_eq!(check(&[line, line]).await, [Kind::Removed, Kind::Inserted], "a verdict is no override");
}
