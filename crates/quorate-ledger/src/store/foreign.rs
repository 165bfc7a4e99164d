//! Foreign objects that a SQLite file must not have: a trigger changes records while they are written, a view shows other
//! rows than exist, and so does a table with another declaration. One query checks for them whenever a file is opened.

use std::sync::LazyLock;

use quorate_kernel::ports::ledger::Error;
use sqlx::Row as _;
use sqlx::sqlite::SqliteConnection;

use super::address::Address;
use super::sqlite::SCHEMAS;

/// The statements that make the tables and indexes of this version, each in one line.
static OWN: LazyLock<Vec<String>> = LazyLock::new(|| {
    let all = SCHEMAS.iter().flat_map(|schema| statements(schema));
    all.filter(|statement| statement.starts_with("CREATE ")).collect()
});

/// Which tables and indexes a file may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Schema {
    /// Those of this version, as it makes them.
    Own,
    /// Any: those of another version are not known.
    Any,
}

/// The first thing in a file that is no table or index of a ledger.
#[derive(Debug, thiserror::Error)]
#[error("it has a {kind} `{name}`, which no ledger has")]
pub(super) struct Foreign {
    kind: String,
    name: String,
    /// The table that it belongs to.
    table: String,
}

impl Foreign {
    /// The refusal of a ledger, if the error is one.
    pub(super) fn refusal(address: &Address, error: &sqlx::Error) -> Option<Error> {
        let sqlx::Error::Configuration(error) = error else { return None };
        let Foreign { kind, name, table } = error.downcast_ref()?;
        let stands_for_own = OWN.iter().any(|own| declared_name(own).eq_ignore_ascii_case(name));
        let what = match &**kind {
            "table" | "index" if stands_for_own => {
                format!("the {kind} `{name}` of the ledger {address} differs from a ledger's")
            }
            "trigger" => {
                format!(
                    "the ledger {address} has a trigger `{name}` of the table `{table}`, which no ledger has"
                )
            }
            "index" => format!("the ledger {address} has an index `{name}`, which no ledger has"),
            kind => format!("the ledger {address} has a {kind} `{name}`, which no ledger has"),
        };
        let command = format!("DROP {} \"{}\"", kind.to_ascii_uppercase(), name.replace('"', "\"\""));
        Some(Error::ForeignSchema { what, remove: (!stands_for_own).then_some(command) })
    }
}

/// Checks a file's schema before any table is read or written. A text that is not SQL is more than the database's
/// driver takes.
///
/// # Errors
/// [`Foreign`], as [`sqlx::Error::Configuration`], and when the file cannot be read.
pub(super) async fn ensure_own_schema(
    connection: &mut SqliteConnection,
    schema: Schema,
) -> Result<(), sqlx::Error> {
    let rows = sqlx::query(
        "SELECT CAST(type AS BLOB), CAST(name AS BLOB), CAST(tbl_name AS BLOB), CAST(sql AS BLOB), \
         CAST(rootpage AS INTEGER) FROM sqlite_master",
    );
    for row in rows.fetch_all(connection).await? {
        let text = |at: usize| {
            let bytes: Option<Vec<u8>> = row.try_get(at)?;
            String::from_utf8(bytes.unwrap_or_default())
                .map_err(|_| sqlx::Error::Protocol("what it says of its tables cannot be read".into()))
        };
        let (kind, name, table, sql) = (text(0)?, text(1)?, text(2)?, text(3)?);
        // A virtual table, whose rows a module makes, has no page.
        let is_stored = row.try_get::<i64, _>(4)? > 0;
        let is_known = match schema {
            // What SQLite makes for itself has such a name.
            Schema::Own => {
                name.starts_with("sqlite_") || matches!(&*statements(&sql), [one] if OWN.contains(one))
            }
            Schema::Any => true,
        };
        if !(matches!(&*kind, "table" | "index") && is_stored && is_known) {
            return Err(sqlx::Error::Configuration(Box::new(Foreign { kind, name, table })));
        }
    }
    Ok(())
}

/// The statements of a text, each in one line. No text of a ledger's own has a comment within a line.
fn statements(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
    let statements = lines.join(" ");
    let statements = statements.split(';').map(|one| one.split_whitespace().collect::<Vec<_>>().join(" "));
    statements.filter(|statement| !statement.is_empty()).collect()
}

/// The name in `CREATE TABLE name` or `CREATE INDEX name`.
fn declared_name(statement: &str) -> &str {
    statement.split(' ').nth(2).unwrap_or_default()
}
