//! Which blocks are taken and which are refused, by key and with help.

use std::time::Duration;

use quorate_kernel::ports::executor::{Refused, Settings};
use serde_json::{Value, json};

use super::Recipe;

fn read(block: Value) -> Result<Recipe, Refused> {
    Recipe::read(&Settings {
        name: "x".into(),
        timeout: Duration::from_secs(1),
        retries: 0,
        dir: "/".into(),
        block: block.as_object().cloned().unwrap_or_default(),
        servers: Default::default(),
    })
}

#[track_caller]
fn refused(block: Value, key: Option<&str>, says: &str) {
    let refused = read(block).unwrap_err();
    assert_eq!(refused.key.as_deref(), key, "{refused:?}");
    assert!(refused.message.contains(says), "{refused:?}");
}

#[test]
fn a_block_says_what_to_start() {
    refused(json!({}), None, "neither `command` nor `preset`");
    refused(json!({"command": ["x"]}), Some("command"), "must be a text, not a list");
    refused(json!({"preset": "claud"}), Some("preset"), "no preset `claud`");
    assert_eq!(read(json!({"preset": "claude"})).unwrap().name(), "claude");
    assert_eq!(read(json!({"preset": "claude", "command": "bin/mine"})).unwrap().name(), "mine");
}

#[test]
fn what_nothing_reads_is_refused() {
    refused(json!({"command": "x", "timout": 3}), Some("timout"), "unknown key");
    refused(json!({"command": "x", "output": "xml"}), Some("output"), "no output `xml`");
    refused(json!({"preset": "claude", "output": "text"}), Some("output"), "prints `claude-json`");
    refused(json!({"command": "x", "env": ["A=b"]}), Some("env"), "not the name");
    refused(json!({"command": "x", "cwd": "no/such"}), Some("cwd"), "not a directory");
    refused(json!({"command": "x", "env_clear": "yes"}), Some("env_clear"), "true or false");
}

#[test]
fn flags_are_not_given_twice() {
    let recipe = read(json!({"preset": "claude", "args": ["--print", "--verbose", "-p"]})).unwrap();
    assert_eq!(recipe.args, ["--verbose"]);
    refused(json!({"preset": "claude", "args": ["--output-format=text"]}), Some("args"), "set by the preset");
    refused(json!({"preset": "gemini", "args": ["-m", "x"]}), Some("args"), "set by the preset");
    refused(json!({"command": "x", "model": "m", "args": ["--model", "n"]}), Some("args"), "named twice");
}

#[test]
fn ollama_needs_a_model() {
    refused(json!({"preset": "ollama"}), Some("model"), "needs a `model`");
    assert!(read(json!({"preset": "ollama", "model": "m"})).is_ok());
}
