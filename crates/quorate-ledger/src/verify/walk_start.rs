//! The start of a walk: at the first record or after a trusted checkpoint. In the second case the stored tree must have
//! the trusted root, and the state of runs that continue after it is loaded.

use std::collections::HashMap;
use std::sync::Arc;

use quorate_kernel::ports::ledger::Kind;
use quorate_protocol::Json;
use serde_json::Map;

use super::checkpoints::Checkpoints;
use super::divergence::{Divergence, LedgerPart};
use super::runs::StreamState;
use super::tree::TreeCheck;
use super::{StartPoint, VerifyOptions};
use crate::merkle::{TreeHead, leaf};
use crate::note::Checkpoint;
use crate::signing::run::RunKeyring;
use crate::store::engine::{Column, Engine, sql};
use crate::store::tiles::{StoredTree, TreeError};
use crate::store::{CheckpointRecord, STREAM};

/// The beginning of a walk: by default the first record.
#[derive(Default)]
pub(super) struct WalkStart {
    pub(super) tree: TreeCheck,
    pub(super) seals: Checkpoints,
    pub(super) runs: HashMap<Box<str>, StreamState>,
    /// Why the stored tree cannot be used. In that case the walk starts at the first record.
    pub(super) mismatch: Option<Divergence>,
}

/// Why the checkpoint does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointNotFound {
    /// No checkpoint has this size.
    #[error("this ledger has no checkpoint over {0} records")]
    Size(u64),
    /// No checkpoint has this number.
    #[error("{STREAM}/{0} is not a checkpoint of this ledger")]
    Number(u64),
}

/// Starts after a checkpoint.
pub(super) async fn after_checkpoint(
    engine: &mut Engine,
    options: &VerifyOptions,
    since: &StartPoint,
) -> Result<Result<WalkStart, CheckpointNotFound>, sqlx::Error> {
    let last = sql("SELECT COALESCE(MAX(seq), 0) FROM record").number(engine).await?;
    let unusable = |mismatch| Ok(Ok(WalkStart { mismatch: Some(mismatch), ..WalkStart::default() }));
    let sealed = find_checkpoint(engine, since).await?;
    let size = match (since, &sealed) {
        (StartPoint::Tree(tree), _) => tree.size,
        (_, Some(sealed)) => sealed.tree.size,
        (StartPoint::Size(size), None) => *size,
        (StartPoint::Number(n), None) => return Ok(Err(CheckpointNotFound::Number(*n))),
    };
    if last < size {
        // Without newer records the walk covers all from the first one.
        let what = format!("the trusted checkpoint covers {size} records, but there are only {last}");
        return unusable(Divergence::cut(LedgerPart::Checkpoint, what).at_seq(last + 1).up_to_seq(size));
    }
    let trusted = match (since, &sealed) {
        (StartPoint::Tree(tree), _) => *tree,
        (_, Some(sealed)) => sealed.tree,
        (_, None) => return Ok(Err(CheckpointNotFound::Size(size))),
    };
    let mut stored = StoredTree::default();
    let frontier = match stored.tree(engine, 0..size).await {
        Ok(frontier) if frontier.tree_head() == trusted => frontier,
        Err(TreeError::Store(error)) => return Err(error),
        other => {
            let differs = |_| "its root differs from that of the trusted checkpoint".to_owned();
            let what = other.map_or_else(|error| error.to_string(), differs);
            return unusable(Divergence::changed(LedgerPart::Tree, what));
        }
    };
    let origin = read_origin(engine).await;
    for wanted in witness_trees(options, origin.as_deref()).filter(|tree| tree.size < size) {
        match stored.tree(engine, 0..wanted.size).await {
            Ok(tree) if tree.root() == wanted.root => {}
            Err(TreeError::Store(error)) => return Err(error),
            _ => {
                let what = format!(
                    "the records differ from those under a checkpoint of {} records that is kept elsewhere",
                    wanted.size
                );
                let divergence = Divergence::changed(LedgerPart::Witness, what);
                return unusable(divergence.at_seq(1).up_to_seq(wanted.size));
            }
        }
    }
    Ok(Ok(WalkStart {
        tree: TreeCheck::new(frontier),
        seals: sealed.as_ref().map(Checkpoints::starting_after).unwrap_or_default(),
        runs: run_states_at(engine, options, size).await?,
        mismatch: None,
    }))
}

/// The trees of this ledger that another party knows.
pub(super) fn witness_trees<'a>(
    options: &'a VerifyOptions,
    origin: Option<&'a str>,
) -> impl Iterator<Item = TreeHead> + use<'a> {
    let cosigned = options.remote_witness.iter().filter_map(|(_, copy)| copy.as_ref());
    let kept = options
        .local_checkpoints
        .iter()
        .filter(move |kept| origin.is_some() || kept.replaced_origin.is_none());
    let copies = kept.flat_map(|kept| &kept.copies).chain(cosigned);
    let copies = copies.filter_map(|copy| copy.note.as_ref().ok());
    let notes = options.witness.iter().flat_map(|witness| &witness.notes).chain(copies);
    let checkpoints = notes.filter_map(|note| Checkpoint::from_note(note).ok());
    let ours =
        checkpoints.filter(move |checkpoint| origin.is_none_or(|origin| origin == checkpoint.origin()));
    ours.map(|checkpoint| *checkpoint.tree())
}

/// The ledger's origin, from its first checkpoint; `None` without a readable one.
pub(super) async fn read_origin(engine: &mut Engine) -> Option<String> {
    let row = sql("SELECT n, data FROM record WHERE run = $1 AND kind = $2 ORDER BY n LIMIT 1")
        .bind(STREAM)
        .bind(Kind::Checkpoint.as_str())
        .row(engine, &[Column::Int, Column::Text])
        .await;
    let row = row.ok().flatten()?;
    let data = serde_json::from_str(row.opt_text(1)?).ok()?;
    Some(CheckpointRecord::from_data(row.count(0), &data)?.origin)
}

/// The record of the checkpoint, if the ledger has it.
async fn find_checkpoint(
    engine: &mut Engine,
    since: &StartPoint,
) -> Result<Option<CheckpointRecord>, sqlx::Error> {
    let n = match since {
        StartPoint::Number(n) => Some(*n),
        StartPoint::Size(size) | StartPoint::Tree(TreeHead { size, .. }) => {
            let row = sql("SELECT n FROM checkpoint WHERE size = $1").bind(*size);
            row.row(engine, &[Column::Int]).await?.map(|row| row.count(0))
        }
    };
    let Some(n) = n else { return Ok(None) };
    let row = sql("SELECT data FROM record WHERE run = $1 AND n = $2 AND kind = $3")
        .bind(STREAM)
        .bind(n)
        .bind(Kind::Checkpoint.as_str())
        .row(engine, &[Column::Text])
        .await?;
    let data = row.and_then(|row| serde_json::from_str(row.opt_text(0)?).ok());
    Ok(data.and_then(|data| CheckpointRecord::from_data(n, &data)))
}

/// The state at a size of the runs with records after it.
pub(super) async fn run_states_at(
    engine: &mut Engine,
    options: &VerifyOptions,
    size: u64,
) -> Result<HashMap<Box<str>, StreamState>, sqlx::Error> {
    use Column::{Int, Text};
    let rows = sql("SELECT record.run, record.n, record.head FROM record JOIN \
         (SELECT run, MIN(n) AS first FROM record WHERE seq > $1 GROUP BY run) AS later \
         ON record.run = later.run AND record.n = later.first - 1")
    .bind(size)
    .rows(engine, &[Text, Int, Text])
    .await?;
    let mut runs = HashMap::with_capacity(rows.len());
    for row in &rows {
        let run = row.text(0);
        let signed = sql("SELECT n FROM signature WHERE run = $1 AND n = 0 LIMIT 1").bind(run);
        let signed = signed.row(engine, &[Int]).await?.is_some();
        let upto = row.int(1);
        let says = sql(
            "SELECT kind, data FROM record WHERE run = $1 AND n <= $2 AND (n = 0 OR kind = $3) ORDER BY n",
        );
        let says = says.bind(run).bind(upto).bind(Kind::Keyring.as_str());
        let mut audit = None;
        for says in says.rows(engine, &[Text, Text]).await? {
            let data = says.opt_text(1).and_then(|data| serde_json::from_str::<Map<String, Json>>(data).ok());
            match (data, &mut audit) {
                (Some(data), None) => audit = RunKeyring::from_opened(&data).map(Arc::new),
                // An invalid one is reported at its own record.
                (Some(data), Some(audit)) => drop(Arc::make_mut(audit).extend(&data, &options.outside)),
                (None, _) => {}
            }
        }
        let state = StreamState::after(row.count(1), leaf(row.text(2).as_bytes()), signed, audit);
        runs.insert(run.into(), state);
    }
    Ok(runs)
}
