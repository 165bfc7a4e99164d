//! Which blocks are accepted and which are refused, by key and with help.

#![expect(clippy::disallowed_methods, reason = "the manifests that blocks name are written here")]

use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::ports::executor::{ConfigError, Invocation, Settings};
use quorate_kernel::probe;
use quorate_protocol::answers::Schema;
use serde_json::{Value, json};

use super::{Config, Confinement, Launch};
use crate::executor::agent_cli::tool_grants::fixture;

fn read(block: Value) -> Result<Config, ConfigError> {
    read_in(std::path::Path::new("/"), block)
}

fn read_in(dir: &std::path::Path, block: Value) -> Result<Config, ConfigError> {
    Config::parse(&Settings {
        name: "x".into(),
        timeout: Duration::from_secs(1),
        retries: 0,
        dir: dir.to_owned(),
        block: block.as_object().cloned().unwrap_or_default(),
        servers: Default::default(),
        prices: None,
    })
}

#[track_caller]
fn refused(block: Value, key: Option<&str>, says: &str) {
    let error = read(block).unwrap_err();
    assert_eq!(error.key.as_deref(), key, "{error:?}");
    assert!(error.message.contains(says), "{error:?}");
}

#[test]
fn a_block_says_what_to_start() {
    refused(json!({}), None, "neither `command` nor `preset`");
    refused(json!({"command": ["x"]}), Some("command"), "must be a text, not a list");
    refused(json!({"preset": "claud"}), Some("preset"), "no preset `claud`");
    refused(json!({"command": "a\0b"}), Some("command"), "NUL");
    refused(json!({"command": "x", "args": ["y", "\0"]}), Some("args"), "NUL");
    assert_eq!(read(json!({"preset": "claude"})).unwrap().command_name(), "claude");
    assert_eq!(read(json!({"preset": "claude", "command": "bin/mine"})).unwrap().command_name(), "mine");
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

fn words(recipe: &Config, invocation: &Invocation) -> Vec<String> {
    let launch = recipe.prepare(invocation, None).unwrap().launch;
    launch.arguments.iter().map(|word| word.to_str().unwrap().to_owned()).collect()
}

#[test]
fn an_answer_is_text_or_an_object() {
    assert_eq!(read(json!({"command": "x"})).unwrap().turn_schema, Schema::PlainText);
    assert_eq!(read(json!({"command": "x", "answer": "text"})).unwrap().turn_schema, Schema::PlainText);
    assert_eq!(read(json!({"command": "x", "answer": "json"})).unwrap().turn_schema, Schema::Turn);
    refused(json!({"command": "x", "answer": "xml"}), Some("answer"), "no answer `xml`");
}

#[test]
fn a_cli_is_named_or_described() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    manifest(
        "talk.md",
        "---\nbin: sh\nbin_args: [-s]\nprotocol: proprietary\nmodels: {default: d}\noptions:\n  - {id: model, type: string, bin_args_template: [-m, \"{value}\"]}\n---\n",
    );
    manifest("server.md", "---\nbin: sh\nbin_args: [acp]\nprotocol: acp\n---\n");
    let invocation = probe::question(Duration::from_secs(1));
    let read = |block| read_in(dir.path(), block);
    assert_eq!(words(&read(json!({"cli": "talk.md"})).unwrap(), &invocation), ["-s", "-m", "d"]);
    let manifest_and_args = json!({"cli": "./talk.md", "args": ["-x"], "model": "n"});
    assert_eq!(words(&read(manifest_and_args).unwrap(), &invocation), ["-x", "-m", "n"]);
    assert_eq!(words(&read(json!({"cli": "server.md", "args": []})).unwrap(), &invocation), [""; 0]);
    let error = read(json!({"cli": "server.md"})).unwrap_err();
    assert_eq!(error.key.as_deref(), Some("args"));
    assert!(error.help.unwrap().contains("one prompt on stdin"));
    assert_eq!(read(json!({"cli": "claude", "command": "sh"})).unwrap().command_name(), "sh");
    assert_eq!(read(json!({"cli": "claude", "preset": "claude"})).unwrap_err().key.as_deref(), Some("cli"));
    assert_ne!(read(json!({"cli": "talk.md"})).unwrap().fingerprint(), Value::Null);
}

#[test]
fn the_block_does_not_widen_what_the_manifest_allows() {
    let mut invocation = probe::question(Duration::from_secs(1));
    let recipe = read(json!({"preset": "claude", "command": "sh", "args": ["--allowedTools=Bash"]})).unwrap();
    let failure = recipe.prepare(&invocation, None).err().unwrap().to_string();
    assert!(failure.contains("`--allowedTools`") && failure.contains("a judge"), "X15: {failure}");
    invocation.conversation = Some(Arc::new(fixture::conversation(None, &[])));
    assert!(
        words(&recipe, &invocation).contains(&"--allowedTools=Bash".to_owned()),
        "no restriction applies"
    );
    invocation.conversation = Some(Arc::new(fixture::conversation(Some(&["Read"]), &[])));
    let failure = recipe.prepare(&invocation, None).err().unwrap().to_string();
    assert!(failure.contains("`--allowedTools`") && failure.contains("effectors"), "{failure}");
}

#[test]
fn text_is_asked_for_without_a_schema() {
    let recipe = read(json!({"preset": "claude", "command": "sh"})).unwrap();
    let mut invocation = probe::question(Duration::from_secs(1));
    assert!(words(&recipe, &invocation).contains(&"--json-schema".to_owned()));
    invocation.answer_schema = Schema::PlainText;
    assert!(!words(&recipe, &invocation).contains(&"--json-schema".to_owned()));
}

#[test]
fn a_preset_is_confined_and_a_command_of_the_users_own_is_not_unless_its_table_says_so() {
    // X15
    let whose = |block: Value| read(block).unwrap().sandbox;
    assert_eq!(whose(json!({"preset": "claude"})), Some(Confinement::VendorPreset));
    assert_eq!(whose(json!({"preset": "claude", "sandbox": false})), None);
    assert_eq!(whose(json!({"command": "x"})), None);
    assert_eq!(whose(json!({"command": "x", "sandbox": true})), Some(Confinement::UserCommand));
    refused(json!({"command": "x", "sandbox": "yes"}), Some("sandbox"), "must be true or false");
}

#[test]
fn the_room_of_an_executor_is_one_for_all_that_build_it() {
    for wrong in [json!(0), json!(-1), json!(1.5)] {
        refused(json!({"command": "x", "max_processes": wrong}), Some("max_processes"), "whole number");
    }
    let enter = |block: Value| {
        let recipe = read(block).unwrap();
        async move { tokio::time::timeout(Duration::from_millis(50), recipe.concurrency.acquire()).await }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let block = || json!({"command": "x", "max_processes": 2});
        let (first, second) = (enter(block()).await.unwrap(), enter(block()).await.unwrap());
        assert!(first.has_permit() && second.has_permit());
        assert!(enter(block()).await.is_err(), "there is no third place");
        drop(second);
        assert!(enter(block()).await.is_ok());
        assert!(enter(json!({"command": "x"})).await.is_ok(), "another room");
    });
}

#[test]
fn tools_are_those_that_the_preset_has() {
    // X15
    refused(json!({"command": "x", "tools": ["Read"]}), Some("tools"), "only a preset");
    refused(json!({"preset": "ollama", "model": "m", "tools": ["Read"]}), Some("tools"), "has no tools");
    refused(json!({"preset": "codex", "tools": ["Read"]}), Some("tools"), "no tool `Read`");
    refused(json!({"preset": "gemini", "tools": ["read_file"]}), Some("tools"), "no tool `read_file`");
    refused(json!({"preset": "claude", "tools": ["Read,Bash"]}), Some("tools"), "not the name");
    assert_eq!(read(json!({"command": "x"})).unwrap().tools(), None);
    assert_eq!(read(json!({"preset": "claude"})).unwrap().tools(), Some(&[][..]));
}

#[test]
fn a_judge_runs_in_a_private_directory_and_a_participant_in_its_own() {
    // X15
    let recipe = read(json!({"preset": "claude", "command": "sh", "tools": ["Read"], "cwd": "tmp"})).unwrap();
    let mut invocation = probe::question(Duration::from_secs(1));
    let launch = recipe.prepare(&invocation, None).unwrap().launch;
    assert!(launch._private_dir.is_some() && launch.cwd.read_dir().unwrap().count() == 0, "{launch:?}");
    let words: Vec<_> = launch.arguments.iter().filter_map(|word| word.to_str()).collect();
    for word in ["--tools=Read", "--allowedTools=Read", "--add-dir=/tmp", "--safe-mode", "--setting-sources="]
    {
        assert!(words.contains(&word), "{word}: {words:?}");
    }
    let off =
        |launch: &Launch| launch.variables.iter().any(|(name, _)| name == "CLAUDE_CODE_DISABLE_ATTACHMENTS");
    assert!(off(&launch));
    invocation.conversation = Some(Arc::new(fixture::conversation(None, &[])));
    let launch = recipe.prepare(&invocation, None).unwrap().launch;
    assert!(
        launch._private_dir.is_none() && launch.cwd == std::path::Path::new("/tmp") && off(&launch),
        "{launch:?}"
    );
    assert!(launch.arguments.iter().any(|word| word == "--tools=Read"));
    let free = read(json!({"preset": "claude", "command": "sh"})).unwrap();
    assert!(!off(&free.prepare(&invocation, None).unwrap().launch), "its manifest restricts nothing");
}
