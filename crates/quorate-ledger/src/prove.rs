//! Proofs for third parties (D2): files that prove, without the ledger, that records are under its checkpoint.
//!
//! [`Proof`] is the file. [`Store::prove`] makes one, [`check_proof`] checks one with keys that the verifier trusts. The
//! parts are shared with exports: [`ProvableRecord`] is one record with its path, [`SignedCheckpoint`] the checkpoint,
//! [`ChainChecker`] checks consecutive records, [`Envelope`] is a signature. `docs/ledger-export.md` specifies the format.

mod chain_check;
mod check;
mod envelope;
pub(crate) mod inclusion_paths;
mod provable_record;
pub(crate) mod record_checker;
mod signed_checkpoint;

use quorate_kernel::canonical;
use quorate_kernel::ports::ledger::{Error, Kind};
use quorate_protocol::{Json, Name};
use serde::{Deserialize, Serialize};

use crate::Store;
use crate::merkle::Hash;
use crate::note::Verifier;
use crate::signing::PublicKey;
use crate::store::engine::{Column, Engine, Row, sql};
use crate::store::tiles::{self, TreeError};
use crate::store::{CheckpointRecord, STREAM};
use inclusion_paths::InclusionPaths;
use record_checker::RecordChecker;

pub use chain_check::{ChainChecker, GapRule};
pub use check::{InvalidProof, MAX_BYTES, ProvenRecord, VerifiedProof, check_proof};
pub(crate) use check::{check_all_used, signer_keys};
pub use envelope::{Envelope, EnvelopeSignature};
pub use provable_record::{CheckedRecord, ProvableRecord, from_canonical_json};
pub(crate) use provable_record::{from_exact_value, to_hex_texts};
pub use signed_checkpoint::{SignedCheckpoint, TrustedKey};

/// The version of the format.
pub const VERSION: u32 = 1;

/// A proof as it is written: canonical JSON and a line end. Its fields are in the order of canonical JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// The checkpoint, as a signed note.
    pub checkpoint: String,
    /// Who signed the checkpoint: verifiers' lines.
    pub keys: Vec<String>,
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
#[serde(deny_unknown_fields)]
pub struct ProofRecord {
    /// Canonical JSON; null where it was erased.
    pub data: Option<String>,
    /// Canonical JSON.
    pub head: String,
    /// `<run>/<n>`.
    pub id: String,
    /// Its place in the ledger's order, from 0.
    pub index: u64,
    /// From its sibling up, 64 hexadecimal digits each.
    pub leaf_path: Vec<String>,
    /// Its signatures, in the order of the keys' names.
    pub signatures: Vec<Envelope>,
}

/// Why there is no proof.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    #[error("the ledger has no record {id}")]
    UnknownRecord { id: String },
    /// A record is after the last checkpoint.
    #[error("record {id} is not sealed yet")]
    NotSealed { id: String },
    /// The last checkpoint is unsigned.
    #[error("the last checkpoint is unsigned")]
    UnsignedCheckpoint,
    /// The ledger is inconsistent, or does not answer.
    #[error(transparent)]
    Ledger(#[from] Error),
}

impl Proof {
    /// The file's text.
    ///
    /// # Errors
    /// When it cannot be written as JSON, which it always can.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        Ok(canonical::text(&serde_json::to_value(self)?)? + "\n")
    }
}

impl Store {
    /// Proves that a run's records, or one of them, are in the tree of the last checkpoint. `known` are public keys that
    /// may have signed records; those that a run names itself need not be among them.
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
        let differs = |n: u64, what: String| Error::Corrupt { run: run.clone(), n, what };
        let seal = |what: String| Error::Corrupt { run: STREAM.into(), n: sealed.n, what };
        let mut checking = RecordChecker::new(&sealed, GapRule::Allowed).map_err(seal)?;
        let tree = sealed.tree;
        let broken = |error: TreeError| self.tree_error(error);
        if !tiles::leads_to_root(engine, &tree).await.map_err(broken)? {
            return Err(self
                .tree_error(TreeError::Incomplete("its root is not the checkpoint's".to_owned()))
                .into());
        }
        let mut paths = InclusionPaths::new(size);
        let mut records = Vec::with_capacity(rows.len());
        let (mut signers, mut lookup) = (Vec::new(), SignerLookup::new(known));
        for row in &rows {
            let (n, index) = (row.count(1), row.count(0) - 1);
            let item =
                read_item(engine, &mut paths, row, run, n, index).await.map_err(|error| match error {
                    ReadError::Store(error) => self.tree_error(error),
                    ReadError::Differs(what) => differs(n, what),
                })?;
            for key in item.signatures.iter().flat_map(|signature| &signature.signatures) {
                if lookup.is_new(&key.keyid) {
                    let found = lookup.find(engine, &key.keyid).await.map_err(|error| self.error(error))?;
                    checking.add_signer(&key.keyid, found);
                    signers.extend(found);
                }
            }
            let checked = checking.check(&item).map_err(|what| differs(n, what))?;
            if checked.head.run != **run || checked.head.n != n {
                return Err(differs(n, "its head is of another record".to_owned()).into());
            }
            let ProvableRecord { index, head, data, path, signatures } = item;
            records.push(ProofRecord { data, head, id: id(n), index, leaf_path: path, signatures });
        }
        let CheckpointRecord { origin, note, keys, .. } = sealed;
        let checkpoint = note.unwrap_or_default();
        Ok(Proof { checkpoint, keys, origin, records, signers: public_texts(signers), v: VERSION })
    }

    /// What is wrong with the stored tree, as the ledger's error.
    pub(crate) fn tree_error(&self, error: TreeError) -> Error {
        match error {
            TreeError::Store(error) => self.error(error),
            TreeError::Incomplete(what) => Error::Corrupt {
                run: crate::store::STREAM.into(),
                n: 0,
                what: format!(
                    "the stored tree does not lead to the last checkpoint ({what}); see `quorate ledger verify`"
                ),
            },
        }
    }
}

/// Texts of public keys, sorted, each once.
pub(crate) fn public_texts(keys: Vec<PublicKey>) -> Vec<String> {
    let mut texts: Vec<String> = keys.iter().map(ToString::to_string).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}

/// Place, number, head and data of a run's records, or of one.
async fn rows(engine: &mut Engine, run: &Name, n: Option<u64>) -> Result<Vec<Row>, sqlx::Error> {
    let statement = match n {
        Some(n) => {
            let one = "SELECT seq, n, head, data FROM record WHERE run = $1 AND n = $2";
            sql(one).bind(&**run).bind(n)
        }
        None => sql("SELECT seq, n, head, data FROM record WHERE run = $1 ORDER BY n").bind(&**run),
    };
    statement.rows(engine, &[Column::Int, Column::Int, Column::Text, Column::Text]).await
}

/// Why a record cannot be given with its path.
pub(crate) enum ReadError {
    Store(TreeError),
    Differs(String),
}

impl From<sqlx::Error> for ReadError {
    fn from(error: sqlx::Error) -> Self {
        ReadError::Store(error.into())
    }
}

/// A record with its path and its signatures; the row has head and data as its third and fourth column.
pub(crate) async fn read_item(
    engine: &mut Engine,
    paths: &mut InclusionPaths,
    row: &Row,
    run: &str,
    n: u64,
    index: u64,
) -> Result<ProvableRecord, ReadError> {
    let (head, data) = (row.text(2), row.opt_text(3));
    let (leaf, path) = paths.path(engine, index).await.map_err(ReadError::Store)?;
    if crate::merkle::leaf(head.as_bytes()) != leaf {
        return Err(ReadError::Differs(
            "it is not the record that was sealed; see `quorate ledger verify`".into(),
        ));
    }
    let signatures = read_signatures(engine, run, n, &leaf).await?;
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

/// The public keys that the body of a record names: a run's first one, one that adds keys, or a checkpoint.
fn keys_in_record(data: &Json) -> Vec<PublicKey> {
    let list = |at: &str| data.pointer(at).and_then(Json::as_array).into_iter().flatten();
    let texts = list("/audit/keyring").chain(list("/vouched").filter_map(|vouched| vouched.get("key")));
    let keys = texts.filter_map(|key| PublicKey::from_text(key.as_str()?).ok());
    let verifiers = list("/keys").filter_map(|key| Verifier::from_text(key.as_str()?).ok());
    keys.chain(verifiers.map(|verifier| *verifier.key())).collect()
}

/// The public keys behind the names of keys: known ones, those that a run names, and the ledger's own.
pub(crate) struct SignerLookup<'a> {
    known: &'a [PublicKey],
    looked_up: Vec<String>,
}

impl<'a> SignerLookup<'a> {
    pub(crate) fn new(known: &'a [PublicKey]) -> Self {
        SignerLookup { known, looked_up: Vec::new() }
    }

    /// Whether the key of this name was not looked up yet.
    pub(crate) fn is_new(&self, keyid: &str) -> bool {
        !self.looked_up.iter().any(|known| known == keyid)
    }

    /// The key of a name, once.
    pub(crate) async fn find(
        &mut self,
        engine: &mut Engine,
        keyid: &str,
    ) -> Result<Option<PublicKey>, sqlx::Error> {
        if !self.is_new(keyid) {
            return Ok(None);
        }
        self.looked_up.push(keyid.to_owned());
        let is = |key: &PublicKey| key.id().to_string() == keyid;
        if let Some(key) = self.known.iter().find(|key| is(key)) {
            return Ok(Some(*key));
        }
        let signed = sql("SELECT run FROM signature WHERE key = $1 LIMIT 1").bind(keyid);
        let Some(run) = signed.row(engine, &[Column::Text]).await?.map(|row| row.text(0).to_owned()) else {
            return Ok(None);
        };
        // The ledger's own key is in its checkpoints, another one in its run.
        let kind = if run == STREAM { Kind::Checkpoint } else { Kind::Keyring };
        let statement = sql("SELECT data FROM record WHERE run = $1 AND (n = 0 OR kind = $2) ORDER BY n");
        let rows = statement.bind(&*run).bind(kind.as_str()).rows(engine, &[Column::Text]).await?;
        let says = rows.iter().filter_map(|row| serde_json::from_str::<Json>(row.opt_text(0)?).ok());
        Ok(says.flat_map(|data| keys_in_record(&data)).find(is))
    }
}
