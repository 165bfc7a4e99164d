//! The `runtime.type` values of the public `council.yaml`, whose blocks have other keys, and the executor that each of
//! them maps to.

use std::sync::Arc;

use quorate_kernel::ports::executor::{ConfigError, Executor, Settings};
use quorate_kernel::registry::Registry;
use quorate_protocol::Json;
use serde_json::{Map, json};

use super::{agent_cli, llm, rubric};
use crate::block::Block;

/// The key that names the runtime. The caller has read it.
const TYPE: &str = "type";
/// The caller has turned it into the timeout of the settings.
const TIMEOUT: &str = "timeout_seconds";
/// The keys of each runtime that is a command.
const COMMAND_KEYS: [&str; 6] = [TYPE, TIMEOUT, "binary", "model", "flags", "invocation_pattern"];

/// Adds the public runtime types.
pub fn register(registry: &mut Registry) {
    registry.runtime_type("claude_cli", |settings| through_preset(settings, "claude"));
    registry.runtime_type("ollama", |settings| through_preset(settings, "ollama"));
    registry.runtime_type("mock_cli", mock_cli);
    registry.runtime_type("lmstudio", lmstudio);
    registry.runtime_type("gh_models", gh_models);
}

/// Maps the public mock, which answers canned words, to the rubric, which is offline and deterministic. It accepts the
/// keys of a command and starts none, as the public one does.
fn mock_cli(settings: &Settings) -> Result<Arc<dyn Executor>, ConfigError> {
    check_command(&settings.block)?;
    rubric::new(&Settings { block: Map::new(), ..settings.clone() })
}

/// The keys of the runtime that is a local server.
const SERVER_KEYS: [&str; 4] = [TYPE, TIMEOUT, "model", "base_url"];

fn lmstudio(settings: &Settings) -> Result<Arc<dyn Executor>, ConfigError> {
    Block::parse(&settings.block, &SERVER_KEYS)?;
    let mut block = settings.block.clone();
    [TYPE, TIMEOUT].iter().for_each(|key| drop(block.remove(*key)));
    block.insert("preset".to_owned(), json!("lmstudio"));
    llm::new(&Settings { block, ..settings.clone() })
}

fn gh_models(_: &Settings) -> Result<Arc<dyn Executor>, ConfigError> {
    Err(ConfigError::for_key(TYPE, "the service behind `gh_models` was retired on 30 July 2026")
        .with_help("use `claude_cli` or `lmstudio`, or name an executor: `--executor anthropic`"))
}

/// Refuses the block of a command that has an unknown key, or passes prompts in another way than on stdin.
fn check_command(block: &Map<String, Json>) -> Result<(), ConfigError> {
    match Block::parse(block, &COMMAND_KEYS)?.text("invocation_pattern")? {
        None | Some("stdin") => Ok(()),
        Some(pattern) => Err(ConfigError::for_key(
            "invocation_pattern",
            format!("`{pattern}` is not supported: prompts are passed on stdin alone"),
        )
        .with_help(
            "set it to `stdin`, or leave it out; arguments are visible to every process of the machine",
        )),
    }
}

/// Maps the public keys to those of `agent-cli`. Errors name the public keys again.
fn through_preset(settings: &Settings, preset: &str) -> Result<Arc<dyn Executor>, ConfigError> {
    check_command(&settings.block)?;
    let mut block = Map::from_iter([("preset".to_owned(), json!(preset))]);
    for (public, key) in [("binary", "command"), ("model", "model"), ("flags", "args")] {
        if let Some(value) = settings.block.get(public).filter(|value| !value.is_null()) {
            block.insert(key.to_owned(), split_flags(public, value));
        }
    }
    agent_cli::new(&Settings { block, ..settings.clone() }).map_err(|error| ConfigError {
        key: error.key.map(|key| match key.as_str() {
            "command" => "binary".to_owned(),
            "args" => "flags".to_owned(),
            _ => key,
        }),
        ..error
    })
}

/// Flags may be one string, as on a command line; quoting is not supported.
fn split_flags(key: &str, value: &Json) -> Json {
    match value {
        Json::String(flags) if key == "flags" => flags.split_whitespace().collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use quorate_kernel::ports::executor::{About, ConfigError};
    use quorate_kernel::registry::Registry;
    use serde_json::{Value, json};

    fn build(kind: &str, block: Value) -> Result<About, ConfigError> {
        let mut registry = Registry::new();
        super::register(&mut registry);
        let settings = crate::block::test_settings("/".as_ref(), &block);
        registry.runtime_type_builder(kind).unwrap()(&settings).map(|executor| executor.about())
    }

    #[test]
    fn claude_cli_is_the_preset() {
        let about = build(
            "claude_cli",
            json!({"type": "claude_cli", "binary": "claude", "model": "m", "flags": ["--print", "--verbose"],
                   "invocation_pattern": "stdin", "timeout_seconds": 120}),
        )
        .unwrap();
        assert_eq!((about.kind, about.model.as_deref()), ("agent-cli", Some("m")));
        assert!(build("claude_cli", json!({"flags": "--print --verbose"})).is_ok());
    }

    #[test]
    fn prompts_go_on_stdin_alone() {
        for pattern in ["args", "file"] {
            for kind in ["claude_cli", "ollama", "mock_cli"] {
                let error = build(kind, json!({"invocation_pattern": pattern})).unwrap_err();
                assert_eq!(error.key.as_deref(), Some("invocation_pattern"), "{kind}");
                assert!(error.help.unwrap().contains("stdin"));
            }
        }
    }

    #[test]
    fn refusals_speak_of_the_public_keys() {
        let error = build("claude_cli", json!({"flags": ["--model", "x"]})).unwrap_err();
        assert_eq!(error.key.as_deref(), Some("flags"));
        let error = build("claude_cli", json!({"binry": "x"})).unwrap_err();
        assert_eq!(error.help.as_deref(), Some("did you mean `binary`?"));
        assert_eq!(build("ollama", json!({"type": "ollama"})).unwrap_err().key.as_deref(), Some("model"));
        assert!(build("ollama", json!({"model": "llama3.2"})).is_ok());
        let error = build("mock_cli", json!({"type": "mock_cli", "x": 1, "y": 2})).unwrap_err();
        assert_eq!(error.message, "unknown keys `x`, `y`");
    }

    #[test]
    fn the_mock_takes_the_keys_of_its_own_example() {
        let about = build(
            "mock_cli",
            json!({"type": "mock_cli", "binary": "", "model": "some-model", "flags": [],
                   "invocation_pattern": "stdin", "timeout_seconds": 30}),
        );
        assert!(!about.unwrap().asks_a_model);
    }

    #[test]
    fn a_local_server_is_asked_over_http_and_a_retired_service_is_refused() {
        let about =
            build("lmstudio", json!({"type": "lmstudio", "model": "m", "timeout_seconds": 60})).unwrap();
        assert_eq!((about.kind, about.model.as_deref()), ("llm", Some("m")));
        let error = build("lmstudio", json!({"type": "lmstudio", "modle": "m"})).unwrap_err();
        assert!(error.is_unknown_key, "{error:?}");
        let error = build("gh_models", json!({"type": "gh_models"})).unwrap_err();
        assert!(error.message.contains("retired"), "{error:?}");
    }
}
