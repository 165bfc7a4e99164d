//! An export as JSON Lines: a header, the records with their proofs and the texts that they name, and a last line by which
//! a shortened file is seen.

use std::collections::BTreeSet;
use std::io::Write;

use quorate_kernel::entropy::hex;
use quorate_kernel::ports::ledger::Ledger as _;
use quorate_protocol::Json;
use serde_json::Map;
use sha2::{Digest as _, Sha256};

use super::select::Selected;
use super::wire::{self, Body, End, From, Header, Last, Record};
use super::{Failed, Written, corrupt, unread};
use crate::Store;
use crate::merkle::{self, TreeHead};
use crate::prove::paths::{self, Paths};
use crate::prove::{self, Item, Signers};
use crate::signing::PublicKey;
use crate::store::engine::{Column, Row, Value, sql_rows};
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
    let header = header(store, &selected, known, &mut written.unknown).await?;
    out.line(&header)?;
    let mut paths = Paths::new(selected.sealed.tree.size);
    // The texts that were written, by the run that names them.
    let mut kept = BTreeSet::new();
    loop {
        let rows = selected.page(store).await?;
        if rows.is_empty() {
            break;
        }
        let items = items(store, &mut paths, &rows).await?;
        let there = there(store, &rows).await?;
        for (row, item) in rows.iter().zip(items) {
            let Item { index, head, data, path, signatures } = item;
            written.records += 1;
            written.signatures += signatures.len() as u64;
            let read = object(row, data.as_deref())?;
            out.line(&Record { data, head, path, seq: index + 1, signatures })?;
            for sha256 in read.iter().flat_map(wire::named).filter(|sha256| there.contains(*sha256)) {
                if kept.insert((row.text(4).to_owned(), sha256.to_owned()))
                    && let Some(text) = store.body(sha256).await?
                {
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

/// The first line, and the names of keys whose public halves are not known.
async fn header(
    store: &Store,
    selected: &Selected,
    known: &[PublicKey],
    unknown: &mut Vec<String>,
) -> Result<Header, Failed> {
    let Selected { sealed, runs, since, .. } = selected;
    let mut connection = store.writer().await;
    let engine = connection.engine().await.map_err(|error| store.error(error))?;
    let broken = |error: Broken| store.broken(error);
    if !paths::leads_to(engine, &sealed.tree).await.map_err(broken)? {
        return Err(store.broken(Broken::Absent("its root is not the checkpoint's".to_owned())).into());
    }
    let from = match *since {
        0 => None,
        since => Some(before(engine, since, &sealed.tree).await.map_err(broken)?),
    };
    let mut lookup = Signers::new(known);
    let mut signers = Vec::new();
    for name in selected.key_names(engine).await.map_err(|error| store.error(error))? {
        match lookup.find(engine, &name).await.map_err(|error| store.error(error))? {
            Some(key) => signers.push(key),
            None => unknown.push(name),
        }
    }
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
    Ok(From { path: prove::texts(&proof.path), root: hex(&root), size: since })
}

async fn items(store: &Store, paths: &mut Paths, rows: &[Row]) -> Result<Vec<Item>, Failed> {
    let mut connection = store.writer().await;
    let engine = connection.engine().await.map_err(|error| store.error(error))?;
    let mut items = Vec::with_capacity(rows.len());
    for row in rows {
        let (n, index) = (row.count(1), row.count(0) - 1);
        let item = prove::item(engine, paths, row, row.text(4), n, index).await;
        items.push(item.map_err(|error| unread(store, row, error))?);
    }
    Ok(items)
}

/// Which of the hashes that records name are hashes of texts that are kept.
async fn there(store: &Store, rows: &[Row]) -> Result<BTreeSet<String>, Failed> {
    let mut names = BTreeSet::new();
    for row in rows {
        let data = object(row, row.some_text(3))?;
        names.extend(data.iter().flat_map(wire::named).map(str::to_owned));
    }
    let names: Vec<String> = names.into_iter().collect();
    let mut there = BTreeSet::new();
    for some in names.chunks(AT_ONCE) {
        let values = some.iter().map(|name| vec![Value::from(name.as_str())]);
        let statement = sql_rows("SELECT sha256 FROM body WHERE sha256 IN (VALUES ", values, ")");
        there.extend(store.rows(statement, &[Column::Text]).await?.iter().map(|row| row.text(0).to_owned()));
    }
    Ok(there)
}

fn object(row: &Row, data: Option<&str>) -> Result<Option<Map<String, Json>>, Failed> {
    let read = data.map(serde_json::from_str).transpose();
    Ok(read.map_err(|error| corrupt(row, format!("its data cannot be read: {error}")))?)
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
