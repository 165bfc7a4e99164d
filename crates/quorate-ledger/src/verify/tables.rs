//! Checks the derived tables against the walk: runs, checkpoints, stored hashes, legal holds, imports, texts, and
//! signatures without a record.

use std::collections::{BTreeMap, BTreeSet};

use quorate_kernel::entropy::{hex, sha256_hex, unhex};

use super::divergence::{Divergence, DivergenceKind, LedgerPart};
use super::runs::{Phase, StreamState, hash_columns};
use super::tree::TileRows;
use super::walk::{MissingRecord, Walk};
use crate::checkpoint::STREAM;
use crate::export::jsonl::named_hashes;
use crate::merkle::STRIDE;
use crate::retention::hashes_in;
use crate::store::engine::{Column, Engine, Row, sql};
use crate::store::index::RunRow;
use crate::store::tiles::HASHES_PER_ROW;

/// The marker before each version in a playbook's history.
const HISTORY_MARKER: &str = "<!-- quorate:version ";

/// The number of rows per read, and the most unrelated rows that are reported.
const PAGE: i64 = 1000;
const MAX_NAMED: i64 = 20;

/// Checks the rows of the table of runs against the records. Returns the rows without a record.
pub(super) async fn check_runs(
    engine: &mut Engine,
    walk: &mut Walk,
) -> Result<Vec<MissingRecord>, sqlx::Error> {
    use Column::{Int, Text};
    let whole = walk.options.since.is_none();
    let mut missing = Vec::new();
    let mut seen: BTreeSet<Box<str>> = BTreeSet::new();
    let (mut after, mut last_opened) = (i64::MIN, 0);
    loop {
        let rows = sql("SELECT seq, run, opened_ms, subject, artifact_type, artifact_sha256, council, log_path, verdict, \
             decided_ms, override, ended, mode, producer FROM run LEFT JOIN run_origin USING (run) \
             WHERE seq > $1 ORDER BY seq LIMIT $2")
            .bind(after)
            .bind(PAGE)
            .rows(engine, &[Int, Text, Int, Text, Text, Text, Text, Text, Text, Int, Text, Int, Text, Text])
            .await?;
        let Some(last) = rows.last() else { break };
        if last.int(0) <= after {
            return Err(unordered_rows_error());
        }
        after = last.int(0);
        for row in &rows {
            let run = row.text(1);
            let index = |kind, what: &str| Divergence::new(kind, LedgerPart::Index, what).of_run(run);
            let Some(state) = walk.runs.get(run) else {
                if whole {
                    missing.push(MissingRecord { run: run.to_owned(), n: 0 });
                    walk.findings.add(index(
                        DivergenceKind::Inserted,
                        "it has a row in the table of runs, but no record opens it",
                    ));
                }
                continue;
            };
            seen.insert(run.into());
            if state.row_unknown {
                continue;
            }
            if let Some((kind, what)) = row_difference(row, state) {
                let mut divergence = index(kind, what);
                if kind == DivergenceKind::Cut {
                    missing.push(MissingRecord { run: run.to_owned(), n: state.next });
                    divergence = divergence.at_record(run, state.next);
                }
                walk.findings.add(divergence);
                if kind == DivergenceKind::Inserted {
                    continue;
                }
            }
            let opened = state.opened.unwrap_or(last_opened);
            if opened < last_opened {
                walk.findings.add(index(
                    DivergenceKind::Reordered,
                    "its row in the table of runs follows rows of runs that were opened later",
                ));
            }
            last_opened = last_opened.max(opened);
        }
    }
    for (run, state) in &walk.runs {
        if state.row.is_some() && !state.row_unknown && !seen.contains(run) {
            let what = "it has no row in the table of runs";
            walk.findings.add(Divergence::removed(LedgerPart::Index, what).of_run(run));
        }
    }
    let unknown =
        "SELECT run FROM run_origin WHERE run NOT IN (SELECT run.run FROM run) ORDER BY run LIMIT $1";
    for row in sql(unknown).bind(MAX_NAMED).rows(engine, &[Text]).await? {
        let what = "it has a row in the table of origins, but not in the table of runs";
        walk.findings.add(Divergence::inserted(LedgerPart::Index, what).of_run(row.text(0)));
    }
    Ok(missing)
}

/// The difference between a row of the table of runs and the row derived from its records. Its columns are those of
/// [`check_runs`].
pub(super) fn row_difference(row: &Row, state: &StreamState) -> Option<(DivergenceKind, &'static str)> {
    let Some(expected) = &state.row else {
        return Some((DivergenceKind::Inserted, "it has a row in the table of runs, but no record opens it"));
    };
    let ended = row.int(11) != 0 && state.phase != Phase::Ended;
    if ended || (row.opt_text(8).is_some() && expected.verdict.is_none()) {
        return Some((
            DivergenceKind::Cut,
            "its row in the table of runs has an end, but its records stop before it",
        ));
    }
    let differs = !row_matches(row, expected, &state.columns);
    differs.then_some((DivergenceKind::Changed, "its row in the table of runs does not match its records"))
}

fn row_matches(row: &Row, expected: &RunRow, hash: &[u8; 32]) -> bool {
    let texts = [3, 4, 5, 6, 7, 12, 13].map(|at| row.text(at).to_owned());
    let decided = expected.decided_ms.unwrap_or_default();
    row.int(2) == expected.opened_ms
        && hash_columns(&texts) == *hash
        && row.opt_text(8) == expected.verdict.as_deref()
        && row.int(9) == decided
        && row.opt_text(10) == expected.overridden.as_deref()
        && row.int(11) == i64::from(expected.ended)
}

/// Checks the table of checkpoints against their records. Returns the rows without a record.
pub(super) async fn check_checkpoints(
    engine: &mut Engine,
    walk: &mut Walk,
) -> Result<Vec<MissingRecord>, sqlx::Error> {
    use Column::{Int, Text};
    let from = walk
        .options
        .since
        .as_ref()
        .map_or(i64::MIN, |_| i64::try_from(walk.started_after).unwrap_or(i64::MAX));
    let rows = sql("SELECT size, root, n FROM checkpoint WHERE size >= $1 ORDER BY size").bind(from);
    let rows = rows.rows(engine, &[Int, Text, Int]).await?;
    let mut expected = std::mem::take(&mut walk.checkpoints.rows);
    let mut missing = Vec::new();
    for row in &rows {
        let (size, n) = (row.int(0), row.int(2));
        let divergence = match u64::try_from(size).ok().and_then(|size| expected.remove(&size)) {
            Some((root, number)) if hex(&root) == row.text(1) && i64::try_from(number) == Ok(n) => continue,
            Some((_, number)) => {
                let what = "its row in the table of checkpoints does not match its record";
                Divergence::changed(LedgerPart::Checkpoint, what).at_record(STREAM, number)
            }
            None => {
                let next = walk.runs.get(STREAM).map_or(0, |state| state.next);
                let kind =
                    if n.unsigned_abs() >= next { DivergenceKind::Cut } else { DivergenceKind::Inserted };
                missing.push(MissingRecord { run: STREAM.to_owned(), n: n.unsigned_abs() });
                let what = format!(
                    "the table of checkpoints has a row over {size} records, but no record of it exists"
                );
                let place = size.unsigned_abs().saturating_add(1);
                Divergence::new(kind, LedgerPart::Checkpoint, what).at(STREAM, n.unsigned_abs(), place)
            }
        };
        walk.findings.add(divergence);
    }
    for (_, (_, n)) in expected {
        let what = "it has no row in the table of checkpoints";
        walk.findings.add(Divergence::removed(LedgerPart::Checkpoint, what).at_record(STREAM, n));
    }
    Ok(missing)
}

/// Checks the stored hashes above the leaves.
pub(super) async fn upper_rows(engine: &mut Engine) -> Result<TileRows, sqlx::Error> {
    let rows = sql("SELECT level, idx, hashes FROM tile WHERE level <> 0")
        .rows(engine, &[Column::Int, Column::Int, Column::Bytes])
        .await?;
    let key = |row: &Row| (u32::try_from(row.int(0)).unwrap_or(u32::MAX), row.count(1));
    Ok(rows.iter().map(|row| (key(row), row.bytes(2).to_vec())).collect())
}

/// Checks that the stored hashes are exactly those of the last checkpoint.
pub(super) async fn check_stored_tree(
    engine: &mut Engine,
    walk: &mut Walk,
    upper: &BTreeMap<(u32, u64), usize>,
) -> Result<(), sqlx::Error> {
    let row = sql("SELECT COUNT(*), COALESCE(MAX(idx), -1), CAST(COALESCE(SUM(LENGTH(hashes)), 0) AS BIGINT), \
         COALESCE(MIN(idx), 0), CAST(COALESCE(SUM(CASE WHEN LENGTH(hashes) = $1 THEN 0 ELSE 1 END), 0) AS BIGINT) \
         FROM tile WHERE level = 0")
        .bind(32 * HASHES_PER_ROW)
        .row(engine, &[Column::Int; 5])
        .await?;
    let Some(row) = row else { return Ok(()) };
    let (rows, leaves, size, place) = (row.count(0), row.count(2) / 32, walk.checkpoints.size, walk.seq());
    let whole = row.count(2).is_multiple_of(32)
        && rows == leaves.div_ceil(HASHES_PER_ROW)
        && row.int(1).saturating_add(1) == row.int(0)
        && (rows == 0 || row.int(3) == 0)
        && row.count(4) <= u64::from(!leaves.is_multiple_of(HASHES_PER_ROW));
    if leaves > place {
        let what = format!("{leaves} records were sealed, but there are only {place}");
        walk.findings.add(Divergence::cut(LedgerPart::Record, what).at_seq(place + 1).up_to_seq(leaves));
    } else if leaves > size {
        let what = format!("{leaves} records were sealed, but the last remaining checkpoint covers {size}");
        walk.findings.add(Divergence::removed(LedgerPart::Checkpoint, what).at_seq(leaves + 1));
    } else if leaves < size || !whole {
        let what = format!("there are {leaves} stored hashes of records, but {size} sealed records");
        walk.findings.add(Divergence::removed(LedgerPart::Tree, what).at_seq(leaves + 1));
        return Ok(());
    }
    if upper_row_lengths(leaves) != *upper {
        let what = "the stored hashes above the leaves do not match the number of records";
        walk.findings.add(Divergence::changed(LedgerPart::Tree, what));
    }
    Ok(())
}

/// The lengths of the stored rows above this number of leaves, in bytes, by level and index.
fn upper_row_lengths(leaves: u64) -> BTreeMap<(u32, u64), usize> {
    let (mut level, mut lengths) = (STRIDE, BTreeMap::new());
    while let Some(hashes) = leaves.checked_shr(level).filter(|hashes| *hashes > 0) {
        for idx in 0..hashes.div_ceil(HASHES_PER_ROW) {
            let length = (hashes - idx * HASHES_PER_ROW).min(HASHES_PER_ROW) * 32;
            lengths.insert((level, idx), usize::try_from(length).unwrap_or(usize::MAX));
        }
        level += STRIDE;
    }
    lengths
}

/// Checks the tables of holds and imports against the records of the ledger's stream.
pub(super) async fn check_holds_and_imports(engine: &mut Engine, walk: &mut Walk) -> Result<(), sqlx::Error> {
    let said = [
        ("held", "SELECT run FROM held", &walk.ledger_facts.held),
        ("imported", "SELECT run FROM imported", &walk.ledger_facts.imported),
    ];
    for (table, statement, said) in said {
        let rows = sql(statement).rows(engine, &[Column::Text]).await?;
        let there: BTreeSet<String> = rows.iter().map(|row| row.text(0).to_owned()).collect();
        for run in there.difference(said) {
            let what = format!("it has a row in the table `{table}`, but no record");
            walk.findings.add(Divergence::inserted(LedgerPart::Index, what).of_run(run));
        }
        for run in said.difference(&there) {
            let what = format!("it has no row in the table `{table}`");
            walk.findings.add(Divergence::removed(LedgerPart::Index, what).of_run(run));
        }
    }
    Ok(())
}

/// Reports signatures without a record.
pub(super) async fn check_stray_signatures(engine: &mut Engine, walk: &mut Walk) -> Result<(), sqlx::Error> {
    let rows = sql("SELECT signature.run, signature.n FROM signature LEFT JOIN record \
         ON record.run = signature.run AND record.n = signature.n WHERE record.seq IS NULL \
         ORDER BY signature.run, signature.n LIMIT $1")
    .bind(MAX_NAMED)
    .rows(engine, &[Column::Text, Column::Int])
    .await?;
    for row in &rows {
        let what = "a signature exists for a missing record";
        walk.findings
            .add(Divergence::inserted(LedgerPart::Signature, what).at_record(row.text(0), row.count(1)));
    }
    Ok(())
}

/// Checks the texts that records name against their hashes, and that the texts of runs exist.
pub(super) async fn check_texts(engine: &mut Engine, walk: &mut Walk) -> Result<u64, sqlx::Error> {
    let mut wanted = std::mem::take(&mut walk.texts);
    // A run's first record names its subject, unless its body was erased.
    let says =
        |state: &StreamState| !state.bodiless.iter().any(|range| range.contains(&0)) && !state.row_unknown;
    let all_named = walk.options.since.is_none() && walk.runs.values().all(says);
    let mut unnamed = all_named.then(BTreeSet::new);
    let (mut after, mut count) = (None::<String>, 0);
    loop {
        let page = match &after {
            None => sql("SELECT sha256 FROM body ORDER BY sha256 LIMIT $1").bind(PAGE),
            Some(after) => {
                let next = "SELECT sha256 FROM body WHERE sha256 > $2 ORDER BY sha256 LIMIT $1";
                sql(next).bind(PAGE).bind(after.as_str())
            }
        };
        let rows = page.rows(engine, &[Column::Text]).await?;
        let Some(last) = rows.last() else { break };
        if after.as_deref().is_some_and(|after| last.text(0) <= after) {
            return Err(unordered_rows_error());
        }
        after = Some(last.text(0).to_owned());
        for row in &rows {
            let name = row.text(0);
            count += 1;
            let named = unhex(name).and_then(|name| wanted.remove(&name));
            let text = sql("SELECT text FROM body WHERE sha256 = $1").bind(name);
            // A text with invalid bytes differs.
            let text = text.row(engine, &[Column::Text]).await.ok().flatten();
            let same = text
                .is_some_and(|text| text.opt_text(0).is_some_and(|text| sha256_hex(text.as_bytes()) == name));
            if !same {
                let what = format!("the text {name} does not match its hash");
                let divergence = Divergence::changed(LedgerPart::Body, what);
                walk.findings.add(match named.as_deref() {
                    Some([(run, n), ..]) => divergence.at_record(run, *n),
                    _ => divergence,
                });
            } else if let (None, Some(unnamed)) = (named, &mut unnamed) {
                unnamed.insert(name.to_owned());
            }
        }
    }
    for (name, by) in wanted {
        let by = by.iter().find(|(run, _)| !walk.ledger_facts.erased_elsewhere.contains(&**run));
        if let Some((run, n)) = by {
            let what = format!("the text {} that it names is missing", hex(&name));
            walk.findings.add(Divergence::removed(LedgerPart::Body, what).at_record(run, *n));
        }
    }
    if let Some(unnamed) = unnamed.filter(|unnamed| !unnamed.is_empty()) {
        for name in unnamed_texts(engine, unnamed).await? {
            let what = format!("the text {name} exists, but no record names it");
            walk.findings.add(Divergence::inserted(LedgerPart::Body, what));
        }
    }
    Ok(count)
}

/// Which of some texts no record names, as a run's input or elsewhere in its data.
async fn unnamed_texts(
    engine: &mut Engine,
    mut texts: BTreeSet<String>,
) -> Result<BTreeSet<String>, sqlx::Error> {
    let mut of_playbooks = BTreeSet::new();
    let mut after = i64::MIN;
    while !texts.is_empty() {
        let page = "SELECT seq, kind, data FROM record WHERE seq > $1 AND data IS NOT NULL AND run <> $2 ORDER BY seq LIMIT $3";
        let page = sql(page).bind(after).bind(STREAM).bind(PAGE);
        let rows = page.rows(engine, &[Column::Int, Column::Text, Column::Text]).await?;
        let Some(last) = rows.last() else { break };
        if last.int(0) <= after {
            return Err(unordered_rows_error());
        }
        after = last.int(0);
        for row in &rows {
            let Some(data) = row.opt_text(2).and_then(|data| serde_json::from_str(data).ok()) else {
                continue;
            };
            for name in named_hashes(&data) {
                texts.remove(name);
                if row.text(1).starts_with("playbook") {
                    of_playbooks.insert(name.to_owned());
                }
            }
        }
    }
    let mut unnamed = BTreeSet::new();
    for name in texts {
        let text = sql("SELECT text FROM body WHERE sha256 = $1").bind(&*name);
        let text = text.row(engine, &[Column::Text]).await?;
        // Older versions stored the history of a playbook with the record of its last version.
        let is_history = text.as_ref().is_some_and(|text| {
            let text = text.opt_text(0).unwrap_or_default();
            text.contains(HISTORY_MARKER) && hashes_in(text).any(|hash| of_playbooks.contains(hash))
        });
        if !is_history {
            unnamed.insert(name);
        }
    }
    Ok(unnamed)
}

/// Reports missing bodies of records without a record of their erasure.
pub(super) fn check_bodies(walk: &mut Walk) {
    for (run, state) in &walk.runs {
        if let Some((kind, n, place)) = &state.unexpected_bodiless
            && !walk.ledger_facts.imported.contains(&**run)
        {
            let what = format!("its body is missing, although the body of a {kind} is never erased");
            walk.findings.add(Divergence::removed(LedgerPart::Record, what).at(run, *n, *place));
        }
        let erased = walk.ledger_facts.erased.get(&**run).map_or(&[][..], Vec::as_slice);
        let is_erased = |n: &u64| erased.iter().any(|range| range.contains(n));
        let Some(n) = state.bodiless.iter().cloned().flatten().find(|n| !is_erased(n)) else { continue };
        let what = "its body is missing without a record of its erasure";
        let is_first = state.bodiless.first().is_some_and(|range| range.start == n);
        let divergence = Divergence::removed(LedgerPart::Record, what).at_record(run, n);
        walk.findings.add(Divergence { seq: is_first.then_some(state.first_bodiless_seq), ..divergence });
    }
}

/// The error for a corrupt file whose read would never end.
fn unordered_rows_error() -> sqlx::Error {
    sqlx::Error::Protocol("the database returns its rows out of order".into())
}

#[cfg(test)]
mod tests {
    use super::upper_row_lengths;

    #[test]
    fn each_256_leaves_have_a_hash_above_them() {
        let lengths = |leaves| upper_row_lengths(leaves).into_iter().collect::<Vec<_>>();
        for leaves in [0, 1, 255] {
            assert_eq!(lengths(leaves), []);
        }
        assert_eq!(lengths(256), [((8, 0), 32)]);
        assert_eq!(lengths(1023), [((8, 0), 96)]);
        assert_eq!(lengths(65_535), [((8, 0), 255 * 32)]);
        assert_eq!(lengths(65_536), [((8, 0), 8192), ((16, 0), 32)]);
        assert_eq!(lengths(70_000), [((8, 0), 8192), ((8, 1), 17 * 32), ((16, 0), 32)]);
        assert_eq!(
            lengths(200_000),
            [((8, 0), 8192), ((8, 1), 8192), ((8, 2), 8192), ((8, 3), 13 * 32), ((16, 0), 96)]
        );
    }
}
