//! An export as JSON Lines: a header, the records with their proofs and texts, and a last line that reveals truncation.

use std::collections::BTreeSet;
use std::io::Write;

use quorate_kernel::entropy::{hex, sha256_hex};
use quorate_kernel::ports::ledger::Ledger as _;
use sha2::{Digest as _, Sha256};

use super::checked_records::CheckedRecords;
use super::select::Cursor;
use super::wire::{self, Body, Header, Prefix, Record, Totals, Trailer};
use super::{ExportError, ExportSummary, corrupt_record};
use crate::Store;
use crate::merkle::{self, TreeHead};
use crate::prove::{self, CheckedRecord, ProvableRecord};
use crate::signing::PublicKey;
use crate::store::engine::{Column, Value, sql_rows};
use crate::store::tiles::{self, TreeError};

/// How many hashes are looked up at once.
const HASHES_PER_LOOKUP: usize = 1000;

pub(super) async fn write(
    store: &Store,
    mut selected: Cursor,
    known: &[PublicKey],
    out: &mut (dyn Write + Send),
) -> Result<ExportSummary, ExportError> {
    let mut out = HashingWriter { out, hash: Sha256::new() };
    let mut written =
        ExportSummary { sealed_by_key: selected.sealed.note.is_some(), ..ExportSummary::default() };
    let mut records = CheckedRecords::open(store, &selected, known).await?;
    written.unknown_keys = std::mem::take(&mut records.unknown_keys);
    out.line(&header(store, &selected, std::mem::take(&mut records.signers)).await?)?;
    // The texts that were written, by the run that names them.
    let mut kept = BTreeSet::new();
    loop {
        let rows = selected.next_page(store).await?;
        if rows.is_empty() {
            break;
        }
        let items = records.check_rows(store, &rows).await?;
        let stored = stored_texts(store, &items).await?;
        for (row, (item, checked)) in rows.iter().zip(items) {
            let ProvableRecord { index, head, data, path, signatures } = item;
            written.records += 1;
            written.signatures += signatures.len() as u64;
            out.line(&Record { data, head, path, seq: index + 1, signatures })?;
            for sha256 in
                checked.data.iter().flat_map(wire::named_hashes).filter(|sha256| stored.contains(*sha256))
            {
                if kept.insert((row.text(4).to_owned(), sha256.to_owned()))
                    && let Some(text) = store.body(sha256).await?
                {
                    if sha256_hex(text.as_bytes()) != *sha256 {
                        return Err(corrupt_record(
                            row,
                            format!("the text {sha256} that it names is another"),
                        )
                        .into());
                    }
                    written.bodies += 1;
                    out.line(&Body { body: sha256.to_owned(), text: text.to_string() })?;
                }
            }
        }
    }
    let ExportSummary { records, bodies, signatures, .. } = written;
    let sha256 = hex(&out.hash.clone().finalize());
    out.line(&Trailer { end: Totals { bodies, records, sha256, signatures } })?;
    out.out.flush()?;
    Ok(written)
}

async fn header(store: &Store, selected: &Cursor, signers: Vec<PublicKey>) -> Result<Header, ExportError> {
    let Cursor { sealed, runs, since, .. } = selected;
    let from = match *since {
        0 => None,
        since => {
            let mut connection = store.writer().await;
            let engine = connection.engine().await.map_err(|error| store.error(error))?;
            Some(prefix_before(engine, since, &sealed.tree).await.map_err(|error| store.tree_error(error))?)
        }
    };
    Ok(Header {
        from,
        keys: sealed.keys.clone(),
        note: sealed.note.clone(),
        origin: sealed.origin.clone(),
        quorate_export: wire::VERSION,
        root: hex(&sealed.tree.root),
        runs: runs.as_ref().map(|runs| runs.iter().map(|run| (**run).to_owned()).collect()),
        signers: prove::public_texts(signers),
        size: sealed.tree.size,
    })
}

/// The tree after which an export starts.
async fn prefix_before(
    engine: &mut crate::store::engine::Engine,
    since: u64,
    tree: &TreeHead,
) -> Result<Prefix, TreeError> {
    let mut ranges = merkle::consistency_ranges(since, tree.size);
    ranges.push(0..since);
    let fetched = tiles::fetch(engine, ranges, tree.size).await?;
    let absent = |error: &dyn std::fmt::Display| TreeError::Incomplete(error.to_string());
    let root = merkle::root(&fetched, since).map_err(|error| absent(&error))?;
    let proof = merkle::consistency(&fetched, since, tree.size).map_err(|error| absent(&error))?;
    proof.verify(&TreeHead { size: since, root }, tree).map_err(|error| absent(&error))?;
    Ok(Prefix { path: prove::to_hex_texts(&proof.path), root: hex(&root), size: since })
}

/// Which of the hashes that records name are hashes of texts that are kept.
async fn stored_texts(
    store: &Store,
    items: &[(ProvableRecord, CheckedRecord)],
) -> Result<BTreeSet<String>, ExportError> {
    let data = items.iter().filter_map(|(_, checked)| checked.data.as_ref());
    let names: BTreeSet<String> = data.flat_map(wire::named_hashes).map(str::to_owned).collect();
    let names: Vec<String> = names.into_iter().collect();
    let mut stored = BTreeSet::new();
    for some in names.chunks(HASHES_PER_LOOKUP) {
        let values = some.iter().map(|name| vec![Value::from(name.as_str())]);
        let statement = sql_rows("SELECT sha256 FROM body WHERE sha256 IN (VALUES ", values, ")");
        stored.extend(store.rows(statement, &[Column::Text]).await?.iter().map(|row| row.text(0).to_owned()));
    }
    Ok(stored)
}

/// Lines on their way out, and what they hash to.
struct HashingWriter<'a> {
    out: &'a mut (dyn Write + Send),
    hash: Sha256,
}

impl HashingWriter<'_> {
    fn line(&mut self, value: &impl serde::Serialize) -> std::io::Result<()> {
        let line = wire::line(value)?;
        self.hash.update(line.as_bytes());
        self.out.write_all(line.as_bytes())
    }
}
