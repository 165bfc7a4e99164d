//! The `script` executor: prepared answers for tests and demonstrations. This file owns its block and its clock;
//! `script/answer.rs` the forms of an answer, `script/source.rs` its lookup.

mod answer;
mod source;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::ports::executor::{
    About, ConfigError, Executor, Failure, Invocation, Reply, Settings, SideEffect,
};
use quorate_protocol::answers::Schema;
use tokio::time::{Instant, sleep_until};

use crate::block::Block;
use crate::regular_file;
use answer::{Answer, Response};
use source::Source;

/// The kind that `quorate.toml` names.
pub const KIND: &str = "script";

const KEYS: &[&str] = &["path", "delay"];

/// Builds the executor from its table.
///
/// # Errors
/// When the block has an unknown key, a value of the wrong type, or a `path` where no answers can be read.
pub fn new(settings: &Settings) -> Result<Arc<dyn Executor>, ConfigError> {
    let block = Block::parse(&settings.block, KEYS)?;
    let path = block.text("path")?.ok_or_else(|| {
        ConfigError::for_key("path", "`path` is missing")
            .with_help("the file or the folder that holds the answers")
    })?;
    let delay = block.text("delay")?.map(duration).transpose()?.unwrap_or_default();
    let path = settings.dir.join(path);
    let outside_path = regular_file::path_outside(&settings.dir, &path);
    Ok(Arc::new(Script { source: Source::open(&path)?, outside_path, delay }))
}

struct Script {
    source: Source,
    /// The path of the answers, if it is outside of the settings' directory.
    outside_path: Option<PathBuf>,
    delay: Duration,
}

#[async_trait]
impl Executor for Script {
    fn about(&self) -> About {
        About { kind: KIND, asks_a_model: false, model: None }
    }

    /// Answers from outside end up in the ledger and in the conversation, which their owner may not intend.
    fn side_effects(&self) -> Vec<SideEffect> {
        let side_effect = |path: &PathBuf| SideEffect::new(format!("take answers from {}", path.display()));
        self.outside_path.iter().map(side_effect).collect()
    }

    /// Scripted answers may contain `meta` and `stateUpdate`.
    fn turn_schema(&self) -> Schema {
        Schema::Turn
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let deadline = invocation.deadline;
        let Answer { delay, response } = self.source.answer(&invocation)?;
        wait_or_time_out(self.delay + delay, deadline).await?;
        match response.reply(invocation.answer_schema) {
            Ok(text) => Ok(Reply { text, ..Reply::default() }),
            Err(Response::Failure(message)) => Err(Failure::failed(message)),
            Err(_) => {
                sleep_until(deadline).await;
                Err(Failure::TimedOut)
            }
        }
    }
}

async fn wait_or_time_out(delay: Duration, deadline: Instant) -> Result<(), Failure> {
    if delay.is_zero() {
        return Ok(());
    }
    match Instant::now().checked_add(delay).filter(|until| *until < deadline) {
        Some(until) => {
            sleep_until(until).await;
            Ok(())
        }
        None => {
            sleep_until(deadline).await;
            Err(Failure::TimedOut)
        }
    }
}

fn duration(written: &str) -> Result<Duration, ConfigError> {
    let digits = written.bytes().take_while(u8::is_ascii_digit).count();
    let (count, unit) = written.split_at(digits);
    let milliseconds = match unit {
        "ms" => Some(1),
        "s" => Some(1_000),
        "m" => Some(60_000),
        _ => None,
    };
    count
        .parse::<u64>()
        .ok()
        .zip(milliseconds)
        .and_then(|(count, unit)| count.checked_mul(unit))
        .map(Duration::from_millis)
        .ok_or_else(|| {
            ConfigError::for_key("delay", format!("`{written}` is not a delay"))
                .with_help("a whole number and a unit: `100ms`, `2s`, `1m`")
        })
}

#[cfg(test)]
#[path = "script/tests.rs"]
mod tests;
