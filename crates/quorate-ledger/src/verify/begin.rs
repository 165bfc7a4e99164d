//! Where a walk begins: at the first record, or behind a checkpoint whose root is trusted. Then the stored tree has to
//! have that root, and how the runs stood that go on after it is looked up.

use std::collections::HashMap;
use std::sync::Arc;

use quorate_kernel::ports::ledger::Kind as Word;
use quorate_protocol::Json;
use serde_json::Map;

use super::finding::{Divergence, Kind, Part};
use super::runs::State;
use super::seals::Seals;
use super::tables;
use super::tree::{Growth, Rows};
use super::{Options, Since};
use crate::merkle::{self, Frontier, TreeHead, leaf};
use crate::signing::run::Audit;
use crate::store::engine::{Column, Engine, sql};
use crate::store::tiles;
use crate::store::{STREAM, Sealed};

/// The beginning of a walk.
pub(super) struct Begin {
    pub(super) tree: Growth,
    pub(super) seals: Seals,
    pub(super) runs: HashMap<Box<str>, State>,
    /// The lengths of the stored rows above the leaves.
    pub(super) upper: std::collections::BTreeMap<(u32, u64), usize>,
    /// What the stored tree has to be and is not; then the walk begins at the first record after all.
    pub(super) untrusted: Option<(TreeHead, Divergence)>,
}

/// Why there is no such checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoCheckpoint {
    /// None has this size.
    #[error("no checkpoint of this ledger is over {0} records")]
    Size(u64),
    /// None has this number.
    #[error("{STREAM}/{0} is no checkpoint of this ledger")]
    Number(u64),
}

/// Begins at the first record.
pub(super) async fn at_first(engine: &mut Engine, has_tree: bool) -> Result<Begin, sqlx::Error> {
    let rows = if has_tree { tables::upper_rows(engine).await? } else { Rows::new() };
    let upper = lengths(&rows);
    Ok(Begin {
        tree: Growth::new(Frontier::new(), rows),
        seals: Seals::default(),
        runs: HashMap::new(),
        upper,
        untrusted: None,
    })
}

/// Begins behind a checkpoint.
pub(super) async fn behind(
    engine: &mut Engine,
    options: &Options,
    since: &Since,
) -> Result<Result<Begin, NoCheckpoint>, sqlx::Error> {
    let sealed = match lookup(engine, since).await? {
        Ok(sealed) => sealed,
        Err(error) => return Ok(Err(error)),
    };
    let mut begin = at_first(engine, true).await?;
    let trusted = match since {
        Since::Tree(tree) => *tree,
        Since::Size(_) | Since::Number(_) => match &sealed {
            Some(sealed) => sealed.tree,
            None => return Ok(Ok(begin)),
        },
    };
    let size = trusted.size;
    let there = places(engine).await?;
    if there < size {
        // There is nothing behind it: what is there is walked over from the first record on.
        let what = format!("the trusted checkpoint is over {size} records, and there are {there}");
        let divergence = Divergence::of(Kind::Cut, Part::Checkpoint, what).place(there + 1).until(size);
        begin.untrusted = Some((trusted, divergence));
        return Ok(Ok(begin));
    }
    let frontier = match tiles::fetch_whole(engine, size).await {
        Ok(fetched) => merkle::frontier(&fetched, size).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match frontier {
        Ok(frontier) if frontier.tree_head() == trusted => {
            let rows = tables::upper_rows(engine).await?;
            begin.tree = Growth::new(frontier, rows);
        }
        frontier => {
            let what = match frontier {
                Ok(_) => "it does not have the root of the checkpoint that is trusted".to_owned(),
                Err(error) => error,
            };
            let divergence = Divergence::of(Kind::Changed, Part::Tree, what);
            begin.untrusted = Some((trusted, divergence));
            return Ok(Ok(begin));
        }
    }
    if let Some(sealed) = &sealed {
        begin.seals = Seals::going_on(sealed);
    }
    begin.runs = going_on(engine, options, size).await?;
    let origin = origin(engine).await;
    for wanted in witness_sizes(options, origin.as_deref()).filter(|tree| tree.size < size) {
        let fetched = tiles::fetch(engine, std::iter::once(0..wanted.size), size).await;
        let root = fetched.ok().and_then(|fetched| merkle::root(&fetched, wanted.size).ok());
        if root != Some(wanted.root) {
            let what = format!(
                "the records are not those that a checkpoint of {} records is over, which is kept elsewhere",
                wanted.size
            );
            let divergence = Divergence::of(Kind::Changed, Part::Witness, what).place(1).until(wanted.size);
            begin.untrusted = Some((trusted, divergence));
            return Ok(Ok(Begin { untrusted: begin.untrusted, ..at_first(engine, true).await? }));
        }
    }
    Ok(Ok(begin))
}

/// The trees that the witness speaks of. Those of another ledger are nothing to hold this one against.
pub(super) fn witness_sizes<'a>(
    options: &'a Options,
    origin: Option<&'a str>,
) -> impl Iterator<Item = TreeHead> + use<'a> {
    let cosigned = options.cosigned.iter().filter_map(|(_, copy)| copy.as_ref());
    let kept = options.kept.iter().filter(move |kept| origin.is_some() || kept.replaced.is_none());
    let copies = kept.flat_map(|kept| &kept.copies).chain(cosigned);
    let copies = copies.filter_map(|copy| copy.note.as_ref().ok());
    let notes = options.witness.iter().flat_map(|witness| &witness.notes).chain(copies);
    let checkpoints = notes.filter_map(|note| super::checkpoint_of(note));
    let ours = checkpoints.filter(move |one| origin.is_none_or(|origin| origin == one.origin()));
    ours.map(|checkpoint| *checkpoint.tree())
}

/// Which ledger it is, as its first checkpoint says; `None` where there is none that can be read.
pub(super) async fn origin(engine: &mut Engine) -> Option<String> {
    let row = sql("SELECT n, data FROM record WHERE run = $1 AND kind = $2 ORDER BY n LIMIT 1")
        .bind(STREAM)
        .bind(Word::Checkpoint.as_str())
        .row(engine, &[Column::Int, Column::Text])
        .await;
    let row = row.ok().flatten()?;
    let data = serde_json::from_str(row.some_text(1)?).ok()?;
    Some(Sealed::of(row.count(0), &data)?.origin)
}

/// The last place that has a record.
async fn places(engine: &mut Engine) -> Result<u64, sqlx::Error> {
    let row = sql("SELECT COALESCE(MAX(seq), 0) FROM record").row(engine, &[Column::Int]).await?;
    Ok(row.map_or(0, |row| row.count(0)))
}

/// The record of the checkpoint, where there is one: a tree that is trusted may be another's word.
async fn lookup(
    engine: &mut Engine,
    since: &Since,
) -> Result<Result<Option<Sealed>, NoCheckpoint>, sqlx::Error> {
    let (n, none) = match since {
        Since::Number(n) => (Some(*n), NoCheckpoint::Number(*n)),
        Since::Size(size) | Since::Tree(TreeHead { size, .. }) => {
            let row = sql("SELECT n FROM checkpoint WHERE size = $1").bind(*size);
            let row = row.row(engine, &[Column::Int]).await?;
            (row.map(|row| row.count(0)), NoCheckpoint::Size(*size))
        }
    };
    let mut sealed = None;
    if let Some(n) = n {
        let row = sql("SELECT data FROM record WHERE run = $1 AND n = $2 AND kind = $3")
            .bind(STREAM)
            .bind(n)
            .bind(Word::Checkpoint.as_str())
            .row(engine, &[Column::Text])
            .await?;
        let data = row.and_then(|row| serde_json::from_str(row.some_text(0)?).ok());
        sealed = data.and_then(|data| Sealed::of(n, &data));
    }
    match (sealed, since) {
        (None, Since::Size(_) | Since::Number(_)) => Ok(Err(none)),
        (sealed, _) => Ok(Ok(sealed)),
    }
}

/// How the runs stood at a size that have records after it.
pub(super) async fn going_on(
    engine: &mut Engine,
    options: &Options,
    size: u64,
) -> Result<HashMap<Box<str>, State>, sqlx::Error> {
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
        let says = says.bind(run).bind(upto).bind(Word::Keyring.as_str());
        let mut audit = None;
        for says in says.rows(engine, &[Text, Text]).await? {
            let data =
                says.some_text(1).and_then(|data| serde_json::from_str::<Map<String, Json>>(data).ok());
            match (data, &mut audit) {
                (Some(data), None) => audit = Audit::of(&data).map(Arc::new),
                // One that does not hold is found where it stands.
                (Some(data), Some(audit)) => drop(Arc::make_mut(audit).extend(&data, options.authority())),
                (None, _) => {}
            }
        }
        let state = State::after(row.count(1), leaf(row.text(2).as_bytes()), signed, audit);
        runs.insert(run.into(), state);
    }
    Ok(runs)
}

fn lengths(rows: &Rows) -> std::collections::BTreeMap<(u32, u64), usize> {
    rows.iter().map(|(key, hashes)| (*key, hashes.len())).collect()
}
