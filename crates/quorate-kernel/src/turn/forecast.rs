//! Who would answer a turn, as far as that is known without asking an executor. Views show it; nothing is recorded.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use quorate_protocol::{AbsenceReason, Json, Name};

use super::Policy;
use super::chain::Chains;
use super::dispatch::permitted;
use crate::conversation::{Capabilities, Participant, Turn};
use crate::member_config::MemberConfig;
use crate::ports::dispatcher::{Ask, Dispatcher, Input, Question, Unanswered};
use crate::ports::ledger::Record;

/// Who would answer a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forecast {
    /// These participants, in this order; none where the dispatcher selects no participant.
    Speakers(Vec<Name>),
    /// No participant, since so many participants' turns lead to it from a person's.
    GuardHit { turns: usize },
    /// The dispatcher asks an executor first.
    NeedsExecutor,
    /// The dispatcher fails, with the reason.
    Undecided(String),
}

/// Who would answer the last turn of a window.
/// `records` are the last ones of the conversation, for substrates that keep no stamps.
#[crate::boxed]
pub async fn forecast(
    dispatcher: &dyn Dispatcher,
    roster: &[Participant],
    capabilities: &Capabilities,
    policy: Policy,
    window: &[Turn],
    records: &[Record],
) -> Forecast {
    let Some((trigger, before)) = window.split_last() else { return Forecast::Speakers(Vec::new()) };
    let mut chains = Chains::of_records(roster, records);
    before.iter().for_each(|turn| chains.settle(roster, turn));
    let chain = chains.length(roster, trigger);
    let from = window.len().saturating_sub(policy.window.max(1));
    let selected =
        select_without_asking(dispatcher, roster, capabilities, policy, &window[from..], chain).await;
    match chain >= policy.max_agent_turns && selected != Forecast::Speakers(Vec::new()) {
        true => Forecast::GuardHit { turns: chain },
        false => selected,
    }
}

/// The selection for the last turn of a window, without the guard.
pub(super) async fn select_without_asking(
    dispatcher: &dyn Dispatcher,
    roster: &[Participant],
    capabilities: &Capabilities,
    policy: Policy,
    window: &[Turn],
    chain: usize,
) -> Forecast {
    let Some(trigger) = window.last() else { return Forecast::Speakers(Vec::new()) };
    let asking = AskNothing::default();
    let input = Input { window, chain, participants: roster, capabilities, ask: &asking };
    let named = dispatcher.select(input).await;
    match named {
        _ if asking.was_asked.load(Ordering::Relaxed) => Forecast::NeedsExecutor,
        Ok(named) => Forecast::Speakers(permitted(named, roster, policy, trigger)),
        Err(error) => Forecast::Undecided(error.to_string()),
    }
}

/// Answers nothing, and notes that it was asked.
#[derive(Default)]
struct AskNothing {
    was_asked: AtomicBool,
}

#[async_trait]
impl Ask for AskNothing {
    async fn ask(&self, _: &MemberConfig, _: Question) -> Result<Json, Unanswered> {
        self.was_asked.store(true, Ordering::Relaxed);
        Err(AbsenceReason::Cancelled.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Map;

    use super::*;
    use crate::ports::dispatcher::Error;

    /// Names everybody in every case.
    struct Everybody;

    #[async_trait]
    impl Dispatcher for Everybody {
        fn kind(&self) -> &'static str {
            "everybody"
        }

        async fn select(&self, input: Input<'_>) -> Result<Vec<Name>, Error> {
            Ok(input.participants.iter().map(|participant| participant.id.clone()).collect())
        }
    }

    fn turn(by: &str) -> Turn {
        Turn {
            id: "t".into(),
            participant: by.into(),
            timestamp: Arc::from(""),
            content: Arc::from("x"),
            meta: Map::new(),
            stamp: None,
        }
    }

    #[tokio::test]
    async fn the_author_and_a_long_row_of_participants_are_left_out() {
        let named = |id: &str| Participant { id: id.into(), ..Participant::default() };
        let roster = [named("ada"), named("bo")];
        let policy = Policy { max_agent_turns: 2, ..Policy::default() };
        let capabilities = Capabilities::new();
        let ask =
            async |window: &[Turn]| forecast(&Everybody, &roster, &capabilities, policy, window, &[]).await;
        assert_eq!(ask(&[]).await, Forecast::Speakers(Vec::new()));
        assert_eq!(ask(&[turn("user")]).await, Forecast::Speakers(vec!["ada".into(), "bo".into()]));
        assert_eq!(ask(&[turn("user"), turn("ada")]).await, Forecast::Speakers(vec!["bo".into()]));
        assert_eq!(ask(&[turn("user"), turn("ada"), turn("bo")]).await, Forecast::GuardHit { turns: 2 });
    }
}
