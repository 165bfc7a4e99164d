//! The index may be deleted, stale, another journal's, or nonsense: everybody sees the same.

use quorate_testkit::conformance::substrate::{answer, new_turn};

use super::{Journal, append, public_format, read_everything};

async fn journal_with_turns() -> Journal {
    let journal = Journal::new();
    let substrate = journal.open();
    for at in 0..30 {
        let turn = append(&substrate, new_turn("ann", &format!("turn {at}"))).await;
        append(&substrate, answer("bea", &format!("answer {at}"), &turn.id)).await;
    }
    journal
}

/// Everything that is asked of a handle is answered as if there had never been an index.
async fn assert_answers_as_fresh(journal: &Journal) {
    let turns = journal.read_fresh().await;
    let substrate = journal.open();
    assert!(!substrate.append(answer("bea", "again", &turns[0].id)).await.expect("an append").fresh);
    for at in [0, 1, 17, turns.len() - 1] {
        let handle = journal.open();
        let page = handle.read(Some(&turns[at].id), 1_000).await.expect("a page");
        assert!(page.known, "{at}");
        assert_eq!(page.turns, turns[at + 1..]);
        assert_eq!(
            journal.open().window(&turns[at].id, 30).await.expect("a window"),
            turns[(at + 1).saturating_sub(30)..=at]
        );
    }
    assert_eq!(read_everything(&substrate).await, turns);
    let last = append(&substrate, new_turn("ann", "last")).await;
    assert_eq!(read_everything(&journal.open()).await.last(), Some(&last));
}

#[tokio::test]
async fn a_deleted_index_is_built_anew() {
    let journal = journal_with_turns().await;
    std::fs::remove_file(journal.sibling(".idx")).unwrap();
    assert_answers_as_fresh(&journal).await;
    assert!(journal.sibling(".idx").exists());
    // While it is open.
    let substrate = journal.open();
    let before = read_everything(&substrate).await;
    std::fs::remove_file(journal.sibling(".idx")).unwrap();
    append(&substrate, new_turn("ann", "without")).await;
    assert_eq!(read_everything(&substrate).await.len(), before.len() + 1);
    assert_answers_as_fresh(&journal).await;
}

#[tokio::test]
async fn a_stale_index_is_brought_up_to_date() {
    let journal = journal_with_turns().await;
    let index = std::fs::read(journal.sibling(".idx")).unwrap();
    let substrate = journal.open();
    for at in 0..9 {
        append(&substrate, new_turn("ann", &format!("more {at}"))).await;
    }
    for kept in [0, 7, 16, 17, 40, 56, 57, 500, index.len() - 1, index.len()] {
        std::fs::write(journal.sibling(".idx"), &index[..kept]).unwrap();
        assert_answers_as_fresh(&journal).await;
    }
}

#[tokio::test]
async fn an_index_of_another_journal_is_not_believed() {
    let (journal, other) = (journal_with_turns().await, journal_with_turns().await);
    let more = journal.open();
    for at in 0..9 {
        append(&more, new_turn("ann", &format!("more {at}"))).await;
    }
    std::fs::copy(journal.sibling(".idx"), other.sibling(".idx")).unwrap();
    assert_answers_as_fresh(&other).await;
    // The journal was put back to what it was.
    let bytes = journal.bytes();
    let header = bytes.len() - public_format::write("ann", "2026-05-18T18:23:11.504Z", "more 8").len();
    journal.write(&bytes[..header]);
    assert_answers_as_fresh(&journal).await;
}

#[tokio::test]
async fn any_byte_of_the_index_may_be_wrong() {
    let journal = journal_with_turns().await;
    let index = std::fs::read(journal.sibling(".idx")).unwrap();
    let text = journal.bytes();
    for at in (0..index.len()).step_by(13).chain(index.len() - 40..index.len()) {
        journal.write(&text);
        let mut wrong = index.clone();
        wrong[at] ^= 0x55;
        std::fs::write(journal.sibling(".idx"), wrong).unwrap();
        assert_answers_as_fresh(&journal).await;
    }
}

#[tokio::test]
async fn an_index_may_become_wrong_while_it_is_open() {
    let journal = journal_with_turns().await;
    let substrate = journal.open();
    let turns = read_everything(&substrate).await;
    for nonsense in [&[][..], b"nonsense", &[0; 4_000]] {
        std::fs::write(journal.sibling(".idx"), nonsense).unwrap();
        for at in [3, 40] {
            let page = substrate.read(Some(&turns[at].id), 1_000).await.unwrap();
            assert!(page.known);
            assert_eq!(page.turns, turns[at + 1..]);
            assert_eq!(substrate.window(&turns[at].id, 3).await.unwrap(), turns[at - 2..=at]);
        }
        std::fs::write(journal.sibling(".idx"), nonsense).unwrap();
        assert!(!substrate.append(answer("bea", "again", &turns[0].id)).await.unwrap().fresh);
    }
}
