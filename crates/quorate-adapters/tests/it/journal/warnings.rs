//! Warnings about a journal that can be read but differs from its writers' intention.

use quorate_testkit::conformance::substrate::{answer, new_turn};

use super::{Journal, append, public_format};

/// The warnings for a journal with this text.
fn warnings_for(text: impl AsRef<[u8]>) -> Vec<String> {
    let journal = Journal::with_content(text);
    let warnings = journal.open().warnings();
    assert!(!journal.sibling(".lock").exists(), "looking makes nothing");
    let path = journal.path().display().to_string();
    for line in &warnings {
        assert!(line.starts_with(&format!("the journal {path}: ")), "{line}");
    }
    warnings
}

fn turn(second: u32, content: &str) -> String {
    public_format::write("cli", &format!("2026-05-23T10:00:{second:02}Z"), content)
}

/// Whether one thing is said, with these words in it.
fn assert_single(warnings: &[String], words: &[&str]) {
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    for word in words {
        assert!(warnings[0].contains(word), "{word}: {warnings:#?}");
    }
}

#[tokio::test]
async fn of_a_sound_journal_nothing_is_said() {
    assert!(Journal::new().open().warnings().is_empty());
    let journal = Journal::with_content("# Launch\n\n<!-- a comment -->\n");
    assert!(journal.open().warnings().is_empty());
    let substrate = journal.open();
    for hostile in ["=== TURN x", "\\=== TURN id=a b", "\n\n=== TURN participant=x id=y ts=z ===\n", "é\r\n"]
    {
        let first = append(&substrate, new_turn("ann", hostile)).await;
        append(&substrate, answer("bea", hostile, &first.id)).await;
    }
    assert!(substrate.warnings().is_empty(), "{:?}", substrate.warnings());
    assert!(warnings_for(journal.text().replace('\n', "\r\n")).is_empty());
    // The id of another program's turn proves what it said.
    assert!(warnings_for(turn(0, "=== TURN is how a header begins")).is_empty());
    assert!(warnings_for("").is_empty());
}

#[test]
fn lines_that_look_like_headers_are_named() {
    for alike in [
        "=== TURN participant=x id=y ts=z ===",
        "=== TURN id=x participant=y ===",
        "=== TURN id=x participant=Ann Lee ts=z ===",
        "=== TURN id=x participant=y ts=z",
        "\u{feff}=== TURN id=x participant=y ts=z ===",
        "=== TURN  id=x participant=y ts=z ===\r",
    ] {
        let text = format!("{}{alike}\nhello\n", turn(0, "hi"));
        assert_single(
            &warnings_for(&text),
            &["like a header at line 3 is malformed", "`=== TURN id=… participant=… ts=… ===`"],
        );
        assert_single(&warnings_for(format!("{text}{}", turn(1, "ho"))), &["at line 3 is malformed"]);
    }
    let many: String = (0..5).map(|at| format!("=== TURN {at}\nx\n")).collect();
    assert_single(
        &warnings_for(format!("{}{many}", turn(0, "hi"))),
        &["at line 3, line 5, line 7 and 2 more is malformed"],
    );
}

#[test]
fn text_before_the_first_turn_is_named() {
    assert_single(
        &warnings_for("schema: agentruntimes/v1\n"),
        &["(line 1) and no turn", "nothing is appended to it"],
    );
    assert_single(
        &warnings_for(format!("# Launch\n\nnotes\n{}", turn(0, "hi"))),
        &["(line 3) belongs to no turn"],
    );
    let warnings = warnings_for(format!("=== TURN x\n{}", turn(0, "hi")));
    assert_eq!(warnings.len(), 2, "{warnings:#?}");
    assert_single(&warnings[1..], &["like a header at line 1"]);
}

#[tokio::test]
async fn words_behind_a_turn_of_ours_are_named() {
    for reply in ["yes", "yes\n\n"] {
        let journal = Journal::new();
        let first = append(&journal.open(), new_turn("ann", "@bea?")).await;
        append(&journal.open(), answer("bea", reply, &first.id)).await;
        journal.add("I resign.\n");
        assert_single(
            &warnings_for(journal.text()),
            &["after the turn at line 3 there is text without a header"],
        );
        append(&journal.open(), new_turn("ann", "next")).await;
        assert_single(&warnings_for(journal.text()), &["after the turn at line 3"]);
        journal.add("as another would\n");
        assert_single(&warnings_for(journal.text()), &["after the turn at line 3 there is"]);
    }
}

#[test]
fn ids_that_occur_twice_are_named() {
    let (one, two) = (turn(0, "hi"), turn(1, "ho"));
    let id = public_format::id("cli", "2026-05-23T10:00:00Z", "hi");
    let again = one.replace("\nhi\n", "\n@bea and you?\n");
    assert_single(
        &warnings_for([&*one, &two, &again].concat()),
        &["the turn at line 5", &format!("the id `{id}` of the turn at line 1"), "another id"],
    );
}

#[tokio::test]
async fn a_last_turn_that_was_cut_off_is_named() {
    let journal = Journal::new();
    let first = append(&journal.open(), new_turn("ann", "@bea?")).await;
    let begin = journal.bytes().len();
    let own = append(&journal.open(), answer("bea", "yes,\nof course", &first.id)).await;
    let bytes = journal.bytes();
    journal.write(&bytes[..bytes.len() - 4]);
    let id = format!("`{}` of `bea` at line 3, was cut off", own.id);
    assert_single(&warnings_for(journal.bytes()), &[&id]);
    // Once it is marked, the warning is not repeated.
    append(&journal.open(), new_turn("ann", "next")).await;
    assert!(warnings_for(journal.bytes()).is_empty());
    journal.write(&bytes[..begin + 30]);
    assert_single(&warnings_for(journal.bytes()), &["ends at line 3 with a header that was cut off"]);
    append(&journal.open(), new_turn("ann", "next")).await;
    assert!(warnings_for(journal.bytes()).is_empty(), "{:?}", warnings_for(journal.bytes()));
}
