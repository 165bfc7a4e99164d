//! An export as JSON Lines, its writer and its reader: a header, the records with their proofs and texts, and a last
//! line that reveals truncation.

use std::collections::BTreeSet;
use std::io::{BufRead, Read as _, Write};

use quorate_kernel::canonical;
use quorate_kernel::entropy::{hex, sha256_hex, unhex};
use quorate_kernel::ports::ledger::Ledger as _;
use quorate_protocol::Json;
use serde::{Deserialize, Serialize};
use serde_json::Map;
use sha2::{Digest as _, Sha256};

use super::{CheckedRecords, Cursor, ExportError, ExportSummary};
use crate::Store;
use crate::merkle::{self, Consistency, Frontier, TreeHead};
use crate::prove::{
    self, ChainChecker, CheckedRecord, Envelope, GapRule, ProvableRecord, SignedCheckpoint, TrustedKey,
    from_canonical_json, from_exact_value,
};
use crate::record::Head;
use crate::signing::{KeyId, PublicKey};
use crate::store::STREAM;
use crate::store::engine::{Column, Engine, Value, sql_rows};
use crate::store::tiles::{StoredTree, TreeError};

/// The number of hashes per lookup.
const HASHES_PER_LOOKUP: usize = 1000;

pub(super) async fn write(
    records: &mut CheckedRecords<'_>,
    out: &mut (dyn Write + Send),
) -> Result<(), ExportError> {
    let store = records.store;
    let mut out = HashingWriter { out, hash: Sha256::new() };
    out.line(&header(records).await?)?;
    // The written texts, by the run that names them.
    let mut kept = BTreeSet::new();
    while let Some(page) = records.next_page().await? {
        let stored = stored_texts(store, &page).await?;
        for (item, CheckedRecord { head: Head { run, .. }, data: checked, .. }) in page {
            let ProvableRecord { index, head, data, path, signatures } = item;
            out.line(&Record { data, head, path, seq: index + 1, signatures })?;
            for sha256 in checked.iter().flat_map(named_hashes).filter(|sha256| stored.contains(*sha256)) {
                if kept.insert((run.clone(), sha256.to_owned()))
                    && let Some(text) = store.body(sha256).await?
                {
                    records.summary.bodies += 1;
                    out.line(&Body { body: sha256.to_owned(), text: text.to_string() })?;
                }
            }
        }
    }
    let ExportSummary { records, bodies, signatures, .. } = records.summary;
    let sha256 = hex(&out.hash.clone().finalize());
    out.line(&Trailer { end: ExportTotals { bodies, records, sha256, signatures } })?;
    Ok(())
}

async fn header(records: &CheckedRecords<'_>) -> Result<ExportHeader, ExportError> {
    let CheckedRecords { store, selected: Cursor { sealed, runs, since, .. }, signers, .. } = records;
    let from = match *since {
        0 => None,
        since => {
            let prefix = async |engine: &mut Engine| Ok(prefix_before(engine, since, &sealed.tree).await?);
            Some(store.read(prefix).await?)
        }
    };
    Ok(ExportHeader {
        from,
        keys: sealed.keys.clone(),
        note: sealed.note.clone(),
        origin: sealed.origin.clone(),
        quorate_export: EXPORT_VERSION,
        root: hex(&sealed.tree.root),
        runs: runs.as_ref().map(|runs| runs.iter().map(|run| (**run).to_owned()).collect()),
        signers: prove::public_texts(signers),
        size: sealed.tree.size,
    })
}

/// The tree that an export continues.
async fn prefix_before(engine: &mut Engine, since: u64, tree: &TreeHead) -> Result<Prefix, TreeError> {
    let mut stored = StoredTree::default();
    let path = stored.path(engine, merkle::consistency_ranges(since, tree.size)).await?;
    let before = stored.tree(engine, 0..since).await?.tree_head();
    let proof = Consistency { old: since, new: tree.size, path };
    proof.verify(&before, tree).map_err(TreeError::Incomplete)?;
    Ok(Prefix { path: prove::to_hex_texts(&proof.path), root: hex(&before.root), size: since })
}

/// Filters the hashes in records for those of stored texts.
async fn stored_texts(
    store: &Store,
    items: &[(ProvableRecord, CheckedRecord)],
) -> Result<BTreeSet<String>, ExportError> {
    let data = items.iter().filter_map(|(_, checked)| checked.data.as_ref());
    let names: BTreeSet<String> = data.flat_map(named_hashes).map(str::to_owned).collect();
    let names: Vec<String> = names.into_iter().collect();
    let mut stored = BTreeSet::new();
    for some in names.chunks(HASHES_PER_LOOKUP) {
        let values = some.iter().map(|name| vec![Value::from(name.as_str())]);
        let statement = sql_rows("SELECT sha256 FROM body WHERE sha256 IN (VALUES ", values, ")");
        stored.extend(store.rows(statement, &[Column::Text]).await?.iter().map(|row| row.text(0).to_owned()));
    }
    Ok(stored)
}

/// Writes lines and hashes them.
struct HashingWriter<'a> {
    out: &'a mut (dyn Write + Send),
    hash: Sha256,
}

impl HashingWriter<'_> {
    fn line(&mut self, value: &impl serde::Serialize) -> std::io::Result<()> {
        let line = line(value)?;
        self.hash.update(line.as_bytes());
        self.out.write_all(line.as_bytes())
    }
}

/// The version of the format.
pub const EXPORT_VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportHeader {
    /// The tree that it continues; null if it starts at the first record.
    pub from: Option<Prefix>,
    /// The verifiers of the checkpoint, one line each.
    pub keys: Vec<String>,
    /// The checkpoint, as a signed note; null if unsigned.
    pub note: Option<String>,
    pub origin: String,
    /// The version of the format.
    pub quorate_export: u32,
    /// The root of the tree, 64 hexadecimal digits.
    pub root: String,
    /// The selected runs, sorted; null for all.
    pub runs: Option<Vec<String>>,
    /// The public keys of the records' signers, sorted.
    pub signers: Vec<String>,
    /// The number of records in the tree.
    pub size: u64,
}

/// A smaller tree of the same log that an export continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefix {
    /// The proof that it is a prefix (RFC 9162, section 2.1.4).
    pub path: Vec<String>,
    pub root: String,
    /// The number of records in it.
    pub size: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Canonical JSON; null if it was erased.
    pub data: Option<String>,
    /// Canonical JSON.
    pub head: String,
    /// The proof that it is in the tree (RFC 9162, section 2.1.3).
    pub path: Vec<String>,
    /// Its position in the ledger, from 1. Its leaf has the index before that.
    pub seq: u64,
    /// Signatures, in the order of the keys' names.
    pub signatures: Vec<Envelope>,
}

/// The line of a text that the record above it names by its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// SHA-256 of the text, 64 hexadecimal digits.
    pub body: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trailer {
    pub end: ExportTotals,
}

/// Totals of the preceding lines, and their hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportTotals {
    pub bodies: u64,
    pub records: u64,
    /// SHA-256 of all bytes before this line.
    pub sha256: String,
    /// The number of signatures over records.
    pub signatures: u64,
}

/// A line with its end.
///
/// # Errors
/// Never: every line has a JSON form.
pub fn line(value: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(canonical::text(&serde_json::to_value(value)?)? + "\n")
}

/// The hashes in a record: each string anywhere in its data that is 64 lower-case hexadecimal digits. Some may not be
/// hashes of texts; only the list of texts shows that.
pub fn named_hashes(data: &Map<String, Json>) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    data.values().for_each(|value| collect(value, &mut names));
    names
}

fn collect<'a>(value: &'a Json, names: &mut BTreeSet<&'a str>) {
    match value {
        Json::String(text) if is_hash(text) => drop(names.insert(text)),
        Json::Array(all) => all.iter().for_each(|value| collect(value, names)),
        Json::Object(all) => all.values().for_each(|value| collect(value, names)),
        _ => {}
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// The longest accepted line, in bytes.
pub const MAX_LINE_BYTES: usize = 64 << 20;

/// One entry of an export.
#[derive(Debug, Clone, PartialEq)]
pub enum ExportEntry {
    /// A record and its contents.
    Record(Box<ProvableRecord>, Box<CheckedRecord>),
    /// A text that the record before it names.
    Body {
        /// SHA-256 of the text.
        sha256: String,
        text: String,
    },
}

/// Why an export is invalid.
#[derive(Debug, thiserror::Error)]
pub enum InvalidExport {
    #[error("not an export: {0}")]
    NotAnExport(String),
    /// A line is invalid.
    #[error("line {line}{}: {what}", id.as_ref().map(|id| format!(" ({id})")).unwrap_or_default())]
    InvalidLine {
        /// The number of the line, from 1.
        line: u64,
        /// The record in the line, if it has one.
        id: Option<String>,
        /// The invalid part.
        what: String,
    },
    /// It cannot be read.
    #[error("it cannot be read")]
    Io(#[from] std::io::Error),
}

/// Reads an export and verifies each line.
pub struct ExportReader<R> {
    input: R,
    line: u64,
    hash: Sha256,
    /// SHA-256 of the whole file, after the last line.
    pub file_sha256: Option<String>,
    pub header: ExportHeader,
    tree: TreeHead,
    checkpoint: Option<SignedCheckpoint>,
    known: Vec<PublicKey>,
    signers: Vec<PublicKey>,
    used_signers: Vec<KeyId>,
    chain: ChainChecker,
    /// All leaves, if the export contains all records from the first one.
    frontier: Option<Frontier>,
    seq: u64,
    /// The number of lines of each kind so far.
    pub totals: ExportTotals,
    /// The hashes in the last record, its run, and the last text.
    expected_texts: Vec<String>,
}

impl<R: BufRead> ExportReader<R> {
    /// Reads the first line. If `signers` is not empty, one of them must have signed each signed record.
    ///
    /// # Errors
    /// [`InvalidExport`].
    pub fn open(mut input: R, signers: &[PublicKey]) -> Result<Self, InvalidExport> {
        let mut hash = Sha256::new();
        let text = next_line(&mut input, &mut hash, 1)?
            .ok_or_else(|| InvalidExport::NotAnExport("it is empty".into()))?;
        let header: ExportHeader = from_canonical_json(&text).map_err(InvalidExport::NotAnExport)?;
        if header.quorate_export != EXPORT_VERSION {
            let ours = EXPORT_VERSION;
            let what =
                format!("its version is {}, but this program reads version {ours}", header.quorate_export);
            return Err(InvalidExport::NotAnExport(what));
        }
        let flaw = |what: String| InvalidExport::InvalidLine { line: 1, id: None, what };
        let root = unhex(&header.root).ok_or_else(|| flaw("its root is not a hash".into()))?;
        let tree = TreeHead { size: header.size, root };
        let checkpoint = open_checkpoint(&header, &tree).map_err(flaw)?;
        if let Some(from) = &header.from {
            check_prefix(from, &tree).map_err(flaw)?;
        }
        let sorted = |runs: &Vec<String>| runs.windows(2).all(|two| two[0] < two[1]) && !runs.is_empty();
        if !header.runs.as_ref().is_none_or(sorted) {
            return Err(flaw("its runs are not sorted".into()));
        }
        let known = prove::signer_keys(&header.signers, signers).map_err(flaw)?;
        let from = header.from.as_ref().map_or(0, |from| from.size);
        let whole = header.runs.is_none() && from == 0;
        Ok(ExportReader {
            input,
            line: 1,
            hash,
            file_sha256: None,
            tree,
            checkpoint,
            known,
            signers: signers.to_vec(),
            used_signers: Vec::new(),
            chain: ChainChecker::new(if from == 0 {
                GapRule::FromFirstRecord
            } else {
                GapRule::NotWithinRun
            }),
            frontier: whole.then(Frontier::new),
            seq: from,
            totals: ExportTotals { bodies: 0, records: 0, sha256: String::new(), signatures: 0 },
            expected_texts: Vec::new(),
            header,
        })
    }

    /// Reads the next entry. Returns `None` after the last line, which proves that the export is complete.
    ///
    /// # Errors
    /// [`InvalidExport`].
    pub fn next_entry(&mut self) -> Result<Option<ExportEntry>, InvalidExport> {
        if self.file_sha256.is_some() {
            return Ok(None);
        }
        let before = hex(&self.hash.clone().finalize());
        let text = next_line(&mut self.input, &mut self.hash, self.line + 1)?;
        self.line += u64::from(text.is_some());
        let line = self.line;
        let flaw = |what: String| InvalidExport::InvalidLine { line, id: None, what };
        let text = text.ok_or_else(|| flaw("its last line is missing: the file is truncated".into()))?;
        let value: Json = from_canonical_json(&text).map_err(flaw)?;
        if value.get("head").is_some() {
            return self.record(from_exact_value(value).map_err(flaw)?).map(Some);
        }
        if value.get("body").is_some() {
            let body = from_exact_value(value).map_err(flaw)?;
            return self.body(body).map(Some).map_err(flaw);
        }
        self.check_trailer(&from_exact_value(value).map_err(flaw)?, &before).map_err(flaw)?;
        if self.input.read(&mut [0])? != 0 {
            return Err(flaw("something follows the last line".into()));
        }
        self.file_sha256 = Some(hex(&self.hash.clone().finalize()));
        Ok(None)
    }

    /// The trusted key that signed the checkpoint.
    pub fn trusted_key(&self, trusted: &[TrustedKey]) -> Option<String> {
        self.checkpoint.as_ref()?.trusted_key(trusted).map(ToString::to_string)
    }

    fn record(&mut self, record: Record) -> Result<ExportEntry, InvalidExport> {
        let Record { data, head, path, seq, signatures } = record;
        let line = self.line;
        let flaw = |id, what| InvalidExport::InvalidLine { line, id, what };
        let index = seq.checked_sub(1).ok_or_else(|| flaw(None, "places count from 1".into()))?;
        let item = ProvableRecord { index, head, data, path, signatures };
        let checked = item.check(&self.tree, &self.known).map_err(|what| flaw(None, what))?;
        let id = format!("{}/{}", checked.head.run, checked.head.n);
        self.check_record(seq, &checked).map_err(|what| flaw(Some(id), what))?;
        self.expected_texts = checked.data.iter().flat_map(named_hashes).map(str::to_owned).collect();
        self.expected_texts.reverse();
        Ok(ExportEntry::Record(Box::new(item), Box::new(checked)))
    }

    fn check_record(&mut self, seq: u64, checked: &CheckedRecord) -> Result<(), String> {
        let runs = self.header.runs.as_ref();
        if seq <= self.seq || (runs.is_none() && seq != self.seq + 1) {
            return Err(format!("it is at place {seq} after place {}", self.seq));
        }
        if runs.is_some_and(|runs| runs.binary_search(&checked.head.run).is_err()) {
            return Err("its run is not among the runs of the export".into());
        }
        let is_requested = |id: &KeyId| self.signers.iter().any(|key| key.id() == *id);
        // The ledger's key signs its own stream.
        let is_asked = !self.signers.is_empty() && checked.head.run != STREAM;
        if is_asked && !checked.signers.is_empty() && !checked.signers.iter().any(is_requested) {
            return Err("none of the required signers signed it".into());
        }
        self.chain.check_next(checked)?;
        self.seq = seq;
        self.totals.records += 1;
        self.totals.signatures += checked.signers.len() as u64;
        for id in &checked.signers {
            if !self.used_signers.contains(id) {
                self.used_signers.push(*id);
            }
        }
        if let Some(frontier) = &mut self.frontier {
            frontier.push(checked.leaf);
        }
        Ok(())
    }

    fn body(&mut self, body: Body) -> Result<ExportEntry, String> {
        let Body { body: sha256, text } = body;
        if sha256_hex(text.as_bytes()) != sha256 {
            return Err("the text does not match its hash".into());
        }
        // Texts are sorted by their hashes, without duplicates.
        while let Some(name) = self.expected_texts.pop() {
            if name == sha256 {
                self.totals.bodies += 1;
                return Ok(ExportEntry::Body { sha256, text });
            }
        }
        Err("the record before it does not name this text, or the texts are out of order".into())
    }

    /// Checks the last line. `before` is the hash of all bytes before it.
    fn check_trailer(&self, last: &Trailer, before: &str) -> Result<(), String> {
        let sha256 = last.end.sha256.clone();
        if last.end != (ExportTotals { sha256, ..self.totals.clone() }) {
            return Err("the totals in the last line are wrong: lines were removed or added".into());
        }
        if last.end.sha256 != before {
            return Err("the last line belongs to another file".into());
        }
        if self.header.runs.is_none() && self.seq != self.tree.size {
            return Err(format!(
                "the checkpoint covers {} records, but there are {}",
                self.tree.size, self.seq
            ));
        }
        if self.frontier.as_ref().is_some_and(|frontier| frontier.tree_head() != self.tree) {
            return Err("the records do not lead to the checkpoint's root".into());
        }
        prove::check_all_used(&self.header.signers, &self.used_signers)
    }
}

/// The checkpoint of a header; `None` for an unsigned export.
fn open_checkpoint(header: &ExportHeader, tree: &TreeHead) -> Result<Option<SignedCheckpoint>, String> {
    let Some(note) = &header.note else {
        return if header.keys.is_empty() { Ok(None) } else { Err("it has keys, but no signed note".into()) };
    };
    let checkpoint = SignedCheckpoint::open(note, &header.keys)?;
    if checkpoint.origin != header.origin || checkpoint.tree != *tree {
        return Err("its checkpoint is of another log or another tree".into());
    }
    Ok(Some(checkpoint))
}

/// Checks the tree that an export continues against the whole one.
fn check_prefix(from: &Prefix, tree: &TreeHead) -> Result<(), String> {
    let root = unhex(&from.root).ok_or("the root of `from` is not a hash")?;
    let path = from
        .path
        .iter()
        .map(|hash| unhex(hash).ok_or("the path of `from` contains a value that is not a hash"));
    let path = path.collect::<Result<_, _>>()?;
    if from.size == 0 {
        return Err("an export of all records must not have `from`".into());
    }
    let proof = Consistency { old: from.size, new: tree.size, path };
    let old = TreeHead { size: from.size, root };
    proof.verify(&old, tree).map_err(|error| format!("`from` is not a prefix of the log: {error}"))
}

/// The next line without its end; `None` at the end of the file.
fn next_line(
    input: &mut impl BufRead,
    hash: &mut Sha256,
    line: u64,
) -> Result<Option<String>, InvalidExport> {
    // Without a complete first line the file is not recognizable as an export.
    let flaw = |what: &str| match line {
        1 => InvalidExport::NotAnExport(format!("line 1: {what}")),
        _ => InvalidExport::InvalidLine { line, id: None, what: what.to_owned() },
    };
    let mut bytes = Vec::new();
    input.by_ref().take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.len() > MAX_LINE_BYTES {
        return Err(flaw("it exceeds the maximum length of a line"));
    }
    hash.update(&bytes);
    if bytes.pop() != Some(b'\n') {
        return Err(flaw("it has no line end: the file is truncated"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| flaw("it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(bytes: &[u8], number: u64) -> Result<Option<String>, InvalidExport> {
        next_line(&mut &*bytes, &mut Sha256::new(), number)
    }

    #[test]
    fn a_line_has_an_end_and_is_text() {
        assert_eq!(line(b"one\ntwo\n", 1).unwrap().as_deref(), Some("one"));
        assert_eq!(line(b"", 2).unwrap(), None);
        for bytes in [&b"cut"[..], b"\xff\n"] {
            assert!(
                matches!(line(bytes, 1), Err(InvalidExport::NotAnExport(_))),
                "its first line is not a header"
            );
            assert!(matches!(line(bytes, 2), Err(InvalidExport::InvalidLine { line: 2, .. })));
        }
    }

    #[test]
    fn a_line_is_read_up_to_64_mebibytes() {
        const MOST: usize = 64 * 1024 * 1024;
        let mut bytes = vec![b' '; MOST + 1];
        bytes[MOST - 1] = b'\n';
        assert_eq!(line(&bytes, 2).unwrap().map(|line| line.len()), Some(MOST - 1));
        bytes[MOST - 1] = b' ';
        bytes[MOST] = b'\n';
        let longer = line(&bytes, 2).unwrap_err().to_string();
        assert!(longer.contains("exceeds the maximum length"), "{longer}");
    }
}
