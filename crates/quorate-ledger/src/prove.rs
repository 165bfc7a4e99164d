//! Proofs for third parties (D2): files that prove, without the ledger, that records are under its checkpoint.
//!
//! [`Proof`] is the file. [`Store::prove`] makes one, [`check_proof`] checks one with keys that the verifier trusts.
//! Exports share the parts: [`ProvableRecord`] is one record with its path, [`SignedCheckpoint`] the checkpoint,
//! [`ChainChecker`] checks consecutive records, [`Envelope`] is a signature. `docs/ledger-export.md` specifies the
//! format.

mod chain_check;
pub(crate) mod check;

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quorate_kernel::canonical;
use quorate_kernel::ports::ledger::{Kind, LedgerError};
use quorate_protocol::{Json, Name};
use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::Store;
use crate::merkle::{self, Hash, Subtree};
use crate::note::Verifier;
use crate::record::Head;
use crate::signing::{KeyId, PublicKey, Signature, SigningContext};
use crate::store::engine::{Column, Engine, Row, Value, sql};
use crate::store::tiles::{self, StoredTree, TreeError};
use crate::store::{CheckpointRecord, STREAM};
use check::RecordChecker;

pub use chain_check::{ChainChecker, GapRule};
pub use check::{
    InvalidProof, MAX_PROOF_BYTES, ProvenRecord, SignedCheckpoint, TrustedKey, VerifiedProof, check_proof,
    from_canonical_json,
};
pub(crate) use check::{check_all_used, from_exact_value, signer_keys, to_hex_texts};

/// The version of the format.
pub const PROOF_VERSION: u32 = 1;

/// The file: canonical JSON and a line end. The fields are in the order of canonical JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// The checkpoint, as a signed note.
    pub checkpoint: String,
    /// The verifiers of the checkpoint, one line each.
    pub keys: Vec<String>,
    /// The ledger's name.
    pub origin: String,
    /// The records, in the order of the run.
    pub records: Vec<ProofRecord>,
    /// The public keys of the records' signers, sorted.
    pub signers: Vec<String>,
    /// The version of the format.
    pub v: u32,
}

/// A record of a proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofRecord {
    /// `<run>/<n>`.
    pub id: String,
    #[serde(flatten)]
    pub record: ProvableRecord,
}

/// A record with its proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvableRecord {
    /// Its position in the ledger, from 0.
    pub index: u64,
    /// Canonical JSON.
    pub head: String,
    /// Canonical JSON; `None` if it was erased.
    pub data: Option<String>,
    /// The hashes of the path, from the record's sibling up, 64 hexadecimal digits each.
    #[serde(rename = "leaf_path")]
    pub path: Vec<String>,
    /// Signatures, in the order of the keys' names.
    pub signatures: Vec<Envelope>,
}

/// A record verified against its tree.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedRecord {
    pub head: Head,
    pub leaf: Hash,
    /// Its time, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Its body; `None` if it was erased.
    pub data: Option<Map<String, Json>>,
    /// The keys that signed it.
    pub signers: Vec<KeyId>,
}

/// Why a proof cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    #[error("the ledger has no record {id}")]
    UnknownRecord { id: String },
    /// A record follows the last checkpoint.
    #[error("record {id} is not sealed yet")]
    NotSealed { id: String },
    /// The last checkpoint is unsigned.
    #[error("the last checkpoint is unsigned")]
    UnsignedCheckpoint,
    /// The ledger is inconsistent or unavailable.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl Proof {
    /// The file's text.
    ///
    /// # Errors
    /// Never: a proof always has a JSON form.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        Ok(canonical::text(&serde_json::to_value(self)?)? + "\n")
    }
}

impl Store {
    /// Proves that a run's records, or one of them, are in the tree of the last checkpoint. `known` are public keys
    /// that may have signed records, in addition to those that the run itself names.
    ///
    /// # Errors
    /// [`ProveError`].
    #[crate::boxed]
    pub async fn prove(&self, run: &Name, n: Option<u64>, known: &[PublicKey]) -> Result<Proof, ProveError> {
        let sealed = self.last_checkpoint().await?;
        let mut connection = self.writer().await;
        let engine = connection.engine().await.map_err(|error| self.error(error))?;
        let rows = rows(engine, run, n).await.map_err(|error| self.error(error))?;
        let id = |n: u64| format!("{run}/{n}");
        if rows.is_empty() {
            return Err(ProveError::UnknownRecord { id: n.map_or_else(|| run.to_string(), id) });
        }
        let size = sealed.as_ref().map_or(0, |sealed| sealed.tree.size);
        if let Some(row) = rows.iter().find(|row| row.count(0) > size) {
            return Err(ProveError::NotSealed { id: id(row.count(1)) });
        }
        let Some(sealed) = sealed.filter(|sealed| sealed.note.is_some()) else {
            return Err(ProveError::UnsignedCheckpoint);
        };
        let differs = |n: u64, what: String| LedgerError::Corrupt { run: run.clone(), n, what };
        let seal = |what: String| LedgerError::Corrupt { run: STREAM.into(), n: sealed.n, what };
        let mut checking = RecordChecker::new(&sealed, GapRule::Allowed).map_err(seal)?;
        tiles::ensure_root(engine, &sealed.tree).await.map_err(|error| self.error(error.into()))?;
        let mut paths = InclusionPaths::new(size);
        let mut records = Vec::with_capacity(rows.len());
        let (mut signers, mut looked_up) = (Vec::new(), BTreeSet::new());
        for row in &rows {
            let n = row.count(1);
            let item = read_item(self, engine, &mut paths, row, run).await?;
            for key in item.signatures.iter().flat_map(|signature| &signature.signatures) {
                if looked_up.insert(key.keyid.clone()) {
                    let found = find_signer(engine, known, &key.keyid).await;
                    let found = found.map_err(|error| self.error(error))?;
                    checking.add_signer(&key.keyid, found);
                    signers.extend(found);
                }
            }
            let checked = checking.check(&item).map_err(|what| differs(n, what))?;
            if checked.head.run != **run || checked.head.n != n {
                return Err(differs(n, "its head belongs to another record".to_owned()).into());
            }
            records.push(ProofRecord { id: id(n), record: item });
        }
        let CheckpointRecord { origin, note, keys, .. } = sealed;
        let checkpoint = note.unwrap_or_default();
        Ok(Proof { checkpoint, keys, origin, records, signers: public_texts(&signers), v: PROOF_VERSION })
    }
}

/// Texts of public keys, sorted, each once.
pub(crate) fn public_texts(keys: &[PublicKey]) -> Vec<String> {
    let mut texts: Vec<String> = keys.iter().map(ToString::to_string).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}

/// Position, number, head and data of a run's records, or of one of them.
async fn rows(engine: &mut Engine, run: &Name, n: Option<u64>) -> Result<Vec<Row>, sqlx::Error> {
    let all = "SELECT seq, n, head, data FROM record WHERE run = $1 AND n >= $2 AND n <= $3 ORDER BY n";
    let (first, last) = n.map_or((Value::from(0_u64), Value::from(i64::MAX)), |n| (n.into(), n.into()));
    let statement = sql(all).bind(&**run).bind(first).bind(last);
    statement.rows(engine, &[Column::Int, Column::Int, Column::Text, Column::Text]).await
}

/// A record of a run with its path and its signatures. The row's first columns are position, number, head and data.
///
/// # Errors
/// If the record differs from the sealed one, the stored tree is incomplete, or the store does not answer.
pub(crate) async fn read_item(
    store: &Store,
    engine: &mut Engine,
    paths: &mut InclusionPaths,
    row: &Row,
    run: &str,
) -> Result<ProvableRecord, LedgerError> {
    let (index, n, head, data) = (row.count(0) - 1, row.count(1), row.text(2), row.opt_text(3));
    let (leaf, path) = paths.path(engine, index).await.map_err(|error| store.error(error.into()))?;
    if crate::merkle::leaf(head.as_bytes()) != leaf {
        let what = "it differs from the sealed record; run `quorate ledger verify`".to_owned();
        return Err(LedgerError::Corrupt { run: run.into(), n, what });
    }
    let signatures = read_signatures(engine, run, n, &leaf).await.map_err(|error| store.error(error))?;
    let path = to_hex_texts(&path);
    Ok(ProvableRecord { index, head: head.to_owned(), data: data.map(str::to_owned), path, signatures })
}

async fn read_signatures(
    engine: &mut Engine,
    run: &str,
    n: u64,
    leaf: &Hash,
) -> Result<Vec<Envelope>, sqlx::Error> {
    let statement = sql("SELECT key, signature FROM signature WHERE run = $1 AND n = $2 ORDER BY key");
    let rows = statement.bind(run).bind(n).rows(engine, &[Column::Text, Column::Text]).await?;
    Ok(rows.iter().map(|row| Envelope::new(leaf, row.text(0), row.text(1))).collect())
}

/// The public keys in the body of a record: a run's first record, a `keyring` record or a checkpoint.
fn keys_in_record(data: &Json) -> Vec<PublicKey> {
    let list = |at: &str| data.pointer(at).and_then(Json::as_array).into_iter().flatten();
    let texts = list("/audit/keyring").chain(list("/vouched").filter_map(|vouched| vouched.get("key")));
    let keys = texts.filter_map(|key| PublicKey::from_text(key.as_str()?).ok());
    let verifiers = list("/keys").filter_map(|key| Verifier::from_text(key.as_str()?).ok());
    keys.chain(verifiers.map(|verifier| *verifier.key())).collect()
}

/// Looks up a public key by its name among the known ones, those that a run names, and the ledger's own.
pub(crate) async fn find_signer(
    engine: &mut Engine,
    known: &[PublicKey],
    keyid: &str,
) -> Result<Option<PublicKey>, sqlx::Error> {
    let is = |key: &PublicKey| key.id().to_string() == keyid;
    if let Some(key) = known.iter().find(|key| is(key)) {
        return Ok(Some(*key));
    }
    let signed = sql("SELECT run FROM signature WHERE key = $1 LIMIT 1").bind(keyid);
    let Some(run) = signed.row(engine, &[Column::Text]).await?.map(|row| row.text(0).to_owned()) else {
        return Ok(None);
    };
    // Checkpoints contain the ledger's keys, runs their own.
    let kind = if run == STREAM { Kind::Checkpoint } else { Kind::Keyring };
    let statement = sql("SELECT data FROM record WHERE run = $1 AND (n = 0 OR kind = $2) ORDER BY n");
    let rows = statement.bind(&*run).bind(kind.as_str()).rows(engine, &[Column::Text]).await?;
    let says = rows.iter().filter_map(|row| serde_json::from_str::<Json>(row.opt_text(0)?).ok());
    Ok(says.flat_map(|data| keys_in_record(&data)).find(is))
}

/// A DSSE envelope around one signature of one record. The fields are in the order of canonical JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// The record's leaf, 32 bytes in standard base64.
    pub payload: String,
    /// The signing context of the signature.
    #[serde(rename = "payloadType")]
    pub payload_type: String,
    /// The signature, exactly one.
    pub signatures: Vec<EnvelopeSignature>,
}

/// A signature of an envelope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvelopeSignature {
    /// The key's name, 32 hexadecimal digits.
    pub keyid: String,
    /// 64 bytes in standard base64.
    pub sig: String,
}

impl Envelope {
    /// Builds an envelope from a stored signature: the key's name and the signature's text.
    pub fn new(leaf: &Hash, keyid: &str, sig: &str) -> Self {
        Envelope {
            payload: STANDARD.encode(leaf),
            payload_type: SigningContext::RECORD.name().to_owned(),
            signatures: vec![EnvelopeSignature { keyid: keyid.to_owned(), sig: sig.to_owned() }],
        }
    }

    /// Verifies it for a leaf and known keys. Returns the key that signed. Does not verify a signature if only the name
    /// of its key is known.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub fn verify(&self, leaf: &Hash, known: &[PublicKey], unknown: &[KeyId]) -> Result<KeyId, String> {
        if self.payload_type != SigningContext::RECORD.name() {
            return Err(format!("an envelope has the payload type `{}`", self.payload_type));
        }
        if self.payload != STANDARD.encode(leaf) {
            return Err("an envelope's payload is not the record's leaf".to_owned());
        }
        let [signed] = &self.signatures[..] else {
            return Err(format!("an envelope must have one signature, not {}", self.signatures.len()));
        };
        let id = KeyId::from_text(&signed.keyid).map_err(|error| format!("a signature's key: {error}"))?;
        let signature = Signature::from_text(&signed.sig).map_err(|error| error.to_string())?;
        if unknown.contains(&id) {
            return Ok(id);
        }
        let Some(key) = known.iter().find(|key| key.id() == id) else {
            return Err(format!("it is signed by the key {id}, whose public half is unknown"));
        };
        key.verify(SigningContext::RECORD, leaf, &signature)
            .map_err(|_| format!("the signature of the key {id} does not verify"))?;
        Ok(id)
    }
}

/// Paths in the tree of one checkpoint, made from the stored hashes.
pub(crate) struct InclusionPaths {
    size: u64,
    stored: StoredTree,
}

impl InclusionPaths {
    /// The size of the tree.
    pub(crate) fn new(size: u64) -> Self {
        InclusionPaths { size, stored: StoredTree::default() }
    }

    /// The stored leaf of a record, by its index from 0, and the path from the leaf to the root.
    pub(crate) async fn path(
        &mut self,
        engine: &mut Engine,
        index: u64,
    ) -> Result<(Hash, Vec<Hash>), TreeError> {
        let leaf = self.stored.subtree(engine, Subtree { level: 0, index }).await?;
        let path = self.stored.path(engine, merkle::inclusion_ranges(index, self.size)).await?;
        Ok((leaf, path))
    }
}
