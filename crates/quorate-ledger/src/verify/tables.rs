//! The second pass: the derived tables, rebuilt from the walked records, are compared with the stored ones row by row. Also
//! the texts, the stored leaves, and signatures without a record.

use std::collections::{BTreeMap, HashMap};

use quorate_kernel::entropy::{hex, sha256_hex, unhex};

use super::divergence::{Divergence, LedgerPart};
use super::runs::{Bodiless, StreamState};
use super::walk::Walk;
use crate::checkpoint::STREAM;
use crate::merkle::Hash;
use crate::store::engine::{Column, Engine, Row, Value, sql};
use crate::store::index::RunRow;
use crate::store::tiles::{HASHES_PER_ROW, TreeWriter};

/// The number of rows per read.
const PAGE: i64 = 500;
/// The most differences of a table that are reported.
const MAX_NAMED: usize = 20;

/// The columns of a run's row, of `run LEFT JOIN run_origin USING (run)`, in the order of [`run_cells`].
const RUN_COLUMNS: [&str; 12] = [
    "opened_ms",
    "subject",
    "artifact_type",
    "artifact_sha256",
    "council",
    "log_path",
    "verdict",
    "decided_ms",
    "override",
    "ended",
    "mode",
    "producer",
];

/// A row's values as text, except its key.
type Cells = Vec<Option<String>>;

/// The rows of a derived table as rebuilt from the records, and what was found of them.
struct Rebuilt<'a, K> {
    table: &'static str,
    part: LedgerPart,
    columns: &'a [&'static str],
    rows: BTreeMap<K, Cells>,
    /// Where a divergence of a row is.
    locate: fn(Divergence, &K) -> Divergence,
    found: Vec<Divergence>,
}

impl<'a, K: Ord> Rebuilt<'a, K> {
    fn new(
        table: &'static str,
        part: LedgerPart,
        columns: &'a [&'static str],
        rows: impl Iterator<Item = (K, Cells)>,
        locate: fn(Divergence, &K) -> Divergence,
    ) -> Self {
        Rebuilt { table, part, columns, rows: rows.collect(), locate, found: Vec::new() }
    }

    /// Compares a stored row with the rebuilt one, which is then done.
    fn compare(&mut self, key: &K, stored: &Cells) {
        let table = self.table;
        let divergence = match self.rows.remove(key) {
            None => {
                let what = format!("it has a row in the table `{table}`, but no record gives it");
                Divergence::inserted(self.part, what)
            }
            Some(rebuilt) => {
                let mut columns = self.columns.iter().zip(stored).zip(&rebuilt);
                let Some(((column, stored), rebuilt)) = columns.find(|((_, stored), row)| stored != row)
                else {
                    return;
                };
                let text = |cell: &Option<String>| cell.clone().unwrap_or_else(|| "null".to_owned());
                let (stored, rebuilt) = (text(stored), text(rebuilt));
                let what = format!(
                    "its row in the table `{table}` has the {column} `{stored}`, but its records give `{rebuilt}`"
                );
                Divergence::changed(self.part, what)
            }
        };
        self.found.push((self.locate)(divergence, key));
    }

    /// Reports the differences, with the rows that are not stored.
    fn finish(mut self, walk: &mut Walk) {
        for key in self.rows.keys() {
            let what = format!("it has no row in the table `{}`", self.table);
            self.found.push((self.locate)(Divergence::removed(self.part, what), key));
        }
        for (divergence, at) in self.found.into_iter().zip(0..) {
            match at < MAX_NAMED {
                true => walk.findings.add(divergence),
                false => walk.findings.count_unnamed(),
            }
        }
    }
}

/// Reads a table in the order of its first column, page by page, so that reading a corrupt file ends.
async fn read_pages(
    engine: &mut Engine,
    page: &'static str,
    mut after: Value,
    columns: &[Column],
    mut visit: impl FnMut(&Row),
) -> Result<(), sqlx::Error> {
    loop {
        let rows = sql(page).bind(after.clone()).bind(PAGE).rows(engine, columns).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        let (next, is_behind) = match &after {
            Value::Text(Some(after)) => (Value::from(last.text(0)), last.text(0) <= after.as_str()),
            Value::Int(Some(after)) => (Value::from(last.int(0)), last.int(0) <= *after),
            _ => (after.clone(), true),
        };
        if is_behind {
            return Err(sqlx::Error::Protocol("the database returns its rows out of order".into()));
        }
        after = next;
        rows.iter().for_each(&mut visit);
    }
}

/// Compares the tables of runs.
pub(super) async fn check_runs(engine: &mut Engine, walk: &mut Walk) -> Result<(), sqlx::Error> {
    use Column::{Int, Text};
    let known = walk.runs.iter().filter(|(_, state)| !state.row_unknown);
    let rows = known.filter_map(|(run, state)| Some((run.to_string(), run_cells(state.row.as_ref()?))));
    let mut runs = Rebuilt::new("run", LedgerPart::Index, &RUN_COLUMNS, rows, |divergence, run: &String| {
        divergence.of_run(run)
    });
    let page = "SELECT seq, run, opened_ms, subject, artifact_type, artifact_sha256, council, log_path, verdict, \
         decided_ms, override, ended, mode, producer FROM run LEFT JOIN run_origin USING (run) \
         WHERE seq > $1 ORDER BY seq LIMIT $2";
    let columns = [Int, Text, Int, Text, Text, Text, Text, Text, Text, Int, Text, Int, Text, Text];
    let whole = walk.options.since.is_none();
    let mut last_opened = 0;
    read_pages(engine, page, Value::from(i64::MIN), &columns, |row| {
        let run = row.text(1).to_owned();
        let state = walk.runs.get(&*run);
        if state.is_some_and(|state| state.row_unknown) || (state.is_none() && !whole) {
            return;
        }
        runs.compare(&run, &stored_cells(row));
        let opened = state.and_then(|state| state.opened).unwrap_or(last_opened);
        if opened < last_opened {
            let what = "its row in the table of runs follows rows of runs that were opened later";
            runs.found.push(Divergence::reordered(LedgerPart::Index, what).of_run(&run));
        }
        last_opened = last_opened.max(opened);
    })
    .await?;
    runs.finish(walk);
    let unknown = "SELECT run FROM run_origin WHERE run NOT IN (SELECT run.run FROM run) ORDER BY run";
    for row in sql(unknown).rows(engine, &[Text]).await? {
        let what = "it has a row in the table of origins, but not in the table of runs";
        walk.findings.add(Divergence::inserted(LedgerPart::Index, what).of_run(row.text(0)));
    }
    Ok(())
}

/// The values of a run's row, as [`check_runs`] reads them from the third column on.
fn stored_cells(row: &Row) -> Cells {
    let text = |at: usize| row.opt_text(at).map(str::to_owned);
    let number = |at: usize| Some(row.int(at).to_string());
    let mut cells = vec![number(2)];
    cells.extend((3..=8).map(text));
    cells.extend([number(9), text(10), number(11)]);
    cells.extend([12, 13].map(|at| Some(row.text(at).to_owned())));
    cells
}

/// The values of a rebuilt row, in the order of [`RUN_COLUMNS`].
fn run_cells(row: &RunRow) -> Cells {
    let [columns @ .., mode, producer] = &row.columns;
    let mut cells = vec![Some(row.opened_ms.to_string())];
    cells.extend(columns.iter().cloned().map(Some));
    let decided_ms = row.decided_ms.unwrap_or_default().to_string();
    cells.extend([row.verdict.clone(), Some(decided_ms), row.overridden.clone()]);
    cells.extend([u8::from(row.ended).to_string(), mode.clone(), producer.clone()].map(Some));
    cells
}

/// The first column of a stored row of a run that differs from the row derived from its records.
pub(super) fn differing_column(row: &Row, state: &StreamState) -> Option<&'static str> {
    let rebuilt = run_cells(state.row.as_ref()?);
    let differs = stored_cells(row).into_iter().zip(rebuilt).zip(RUN_COLUMNS);
    differs.into_iter().find(|((stored, rebuilt), _)| stored != rebuilt).map(|(_, column)| column)
}

/// Compares the tables of checkpoints, holds and imports.
pub(super) async fn check_ledger_stream(engine: &mut Engine, walk: &mut Walk) -> Result<(), sqlx::Error> {
    use Column::{Int, Text};
    let whole = walk.options.since.is_none();
    let from = if whole { i64::MIN } else { i64::try_from(walk.started_after).unwrap_or(i64::MAX) };
    let rebuilt = std::mem::take(&mut walk.checkpoints.rows);
    let cells = |root: &str, n: i64| vec![Some(root.to_owned()), Some(n.to_string())];
    let rows = rebuilt.iter().map(|(size, (root, n))| {
        let (size, n) = (i64::try_from(*size).unwrap_or(-1), i64::try_from(*n).unwrap_or(-1));
        (size, cells(&hex(root), n))
    });
    let at_size =
        |divergence: Divergence, size: &i64| divergence.at_seq(size.unsigned_abs().saturating_add(1));
    let mut checkpoints = Rebuilt::new("checkpoint", LedgerPart::Checkpoint, &["root", "n"], rows, at_size);
    let rows = sql("SELECT size, root, n FROM checkpoint WHERE size >= $1 ORDER BY size").bind(from);
    for row in rows.rows(engine, &[Int, Text, Int]).await? {
        let size = row.int(0);
        if row.count(0) >= walk.seq() && !checkpoints.rows.contains_key(&size) {
            let what =
                format!("the table `checkpoint` has a row over {size} records, whose record is missing");
            let divergence = Divergence::cut(LedgerPart::Checkpoint, what).at_record(STREAM, row.count(2));
            checkpoints.found.push(divergence.at_seq(row.count(0).saturating_add(1)));
        } else {
            checkpoints.compare(&size, &cells(row.text(1), row.int(2)));
        }
    }
    checkpoints.finish(walk);
    let sets = [
        ("held", "SELECT run FROM held", std::mem::take(&mut walk.ledger_facts.held)),
        ("imported", "SELECT run FROM imported", walk.ledger_facts.imported.clone()),
    ];
    for (table, statement, runs) in sets.into_iter().filter(|_| whole) {
        let rows = runs.into_iter().map(|run| (run, Cells::new()));
        let mut set = Rebuilt::new(table, LedgerPart::Index, &[], rows, |divergence, run: &String| {
            divergence.of_run(run)
        });
        for row in sql(statement).rows(engine, &[Text]).await? {
            set.compare(&row.text(0).to_owned(), &Cells::new());
        }
        set.finish(walk);
    }
    Ok(())
}

/// Checks that the stored hashes are exactly those of the last checkpoint. The walk has compared the leaves; the levels
/// above them are rebuilt as a seal writes them.
pub(super) async fn check_stored_tree(engine: &mut Engine, walk: &mut Walk) -> Result<(), sqlx::Error> {
    let begin = walk.started_after;
    let mut tree = TreeWriter::load(engine, begin).await?;
    let before = begin / HASHES_PER_ROW;
    let (mut bytes, mut whole) = (before * HASHES_PER_ROW * 32, true);
    let page = "SELECT idx, hashes FROM tile WHERE level = 0 AND idx > $1 ORDER BY idx LIMIT $2";
    let after = if before == 0 { i64::MIN } else { i64::try_from(before - 1).unwrap_or(i64::MAX) };
    read_pages(engine, page, Value::from(after), &[Column::Int, Column::Bytes], |row| {
        let (size, hashes) = (tree.frontier().size(), row.bytes(1));
        bytes += hashes.len() as u64;
        whole &= i64::try_from(size / HASHES_PER_ROW) == Ok(row.int(0));
        whole &= !hashes.is_empty()
            && hashes.len().is_multiple_of(32)
            && hashes.len() as u64 <= HASHES_PER_ROW * 32;
        if whole {
            tree.push_leaves(hashes);
        }
    })
    .await?;
    // The full rows before the walk are counted, and not read.
    let full = "SELECT COUNT(*), COALESCE(MIN(idx), 0), CAST(COALESCE(SUM(CASE WHEN LENGTH(hashes) = $2 THEN 0 ELSE 1 END), 0) \
        AS BIGINT) FROM tile WHERE level = 0 AND idx < $1";
    let counted = sql(full).bind(before).bind(32 * HASHES_PER_ROW).row(engine, &[Column::Int; 3]).await?;
    if let Some(row) = counted {
        whole &= row.count(0) == before && row.int(1) == 0 && row.int(2) == 0;
    }
    let (leaves, size, place) = (bytes / 32, walk.checkpoints.size, walk.seq());
    if leaves > place {
        let what = format!("{leaves} records were sealed, but there are only {place}");
        walk.findings.add(Divergence::cut(LedgerPart::Record, what).at_seq(place + 1).up_to_seq(leaves));
        return Ok(());
    } else if leaves > size {
        let what = format!("{leaves} records were sealed, but the last remaining checkpoint covers {size}");
        walk.findings.add(Divergence::removed(LedgerPart::Checkpoint, what).at_seq(leaves + 1));
    } else if leaves < size || !whole {
        let what = format!("there are {leaves} stored hashes of records, but {size} sealed records");
        walk.findings.add(Divergence::removed(LedgerPart::Tree, what).at_seq(leaves + 1));
        return Ok(());
    }
    if !walk.tree.is_stored() {
        return Ok(());
    }
    let cells = |hashes: &[u8]| vec![Some(sha256_hex(hashes))];
    let rebuilt = tree.rows().filter(|(level, ..)| *level > 0);
    let rebuilt = rebuilt.map(|(level, idx, hashes)| ((i64::from(level), idx), cells(hashes)));
    let named = |divergence: Divergence, (level, idx): &(i64, u64)| {
        let what = format!("the stored hashes {idx} of level {level}: {}", divergence.what);
        Divergence { what, ..divergence }
    };
    let mut tiles = Rebuilt::new("tile", LedgerPart::Tree, &["hash"], rebuilt, named);
    let upper = sql("SELECT level, idx, hashes FROM tile WHERE level <> 0 ORDER BY level, idx");
    for row in upper.rows(engine, &[Column::Int, Column::Int, Column::Bytes]).await? {
        let (level, idx) = (row.int(0), row.count(1));
        let before = u32::try_from(level).ok().and_then(|level| begin.checked_shr(level)).unwrap_or(0);
        // The rows before the walk are not rebuilt.
        if idx >= before / HASHES_PER_ROW {
            tiles.compare(&(level, idx), &cells(row.bytes(2)));
        }
    }
    tiles.finish(walk);
    Ok(())
}

/// Reports signatures without a record.
pub(super) async fn check_stray_signatures(engine: &mut Engine, walk: &mut Walk) -> Result<(), sqlx::Error> {
    let rows = sql("SELECT signature.run, signature.n FROM signature LEFT JOIN record \
         ON record.run = signature.run AND record.n = signature.n WHERE record.seq IS NULL \
         ORDER BY signature.run, signature.n LIMIT $1")
    .bind(MAX_NAMED as u64)
    .rows(engine, &[Column::Text, Column::Int])
    .await?;
    for row in &rows {
        let what = "a signature exists for a missing record";
        walk.findings
            .add(Divergence::inserted(LedgerPart::Signature, what).at_record(row.text(0), row.count(1)));
    }
    Ok(())
}

/// The names of the texts, which the walk looks for in the records: none is named yet.
pub(super) async fn read_text_names(engine: &mut Engine) -> HashMap<Hash, bool> {
    let mut names = HashMap::new();
    let page = "SELECT sha256 FROM body WHERE sha256 > $1 ORDER BY sha256 LIMIT $2";
    // An unreadable table is reported when its texts are compared.
    let _ = read_pages(engine, page, Value::from(""), &[Column::Text], |row| {
        names.extend(unhex(row.text(0)).map(|name| (name, false)));
    })
    .await;
    names
}

/// Compares the texts with their hashes, with the records that require them, and with those that name them. Returns
/// their number.
pub(super) async fn check_texts(engine: &mut Engine, walk: &mut Walk) -> Result<u64, sqlx::Error> {
    let mut wanted = std::mem::take(&mut walk.texts);
    // A run's first record names its subject, unless its body was erased.
    let says =
        |state: &StreamState| state.bodiless.first().is_none_or(|first| first.n > 0) && !state.row_unknown;
    let all_named = walk.options.since.is_none() && walk.runs.values().all(says);
    let is_named = |hash: Hash| walk.text_names.get(&hash).is_none_or(|is_named| *is_named);
    let (mut count, mut found) = (0, Vec::new());
    let page = "SELECT sha256, text FROM body WHERE sha256 > $1 ORDER BY sha256 LIMIT $2";
    let read = read_pages(engine, page, Value::from(""), &[Column::Text; 2], |row| {
        let (name, text) = (row.text(0), row.text(1));
        count += 1;
        let hash = unhex(name);
        let named = hash.and_then(|hash| wanted.remove(&hash));
        if sha256_hex(text.as_bytes()) != name {
            let divergence =
                Divergence::changed(LedgerPart::Body, format!("the text {name} does not match its hash"));
            found.push(match named.as_deref() {
                Some([(run, n), ..]) => divergence.at_record(run, *n),
                _ => divergence,
            });
        } else if all_named && hash.is_some_and(|hash| !is_named(hash)) {
            let what = format!("the text {name} exists, but no record names it");
            found.push(Divergence::inserted(LedgerPart::Body, what));
        }
    })
    .await;
    found.into_iter().for_each(|divergence| walk.findings.add(divergence));
    read?;
    for (name, by) in wanted {
        let by = by.iter().find(|(run, _)| !walk.ledger_facts.erased_elsewhere.contains(&**run));
        if let Some((run, n)) = by {
            let what = format!("the text {} that it names is missing", hex(&name));
            walk.findings.add(Divergence::removed(LedgerPart::Body, what).at_record(run, *n));
        }
    }
    Ok(count)
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
        let is_erased = |record: &&Bodiless| walk.ledger_facts.is_erased(run, record.n);
        if let Some(Bodiless { n, seq, .. }) = state.bodiless.iter().find(|record| !is_erased(record)) {
            let what = "its body is missing without a record of its erasure";
            walk.findings.add(Divergence::removed(LedgerPart::Record, what).at(run, *n, *seq));
        }
    }
}
