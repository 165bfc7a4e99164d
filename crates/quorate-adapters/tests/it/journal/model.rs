//! Whatever happens to the journal in whatever order: all handles see what a new handle sees that has never
//! seen it before.

use proptest::prelude::*;
use quorate_testkit::conformance::substrate::{answer, new_turn};

use super::{Journal, public_format, read_everything};

#[derive(Debug, Clone)]
enum Step {
    /// A handle appends.
    Append { by: usize, words: usize, stamped: bool },
    /// A program that knows no lock appends.
    AppendUnlocked { words: usize },
    /// Adds text to the end.
    Text(&'static str),
    /// The file loses its end.
    Cut(usize),
    /// A handle is closed and opened again.
    Reopen(usize),
    /// Words are changed by others of the same length, or not.
    Edit { same_length: bool },
    /// The file is replaced by a copy of itself.
    Replace,
    /// A handle reads.
    Read(usize),
}

const WORDS: [&str; 6] =
    ["hello", "two\nlines\n", "=== TURN id=x participant=y ts=z ===", "\n", "hello", "🦀 é"];
const TEXTS: [&str; 10] = [
    "more",
    "more\n",
    "\r\n",
    "=== TURN id=q participant=w ts=e ===\r\n",
    "\n",
    "=== TURN",
    "=== TURN id=a b",
    "<!-- quorate: {",
    "é",
    "=== TURN id=q participant=w ts=e ===",
];

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..3usize, 0..WORDS.len(), any::<bool>()).prop_map(|(by, words, stamped)| Step::Append { by, words, stamped }),
        2 => (0..WORDS.len()).prop_map(|words| Step::AppendUnlocked { words }),
        2 => prop::sample::select(&TEXTS[..]).prop_map(Step::Text),
        2 => (1..120usize).prop_map(Step::Cut),
        1 => (0..3usize).prop_map(Step::Reopen),
        1 => any::<bool>().prop_map(|same_length| Step::Edit { same_length }),
        1 => Just(Step::Replace),
        2 => (0..3usize).prop_map(Step::Read),
    ]
}

async fn run(steps: Vec<Step>) {
    let journal = Journal::new();
    let mut handles = vec![journal.open(), journal.open(), journal.open()];
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Append { by, words, stamped } => {
                let trigger = format!("t_{}", at % 7).into();
                let turn = if *stamped {
                    answer("bea", WORDS[*words], &trigger)
                } else {
                    new_turn("ann", WORDS[*words])
                };
                let before = journal.read_fresh().await;
                let appended = match handles[*by].append(turn.clone()).await {
                    Ok(appended) => appended,
                    // Text alone is not a journal.
                    Err(error) => {
                        let text = error.to_string();
                        assert!(
                            before.is_empty() && text.contains("is not a journal"),
                            "{steps:?} at {at}: {text}"
                        );
                        continue;
                    }
                };
                let key = |turn: &Option<quorate_kernel::conversation::Stamp>| {
                    turn.as_ref().map(|stamp| stamp.key.clone())
                };
                let known = before.iter().find(|old| stamped & (key(&old.stamp) == key(&turn.stamp)));
                assert_eq!(appended.fresh, known.is_none(), "{steps:?} at {at}");
                let after = journal.read_fresh().await;
                match known {
                    Some(known) => assert_eq!(&appended.turn, known),
                    None => {
                        assert_eq!(after.last(), Some(&appended.turn), "{steps:?} at {at}");
                        assert!(before.iter().all(|old| old.id != appended.turn.id), "{steps:?} at {at}");
                    }
                }
                assert_eq!(after[..before.len()], before[..], "{steps:?} at {at}");
            }
            Step::AppendUnlocked { words } => {
                if std::fs::read(journal.path()).is_ok_and(|bytes| bytes.ends_with(b"\n")) {
                    journal.add(public_format::write(
                        "cli",
                        &format!("2026-05-23T10:00:00.{at:03}Z"),
                        WORDS[*words],
                    ));
                }
            }
            Step::Text(text) => journal.add(text),
            Step::Cut(by) => {
                if let Ok(bytes) = std::fs::read(journal.path()) {
                    let len = bytes.len().saturating_sub(*by);
                    // Not within a character that was not cut by a write of ours.
                    let len = (len..bytes.len()).find(|at| bytes[*at] & 0xc0 != 0x80).unwrap_or(bytes.len());
                    journal.write(&bytes[..len]);
                }
            }
            Step::Reopen(which) => handles[*which] = journal.open(),
            Step::Edit { same_length } => {
                if let Ok(text) = std::fs::read_to_string(journal.path()) {
                    journal.write(text.replacen(
                        "hello",
                        if *same_length { "olleh" } else { "hello there" },
                        1,
                    ));
                }
            }
            Step::Replace => {
                if let Ok(bytes) = std::fs::read(journal.path()) {
                    std::fs::write(journal.sibling(".new"), bytes).expect("a file");
                    std::fs::rename(journal.sibling(".new"), journal.path()).expect("a file");
                }
            }
            Step::Read(which) => {
                read_everything(&handles[*which]).await;
            }
        }
    }
    let turns = journal.read_fresh().await;
    for handle in &handles {
        let page = handle.read(None, 1_000).await.expect("a page");
        assert_eq!(page.turns, turns, "{steps:?}");
        let ids: Vec<_> = turns.iter().map(|turn| &turn.id).collect();
        for turn in &turns {
            // Where text was added by hand an id may be there twice; then the last is meant.
            let at = ids.iter().rposition(|id| **id == turn.id).expect("it is there");
            let page = handle.read(Some(&turn.id), 2).await.expect("a page");
            assert!(page.known, "{steps:?}: {turn:?}");
            assert_eq!(page.turns, turns[at + 1..turns.len().min(at + 3)], "{steps:?}: {turn:?}");
            assert_eq!(
                handle.window(&turn.id, 2).await.expect("a window"),
                turns[at.saturating_sub(1)..=at],
                "{steps:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_handles_see_the_journal_as_it_is(steps in prop::collection::vec(step(), 1..25)) {
        // The clock stands still but for those who wait: a journal that has become shorter is waited for.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.unwrap().block_on(run(steps));
    }
}
