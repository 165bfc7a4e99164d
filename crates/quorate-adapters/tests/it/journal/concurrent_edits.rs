//! People and other programs that change the journal while it is open.

use std::time::Duration;

use quorate_testkit::conformance::substrate::{answer, new_turn};

use super::{Journal, append, contents, public_format, read_everything};

async fn journal_with_turns() -> (Journal, std::sync::Arc<dyn quorate_kernel::ports::substrate::Substrate>) {
    let journal = Journal::new();
    let substrate = journal.open();
    for at in 0..5 {
        let turn = append(&substrate, new_turn("ann", &format!("turn {at}, as it was"))).await;
        append(&substrate, answer("bea", &format!("answer {at},\nas it was"), &turn.id)).await;
    }
    read_everything(&substrate).await;
    (journal, substrate)
}

#[tokio::test]
async fn a_program_that_knows_no_lock_appends() {
    let (journal, substrate) = journal_with_turns().await;
    for at in 0..5 {
        journal.add(public_format::write(
            "cli",
            &format!("2026-05-23T10:00:0{at}Z"),
            &format!("foreign {at}"),
        ));
        let own = append(&substrate, new_turn("ann", &format!("own {at}"))).await;
        let turns = read_everything(&substrate).await;
        assert_eq!(turns.len(), 12 + 2 * at);
        assert_eq!(turns.last(), Some(&own));
        assert_eq!(&*turns[turns.len() - 2].content, format!("foreign {at}"));
        let page = substrate.read(Some(&turns[turns.len() - 3].id), 9).await.unwrap();
        assert_eq!(page.turns, turns[turns.len() - 2..]);
    }
}

/// An edited turn is read with its new words, and keeps its stamp.
#[tokio::test]
async fn words_that_were_changed_by_hand_are_read_as_they_are() {
    for (what, by) in
        [("as it was", "as it is!"), ("as it was", "shorter"), ("as it was", "as it is now, much longer")]
    {
        let (journal, substrate) = journal_with_turns().await;
        let before = read_everything(&substrate).await;
        journal.write(journal.text().replace(what, by));
        for handle in [substrate, journal.open()] {
            let after = read_everything(&handle).await;
            assert_eq!(after.len(), 10);
            for (old, new) in before.iter().zip(&after) {
                assert_eq!((&old.id, &old.stamp, &old.meta), (&new.id, &new.stamp, &new.meta));
                assert_eq!(new.content.as_ref(), old.content.replace(what, by));
            }
            for at in 0..10 {
                let page = handle.read(Some(&before[at].id), 99).await.unwrap();
                assert!(page.known, "it is there still");
                assert_eq!(page.turns, after[at + 1..]);
                assert_eq!(handle.window(&before[at].id, 3).await.unwrap(), after[at.saturating_sub(2)..=at]);
            }
            let again = handle.append(answer("bea", "anew", &before[8].id)).await.unwrap();
            assert!(!again.fresh, "the answer is there still");
        }
    }
}

#[tokio::test]
async fn turns_that_were_taken_out_are_gone() {
    let (journal, substrate) = journal_with_turns().await;
    let before = read_everything(&substrate).await;
    let text = journal.text();
    let from = text.find(&format!("=== TURN id={}", before[3].id)).unwrap();
    let to = text.find(&format!("=== TURN id={}", before[6].id)).unwrap();
    journal.write(format!("{}{}", &text[..from], &text[to..]));
    let page = substrate.read(Some(&before[6].id), 99).await.unwrap();
    assert!(page.known);
    assert_eq!(page.turns, before[7..]);
    let page = substrate.read(Some(&before[4].id), 99).await.unwrap();
    assert!(!page.known, "it is not there any more");
    assert_eq!(page.turns.len(), 7);
    assert!(substrate.append(answer("bea", "anew", &before[2].id)).await.unwrap().fresh, "its key is free");
    assert!(!substrate.append(answer("bea", "anew", &before[0].id)).await.unwrap().fresh);
}

/// As editors save: into a new file that is given the old one's name, or into the same one.
#[tokio::test]
async fn a_journal_that_was_replaced_is_another_journal() {
    let (journal, substrate) = journal_with_turns().await;
    let before = read_everything(&substrate).await;
    let new = public_format::write("user", "2026-05-23T10:00:00Z", "all new");
    let beside = journal.sibling(".new");
    std::fs::write(&beside, &new).unwrap();
    std::fs::rename(&beside, journal.path()).unwrap();
    let page = substrate.read(Some(&before[9].id), 99).await.unwrap();
    assert!(!page.known);
    assert_eq!(contents(&page.turns), ["all new"]);
    append(&substrate, new_turn("ann", "more")).await;
    assert_eq!(contents(&journal.read_fresh().await), ["all new", "more"]);
}

#[tokio::test]
async fn a_journal_that_was_deleted_or_emptied_is_begun_anew() {
    for deleted in [true, false] {
        let (journal, substrate) = journal_with_turns().await;
        let before = read_everything(&substrate).await;
        match deleted {
            true => std::fs::remove_file(journal.path()).unwrap(),
            false => journal.write(""),
        }
        let page = substrate.read(Some(&before[9].id), 99).await.unwrap();
        assert!(!page.known && page.turns.is_empty());
        assert!(substrate.append(answer("bea", "anew", &before[0].id)).await.unwrap().fresh);
        append(&substrate, new_turn("ann", "more")).await;
        assert_eq!(contents(&journal.read_fresh().await), ["anew", "more"]);
        assert_eq!(read_everything(&substrate).await, journal.read_fresh().await);
    }
}

/// An editor may empty a file before it saves it: a reader at that moment does not report the conversation as gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_is_just_being_saved_is_waited_for() {
    let (journal, substrate) = journal_with_turns().await;
    let last = read_everything(&substrate).await.last().unwrap().id.clone();
    let text = journal.text();
    journal.write("");
    let (page, ()) = tokio::join!(substrate.read(Some(&last), 99), async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        journal.write(&text);
    });
    assert!(page.unwrap().known);
}

#[tokio::test]
async fn bytes_that_are_not_utf_8_are_replaced() {
    let (journal, substrate) = journal_with_turns().await;
    let since = read_everything(&substrate).await.last().unwrap().id.clone();
    journal.add(b"=== TURN id=x participant=y ts=z ===\nbad \xff byte\n");
    // A header that is not UTF-8 begins no turn.
    journal.add(b"=== TURN id=x participant=\xff ts=z ===\nmore\n");
    let before = journal.bytes();
    for handle in [&substrate, &journal.open()] {
        let page = handle.read(Some(&since), 9).await.unwrap();
        let content = "bad \u{fffd} byte\n=== TURN id=x participant=\u{fffd} ts=z ===\nmore";
        assert_eq!(contents(&page.turns), [content]);
    }
    append(&substrate, new_turn("ann", "next")).await;
    assert!(journal.bytes().starts_with(&before), "the bytes in the file stay");
}

/// Two turns with one id: nothing is given twice in a row.
#[tokio::test]
async fn of_two_turns_with_one_id_the_last_is_meant() {
    let twice = public_format::write("cli", "2026-05-23T10:00:00Z", "twice");
    let journal = Journal::with_content(
        [&*twice, &public_format::write("cli", "2026-05-23T10:00:01Z", "once"), &*twice].concat(),
    );
    let substrate = journal.open();
    let page = substrate.read(None, 9).await.unwrap();
    assert_eq!(contents(&page.turns), ["twice", "once", "twice"]);
    let page = substrate.read(Some(&page.turns[0].id), 9).await.unwrap();
    assert!(page.known && page.turns.is_empty());
}

/// A link and what it leads to are one journal.
#[cfg(unix)]
#[tokio::test]
async fn a_link_is_the_journal_that_it_leads_to() {
    let (journal, substrate) = journal_with_turns().await;
    let other = Journal::new();
    std::os::unix::fs::symlink(journal.path(), other.path()).unwrap();
    let linked = other.open();
    append(&linked, new_turn("ann", "by the link")).await;
    assert_eq!(read_everything(&substrate).await, read_everything(&linked).await);
    assert!(!other.sibling(".lock").exists());
}

/// A folder that one may only read is enough to read.
#[cfg(unix)]
#[tokio::test]
async fn a_journal_in_a_folder_that_is_read_only_can_be_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let journal = Journal::with_content(public_format::write("cli", "2026-05-23T10:00:00Z", "hello"));
    let mode =
        |mode| std::fs::set_permissions(journal.dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o555);
    let may_write = std::fs::write(journal.sibling(".probe"), "").is_ok();
    let substrate = journal.open();
    let turns = read_everything(&substrate).await;
    let appended = substrate.append(new_turn("ann", "x")).await;
    mode(0o755);
    assert_eq!(contents(&turns), ["hello"]);
    // A superuser may write everywhere.
    assert_eq!(appended.is_ok(), may_write, "{appended:?}");
}

/// A note that is whole and cannot be read may hold what a participant keeps to itself: it is never shown as words.
#[tokio::test]
async fn a_note_that_cannot_be_read_is_an_error_and_never_content() {
    let journal = Journal::new();
    let substrate = journal.open();
    let first = append(&substrate, new_turn("ann", "@bea how?")).await;
    append(&substrate, answer("bea", "so", &first.id)).await;
    let sound = journal.text();
    // An earlier version took states that no reader takes apart again.
    let deep = format!("\"count\":{}3{}", "[".repeat(126), "]".repeat(126));
    let text = sound.replace("\"count\":3", &deep);
    for behind in ["", "=== TURN id=t_1 participant=ann ts=2026-05-18T18:23:12Z ===\nthanks\n"] {
        for text in [text.clone(), sound.replace("\"runtime\":\"conformance\"", "\"runtime\":4")] {
            journal.write(format!("{text}{behind}"));
            let error = journal.open().read(None, 10).await.unwrap_err().to_string();
            assert!(
                error.contains("cannot read the note of turn t_") && error.contains("at byte"),
                "{error}"
            );
        }
    }
}

/// A truncated note does not count as content, even with text after it.
#[tokio::test]
async fn the_beginning_of_a_note_is_never_content() {
    let journal = Journal::new();
    let substrate = journal.open();
    let first = append(&substrate, new_turn("ann", "@bea how?")).await;
    append(&substrate, answer("bea", "so", &first.id)).await;
    let text = journal.text();
    let at = text.rfind("\"state\"").unwrap() + 12;
    for behind in ["\n", "\n=== TURN id=t_1 participant=ann ts=2026-05-18T18:23:12Z ===\nthanks\n"] {
        journal.write(format!("{}{behind}", &text[..at]));
        let turns = journal.read_fresh().await;
        assert!(turns.iter().all(|turn| !turn.content.contains("quorate")), "{turns:?}");
        assert!(turns.iter().all(|turn| turn.stamp.is_none()), "{turns:?}");
    }
}
