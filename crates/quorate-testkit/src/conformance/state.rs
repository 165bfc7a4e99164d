//! Requirements on every state store (see the port's documentation).

use std::sync::Arc;

use quorate_kernel::ports::state::State;
use quorate_protocol::{Json, storable};
use serde_json::{Map, json};
use tokio::task::JoinSet;

/// Opens the store; a second call stands for a restart, or another process.
pub type Open = dyn Fn() -> Arc<dyn State> + Send + Sync;

/// Ids that a store might confuse with each other or with something else.
const IDS: [&str; 36] = [
    "reviewer",
    "Reviewer",
    "REVIEWER",
    "reviewer ",
    "reviewer.",
    "reviewer.json",
    "reviewer%2Ejson",
    "",
    ".",
    "..",
    "../reviewer",
    "a/b",
    "a\\b",
    "a_b",
    "a%2Fb",
    "a%2fb",
    "a:b",
    "a*b",
    "a\0b",
    "con",
    "CON",
    "nul.txt",
    "é",
    "e\u{301}",
    "É",
    "日本",
    "%",
    "%%",
    "-",
    "_",
    "' OR 1=1 --",
    "~",
    "$HOME",
    "\n",
    "🦀",
    "aux",
];

/// Runs all checks, on a store that is empty at first.
///
/// # Panics
/// When the store fails one.
pub async fn all(open: &Open) {
    stores_objects(open).await;
    separates_ids(open).await;
    writes_are_atomic(open).await;
    refuses_deep_nesting(open).await;
}

/// Asserts that a state that cannot be read back everywhere is refused, and the previous one stays.
///
/// # Panics
/// When it is not.
pub async fn refuses_deep_nesting(open: &Open) {
    let store = open();
    store.write("deep", &nested(storable::MAX_DEPTH)).await.expect("as deep as it may be");
    for levels in [storable::MAX_DEPTH + 1, 126, 127, 200] {
        let error = store.write("deep", &nested(levels)).await.expect_err("too deep");
        assert!(error.what.contains("nests deeper than 64 levels"), "{levels}: {error}");
    }
    assert_eq!(open().read("deep").await.expect("it can be read"), nested(storable::MAX_DEPTH));
}

/// An object nested `levels` deep.
pub(super) fn nested(levels: usize) -> Map<String, Json> {
    object((1..levels).fold(json!({}), |inner, _| json!({"a": inner})))
}

fn object(json: Json) -> Map<String, Json> {
    json.as_object().cloned().unwrap_or_default()
}

/// Asserts that a missing state is empty, and that a write replaces the whole object and is lasting.
///
/// # Panics
/// When it is not so.
pub async fn stores_objects(open: &Open) {
    let store = open();
    assert!(!store.kind().is_empty());
    assert_eq!(store.read("nobody").await.expect("it can be read"), Map::new());
    for state in [
        json!({"count": 1, "list": [1, -2, 2.5, 1e300, 18_446_744_073_709_551_615_u64, null, true, "x"]}),
        json!({"other": {"": {"é\n\u{0}\u{2028}": "日本 🦀 \"\\"}}}),
        json!({"large": "x".repeat(300_000)}),
        json!({}),
        json!({"last": 0.1}),
    ] {
        let state = object(state);
        store.write("somebody", &state).await.expect("it can be written");
        for handle in [store.clone(), open()] {
            assert_eq!(
                handle.read("somebody").await.expect("it can be read"),
                state,
                "the whole is replaced"
            );
        }
    }
}

/// Asserts that no two ids share an entry.
///
/// # Panics
/// When two do.
pub async fn separates_ids(open: &Open) {
    let long = "x".repeat(1_000);
    let longer = format!("{long}y");
    let ids: Vec<&str> = IDS.into_iter().chain([&*long, &*longer]).collect();
    for id in &ids {
        assert_eq!(open().read(id).await.expect("it can be read"), Map::new(), "{id:?} has nothing yet");
        let state = object(json!({"id": id}));
        open().write(id, &state).await.unwrap_or_else(|error| panic!("{id:?}: {error}"));
    }
    for id in ids {
        let state = open().read(id).await.expect("it can be read");
        assert_eq!(state, object(json!({"id": id})), "{id:?}");
    }
}

/// Asserts that a concurrent read returns one of the written objects.
///
/// # Panics
/// When it returns anything else.
pub async fn writes_are_atomic(open: &Open) {
    let state = |n: usize| object(json!({"head": n, "body": "x".repeat(n * 1_000), "tail": n}));
    open().write("shared", &state(0)).await.expect("it can be written");
    let mut tasks = JoinSet::new();
    for writer in 0..3 {
        let store = open();
        tasks.spawn(async move {
            for n in 0..12 {
                store.write("shared", &state(writer * 12 + n)).await.expect("it can be written");
            }
        });
    }
    for _ in 0..3 {
        let store = open();
        tasks.spawn(async move {
            for _ in 0..60 {
                let seen = store.read("shared").await.expect("it can be read");
                let n = seen.get("head").and_then(Json::as_u64).expect("a whole object");
                assert_eq!(seen, state(usize::try_from(n).expect("a small number")));
                tokio::task::yield_now().await;
            }
        });
    }
    tasks.join_all().await;
}
