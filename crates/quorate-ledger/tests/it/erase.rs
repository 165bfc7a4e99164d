//! Erasing bodies: no file contains them any more, nothing else is lost, and signatures and checkpoints from before
//! remain valid.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::{
    Append, Body, Durability, Entry, Kind, Ledger as _, LedgerError, Record,
};
use quorate_kernel::record::RunOpened;
use quorate_ledger::retention::{ErasurePlan, RetentionSettings};
use quorate_ledger::signing::SecretKey;
use quorate_ledger::store::{ErasureReport, WipeMode};
use quorate_ledger::{Store, keys};
use quorate_protocol::{Json, Name};
use serde_json::{Map, json};
use sqlx::{Connection as _, Row as _, SqliteConnection};

const DAY_MS: i64 = 24 * 3_600_000;

/// A run with words that occur in no other run.
struct SpokenRun {
    run: Name,
    audit: Json,
    /// The members' answers.
    words: Vec<String>,
    /// The text under review.
    artifact: String,
}

/// Words of a length that no other run has.
fn words(who: &str, bytes: usize) -> String {
    let mut text = String::new();
    let mut at = 0;
    while text.len() < bytes {
        text.push_str(&format!("{who}-{at}-{} ", &sha256_hex(format!("{who}{at}").as_bytes())[..20]));
        at += 1;
    }
    text
}

impl SpokenRun {
    /// A run with answers of different lengths: short ones that share a page, long ones that span several.
    fn new(run: &str, audit: Json) -> SpokenRun {
        let lengths = [30, 200, 900, 3_000, 4_050, 9_000, 60];
        SpokenRun {
            run: run.into(),
            audit,
            words: lengths
                .iter()
                .enumerate()
                .map(|(at, bytes)| words(&format!("{run}w{at}"), *bytes))
                .collect(),
            artifact: words(&format!("{run}artifact"), 6_000),
        }
    }

    fn entries(&self, at_ms: i64) -> Vec<Entry> {
        let entry = |kind, data: Json| Entry { kind, at_ms, data: quorate_kernel::attempts::object(data) };
        let opened = json!({
            "subject": "draft.md",
            "protocol": "voting/1",
            "audit": self.audit,
            "inputs": [{"kind": "proposal", "name": "draft.md", "sha256": sha256_hex(self.artifact.as_bytes())}],
        });
        let mut all =
            vec![entry(Kind::RunOpened, opened), entry(Kind::RunIntent, json!({"invocations": []}))];
        for (at, text) in self.words.iter().enumerate() {
            let data = json!({"invocation": format!("ask/m{at}"), "text": text});
            all.push(entry(
                [Kind::Attempt, Kind::Consultation, Kind::Gathered, Kind::Violation][at % 4],
                data,
            ));
        }
        all.push(entry(Kind::Rule, json!({"ticket": "1", "kind": "own", "output": {"text": self.words[0]}})));
        all.push(entry(Kind::Rule, json!({"id": "majority", "fired": true})));
        all.push(entry(Kind::Outcome, json!({"verdict": "pass", "of": &*self.run})));
        all.push(entry(Kind::RunEnded, json!({"logged": false})));
        all
    }

    /// Every text that must not be found any more.
    fn secrets(&self) -> Vec<&str> {
        let all = self.words.iter().chain([&self.artifact]);
        all.flat_map(|text| text.split(' ').filter(|word| !word.is_empty())).collect()
    }
}

async fn open(path: &Path) -> Store {
    Store::open(path).await.expect("it opens").store
}

/// Appends runs, alternating between them record by record, as runs of one process do.
async fn record(store: &Store, talks: &[SpokenRun], at_ms: i64) {
    let mut waiting: Vec<_> =
        talks.iter().map(|talk| (talk, 0_u64, talk.entries(at_ms).into_iter())).collect();
    while !waiting.is_empty() {
        for (talk, n, entries) in &mut waiting {
            let Some(entry) = entries.next() else { continue };
            let text =
                Body { sha256: sha256_hex(talk.artifact.as_bytes()), text: talk.artifact.as_str().into() };
            let append = Append {
                run: talk.run.clone(),
                from: *n,
                entries: vec![entry],
                bodies: if *n == 0 { vec![text] } else { Vec::new() },
                durability: Durability::Written,
            };
            *n = store.append(append).await.expect("appended");
        }
        waiting.retain(|(.., entries)| entries.len() > 0);
    }
}

async fn plan(store: &Store, now_ms: i64) -> ErasurePlan {
    let unsaid = |_: &RunOpened| None;
    store
        .plan_erasure(&RetentionSettings { now_ms, default_days: &unsaid, conversation_days: None })
        .await
        .expect("it answers")
}

async fn collect(store: &Store, now_ms: i64) -> ErasureReport {
    let plan = plan(store, now_ms).await;
    store.erase(plan, now_ms, WipeMode::Rebuild, Some(&*key_of(store))).await.expect("erased")
}

/// The ledger's key.
fn key_of(store: &Store) -> Arc<SecretKey> {
    let keys = keys::KeyDirectory::new(store.dir());
    Arc::new(keys.load(keys::KeyPurpose::Ledger).expect("readable").expect("it is there"))
}

fn days(days: u32) -> Json {
    json!({"signing": "none", "retention_days": days, "keep_consultations": true})
}

fn forever() -> Json {
    json!({"signing": "none", "retention_days": null, "keep_consultations": true})
}

/// All files of a directory with their contents.
fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => all.push((path.clone(), std::fs::read(&path).expect("readable"))),
        }
    }
    all
}

/// The words of talks that some file still contains. Searches for all words at once, by the hash in their middle.
fn secrets_found(dir: &Path, talks: &[&SpokenRun]) -> Vec<String> {
    let words: BTreeSet<&[u8]> = talks
        .iter()
        .flat_map(|talk| talk.secrets())
        .map(|word| &word.as_bytes()[word.len() - 20..])
        .collect();
    let mut all = Vec::new();
    for (path, bytes) in files(dir) {
        let here = bytes.windows(20).filter(|window| words.contains(window));
        let here: BTreeSet<_> = here.map(String::from_utf8_lossy).collect();
        all.extend(here.into_iter().map(|word| format!("{}: {word}", path.display())));
    }
    all
}

async fn heads(path: &Path) -> Vec<(String, String, i64)> {
    let mut sqlite =
        SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.expect("it opens");
    let rows = sqlx::query("SELECT run, head, seq FROM record ORDER BY seq").fetch_all(&mut sqlite).await;
    sqlite.close().await.expect("closed");
    rows.expect("rows").iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

async fn erased_records(store: &Store) -> Vec<Map<String, Json>> {
    let own = store.records(&"ledger".into()).await.expect("the chain holds");
    own.into_iter().filter(|record| record.is(Kind::Erased)).filter_map(|record| record.data).collect()
}

fn bodiless(records: &[Record]) -> Vec<u64> {
    records.iter().filter(|record| record.data.is_none()).map(|record| record.n).collect()
}

#[tokio::test]
async fn what_is_erased_is_in_no_file_and_the_rest_is_whole() {
    // D4
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let store = open(&path).await;
    // Repeated, so that later appends and erasures move the remaining content from page to page.
    let (mut kept, mut gone): (Vec<SpokenRun>, Vec<SpokenRun>) = (Vec::new(), Vec::new());
    for stage in 0..4_i64 {
        let now = stage * 10 * DAY_MS;
        let talks: Vec<SpokenRun> = (0..12)
            .map(|at| {
                SpokenRun::new(&format!("r{stage}x{at}"), if at % 3 == 0 { forever() } else { days(5) })
            })
            .collect();
        record(&store, &talks, now).await;
        assert!(collect(&store, now + 4 * DAY_MS).await.runs.is_empty(), "none of them is of age");
        assert!(!secrets_found(dir.path(), &talks.iter().collect::<Vec<_>>()).is_empty());
        let erased = collect(&store, now + 5 * DAY_MS).await;
        assert_eq!((erased.runs.len(), erased.residue), (8, None));
        let (forever, over): (Vec<SpokenRun>, Vec<SpokenRun>) =
            talks.into_iter().partition(|talk| talk.audit["retention_days"].is_null());
        kept.extend(forever);
        gone.extend(over);
        assert_eq!(secrets_found(dir.path(), &gone.iter().collect::<Vec<_>>()), Vec::<String>::new());
    }
    assert!(gone.iter().map(|talk| talk.secrets().len()).sum::<usize>() > 200);
    for talk in &kept {
        let records = store.records(&talk.run).await.unwrap();
        assert_eq!(bodiless(&records), [0; 0]);
        let texts: Vec<&str> =
            records.iter().filter_map(|record| record.data.as_ref()?.get("text")?.as_str()).collect();
        assert_eq!(texts, talk.words);
        let text = store.body(&sha256_hex(talk.artifact.as_bytes())).await.unwrap();
        assert_eq!(text.as_deref(), Some(&*talk.artifact));
    }
    for talk in &gone {
        let records = store.records(&talk.run).await.unwrap();
        assert_eq!(bodiless(&records), (2..=9).collect::<Vec<_>>());
        let outcome = records.iter().find(|record| record.is(Kind::Outcome)).unwrap();
        assert_eq!(outcome.data.as_ref().unwrap()["of"], json!(&*talk.run), "what it came to stays");
        assert_eq!(store.body(&sha256_hex(talk.artifact.as_bytes())).await.unwrap(), None);
    }
    let erased = erased_records(&store).await;
    assert_eq!(erased.len(), gone.len());
    assert_eq!(erased[0]["run"], json!(&*gone[0].run));
    assert_eq!(erased[0]["records"], json!([[2, 9]]));
    assert_eq!(erased[0]["bodies"], json!([sha256_hex(gone[0].artifact.as_bytes())]));
    assert_eq!((&erased[0]["reason"], &erased[0]["days"]), (&json!("retention"), &json!(5)));
    store.close().await;
    assert_eq!(secrets_found(dir.path(), &gone.iter().collect::<Vec<_>>()), Vec::<String>::new());
}

#[tokio::test]
async fn a_run_whose_answers_are_not_kept_leaves_none_when_it_ends() {
    // D5
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let store = open(&path).await;
    let audit = json!({"signing": "none", "retention_days": 30, "keep_consultations": false});
    let talks: Vec<SpokenRun> = (0..10).map(|at| SpokenRun::new(&format!("r{at}"), audit.clone())).collect();
    record(&store, &talks, 0).await;
    let unsaid = |_: &RunOpened| None;
    let terms = RetentionSettings { now_ms: 1, default_days: &unsaid, conversation_days: None };
    for (at, talk) in talks.iter().enumerate() {
        let plan = store.plan_erasure_at_end(&talk.run, &terms).await.unwrap();
        let erased = store.erase(plan, 1, WipeMode::InPlace, Some(&*key_of(&store))).await.unwrap();
        assert_eq!((erased.runs.len(), erased.residue), (1, None));
        let ended: Vec<&SpokenRun> = talks[..=at].iter().collect();
        assert_eq!(secrets_found(dir.path(), &ended), Vec::<String>::new());
    }
    assert_eq!(erased_records(&store).await[0]["reason"], json!("consultations_off"));
    let other = SpokenRun::new("kept", days(1));
    record(&store, std::slice::from_ref(&other), 0).await;
    assert!(store.plan_erasure_at_end(&other.run, &terms).await.unwrap().erasures.is_empty());
    store.close().await;
}

#[tokio::test]
async fn chain_tree_and_signatures_are_what_they_were() {
    // D2, D3, D4
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let store = open(&path).await;
    let signer = Arc::new(SecretKey::generate());
    let mut audit = days(1);
    audit["keyring"] = json!([signer.public().to_string()]);
    let talks = [SpokenRun::new("signed", audit), SpokenRun::new("plain", days(1))];
    store.sign_run(&talks[0].run, signer);
    record(&store, &talks, 0).await;
    let key = key_of(&store);
    let sealed = store.seal(&[Arc::clone(&key)], 1, false, Durability::Synced).await.unwrap();
    let before = heads(&path).await;
    assert_eq!(collect(&store, 2 * DAY_MS).await.runs.len(), 2);
    assert_eq!(heads(&path).await[..before.len()], before, "no head changes, and none moves");
    assert!(store.is_signed(&talks[0].run).await.unwrap());
    for talk in &talks {
        assert_eq!(store.records(&talk.run).await.unwrap().len(), 13, "the chain holds");
    }
    let mut sqlite = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    // A tree rebuilt from the records equals the sealed one.
    sqlx::query("DELETE FROM tile").execute(&mut sqlite).await.unwrap();
    sqlite.close().await.unwrap();
    let again = store.seal(&[key], 3, true, Durability::Synced).await.unwrap();
    assert_eq!(again.tree.size, sealed.tree.size + 1 + 2, "a checkpoint, and two records of what was erased");
    store.close().await;
}

#[tokio::test]
async fn a_text_stays_while_anybody_may_need_it() {
    // D4
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("ledger.db")).await;
    let mut talks =
        [SpokenRun::new("short", days(1)), SpokenRun::new("long", days(9)), SpokenRun::new("open", days(1))];
    let shared = talks[0].artifact.clone();
    talks[1].artifact = shared.clone();
    let sha256 = sha256_hex(shared.as_bytes());
    record(&store, &talks, 0).await;
    let reopened = Entry {
        kind: Kind::RunIntent,
        at_ms: 1,
        data: Map::from_iter([("supersedes".into(), json!(["x"]))]),
    };
    store.append(Append::one(&talks[2].run, 13, reopened, Durability::Written)).await.unwrap();

    let erased = collect(&store, 2 * DAY_MS).await;
    assert_eq!(erased.runs.iter().map(|due| &*due.run).collect::<Vec<_>>(), ["short"], "one is open again");
    assert!(erased.runs[0].texts.is_empty(), "the other run's days are not over");
    assert!(store.body(&sha256).await.unwrap().is_some());

    let erased = collect(&store, 9 * DAY_MS).await;
    let texts: Vec<_> = erased.runs.iter().map(|due| (&*due.run, due.texts.contains(&sha256))).collect();
    assert_eq!(texts, [("short", true), ("long", false)], "named by the first that names it");
    assert_eq!(store.body(&sha256).await.unwrap(), None);
    assert!(collect(&store, 20 * DAY_MS).await.runs.is_empty(), "nothing is left to be done");

    // The same text is added again, and erased again.
    let mut later = SpokenRun::new("later", days(1));
    later.artifact = shared;
    record(&store, &[later], 20 * DAY_MS).await;
    assert!(store.body(&sha256).await.unwrap().is_some());
    assert!(collect(&store, 21 * DAY_MS).await.runs.iter().any(|due| &*due.run == "later"));
    assert_eq!(store.body(&sha256).await.unwrap(), None);
    store.close().await;
}

#[tokio::test]
async fn nothing_of_a_run_on_hold_is_erased() {
    // D4
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("ledger.db")).await;
    let talks = [SpokenRun::new("held", days(1)), SpokenRun::new("other", days(1))];
    record(&store, &talks, 0).await;
    let about = |kind, reason: Option<&str>| {
        let data = json!({"run": "held", "reason": reason, "by": "ines"});
        Entry { kind, at_ms: 5, data: quorate_kernel::attempts::object(data) }
    };
    // A reference added between planning and erasing counts as well.
    let planned = plan(&store, 2 * DAY_MS).await;
    assert_eq!(planned.erasures.len(), 2);
    store.append_ledger_record(about(Kind::Held, Some("a claim")), &key_of(&store)).await.unwrap();
    let erased = store.erase(planned, 2 * DAY_MS, WipeMode::Rebuild, Some(&*key_of(&store))).await.unwrap();
    assert_eq!(erased.runs.iter().map(|due| &*due.run).collect::<Vec<_>>(), ["other"]);
    let held = store.holds().await.unwrap();
    assert_eq!((&*held[0].run, held[0].reason.as_deref(), &*held[0].by), ("held", Some("a claim"), "ines"));
    let again = plan(&store, 9 * DAY_MS).await;
    assert!(again.erasures.is_empty());
    assert_eq!(again.held, [Name::from("held")]);
    assert_eq!(bodiless(&store.records(&"held".into()).await.unwrap()), [0; 0]);

    store.append_ledger_record(about(Kind::Released, None), &key_of(&store)).await.unwrap();
    assert!(!store.is_on_hold(&"held".into()).await.unwrap());
    assert_eq!(collect(&store, 9 * DAY_MS).await.runs.len(), 1);
    store.close().await;
}

#[tokio::test]
async fn a_reader_keeps_copies_in_the_log_and_that_is_said() {
    // D4
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let store = open(&path).await;
    let talks = [SpokenRun::new("r1", days(1))];
    record(&store, &talks, 0).await;
    let mut reader = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    let mut reading = reader.begin().await.unwrap();
    sqlx::query("SELECT COUNT(*) FROM record").fetch_one(&mut *reading).await.unwrap();
    let erased = collect(&store, 2 * DAY_MS).await;
    assert_eq!(erased.runs.len(), 1);
    assert!(erased.residue.unwrap().contains("reading"));
    assert!(store.has_pending_wipe());
    assert!(!secrets_found(dir.path(), &[&talks[0]]).is_empty());
    drop(reading);
    reader.close().await.unwrap();
    let again = collect(&store, 2 * DAY_MS).await;
    assert_eq!((again.runs.len(), again.residue), (0, None));
    assert!(!store.has_pending_wipe());
    assert_eq!(secrets_found(dir.path(), &[&talks[0]]), Vec::<String>::new());
    store.close().await;
}

#[tokio::test]
async fn a_conversation_ages_record_by_record_as_far_as_it_is_settled() {
    // D4
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("ledger.db")).await;
    let stream: Name = "turns/letters/0011".into();
    let entry = |kind, day: i64, data: Json| Entry {
        kind,
        at_ms: day * DAY_MS,
        data: quorate_kernel::attempts::object(data),
    };
    let entries = vec![
        entry(Kind::Consultation, 0, json!({"text": "an old answer"})),
        entry(Kind::Turn, 0, json!({"cursor": "1"})),
        entry(Kind::Consultation, 8, json!({"text": "a new answer"})),
        entry(Kind::Turn, 8, json!({"cursor": "2"})),
        entry(Kind::Attempt, 0, json!({"text": "not settled"})),
    ];
    let append =
        Append { run: stream.clone(), from: 0, entries, bodies: Vec::new(), durability: Durability::Written };
    store.append(append).await.unwrap();
    let default_days = |_: &RunOpened| None;
    let due = |days| {
        let store = &store;
        let default_days = &default_days;
        async move {
            let terms = RetentionSettings { now_ms: 10 * DAY_MS, default_days, conversation_days: days };
            store.plan_erasure(&terms).await.unwrap()
        }
    };
    assert!(due(None).await.erasures.is_empty());
    let plan = due(Some(5)).await;
    assert_eq!(plan.erasures[0].records, [(0, 0)]);
    store.erase(plan, 10 * DAY_MS, WipeMode::Rebuild, Some(&*key_of(&store))).await.unwrap();
    assert_eq!(bodiless(&store.records(&stream).await.unwrap()), [0]);
    store.close().await;
}

#[tokio::test]
async fn a_ledger_that_is_only_read_is_not_erased_from() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let store = open(&path).await;
    record(&store, &[SpokenRun::new("r1", days(1))], 0).await;
    store.close().await;
    let mut sqlite = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    sqlx::raw_sql("PRAGMA user_version = 99").execute(&mut sqlite).await.unwrap();
    sqlite.close().await.unwrap();
    let store = open(&path).await;
    let planned = plan(&store, 2 * DAY_MS).await;
    assert_eq!(planned.erasures.len(), 1);
    let refused =
        store.erase(planned, 2 * DAY_MS, WipeMode::Rebuild, Some(&*key_of(&store))).await.unwrap_err();
    assert!(matches!(refused, LedgerError::Unavailable { .. }), "{refused}");
    assert!(!store.has_pending_wipe(), "nothing was begun");
    assert_eq!(bodiless(&store.records(&"r1".into()).await.unwrap()), [0; 0]);
    store.close().await;
}
