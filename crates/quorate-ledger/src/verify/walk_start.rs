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
use super::tree::{TileRows, TreeCheck};
use super::{StartPoint, VerifyOptions, tables};
use crate::merkle::{self, Frontier, TreeHead, leaf};
use crate::note::Checkpoint;
use crate::signing::run::RunKeyring;
use crate::store::engine::{Column, Engine, sql};
use crate::store::tiles::{self, TreeError};
use crate::store::{CheckpointRecord, STREAM};

/// The beginning of a walk.
pub(super) struct WalkStart {
    pub(super) tree: TreeCheck,
    pub(super) seals: Checkpoints,
    pub(super) runs: HashMap<Box<str>, StreamState>,
    /// Why the stored tree cannot be used, and the trusted tree if known. In that case the walk starts at the first
    /// record.
    pub(super) mismatch: Option<(Option<TreeHead>, Divergence)>,
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

/// Starts at the first record.
pub(super) fn from_first_record() -> WalkStart {
    WalkStart {
        tree: TreeCheck::new(Frontier::new(), &TileRows::new()),
        seals: Checkpoints::default(),
        runs: HashMap::new(),
        mismatch: None,
    }
}

/// Starts after a checkpoint.
pub(super) async fn after_checkpoint(
    engine: &mut Engine,
    options: &VerifyOptions,
    since: &StartPoint,
) -> Result<Result<WalkStart, CheckpointNotFound>, sqlx::Error> {
    let last = sql("SELECT COALESCE(MAX(seq), 0) FROM record").number(engine).await?;
    let cut = |size: u64| {
        // Without newer records the walk covers all from the first one.
        let what = format!("the trusted checkpoint covers {size} records, but there are only {last}");
        Divergence::cut(LedgerPart::Checkpoint, what).at_seq(last + 1).up_to_seq(size)
    };
    let mut begin = from_first_record();
    let sealed = match find_checkpoint(engine, since).await? {
        Ok(sealed) => sealed,
        Err(CheckpointNotFound::Size(size)) if last < size => {
            begin.mismatch = Some((None, cut(size)));
            return Ok(Ok(begin));
        }
        Err(error) => return Ok(Err(error)),
    };
    let trusted = match since {
        StartPoint::Tree(tree) => *tree,
        StartPoint::Size(_) | StartPoint::Number(_) => match &sealed {
            Some(sealed) => sealed.tree,
            None => return Ok(Ok(begin)),
        },
    };
    let size = trusted.size;
    if last < size {
        begin.mismatch = Some((Some(trusted), cut(size)));
        return Ok(Ok(begin));
    }
    let frontier = match tiles::fetch_tree(engine, size).await {
        Ok(fetched) => merkle::frontier(&fetched, size).map_err(|error| error.to_string()),
        Err(TreeError::Store(error)) => return Err(error),
        Err(error) => Err(error.to_string()),
    };
    match frontier {
        Ok(frontier) if frontier.tree_head() == trusted => {
            let rows = tables::upper_rows(engine).await?;
            begin.tree = TreeCheck::new(frontier, &rows);
        }
        frontier => {
            let what = match frontier {
                Ok(_) => "its root differs from that of the trusted checkpoint".to_owned(),
                Err(error) => error,
            };
            let divergence = Divergence::changed(LedgerPart::Tree, what);
            begin.mismatch = Some((Some(trusted), divergence));
            return Ok(Ok(begin));
        }
    }
    if let Some(sealed) = &sealed {
        begin.seals = Checkpoints::starting_after(sealed);
    }
    begin.runs = run_states_at(engine, options, size).await?;
    let origin = read_origin(engine).await;
    for wanted in witness_trees(options, origin.as_deref()).filter(|tree| tree.size < size) {
        let root = match tiles::fetch(engine, std::iter::once(0..wanted.size), size).await {
            Ok(fetched) => merkle::root(&fetched, wanted.size).ok(),
            Err(TreeError::Store(error)) => return Err(error),
            Err(TreeError::Incomplete(_)) => None,
        };
        if root != Some(wanted.root) {
            let what = format!(
                "the records differ from those under a checkpoint of {} records that is kept elsewhere",
                wanted.size
            );
            let divergence = Divergence::changed(LedgerPart::Witness, what).at_seq(1).up_to_seq(wanted.size);
            begin.mismatch = Some((Some(trusted), divergence));
            return Ok(Ok(WalkStart { mismatch: begin.mismatch, ..from_first_record() }));
        }
    }
    Ok(Ok(begin))
}

/// The witness's trees of this ledger.
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

/// The record of the checkpoint; `None` for a tree that another party vouches for.
async fn find_checkpoint(
    engine: &mut Engine,
    since: &StartPoint,
) -> Result<Result<Option<CheckpointRecord>, CheckpointNotFound>, sqlx::Error> {
    let (n, none) = match since {
        StartPoint::Number(n) => (Some(*n), CheckpointNotFound::Number(*n)),
        StartPoint::Size(size) | StartPoint::Tree(TreeHead { size, .. }) => {
            let row = sql("SELECT n FROM checkpoint WHERE size = $1").bind(*size);
            let row = row.row(engine, &[Column::Int]).await?;
            (row.map(|row| row.count(0)), CheckpointNotFound::Size(*size))
        }
    };
    let mut sealed = None;
    if let Some(n) = n {
        let row = sql("SELECT data FROM record WHERE run = $1 AND n = $2 AND kind = $3")
            .bind(STREAM)
            .bind(n)
            .bind(Kind::Checkpoint.as_str())
            .row(engine, &[Column::Text])
            .await?;
        let data = row.and_then(|row| serde_json::from_str(row.opt_text(0)?).ok());
        sealed = data.and_then(|data| CheckpointRecord::from_data(n, &data));
    }
    match (sealed, since) {
        (None, StartPoint::Size(_) | StartPoint::Number(_)) => Ok(Err(none)),
        (sealed, _) => Ok(Ok(sealed)),
    }
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
