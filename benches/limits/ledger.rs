//! The ledger by itself: group commit with and without sync beside the disk's own sync, the size of the file, how long a
//! proof from a long ledger takes, and how fast a ledger is held against its seals.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate_kernel::entropy;
use quorate_kernel::ports::ledger::{Append, Durability, Entry, Kind, Ledger as _};
use quorate_ledger::Store;
use quorate_ledger::signing::{ExternalKeys, SecretKey};
use quorate_ledger::verify::{VerifyOptions, VerifyReport, verify};
use quorate_protocol::Name;
use serde_json::{Map, json};

use crate::process::middle;
use crate::table::Measure;
use crate::{Bench, Failure};

/// Why something could not be measured, in a task.
type Broken = Box<dyn std::error::Error + Send + Sync>;

/// How many runs append at once.
const RUNS: usize = 64;
/// How many records they append altogether.
const RECORDS: usize = 64_000;
/// How many barriers are waited for.
const BARRIERS: usize = 200;

pub(super) fn measure(bench: &mut Bench) -> Result<(), Failure> {
    let dir = bench.place.dir("ledger")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (took, bodies) = runtime.block_on(append(&dir.join("written.db"))).map_err(plain)?;
    bench.table.limited(
        format!("{RECORDS} records of {RUNS} runs, one at a time, not synced: records/s"),
        Measure::PerSecond(RECORDS as f64 / took.as_secs_f64()),
        Measure::PerSecond(20_000.0),
    );
    let size = std::fs::metadata(dir.join("written.db"))?.len();
    bench.table.limited(
        "  its file, against 1.6 x the canonical bodies",
        Measure::Memory(size / 1024),
        Measure::Memory(bodies * 16 / 10 / 1024),
    );
    let barrier = runtime.block_on(barriers(&dir.join("synced.db"))).map_err(plain)?;
    let sync = sync(&dir.join("floor"))?;
    bench.table.limited(
        format!("a barrier of {RUNS} runs, against 1.3 x one sync of as much"),
        Measure::Time(barrier),
        Measure::Time(sync.mul_f64(1.3)),
    );
    let long = runtime.block_on(long(&dir.join("long.db"))).map_err(plain)?;
    bench.table.limited(
        format!("a proof from {LONG} records"),
        Measure::Time(long.proof),
        Measure::Time(Duration::from_millis(5)),
    );
    bench.table.limited(
        "verifying these, chain and tree: records/s",
        Measure::PerSecond(long.records as f64 / long.verified.records_duration.as_secs_f64()),
        Measure::PerSecond(100_000.0),
    );
    let signed = runtime.block_on(signed(&dir.join("signed.db"))).map_err(plain)?;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let each = signed.signatures.count as f64 / signed.signatures_duration.as_secs_f64() / cores as f64;
    bench.table.limited(
        format!("verifying signatures on {cores} cores: signatures/s a core"),
        Measure::PerSecond(each),
        Measure::PerSecond(20_000.0),
    );
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

/// How many records a long ledger has, and how many of them a run has.
const LONG: u64 = 1_000_000;
const RUN: u64 = 1_000;
/// How many signed records are verified.
const SIGNED: u64 = 40_000;

/// A long ledger.
struct Long {
    records: u64,
    /// The median of proving one record.
    proof: Duration,
    verified: VerifyReport,
}

async fn long(path: &Path) -> Result<Long, Broken> {
    let store = Store::open(path).await?.store;
    let runs = fill(&store, LONG, None).await?;
    let key = Arc::new(SecretKey::generate());
    store.seal(&[Arc::clone(&key)], 1_790_000_000_000, false, Durability::Synced).await?;
    let mut all = Vec::new();
    for (at, run) in runs.iter().enumerate().step_by(runs.len() / 41) {
        let start = Instant::now();
        store.prove(run, Some(at as u64 * 7 % RUN), &[]).await?;
        all.push(start.elapsed());
    }
    let verified = verify(&store, VerifyOptions::default()).await?;
    let records = verified.records;
    held(&verified)?;
    store.close().await;
    Ok(Long { records, proof: middle(all), verified })
}

async fn signed(path: &Path) -> Result<VerifyReport, Broken> {
    let store = Store::open(path).await?.store;
    let key = Arc::new(SecretKey::generate());
    fill(&store, SIGNED, Some(&key)).await?;
    let outside = ExternalKeys { keyring: None, signers: vec![key.public()] };
    let options = VerifyOptions { outside, ..VerifyOptions::default() };
    let verified = verify(&store, options).await?;
    held(&verified)?;
    store.close().await;
    Ok(verified)
}

fn held(report: &VerifyReport) -> Result<(), Broken> {
    match report.divergences.first() {
        None => Ok(()),
        Some(first) => Err(format!("a sound ledger does not verify: {first:?}").into()),
    }
}

/// Fills a ledger with runs.
async fn fill(store: &Store, records: u64, key: Option<&Arc<SecretKey>>) -> Result<Vec<Name>, Broken> {
    let mut runs = Vec::new();
    for _ in 0..records / RUN {
        let run = entropy::run_id();
        if let Some(key) = key {
            store.sign_run(&run, Arc::clone(key));
        }
        let mut entries: Vec<Entry> = (0..RUN as usize).map(entry).collect();
        entries[0].kind = Kind::RunOpened;
        let append = Append {
            run: run.clone(),
            from: 0,
            entries,
            bodies: Vec::new(),
            durability: Durability::Written,
        };
        store.append(append).await?;
        runs.push(run);
    }
    Ok(runs)
}

fn plain(error: Broken) -> Failure {
    error.to_string().into()
}

/// A consultation as they are: an answer of some hundred bytes.
fn entry(at: usize) -> Entry {
    let words = "a claim without a source near it, which a reader would ask for; ".repeat(7 + at % 6);
    let data = json!({
        "invocation": "r1/skeptic", "member": "skeptic", "status": "answered", "attempts": 1,
        "answer": {"would_block": true, "irreducible": false, "notes": words},
        "prompt_sha256": "d367148f2c81ae947f4fb94a9dcac68057ab40b74e42d46c3c9fef0359ddc072",
        "spent": {"calls": 1, "ms": 1200},
    });
    let data = data.as_object().cloned().unwrap_or_else(Map::new);
    Entry { kind: Kind::Consultation, at_ms: 1_790_000_000_000, data }
}

/// All runs at once, each record by itself; also how many bytes the bodies have.
async fn append(path: &Path) -> Result<(Duration, u64), Broken> {
    let store = Arc::new(Store::open(path).await?.store);
    let start = Instant::now();
    let tasks = (0..RUNS).map(|_| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let run = entropy::run_id();
            let mut next = 0;
            for at in 0..RECORDS / RUNS {
                next = store.append(Append::one(&run, next, entry(at), Durability::Written)).await?;
            }
            Ok::<_, Broken>(())
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await??;
    }
    let took = start.elapsed();
    let bodies = store.stats(i64::MAX).await?.data_bytes;
    if let Some(store) = Arc::into_inner(store) {
        store.close().await;
    }
    Ok((took, bodies))
}

/// The median of a barrier: every run appends one record, and waits until it is safe.
async fn barriers(path: &Path) -> Result<Duration, Broken> {
    let store = Arc::new(Store::open(path).await?.store);
    let runs: Vec<_> = (0..RUNS).map(|_| entropy::run_id()).collect();
    let mut all = Vec::with_capacity(BARRIERS);
    for at in 0..BARRIERS {
        let start = Instant::now();
        let appends = runs.iter().map(|run| {
            let append = Append::one(run, at as u64, entry(at), Durability::Synced);
            let store = Arc::clone(&store);
            async move { store.append(append).await }
        });
        for done in futures::future::join_all(appends).await {
            done?;
        }
        all.push(start.elapsed());
    }
    Ok(middle(all))
}

/// The median of one write of as many bytes as a barrier's, and one sync.
fn sync(path: &Path) -> Result<Duration, Failure> {
    let mut file = File::create(path)?;
    let bytes = vec![7_u8; RUNS * 1200];
    let mut all = Vec::with_capacity(BARRIERS);
    for _ in 0..BARRIERS {
        let start = Instant::now();
        file.write_all(&bytes)?;
        file.sync_data()?;
        all.push(start.elapsed());
    }
    Ok(middle(all))
}
