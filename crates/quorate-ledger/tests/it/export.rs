//! Exports: the same ledger gives the same bytes, a reader verifies an export, and a merge restores the same records
//! (D2, D3).

mod reader;
pub(crate) mod world;

use std::collections::BTreeMap;
use std::io::Cursor;

use quorate_kernel::ports::ledger::{Kind, Ledger as _};
use quorate_ledger::export::jsonl::{ExportEntry, ExportReader, InvalidExport};
use quorate_ledger::export::{ExportError, ExportFormat, Selection};
use quorate_ledger::import::{ImportError, ImportOptions, ImportSummary, verify};
use quorate_ledger::prove::TrustedKey;
use quorate_ledger::signing::{PublicKey, SecretKey};
use serde_json::{Value, json};
use world::{PLAIN, SIGNED, TEXT, World, entry};

fn all() -> Selection {
    Selection::default()
}

fn only(run: &str) -> Selection {
    Selection { runs: vec![run.into()], since: 0 }
}

fn since(since: u64) -> Selection {
    Selection { runs: Vec::new(), since }
}

/// Reads a whole export. Returns its numbers of records and texts.
fn read(text: &str, signers: &[PublicKey]) -> Result<(u64, u64), InvalidExport> {
    let mut reader = ExportReader::open(Cursor::new(text.as_bytes()), signers)?;
    while reader.next_entry()?.is_some() {}
    Ok((reader.totals.records, reader.totals.bodies))
}

/// Heads and data of an export's records of a run.
fn records(text: &str, run: &str) -> Vec<(String, Option<String>)> {
    let mut reader = ExportReader::open(Cursor::new(text.as_bytes()), &[]).expect("it opens");
    let mut records = Vec::new();
    while let Some(entry) = reader.next_entry().expect("it reads") {
        if let ExportEntry::Record(item, checked) = entry
            && checked.head.run == run
        {
            records.push((item.head, item.data));
        }
    }
    records
}

#[tokio::test]
async fn the_same_ledger_gives_the_same_bytes_and_they_hold() {
    // D2
    let world = World::full().await;
    for form in [ExportFormat::Jsonl, ExportFormat::Otel, ExportFormat::Csv] {
        let (text, written) = world.export_as(&all(), form).await;
        assert_eq!(written.records, 15);
        assert_eq!(written.signatures, 6);
        assert!(written.unknown_keys.is_empty());
        assert_eq!(world.export_as(&all(), form).await.0, text, "{form:?}");
    }
    let text = world.export(&all()).await;
    // Both runs name the text.
    assert_eq!(read(&text, &world.signers()).expect("it holds"), (15, 2));
    // A checkpoint's own record is outside of its tree.
    let again = world.export(&all()).await;
    assert_eq!(again, text);
}

#[tokio::test]
async fn a_part_of_a_ledger_holds_by_itself() {
    // D2
    let world = World::full().await;
    for size in [1, 4, 255, 256, 257, 600] {
        let have = world.seal().await.tree.size;
        if size > have {
            let fill: Vec<_> = (0..size - have).map(|n| entry(Kind::Turn, json!({"n": n}))).collect();
            world.append(&format!("turns/t/{size}"), 0, fill, vec![]).await;
            world.seal().await;
        }
    }
    let whole = world.seal().await.tree.size;
    assert!(whole > 600);
    for from in [0, 1, 15, 255, 256, 257, whole - 1, whole] {
        let text = world.export(&since(from)).await;
        assert_eq!(read(&text, &[]).expect("it holds").0, whole - from, "after {from}");
    }
    assert_eq!(read(&world.export(&only(PLAIN)).await, &[]).expect("it holds"), (8, 1));
    let both = Selection { runs: vec![SIGNED.into(), PLAIN.into(), SIGNED.into()], since: 0 };
    assert_eq!(read(&world.export(&both).await, &[]).expect("it holds"), (14, 2));
    let mut out = Vec::new();
    let beyond = world.store.export(&since(whole + 1), ExportFormat::Jsonl, &[], &mut out).await;
    assert!(matches!(beyond, Err(ExportError::SinceTooLarge { .. })));
    let unknown = world.store.export(&only("r9"), ExportFormat::Jsonl, &[], &mut out).await;
    assert!(matches!(unknown, Err(ExportError::UnknownRun { .. })));
}

#[tokio::test]
async fn nothing_is_exported_that_was_changed_since_it_was_sealed() {
    // D2
    for change in [
        "UPDATE record SET head = replace(head, 'outcome', 'outcast') WHERE kind = 'outcome'",
        "DELETE FROM record WHERE seq = 3",
        "UPDATE tile SET hashes = zeroblob(length(hashes)) WHERE level = 0",
    ] {
        let world = World::full().await;
        world.sql(change).await;
        let mut out = Vec::new();
        let refused = world.store.export(&all(), ExportFormat::Jsonl, &[], &mut out).await;
        assert!(matches!(refused, Err(ExportError::Ledger(_))), "{change}");
    }
    let world = World::empty().await;
    let mut out = Vec::new();
    let unsealed = world.store.export(&all(), ExportFormat::Csv, &[], &mut out).await;
    assert!(matches!(unsealed, Err(ExportError::NoCheckpoint)));
}

#[tokio::test]
async fn what_is_merged_is_what_it_was() {
    // D2
    let (theirs, ours) = (World::full().await, World::empty().await);
    let file = theirs.export(&all()).await;
    let imported = ours.import(&file, &[theirs.trusted()]).await.expect("merged");
    let runs = BTreeMap::from([(SIGNED.to_owned(), 6), (PLAIN.to_owned(), 8)]);
    assert_eq!(imported.runs, runs);
    assert!(imported.skipped_streams.contains("overlays/advice"));
    ours.seal().await;
    let back = ours.export(&all()).await;
    read(&back, &theirs.signers()).expect("it holds");
    for run in [SIGNED, PLAIN] {
        assert_eq!(records(&back, run), records(&file, run));
        assert_eq!(ours.store.is_signed(&run.into()).await.unwrap(), run == SIGNED);
    }
    let found = ours.store.runs(10).await.unwrap();
    assert!(found.iter().all(|run| run.verdict.as_deref() == Some("SHIP") && run.ended && run.imported));
    assert_eq!(found.len(), 2);
    let sha256 = quorate_kernel::entropy::sha256_hex(TEXT.as_bytes());
    assert_eq!(ours.store.body(&sha256).await.unwrap().as_deref(), Some(TEXT));

    let again = ours.import(&file, &[theirs.trusted()]).await.expect("nothing to do");
    assert_eq!((again.runs, again.unchanged_runs), (BTreeMap::new(), 2));
    let own = ours.store.records(&"ledger".into()).await.unwrap();
    assert_eq!(own.iter().filter(|record| record.is(Kind::Imported)).count(), 1);
}

#[tokio::test]
async fn a_run_gets_its_tail_and_one_that_contradicts_refuses_all() {
    let (theirs, ours) = (World::full().await, World::empty().await);
    let trusted = [theirs.trusted()];
    ours.import(&theirs.export(&only(PLAIN)).await, &trusted).await.expect("merged");
    theirs.append(PLAIN, 8, vec![entry(Kind::Override, json!({"verdict": "HOLD"}))], vec![]).await;
    let sealed = theirs.seal().await;
    // The next export starts in the middle of the run.
    let tail = theirs.export(&since(15)).await;
    let imported: ImportSummary = ours.import(&tail, &trusted).await.expect("merged");
    assert_eq!(imported.runs, BTreeMap::from([(PLAIN.to_owned(), 1)]));
    assert_eq!(ours.store.runs(1).await.unwrap()[0].overridden.as_deref(), Some("HOLD"));
    assert!(sealed.tree.size > 15);

    let gap = World::empty().await;
    let refused = gap.import(&tail, &trusted).await;
    assert!(matches!(refused, Err(ImportError::Conflict { .. })), "{refused:?}");

    // The same id with other records, beside a new run.
    let other = World::empty().await;
    other.run(PLAIN, None, 5).await;
    let before = other.store.records(&PLAIN.into()).await.unwrap();
    let refused = other.import(&theirs.export(&all()).await, &trusted).await;
    let Err(ImportError::Conflict { id, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(id, format!("{PLAIN}/0"));
    assert_eq!(other.store.records(&PLAIN.into()).await.unwrap(), before);
    assert!(other.store.records(&SIGNED.into()).await.unwrap().is_empty(), "nothing at all is written");
    assert!(other.store.records(&"ledger".into()).await.unwrap().is_empty());
}

#[tokio::test]
async fn only_this_ledger_appends_to_its_own_runs() {
    // D2: a copy continues the ledger with its own key, and the copy's records are merged back.
    let ours = World::full().await;
    let before = ours.export(&all()).await;
    let copy = World::empty().await;
    copy.import(&before, &[ours.trusted()]).await.expect("merged");
    copy.append(PLAIN, 8, vec![entry(Kind::Override, json!({"verdict": "HOLD"}))], vec![]).await;
    copy.seal().await;
    for dry_run in [true, false] {
        let file = copy.export(&all()).await;
        let (trusted, key) = (vec![copy.trusted()], Some(ours.ledger_key()));
        let terms = ImportOptions { trusted, key, dry_run, ..ImportOptions::default() };
        let refused = ours.store.import(|| Ok(Cursor::new(file.as_bytes())), &terms).await;
        let Err(ImportError::Conflict { id, what }) = refused else { panic!("{refused:?}") };
        assert_eq!(id, format!("{PLAIN}/8"));
        assert!(what.contains("recorded the run itself"), "{what}");
    }
    assert_eq!(ours.store.records(&PLAIN.into()).await.unwrap().len(), 8);
    assert!(!ours.store.is_imported(&PLAIN.into()).await.unwrap());
    let own = ours.store.records(&"ledger".into()).await.unwrap();
    assert!(own.iter().all(|record| !record.is(Kind::Imported)), "nothing is written");
    // An equal existing record is not a conflict.
    let known = ours.import(&before, &[ours.trusted()]).await.expect("nothing to do");
    assert_eq!((known.runs.len(), known.unchanged_runs), (0, 2));
}

#[tokio::test]
async fn an_untrusted_key_is_not_believed() {
    let (theirs, ours) = (World::full().await, World::empty().await);
    let file = theirs.export(&all()).await;
    for trusted in [vec![], vec![ours.trusted()]] {
        let refused = ours.import(&file, &trusted).await;
        assert!(matches!(refused, Err(ImportError::UntrustedKey { .. })), "{refused:?}");
    }
    let stranger = TrustedKey::Public(SecretKey::from_seed(&[9; 32]).public());
    let trusted = vec![stranger, theirs.trusted()];
    let terms = ImportOptions { trusted, dry_run: true, ..ImportOptions::default() };
    verify(Cursor::new(file.as_bytes()), &terms).expect("one of several is enough");
    // D3: the required signer, and another one.
    let signers = vec![SecretKey::from_seed(&[9; 32]).public()];
    let terms = ImportOptions { signers, ..terms };
    assert!(verify(Cursor::new(file.as_bytes()), &terms).is_err());
}

#[tokio::test]
async fn a_dry_run_writes_nothing() {
    let (theirs, ours) = (World::full().await, World::empty().await);
    let file = theirs.export(&all()).await;
    let terms = ImportOptions { trusted: vec![theirs.trusted()], dry_run: true, ..ImportOptions::default() };
    let open = || Ok(Cursor::new(file.clone().into_bytes()));
    let imported = ours.store.import(open, &terms).await.expect("it would be merged");
    assert_eq!(imported.runs.len(), 2);
    assert!(ours.store.runs(10).await.unwrap().is_empty());
}

/// Changes an export's lines as JSON, keeps them canonical, and updates the last line.
fn rewritten(text: &str, change: impl Fn(usize, &mut Vec<Value>)) -> String {
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    lines.pop();
    change(0, &mut lines);
    let mut out: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let count = |key: &str| lines.iter().filter(|line| line.get(key).is_some()).count();
    let signatures: usize =
        lines.iter().filter_map(|line| Some(line.get("signatures")?.as_array()?.len())).sum();
    let sha256 = quorate_kernel::entropy::sha256_hex(out.as_bytes());
    let end = json!({"end": {"bodies": count("body"), "records": count("head"), "sha256": sha256, "signatures": signatures}});
    out += &format!("{end}\n");
    out
}

#[tokio::test]
async fn a_careful_rewrite_of_the_file_is_found() {
    // D2, D3
    let world = World::full().await;
    let text = world.export(&all()).await;
    assert_eq!(rewritten(&text, |_, _| {}), text);
    type Change = fn(&mut Vec<Value>);
    let changes: [(&str, Change); 9] = [
        ("a record less", |lines| drop(lines.remove(5))),
        ("a record twice", |lines| lines.insert(5, lines[4].clone())),
        ("two swapped", |lines| lines.swap(4, 5)),
        ("signatures stripped", |lines| {
            for line in lines.iter_mut().filter(|line| line.get("signatures").is_some()) {
                line["signatures"] = json!([]);
            }
            lines[0]["signers"] = json!([]);
        }),
        ("the last record less", |lines| drop(lines.pop())),
        ("another log's name", |lines| lines[0]["origin"] = json!("quorate/other")),
        ("a signer more", |lines| {
            let other = SecretKey::from_seed(&[9; 32]).public().to_string();
            let mut signers = vec![lines[0]["signers"][0].as_str().unwrap().to_owned(), other];
            signers.sort();
            lines[0]["signers"] = json!(signers);
        }),
        ("a text that no record names", |lines| {
            let sha256 = quorate_kernel::entropy::sha256_hex(b"x");
            lines.push(json!({"body": sha256, "text": "x"}));
        }),
        ("a part that says it is one", |lines| lines[0]["runs"] = json!([PLAIN])),
    ];
    for (what, change) in changes {
        let changed = rewritten(&text, |_, lines| change(lines));
        assert_ne!(changed, text, "{what}");
        assert!(read(&changed, &[]).is_err(), "{what}");
    }
    // An erased text may be missing.
    let erased = rewritten(&text, |_, lines| lines.retain(|line| line.get("body").is_none()));
    assert_eq!(read(&erased, &[]).expect("it holds").1, 0);
}

#[tokio::test]
async fn a_run_cannot_speak_for_the_ledger() {
    let theirs = World::empty().await;
    let opened = entry(Kind::RunOpened, json!({"subject": "x"}));
    let released = entry(Kind::Released, json!({"run": "r1"}));
    theirs.append(PLAIN, 0, vec![opened.clone(), released], vec![]).await;
    theirs.store.append_ledger_record(opened, &theirs.ledger_key()).await.expect("an append");
    theirs.seal().await;
    let ours = World::empty().await;
    let refused = ours.import(&theirs.export(&only(PLAIN)).await, &[theirs.trusted()]).await;
    assert!(matches!(refused, Err(ImportError::Conflict { .. })), "{refused:?}");
    let own =
        ours.import(&theirs.export(&only("ledger")).await, &[theirs.trusted()]).await.expect("verified");
    assert!(own.runs.is_empty() && own.skipped_streams.contains("ledger"));
}

#[tokio::test]
async fn csv_has_a_line_for_each_record_and_no_formula() {
    let world = World::full().await;
    let (text, _) = world.export_as(&all(), ExportFormat::Csv).await;
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!(lines.len(), 17, "{text}");
    assert!(lines[0].starts_with("seq,run,n,at,kind,member,"));
    assert!(lines[2].starts_with(
        "2,r0000000000s1,1,2023-11-14T22:13:20.123Z,consultation,m0,r1,answered,,rubric,\"'=m\",1,10,3,40,"
    ));
}

#[tokio::test]
async fn traces_have_a_root_for_each_run() {
    let world = World::full().await;
    let (text, _) = world.export_as(&all(), ExportFormat::Otel).await;
    let spans: Value = serde_json::from_str(&text).unwrap();
    let spans = spans["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
    assert_eq!(spans.len(), 15);
    let roots: Vec<&Value> = spans.iter().filter(|span| span.get("parentSpanId").is_none()).collect();
    assert_eq!(roots.len(), 3);
    for span in &spans {
        let parent = span.get("parentSpanId");
        let root = roots.iter().find(|root| root["traceId"] == span["traceId"]).unwrap();
        assert!(parent.is_none_or(|parent| *parent == root["spanId"]));
        assert!(span["startTimeUnixNano"].is_string() && span["traceId"].as_str().unwrap().len() == 32);
    }
    assert!(text.contains("gen_ai.usage.input_tokens") && !text.contains("quoted"), "no texts");
}
