//! Requirements on every dispatcher (see the port's documentation).

use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::attempts::MemberConfig;
use quorate_kernel::conversation::{Capabilities, Capability, Participant, Turn};
use quorate_kernel::ports::dispatcher::{Ask, DispatchError, Dispatcher, Input, Question, Unanswered};
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::registry::{Builder, ExecutorResolver};
use quorate_protocol::{AbsenceReason, Json, Name};
use serde_json::Map;

use crate::scripted::Rng;

/// The longest time for the largest window, on a machine that is busy with other tests.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Answers every question of a dispatcher with the same value.
pub struct FixedAnswer(pub Result<Json, AbsenceReason>);

#[async_trait]
impl Ask for FixedAnswer {
    async fn ask(&self, _: &MemberConfig, _: Question) -> Result<Json, Unanswered> {
        self.0.clone().map_err(Unanswered::from)
    }
}

/// Returns the same member config for every name, or none.
pub struct FixedExecutor(pub Option<MemberConfig>);

impl ExecutorResolver for FixedExecutor {
    fn resolve(&self, name: Option<&str>, _: Map<String, Json>) -> Result<MemberConfig, ConfigError> {
        let none = || ConfigError::for_key("executor", format!("unknown executor {name:?}"));
        self.0.clone().ok_or_else(none)
    }
}

/// Builds a dispatcher from its block.
///
/// # Errors
/// The dispatcher's refusal.
pub fn build(
    builder: &Builder<dyn Dispatcher>,
    block: &Json,
    roster: &[Participant],
    member_config: Option<MemberConfig>,
) -> Result<std::sync::Arc<dyn Dispatcher>, ConfigError> {
    super::build_with(builder, std::path::Path::new("/"), block, roster, member_config)
}

/// A participant with a name and a list of capabilities.
pub fn participant(id: &str, name: &str, capabilities: &[&str]) -> Participant {
    let meta = Map::from_iter([("capabilities".to_owned(), Json::from(capabilities.to_vec()))]);
    Participant { id: id.into(), display_name: name.to_owned(), meta, ..Participant::default() }
}

/// A turn of a window; `at` makes it unique.
pub fn turn(at: usize, author: &str, content: &str) -> Turn {
    Turn {
        id: format!("t{at}").into(),
        participant: author.into(),
        timestamp: "2026-01-01T00:00:00.000Z".into(),
        content: content.into(),
        meta: Map::new(),
        stamp: None,
    }
}

/// The selection of a dispatcher, on a substrate with all capabilities.
///
/// # Errors
/// The dispatcher's own.
pub async fn select(
    dispatcher: &dyn Dispatcher,
    roster: &[Participant],
    window: &[Turn],
    ask: &dyn Ask,
) -> Result<Vec<Name>, DispatchError> {
    let chain = chain(roster, window);
    dispatcher.select(Input { window, chain, participants: roster, capabilities: &all(), ask }).await
}

/// The length of the last turn's chain, where each turn answers the one before.
fn chain(roster: &[Participant], window: &[Turn]) -> usize {
    let is_participants = |turn: &&Turn| roster.iter().any(|one| one.id == turn.participant);
    window.iter().rev().take_while(is_participants).count()
}

fn all() -> Capabilities {
    Capability::ALL.into()
}

/// Asserts for many windows that only participants on the roster are selected, each once, never the last author, and the
/// same ones again. The block must not allow reentry.
///
/// # Panics
/// When the dispatcher breaks a rule.
pub async fn selects_by_rules(dispatcher: &dyn Dispatcher, roster: &[Participant], ask: &dyn Ask) {
    assert!(!dispatcher.kind().is_empty());
    for seed in 0..200 {
        let window = random_window(seed, roster);
        let selected = select(dispatcher, roster, &window, ask).await;
        assert_eq!(select(dispatcher, roster, &window, ask).await, selected, "the same window: {window:?}");
        assert_follows_rules(&selected, roster, &window);
    }
    let nobody_else = [turn(0, "someone", "")];
    assert_follows_rules(&select(dispatcher, roster, &nobody_else, ask).await, roster, &nobody_else);
}

#[track_caller]
fn assert_follows_rules(
    selected: &Result<Vec<Name>, DispatchError>,
    roster: &[Participant],
    window: &[Turn],
) {
    let Ok(selected) = selected else { return };
    let author = window.last().map(|turn| &turn.participant);
    for (at, id) in selected.iter().enumerate() {
        assert!(roster.iter().any(|participant| participant.id == *id), "`{id}` is not on the roster");
        assert!(Some(id) != author, "`{id}` answers itself");
        assert!(!selected[..at].contains(id), "`{id}` is selected twice");
    }
}

/// Turns of participants and of others that mention names, ids and capabilities.
fn random_window(seed: u64, roster: &[Participant]) -> Vec<Turn> {
    let mut rng = Rng::new(seed);
    let length = 1 + rng.below(12) as usize;
    let mut window = Vec::with_capacity(length);
    for at in 0..length {
        let mut pick = || roster.get(rng.below(roster.len() as u64 + 1) as usize);
        let author = pick().map_or("someone".into(), |participant| participant.id.clone());
        let content = match (pick(), pick()) {
            (Some(first), Some(second)) => {
                let capabilities = second.meta_texts("capabilities").join(" ");
                format!("@{} {} {capabilities}", first.display_name, second.id)
            }
            (Some(first), None) => format!("@{}", first.id),
            (None, Some(first)) => first.display_name.clone(),
            (None, None) => "good morning".to_owned(),
        };
        window.push(turn(at, &author, &content));
    }
    window
}

/// Asserts that it selects no participant without the capability, and one with it.
///
/// # Panics
/// When it does not.
pub async fn requires_capability(
    dispatcher: &dyn Dispatcher,
    capability: Capability,
    roster: &[Participant],
    window: &[Turn],
    ask: &dyn Ask,
) {
    let with = select(dispatcher, roster, window, ask).await;
    assert!(with.is_ok_and(|selected| !selected.is_empty()), "with the capability it selects a participant");
    let mut without = all();
    without.remove(&capability);
    let chain = chain(roster, window);
    let input = Input { window, chain, participants: roster, capabilities: &without, ask };
    assert_eq!(dispatcher.select(input).await, Ok(Vec::new()), "without the capability");
}

/// Asserts that a large window and a large turn are handled in time.
///
/// # Panics
/// When they are not.
pub async fn handles_large_windows(dispatcher: &dyn Dispatcher, roster: &[Participant], ask: &dyn Ask) {
    let started = tokio::time::Instant::now();
    let mut window: Vec<Turn> = (0..2_000).map(|at| turn(at, "someone", &"@ word ".repeat(200))).collect();
    window.push(turn(2_000, "someone", &"@@a ".repeat(1 << 20)));
    assert_follows_rules(&select(dispatcher, roster, &window, ask).await, roster, &window);
    assert!(started.elapsed() < TIMEOUT, "{:?}", started.elapsed());
}
