//! Every store of state that needs no other side, checked against the port's contract.
use std::path::Path;
use std::sync::Arc;

use quorate_adapters::default_registry;
use quorate_kernel::ports::executor::{ConfigError, Servers};
use quorate_kernel::ports::state::State;
use quorate_kernel::registry::BuildContext;
use quorate_testkit::conformance::build_adapter;
use quorate_testkit::conformance::dispatcher::FixedExecutor;
use quorate_testkit::conformance::state;
use serde_json::{Map, Value, json};

fn try_open(kind: &str, dir: &Path, block: Value) -> Result<Arc<dyn State>, ConfigError> {
    let new = default_registry().expect("no kind twice").states[kind].clone();
    build_adapter(&new, dir, &block)
}

fn open(kind: &str, dir: &Path, block: Value) -> Arc<dyn State> {
    try_open(kind, dir, block).expect("a block that fits")
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_does_what_a_store_must() {
    let store = open("memory", Path::new("/"), json!({"kind": "memory"}));
    state::all(&move || store.clone()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_do_what_a_store_must() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    state::all(&move || open("fs", &path, json!({"kind": "fs", "dir": "a/b"}))).await;
    let left: Vec<_> = std::fs::read_dir(dir.path().join("a/b"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".json"))
        .collect();
    assert!(left.is_empty(), "nothing half-written is left: {left:?}");
}

#[tokio::test]
async fn a_file_of_another_writer_that_nests_too_deep_is_an_error_that_names_the_participant() {
    let dir = tempfile::tempdir().unwrap();
    let text = "{\"a\":".repeat(70) + "1" + &"}".repeat(70);
    std::fs::write(dir.path().join("ann.json"), text).unwrap();
    let store = open("fs", dir.path(), json!({"kind": "fs", "dir": "."}));
    let error = store.read("ann").await.unwrap_err();
    assert!(
        error.what.contains("the state of `ann` cannot be stored: it nests deeper than 64 levels"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_does_what_a_store_must() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    state::all(&move || open("sqlite", &path, json!({"kind": "sqlite", "path": "a/states.db"}))).await;
}

/// One database may have the conversation and the states, and those of several runtimes.
#[tokio::test]
async fn a_database_has_states_of_several_runtimes() {
    let dir = tempfile::tempdir().unwrap();
    let build = |runtime: &str| {
        let block = json!({"path": "c.db"});
        let build = BuildContext {
            block: block.as_object().unwrap(),
            dir: dir.path(),
            runtime,
            conversation: "",
            participants: &[],
            servers: &Servers::default(),
            executors: &FixedExecutor(None),
        };
        let registry = default_registry().unwrap();
        let state = registry.states["sqlite"](&build).unwrap();
        (state, registry.substrates["sqlite"](&build).unwrap())
    };
    let ((one, talk), (other, _)) = (build("one"), build("other"));
    let object = json!({"of": "one"}).as_object().cloned().unwrap();
    one.write("reviewer", &object).await.unwrap();
    talk.append(quorate_testkit::conformance::substrate::new_turn("ann", "hello")).await.unwrap();
    assert_eq!(one.read("reviewer").await.unwrap(), object);
    assert_eq!(other.read("reviewer").await.unwrap(), Map::new());
}

#[test]
fn the_default_state_is_files() {
    assert_eq!(default_registry().unwrap().default_state_kind, Some("fs"));
}

#[tokio::test]
async fn a_state_is_a_file_that_people_can_read() {
    let dir = tempfile::tempdir().unwrap();
    let store = open("fs", dir.path(), json!({}));
    let object = json!({"seen": ["a"], "count": 1}).as_object().cloned().unwrap();
    store.write("reviewer", &object).await.unwrap();
    let path = dir.path().join("state/conformance/reviewer.json");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\n  \"count\": 1") && text.ends_with("}\n"), "{text}");
    // Written by hand.
    std::fs::write(&path, " {\"count\": 2}").unwrap();
    assert_eq!(store.read("reviewer").await.unwrap().get("count"), Some(&json!(2)));
}

#[tokio::test]
async fn what_is_no_object_is_an_error_that_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = open("fs", dir.path(), json!({"dir": "."}));
    for text in ["", "{", "[]", "null", "{} {}", "\u{feff}{}"] {
        let path = dir.path().join("reviewer.json");
        std::fs::write(&path, text).unwrap();
        let error = store.read("reviewer").await.unwrap_err();
        assert!(error.what.contains(path.to_str().unwrap()), "{error}");
        assert!(std::error::Error::source(&error).is_some());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "the file is unchanged");
    }
    std::fs::remove_file(dir.path().join("reviewer.json")).unwrap();
    assert_eq!(store.read("reviewer").await.unwrap(), Map::new());
}

#[test]
fn blocks_that_do_not_fit_are_refused_by_key() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "x").unwrap();
    for (kind, block, key, says) in [
        ("fs", json!({"dir": "file"}), "dir", "is a file"),
        ("fs", json!({"dirr": "x"}), "dirr", "did you mean `dir`?"),
        ("fs", json!({"dir": []}), "dir", "must be a text"),
        ("sqlite", json!({}), "path", "`path` is missing"),
        ("sqlite", json!({"path": "."}), "path", "is a folder"),
        ("sqlite", json!({"path": "x", "table": "t"}), "table", "unknown key"),
        ("memory", json!({"dir": "x"}), "dir", "unknown key"),
    ] {
        let refused = try_open(kind, dir.path(), block.clone()).err().unwrap_or_else(|| panic!("{block}"));
        let text = format!("{} {}", refused.message, refused.help.unwrap_or_default());
        assert_eq!(refused.key.as_deref(), Some(key), "{text}");
        assert!(text.contains(says), "{text}");
    }
}
