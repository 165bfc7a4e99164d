//! A ledger to export from: signed and unsigned runs, another stream, texts, an erased body.
#![allow(dead_code, reason = "each test binary uses some of it")]

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::{Append, Body, Durability, Entry, Kind, Ledger as _};
use quorate_ledger::Store;
use quorate_ledger::export::{ExportFormat, ExportSummary, Selection};
use quorate_ledger::import::{ImportError, ImportOptions, ImportSummary};
use quorate_ledger::keys::{KeyDirectory, KeyPurpose};
use quorate_ledger::prove::TrustedKey;
use quorate_ledger::signing::{PublicKey, SecretKey};
use quorate_ledger::store::CheckpointRecord;
use quorate_protocol::{Json, Name};
use serde_json::json;
use sqlx::{Connection as _, SqliteConnection};
use tempfile::TempDir;

pub(crate) const SIGNED: &str = "r0000000000s1";
pub(crate) const PLAIN: &str = "r0000000000p1";
pub(crate) const TEXT: &str = "The meeting moved to Tuesday at ten. \u{1f4c5}\n";

/// A ledger in a directory of its own.
pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) store: Store,
    pub(crate) signer: Arc<SecretKey>,
}

impl World {
    /// An empty ledger.
    pub(crate) async fn empty() -> World {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::open(&dir.path().join("ledger.db")).await.expect("it opens").store;
        World { dir, store, signer: Arc::new(SecretKey::from_seed(&[7; 32])) }
    }

    /// A ledger with a signed run, an unsigned one, a stream, and a checkpoint over them.
    pub(crate) async fn full() -> World {
        let world = World::empty().await;
        world.store.sign_run(&SIGNED.into(), Arc::clone(&world.signer));
        let audit = json!({"signing": "required", "keyring": [world.signer.public().to_string()]});
        world.run(SIGNED, Some(audit), 3).await;
        world.run(PLAIN, None, 5).await;
        world
            .append("overlays/advice", 0, vec![entry(Kind::OverlayAdded, json!({"id": "o1"}))], vec![])
            .await;
        world.seal().await;
        world
    }

    /// A run with this number of consultations.
    pub(crate) async fn run(&self, run: &str, audit: Option<Json>, consultations: u64) {
        let sha256 = sha256_hex(TEXT.as_bytes());
        let mut opened = json!({
            "subject": "draft.md", "artifact_type": "post", "artifact_sha256": sha256, "log_path": "/nowhere/log",
            "inputs": [{"kind": "artifact", "name": "draft.md", "sha256": sha256}],
            "fingerprint": {"council": "c1"},
        });
        if let Some(audit) = audit {
            opened["audit"] = audit;
        }
        let mut entries = vec![entry(Kind::RunOpened, opened)];
        for at in 0..consultations {
            let spent = json!({"calls": 1, "ms": 40, "tokens_in": 10 + at, "tokens_out": 3});
            let said = json!({
                "member": format!("m{at}"), "step": "r1", "status": "answered", "executor": "rubric", "model": "=m",
                "spent": spent, "answer": {"score": 2.5, "text": "ü \"quoted\" \u{2028} \u{1}"},
            });
            entries.push(entry(Kind::Consultation, said));
        }
        entries.push(entry(Kind::Outcome, json!({"verdict": "SHIP"})));
        entries.push(entry(Kind::RunEnded, json!({"logged": true})));
        let body = Body { sha256, text: TEXT.into() };
        self.append(run, 0, entries, vec![body]).await;
    }

    pub(crate) async fn append(&self, run: &str, from: u64, entries: Vec<Entry>, bodies: Vec<Body>) {
        let run: Name = run.into();
        let append = Append { run, from, entries, bodies, durability: Durability::Written };
        self.store.append(append).await.expect("appended");
    }

    pub(crate) async fn seal(&self) -> CheckpointRecord {
        self.store.seal(&[self.ledger_key()], 5_000, false, Durability::Synced).await.expect("sealed")
    }

    pub(crate) fn ledger_key(&self) -> Arc<SecretKey> {
        let keys = KeyDirectory::new(self.dir.path());
        Arc::new(keys.load(KeyPurpose::Ledger).expect("readable").expect("made with the ledger"))
    }

    pub(crate) fn trusted(&self) -> TrustedKey {
        TrustedKey::Public(self.ledger_key().public())
    }

    pub(crate) fn signers(&self) -> [PublicKey; 1] {
        [self.signer.public()]
    }

    pub(crate) async fn export(&self, selection: &Selection) -> String {
        self.export_as(selection, ExportFormat::Jsonl).await.0
    }

    pub(crate) async fn export_as(
        &self,
        selection: &Selection,
        form: ExportFormat,
    ) -> (String, ExportSummary) {
        let mut out = Vec::new();
        let written = self.store.export(selection, form, &self.signers(), &mut out).await.expect("exported");
        (String::from_utf8(out).expect("UTF-8"), written)
    }

    pub(crate) async fn import(
        &self,
        file: &str,
        trusted: &[TrustedKey],
    ) -> Result<ImportSummary, ImportError> {
        let (trusted, key) = (trusted.to_vec(), Some(self.ledger_key()));
        let terms = ImportOptions { trusted, key, at_ms: 9_000, ..ImportOptions::default() };
        self.store.import(|| Ok(Cursor::new(file.as_bytes().to_vec())), &terms).await
    }

    /// Executes statements without the program.
    pub(crate) async fn sql(&self, statement: &'static str) {
        let mut sqlite = sqlite(&self.dir.path().join("ledger.db")).await;
        sqlx::raw_sql(statement).execute(&mut sqlite).await.expect("it is done");
        sqlite.close().await.expect("it closes");
    }
}

pub(crate) async fn sqlite(path: &Path) -> SqliteConnection {
    SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.expect("it opens")
}

pub(crate) fn entry(kind: Kind, data: Json) -> Entry {
    let Json::Object(data) = data else { panic!("an object") };
    Entry { kind, at_ms: 1_700_000_000_123, data }
}
