//! Checks a proof offline, from the file and keys only: the checkpoint, each record with its path and signatures, and
//! the chains.

use quorate_kernel::canonical;
use quorate_kernel::entropy::{hex, unhex};
use quorate_kernel::ports::ledger::Kind;
use quorate_kernel::record::{self, Outcome, Override};
use quorate_protocol::Json;
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::Map;

use super::{ChainChecker, CheckedRecord, GapRule, PROOF_VERSION, Proof, ProvableRecord};
use crate::merkle::{self, Hash, Inclusion, TreeHead};
use crate::note::{Checkpoint, Note, Verifier};
use crate::record::Head;
use crate::signing::{KeyId, PublicKey};
use crate::store::{CheckpointRecord, STREAM};

/// The longest accepted proof, in bytes.
pub const MAX_PROOF_BYTES: usize = 64 << 20;

/// The result of a valid proof.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerifiedProof {
    /// The ledger's name.
    pub origin: String,
    /// Its size and root.
    #[serde(flatten)]
    pub tree: TreeHead,
    /// The trusted key; `None` means that a forger could have made the proof.
    #[serde(rename = "vouched")]
    pub trusted_key: Option<Verifier>,
    /// The keys that signed the checkpoint.
    pub keys: Vec<Verifier>,
    /// The records, in the order of their run.
    pub records: Vec<ProvenRecord>,
}

/// A proven record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProvenRecord {
    /// The id of its run, or the name of its stream.
    pub run: String,
    /// Its number in the run.
    pub n: u64,
    /// Its kind, such as `outcome`.
    pub kind: String,
    /// The time in its head, RFC 3339 in UTC.
    pub at: String,
    /// Its index in the ledger's order.
    pub index: u64,
    /// Its body, if the proof includes it.
    #[serde(serialize_with = "is_included")]
    pub data: Option<Map<String, Json>>,
    /// The time of the record, in milliseconds since the Unix epoch.
    #[serde(skip)]
    pub at_ms: i64,
    /// The keys that signed it.
    pub signers: Vec<KeyId>,
    /// The run's verdict, if this record is its outcome.
    pub verdict: Option<String>,
    /// The person's decision, if this record is an override.
    #[serde(rename = "override")]
    pub override_decision: Option<OverrideDecision>,
}

fn is_included<S: Serializer>(data: &Option<Map<String, Json>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(data.is_some())
}

/// A person's decision in an override. The outcome remains in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OverrideDecision {
    /// The person's decision.
    pub verdict: String,
    /// The person, if the override names one.
    pub by: Option<String>,
    /// The council's verdict, as the override quotes it.
    #[serde(rename = "council_verdict")]
    pub council: Option<String>,
}

/// Why a proof is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProof {
    /// The file is not a proof in canonical form.
    #[error("not a proof: {0}")]
    NotAProof(String),
    /// A part of it is invalid.
    #[error("{place}: {what}")]
    InvalidPart {
        /// The part: `the checkpoint`, `the signers`, `the records`, or a record's id.
        place: String,
        /// The invalid part.
        what: String,
    },
}

/// Checks a proof with keys. If `signers` is not empty, one of them must have signed each record.
///
/// # Errors
/// [`InvalidProof`] for the first invalid part.
pub fn check_proof(
    text: &str,
    trusted: &[TrustedKey],
    signers: &[PublicKey],
) -> Result<VerifiedProof, InvalidProof> {
    if text.len() > MAX_PROOF_BYTES {
        return Err(InvalidProof::NotAProof(format!(
            "it has {} bytes, more than the maximum of {MAX_PROOF_BYTES}",
            text.len()
        )));
    }
    let line = text
        .strip_suffix('\n')
        .ok_or_else(|| InvalidProof::NotAProof("it does not end in a line end".into()))?;
    let proof: Proof = from_canonical_json(line).map_err(InvalidProof::NotAProof)?;
    if proof.v != PROOF_VERSION {
        let what = format!("its version is {}, but this program reads version {PROOF_VERSION}", proof.v);
        return Err(InvalidProof::NotAProof(what));
    }
    let flaw = |place: &str, what: String| InvalidProof::InvalidPart { place: place.to_owned(), what };
    let at_checkpoint = |what: String| flaw("the checkpoint", what);
    let seal = SignedCheckpoint::open(&proof.checkpoint, &proof.keys).map_err(at_checkpoint)?;
    if seal.origin != proof.origin {
        return Err(at_checkpoint(format!("it belongs to {}, not to {}", seal.origin, proof.origin)));
    }
    let at_signers = |what: String| flaw("the signers", what);
    let known = signer_keys(&proof.signers, signers).map_err(at_signers)?;
    if proof.records.is_empty() {
        return Err(flaw("the records", "it contains no record".to_owned()));
    }
    let mut chain = ChainChecker::new(GapRule::Allowed);
    let mut used: Vec<KeyId> = Vec::new();
    let mut records = Vec::new();
    for proved in proof.records {
        let place = proved.id.clone();
        let fact = check_record(proved, &seal.tree, &known, signers, &mut chain)
            .map_err(|what| flaw(&place, what))?;
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
    let super::ProofRecord { id, record } = proved;
    let (index, checked) = (record.index, record.check(tree, known)?);
    if id != format!("{}/{}", checked.head.run, checked.head.n) {
        return Err(format!("its head names {}/{}", checked.head.run, checked.head.n));
    }
    course.check_next(&checked)?;
    // The ledger's key signs its own stream.
    if !signers.is_empty()
        && checked.head.run != STREAM
        && !checked.signers.iter().any(|id| signers.iter().any(|key| key.id() == *id))
    {
        return Err("none of the required signers signed it".to_owned());
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

/// The outcome in one word: a review's verdict, or the result of an assembly.
fn outcome_word(data: &Map<String, Json>) -> Option<String> {
    let outcome: Outcome = record::read(data).ok()?;
    outcome.word().map(str::to_owned)
}

/// The decision in an override.
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
            return Err("a signer's key is not in canonical form".to_owned());
        }
        known.push(key);
    }
    Ok(known)
}

/// Refuses keys that signed nothing: each key in the list of signers must be one.
pub(crate) fn check_all_used(listed: &[String], used: &[KeyId]) -> Result<(), String> {
    let ids = listed.iter().filter_map(|text| PublicKey::from_text(text).ok()).map(|key| key.id());
    match ids.into_iter().find(|id| !used.contains(id)) {
        Some(id) => Err(format!("the key {id} is listed as a signer, but signed nothing")),
        None => Ok(()),
    }
}

/// Checks records one after another under one checkpoint.
pub(crate) struct RecordChecker {
    tree: TreeHead,
    chain: ChainChecker,
    known: Vec<PublicKey>,
    /// Names of signers whose public halves are unknown here: readers must know them.
    unknown: Vec<KeyId>,
}

impl RecordChecker {
    /// Starts under a checkpoint with verified signatures.
    ///
    /// # Errors
    /// The reason why the checkpoint is invalid.
    pub(crate) fn new(sealed: &CheckpointRecord, gaps: GapRule) -> Result<Self, String> {
        if let Some(note) = &sealed.note {
            let seal = SignedCheckpoint::open(note, &sealed.keys)?;
            if seal.origin != sealed.origin || seal.tree != sealed.tree {
                return Err("its note does not match its record".to_owned());
            }
        }
        let (known, unknown) = (Vec::new(), Vec::new());
        Ok(RecordChecker { tree: sealed.tree, chain: ChainChecker::new(gaps), known, unknown })
    }

    /// Looks up a signer's key by its name.
    pub(crate) fn add_signer(&mut self, name: &str, key: Option<PublicKey>) {
        match key {
            Some(key) => self.known.push(key),
            None => self.unknown.extend(KeyId::from_text(name)),
        }
    }

    /// Checks the next record against the checkpoint, its own hashes and signatures, and the records before it.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub(crate) fn check(&mut self, item: &ProvableRecord) -> Result<CheckedRecord, String> {
        let checked = item.check_allowing_unknown(&self.tree, &self.known, &self.unknown)?;
        self.chain.check_next(&checked)?;
        Ok(checked)
    }
}

/// A key that the verifier trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustedKey {
    /// A key with the name of one log.
    Verifier(Verifier),
    /// A key, for any log.
    Public(PublicKey),
}

/// A checkpoint. All of its signatures verify with the keys that came with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedCheckpoint {
    pub origin: String,
    /// Its size and root.
    pub tree: TreeHead,
    /// The keys that signed. They came with the checkpoint, so nothing proves whose they are.
    pub keys: Vec<Verifier>,
}

impl TrustedKey {
    /// Parses a key: a verifier's line (`<name>+<id>+<key>`) or a public key (`quorate:ed25519:public:…`).
    ///
    /// # Errors
    /// The reason why it is neither.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let line = text.trim();
        match PublicKey::from_text(line) {
            Ok(public) => Ok(TrustedKey::Public(public)),
            Err(_) => Verifier::from_text(line).map(TrustedKey::Verifier),
        }
    }

    fn matches(&self, verifier: &Verifier) -> bool {
        match self {
            TrustedKey::Verifier(trusted) => trusted == verifier,
            TrustedKey::Public(trusted) => trusted == verifier.key(),
        }
    }
}

impl SignedCheckpoint {
    /// Reads a signed note with its stated verifiers. Each signature must be by one of them, and each of them must have
    /// signed, so that no bit of the note or of a key can change.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub fn open(note: &str, keys: &[String]) -> Result<SignedCheckpoint, String> {
        let verifiers: Result<Vec<_>, String> = keys.iter().map(|key| Verifier::from_text(key)).collect();
        let verifiers = verifiers.map_err(|error| format!("a key of the checkpoint: {error}"))?;
        let parsed = Note::parse(note.as_bytes())?;
        let signers = parsed.verify(&verifiers)?;
        if signers.len() != verifiers.len()
            || parsed.signatures().len() != signers.len()
            || parsed.to_string() != note
        {
            return Err("the checkpoint must have one signature by each of its keys".to_owned());
        }
        let checkpoint = Checkpoint::parse(parsed.text())?;
        if let Some(other) = verifiers.iter().find(|key| key.name() != checkpoint.origin()) {
            return Err(format!(
                "the key {} signs for another log than {}",
                other.name(),
                checkpoint.origin()
            ));
        }
        Ok(SignedCheckpoint {
            origin: checkpoint.origin().to_owned(),
            tree: *checkpoint.tree(),
            keys: verifiers,
        })
    }

    /// The first signer that the verifier trusts.
    pub fn trusted_key(&self, trusted: &[TrustedKey]) -> Option<&Verifier> {
        self.keys.iter().find(|key| trusted.iter().any(|candidate| candidate.matches(key)))
    }
}

impl ProvableRecord {
    /// Checks it against a tree and the public keys of signers.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub fn check(&self, tree: &TreeHead, known: &[PublicKey]) -> Result<CheckedRecord, String> {
        self.check_allowing_unknown(tree, known, &[])
    }

    /// As [`ProvableRecord::check`], but accepts a signature if only the name of its key is known.
    pub(crate) fn check_allowing_unknown(
        &self,
        tree: &TreeHead,
        known: &[PublicKey],
        unknown: &[KeyId],
    ) -> Result<CheckedRecord, String> {
        let head = Head::parse(&self.head)?;
        let at_ms = head.check(&self.head)?;
        if (head.n == 0) != head.prev.is_none() {
            return Err("only the first record of a run may lack a predecessor".to_owned());
        }
        let leaf = merkle::leaf(self.head.as_bytes());
        let path =
            self.path.iter().map(|text| unhex(text).ok_or("its path contains a value that is not a hash"));
        let path = path.collect::<Result<_, _>>()?;
        let proof = Inclusion { index: self.index, size: tree.size, path };
        proof.verify(&leaf, tree).map_err(|error| format!("it is not in the tree: {error}"))?;
        head.check_data(self.data.as_deref())?;
        let data = self.data.as_deref().map(from_canonical_json).transpose();
        let data = data.map_err(|error| format!("its data is not canonical JSON: {error}"))?;
        let mut signers: Vec<KeyId> = Vec::new();
        for envelope in &self.signatures {
            let id = envelope.verify(&leaf, known, unknown)?;
            if signers.last().is_some_and(|before| *before >= id) {
                return Err("it must have one signature per key, in the order of the keys".to_owned());
            }
            signers.push(id);
        }
        Ok(CheckedRecord { head, leaf, at_ms, data, signers })
    }
}

/// Parses a text, which must be canonical JSON.
///
/// # Errors
/// The reason why it is not.
pub fn from_canonical_json<T: DeserializeOwned + Serialize>(text: &str) -> Result<T, String> {
    let value: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if canonical::text(&value).ok().as_deref() != Some(text) {
        return Err("it is not in the canonical form of its value".to_owned());
    }
    // Canonical JSON reads an integer past 2^53 as a float, so it is not a count.
    from_exact_value(canonical::normalize(value))
}

/// Parses a value with exactly the fields of its type. Nullable fields are required as well.
///
/// # Errors
/// The reason why it has other fields.
pub(crate) fn from_exact_value<T: DeserializeOwned + Serialize>(value: Json) -> Result<T, String> {
    let read: T = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
    match serde_json::to_value(&read).is_ok_and(|again| again == value) {
        true => Ok(read),
        false => Err("a field is missing".to_owned()),
    }
}

/// A path as hexadecimal texts.
pub(crate) fn to_hex_texts(path: &[Hash]) -> Vec<String> {
    path.iter().map(|hash| hex(hash)).collect()
}

#[cfg(test)]
mod tests {
    use quorate_kernel::clock::rfc3339;
    use serde_json::json;

    use super::super::Envelope;
    use super::*;
    use crate::record::RECORD_VERSION;
    use crate::signing::{SecretKey, SigningContext};

    /// A valid head, with one field changed.
    fn head_with(key: &str, value: Json) -> String {
        let mut head = json!({
            "at": "2026-11-15T08:00:00.000Z", "data_sha256": "ab".repeat(32), "kind": "rule", "n": 3,
            "prev": "cd".repeat(32), "run": "notes", "v": RECORD_VERSION,
        });
        head[key] = value;
        canonical::text(&head).expect("canonical")
    }

    #[test]
    fn a_head_has_one_form() {
        let check = |text: &str| {
            let leaf = merkle::leaf(text.as_bytes());
            let record = ProvableRecord {
                index: 0,
                head: text.to_owned(),
                data: None,
                path: vec![],
                signatures: vec![],
            };
            record.check(&TreeHead { size: 1, root: leaf }, &[])
        };
        let read = check(&head_with("n", json!(3))).expect("it is one");
        assert_eq!((read.head.n, rfc3339(read.at_ms)), (3, read.head.at));
        for (key, value) in [
            ("v", json!(RECORD_VERSION + 1)),
            ("at", json!("2026-11-15T08:00:00Z")),
            ("at", json!("yesterday")),
            ("data_sha256", json!("ab")),
            ("data_sha256", json!("AB".repeat(32))),
            ("prev", json!("cd")),
            ("prev", json!(null)),
            ("n", json!(0)),
            ("more", json!(1)),
        ] {
            assert!(check(&head_with(key, value.clone())).is_err(), "{key}: {value}");
        }
        let numbered = |n: u64| check(&head_with("n", json!(3)).replace("\"n\":3", &format!("\"n\":{n}")));
        assert!(numbered(canonical::MAX_EXACT_INTEGER).is_ok());
        assert!(numbered(canonical::MAX_EXACT_INTEGER + 1).is_err());
        assert!(check(&format!(" {}", head_with("n", json!(3)))).is_err());
    }

    #[test]
    fn signatures_are_in_the_order_of_their_keys_one_each() {
        let head = head_with("n", json!(3));
        let leaf = merkle::leaf(head.as_bytes());
        let tree = TreeHead { size: 1, root: leaf };
        let mut keys: Vec<SecretKey> = (1..=3).map(|seed| SecretKey::from_seed(&[seed; 32])).collect();
        keys.sort_by_key(|key| key.public().id());
        let known: Vec<PublicKey> = keys.iter().map(SecretKey::public).collect();
        let signed_by = |order: &[usize]| {
            let envelope = |key: &SecretKey| {
                let signature = key.sign(SigningContext::RECORD, &leaf).to_string();
                Envelope::new(&leaf, &key.public().id().to_string(), &signature)
            };
            let signatures = order.iter().map(|at| envelope(&keys[*at])).collect();
            let record =
                ProvableRecord { index: 0, head: head.clone(), data: None, path: Vec::new(), signatures };
            record.check(&tree, &known).map(|checked| checked.signers.len())
        };
        for (order, wanted) in [
            (&[][..], Some(0)),
            (&[1], Some(1)),
            (&[0, 1, 2], Some(3)),
            (&[0, 2], Some(2)),
            (&[1, 0], None),
            (&[1, 1], None),
            (&[0, 2, 1], None),
        ] {
            assert_eq!(signed_by(order).ok(), wanted, "{order:?}");
        }
    }
}
