//! A trigger changes records while they are written, and a view shows other rows than there are: no ledger has either, and
//! one that has is neither written to nor exported from.

use crate::support;
use crate::support::records::execute_sql;
use support::TestDir;
use support::council::all_ship;

const LEDGER: &str = ".quorate/ledger.db";

/// Statements that change a ledger's schema, with the message and the help.
const FOREIGN: [(&str, &str, &str); 9] = [
    (
        "CREATE TRIGGER wipe AFTER INSERT ON record BEGIN DELETE FROM body; END",
        "has a foreign trigger `wipe` on the table `record`",
        "DROP TRIGGER \"wipe\"",
    ),
    ("CREATE VIEW other AS SELECT 1", "has a foreign view `other`", "DROP VIEW \"other\""),
    (
        "ALTER TABLE body RENAME TO kept; CREATE VIEW body AS SELECT sha256, 'x' AS text FROM kept",
        "has a foreign ",
        "restore the ledger from a backup",
    ),
    ("CREATE TABLE more (a)", "has a foreign table `more`", "DROP TABLE \"more\""),
    ("CREATE INDEX more ON record (lower(data))", "has a foreign index `more`", "DROP INDEX \"more\""),
    (
        "DROP TABLE held; CREATE VIRTUAL TABLE held USING fts5(run)",
        "the table `held` of the ledger",
        "restore the ledger from a backup",
    ),
    (
        "ALTER TABLE record ADD COLUMN shown TEXT GENERATED ALWAYS AS ('x')",
        "the table `record` of the ledger",
        "restore the ledger from a backup",
    ),
    (
        "CREATE TABLE other (sha256 TEXT PRIMARY KEY ON CONFLICT REPLACE, text TEXT NOT NULL); \
         INSERT INTO other SELECT * FROM body; DROP TABLE body; ALTER TABLE other RENAME TO body",
        "the table `body` of the ledger",
        "restore the ledger from a backup",
    ),
    (
        "DROP INDEX run_unended; CREATE UNIQUE INDEX run_unended ON run (ended)",
        "the index `run_unended` of the ledger",
        "restore the ledger from a backup",
    ),
];

#[test]
fn a_ledger_with_a_trigger_or_a_view_is_refused_wherever_it_is_opened() {
    for (statements, says, help) in FOREIGN {
        let place = TestDir::scripted(&all_ship());
        place.run(&["review", "draft.md"]).assert_code(0);
        execute_sql(&place.path(LEDGER), statements);
        let (log, ledger) = (place.read(".quorate/council_log.jsonl"), std::fs::read(place.path(LEDGER)));
        place.write("draft.md", "Another draft.\n");
        let commands: [&[&str]; 8] = [
            &["review", "draft.md"],
            &["show", "latest"],
            &["runs"],
            &["ledger", "checkpoint"],
            &["ledger", "export", "--out", "out.jsonl"],
            &["ledger", "prove", "latest"],
            &["ledger", "gc"],
            &["keys", "rotate", "ledger"],
        ];
        for command in commands {
            let ran = place.run(command).assert_code(5);
            ran.assert_stderr_contains("quorate:ledger_diverges").assert_stderr_contains(help);
            assert!(!ran.stderr.contains("once the ledger answers"), "{}", ran.stderr);
        }
        place
            .run(&["ledger", "verify"])
            .assert_code(1)
            .assert_stderr_contains("quorate:ledger_diverges")
            .assert_stderr_contains(says)
            .assert_stderr_contains(help);
        assert_eq!(place.read(".quorate/council_log.jsonl"), log, "{statements}");
        assert_eq!(std::fs::read(place.path(LEDGER)).ok(), ledger.ok(), "{statements}");
        assert!(!place.path("out.jsonl").exists() && !place.path(".quorate/aside").exists());
    }
}

#[test]
fn what_the_help_says_mends_it() {
    let place = TestDir::scripted(&all_ship());
    place.run(&["review", "draft.md"]).assert_code(0);
    let trigger = "CREATE TRIGGER \"a \"\"b\" AFTER INSERT ON record BEGIN DELETE FROM body; END";
    execute_sql(&place.path(LEDGER), trigger);
    place.run(&["ledger", "verify"]).assert_code(1).assert_stderr_contains("DROP TRIGGER \"a \"\"b\"");
    execute_sql(&place.path(LEDGER), "DROP TRIGGER \"a \"\"b\"; ANALYZE");
    place.run(&["ledger", "verify"]).assert_code(0);
    place.run(&["review", "draft.md"]).assert_code(0);
}
