//! An executor that repeats the last turn in capitals.

use async_trait::async_trait;
use quorate::ports::executor::{About, Executor, Failure, Invocation, Reply};

pub(crate) struct Parrot;

#[async_trait]
impl Executor for Parrot {
    fn about(&self) -> About {
        About { kind: "parrot", asks_a_model: false, model: None }
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let speaking = invocation.conversation.ok_or_else(|| Failure::failed("parrots only talk"))?;
        let heard = speaking.trigger().map_or("", |turn| &turn.content);
        Ok(Reply { text: format!("{}!", heard.trim_end_matches('?').to_uppercase()), ..Reply::default() })
    }
}
