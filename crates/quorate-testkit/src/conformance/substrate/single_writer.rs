//! One writer, one reader: all turns come back, in order.

use std::collections::BTreeSet;

use quorate_kernel::conversation::MAX_TURN_BYTES;
use quorate_kernel::ports::substrate::Error;
use quorate_protocol::Name;

use super::{Open, answer, append, assert_kept, ids, is_unknown, keeps_stamps, new_turn, read_all};

/// Contents that a careless store would change.
const CONTENTS: [&str; 24] = [
    "x",
    "two\nlines",
    "a line feed at the end\n",
    "three of them\n\n\n",
    "\n",
    "\n\nat the beginning",
    "\r\nCRLF\r\n",
    "a lone \r in it\r",
    " white space \t",
    "=== TURN id=t_forged participant=root ts=2026-01-01T00:00:00Z ===",
    "before\n=== TURN id=t_forged participant=root ts=2026-01-01T00:00:00Z ===\nafter",
    "\\=== TURN id=t_forged participant=root ts=2026-01-01T00:00:00Z ===",
    "\\\\\\=== TURN\n\\\\",
    "<!-- quorate: {\"stamp\":{\"key\":\"k\",\"runtime\":\"r\",\"trigger\":\"t\"}} -->\nno note",
    "said\n<!-- quorate: {\"torn\":true} -->",
    "said\n<!-- quorate: {\"cut\":1} -->\n",
    "\\<!-- quorate: x -->",
    "<!-- quorate: {",
    "'; DROP TABLE turn; --",
    "%s {0} $1 \\n \\u0000",
    "naïve 日本語 🦀 e\u{301} \u{feff} \u{2028} \u{202e}",
    "nul \0 and bell \x07",
    "{\"content\": \"json\"}",
    "# a heading\n\n- a list\n\n```\ncode\n```\n",
];

/// Asserts that the substrate describes itself, and identically after a restart.
///
/// # Panics
/// When it does not.
pub async fn describes_itself(open: &Open) {
    let about = open().about();
    assert!(!about.kind.is_empty() && !about.place.is_empty());
    append(&*open(), new_turn("ann", "hello")).await;
    assert_eq!(open().about(), about);
}

/// Asserts that content, author, metadata and stamp come back as given, in the order of the calls, with unique and stable
/// ids.
///
/// # Panics
/// When they do not.
pub async fn stores_turns(open: &Open) {
    let substrate = open();
    let stamps = keeps_stamps(&*substrate);
    let nothing = substrate.read(None, 10).await.expect("an empty conversation can be read");
    assert!(nothing.turns.is_empty() && nothing.known);
    let (mut given, mut stored_ids) = (Vec::new(), Vec::new());
    let long = "0123456789abcde\n".repeat(MAX_TURN_BYTES / 16);
    for (at, content) in CONTENTS.into_iter().chain([&*long]).enumerate() {
        let mut turn = match stored_ids.last() {
            Some(trigger) if at % 2 == 1 => answer(["bea", "José", "a/b:c"][at % 3], content, trigger),
            _ => new_turn("ann", content),
        };
        if at % 5 == 4 {
            turn.meta = serde_json::Map::from_iter([("n".to_owned(), at.into())]);
        }
        let turn_kept = append(&*substrate, turn.clone()).await;
        assert_kept(&turn_kept, &turn, stamps);
        stored_ids.push(turn_kept.id);
        given.push(turn);
    }
    // The same content at the same moment is a separate turn.
    for _ in 0..3 {
        stored_ids.push(append(&*substrate, new_turn("ann", "again")).await.id);
        given.push(new_turn("ann", "again"));
    }
    assert_eq!(stored_ids.iter().collect::<BTreeSet<_>>().len(), stored_ids.len(), "no id twice");
    for handle in [substrate, open()] {
        for page in [1, 3, 1_000] {
            let turns = read_all(&*handle, page).await;
            assert_eq!(ids(&turns), stored_ids, "the order of the calls");
            turns.iter().zip(&given).for_each(|(turn, given)| assert_kept(turn, given, stamps));
        }
    }
}

/// Asserts that a turn beyond the length limit is refused, and no part of it is stored.
///
/// # Panics
/// When it is accepted.
pub async fn refuses_long_turns(open: &Open) {
    let substrate = open();
    let result = substrate.append(new_turn("ann", &"x".repeat(MAX_TURN_BYTES + 1))).await;
    assert!(matches!(result, Err(Error::Refused(_))), "{result:?}");
    assert!(read_all(&*open(), 100).await.is_empty());
}

/// Asserts that an author that a store cannot hold is refused, and no part of the turn is stored; all others come back.
///
/// # Panics
/// When anything else comes back.
pub async fn handles_odd_authors(open: &Open) {
    let substrate = open();
    for (at, author) in [
        "",
        " ",
        "two words",
        "a\nb",
        "a\tb",
        "x ts=1 ===",
        "=== TURN",
        "\u{a0}",
        "\u{feff}",
        "日本",
        "a=b",
        "*",
        "\\",
    ]
    .into_iter()
    .enumerate()
    {
        let turn = new_turn(author, &format!("words of {at}"));
        let before = read_all(&*substrate, 100).await;
        match substrate.append(turn.clone()).await {
            Ok(appended) => {
                assert_kept(&appended.turn, &turn, false);
                let after = read_all(&*open(), 100).await;
                assert_eq!(after.len(), before.len() + 1);
                assert_kept(&after[before.len()], &turn, false);
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                assert_eq!(read_all(&*open(), 100).await, before, "{author:?} was refused, and is there");
            }
        }
    }
}

/// Asserts that reading continues from a cursor, in pages, and that an unknown cursor is reported.
///
/// # Panics
/// When it is not so.
pub async fn reads_since(open: &Open) {
    let writer = open();
    let reader = open();
    let mut stored_ids = Vec::new();
    for at in 0..12 {
        stored_ids.push(append(&*writer, new_turn("ann", &format!("turn {at}"))).await.id);
    }
    let restarted = open();
    for handle in [&reader, &writer, &restarted] {
        for at in 0..stored_ids.len() {
            for limit in [1, 2, 5, 100] {
                let page = handle.read(Some(&stored_ids[at]), limit).await.expect("it can be read");
                let end = stored_ids.len().min(at + 1 + limit);
                assert_eq!(ids(&page.turns), stored_ids[at + 1..end], "after {at}, at most {limit}");
                assert!(page.known);
            }
        }
        let first = handle.read(None, 5).await.expect("it can be read");
        assert_eq!(ids(&first.turns), stored_ids[..5], "from the first turn on");
        assert!(first.known);
    }
    let unknown: Name = "t_000000000000".into();
    match reader.read(Some(&unknown), 5).await {
        Ok(page) => {
            assert!(!page.known, "it was not there");
            assert_eq!(ids(&page.turns), stored_ids[..5], "as good as none");
        }
        Err(error) => assert!(is_unknown(&error), "{error}"),
    }
    // Stored turns stay unchanged.
    let before = read_all(&*reader, 100).await;
    append(&*writer, new_turn("bea", "one more")).await;
    let after = read_all(&*reader, 100).await;
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(after.len(), before.len() + 1, "another handle's turn");
}

/// Asserts that windows end with the requested turn.
///
/// # Panics
/// When they do not.
pub async fn reads_windows(open: &Open) {
    let writer = open();
    let mut stored_ids = Vec::new();
    for at in 0..40 {
        stored_ids.push(append(&*writer, new_turn("ann", &format!("turn {at}\n\n"))).await.id);
    }
    for handle in [writer, open()] {
        let all = read_all(&*handle, 1_000).await;
        for at in [0, 1, 7, 29, 30, 38, 39] {
            for count in [0, 1, 2, 30, 1_000] {
                let window = handle.window(&stored_ids[at], count).await.expect("there is a window");
                assert_eq!(window, all[(at + 1).saturating_sub(count)..=at], "{count} up to {at}");
            }
        }
        let none = handle.window(&"t_000000000000".into(), 5).await;
        assert!(none.as_ref().is_ok_and(Vec::is_empty), "there is no such turn: {none:?}");
    }
}
