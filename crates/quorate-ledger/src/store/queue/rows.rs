//! The rows of records and of their signatures, as statements write them.

use super::super::engine::{Engine, Value, sql_rows};
use super::MAX_ROWS;

/// A record's run, number, kind, head and data.
pub(in crate::store) type RecordRow = [Value; 5];

/// Appends records, at most [`MAX_ROWS`].
pub(in crate::store) async fn insert_rows(
    engine: &mut Engine,
    rows: impl Iterator<Item = RecordRow>,
) -> Result<(), sqlx::Error> {
    let first = engine.next_seq("SELECT MAX(seq) FROM record").await?;
    let numbered = (0_i64..).zip(rows).map(|(at, row)| {
        let seq = match first {
            Value::Int(Some(first)) => Value::from(first + at),
            _ => Value::Int(None),
        };
        std::iter::once(seq).chain(row).collect()
    });
    let numbered: Vec<Vec<Value>> = numbered.collect();
    let count = numbered.len();
    let head = "INSERT INTO record (seq, run, n, kind, head, data) VALUES ";
    sql_rows(head, numbered, "").insert_exactly(engine, count).await
}

/// Writes signatures: of each the run, the record's number, the key and the signature.
pub(in crate::store) async fn insert_signatures(
    engine: &mut Engine,
    rows: Vec<Vec<Value>>,
) -> Result<(), sqlx::Error> {
    for some in rows.chunks(MAX_ROWS) {
        let head = "INSERT INTO signature (run, n, key, signature) VALUES ";
        sql_rows(head, some.iter().cloned(), "").insert_exactly(engine, some.len()).await?;
    }
    Ok(())
}
