//! A dispatcher that gives questions to all participants but the author.

use async_trait::async_trait;
use quorate::ports::dispatcher::{Dispatcher, DispatchError, Input};

pub(crate) struct Questions;

#[async_trait]
impl Dispatcher for Questions {
    fn kind(&self) -> &'static str {
        "questions"
    }

    async fn select(&self, input: Input<'_>) -> Result<Vec<std::sync::Arc<str>>, DispatchError> {
        let Some(trigger) = input.trigger().filter(|turn| turn.content.trim_end().ends_with('?')) else {
            return Ok(Vec::new());
        };
        let others = input.participants.iter().filter(|participant| participant.id != trigger.participant);
        Ok(others.map(|participant| participant.id.clone()).collect())
    }
}
