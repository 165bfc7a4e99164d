//! An address of a server that is mistyped is not taken for a file: its password is shown nowhere, and nothing is made.

use crate::support;
use support::council::all_ship;
use support::{CommandOutput, TestDir, finish};

const MISTYPED: [&str; 4] = [
    "postgres:quorate:SeCr3tPw99x@127.0.0.1:27977/at1",
    "postgresql:quorate:SeCr3tPw99x@127.0.0.1/at1",
    "postgres:/quorate:SeCr3tPw99x@127.0.0.1/at1",
    "quorate:SeCr3tPw99x@127.0.0.1/at1",
];

#[track_caller]
fn refused(place: &TestDir, ran: &CommandOutput, exit: i32) {
    assert_eq!(ran.code, exit, "{ran:?}");
    let all = format!("{}{}", ran.stdout, ran.stderr);
    assert!(all.contains("quorate:ledger_address") && all.contains("postgres://user@host"), "{all}");
    assert!(!all.contains("SeCr3t") && !all.contains("127.0.0.1"), "{all}");
    let names = std::fs::read_dir(place.root()).expect("it is there");
    let mut names: Vec<_> = names.map(|entry| entry.expect("an entry").file_name()).collect();
    names.sort();
    assert_eq!(names, ["answers.json", "draft.md", "quorate.toml"], "nothing was made");
}

#[test]
fn a_mistyped_address_is_refused_wherever_it_stands() {
    let place = TestDir::scripted(&all_ship());
    let toml = place.read("quorate.toml");
    for address in MISTYPED {
        for command in [&["review", "draft.md"][..], &["runs"], &["doctor"], &["ledger", "verify"]] {
            refused(&place, &place.run(&[command, &["--ledger", address]].concat()), 64);
            let mut variable = place.command(command);
            variable.env("QUORATE_LEDGER", address);
            refused(&place, &finish(variable.spawn().expect("the binary runs")), 64);
            for written in
                [format!("ledger = \"{address}\"\n{toml}"), format!("{toml}[ledger]\npath = \"{address}\"\n")]
            {
                place.write("quorate.toml", written);
                refused(&place, &place.run(command), 5);
            }
            place.write("quorate.toml", &toml);
        }
    }
}

#[test]
fn a_file_of_such_a_name_is_named_with_its_directory() {
    let place = TestDir::scripted(&all_ship());
    place.run(&["review", "draft.md", "--ledger", "./postgres:a@b.db"]).assert_code(0);
    assert!(place.path("postgres:a@b.db").is_file());
}
