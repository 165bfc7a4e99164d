//! Sealing: writes a checkpoint over all records so far, signed by the ledger's key, as a record of the ledger's own
//! stream.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quorate_kernel::entropy;
use quorate_kernel::ports::ledger::{Durability, Entry, Kind, LedgerError};
use quorate_protocol::Name;

use super::connection::Transaction;
use super::engine::{Column, Engine, Statement, sql};
use super::tiles::{TreeError, TreeWriter};
use super::{Store, queue, refusal};
use crate::checkpoint::{CheckpointRecord, ORIGIN_PREFIX, STREAM, Succession};
use crate::merkle::{self, TreeHead};
use crate::note::{Checkpoint, Note, Signer, Verifier};
use crate::signing::{ExternalKeys, Keyring, PublicKey, SecretKey};
use crate::verify::{self, VerifyOptions};

/// The number of records per read.
const PAGE: u64 = 1000;

impl Store {
    /// The last checkpoint.
    ///
    /// # Errors
    /// When the store does not answer, or the checkpoint's record cannot be read.
    #[crate::boxed]
    pub async fn last_checkpoint(&self) -> Result<Option<CheckpointRecord>, LedgerError> {
        self.read(read_last).await
    }

    /// The key of the machine that created the ledger's tables; `None` if unknown.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn founding_key(&self) -> Result<Option<PublicKey>, LedgerError> {
        if !self.is_shared() {
            return Ok(None);
        }
        let rows = self.rows(sql("SELECT ledger_key FROM quorate_schema"), &[Column::Text]).await?;
        Ok(rows.first().and_then(|row| PublicKey::from_text(row.opt_text(0)?).ok()))
    }

    /// Saves this machine's key as the key of the machine that created the tables.
    #[cfg(feature = "postgres")]
    pub(super) async fn note_founding_key(&self) -> Result<(), LedgerError> {
        let keys = crate::keys::KeyDirectory::new(self.dir());
        let Ok(Some(key)) = keys.load(crate::keys::KeyPurpose::Ledger) else { return Ok(()) };
        let note = sql("UPDATE quorate_schema SET ledger_key = $1 WHERE ledger_key IS NULL");
        let note = note.bind(key.public().to_string());
        self.read(async |engine| note.execute(engine).await).await.map(drop)
    }

    /// The verifiers of the last signed checkpoint; `None` without one.
    ///
    /// # Errors
    /// When the store does not answer, or a checkpoint's record cannot be read.
    #[crate::boxed]
    pub async fn checkpoint_keys(&self) -> Result<Option<Vec<Verifier>>, LedgerError> {
        Ok(self.read(read_last_signed).await?.and_then(|sealed| sealed.verifiers()))
    }

    /// The numbers of the unsigned records in the ledger's own stream.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn unsigned_ledger_records(&self) -> Result<Vec<u64>, LedgerError> {
        let rows = self.rows(unsigned_ledger_rows(), &[Column::Int, Column::Text]).await?;
        Ok(rows.iter().map(|row| row.count(0)).collect())
    }

    /// Signs the unsigned records of the ledger's own stream with the ledger's key, after a person has checked them.
    /// Older versions wrote such records. Returns their numbers.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn sign_unsigned_ledger_records(&self, key: &SecretKey) -> Result<Vec<u64>, LedgerError> {
        let sign =
            async |transaction: &mut Transaction<'_>| sign_unsigned_rows(transaction.engine(), key).await;
        self.write(Durability::Synced, sign).await
    }

    /// Whether the ledger contains this checkpoint, or stored hashes that lead to its root.
    ///
    /// # Errors
    /// When the store does not answer, or the last checkpoint's record cannot be read.
    #[crate::boxed]
    pub async fn has_checkpoint(&self, checkpoint: &Checkpoint) -> Result<bool, LedgerError> {
        let tree = *checkpoint.tree();
        let is_known = async |engine: &mut Engine| {
            let Some(last) = read_last(engine).await? else { return Ok(false) };
            if last.origin != checkpoint.origin() || last.tree.size < tree.size {
                return Ok(false);
            }
            match TreeWriter::load(engine, tree.size).await {
                Ok(grown) => Ok(grown.frontier().tree_head() == tree),
                Err(TreeError::Store(error)) => Err(error),
                Err(TreeError::Incomplete(_)) => Ok(false),
            }
        };
        self.read(is_known).await
    }

    /// The number of records after the last checkpoint, excluding the ledger's own last record.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn unsealed_records(&self) -> Result<u64, LedgerError> {
        let count = async |engine: &mut Engine| {
            let sealed = read_last(engine).await?;
            count_unsealed(engine, sealed.as_ref()).await
        };
        self.read(count).await
    }

    /// Writes a checkpoint over all records, signed by these keys. If no record is new and `again` is false,
    /// returns the last checkpoint, unless it is unsigned and there are keys. Sync a checkpoint and all records under
    /// it before publishing it: after a power loss, another checkpoint of the same size could contradict it.
    ///
    /// # Errors
    /// If the store does not answer, the records do not continue the tree of the last checkpoint, or a newly covered
    /// record is invalid. In that case nothing is signed.
    #[crate::boxed]
    pub async fn seal(
        &self,
        keys: &[Arc<SecretKey>],
        at_ms: i64,
        again: bool,
        durability: Durability,
    ) -> Result<CheckpointRecord, LedgerError> {
        self.seal_with(keys, at_ms, again, durability, Succession::default()).await
    }

    /// As [`Store::seal`]. `succession` is the evidence that the keys follow those of the last signed checkpoint, if
    /// none of those is among them. It is recorded with the new checkpoint.
    ///
    /// # Errors
    /// As [`Store::seal`], and if the keys do not follow: verification would refuse the checkpoint.
    #[crate::boxed]
    pub async fn seal_with(
        &self,
        keys: &[Arc<SecretKey>],
        at_ms: i64,
        again: bool,
        durability: Durability,
        succession: Succession,
    ) -> Result<CheckpointRecord, LedgerError> {
        let mut had_appended = false;
        let seal = async |transaction: &mut Transaction<'_>| {
            // Records appended after this point are not covered, or the flag is set again.
            had_appended = self.appended.swap(false, Ordering::Relaxed);
            let outside = self.queue.external_keys().and_then(Result::ok).unwrap_or_default();
            let sealed = seal_in_transaction(transaction, keys, (at_ms, again), succession, outside).await?;
            if !sealed.is_new && durability == Durability::Synced {
                // Only a commit that writes something makes everything before it durable.
                let touch = sql("UPDATE checkpoint SET n = n WHERE size = $1").bind(sealed.tree.size);
                touch.execute(transaction.engine()).await?;
            }
            Ok(sealed)
        };
        let sealed = self.write(durability, seal).await;
        // Closing the ledger seals unsealed records.
        self.appended.fetch_or(had_appended && sealed.is_err(), Ordering::Relaxed);
        sealed
    }
}

/// The refusal to write a checkpoint because of the record with this number in the ledger's own stream.
fn diverged(n: u64, what: impl Into<String>) -> sqlx::Error {
    refusal(LedgerError::Corrupt { run: STREAM.into(), n, what: what.into() })
}

async fn read_last(engine: &mut Engine) -> Result<Option<CheckpointRecord>, sqlx::Error> {
    let row = sql("SELECT n FROM checkpoint ORDER BY size DESC LIMIT 1").row(engine, &[Column::Int]).await?;
    let Some(n) = row.map(|row| row.count(0)) else { return Ok(None) };
    let row = sql("SELECT data FROM record WHERE run = $1 AND n = $2")
        .bind(STREAM)
        .bind(n)
        .row(engine, &[Column::Text])
        .await?;
    let data = row.and_then(|row| serde_json::from_str(row.opt_text(0)?).ok());
    let sealed = data.and_then(|data| CheckpointRecord::from_data(n, &data));
    sealed.map(Some).ok_or_else(|| diverged(n, "the checkpoint cannot be read"))
}

/// The last signed checkpoint.
async fn read_last_signed(engine: &mut Engine) -> Result<Option<CheckpointRecord>, sqlx::Error> {
    let mut before = i64::MAX;
    loop {
        let statement = sql("SELECT n, data FROM record WHERE run = $1 AND kind = $2 AND n < $3 \
                             ORDER BY n DESC LIMIT 20");
        let statement = statement.bind(STREAM).bind(Kind::Checkpoint.as_str()).bind(before);
        let rows = statement.rows(engine, &[Column::Int, Column::Text]).await?;
        for row in &rows {
            let data = row.opt_text(1).and_then(|data| serde_json::from_str(data).ok());
            let sealed = data.and_then(|data| CheckpointRecord::from_data(row.count(0), &data));
            let unreadable = || diverged(row.count(0), "the checkpoint cannot be read");
            let sealed = sealed.filter(|sealed| sealed.verifiers().is_some()).ok_or_else(unreadable)?;
            match sealed.keys.is_empty() {
                true => before = row.int(0),
                false => return Ok(Some(sealed)),
            }
        }
        if rows.is_empty() {
            return Ok(None);
        }
    }
}

/// Verifies the newly covered records. Ignores the times of keys: a key's later revocation or expiry does not
/// invalidate the ledger.
async fn check_new_records(
    engine: &mut Engine,
    keys: &[Arc<SecretKey>],
    (before, signed): (Option<&CheckpointRecord>, Option<&CheckpointRecord>),
    ExternalKeys { keyring, signers }: ExternalKeys,
) -> Result<(), sqlx::Error> {
    // Without a key nothing is signed, and records under an unsigned checkpoint need no second check.
    let since = if keys.is_empty() { before } else { signed };
    let options = VerifyOptions {
        ledger_keys: keys.iter().map(|key| key.public()).collect(),
        outside: ExternalKeys { keyring: keyring.as_ref().map(Keyring::unbounded), signers },
        ..VerifyOptions::default()
    };
    match verify::check_before_seal(engine, options, since).await? {
        None => Ok(()),
        Some(found) => {
            let what = format!("cannot seal it: {found}; run `quorate ledger verify`");
            let at_run = found.run.unwrap_or_else(|| STREAM.into());
            Err(refusal(LedgerError::Corrupt { run: at_run, n: found.n.unwrap_or_default(), what }))
        }
    }
}

/// Number and head of each unsigned record in the ledger's own stream.
fn unsigned_ledger_rows() -> Statement {
    sql("SELECT record.n, record.head FROM record LEFT JOIN signature \
         ON signature.run = record.run AND signature.n = record.n \
         WHERE record.run = $1 AND record.kind <> $2 AND signature.n IS NULL ORDER BY record.n")
    .bind(STREAM)
    .bind(Kind::Checkpoint.as_str())
}

async fn sign_unsigned_rows(engine: &mut Engine, key: &SecretKey) -> Result<Vec<u64>, sqlx::Error> {
    let rows = unsigned_ledger_rows().rows(engine, &[Column::Int, Column::Text]).await?;
    let signatures = rows.iter().map(|row| queue::signature_row(key, STREAM, row.count(0), row.text(1)));
    queue::insert_signatures(engine, signatures.collect()).await?;
    Ok(rows.iter().map(|row| row.count(0)).collect())
}

/// The number of records that a checkpoint would newly cover, excluding a record that directly follows a checkpoint.
async fn count_unsealed(engine: &mut Engine, sealed: Option<&CheckpointRecord>) -> Result<u64, sqlx::Error> {
    let size = sealed.map_or(0, |sealed| sealed.tree.size);
    let rest = sql("SELECT COUNT(*) FROM record WHERE seq > $1").bind(size).number(engine).await?;
    Ok(rest.saturating_sub(u64::from(sealed.is_some())))
}

async fn seal_in_transaction(
    transaction: &mut Transaction<'_>,
    keys: &[Arc<SecretKey>],
    (at_ms, again): (i64, bool),
    mut succession: Succession,
    outside: ExternalKeys,
) -> Result<CheckpointRecord, sqlx::Error> {
    let (engine, tails) = transaction.engine_and_tails();
    let before = read_last(engine).await?;
    // An unsigned checkpoint is replaced by a new, signed one over all records.
    if let Some(sealed) = &before
        && !again
        && (sealed.note.is_some() || keys.is_empty())
        && count_unsealed(engine, before.as_ref()).await? == 0
    {
        return Ok(sealed.clone());
    }
    let signed = read_last_signed(engine).await?;
    check_new_records(engine, keys, (before.as_ref(), signed.as_ref()), outside).await?;
    let signers = signed.as_ref().and_then(CheckpointRecord::verifiers).unwrap_or_default();
    if signers.iter().any(|signer| keys.iter().any(|key| key.public() == *signer.key())) {
        // Another process has introduced the key meanwhile.
        succession.vouched.clear();
    }
    let mut tree = current_tree(engine, before.as_ref()).await?;
    let head = tree.frontier().tree_head();
    tree.store(engine).await?;
    let origin = match &before {
        Some(sealed) => sealed.origin.clone(),
        None => format!("{ORIGIN_PREFIX}{}", entropy::run_id()),
    };
    let next = sql("SELECT COALESCE(MAX(n), -1) + 1 FROM record WHERE run = $1").bind(STREAM);
    let next = next.number(engine).await?;
    let (note, names) = sign_note(&origin, head, keys).map_err(|what| diverged(next, what))?;
    let sealed =
        CheckpointRecord { origin, tree: head, note, keys: names, succession, n: next, is_new: true };
    verify::check_keys_follow(signed.as_ref(), &sealed).map_err(|what| diverged(next, what))?;
    let entry = Entry::of(&sealed.recorded(), at_ms);
    let stream: Name = STREAM.into();
    tails.remove(&stream);
    queue::append_in_transaction(engine, &stream, next, entry, None).await?;
    sql("INSERT INTO checkpoint (size, root, n) VALUES ($1, $2, $3) \
         ON CONFLICT (size) DO UPDATE SET root = excluded.root, n = excluded.n")
    .bind(head.size)
    .bind(entropy::hex(&head.root))
    .bind(next)
    .insert_exactly(engine, 1)
    .await?;
    Ok(sealed)
}

/// The tree of all records: that of the last checkpoint, plus newer records.
async fn current_tree(
    engine: &mut Engine,
    before: Option<&CheckpointRecord>,
) -> Result<TreeWriter, sqlx::Error> {
    let Some(sealed) = before else { return append_leaves(engine, TreeWriter::new(), None).await };
    let tree = match TreeWriter::load(engine, sealed.tree.size).await {
        Ok(tree) if tree.frontier().tree_head() == sealed.tree => tree,
        Err(TreeError::Store(error)) => return Err(error),
        // The stored hashes are an index. The records are authoritative.
        _ => append_leaves(engine, TreeWriter::new(), Some(sealed.tree.size)).await?,
    };
    if tree.frontier().tree_head() != sealed.tree {
        let what = "the records differ from those under the checkpoint; run `quorate ledger verify`";
        return Err(diverged(sealed.n, what));
    }
    append_leaves(engine, tree, None).await
}

/// Appends the leaves of the next records, up to a size or the end.
async fn append_leaves(
    engine: &mut Engine,
    mut tree: TreeWriter,
    until: Option<u64>,
) -> Result<TreeWriter, sqlx::Error> {
    loop {
        let size = tree.frontier().size();
        let end = until.unwrap_or(u64::MAX).min(size.saturating_add(PAGE));
        let rows = sql("SELECT seq, run, n, head FROM record WHERE seq > $1 AND seq <= $2 ORDER BY seq")
            .bind(size)
            .bind(end)
            .rows(engine, &[Column::Int, Column::Text, Column::Int, Column::Text])
            .await?;
        for row in &rows {
            let place = tree.frontier().size() + 1;
            if row.count(0) != place {
                let what = format!(
                    "position {place} has no record, before {}/{}; run `quorate ledger verify`",
                    row.text(1),
                    row.count(2)
                );
                return Err(diverged(0, what));
            }
            tree.push(merkle::leaf(row.text(3).as_bytes()));
        }
        // Full rows are stored immediately, so that memory does not grow with the ledger.
        tree.store(engine).await?;
        if rows.is_empty() || tree.frontier().size() == until.unwrap_or(u64::MAX) {
            return Ok(tree);
        }
    }
}

/// The note with the keys' signatures, and its verifiers.
fn sign_note(
    origin: &str,
    head: TreeHead,
    keys: &[Arc<SecretKey>],
) -> Result<(Option<String>, Vec<String>), String> {
    let checkpoint = Checkpoint::new(origin, head)?;
    let mut note = Note::new(&checkpoint.to_string())?;
    let mut names = Vec::new();
    for key in keys {
        let signer = Signer::new(origin, Arc::clone(key))?;
        note.sign(&signer).map_err(|error| error.to_string())?;
        names.push(signer.verifier().to_string());
    }
    Ok(((!keys.is_empty()).then(|| note.to_string()), names))
}
