//! Single bits of a ledger's contents, changed one at a time: each change is reported. Also single bits of its file,
//! for which verification must only give an answer.
//!
//! `QUORATE_FLIPS` sets the number of bits; `scripts/soak` changes a million.

use std::time::Duration;

use quorate_kernel::entropy;
use quorate_ledger::Store;
use quorate_ledger::store::address::StoreAddress;
use quorate_ledger::verify::verify;
use sqlx::{AssertSqlSafe, Row as _, SqliteConnection};

use super::world::World;

/// The number of changed bits, over all shares of the tests.
const FLIPS: u64 = 2_000;
/// The number of tests that share them. Each is a separate process.
const SHARES: u64 = 4;

fn flips() -> u64 {
    let all = std::env::var("QUORATE_FLIPS").map_or(FLIPS, |text| text.parse().expect("a number"));
    all.div_ceil(SHARES)
}

/// Pseudorandom numbers with a fixed seed.
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).expect("it fits")
    }
}

/// A value of a row, and its location.
struct Cell {
    table: &'static str,
    column: &'static str,
    rowid: &'static str,
    row: String,
    bytes: Vec<u8>,
    is_int: bool,
    is_blob: bool,
}

impl Cell {
    fn literal(&self, bytes: &[u8]) -> String {
        let hex = entropy::hex(bytes);
        match (self.is_int, self.is_blob) {
            (true, _) => i64::from_be_bytes(bytes.try_into().expect("eight bytes")).to_string(),
            (_, true) => format!("x'{hex}'"),
            _ => format!("CAST(x'{hex}' AS TEXT)"),
        }
    }

    fn set(&self, bytes: &[u8], row: &str) -> String {
        let Cell { table, column, rowid, .. } = self;
        format!("UPDATE {table} SET {column} = {} WHERE {rowid} = {row}", self.literal(bytes))
    }

    /// The row's label, if this is its name.
    fn renamed(&self, bytes: &[u8]) -> String {
        if self.column == self.rowid { self.literal(bytes) } else { self.row.clone() }
    }
}

/// A table, the column that identifies its rows, and the changed column.
const CELLS: &[(&str, &str, &[&str])] = &[
    ("record", "seq", &["seq", "run", "n", "kind", "head", "data"]),
    ("signature", "n", &["run", "n", "key", "signature"]),
    ("checkpoint", "size", &["size", "root", "n"]),
    ("tile", "idx", &["level", "idx", "hashes"]),
    (
        "run",
        "seq",
        &[
            "run",
            "opened_ms",
            "subject",
            "artifact_type",
            "artifact_sha256",
            "council",
            "log_path",
            "verdict",
            "decided_ms",
            "ended",
        ],
    ),
    ("run_origin", "run", &["run", "mode"]),
    ("body", "sha256", &["sha256", "text"]),
];

async fn cells(sqlite: &mut SqliteConnection) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (table, rowid, columns) in CELLS {
        for column in *columns {
            let select = format!(
                "SELECT quote({rowid}), typeof({column}), CAST({column} AS BLOB), {column} FROM {table} WHERE {column} IS NOT NULL"
            );
            let rows = sqlx::query(AssertSqlSafe(select)).fetch_all(&mut *sqlite).await.expect("rows");
            for row in rows {
                let (name, kind): (String, String) = (row.get(0), row.get(1));
                let is_int = kind == "integer";
                let bytes = if is_int {
                    row.get::<i64, _>(3).to_be_bytes().to_vec()
                } else {
                    row.get::<Vec<u8>, _>(2)
                };
                let is_blob = kind == "blob";
                cells.push(Cell { table, column, rowid, row: name, bytes, is_int, is_blob });
            }
        }
    }
    cells
}

async fn run(sqlite: &mut SqliteConnection, statement: &str) -> bool {
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(sqlite).await.is_ok()
}

/// Whether nothing protects a bit: the time of the very last record, which no checkpoint covers and no record follows.
fn is_free(cell: &Cell, byte: usize, last: &str) -> bool {
    const TIME: std::ops::Range<usize> = 7..31;
    cell.table == "record" && cell.column == "head" && cell.row == last && TIME.contains(&byte)
}

async fn share(share: u64) {
    let world = World::new().await;
    let options = world.options();
    let mut sqlite = world.sqlite().await;
    assert!(run(&mut sqlite, "PRAGMA synchronous = OFF").await);
    let cells = cells(&mut sqlite).await;
    let bits: usize = cells.iter().map(|cell| cell.bytes.len() * 8).sum();
    let store = Store::open_read_only(&StoreAddress::from(&*world.db())).await.expect("it opens");
    let mut chance = Rng(0x9e37_79b9_7f4a_7c15 ^ (share + 1));
    let (mut changed, mut refused) = (0_u64, 0_u64);
    while changed < flips() {
        let mut bit = chance.below(bits);
        let cell = cells
            .iter()
            .find(|cell| {
                let here = bit < cell.bytes.len() * 8;
                bit -= if here { 0 } else { cell.bytes.len() * 8 };
                here
            })
            .expect("within");
        if is_free(cell, bit / 8, "25") {
            continue;
        }
        let mut bytes = cell.bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        if !run(&mut sqlite, &cell.set(&bytes, &cell.row)).await {
            // The database refuses some changes, such as a duplicate key.
            refused += 1;
            assert!(refused < flips(), "most are taken");
            continue;
        }
        let report = verify(&store, options.clone()).await.expect("verified");
        let Cell { table, column, row, .. } = cell;
        assert!(!report.holds, "bit {bit} of {table}.{column} at {row} is accepted");
        assert!(run(&mut sqlite, &cell.set(&cell.bytes, &cell.renamed(&bytes))).await, "put back");
        changed += 1;
        if changed.is_multiple_of(500) {
            assert!(verify(&store, options.clone()).await.expect("verified").holds, "all was put back");
        }
    }
    store.close().await;
}

#[tokio::test]
async fn no_changed_bit_is_accepted_1() {
    // D2, D3
    share(0).await;
}

#[tokio::test]
async fn no_changed_bit_is_accepted_2() {
    share(1).await;
}

#[tokio::test]
async fn no_changed_bit_is_accepted_3() {
    share(2).await;
}

#[tokio::test]
async fn no_changed_bit_is_accepted_4() {
    share(3).await;
}

#[tokio::test]
async fn a_broken_file_gets_an_answer() {
    // D2
    let world = World::new().await;
    let recorded = contents(&world).await;
    let whole = std::fs::read(world.db()).unwrap();
    let mut chance = Rng(77);
    let mut found = 0;
    for round in 0..300 {
        let mut bytes = whole.clone();
        let length = bytes.len();
        match round % 3 {
            // A changed bit, an empty page, a copy of another page.
            0 => bytes[chance.below(length)] ^= 1 << chance.below(8),
            1 => {
                let page = chance.below(length / 4096) * 4096;
                bytes[page..page + 4096].fill(0);
            }
            _ => {
                let (from, to) = (chance.below(length / 4096) * 4096, chance.below(length / 4096) * 4096);
                bytes.copy_within(from..from + 4096, to);
            }
        }
        if round % 10 == 9 {
            bytes.truncate(chance.below(length));
        }
        std::fs::write(world.db(), &bytes).unwrap();
        let answer = async {
            let Ok(store) = Store::open_read_only(&StoreAddress::from(&*world.db())).await else {
                return false;
            };
            let holds = verify(&store, world.options()).await.is_ok_and(|report| report.holds);
            store.close().await;
            holds
        };
        let holds = tokio::time::timeout(Duration::from_secs(20), answer)
            .await
            .unwrap_or_else(|_| panic!("no answer in round {round}"));
        found += u32::from(!holds);
        assert_eq!(std::fs::read(world.db()).unwrap(), bytes, "nothing was written");
        if holds {
            // The change hit free space, or a page without records.
            assert_eq!(contents(&world).await, recorded, "round {round}");
        }
    }
    assert!(found > 0, "some of it is found");
}

/// Every record with its signatures.
async fn contents(world: &World) -> Vec<(i64, String, Option<String>, Option<String>)> {
    let mut sqlite = world.sqlite().await;
    let select = "SELECT record.seq, record.head, record.data, signature.signature FROM record \
                  LEFT JOIN signature ON signature.run = record.run AND signature.n = record.n ORDER BY record.seq";
    let rows = sqlx::query(select).fetch_all(&mut sqlite).await.expect("rows");
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect()
}
