//! The index may be deleted, stale, another journal's, or nonsense: everybody sees the same.

use quorate_testkit::conformance::substrate::{answer, new_turn};

use super::{Journal, all, append, public};

async fn begun() -> Journal {
    let journal = Journal::new();
    let substrate = journal.open();
    for at in 0..30 {
        let turn = append(&substrate, new_turn("ann", &format!("turn {at}"))).await;
        append(&substrate, answer("bea", &format!("answer {at}"), &turn.id)).await;
    }
    journal
}

/// Everything that is asked of a handle is answered as if there had never been an index.
async fn holds(journal: &Journal) {
    let turns = journal.afresh().await;
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
    assert_eq!(all(&substrate).await, turns);
    let last = append(&substrate, new_turn("ann", "last")).await;
    assert_eq!(all(&journal.open()).await.last(), Some(&last));
}

#[tokio::test]
async fn a_deleted_index_is_built_anew() {
    let journal = begun().await;
    std::fs::remove_file(journal.beside(".idx")).unwrap();
    holds(&journal).await;
    assert!(journal.beside(".idx").exists());
    // While it is open.
    let substrate = journal.open();
    let before = all(&substrate).await;
    std::fs::remove_file(journal.beside(".idx")).unwrap();
    append(&substrate, new_turn("ann", "without")).await;
    assert_eq!(all(&substrate).await.len(), before.len() + 1);
    holds(&journal).await;
}

#[tokio::test]
async fn a_stale_index_is_brought_up_to_date() {
    let journal = begun().await;
    let index = std::fs::read(journal.beside(".idx")).unwrap();
    let substrate = journal.open();
    for at in 0..9 {
        append(&substrate, new_turn("ann", &format!("more {at}"))).await;
    }
    for kept in [0, 7, 16, 17, 40, 56, 57, 500, index.len() - 1, index.len()] {
        std::fs::write(journal.beside(".idx"), &index[..kept]).unwrap();
        holds(&journal).await;
    }
}

#[tokio::test]
async fn an_index_of_another_journal_is_not_believed() {
    let (journal, other) = (begun().await, begun().await);
    let more = journal.open();
    for at in 0..9 {
        append(&more, new_turn("ann", &format!("more {at}"))).await;
    }
    std::fs::copy(journal.beside(".idx"), other.beside(".idx")).unwrap();
    holds(&other).await;
    // The journal was put back to what it was.
    let bytes = journal.bytes();
    let header = bytes.len() - public::write("ann", "2026-05-18T18:23:11.504Z", "more 8").len();
    journal.write(&bytes[..header]);
    holds(&journal).await;
}

#[tokio::test]
async fn any_byte_of_the_index_may_be_wrong() {
    let journal = begun().await;
    let index = std::fs::read(journal.beside(".idx")).unwrap();
    let text = journal.bytes();
    for at in (0..index.len()).step_by(13).chain(index.len() - 40..index.len()) {
        journal.write(&text);
        let mut wrong = index.clone();
        wrong[at] ^= 0x55;
        std::fs::write(journal.beside(".idx"), wrong).unwrap();
        holds(&journal).await;
    }
}

#[tokio::test]
async fn an_index_may_become_wrong_while_it_is_open() {
    let journal = begun().await;
    let substrate = journal.open();
    let turns = all(&substrate).await;
    for nonsense in [&[][..], b"nonsense", &[0; 4_000]] {
        std::fs::write(journal.beside(".idx"), nonsense).unwrap();
        for at in [3, 40] {
            let page = substrate.read(Some(&turns[at].id), 1_000).await.unwrap();
            assert!(page.known);
            assert_eq!(page.turns, turns[at + 1..]);
            assert_eq!(substrate.window(&turns[at].id, 3).await.unwrap(), turns[at - 2..=at]);
        }
        std::fs::write(journal.beside(".idx"), nonsense).unwrap();
        assert!(!substrate.append(answer("bea", "again", &turns[0].id)).await.unwrap().fresh);
    }
}
