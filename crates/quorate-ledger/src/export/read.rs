//! Reads an export and checks each line as it comes. Every record returned before the last line is proven; only the last
//! line proves that none is missing.

use std::io::{BufRead, Read as _};

use quorate_kernel::entropy::{hex, sha256_hex, unhex};
use quorate_protocol::Json;
use sha2::{Digest as _, Sha256};

use super::wire::{self, Body, Header, Record, Totals, Trailer};
use crate::checkpoint::STREAM;
use crate::merkle::{Consistency, Frontier, TreeHead};
use crate::prove::{
    self, ChainChecker, CheckedRecord, GapRule, ProvableRecord, SignedCheckpoint, TrustedKey,
    from_canonical_json, from_exact_value,
};
use crate::signing::{KeyId, PublicKey};

/// The longest line that is read, in bytes.
pub const MAX_LINE_BYTES: usize = 64 << 20;

/// What an export holds, line by line.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A record, and what it says.
    Record(Box<ProvableRecord>, Box<CheckedRecord>),
    /// A text that the record before it names.
    Body {
        /// SHA-256 of the text.
        sha256: String,
        text: String,
    },
}

/// Why an export cannot be believed.
#[derive(Debug, thiserror::Error)]
pub enum InvalidExport {
    #[error("it is no export: {0}")]
    NotAnExport(String),
    /// A line does not hold.
    #[error("line {line}{}: {what}", id.as_ref().map(|id| format!(" ({id})")).unwrap_or_default())]
    InvalidLine {
        /// Which one, from 1.
        line: u64,
        /// The record, where it is one's.
        id: Option<String>,
        /// The invalid part.
        what: String,
    },
    /// It cannot be read.
    #[error("it cannot be read")]
    Io(#[from] std::io::Error),
}

/// An export that is being read.
pub struct Reader<R> {
    input: R,
    line: u64,
    hash: Sha256,
    /// The same for the whole file, with its last line.
    file_sha256: Option<String>,
    header: Header,
    tree: TreeHead,
    checkpoint: Option<SignedCheckpoint>,
    known: Vec<PublicKey>,
    signers: Vec<PublicKey>,
    used_signers: Vec<KeyId>,
    chain: ChainChecker,
    /// All leaves, where it is of all records from the beginning.
    frontier: Option<Frontier>,
    seq: u64,
    totals: Totals,
    /// The hashes that the last record names, its run, and the last text that came.
    expected_texts: Vec<String>,
}

impl<R: BufRead> Reader<R> {
    /// Reads the first line. `signers`, where there are any, are the keys one of which must have signed each record that
    /// is signed.
    ///
    /// # Errors
    /// [`InvalidExport`].
    pub fn open(mut input: R, signers: &[PublicKey]) -> Result<Self, InvalidExport> {
        let mut hash = Sha256::new();
        let text = next_line(&mut input, &mut hash, 1)?
            .ok_or_else(|| InvalidExport::NotAnExport("it is empty".into()))?;
        let header: Header = from_canonical_json(&text).map_err(InvalidExport::NotAnExport)?;
        if header.quorate_export != wire::VERSION {
            let ours = wire::VERSION;
            let what = format!("its version is {}, and this program reads {ours}", header.quorate_export);
            return Err(InvalidExport::NotAnExport(what));
        }
        let flaw = |what: String| InvalidExport::InvalidLine { line: 1, id: None, what };
        let root = unhex(&header.root).ok_or_else(|| flaw("its root is no hash".into()))?;
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
        Ok(Reader {
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
            totals: Totals { bodies: 0, records: 0, sha256: String::new(), signatures: 0 },
            expected_texts: Vec::new(),
            header,
        })
    }

    /// Reads on; nothing after the last line, which has shown then that all is there.
    ///
    /// # Errors
    /// [`InvalidExport`].
    pub fn next_entry(&mut self) -> Result<Option<Entry>, InvalidExport> {
        if self.file_sha256.is_some() {
            return Ok(None);
        }
        let before = hex(&self.hash.clone().finalize());
        let Some(text) = next_line(&mut self.input, &mut self.hash, self.line + 1)? else {
            return Err(self.invalid_line(None, "it ends without its last line: it was cut".into()));
        };
        self.line += 1;
        let flaw = |what: String| InvalidExport::InvalidLine { line: self.line, id: None, what };
        let value: Json = from_canonical_json(&text).map_err(flaw)?;
        let has = |key: &str| value.get(key).is_some();
        if has("head") {
            let record = from_exact_value(value).map_err(flaw)?;
            self.record(record).map(Some)
        } else if has("body") {
            let body = from_exact_value(value).map_err(flaw)?;
            self.body(body).map(Some)
        } else {
            let last = from_exact_value(value).map_err(flaw)?;
            self.read_trailer(last, &before)?;
            Ok(None)
        }
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many lines of each kind came.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// SHA-256 of the whole file, once the last line has come.
    pub fn file_sha256(&self) -> Option<&str> {
        self.file_sha256.as_deref()
    }

    /// The trusted key that signed the checkpoint.
    pub fn trusted_key(&self, trusted: &[TrustedKey]) -> Option<String> {
        self.checkpoint.as_ref()?.trusted_key(trusted).map(ToString::to_string)
    }

    fn record(&mut self, record: Record) -> Result<Entry, InvalidExport> {
        let Record { data, head, path, seq, signatures } = record;
        let index =
            seq.checked_sub(1).ok_or_else(|| self.invalid_line(None, "places count from 1".into()))?;
        let item = ProvableRecord { index, head, data, path, signatures };
        let checked = item.check(&self.tree, &self.known).map_err(|what| self.invalid_line(None, what))?;
        let id = Some(format!("{}/{}", checked.head.run, checked.head.n));
        if let Err(what) = self.check_record(seq, &checked) {
            return Err(self.invalid_line(id, what));
        }
        self.expected_texts = checked.data.iter().flat_map(wire::named_hashes).map(str::to_owned).collect();
        self.expected_texts.reverse();
        Ok(Entry::Record(Box::new(item), Box::new(checked)))
    }

    fn check_record(&mut self, seq: u64, checked: &CheckedRecord) -> Result<(), String> {
        let runs = self.header.runs.as_ref();
        if seq <= self.seq || (runs.is_none() && seq != self.seq + 1) {
            return Err(format!("it is at place {seq} after place {}", self.seq));
        }
        if runs.is_some_and(|runs| runs.binary_search(&checked.head.run).is_err()) {
            return Err("its run is not one of those that the export is of".into());
        }
        let is_requested = |id: &KeyId| self.signers.iter().any(|key| key.id() == *id);
        // The ledger's own stream is signed by the ledger's key.
        let is_asked = !self.signers.is_empty() && checked.head.run != STREAM;
        if is_asked && !checked.signers.is_empty() && !checked.signers.iter().any(is_requested) {
            return Err("none of the signers that were asked for signed it".into());
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

    fn body(&mut self, body: Body) -> Result<Entry, InvalidExport> {
        let Body { body: sha256, text } = body;
        if sha256_hex(text.as_bytes()) != sha256 {
            return Err(self.invalid_line(None, "the text does not have the hash that it is under".into()));
        }
        // They come in the order of their hashes, each once.
        while let Some(name) = self.expected_texts.pop() {
            if name == sha256 {
                self.totals.bodies += 1;
                return Ok(Entry::Body { sha256, text });
            }
        }
        Err(self.invalid_line(
            None,
            "the record before it does not name this text, or names it before another".into(),
        ))
    }

    fn read_trailer(&mut self, last: Trailer, before: &str) -> Result<(), InvalidExport> {
        let Totals { bodies, records, ref sha256, signatures } = last.end;
        let Totals { bodies: ours, records: our_records, signatures: our_signatures, .. } = self.totals;
        if (bodies, records, signatures) != (ours, our_records, our_signatures) {
            let what = "the last line counts other lines than there are: some were cut or added";
            return Err(self.invalid_line(None, what.into()));
        }
        if sha256 != before {
            return Err(self.invalid_line(None, "the last line is of another file".into()));
        }
        if self.header.runs.is_none() && self.seq != self.tree.size {
            let what =
                format!("the checkpoint is over {} records, and there are {}", self.tree.size, self.seq);
            return Err(self.invalid_line(None, what));
        }
        if self.frontier.as_ref().is_some_and(|frontier| frontier.tree_head() != self.tree) {
            return Err(
                self.invalid_line(None, "the records lead to another root than the checkpoint's".into())
            );
        }
        prove::check_all_used(&self.header.signers, &self.used_signers)
            .map_err(|what| self.invalid_line(None, what))?;
        let mut rest = [0];
        if self.input.read(&mut rest)? != 0 {
            return Err(self.invalid_line(None, "something follows the last line".into()));
        }
        self.file_sha256 = Some(hex(&self.hash.clone().finalize()));
        Ok(())
    }

    fn invalid_line(&self, id: Option<String>, what: String) -> InvalidExport {
        InvalidExport::InvalidLine { line: self.line, id, what }
    }
}

/// The checkpoint of a header; `None` for an unsigned export.
fn open_checkpoint(header: &Header, tree: &TreeHead) -> Result<Option<SignedCheckpoint>, String> {
    let Some(note) = &header.note else {
        return if header.keys.is_empty() { Ok(None) } else { Err("it has keys and no signed note".into()) };
    };
    let checkpoint = SignedCheckpoint::open(note, &header.keys)?;
    if checkpoint.origin != header.origin || checkpoint.tree != *tree {
        return Err("its checkpoint is of another log or another tree".into());
    }
    Ok(Some(checkpoint))
}

/// Checks the tree after which an export starts against the whole one.
fn check_prefix(from: &wire::Prefix, tree: &TreeHead) -> Result<(), String> {
    let root = unhex(&from.root).ok_or("the root of `from` is no hash")?;
    let path = from.path.iter().map(|hash| unhex(hash).ok_or("the path of `from` has what is no hash"));
    let path = path.collect::<Result<_, _>>()?;
    if from.size == 0 {
        return Err("an export from the beginning has no `from`".into());
    }
    let proof = Consistency { old: from.size, new: tree.size, path };
    let old = TreeHead { size: from.size, root };
    proof.verify(&old, tree).map_err(|error| format!("`from` is no prefix of the log: {error}"))
}

/// The next line without its end; nothing at the end of the file.
fn next_line(
    input: &mut impl BufRead,
    hash: &mut Sha256,
    line: u64,
) -> Result<Option<String>, InvalidExport> {
    // Without a whole first line nothing says that it is an export.
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
        return Err(flaw("it is longer than lines that are read"));
    }
    hash.update(&bytes);
    if bytes.pop() != Some(b'\n') {
        return Err(flaw("it has no end: the file was cut"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| flaw("it is not UTF-8"))
}

#[cfg(test)]
mod tests;
