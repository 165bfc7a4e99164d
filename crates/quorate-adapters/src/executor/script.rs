//! The `script` executor: answers that somebody wrote beforehand, for tests and demonstrations. This file owns its
//! block and its clock; `script/answer.rs` what an answer can be, `script/source.rs` where it is looked for.

mod answer;
mod source;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::ports::executor::{About, Executor, Failure, Invocation, Refused, Reply, Settings};
use quorate_protocol::answers::Schema;
use tokio::time::{Instant, sleep_until};

use crate::block::Block;
use answer::{Answer, Saying};
use source::Source;

/// The kind that `quorate.toml` names.
pub const KIND: &str = "script";

const KEYS: &[&str] = &["path", "delay"];

/// Builds the executor from its table.
///
/// # Errors
/// When the block has an unknown key, a value of the wrong type, or a `path` where no answers can be read.
pub fn new(settings: &Settings) -> Result<Arc<dyn Executor>, Refused> {
    let block = Block::of(&settings.block, KEYS)?;
    let path = block.text("path")?.ok_or_else(|| {
        Refused::key("path", "`path` is missing").with_help("the file or the folder that holds the answers")
    })?;
    let delay = block.text("delay")?.map(duration).transpose()?.unwrap_or_default();
    Ok(Arc::new(Script { source: Source::open(&settings.dir.join(path))?, delay }))
}

struct Script {
    source: Source,
    delay: Duration,
}

#[async_trait]
impl Executor for Script {
    fn about(&self) -> About {
        About { kind: KIND, asks_a_model: false, model: None }
    }

    /// Whoever writes answers may write what goes with them.
    fn turns(&self) -> Schema {
        Schema::Turn
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let deadline = invocation.deadline;
        let Answer { delay, saying } = self.source.answer(&invocation)?;
        wait(self.delay + delay, deadline).await?;
        match saying.reply(invocation.form) {
            Ok(text) => Ok(Reply { text, ..Reply::default() }),
            Err(Saying::Failure(message)) => Err(Failure::failed(message)),
            Err(_) => {
                sleep_until(deadline).await;
                Err(Failure::TimedOut)
            }
        }
    }
}

async fn wait(delay: Duration, deadline: Instant) -> Result<(), Failure> {
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

fn duration(written: &str) -> Result<Duration, Refused> {
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
            Refused::key("delay", format!("`{written}` is not a delay"))
                .with_help("a whole number and a unit: `100ms`, `2s`, `1m`")
        })
}

#[cfg(test)]
#[path = "script/tests.rs"]
mod tests;
