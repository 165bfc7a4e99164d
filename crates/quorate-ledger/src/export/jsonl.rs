//! An export as JSON Lines: a header, the records with their proofs and the texts that they name, and a last line by which
//! a shortened file is seen.

use std::collections::BTreeSet;
use std::io::Write;

use quorate_kernel::entropy::{hex, sha256_hex};
use quorate_kernel::ports::ledger::Ledger as _;
use sha2::{Digest as _, Sha256};

use super::checked::Records;
use super::select::Selected;
use super::wire::{self, Body, End, From, Header, Last, Record};
use super::{Failed, Written, corrupt};
use crate::Store;
use crate::merkle::{self, TreeHead};
use crate::prove::{self, Checked, Item};
use crate::signing::PublicKey;
use crate::store::engine::{Column, Value, sql_rows};
use crate::store::tiles::{self, Broken};

/// How many hashes are looked up at once.
const AT_ONCE: usize = 1000;

pub(super) async fn write(
    store: &Store,
    mut selected: Selected,
    known: &[PublicKey],
    out: &mut (dyn Write + Send),
) -> Result<Written, Failed> {
    let mut out = Hashed { out, hash: Sha256::new() };
    let mut written = Written { sealed_by_key: selected.sealed.note.is_some(), ..Written::default() };
    let mut records = Records::of(store, &selected, known).await?;
    written.unknown = std::mem::take(&mut records.unknown);
    out.line(&header(store, &selected, std::mem::take(&mut records.signers)).await?)?;
    // The texts that were written, by the run that names them.
    let mut kept = BTreeSet::new();
    loop {
        let rows = selected.page(store).await?;
        if rows.is_empty() {
            break;
        }
        let items = records.take(store, &rows).await?;
        let there = there(store, &items).await?;
        for (row, (item, checked)) in rows.iter().zip(items) {
            let Item { index, head, data, path, signatures } = item;
            written.records += 1;
            written.signatures += signatures.len() as u64;
            out.line(&Record { data, head, path, seq: index + 1, signatures })?;
            for sha256 in checked.data.iter().flat_map(wire::named).filter(|sha256| there.contains(*sha256)) {
                if kept.insert((row.text(4).to_owned(), sha256.to_owned()))
                    && let Some(text) = store.body(sha256).await?
                {
                    if sha256_hex(text.as_bytes()) != *sha256 {
                        return Err(
                            corrupt(row, format!("the text {sha256} that it names is another")).into()
                        );
                    }
                    written.bodies += 1;
                    out.line(&Body { body: sha256.to_owned(), text: text.to_string() })?;
                }
            }
        }
    }
    let Written { records, bodies, signatures, .. } = written;
    let sha256 = hex(&out.hash.clone().finalize());
    out.line(&Last { end: End { bodies, records, sha256, signatures } })?;
    out.out.flush()?;
    Ok(written)
}

/// The first line.
async fn header(store: &Store, selected: &Selected, signers: Vec<PublicKey>) -> Result<Header, Failed> {
    let Selected { sealed, runs, since, .. } = selected;
    let from = match *since {
        0 => None,
        since => {
            let mut connection = store.writer().await;
            let engine = connection.engine().await.map_err(|error| store.error(error))?;
            Some(before(engine, since, &sealed.tree).await.map_err(|error| store.broken(error))?)
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
async fn before(
    engine: &mut crate::store::engine::Engine,
    since: u64,
    tree: &TreeHead,
) -> Result<From, Broken> {
    let mut ranges = merkle::consistency_ranges(since, tree.size);
    ranges.push(0..since);
    let fetched = tiles::fetch(engine, ranges, tree.size).await?;
    let absent = |error: &dyn std::fmt::Display| Broken::Absent(error.to_string());
    let root = merkle::root(&fetched, since).map_err(|error| absent(&error))?;
    let proof = merkle::consistency(&fetched, since, tree.size).map_err(|error| absent(&error))?;
    proof.verify(&TreeHead { size: since, root }, tree).map_err(|error| absent(&error))?;
    Ok(From { path: prove::texts(&proof.path), root: hex(&root), size: since })
}

/// Which of the hashes that records name are hashes of texts that are kept.
async fn there(store: &Store, items: &[(Item, Checked)]) -> Result<BTreeSet<String>, Failed> {
    let data = items.iter().filter_map(|(_, checked)| checked.data.as_ref());
    let names: BTreeSet<String> = data.flat_map(wire::named).map(str::to_owned).collect();
    let names: Vec<String> = names.into_iter().collect();
    let mut there = BTreeSet::new();
    for some in names.chunks(AT_ONCE) {
        let values = some.iter().map(|name| vec![Value::from(name.as_str())]);
        let statement = sql_rows("SELECT sha256 FROM body WHERE sha256 IN (VALUES ", values, ")");
        there.extend(store.rows(statement, &[Column::Text]).await?.iter().map(|row| row.text(0).to_owned()));
    }
    Ok(there)
}

/// Lines on their way out, and what they hash to.
struct Hashed<'a> {
    out: &'a mut (dyn Write + Send),
    hash: Sha256,
}

impl Hashed<'_> {
    fn line(&mut self, value: &impl serde::Serialize) -> std::io::Result<()> {
        let line = wire::line(value)?;
        self.hash.update(line.as_bytes());
        self.out.write_all(line.as_bytes())
    }
}
