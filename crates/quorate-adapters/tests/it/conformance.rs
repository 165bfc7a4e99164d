//! Every executor, checked against the port's contract.
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorate_adapters::default_registry;
use quorate_kernel::ports::executor::{Executor, Settings};
use quorate_testkit::conformance::executor::{answers, reports_failure, respects_deadline};
use serde_json::{Value, json};

use crate::llm::server::{Server, Step, chat, ok, status};

fn executor(kind: &str, dir: &Path, block: Value) -> Arc<dyn Executor> {
    let new = default_registry().unwrap().executor_kind(kind).expect("a shipped kind");
    let settings = Settings {
        name: "under-test".into(),
        timeout: Duration::from_secs(20),
        retries: 0,
        dir: dir.to_owned(),
        block: block.as_object().cloned().unwrap_or_default(),
        servers: Default::default(),
        prices: None,
    };
    new(&settings).expect("settings that fit")
}

fn command(dir: &Path, name: &str, script: &str) -> Value {
    let path = dir.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    json!({"command": "/bin/sh", "args": [path.to_str().unwrap()]})
}

#[test]
fn every_shipped_kind_is_held_against_the_contract() {
    let held = ["agent-cli", "cassette", "inline", "llm", "rubric", "script"];
    // The kinds of features are tested elsewhere: in `mcp/conformance.rs`, and, if they need a server, in the tests of the
    // command line.
    let elsewhere = ["db-operator", "remote"];
    let registry = default_registry().unwrap();
    let here: Vec<&str> = registry.executor_kinds().filter(|kind| !elsewhere.contains(kind)).collect();
    assert_eq!(here, held);
    assert_eq!(registry.executor_kinds().count(), held.len() + elsewhere.len());
}

#[tokio::test]
async fn the_rubric_answers() {
    let dir = tempfile::tempdir().unwrap();
    answers(&*executor("rubric", dir.path(), json!({}))).await;
}

#[tokio::test]
async fn a_script_answers_hangs_and_fails() {
    let dir = tempfile::tempdir().unwrap();
    let script = |name: &str, text: Value| {
        std::fs::write(dir.path().join(name), text.to_string()).unwrap();
        executor("script", dir.path(), json!({"path": name}))
    };
    answers(&*script("fits.json", json!({"_": {"would_block": false}}))).await;
    respects_deadline(&*script("hangs.json", json!({"_": {"$timeout": true}}))).await;
    reports_failure(&*script("fails.json", json!({"_": {"$fail": "out of order"}}))).await;
}

#[tokio::test]
async fn a_model_answers_hangs_and_fails() {
    let model = |server: &Server| {
        executor("llm", Path::new("/"), json!({"base_url": server.url, "model": "m", "pool": server.url}))
    };
    let fits = Server::start(|_| chat(r#"{"would_block": false}"#)).await;
    answers(&*model(&fits)).await;
    let hangs = Server::start(|_| vec![ok(), Step::Hold]).await;
    respects_deadline(&*model(&hangs)).await;
    let fails = Server::start(|_| status("500 Oops", "", "")).await;
    reports_failure(&*model(&fails)).await;
}

#[tokio::test]
async fn a_command_answers_hangs_and_fails() {
    let dir = tempfile::tempdir().unwrap();
    let member =
        |name: &str, script: &str| executor("agent-cli", dir.path(), command(dir.path(), name, script));
    answers(&*member("fits.sh", r#"cat >/dev/null; echo '{"would_block": false}'"#)).await;
    respects_deadline(&*member("hangs.sh", "exec sleep 60")).await;
    reports_failure(&*member("fails.sh", "exit 3")).await;
    reports_failure(&*executor("agent-cli", dir.path(), json!({"command": "no-such-command-anywhere"})))
        .await;
}
