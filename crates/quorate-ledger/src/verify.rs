//! Verifying: whether the ledger is what it was when it was recorded (D2, D3). Every record is held against its hashes, its
//! run and its place in the tree, every checkpoint against the records, every signature against its key, and every table
//! that follows from the records against these. Nothing is written.
//!
//! Somebody who changes one thing is found by another: a record's text by its successor and the tree, the tree by the
//! checkpoints, these by their keys and by the witness. What was cut off behind the last checkpoint that anybody else has
//! seen, nothing can tell.

mod begin;
mod finding;
mod jobs;
mod kept;
mod log;
mod own;
mod read;
mod row;
mod runs;
mod seals;
mod signatures;
mod skim;
mod tables;
mod tree;
mod walk;
mod witnessed;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::ports::ledger::Error;
use quorate_protocol::Name;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::Store;
use crate::kept::{self as kept_files, Kept};
use crate::merkle::{Frontier, TreeHead};
use crate::note::{Checkpoint, Cosigner, Note};
use crate::signing::run::Authority;
use crate::signing::{Keyring, PublicKey};
use crate::store::Sealed;
use crate::store::engine::{Column, Engine, sql};
use crate::witness::Witness;
use read::{Page, Reader};
use seals::Seals;
use tree::{Growth, Rows};
use walk::Walk;

pub use begin::NoCheckpoint;
pub use finding::{Divergence, Kind, Part};
pub use kept::Rollback;
pub use log::Logged;
pub use witnessed::{Cosigned, Witnessed};

/// How many pages are read ahead.
const AHEAD: usize = 2;
/// How many open runs are named.
const NAMED: usize = 20;

/// What the ledger is held against besides itself.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The ledger's own keys: the one that signs checkpoints, and those that did before.
    pub own: Vec<PublicKey>,
    /// Keys that somebody vouches for: each has to have signed a checkpoint.
    pub given: Vec<PublicKey>,
    /// The keys that may sign runs, with their times; `None` where there is no such list.
    pub keyring: Option<Keyring>,
    /// Keys that are known to have signed runs without being on a list.
    pub signers: Vec<PublicKey>,
    /// A checkpoint that is trusted: only what stands after it is looked at.
    pub since: Option<Since>,
    /// Checkpoints that are kept elsewhere.
    pub witness: Option<Witness>,
    /// What is kept of the last checkpoint that the ledger's own key signed; `None` where nobody looked.
    pub kept: Option<Kept>,
    /// A witness that is asked over HTTP, and the last checkpoint that it signed, as it is kept.
    pub cosigned: Option<(Cosigner, Option<kept_files::Copy>)>,
    /// Whether it is a divergence that nothing is kept, and that there are records that nothing proves.
    pub strict: bool,
    /// The log whose lines are held against the runs.
    pub log: Option<PathBuf>,
}

impl Options {
    pub(crate) fn authority(&self) -> Authority<'_> {
        Authority { keyring: self.keyring.as_ref(), signers: &self.signers }
    }
}

/// A checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// The one over so many records.
    Size(u64),
    /// The one with this number in the ledger's stream.
    Number(u64),
    /// Somebody else's word for one.
    Tree(TreeHead),
}

/// What came of verifying.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What differs, by place in the ledger; not more than a hundred.
    pub divergences: Vec<Divergence>,
    /// How much differs.
    pub found: u64,
    /// Which ledger it is; `None` before its first checkpoint.
    pub origin: Option<String>,
    /// How many records there are and the root over them; `None` where one is missing.
    pub tree: Option<TreeHead>,
    /// After how many records it began.
    pub since: u64,
    /// How many records were looked at, and how many of these have no body any more.
    pub records: u64,
    /// How many of them have no body any more.
    pub erased: u64,
    /// How many runs and other streams these belong to.
    pub streams: u64,
    /// How many of these are signed, and by how many signatures.
    pub signed_runs: u64,
    /// How many signatures over records there were.
    pub signatures: u64,
    /// How many signed runs only their own first record vouches for.
    pub vouched_by_themselves: u64,
    /// How many checkpoints.
    pub checkpoints: u64,
    /// How many of these nobody signed.
    pub unsigned: u64,
    /// How many records the last checkpoint is over.
    pub sealed: u64,
    /// How many records the last signed checkpoint is over.
    pub signed: u64,
    /// How many records stand after the last checkpoint, its own one not counting.
    pub unsealed: u64,
    /// How many records nobody signed, checkpoints aside.
    pub unsigned_records: u64,
    /// How many of these stand behind the last signed checkpoint: who can write the ledger can have added them.
    pub unproven: u64,
    /// How many records of the ledger's own stream nobody signed, where no key is known that should have.
    pub unsigned_own: u64,
    /// How many texts.
    pub texts: u64,
    /// How many runs are open.
    pub open: u64,
    /// Some of them, the first opened first.
    pub open_runs: Vec<Name>,
    /// Whether the ledger's own key signed the last signed checkpoint; `None` where there is no such key or checkpoint.
    pub own_key: Option<bool>,
    /// Whether each of the given keys signed a checkpoint.
    pub given_keys: Vec<bool>,
    /// What came of the witness.
    pub witness: Option<Witnessed>,
    /// The copies of the last checkpoint that the ledger's own key signed; `None` where nobody looked.
    pub kept: Option<Witnessed>,
    /// What the witness that is asked over HTTP signed last.
    pub cosigned: Option<Cosigned>,
    /// Rollbacks that a person accepted, the first one first.
    pub rollbacks: Vec<Rollback>,
    /// What came of the log.
    pub log: Option<Logged>,
    /// How long the records took, without the time that the signatures took.
    pub took: Duration,
    /// How long the signatures took.
    pub signatures_took: Duration,
}

impl Report {
    /// Whether nothing differs.
    pub fn holds(&self) -> bool {
        self.found == 0
    }
}

/// Why nothing can be verified.
#[derive(Debug, thiserror::Error)]
pub enum Unverifiable {
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] Error),
    /// The checkpoint to begin at is not there.
    #[error(transparent)]
    Since(#[from] NoCheckpoint),
}

/// Verifies a ledger.
///
/// # Errors
/// [`Unverifiable`]. Whatever is wrong with what the ledger holds stands in the report.
pub async fn verify(store: &Store, options: Options) -> Result<Report, Unverifiable> {
    let options = Arc::new(options);
    let (mut report, mut walk) = {
        let mut connection = store.writer().await;
        let engine = connection.engine().await.map_err(|error| store.error(error))?;
        engine.begin_to_read().await.map_err(|error| store.error(error))?;
        let verified = in_snapshot(engine, &options).await;
        // Nothing was written: what is not rolled back ends with the connection.
        let _ = engine.raw("ROLLBACK").await;
        verified.map_err(|failed| failed.of(store))?
    };
    if let Some(path) = &options.log {
        report.log = Some(log::check(store, path, &mut walk).await?);
    }
    (report.divergences, report.found) = std::mem::take(&mut walk.findings).into_parts();
    Ok(report)
}

/// As [`Unverifiable`], before it is known which store it was.
enum Failed {
    Store(sqlx::Error),
    Since(NoCheckpoint),
    Walk,
}

impl From<sqlx::Error> for Failed {
    fn from(error: sqlx::Error) -> Self {
        Failed::Store(error)
    }
}

impl Failed {
    fn of(self, store: &Store) -> Unverifiable {
        match self {
            Failed::Store(error) => store.error(error).into(),
            Failed::Since(error) => error.into(),
            Failed::Walk => {
                let what = "what verifies the ledger went away".to_owned();
                Unverifiable::Store(Error::Unavailable { what, source: None })
            }
        }
    }
}

async fn in_snapshot(engine: &mut Engine, options: &Arc<Options>) -> Result<(Report, Walk), Failed> {
    let began = Instant::now();
    // A file of schema 1 has neither.
    let has_signatures = there(engine, "SELECT n FROM signature LIMIT 1").await.is_some_and(|any| any);
    let has_tree = there(engine, "SELECT idx FROM tile LIMIT 1").await.is_some();
    let begin = match &options.since {
        None => begin::at_first(engine, has_tree).await?,
        Some(since) => begin::behind(engine, options, since).await?.map_err(Failed::Since)?,
    };
    let begin::Begin { tree, seals, runs, upper, untrusted } = begin;
    let mut options = Arc::clone(options);
    if untrusted.is_some() {
        options = Arc::new(Options { since: None, ..Options::clone(&options) });
    }
    let since = tree.size();
    let mut walk = Walk::new(Arc::clone(&options), tree, seals, runs);
    let origin = begin::origin(engine).await;
    for tree in
        begin::witness_sizes(&options, origin.as_deref()).chain(untrusted.iter().map(|(tree, _)| *tree))
    {
        if tree.size >= since {
            walk.roots.entry(tree.size).or_default().insert(tree.root);
        }
    }
    if let Some((_, divergence)) = untrusted {
        walk.findings.add(divergence);
    }
    let after = options.since.as_ref().map(|_| i64::try_from(since).unwrap_or(i64::MAX));
    let mut walk = over_records(engine, Reader::after(after, has_tree, has_signatures), walk).await?;
    let texts = over_tables(engine, &mut walk, has_tree, &upper).await;
    let report = ended(&mut walk, since, texts);
    let took = began.elapsed().saturating_sub(walk.jobs.took);
    Ok((Report { took, ..report }, walk))
}

/// Whether a table has any rows; `None` where there is no such table.
async fn there(engine: &mut Engine, statement: &'static str) -> Option<bool> {
    sql(statement).row(engine, &[Column::Int]).await.ok().map(|row| row.is_some())
}

/// Walks over all records: they are read here while those before are looked at on another thread.
async fn over_records(engine: &mut Engine, mut reader: Reader, mut walk: Walk) -> Result<Walk, Failed> {
    let (send, mut pages) = mpsc::channel::<Page>(AHEAD);
    let walking = tokio::task::spawn_blocking(move || {
        while let Some(page) = pages.blocking_recv() {
            walk.page(&page);
        }
        walk
    });
    while let Some(page) = reader.next(engine).await {
        let last = page.broken.is_some();
        if send.send(page).await.is_err() || last {
            break;
        }
    }
    drop(send);
    walking.await.map_err(|_| Failed::Walk)
}

/// Holds the tables against what was walked over. One that cannot be read is said to differ.
async fn over_tables(
    engine: &mut Engine,
    walk: &mut Walk,
    has_tree: bool,
    upper: &BTreeMap<(u32, u64), usize>,
) -> u64 {
    let runs = tables::runs(engine, walk).await;
    let mut missing = read(walk, "run", runs);
    if has_tree {
        let checkpoints = tables::checkpoints(engine, walk).await;
        missing.extend(read(walk, "checkpoint", checkpoints));
        let tree = tables::stored_tree(engine, walk, upper).await;
        read(walk, "tile", tree);
        let strays = tables::stray_signatures(engine, walk).await;
        read(walk, "signature", strays);
        if walk.options.since.is_none() {
            let sets = tables::sets(engine, walk).await;
            read(walk, "held", sets);
        }
    } else if walk.seals.count > 0 {
        let what = "there are checkpoints, and the table of stored hashes is not there";
        walk.findings.add(Divergence::of(Kind::Removed, Part::Tree, what));
    }
    let texts = tables::texts(engine, walk).await;
    let texts = read(walk, "body", texts);
    tables::bodies(walk);
    walk.end_of_records(&missing);
    texts
}

fn read<T: Default>(walk: &mut Walk, table: &str, read: Result<T, sqlx::Error>) -> T {
    read.unwrap_or_else(|error| {
        let what = format!("the table `{table}` cannot be read: {error}");
        walk.findings.add(Divergence::of(Kind::Changed, Part::Index, what));
        T::default()
    })
}

/// What is left to say when everything was looked at.
fn ended(walk: &mut Walk, since: u64, texts: u64) -> Report {
    let options = Arc::clone(&walk.options);
    let vouched_by_themselves = signatures::outsiders(walk);
    signatures::backdated(walk);
    let unsigned_own = owned(walk);
    let witness = options.witness.as_ref().map(|witness| witnessed::check(walk, witness, "the witness"));
    let kept = options.kept.as_ref().map(|kept| kept::check(walk, kept));
    let cosigned = options
        .cosigned
        .as_ref()
        .and_then(|(cosigner, copy)| witnessed::cosigned(walk, cosigner, copy.as_ref()?));
    if options.strict && walk.counts.unproven > 0 {
        let what = format!(
            "{} records behind the last signed checkpoint are not signed, so that nothing proves who wrote them, and --strict \
             asks for that; a crash leaves such records, and `quorate ledger checkpoint` seals them",
            walk.counts.unproven
        );
        let divergence = Divergence::of(Kind::Inserted, Part::Checkpoint, what);
        walk.findings.add(divergence.place(walk.counts.unproven_from).until(walk.place()));
    }
    let own_key = walk.seals.ends_with(&options.own).filter(|_| !options.own.is_empty());
    if own_key == Some(false) {
        let what = "it is not signed by the ledger's own key".to_owned();
        walk.findings.add(walk.seals.about_last(Kind::Changed, what));
    }
    let given_keys: Vec<bool> = options.given.iter().map(|key| walk.seals.has(key)).collect();
    for (key, _) in options.given.iter().zip(&given_keys).filter(|(_, signed)| !**signed) {
        let what = format!("no checkpoint is signed by the given key {}", key.id());
        walk.findings.add(walk.seals.about_last(Kind::Changed, what));
    }
    let tree = walk.tree.head();
    let begin = Growth::new(Frontier::new(), Rows::new());
    std::mem::replace(&mut walk.tree, begin).end(&mut walk.findings);
    let open = walk.open_runs();
    let seals = &walk.seals;
    let own_record = u64::from(seals.origin.is_some());
    Report {
        divergences: Vec::new(),
        found: 0,
        origin: seals.origin.clone(),
        tree,
        since,
        records: walk.counts.records,
        erased: walk.counts.erased,
        streams: walk.runs.len() as u64,
        signed_runs: walk.counts.signed_runs,
        signatures: walk.jobs.records,
        vouched_by_themselves,
        checkpoints: seals.count,
        unsigned: seals.unsigned,
        sealed: seals.size,
        signed: seals.signed_size,
        unsealed: walk.place().saturating_sub(seals.size + own_record),
        unsigned_records: walk.counts.unsigned,
        unproven: walk.counts.unproven,
        unsigned_own,
        texts,
        open: open.len() as u64,
        open_runs: open.iter().take(NAMED).map(|run| Name::from(*run)).collect(),
        own_key,
        given_keys,
        witness,
        kept,
        cosigned,
        rollbacks: std::mem::take(&mut walk.rollbacks),
        log: None,
        took: Duration::ZERO,
        signatures_took: walk.jobs.took,
    }
}

/// What is left to say of the ledger's own stream.
fn owned(walk: &mut Walk) -> u64 {
    let Walk { options, own, seals, jobs, findings, .. } = walk;
    let known: Vec<PublicKey> = options.own.iter().chain(&options.given).copied().collect();
    let unsigned = own.end(seals.signed_size, &known, jobs, findings);
    jobs.run(findings);
    unsigned
}

/// Holds against the rules of verifying what a checkpoint would newly be over: the records behind the last one that was
/// signed. Gives the first that does not hold. Tree, texts and tables are not looked at.
pub(crate) async fn before_sealing(
    engine: &mut Engine,
    options: Options,
    last: Option<&Sealed>,
) -> Result<Option<Divergence>, sqlx::Error> {
    let size = last.map_or(0, |sealed| sealed.tree.size);
    let seals = last.map_or_else(Seals::default, Seals::going_on);
    let runs = begin::going_on(engine, &options, size).await?;
    let after = last.map(|_| i64::try_from(size).unwrap_or(i64::MAX));
    let begun = Growth::new(Frontier::new(), Rows::new());
    let walk = Walk::new(Arc::new(options), begun, seals, runs).standing_at(size);
    let walked = over_records(engine, Reader::after(after, false, true), walk).await;
    let mut walk = walked.map_err(|failed| match failed {
        Failed::Store(error) => error,
        Failed::Since(_) | Failed::Walk => sqlx::Error::WorkerCrashed,
    })?;
    tables::bodies(&mut walk);
    walk.end_of_records(&[]);
    signatures::outsiders(&mut walk);
    owned(&mut walk);
    let (found, _) = std::mem::take(&mut walk.findings).into_parts();
    let looked_at = [Part::Record, Part::Signature, Part::Checkpoint];
    Ok(found.into_iter().find(|one| looked_at.contains(&one.part)))
}

/// What a note says, whoever signed it.
fn checkpoint_of(note: &str) -> Option<Checkpoint> {
    Checkpoint::parse(Note::parse(note.as_bytes()).ok()?.text()).ok()
}
