//! The `command` lifecycle runs a manifest's `hooks`: one command for each event.
//!
//! ```yaml
//! hooks:
//!   onTurnEnd: {command: ./notify.sh, args: [--quiet], env: [SLACK_TOKEN], timeout_ms: 3000}
//!   onIdle: {command: notify-send}
//! ```
//!
//! The command gets the event as one line of JSON on stdin: `{hook, runtime}`, with `turn` at the end of a turn, and
//! with `target` and `by` where a participant was chosen. A turn is `{id, participant, at, content, meta}`. The
//! command's output is ignored; an exit code other than 0 is a failure, which is recorded and has no other effect. A
//! `command` with a `/` is relative to the manifest, any other is looked up in `PATH`; it runs in the manifest's
//! directory, sees the variables that every member sees and those of `env`, and is ended with its descendants at its
//! timeout.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::executor::{ConfigError, SideEffect};
use quorate_kernel::ports::telemetry::{DEADLINE, HookError, Lifecycle};
use quorate_protocol::Json;
use serde_json::{Map, json};

use crate::block::Block;
use crate::executor::agent_cli::command::Program;

const KIND: &str = "command";

const TURN_END: &str = "onTurnEnd";
const MENTION: &str = "onMention";
const IDLE: &str = "onIdle";
/// The default timeout of a hook.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The lifecycle of a manifest's `hooks`; `None` without hooks. Relative paths are relative to `dir`.
///
/// # Errors
/// When there is an unknown hook or key, a value of the wrong type, or no command. The error's key is relative to
/// `hooks`, for example `onIdle.command`.
pub fn new(
    hooks: &Map<String, Json>,
    dir: &Path,
    runtime: &str,
) -> Result<Option<Arc<dyn Lifecycle>>, ConfigError> {
    let block = Block::parse(hooks, &[TURN_END, MENTION, IDLE])?;
    let hook = |name: &'static str| {
        let read = block.table(name)?.map(|keys| Hook::read(keys, dir));
        read.transpose().map_err(|error| ConfigError {
            key: Some(error.key.map_or(name.to_owned(), |key| format!("{name}.{key}"))),
            ..error
        })
    };
    let commands = CommandHooks {
        runtime: runtime.to_owned(),
        turn_end: hook(TURN_END)?,
        mention: hook(MENTION)?,
        idle: hook(IDLE)?,
    };
    let any = [&commands.turn_end, &commands.mention, &commands.idle].iter().any(|hook| hook.is_some());
    Ok(any.then(|| Arc::new(commands) as Arc<dyn Lifecycle>))
}

struct CommandHooks {
    runtime: String,
    turn_end: Option<Hook>,
    mention: Option<Hook>,
    idle: Option<Hook>,
}

struct Hook {
    command: Program,
    timeout: Duration,
}

impl Hook {
    fn read(keys: &Map<String, Json>, dir: &Path) -> Result<Self, ConfigError> {
        let block = Block::parse(keys, &["command", "args", "env", "timeout_ms"])?;
        let command = block.text("command")?.ok_or_else(|| {
            ConfigError::for_key("command", "`command` is missing")
                .with_help("the program that receives the event")
        })?;
        let timeout = match block.count("timeout_ms")? {
            None => TIMEOUT,
            Some(ms) => Duration::from_millis(ms as u64),
        };
        if timeout > DEADLINE {
            let message = format!("a hook has at most {} ms", DEADLINE.as_millis());
            return Err(ConfigError::for_key("timeout_ms", message)
                .with_help("what takes longer, hand over to a service that runs on its own"));
        }
        Ok(Hook {
            command: Program::new(command, block.texts("args")?, block.texts("env")?, None, dir)?,
            timeout,
        })
    }
}

impl CommandHooks {
    async fn notify(&self, hook: Option<&Hook>, name: &str, with: Json) -> Result<(), HookError> {
        let Some(hook) = hook else { return Ok(()) };
        let mut event = json!({"hook": name, "runtime": self.runtime});
        if let (Some(event), Json::Object(with)) = (event.as_object_mut(), with) {
            event.extend(with);
        }
        hook.command.run(&format!("{event}\n"), hook.timeout).await.map(drop)
    }
}

fn turn_json(turn: &Turn) -> Json {
    json!({
        "id": turn.id, "participant": turn.participant, "at": turn.timestamp, "content": turn.content,
        "meta": turn.meta,
    })
}

#[async_trait]
impl Lifecycle for CommandHooks {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn side_effects(&self) -> Vec<SideEffect> {
        let hooks = [(&self.turn_end, TURN_END), (&self.mention, MENTION), (&self.idle, IDLE)];
        let describe = |(hook, name): (&Option<Hook>, &str)| {
            let side_effect = hook.as_ref()?.command.side_effect();
            Some(SideEffect { what: format!("{} (hook {name})", side_effect.what), ..side_effect })
        };
        hooks.into_iter().filter_map(describe).collect()
    }

    async fn on_turn_end(&self, turn: &Turn) -> Result<(), HookError> {
        self.notify(self.turn_end.as_ref(), TURN_END, json!({"turn": turn_json(turn)})).await
    }

    async fn on_mention(&self, target: &str, by: &Turn) -> Result<(), HookError> {
        let event = json!({"target": target, "by": turn_json(by)});
        self.notify(self.mention.as_ref(), MENTION, event).await
    }

    async fn on_idle(&self) -> Result<(), HookError> {
        self.notify(self.idle.as_ref(), IDLE, json!({})).await
    }
}
