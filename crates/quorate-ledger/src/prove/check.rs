//! Checks a proof offline, from the file and keys alone.

use quorate_kernel::ports::ledger::Kind;
use quorate_kernel::record::{self, Outcome, Override};
use quorate_protocol::Json;
use serde_json::Map;

use super::provable_record::from_canonical_json;
use super::{ChainChecker, GapRule, Proof, ProvableRecord, SignedCheckpoint, TrustedKey, VERSION};
use crate::checkpoint::STREAM;
use crate::merkle::TreeHead;
use crate::note::Verifier;
use crate::signing::{KeyId, PublicKey};

/// The longest proof that is read, in bytes.
pub const MAX_BYTES: usize = 64 << 20;

/// What a proof proves.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedProof {
    pub origin: String,
    /// Its size and root.
    pub tree: TreeHead,
    /// The trusted key; `None` means that a forger could have made the proof.
    pub trusted_key: Option<Verifier>,
    /// The keys that signed the checkpoint.
    pub keys: Vec<Verifier>,
    pub records: Vec<ProvenRecord>,
}

/// What is proven of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvenRecord {
    pub run: String,
    /// Its number in the run.
    pub n: u64,
    pub kind: String,
    /// When it was recorded, as its head says.
    pub at: String,
    /// Its index in the ledger's order.
    pub index: u64,
    /// Its body, where the proof includes it.
    pub data: Option<Map<String, Json>>,
    /// When it was recorded, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// The keys that signed it.
    pub signers: Vec<KeyId>,
    /// The run's verdict, if this record is its outcome.
    pub verdict: Option<String>,
    /// What a person decided beside that, where this record is an override.
    pub override_decision: Option<OverrideDecision>,
}

/// A person's decision, as an override says it. It takes nothing away from the outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverrideDecision {
    /// What the person decided.
    pub verdict: String,
    pub by: Option<String>,
    /// The council's verdict, as the override quotes it.
    pub council: Option<String>,
}

/// Why a proof proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProof {
    /// It is no proof in the form that is written.
    #[error("it is no proof: {0}")]
    NotAProof(String),
    /// It is a proof, but an invalid one.
    #[error("{place}: {what}")]
    InvalidPart {
        /// Where: `the checkpoint`, `the signers`, `the records`, or a record's id.
        place: String,
        /// The invalid part.
        what: String,
    },
}

/// Checks a proof against keys. `signers`, if not empty, are the keys one of which must have signed each record.
///
/// # Errors
/// [`InvalidProof`] for the first invalid part.
pub fn check_proof(
    text: &str,
    trusted: &[TrustedKey],
    signers: &[PublicKey],
) -> Result<VerifiedProof, InvalidProof> {
    if text.len() > MAX_BYTES {
        return Err(InvalidProof::NotAProof(format!(
            "it has {} bytes, more than the maximum of {MAX_BYTES}",
            text.len()
        )));
    }
    let line = text
        .strip_suffix('\n')
        .ok_or_else(|| InvalidProof::NotAProof("it has no line end at its end".into()))?;
    let proof: Proof = from_canonical_json(line).map_err(InvalidProof::NotAProof)?;
    if proof.v != VERSION {
        let what = format!("its version is {}, and this program reads {VERSION}", proof.v);
        return Err(InvalidProof::NotAProof(what));
    }
    let at_checkpoint = |what: String| InvalidProof::InvalidPart { place: "the checkpoint".into(), what };
    let seal = SignedCheckpoint::open(&proof.checkpoint, &proof.keys).map_err(at_checkpoint)?;
    if seal.origin != proof.origin {
        return Err(at_checkpoint(format!("it is that of {}, and not of {}", seal.origin, proof.origin)));
    }
    let at_signers = |what: String| InvalidProof::InvalidPart { place: "the signers".into(), what };
    let known = signer_keys(&proof.signers, signers).map_err(at_signers)?;
    if proof.records.is_empty() {
        return Err(InvalidProof::InvalidPart {
            place: "the records".into(),
            what: "it is about no record".into(),
        });
    }
    let mut chain = ChainChecker::new(GapRule::Allowed);
    let mut used: Vec<KeyId> = Vec::new();
    let mut records = Vec::new();
    for proved in proof.records {
        let place = proved.id.clone();
        let fact = check_record(proved, &seal.tree, &known, signers, &mut chain)
            .map_err(|what| InvalidProof::InvalidPart { place, what })?;
        used.extend(&fact.signers);
        records.push(fact);
    }
    check_all_used(&proof.signers, &used).map_err(at_signers)?;
    let trusted_key = seal.trusted_key(trusted).cloned();
    Ok(VerifiedProof { origin: seal.origin, tree: seal.tree, trusted_key, keys: seal.keys, records })
}

fn check_record(
    proved: super::ProofRecord,
    tree: &TreeHead,
    known: &[PublicKey],
    signers: &[PublicKey],
    course: &mut ChainChecker,
) -> Result<ProvenRecord, String> {
    let super::ProofRecord { data, head, id, index, leaf_path: path, signatures } = proved;
    let item = ProvableRecord { index, head, data, path, signatures };
    let checked = item.check(tree, known)?;
    if id != format!("{}/{}", checked.head.run, checked.head.n) {
        return Err(format!("its head says that it is {}/{}", checked.head.run, checked.head.n));
    }
    course.check_next(&checked)?;
    // The ledger's own stream is signed by the ledger's key.
    if !signers.is_empty()
        && checked.head.run != STREAM
        && !checked.signers.iter().any(|id| signers.iter().any(|key| key.id() == *id))
    {
        return Err("none of the signers that were asked for signed it".to_owned());
    }
    let data_of = |kind: Kind| checked.data.as_ref().filter(|_| checked.head.kind == kind.as_str());
    let (verdict, decided) =
        (data_of(Kind::Outcome).and_then(outcome_word), data_of(Kind::Override).and_then(parse_override));
    Ok(ProvenRecord {
        run: checked.head.run,
        n: checked.head.n,
        kind: checked.head.kind,
        at: checked.head.at,
        index,
        data: checked.data,
        at_ms: checked.at_ms,
        signers: checked.signers,
        verdict,
        override_decision: decided,
    })
}

/// What an outcome says in one word: a review's verdict, or the result of an assembly.
fn outcome_word(data: &Map<String, Json>) -> Option<String> {
    let outcome: Outcome = record::read(data).ok()?;
    outcome.word().map(str::to_owned)
}

/// What an override says.
fn parse_override(data: &Map<String, Json>) -> Option<OverrideDecision> {
    let Override { verdict, by, council_verdict: council, .. } = record::read(data).ok()?;
    let by = Some(by).filter(|by| !by.is_empty());
    (!verdict.is_empty()).then_some(OverrideDecision { verdict, by, council })
}

/// The signers' keys in the file, and those that the verifier trusts.
pub(crate) fn signer_keys(listed: &[String], given: &[PublicKey]) -> Result<Vec<PublicKey>, String> {
    if listed.windows(2).any(|two| two[0] >= two[1]) {
        return Err("its signers are not sorted".to_owned());
    }
    let mut known = given.to_vec();
    for text in listed {
        let key = PublicKey::from_text(text).map_err(|error| format!("a signer's key: {error}"))?;
        if key.to_string() != *text {
            return Err("a signer's key has another form than its own".to_owned());
        }
        known.push(key);
    }
    Ok(known)
}

/// Refuses keys that signed nothing: a key that is said to be a signer's is one.
pub(crate) fn check_all_used(listed: &[String], used: &[KeyId]) -> Result<(), String> {
    let ids = listed.iter().filter_map(|text| PublicKey::from_text(text).ok()).map(|key| key.id());
    match ids.into_iter().find(|id| !used.contains(id)) {
        Some(id) => Err(format!("the key {id} is listed as a signer's, and signed nothing")),
        None => Ok(()),
    }
}
