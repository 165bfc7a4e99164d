//! Requirements on every executor (see the port's documentation).

use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::conversation::ConversationContext;
use quorate_kernel::ports::executor::{Executor, Failure, Invocation};
use quorate_kernel::prompt::Layout;
use quorate_kernel::single_call;
use quorate_kernel::single_call::probe_question;
use quorate_kernel::{answer, conversation};
use quorate_protocol::answers::Schema;
use quorate_protocol::answers::advice::Turn;
use quorate_protocol::{Invoke, Part, PartKind};
use serde_json::{Map, json};

/// How long past its deadline an executor may take.
const GRACE: Duration = Duration::from_millis(2_500);

/// Asserts that a working executor answers in time, and again in the same way.
///
/// # Panics
/// When it does not.
pub async fn answers(executor: &dyn Executor) {
    for _ in 0..2 {
        let reply = executor.invoke(probe_question(Duration::from_secs(20))).await.expect("an answer");
        answer::extract(single_call::PROBE_SCHEMA, &reply.text, &[]).expect("an answer that fits the schema");
    }
    assert!(!executor.about().kind.is_empty());
}

/// Asserts that an executor whose backend hangs ends by its deadline, as timed out.
///
/// # Panics
/// When it does not.
pub async fn respects_deadline(executor: &dyn Executor) {
    let timeout = Duration::from_millis(300);
    let started = tokio::time::Instant::now();
    let replied = tokio::time::timeout(timeout + GRACE, executor.invoke(probe_question(timeout))).await;
    assert_eq!(replied.expect("ends by its deadline"), Err(Failure::TimedOut));
    assert!(started.elapsed() >= timeout, "it waits as long as it may");
}

/// Asserts that an executor whose backend fails reports a failure, and no answer.
///
/// # Panics
/// When it does not.
pub async fn reports_failure(executor: &dyn Executor) {
    match executor.invoke(probe_question(Duration::from_secs(20))).await {
        Err(Failure::Failed { message, .. }) => {
            assert!(!message.trim().is_empty(), "a failure has a message")
        }
        result => panic!("expected a failure, got {result:?}"),
    }
}

/// A turn for `reviewer` to take, after a person has spoken, in the form of the executor's turns.
pub fn turn_invocation(executor: &dyn Executor, content: &str, timeout: Duration) -> Invocation {
    let form = executor.turn_schema();
    let turn = super::dispatcher::turn(1, "ann", content);
    let turns = json!([{"id": turn.id, "participant": turn.participant, "at": turn.timestamp,
                        "content": turn.content}]);
    let invoke = Invoke {
        id: conversation::turn_key(&turn.id, "reviewer"),
        member: "reviewer".into(),
        step: "turn".into(),
        parts: vec![Part::new(PartKind::Turns, "", turns.to_string())],
        schema: form,
        task: "Answer the last turn.".into(),
        extra_fields: Map::new(),
    };
    let layout = Layout { nonce: "conformance".to_owned() };
    let prompt = layout.prompt(&invoke, &[], "# Reviewer");
    Invocation {
        prompt: prompt.text.into(),
        cuts: prompt.cuts.into(),
        id: invoke.id,
        member: invoke.member,
        step: invoke.step,
        parts: invoke.parts.into(),
        role: "# Reviewer".into(),
        answer_schema: form,
        json_schema: Arc::new(form.json_schema()),
        conversation: Some(Arc::new(ConversationContext {
            participant: super::dispatcher::participant("reviewer", "Reviewer", &[]),
            recent: vec![turn],
            state: Map::new(),
            external_id: None,
        })),
        ..probe_question(timeout)
    }
}

/// Asserts that a working executor takes a turn with content in time, and again; returns the turn.
///
/// # Panics
/// When it does not.
pub async fn takes_turns(executor: &dyn Executor, content: &str) -> Turn {
    let form = executor.turn_schema();
    assert!(matches!(form, Schema::PlainText | Schema::Turn), "its turns have the form of turns");
    let mut last = Turn::default();
    for _ in 0..2 {
        let invocation = turn_invocation(executor, content, Duration::from_secs(20));
        let reply = tokio::time::timeout(Duration::from_secs(20) + GRACE, executor.invoke(invocation)).await;
        let reply = reply.expect("ends by its deadline").expect("a turn");
        let answer = answer::extract(form, &reply.text, &[]).expect("a turn in the form that it says");
        last = Turn::read(&answer).expect("it says something");
    }
    last
}

/// Asserts that an executor whose backend hangs ends a turn by its deadline, as timed out.
///
/// # Panics
/// When it does not.
pub async fn respects_turn_deadline(executor: &dyn Executor) {
    let timeout = Duration::from_millis(300);
    let replied =
        tokio::time::timeout(timeout + GRACE, executor.invoke(turn_invocation(executor, "?", timeout))).await;
    assert_eq!(replied.expect("ends by its deadline"), Err(Failure::TimedOut));
}
