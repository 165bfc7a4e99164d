//! The roles of docs/postgres.md, taken from that page, on a real server: the owner makes the tables and erases, the writer
//! adds and can change nothing, the reader reads. Needs the server that `scripts/services start postgres` starts.

#![cfg(feature = "postgres")]

use std::future::Future;

use crate::support;
use crate::support::postgres as server;
use serde_json::json;
use server::Database;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use support::council::{COUNCIL, all_ship};
use support::{CommandOutput, TestDir, assembly, finish};

const DOCUMENT: &str = include_str!("../../../../docs/postgres.md");
const TABLES: [&str; 9] =
    ["record", "body", "run", "signature", "tile", "checkpoint", "held", "imported", "quorate_schema"];

fn wait<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// A database with the document's roles, under names of its own: roles are the whole server's.
struct Roles {
    database: Database,
    unique: String,
}

impl Roles {
    fn new() -> Option<Roles> {
        let database = wait(Database::new())?;
        let unique = database.url.rsplit_once('/').expect("it ends with a database").1.to_owned();
        Some(Roles { database, unique })
    }

    /// Does what a block of SQL of the document says.
    fn follow(&self, block: usize) {
        let blocks: Vec<&str> = DOCUMENT.split("```sql\n").skip(1).collect();
        let (text, _) = blocks[block].split_once("```").expect("a block ends");
        let mut text = text.to_owned();
        for role in ["owner", "writer", "reader"] {
            text = text.replace(&format!("quorate_{role}"), &self.role(role));
        }
        wait(self.database.run(&text));
    }

    fn role(&self, role: &str) -> String {
        // As a name without quotes is read.
        format!("{}_{role}", self.unique.to_lowercase())
    }

    /// The address, for a role.
    fn url(&self, role: &str) -> String {
        self.database.url.replace("quorate@", &format!("{}@", self.role(role)))
    }

    fn run(&self, place: &TestDir, role: &str, arguments: &[&str]) -> CommandOutput {
        let mut command = place.command(arguments);
        command.env("QUORATE_LEDGER", self.url(role)).env("QUORATE_TRUST", "1");
        finish(command.spawn().expect("the binary runs"))
    }

    /// The server's answer to a role's statement.
    fn says(&self, role: &str, statement: &str) -> String {
        wait(async {
            let mut connection = PgConnection::connect(&self.url(role)).await.expect("it may connect");
            let done = sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await;
            done.map_or_else(|error| error.to_string(), |done| format!("{} rows", done.rows_affected()))
        })
    }
}

impl Drop for Roles {
    fn drop(&mut self) {
        let roles = ["owner", "writer", "reader"].map(|role| self.role(role)).join(", ");
        let drop = format!("DROP OWNED BY {roles} CASCADE; DROP ROLE {roles}");
        let url = self.database.url.clone();
        let dropping = std::thread::spawn(move || {
            wait(async {
                if let Ok(mut connection) = PgConnection::connect(&url).await {
                    let _ = sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut connection).await;
                }
            });
        });
        let _ = dropping.join();
    }
}

#[test]
fn the_documented_roles_can_do_what_they_are_for_and_nothing_else() {
    let Some(roles) = Roles::new() else { return };
    let place = TestDir::scripted(&all_ship());
    roles.follow(0);
    // Before the owner has made the tables the writer cannot.
    roles
        .run(&place, "writer", &["review", "draft.md"])
        .assert_code(5)
        .assert_stderr_contains("permission denied for schema quorate");
    roles.run(&place, "owner", &["doctor"]);
    roles.follow(1);

    let reviewed = roles.run(&place, "writer", &["review", "draft.md", "--format", "json"]).assert_code(0);
    assert!(!reviewed.stderr.contains("warning["), "{}", reviewed.stderr);
    let run = reviewed.json()["run"].as_str().expect("an id").to_owned();
    for arguments in [
        &["ledger", "checkpoint"][..],
        &["ledger", "hold", &run],
        &["ledger", "release", &run],
        &["override", &run, "--by", "ada", "--verdict", "REVISE", "--reason", "a number is wrong"],
        &["ledger", "gc"],
        &["ledger", "verify"],
        &["audit"],
        &["ledger", "stats"],
    ] {
        roles.run(&place, "writer", arguments).assert_code(0);
    }
    for statement in [
        "UPDATE record SET head = 'x'",
        "UPDATE record SET data = NULL",
        "DELETE FROM record",
        "TRUNCATE record",
        "UPDATE body SET text = 'x'",
        "DELETE FROM body",
        "DELETE FROM signature",
        "UPDATE signature SET signature = 'x'",
        "DELETE FROM imported",
        "DELETE FROM checkpoint",
        "DELETE FROM run",
        "UPDATE quorate_schema SET version = 9",
        "DROP TABLE record",
        "CREATE TABLE quorate.other (n BIGINT)",
        "CREATE RULE away AS ON INSERT TO record DO INSTEAD NOTHING",
        "ALTER TABLE record DISABLE TRIGGER ALL",
    ] {
        for role in ["writer", "reader"] {
            let said = roles.says(role, statement);
            assert!(
                said.contains("permission denied") || said.contains("must be owner"),
                "{role}: {statement}: {said}"
            );
        }
    }

    // The writer queues and works, and has nothing left in the queue.
    place.write(
        "council.yaml",
        format!("{COUNCIL}tier_rules: {{tier_1: {{post: [\"*.md\"]}}}}\nwatch: {{paths: [./drafts/]}}\n"),
    );
    place.write("drafts/a.md", "The meeting moved.\n");
    for arguments in [
        &["sweep", "--since", "all", "--enqueue"][..],
        &["queue", "tenant", "blog", "--weight", "2"],
        &["queue", "pause", "--tenant", "blog"],
        &["worker", "--until-empty"],
        &["queue", "status"],
    ] {
        roles.run(&place, "writer", arguments).assert_code(0);
    }
    for table in ["task_text", "task_uses", "lease"] {
        assert_eq!(wait(roles.database.count(&format!("quorate.{table}"))), 0, "{table}");
    }

    // The reader sees all of it, and no member is asked if its answer could not be recorded.
    let reader = TestDir::scripted(&all_ship());
    for arguments in [
        &["runs"][..],
        &["queue", "status"],
        &["queue", "list"],
        &["show", &run],
        &["ledger", "verify"],
        &["ledger", "export", "--format", "jsonl"],
        &["replay", &run],
    ] {
        roles.run(&reader, "reader", arguments).assert_code(0);
    }
    let before = wait(roles.database.count("quorate.record"));
    for arguments in [
        &["review", "draft.md"][..],
        &["sweep"],
        &["override", &run, "--by", "ada", "--verdict", "SHIP", "--reason", "fine"],
    ] {
        let refused = roles.run(&reader, "reader", arguments).assert_code(5);
        refused
            .assert_stderr_contains("quorate:ledger_closed")
            .assert_stderr_contains("this user may not write to it");
    }
    assert_eq!(wait(roles.database.count("quorate.record")), before);
    for table in TABLES {
        for statement in [format!("INSERT INTO {table} DEFAULT VALUES"), format!("DELETE FROM {table}")] {
            assert!(roles.says("reader", &statement).contains("permission denied"), "{statement}");
        }
    }
}

#[test]
fn erasing_is_the_owners_unless_the_writer_was_granted_it() {
    // D5
    let Some(roles) = Roles::new() else { return };
    let place = TestDir::new();
    assembly::write(
        &place,
        "voting",
        &[("ada", ""), ("bob", "")],
        "audit: {consultations: {enabled: false}}\n",
    );
    assembly::answers(
        &place,
        &json!({"ada": assembly::vote_answer("yes"), "bob": assembly::vote_answer("yes")}),
    );
    place.write("subject.md", "# A new region\n\nResolution: open it.\n");
    let convene = ["convene", "ASSEMBLY.md", "--proposal", "subject.md"];
    let kept =
        || wait(roles.database.count("quorate.record WHERE kind = 'consultation' AND data IS NOT NULL"));
    roles.follow(0);
    roles.run(&place, "owner", &["doctor"]);
    roles.follow(1);

    roles
        .run(&place, "writer", &convene)
        .assert_code(5)
        .assert_stderr_contains("permission denied for table record");
    assert_eq!(kept(), 2, "nothing is erased, and the run has not ended");
    // Opening the ledger restores what was left, and the owner may.
    roles.run(&place, "owner", &["ledger", "gc"]).assert_code(0);
    assert_eq!(kept(), 0);

    roles.follow(2);
    roles
        .run(&place, "writer", &convene)
        .assert_code(0)
        .assert_stderr_contains("quorate:erasure_unfinished")
        .assert_stderr_contains("their owner may");
    assert_eq!(kept(), 0);
    roles.run(&place, "owner", &["ledger", "gc"]).assert_code(0);
    let verified = roles.run(&place, "reader", &["ledger", "verify"]).assert_code(0);
    assert!(!verified.stderr.contains("warning["), "{}", verified.stderr);
}
