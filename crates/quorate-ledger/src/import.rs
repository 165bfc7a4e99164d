//! Taking in runs from another ledger's export: everything is verified first, then what this ledger does not have is
//! merged in one transaction, byte for byte as it was.
//!
//! A run that was imported before gets what follows its last record. A run that this ledger recorded itself gets nothing
//! from elsewhere: a longer one refuses the whole file, and so does one that contradicts what is here.
//! Streams that are no runs (overlays, playbooks, conversations, the ledger's own) belong to the ledger that they are in
//! and are not merged.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

use quorate_kernel::ports::ledger::{Durability, Entry, Error, Kind};
use quorate_protocol::{Name, nesting};
use serde_json::json;

use crate::Store;
use crate::export::read::{self, Flaw, Reader};
use crate::export::wire::{End, Header};
use crate::prove::{Checked, Item, Trusted};
use crate::signing::{PublicKey, SecretKey};
use crate::store::STREAM;
use crate::store::engine::Engine;
use crate::store::merge;

/// Whom an import trusts, and when it happens.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// The keys of which one has to have signed the export's checkpoint.
    pub trusted: &'a [Trusted],
    /// The keys of which one has to have signed each record that is signed; any, where there is none.
    pub signers: &'a [PublicKey],
    /// The ledger's key, which signs the record of what was merged.
    pub key: Option<&'a SecretKey>,
    /// What time it is, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Whether nothing is to be written.
    pub dry_run: bool,
}

/// An export that was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Its first line.
    pub header: Header,
    /// How many lines of each kind it has.
    pub counted: End,
    /// The key that somebody vouched for.
    pub key: String,
    /// SHA-256 of the file.
    pub file_sha256: String,
}

/// What was merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The export.
    pub verified: Verified,
    /// How many records of each run are new here.
    pub runs: BTreeMap<String, u64>,
    /// How many runs were here as they are.
    pub known: u64,
    /// Streams that are no runs.
    pub passed_over: BTreeSet<String>,
}

/// Why nothing was merged.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The export does not hold.
    #[error(transparent)]
    Flaw(#[from] Flaw),
    /// It holds, and nobody vouched for who signed it.
    #[error("nobody vouched for the key that signed it")]
    Unvouched {
        /// The keys that signed it; none where nobody did.
        keys: Vec<String>,
    },
    /// It contradicts what is here.
    #[error("{id}: {what}")]
    Contradicts {
        /// The record.
        id: String,
        /// How.
        what: String,
    },
    /// The ledger does not answer.
    #[error(transparent)]
    Ledger(#[from] Error),
}

/// Verifies an export as a whole.
///
/// # Errors
/// [`Refused`], never [`Refused::Contradicts`].
pub fn verify(input: impl BufRead, terms: &Terms<'_>) -> Result<Verified, Refused> {
    let mut reader = Reader::open(input, terms.signers)?;
    while reader.entry()?.is_some() {}
    verified(&reader, terms)
}

/// What a reader that has come to the end has verified.
fn verified<R: BufRead>(reader: &Reader<R>, terms: &Terms<'_>) -> Result<Verified, Refused> {
    let unvouched = || Refused::Unvouched { keys: reader.header().keys.clone() };
    let key = reader.vouched(terms.trusted).ok_or_else(unvouched)?;
    let file_sha256 = reader.file_sha256().ok_or_else(unvouched)?.to_owned();
    Ok(Verified { header: reader.header().clone(), counted: reader.counted().clone(), key, file_sha256 })
}

/// What [`Store::import`] would merge into a ledger that is not there yet. Nothing is made.
///
/// # Errors
/// [`Refused`], never [`Refused::Ledger`].
pub async fn into_nothing(input: impl BufRead, terms: &Terms<'_>) -> Result<Imported, Refused> {
    let mut reader = Reader::open(input, terms.signers)?;
    let mut merging = Merging::default();
    merging.all(None, &mut reader, true).await.map_err(|error| match error {
        Stopped::Refused(refused) => refused,
        Stopped::Store(error) => {
            Refused::Ledger(Error::Unavailable { what: error.to_string(), source: None })
        }
    })?;
    merging.done(&reader, terms)
}

impl Store {
    /// Verifies an export and then merges it. `open` opens the file, twice: what is merged is verified again while it is
    /// read, so that a file that changes in between changes nothing here.
    ///
    /// # Errors
    /// [`Refused`]; then nothing was written.
    pub async fn import<R: BufRead + Send>(
        &self,
        open: impl Fn() -> std::io::Result<R>,
        terms: &Terms<'_>,
    ) -> Result<Imported, Refused> {
        verify(open().map_err(Flaw::Read)?, terms)?;
        let mut reader = Reader::open(open().map_err(Flaw::Read)?, terms.signers)?;
        let mut connection = self.writer().await;
        let mut merging = Merging::default();
        if terms.dry_run {
            let engine = connection.engine().await.map_err(|error| self.error(error))?;
            merging.all(Some(engine), &mut reader, true).await.map_err(|error| self.refused(error))?;
            return merging.done(&reader, terms);
        }
        let mut transaction =
            connection.begin(Durability::Synced).await.map_err(|error| self.error(error))?;
        let engine = transaction.engine();
        merging.all(Some(engine), &mut reader, false).await.map_err(|error| self.refused(error))?;
        let imported = merging.done(&reader, terms)?;
        if !imported.runs.is_empty() {
            let entry = entry(&imported, &merging.erased, terms.at_ms);
            let runs = imported.runs.keys().map(|run| Name::from(run.as_str()));
            let key = terms.key.ok_or_else(|| Error::NoSigningKey { run: STREAM.into() })?;
            let written = merge::record(&mut transaction, runs.collect(), entry, key).await;
            written.map_err(|error| self.error(error))??;
            transaction.commit().await.map_err(|error| self.error(error))?;
        }
        Ok(imported)
    }

    fn refused(&self, error: Stopped) -> Refused {
        match error {
            Stopped::Refused(refused) => refused,
            Stopped::Store(error) => Refused::Ledger(self.error(error)),
        }
    }
}

/// The record of an import.
fn entry(imported: &Imported, erased: &BTreeMap<String, Vec<u64>>, at_ms: i64) -> Entry {
    let Verified { header, key, file_sha256, .. } = &imported.verified;
    let data = json!({
        "runs": imported.runs.keys().collect::<Vec<_>>(),
        "records": imported.runs.values().sum::<u64>(),
        "erased": erased,
        "origin": header.origin,
        "size": header.size,
        "root": header.root,
        "note": header.note,
        "keys": header.keys,
        "vouched": key,
        "file_sha256": file_sha256,
    });
    Entry { kind: Kind::Imported, at_ms, data: quorate_kernel::consultation::object(data) }
}

/// Why merging stopped.
enum Stopped {
    Refused(Refused),
    Store(sqlx::Error),
}

impl From<sqlx::Error> for Stopped {
    fn from(error: sqlx::Error) -> Self {
        Stopped::Store(error)
    }
}

impl From<Flaw> for Stopped {
    fn from(error: Flaw) -> Self {
        Stopped::Refused(error.into())
    }
}

/// A merge under way.
#[derive(Default)]
struct Merging {
    /// What is known of the runs of the file.
    runs: BTreeMap<String, Here>,
    /// Records whose bodies their ledger had erased, by run.
    erased: BTreeMap<String, Vec<u64>>,
    /// The run of the last record, where texts that it names are to be kept.
    keeps: bool,
    /// What is not written yet.
    waiting: merge::Waiting,
}

/// What is here of a run.
enum Here {
    /// It is no run: it is not merged.
    Stream,
    /// A run.
    Run {
        /// How many records were here before.
        had: u64,
        /// Its last record here: its leaf, and whether it is signed. Nothing where there is none.
        last: Option<merge::End>,
        /// Whether this ledger recorded it itself: then nobody else adds to it.
        own: bool,
        /// How many came.
        new: u64,
    },
}

impl Merging {
    /// Takes all of a file. Without an engine there is no ledger, and all is new.
    async fn all<R: BufRead>(
        &mut self,
        mut engine: Option<&mut Engine>,
        reader: &mut Reader<R>,
        dry: bool,
    ) -> Result<(), Stopped> {
        while let Some(entry) = reader.entry()? {
            match entry {
                read::Entry::Record(item, checked) => {
                    self.record(engine.as_deref_mut(), &item, &checked, dry).await?;
                }
                read::Entry::Body { sha256, text } => {
                    if let Some(engine) = engine.as_deref_mut()
                        && self.keeps
                        && !dry
                    {
                        merge::body(engine, &sha256, &text).await?;
                    }
                }
            }
        }
        if let Some(engine) = engine {
            self.waiting.write(engine).await?;
        }
        Ok(())
    }

    async fn record(
        &mut self,
        mut engine: Option<&mut Engine>,
        item: &Item,
        record: &Checked,
        dry: bool,
    ) -> Result<(), Stopped> {
        let head = &record.head;
        let contradicts = |what: String| {
            let id = format!("{}/{}", head.run, head.n);
            Stopped::Refused(Refused::Contradicts { id, what })
        };
        self.keeps = false;
        if !self.runs.contains_key(&head.run) {
            let here = Here::of(engine.as_deref_mut(), record).await?;
            self.runs.insert(head.run.clone(), here);
        }
        let Some(Here::Run { had, last, own, new }) = self.runs.get_mut(&head.run) else { return Ok(()) };
        if head.n < *had {
            let ours = match engine {
                Some(engine) => merge::head(engine, &head.run, head.n).await?,
                None => None,
            };
            return match ours {
                Some(ours) if ours == item.head => Ok(()),
                _ => Err(contradicts("this ledger has another record under this number".into())),
            };
        }
        if *own {
            let what = format!(
                "this ledger recorded the run itself and has {had} records of it, and nobody else adds to it"
            );
            return Err(contradicts(what));
        }
        if head.n != *had + *new {
            let what = format!(
                "this ledger has {had} records of the run, and record {} is not in the file",
                *had + *new
            );
            return Err(contradicts(what));
        }
        fits(record).map_err(contradicts)?;
        if let Some(end) = last
            && *new == 0
        {
            if head.prev.as_deref() != Some(&end.leaf) {
                return Err(contradicts(
                    "it does not follow the last record that this ledger has of the run".into(),
                ));
            }
            if end.signed == record.signers.is_empty() {
                return Err(contradicts("the run is signed in one of the two ledgers alone".into()));
            }
        }
        *new += 1;
        self.keeps = true;
        if item.data.is_none() {
            self.erased.entry(head.run.clone()).or_default().push(head.n);
        }
        if let Some(engine) = engine
            && !dry
        {
            self.waiting.add(engine, item, record).await?;
        }
        Ok(())
    }

    fn done<R: BufRead>(&self, reader: &Reader<R>, terms: &Terms<'_>) -> Result<Imported, Refused> {
        let verified = verified(reader, terms)?;
        let (mut runs, mut passed_over, mut known) = (BTreeMap::new(), BTreeSet::new(), 0);
        for (run, here) in &self.runs {
            match here {
                Here::Stream => drop(passed_over.insert(run.clone())),
                Here::Run { new: 0, .. } => known += 1,
                Here::Run { new, .. } => drop(runs.insert(run.clone(), *new)),
            }
        }
        Ok(Imported { verified, runs, known, passed_over })
    }
}

impl Here {
    async fn of(engine: Option<&mut Engine>, first: &Checked) -> Result<Here, sqlx::Error> {
        let head = &first.head;
        // A stream of the host's has a name of its own; a run's is an id, which names files as well.
        let letters = |letter: u8| {
            letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, b'-' | b'_')
        };
        let is_id = head.run != STREAM && head.run.len() <= 64 && head.run.bytes().all(letters);
        let begins = head.kind == Kind::RunOpened.as_str();
        let (mut last, mut known) = (None, merge::Known::default());
        if let Some(engine) = engine.filter(|_| is_id) {
            last = merge::end(engine, &head.run).await?;
            known = merge::known(engine, &head.run).await?;
        }
        let is_run = match (&last, head.n) {
            (Some(_), _) => known.is_run,
            (None, 0) => begins,
            // It is not here, and the file has no beginning of it: the gap refuses it.
            (None, _) => {
                head.run.len() == quorate_kernel::entropy::run_id().len() && head.run.starts_with('r')
            }
        };
        Ok(match is_id && is_run {
            true => {
                let (had, own) =
                    (last.as_ref().map_or(0, |last| last.next), last.is_some() && !known.imported);
                Here::Run { had, last, own, new: 0 }
            }
            false => Here::Stream,
        })
    }
}

/// Whether a record may stand in a run, and says what the index of runs needs of it.
fn fits(record: &Checked) -> Result<(), String> {
    let is = |kind: Kind| record.head.kind == kind.as_str();
    if is(Kind::RunOpened) != (record.head.n == 0) {
        return Err("a run is opened by its first record, and by no other".into());
    }
    if [Kind::Checkpoint, Kind::Held, Kind::Released, Kind::Erased, Kind::Imported, Kind::RolledBack]
        .into_iter()
        .any(is)
    {
        return Err(format!("a record of kind {} is the ledger's own, and no run's", record.head.kind));
    }
    let deep = |data| nesting::is_object_deeper(data, nesting::MAX_RECORD_DEPTH);
    if record.data.as_ref().is_some_and(deep) {
        return Err(format!("its data nests deeper than {} levels", nesting::MAX_RECORD_DEPTH));
    }
    let needed = [Kind::RunOpened, Kind::RunIntent, Kind::Outcome, Kind::Override].into_iter().any(is);
    if needed && record.data.is_none() {
        return Err(format!(
            "a record of kind {} is not erased by anybody, and its data is missing",
            record.head.kind
        ));
    }
    Ok(())
}
