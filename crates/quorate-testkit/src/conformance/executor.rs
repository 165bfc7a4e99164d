//! What every executor must do (see the port's text).

use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::conversation::ConversationContext;
use quorate_kernel::ports::executor::{Executor, Failure, Invocation};
use quorate_kernel::probe::{self, question};
use quorate_kernel::prompt::Layout;
use quorate_kernel::{answer, conversation};
use quorate_protocol::answers::Schema;
use quorate_protocol::answers::turn::Turn;
use quorate_protocol::{Invoke, Part, PartKind};
use serde_json::{Map, json};

/// How long past its deadline an executor may take.
const GRACE: Duration = Duration::from_millis(2_500);

/// An executor that works answers in time, and again in the same way.
///
/// # Panics
/// When it does not.
pub async fn answers(executor: &dyn Executor) {
    for _ in 0..2 {
        let reply = executor.invoke(question(Duration::from_secs(20))).await.expect("an answer");
        answer::extract(probe::SCHEMA, &reply.text, &[]).expect("an answer that fits the schema");
    }
    assert!(!executor.about().kind.is_empty());
}

/// An executor whose other side hangs ends by its deadline, as timed out.
///
/// # Panics
/// When it does not.
pub async fn respects_deadline(executor: &dyn Executor) {
    let timeout = Duration::from_millis(300);
    let started = tokio::time::Instant::now();
    let replied = tokio::time::timeout(timeout + GRACE, executor.invoke(question(timeout))).await;
    assert_eq!(replied.expect("ends by its deadline"), Err(Failure::TimedOut));
    assert!(started.elapsed() >= timeout, "it waits as long as it may");
}

/// An executor whose other side fails says so, and gives nothing that could be taken for an answer.
///
/// # Panics
/// When it does not.
pub async fn reports_failure(executor: &dyn Executor) {
    match executor.invoke(question(Duration::from_secs(20))).await {
        Err(Failure::Failed { message }) => assert!(!message.trim().is_empty(), "a failure has a message"),
        other => panic!("expected a failure, got {other:?}"),
    }
}

/// A turn that `reviewer` is to take, after a person has spoken, in the form that the executor gives its turns in.
pub fn turn_invocation(executor: &dyn Executor, said: &str, timeout: Duration) -> Invocation {
    let form = executor.turn_schema();
    let spoken = super::dispatcher::turn(1, "ann", said);
    let shown = json!([{"id": spoken.id, "participant": spoken.participant, "at": spoken.timestamp,
                        "content": spoken.content}]);
    let invoke = Invoke {
        id: conversation::turn_key(&spoken.id, "reviewer"),
        member: "reviewer".into(),
        step: "turn".into(),
        parts: vec![Part::new(PartKind::Turns, "", shown.to_string())],
        schema: form,
        task: "Answer the last turn.".into(),
        extra_fields: Map::new(),
    };
    let layout = Layout { nonce: "conformance".to_owned() };
    Invocation {
        prompt: layout.prompt(&invoke, &[], "# Reviewer").into(),
        id: invoke.id,
        member: invoke.member,
        step: invoke.step,
        parts: invoke.parts.into(),
        role: "# Reviewer".into(),
        answer_schema: form,
        json_schema: Arc::new(form.json_schema()),
        conversation: Some(Arc::new(ConversationContext {
            participant: super::dispatcher::participant("reviewer", "Reviewer", &[]),
            recent: vec![spoken],
            state: Map::new(),
            external_id: None,
        })),
        ..question(timeout)
    }
}

/// An executor that works takes a turn in time, says something in it, and does so again. Gives what was said.
///
/// # Panics
/// When it does not.
pub async fn takes_turns(executor: &dyn Executor, said: &str) -> Turn {
    let form = executor.turn_schema();
    assert!(matches!(form, Schema::PlainText | Schema::Turn), "its turns have the form of turns");
    let mut last = Turn::default();
    for _ in 0..2 {
        let asked = turn_invocation(executor, said, Duration::from_secs(20));
        let reply = tokio::time::timeout(Duration::from_secs(20) + GRACE, executor.invoke(asked)).await;
        let reply = reply.expect("ends by its deadline").expect("a turn");
        let answer = answer::extract(form, &reply.text, &[]).expect("a turn in the form that it says");
        last = Turn::read(&answer).expect("it says something");
    }
    last
}

/// An executor whose other side hangs ends a turn by its deadline, as timed out.
///
/// # Panics
/// When it does not.
pub async fn respects_turn_deadline(executor: &dyn Executor) {
    let timeout = Duration::from_millis(300);
    let replied =
        tokio::time::timeout(timeout + GRACE, executor.invoke(turn_invocation(executor, "?", timeout))).await;
    assert_eq!(replied.expect("ends by its deadline"), Err(Failure::TimedOut));
}
