//! A small ledger with one of everything: two interleaved runs, another stream, a signed run, and four checkpoints.
//! Each test changes a copy of the file.

#![allow(unreachable_pub, reason = "the tests beside it use it")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_kernel::canonical;
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::{Append, Body, Durability, Entry, Kind, Ledger as _, PlaybookEvent};
use quorate_ledger::record::PreparedEntry;
use quorate_ledger::signing::{SecretKey, SigningContext};
use quorate_ledger::store::address::StoreAddress;
use quorate_ledger::verify::{Divergence, DivergenceKind, VerifyOptions, VerifyReport, verify};
use quorate_ledger::witness::Witness;
use quorate_ledger::{Store, keys, merkle, record, witness};
use serde_json::{Map, Value, json};
use sqlx::{AssertSqlSafe, Connection as _, Row as _, SqliteConnection};

/// The runs, in the order in which they are opened; the last one is signed.
pub const A: &str = "raaaaaaaaaaaa";
pub const B: &str = "rbbbbbbbbbbbb";
pub const C: &str = "rcccccccccccc";
/// The positions of their records. Those in between belong to other streams.
pub const SEQS: [(&str, &[u64]); 5] = [
    (A, &[1, 2, 5, 7, 8, 9]),
    (B, &[3, 4, 6, 11, 12, 13]),
    ("playbooks", &[15, 16, 17]),
    (C, &[18, 19, 20, 21, 22, 23]),
    ("ledger", &[10, 14, 24, 25]),
];

/// The text that the runs review.
const TEXT: &str = "What is reviewed.";

/// A ledger's directory.
pub struct World {
    pub dir: tempfile::TempDir,
}

/// The time of all records.
pub const AT_MS: i64 = 1_795_000_000_000;

pub fn entry(kind: Kind, data: Value) -> Entry {
    Entry { kind, at_ms: AT_MS, data: quorate_kernel::attempts::object(data) }
}

/// The records of a review.
pub fn review(audit: Option<Value>) -> Vec<Entry> {
    let sha256 = sha256_hex(TEXT.as_bytes());
    let mut opened = json!({
        "protocol": "council/1", "subject": "draft.md", "artifact_type": "post", "artifact_sha256": sha256,
        "fingerprint": {"council": "c0"}, "log_path": "/nowhere/council_log.jsonl",
        "inputs": [{"kind": "artifact", "name": "draft.md", "sha256": sha256}],
    });
    if let Some(audit) = audit {
        opened["audit"] = audit;
    }
    vec![
        entry(Kind::RunOpened, opened),
        entry(Kind::RunIntent, json!({"invocations": ["r1/skeptic"]})),
        entry(Kind::Consultation, json!({"invocation": "r1/skeptic", "text": "It will do."})),
        entry(Kind::Rule, json!({"rule": "policy"})),
        entry(Kind::Outcome, json!({"verdict": "SHIP"})),
        entry(Kind::RunEnded, json!({"logged": true})),
    ]
}

pub async fn append(store: &Store, run: &str, from: u64, entries: &[Entry]) {
    let sha256 = sha256_hex(TEXT.as_bytes());
    let append = Append {
        run: run.into(),
        from,
        entries: entries.to_vec(),
        bodies: if from == 0 { vec![Body { sha256, text: TEXT.into() }] } else { Vec::new() },
        durability: Durability::Written,
    };
    store.append(append).await.expect("appended");
}

impl World {
    /// Creates it.
    pub async fn new() -> World {
        let world = World { dir: tempfile::tempdir().expect("a directory") };
        let store = Store::open(&world.db()).await.expect("it opens").store;
        let (one, other) = (review(None), review(None));
        append(&store, A, 0, &one[..2]).await;
        append(&store, B, 0, &other[..2]).await;
        append(&store, A, 2, &one[2..3]).await;
        append(&store, B, 2, &other[2..3]).await;
        append(&store, A, 3, &one[3..]).await;
        world.seal(&store, false).await;
        append(&store, B, 3, &other[3..]).await;
        world.seal(&store, false).await;
        let event = |n: u64| entry(Kind::Playbook(PlaybookEvent::Composed), json!({"n": n}));
        append(&store, "playbooks", 0, &[event(0), event(1), event(2)]).await;
        let key = Arc::new(SecretKey::from_seed(&[5; 32]));
        let audit = json!({
            "signing": "required", "signer": key.public().id().to_string(), "governed": false,
            "keyring": [key.public().to_string()], "retention_days": null, "keep_consultations": true,
        });
        store.sign_run(&C.into(), key);
        append(&store, C, 0, &review(Some(audit))).await;
        world.seal(&store, false).await;
        world.seal(&store, true).await;
        store.close().await;
        world
    }

    /// A copy of it.
    pub fn copy(&self) -> World {
        let copy = World { dir: tempfile::tempdir().expect("a directory") };
        for file in ["ledger.db", "witness.txt"] {
            std::fs::copy(self.dir.path().join(file), copy.dir.path().join(file)).expect("copied");
        }
        let keys = copy.dir.path().join("keys");
        std::fs::create_dir(&keys).expect("made");
        for entry in std::fs::read_dir(self.dir.path().join("keys")).expect("listed") {
            let entry = entry.expect("an entry");
            std::fs::copy(entry.path(), keys.join(entry.file_name())).expect("copied");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o700)).expect("closed");
        }
        copy
    }

    pub fn db(&self) -> PathBuf {
        self.dir.path().join("ledger.db")
    }

    pub fn witness_path(&self) -> PathBuf {
        self.dir.path().join("witness.txt")
    }

    pub fn key(&self) -> Arc<SecretKey> {
        let keys = keys::KeyDirectory::new(self.dir.path());
        Arc::new(keys.load(keys::KeyPurpose::Ledger).expect("readable").expect("it is there"))
    }

    /// Seals it with its own key and adds the checkpoint to the witness.
    pub async fn seal(&self, store: &Store, again: bool) {
        let sealed =
            store.seal(&[self.key()], 1_795_000_000_000, again, Durability::Synced).await.expect("sealed");
        witness::append_to_witness(&self.witness_path(), &sealed.note.expect("signed")).expect("taken");
    }

    /// Executes statements on it.
    pub async fn sql(&self, statements: &str) {
        let mut sqlite = self.sqlite().await;
        sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(&mut sqlite).await.expect(statements);
        sqlite.close().await.expect("closed");
    }

    pub async fn sqlite(&self) -> SqliteConnection {
        SqliteConnection::connect(&format!("sqlite://{}", self.db().display())).await.expect("it opens")
    }

    /// The reference for verification: its own key.
    pub fn options(&self) -> VerifyOptions {
        VerifyOptions { ledger_keys: vec![self.key().public()], ..VerifyOptions::default() }
    }

    /// As [`World::options`], with the witness.
    pub fn witnessed(&self) -> VerifyOptions {
        let text = std::fs::read_to_string(self.witness_path()).expect("read");
        VerifyOptions { witness: Some(Witness::parse(&text)), ..self.options() }
    }

    pub async fn verify(&self, options: VerifyOptions) -> VerifyReport {
        let store = Store::open_read_only(&StoreAddress::from(&*self.db())).await.expect("it opens");
        let report = verify(&store, options).await.expect("verified");
        store.close().await;
        report
    }

    /// The first divergence.
    pub async fn first_divergence(&self, options: VerifyOptions) -> Divergence {
        let report = self.verify(options).await;
        assert!(report.divergence_count >= report.divergences.len() as u64);
        report.divergences.into_iter().next().expect("something differs")
    }

    /// Rewrites a run from a record on: its data, and all later hashes of the run.
    pub async fn rewrite(&self, run: &str, from: u64, change: impl Fn(&mut Map<String, Value>)) {
        let mut sqlite = self.sqlite().await;
        let rows = sqlx::query("SELECT n, head, data FROM record WHERE run = ? ORDER BY n");
        let rows = rows.bind(run).fetch_all(&mut sqlite).await.expect("rows");
        let mut prev = None;
        for row in rows {
            let (n, head, data): (i64, String, String) = (row.get(0), row.get(1), row.get(2));
            let mut head: Map<String, Value> = serde_json::from_str(&head).expect("a head");
            let mut data: Map<String, Value> = serde_json::from_str(&data).expect("data");
            if n.unsigned_abs() == from {
                change(&mut data);
            }
            let data = canonical::object(&data);
            head.insert("data_sha256".into(), json!(sha256_hex(data.as_bytes())));
            head.insert("prev".into(), json!(prev));
            let head = canonical::object(&head);
            prev = Some(record::leaf(&head));
            let update = sqlx::query("UPDATE record SET head = ?, data = ? WHERE run = ? AND n = ?");
            update.bind(head).bind(data).bind(run).bind(n).execute(&mut sqlite).await.expect("written");
        }
        sqlite.close().await.expect("closed");
    }

    /// Appends a record without the program, signed or unsigned. Returns its number.
    pub async fn forge(&self, run: &str, entry: Entry, key: Option<&SecretKey>) -> u64 {
        let mut sqlite = self.sqlite().await;
        let last = sqlx::query("SELECT n, head FROM record WHERE run = ? ORDER BY n DESC LIMIT 1").bind(run);
        let last = last.fetch_optional(&mut sqlite).await.expect("it answers");
        let n = last.as_ref().map_or(0, |row| row.get::<i64, _>(0).unsigned_abs() + 1);
        let prev = last.map(|row| record::leaf(row.get(1)));
        let forged = PreparedEntry::prepare(entry).expect("an entry");
        let forged = forged.encode(run, n, prev.as_deref()).expect("sealed");
        let number = i64::try_from(n).expect("small");
        let insert = sqlx::query("INSERT INTO record (run, n, kind, head, data) VALUES (?, ?, ?, ?, ?)");
        let insert = insert.bind(run).bind(number).bind(forged.kind).bind(&forged.head).bind(&forged.data);
        insert.execute(&mut sqlite).await.expect("written");
        if let Some(key) = key {
            let signature =
                key.sign(SigningContext::RECORD, &merkle::leaf(forged.head.as_bytes())).to_string();
            let insert = sqlx::query("INSERT INTO signature VALUES (?, ?, ?, ?)").bind(run).bind(number);
            let insert = insert.bind(key.public().id().to_string()).bind(signature);
            insert.execute(&mut sqlite).await.expect("written");
        }
        sqlite.close().await.expect("closed");
        n
    }

    /// Rewrites the stored leaves of all records that a checkpoint covers.
    pub async fn rewrite_tiles(&self, size: usize) {
        let mut sqlite = self.sqlite().await;
        let rows =
            sqlx::query("SELECT head FROM record ORDER BY seq").fetch_all(&mut sqlite).await.expect("rows");
        let leaves = rows.iter().take(size).map(|row| merkle::leaf(row.get::<String, _>(0).as_bytes()));
        let hashes: Vec<u8> = leaves.flatten().collect();
        let update = sqlx::query("UPDATE tile SET hashes = ? WHERE level = 0 AND idx = 0").bind(hashes);
        update.execute(&mut sqlite).await.expect("written");
        sqlite.close().await.expect("closed");
    }
}

/// Whether a divergence has this kind and is about this record at this position.
#[track_caller]
pub fn assert_divergence(found: &Divergence, kind: DivergenceKind, run: &str, n: u64) {
    let places = SEQS.iter().find(|(name, _)| *name == run).expect("known").1;
    let place = places.get(usize::try_from(n).expect("small")).copied();
    assert_eq!(
        (found.kind, found.run.as_deref(), found.n, found.seq),
        (kind, Some(run), Some(n), place),
        "{found}"
    );
}

/// The position of a record.
pub fn seq_of(run: &str, n: usize) -> u64 {
    SEQS.iter().find(|(name, _)| *name == run).expect("known").1[n]
}

/// The hash of a file.
pub fn sha256(path: &Path) -> String {
    sha256_hex(&std::fs::read(path).expect("read"))
}
