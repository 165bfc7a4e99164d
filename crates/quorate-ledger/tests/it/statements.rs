//! Both engines understand every statement of this crate, and return columns of the types that both have: integers of
//! 64 bits, texts, bytes. The statements are extracted from the source, so a new one is covered without a change here.

#![cfg(feature = "postgres")]

use std::path::Path;

use crate::postgres::support;
use sqlx::{
    AssertSqlSafe, Column as _, Connection as _, Executor as _, PgConnection, SqlSafeStr as _, SqlStr,
    SqliteConnection, Statement as _, TypeInfo as _,
};
use support::Database;

/// Statements for one engine only.
const SQLITE: [&str; 8] =
    ["ZEROBLOB", "pragma_", "sqlite_master", "?", " log ", " log_line", " log_seat", "dbstat"];
const POSTGRES: [&str; 9] = [
    "clock_timestamp",
    "to_regclass",
    "current_setting",
    "pg_",
    "quorate_",
    "lease",
    " task",
    " tenant",
    " quota",
];

/// The statements in all files below a directory, with their locations.
fn statements(dir: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            statements(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(&path).expect("a text");
            let place = path.display().to_string();
            let verbs = ["SELECT ", "INSERT INTO ", "UPDATE ", "DELETE FROM "];
            found.extend(
                literals(&text)
                    .into_iter()
                    .filter(|literal| verbs.iter().any(|verb| literal.starts_with(verb)))
                    // The first parts of concatenated statements, and texts with several statements.
                    .filter(|literal| !literal.ends_with(' ') && !literal.contains(';'))
                    .filter(|literal| !literal.contains('{') && literal.contains(' '))
                    .map(|literal| (place.clone(), literal)),
            );
        }
    }
}

/// The string literals of a source text. Skips `concat!` with a macro inside, because its parts are not statements.
fn literals(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('"') {
        let (before, after) = rest.split_at(start);
        let mut literal = String::new();
        let mut characters = after[1..].char_indices();
        let mut end = after.len();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    end = at + 2;
                    break;
                }
                '\\' => match characters.next() {
                    // A backslash at the end of a line skips the next line's indentation.
                    Some((_, '\n')) => {
                        let skipped = characters.as_str().len() - characters.as_str().trim_start().len();
                        (0..skipped).for_each(|_| _ = characters.next());
                    }
                    Some((_, escaped)) => literal.push(escaped),
                    None => {}
                },
                character => literal.push(character),
            }
        }
        // A character literal of a quote does not begin a text.
        if before.ends_with('\'') {
            rest = &after[1..];
            continue;
        }
        // The list of columns of a statement that a macro completes. Tests of the audit run it on the only engine that
        // uses it.
        let is_part = ["counted_lines!(", "reviews!("].iter().any(|name| before.trim_end().ends_with(name));
        let follows = after.get(end..).unwrap_or_default().trim_start();
        let ends_elsewhere = follows.starts_with(',') && follows[1..].trim_start().starts_with("now!()");
        if !is_part && !ends_elsewhere {
            all.push(literal);
        }
        rest = after.get(end..).unwrap_or_default();
    }
    all
}

fn is_of(engine: &[&str], statement: &str) -> bool {
    engine.iter().any(|mark| statement.contains(mark))
}

fn safe(statement: &str) -> SqlStr {
    AssertSqlSafe(statement.to_owned()).into_sql_str()
}

#[tokio::test]
async fn both_engines_understand_every_statement() {
    let Some(database) = Database::new().await else { return };
    database.open("here").await.close().await;
    let file = tempfile::tempdir().unwrap();
    let path = file.path().join("ledger.db");
    quorate_ledger::Store::open(&path).await.unwrap().store.close().await;
    let mut postgres = PgConnection::connect(&database.url).await.unwrap();
    let mut sqlite = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();

    let mut found = Vec::new();
    statements(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    let (mut both, mut wrong) = (0, Vec::new());
    for (place, statement) in &found {
        let (in_file, on_server) = (!is_of(&POSTGRES, statement), !is_of(&SQLITE, statement));
        assert!(in_file || on_server, "{place}: {statement}");
        both += usize::from(in_file && on_server);
        if in_file && let Err(error) = sqlite.prepare(safe(statement)).await {
            wrong.push(format!("{place}: {statement}\n  SQLite: {error}"));
        }
        if on_server {
            match postgres.prepare(safe(statement)).await {
                Err(error) => wrong.push(format!("{place}: {statement}\n  Postgres: {error}")),
                Ok(prepared) => {
                    for column in prepared.columns() {
                        let kind = column.type_info().name();
                        if !["INT8", "TEXT", "BYTEA"].contains(&kind) && !statement.contains("pg_advisory") {
                            wrong.push(format!(
                                "{place}: {statement}\n  Postgres: `{}` is {kind}",
                                column.name()
                            ));
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(both >= 40, "only {both} statements were found");
}
