//! Checks the derived tables against the walk: runs, checkpoints, stored hashes, legal holds, imports, texts, and
//! signatures without a record.

use std::collections::{BTreeMap, BTreeSet};

use quorate_kernel::entropy::{hex, sha256_hex, unhex};

use super::divergence::{Divergence, Kind, Part};
use super::runs::{Phase, StreamState, hash_columns};
use super::tree::TileRows;
use super::walk::{MissingRecord, Walk};
use crate::checkpoint::STREAM;
use crate::export::wire::named_hashes;
use crate::merkle::STRIDE;
use crate::retention::hashes_in;
use crate::store::engine::{Column, Engine, Row, sql};
use crate::store::index::RunRow;
use crate::store::tiles::HASHES_PER_ROW;

/// The marker before each version in a playbook's history.
const HISTORY_MARKER: &str = "<!-- quorate:version ";

/// How many rows are read at once, and how many that belong to nothing are named.
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
            let index = |kind, what: &str| Divergence::new(kind, Part::Index, what).of_run(run);
            let Some(state) = walk.runs.get(run) else {
                if whole {
                    missing.push(MissingRecord { run: run.to_owned(), n: 0 });
                    walk.findings
                        .add(index(Kind::Inserted, "the table of runs has it, and no record opens it"));
                }
                continue;
            };
            seen.insert(run.into());
            if state.row_unknown {
                continue;
            }
            if let Some((kind, what)) = row_difference(row, state) {
                let mut divergence = index(kind, what);
                if kind == Kind::Cut {
                    missing.push(MissingRecord { run: run.to_owned(), n: state.next });
                    divergence = divergence.at_record(run, state.next);
                }
                walk.findings.add(divergence);
                if kind == Kind::Inserted {
                    continue;
                }
            }
            let opened = state.opened.unwrap_or(last_opened);
            if opened < last_opened {
                walk.findings.add(index(
                    Kind::Reordered,
                    "the table of runs has it after runs that were opened later",
                ));
            }
            last_opened = last_opened.max(opened);
        }
    }
    for (run, state) in &walk.runs {
        if state.row.is_some() && !state.row_unknown && !seen.contains(run) {
            let what = "the table of runs does not have it";
            walk.findings.add(Divergence::new(Kind::Removed, Part::Index, what).of_run(run));
        }
    }
    let unknown =
        "SELECT run FROM run_origin WHERE run NOT IN (SELECT run.run FROM run) ORDER BY run LIMIT $1";
    for row in sql(unknown).bind(MAX_NAMED).rows(engine, &[Text]).await? {
        let what = "the table of origins has it, and the table of runs does not";
        walk.findings.add(Divergence::new(Kind::Inserted, Part::Index, what).of_run(row.text(0)));
    }
    Ok(missing)
}

/// How a row of the table of runs differs from what its records make of it; its columns are those of [`check_runs`].
pub(super) fn row_difference(row: &Row, state: &StreamState) -> Option<(Kind, &'static str)> {
    let Some(expected) = &state.row else {
        return Some((Kind::Inserted, "the table of runs has it, and no record opens it"));
    };
    let ended = row.int(11) != 0 && state.phase != Phase::Ended;
    if ended || (row.opt_text(8).is_some() && expected.verdict.is_none()) {
        return Some((Kind::Cut, "the table of runs knows its end, and its records stop before it"));
    }
    let differs = !row_matches(row, expected, &state.columns);
    differs.then_some((Kind::Changed, "its row in the table of runs does not follow from its records"))
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
                let what = "its row in the table of checkpoints does not follow from its record";
                Divergence::new(Kind::Changed, Part::Checkpoint, what).at_record(STREAM, number)
            }
            None => {
                let next = walk.runs.get(STREAM).map_or(0, |state| state.next);
                let kind = if n.unsigned_abs() >= next { Kind::Cut } else { Kind::Inserted };
                missing.push(MissingRecord { run: STREAM.to_owned(), n: n.unsigned_abs() });
                let what =
                    format!("the table of checkpoints has one over {size} records, and no record says so");
                let place = size.unsigned_abs().saturating_add(1);
                Divergence::new(kind, Part::Checkpoint, what)
                    .at_record(STREAM, n.unsigned_abs())
                    .at_seq(place)
            }
        };
        walk.findings.add(divergence);
    }
    for (_, (_, n)) in expected {
        let what = "the table of checkpoints does not have it";
        walk.findings.add(Divergence::new(Kind::Removed, Part::Checkpoint, what).at_record(STREAM, n));
    }
    Ok(missing)
}

/// The stored hashes above the leaves.
pub(super) async fn upper_rows(engine: &mut Engine) -> Result<TileRows, sqlx::Error> {
    let rows = sql("SELECT level, idx, hashes FROM tile WHERE level <> 0")
        .rows(engine, &[Column::Int, Column::Int, Column::Bytes])
        .await?;
    let key = |row: &Row| (u32::try_from(row.int(0)).unwrap_or(u32::MAX), row.count(1));
    Ok(rows.iter().map(|row| (key(row), row.bytes(2).to_vec())).collect())
}

/// Whether exactly the hashes are stored that belong to the last checkpoint.
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
        let what = format!("{leaves} records were sealed, and there are {place}");
        walk.findings.add(Divergence::new(Kind::Cut, Part::Record, what).at_seq(place + 1).up_to_seq(leaves));
    } else if leaves > size {
        let what =
            format!("{leaves} records were sealed, and the last checkpoint that is left is over {size}");
        walk.findings.add(Divergence::new(Kind::Removed, Part::Checkpoint, what).at_seq(leaves + 1));
    } else if leaves < size || !whole {
        let what = format!("there are {leaves} stored hashes of records, and {size} are sealed");
        walk.findings.add(Divergence::new(Kind::Removed, Part::Tree, what).at_seq(leaves + 1));
        return Ok(());
    }
    if upper_row_lengths(leaves) != *upper {
        let what = "the stored hashes above the records' own are not those of so many records";
        walk.findings.add(Divergence::new(Kind::Changed, Part::Tree, what));
    }
    Ok(())
}

/// The lengths of the stored rows above so many leaves, in bytes, by level and index.
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

/// Checks the tables of holds and imports against what the ledger's stream says.
pub(super) async fn check_holds_and_imports(engine: &mut Engine, walk: &mut Walk) -> Result<(), sqlx::Error> {
    let said = [
        ("held", "SELECT run FROM held", &walk.ledger_facts.held),
        ("imported", "SELECT run FROM imported", &walk.ledger_facts.imported),
    ];
    for (table, statement, said) in said {
        let rows = sql(statement).rows(engine, &[Column::Text]).await?;
        let there: BTreeSet<String> = rows.iter().map(|row| row.text(0).to_owned()).collect();
        for run in there.difference(said) {
            let what = format!("the table `{table}` has it, and no record says so");
            walk.findings.add(Divergence::new(Kind::Inserted, Part::Index, what).of_run(run));
        }
        for run in said.difference(&there) {
            let what = format!("the table `{table}` does not have it");
            walk.findings.add(Divergence::new(Kind::Removed, Part::Index, what).of_run(run));
        }
    }
    Ok(())
}

/// Signatures that are over no record.
pub(super) async fn check_stray_signatures(engine: &mut Engine, walk: &mut Walk) -> Result<(), sqlx::Error> {
    let rows = sql("SELECT signature.run, signature.n FROM signature LEFT JOIN record \
         ON record.run = signature.run AND record.n = signature.n WHERE record.seq IS NULL \
         ORDER BY signature.run, signature.n LIMIT $1")
    .bind(MAX_NAMED)
    .rows(engine, &[Column::Text, Column::Int])
    .await?;
    for row in &rows {
        let what = "a signature is over a record that is not there";
        let divergence = Divergence::new(Kind::Inserted, Part::Signature, what);
        walk.findings.add(divergence.at_record(row.text(0), row.count(1)));
    }
    Ok(())
}

/// Checks the texts that records name against their hashes, and that those are there which runs are about.
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
            // A text of invalid bytes differs.
            let text = text.row(engine, &[Column::Text]).await.ok().flatten();
            let same = text
                .is_some_and(|text| text.opt_text(0).is_some_and(|text| sha256_hex(text.as_bytes()) == name));
            if !same {
                let what = format!("the text {name} is not the one that has this hash");
                let divergence = Divergence::new(Kind::Changed, Part::Body, what);
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
            let what = format!("the text {} that it names is not there", hex(&name));
            walk.findings.add(Divergence::new(Kind::Removed, Part::Body, what).at_record(run, *n));
        }
    }
    if let Some(unnamed) = unnamed.filter(|unnamed| !unnamed.is_empty()) {
        for name in unnamed_texts(engine, unnamed).await? {
            let what = format!("the text {name} is there, and no record names it");
            walk.findings.add(Divergence::new(Kind::Inserted, Part::Body, what));
        }
    }
    Ok(count)
}

/// Of some texts those that no record names, neither as a run's input nor elsewhere in its data.
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
        // Older versions kept the history of a playbook with the record of the version that it ends with.
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

/// Missing bodies of records without a record of their erasure.
pub(super) fn check_bodies(walk: &mut Walk) {
    for (run, state) in &walk.runs {
        if let Some((kind, n, place)) = &state.unexpected_bodiless
            && !walk.ledger_facts.imported.contains(&**run)
        {
            let what = format!("its body is not there, and that of a {kind} is never erased");
            walk.findings
                .add(Divergence::new(Kind::Removed, Part::Record, what).at_record(run, *n).at_seq(*place));
        }
        let erased = walk.ledger_facts.erased.get(&**run).map_or(&[][..], Vec::as_slice);
        let is_erased = |n: &u64| erased.iter().any(|range| range.contains(n));
        let Some(n) = state.bodiless.iter().cloned().flatten().find(|n| !is_erased(n)) else { continue };
        let what = "its body is not there, and nothing says that it was erased";
        let is_first = state.bodiless.first().is_some_and(|range| range.start == n);
        let divergence = Divergence::new(Kind::Removed, Part::Record, what).at_record(run, n);
        walk.findings.add(Divergence { seq: is_first.then_some(state.first_bodiless_seq), ..divergence });
    }
}

/// A broken file, which would be read forever.
fn unordered_rows_error() -> sqlx::Error {
    sqlx::Error::Protocol("the database gives its rows in no order".into())
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
