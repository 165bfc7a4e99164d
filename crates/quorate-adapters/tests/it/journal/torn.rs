//! A journal that was cut off at any byte of its last turn.

use quorate_kernel::conversation::{NewTurn, Turn};
use quorate_testkit::conformance::substrate::{answer, new_turn};

use super::{Journal, append, public_format, read_everything};

/// The text of the answer: several lines, some of them hostile, some characters of several bytes.
const WORDS: &str =
    "Ça va 🦀:\n\n=== TURN id=t_0 participant=x ts=y ===\n\\=== TURN\n<!-- quorate: {} -->\n- naïve\nend\n\n";

/// A conversation of a question and an answer, and where the last turn begins.
async fn conversation(question: &str, reply: impl Fn(&Turn) -> NewTurn) -> (Vec<u8>, usize, Turn, Turn) {
    let journal = Journal::new();
    let substrate = journal.open();
    let first = append(&substrate, new_turn("ann", question)).await;
    let begin = journal.bytes().len();
    let second = append(&substrate, reply(&first)).await;
    (journal.bytes(), begin, first, second)
}

/// An answer that was cut off is never taken for one; nothing before it is touched; the same answer can be appended,
/// and everybody sees the same afterwards.
#[tokio::test]
async fn an_answer_that_was_cut_off_is_not_an_answer() {
    for question in ["@bea how?", "@bea how?\n", "@bea\n\nhow"] {
        let (bytes, begin, first, second) =
            conversation(question, |first| answer("bea", WORDS, &first.id)).await;
        // Every byte once; what is before the turn matters where its header is cut.
        let step = if question == "@bea how?" { 1 } else { 17 };
        for cut in (begin..=bytes.len()).filter(|cut| cut - begin < 40 || (cut - begin) % step == 0) {
            let journal = Journal::with_content(&bytes[..cut]);
            let substrate = journal.open();
            let seen = read_everything(&substrate).await;
            assert_eq!(seen[0], first, "cut at {cut}");
            // The words end with line feeds, of which the note knows.
            let whole = seen.get(1).is_some_and(|turn| turn.stamp.is_some());
            assert_eq!(whole, cut >= bytes.len() - 2, "cut at {cut}: {seen:?}");
            if let Some(torn) = seen.get(1).filter(|_| !whole) {
                assert_eq!(torn.id, second.id);
                let kept = torn.content.trim_end_matches('\u{fffd}');
                // A line that was cut off before it is known why it has one more `\`.
                let plain = kept.rfind("\n\\").map(|at| format!("{}\n{}", &kept[..at], &kept[at + 2..]));
                let plain = plain.as_deref().unwrap_or(kept);
                assert!(WORDS.starts_with(kept) || WORDS.starts_with(plain), "cut at {cut}: {kept:?}");
            }
            // Another handle has to see the same.
            assert_eq!(read_everything(&journal.open()).await, seen, "cut at {cut}");
            let again = substrate.append(answer("bea", WORDS, &first.id)).await.unwrap();
            assert_eq!(again.fresh, !whole, "cut at {cut}");
            assert_eq!(&*again.turn.content, WORDS);
            let after = read_everything(&substrate).await;
            assert_eq!(after[..seen.len()], seen[..], "cut at {cut}: what was shown stays");
            assert_eq!(after.last(), Some(&again.turn), "cut at {cut}");
            assert_eq!(after.iter().filter(|turn| turn.stamp.is_some()).count(), 1, "cut at {cut}");
            append(&journal.open(), new_turn("ann", "thanks")).await;
            assert_eq!(read_everything(&substrate).await, journal.read_fresh().await, "cut at {cut}");
            assert_eq!(read_everything(&journal.open()).await, journal.read_fresh().await, "cut at {cut}");
            assert!(journal.bytes().starts_with(&bytes[..cut]), "nothing is taken away");
            let public = public_format::read(&String::from_utf8_lossy(&journal.bytes()));
            assert!(public.iter().any(|turn| *turn.0 == *again.turn.id), "cut at {cut}: others see it, too");
        }
    }
}

/// A person's turn that was cut off, or whose last line is unfinished, consists of the text that was written.
#[tokio::test]
async fn a_turn_without_a_note_is_what_is_there_of_it() {
    let words = "Ça\n=== TURN x\n\nva 🦀";
    let (bytes, begin, first, second) = conversation("hello", |_| new_turn("bea", words)).await;
    for cut in begin..=bytes.len() {
        let journal = Journal::with_content(&bytes[..cut]);
        let substrate = journal.open();
        let seen = read_everything(&substrate).await;
        assert_eq!(seen[0], first, "cut at {cut}");
        if cut >= bytes.len() - 1 {
            assert_eq!(seen[1], second);
        }
        let next = append(&substrate, new_turn("cleo", "next")).await;
        let after = read_everything(&substrate).await;
        assert_eq!(after[0], first, "cut at {cut}");
        assert_eq!(after.last(), Some(&next));
        assert_eq!(after[..seen.len()], seen[..], "cut at {cut}: what was shown stays");
        assert_eq!(after, journal.read_fresh().await, "cut at {cut}");
    }
}

/// After a loss of power a file may have its length and not its bytes.
#[tokio::test]
async fn a_turn_of_zeros_is_no_answer() {
    let (bytes, begin, first, second) =
        conversation("@bea?", |first| answer("bea", "yes\nof course", &first.id)).await;
    for cut in begin..bytes.len() - 1 {
        let mut zeros = bytes.clone();
        zeros[cut..].fill(0);
        let journal = Journal::with_content(&zeros);
        let substrate = journal.open();
        let seen = read_everything(&substrate).await;
        assert_eq!(seen[0], first, "zeros from {cut}");
        assert!(seen.iter().all(|turn| turn.stamp.is_none()), "zeros from {cut}: {seen:?}");
        let again = substrate.append(answer("bea", "yes\nof course", &first.id)).await.unwrap();
        assert!(again.fresh && again.turn.content == second.content);
        assert_eq!(read_everything(&substrate).await.last(), Some(&again.turn), "zeros from {cut}");
        assert_eq!(read_everything(&substrate).await, journal.read_fresh().await, "zeros from {cut}");
    }
}

/// Two answers that repeat the words of a truncated answer have ids of their own.
#[tokio::test]
async fn the_id_of_a_torn_turn_is_taken() {
    let (bytes, _, first, second) =
        conversation("@bea?", |first| answer("bea", "yes, of course", &first.id)).await;
    let journal = Journal::with_content(&bytes[..bytes.len() - 5]);
    let again = append(&journal.open(), answer("bea", "yes, of course", &first.id)).await;
    assert_ne!(again.id, second.id);
    assert_eq!(&*again.timestamp, "2026-05-18T18:23:11.505Z");
}
