//! Requirements on every substrate (see the port's documentation), by its declared capabilities.
//!
//! Each function takes a way to open one conversation, which is empty at first. A second opening stands for a restart, or
//! another process.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::conversation::{Capability, MAX_TURN_BYTES, NewTurn, Origin, Stamp, Turn, turn_key};
use quorate_kernel::ports::substrate::{Keeps, Substrate, SubstrateError};
use quorate_protocol::{Json, Name, storable};
use serde_json::json;
use tokio::task::JoinSet;

use super::state::nested;

/// Opens one conversation again, as another process would.
pub type Open = dyn Fn() -> Arc<dyn Substrate> + Send + Sync;

/// Runs all checks; `new` returns ways to open empty, independent conversations.
///
/// # Panics
/// When the substrate fails one.
pub async fn all(new: impl Fn() -> Box<Open>) {
    describes_itself(&*new()).await;
    stores_turns(&*new()).await;
    handles_odd_authors(&*new()).await;
    refuses_deep_nesting(&*new()).await;
    refuses_long_turns(&*new()).await;
    reads_since(&*new()).await;
    reads_windows(&*new()).await;
    deduplicates_by_key(&*new()).await;
    supports_many_writers(&*new()).await;
    notifies_of_changes(&*new()).await;
}

/// Asserts that metadata that cannot be read back is refused.
///
/// # Panics
/// When it is accepted, or when it damages the conversation.
pub async fn refuses_deep_nesting(open: &Open) {
    let substrate = open();
    let with = |levels: usize, in_state: bool| {
        let mut turn = answer("ann", "deep", &format!("t_{levels}").as_str().into());
        match &mut turn.stamp {
            Some(stamp) if in_state => stamp.state = Some(nested(levels)),
            _ => turn.meta = nested(levels),
        }
        turn
    };
    for in_state in [false, true] {
        for levels in [storable::MAX_DEPTH + 1, 124, 126, 127, 200] {
            let error = substrate.append(with(levels, in_state)).await.expect_err("too deep");
            assert!(
                matches!(&error, SubstrateError::Refused(reason) if reason.contains("nests deeper than 64 levels")),
                "{error}"
            );
        }
    }
    substrate.append(with(storable::MAX_DEPTH, true)).await.expect("as deep as it may be");
    let turns = read_all(&*open(), 8).await;
    assert_eq!(turns.iter().map(|turn| &*turn.content).collect::<Vec<_>>(), ["deep"]);
}

/// A turn without metadata.
pub fn new_turn(author: &str, content: &str) -> NewTurn {
    NewTurn {
        participant: author.into(),
        content: content.into(),
        timestamp: "2026-05-18T18:23:11.504Z".into(),
        meta: serde_json::Map::new(),
        stamp: None,
    }
}

/// An answer to a turn, with all the metadata that a runtime writes.
pub fn answer(author: &str, content: &str, trigger: &Name) -> NewTurn {
    let object = |json: Json| json.as_object().cloned().unwrap_or_default();
    NewTurn {
        meta: object(
            json!({"a --> b": "<!-- quorate: {} -->\n=== TURN", "n": [1.5, null, true, {"é": "\u{2028}"}]}),
        ),
        stamp: Some(Stamp {
            key: turn_key(trigger, author),
            runtime: "conformance".into(),
            trigger: trigger.clone(),
            chain: 7,
            selected: vec!["a".into(), author.into()],
            state: Some(object(json!({"count": 3, "of": {"x>": []}}))),
            origin: Some(Origin::Process("--> é".into())),
        }),
        ..new_turn(author, content)
    }
}

/// All turns, read in pages of this size.
///
/// # Panics
/// When they cannot be read.
pub async fn read_all(substrate: &dyn Substrate, page: usize) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    loop {
        let since = turns.last().map(|turn| turn.id.clone());
        let read = substrate.read(since.as_ref(), page).await.expect("it can be read");
        assert!(read.turns.len() <= page, "no more than what was asked for");
        assert!(read.known, "its own turns are known");
        if read.turns.is_empty() {
            return turns;
        }
        turns.extend(read.turns);
    }
}

async fn append(substrate: &dyn Substrate, turn: NewTurn) -> Turn {
    let appended = substrate.append(turn).await.expect("it can be appended");
    assert!(appended.fresh, "a turn that was never there is fresh");
    appended.turn
}

fn keeps_stamps(substrate: &dyn Substrate) -> bool {
    substrate.about().keeps == Keeps::Stamps
}

fn has(substrate: &dyn Substrate, capability: Capability) -> bool {
    substrate.about().capabilities.contains(&capability)
}

/// Asserts that a stored turn equals the given one; id and time are the substrate's.
fn assert_kept(stored: &Turn, given: &NewTurn, stamps: bool) {
    assert_eq!(stored.participant, given.participant);
    assert_eq!(stored.content, given.content, "byte for byte");
    assert!(
        !stored.id.is_empty() && !stored.id.contains(char::is_whitespace),
        "an id without white space: {:?}",
        stored.id
    );
    assert!(!stored.timestamp.is_empty());
    if stamps {
        assert_eq!(stored.meta, given.meta);
        assert_eq!(stored.stamp, given.stamp);
    }
}

fn ids(turns: &[Turn]) -> Vec<Name> {
    turns.iter().map(|turn| turn.id.clone()).collect()
}

fn is_unknown(error: &SubstrateError) -> bool {
    matches!(error, SubstrateError::Unknown(_))
}

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
    assert!(matches!(result, Err(SubstrateError::Refused(_))), "{result:?}");
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

const WRITERS: usize = 6;
const TURNS_PER_WRITER: usize = 25;

/// Asserts that a second turn with a key is not stored, and the first one comes back. Only for substrates that keep stamps.
///
/// # Panics
/// When it is stored, or anything else comes back.
pub async fn deduplicates_by_key(open: &Open) {
    let substrate = open();
    if !keeps_stamps(&*substrate) {
        return;
    }
    let trigger = append(&*substrate, new_turn("ann", "@bea?")).await.id;
    let other_trigger = append(&*substrate, new_turn("ann", "@bea!")).await.id;
    let first = append(&*substrate, answer("bea", "yes", &trigger)).await;
    append(&*substrate, new_turn("ann", "something in between")).await;
    for handle in [substrate.clone(), open()] {
        let repeated = handle.append(answer("bea", "no", &trigger)).await.expect("it can be appended");
        assert!(!repeated.fresh, "the key was there");
        assert_eq!(repeated.turn, first, "the first one comes back");
    }
    append(&*open(), answer("cleo", "yes", &trigger)).await;
    append(&*open(), answer("bea", "yes", &other_trigger)).await;
    // A process that reads only later turns must know it as well.
    for at in 0..40 {
        append(&*open(), new_turn("ann", &format!("turn {at}"))).await;
    }
    assert!(!open().append(answer("bea", "late", &trigger)).await.expect("it can be appended").fresh);
    assert_eq!(read_all(&*open(), 100).await.len(), 46);

    // Concurrently.
    let mut race = JoinSet::new();
    for at in 0..WRITERS {
        let (handle, trigger) = (if at % 2 == 0 { open() } else { substrate.clone() }, first.id.clone());
        race.spawn(async move { handle.append(answer("dora", &format!("{at}"), &trigger)).await });
    }
    let ended = race.join_all().await;
    let ended: Vec<_> = ended.into_iter().map(|append| append.expect("it can be appended")).collect();
    assert_eq!(ended.iter().filter(|appended| appended.fresh).count(), 1, "one of them is first");
    assert!(ended.iter().all(|appended| appended.turn == ended[0].turn), "and all get that one");
    assert_eq!(read_all(&*open(), 100).await.len(), 47);
}

/// Asserts that concurrent appends of several tasks are all stored, each task's turns in the order of its calls, and in one
/// order for all readers if that is declared; with separate handles if several writers are declared.
///
/// # Panics
/// When a turn is lost, or orders differ.
pub async fn supports_many_writers(open: &Open) {
    let shared = open();
    let several = has(&*shared, Capability::MultiWriter);
    let mut writing = JoinSet::new();
    for at in 0..WRITERS {
        let handle: Arc<dyn Substrate> = if several { open() } else { shared.clone() };
        writing.spawn(async move {
            let mut own_ids = Vec::new();
            for n in 0..TURNS_PER_WRITER {
                let content = format!("{at}/{n}\n{}", "x".repeat(n * 200));
                own_ids.push(append(&*handle, new_turn(&format!("w{at}"), &content)).await.id);
                if n % 5 == 0 {
                    let seen = ids(&read_all(&*handle, 1_000).await);
                    assert!(own_ids.iter().all(|id| seen.contains(id)), "a writer sees its own turns");
                }
            }
            own_ids
        });
    }
    let ids_by_writer = writing.join_all().await;
    let all = ids(&read_all(&*open(), 1_000).await);
    assert_eq!(all.len(), WRITERS * TURNS_PER_WRITER, "nothing is lost and nothing is there twice");
    for ids_by_writer in ids_by_writer {
        let seen: Vec<_> = all.iter().filter(|id| ids_by_writer.contains(id)).cloned().collect();
        assert_eq!(seen, ids_by_writer, "each writer's turns are in the order of its calls");
    }
    if has(&*shared, Capability::Ordered) {
        assert_eq!(ids(&read_all(&*shared, 13).await), all, "everybody reads one order");
    }
}

/// The longest time for a notification, on a machine that is busy with other tests.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(30);
/// How many turns a reader follows.
const NOTIFIED_TURNS: usize = 60;

/// Asserts that another handle's append wakes a waiter at any time; a reader that only waits and reads misses no turn.
///
/// # Panics
/// When it is not woken.
pub async fn notifies_of_changes(open: &Open) {
    let (writer, reader) = (open(), open());
    append(&*writer, new_turn("ann", "first")).await;
    let first = read_all(&*reader, 100).await;
    let last = first.last().map(|turn| turn.id.clone());

    // Between reading and waiting.
    append(&*writer, new_turn("ann", "second")).await;
    changed(&*reader, "a turn that came before the wait").await;

    // While it waits.
    let last = read_to_end(&*reader, last).await;
    let (_, ()) = tokio::join!(
        async { append(&*writer, new_turn("ann", "third")).await },
        changed(&*reader, "a turn that comes during the wait"),
    );

    // The rest after a short page.
    append(&*writer, new_turn("ann", "fourth")).await;
    let page = reader.read(last.as_ref(), 1).await.expect("it can be read");
    assert_eq!(page.turns.len(), 1);
    changed(&*reader, "what a short page has left over").await;
    read_to_end(&*reader, last).await;

    // A reader that follows.
    let writing = async {
        for at in 0..NOTIFIED_TURNS {
            append(&*writer, new_turn("ann", &format!("turn {at}"))).await;
        }
    };
    let following = async {
        let mut seen = read_all(&*reader, 100).await;
        while seen.len() < 4 + NOTIFIED_TURNS {
            changed(&*reader, "a turn that it follows").await;
            let since = seen.last().map(|turn| turn.id.clone());
            seen.extend(reader.read(since.as_ref(), 7).await.expect("it can be read").turns);
        }
        seen
    };
    let ((), seen) = tokio::join!(writing, following);
    assert_eq!(ids(&seen), ids(&read_all(&*open(), 1_000).await));
}

async fn changed(substrate: &dyn Substrate, what: &str) {
    let done = tokio::time::timeout(CHANGE_TIMEOUT, substrate.changed()).await;
    done.unwrap_or_else(|_| panic!("silent about {what}")).expect("it can wait");
}

async fn read_to_end(substrate: &dyn Substrate, mut since: Option<Name>) -> Option<Name> {
    loop {
        let page = substrate.read(since.as_ref(), 100).await.expect("it can be read");
        match page.turns.last() {
            Some(turn) => since = Some(turn.id.clone()),
            None => return since,
        }
    }
}
