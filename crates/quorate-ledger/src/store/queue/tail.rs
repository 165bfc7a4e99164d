//! How a run ends, which its next record is chained to.

use quorate_protocol::Name;

use super::super::STREAM;
use super::super::connection::{Tail, Tails};
use super::super::engine::{Column, Engine, sql};
use super::super::run_signers::RunSigners;
use super::AppendRules;
use crate::record::leaf;
use crate::signing::SecretKey;

/// How the run ends, taken out of what is known; looked up where that does not fit. A run that is opened by another
/// who has a key for it is a signed one, and stays one.
pub(super) async fn find_tail(
    engine: &mut Engine,
    tails: &mut Tails,
    run: &Name,
    from: u64,
    key: Option<&SecretKey>,
    rules: &AppendRules<'_>,
) -> Result<Result<Tail, String>, sqlx::Error> {
    let fresh = || key.map(|_| RunSigners::default());
    match tails.remove(run) {
        _ if !engine.can_cache_tails() && !rules.tails_are_checked => {}
        Some(tail) if tail.next == from => return Ok(Ok(tail)),
        // That a run is new shows when its first record is written.
        None if from == 0 => return Ok(Ok(Tail { next: 0, leaf: None, signers: fresh() })),
        _ => {}
    }
    let last = sql("SELECT n, head FROM record WHERE run = $1 ORDER BY n DESC LIMIT 1")
        .bind(&**run)
        .row(engine, &[Column::Int, Column::Text])
        .await?;
    let signed = sql("SELECT n FROM signature WHERE run = $1 AND n = 0 LIMIT 1")
        .bind(&**run)
        .row(engine, &[Column::Int])
        .await?;
    let signers = match (&last, signed) {
        (None, _) => fresh(),
        // What is done to the ledger is signed by its key, record by record.
        (Some(_), Some(_)) if **run != *STREAM => {
            let outside = match rules.external_keys(key) {
                Ok(outside) => outside,
                Err(what) => return Ok(Err(what)),
            };
            match RunSigners::read(engine, run, &outside).await? {
                Ok(signers) => Some(signers),
                Err(what) => return Ok(Err(what)),
            }
        }
        _ => None,
    };
    Ok(Ok(Tail {
        next: last.as_ref().map_or(0, |row| row.count(0) + 1),
        leaf: last.map(|row| leaf(row.text(1))),
        signers,
    }))
}
