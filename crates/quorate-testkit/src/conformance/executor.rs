//! What every executor must do (see the port's text).

use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::answer;
use quorate_kernel::entropy;
use quorate_kernel::ports::executor::{Executor, Failure, Invocation};
use quorate_kernel::prompt::Layout;
use quorate_protocol::answers::Schema;
use quorate_protocol::{Invoke, Part, PartKind};

/// How long past its deadline an executor may take.
const GRACE: Duration = Duration::from_millis(2_500);

/// A question that any executor can be asked.
pub fn question(timeout: Duration) -> Invocation {
    let parts = vec![Part::new(
        PartKind::Artifact,
        "specimen.md",
        "The meeting moved to Tuesday at ten. Please tell the others.",
    )];
    let invoke = Invoke {
        id: "r1/skeptic".into(),
        member: "skeptic".into(),
        step: "r1".into(),
        parts: parts.clone(),
        schema: Schema::FirstAnswer,
    };
    let role = "# Skeptic";
    let layout = Layout { nonce: entropy::nonce(&[0; 32]) };
    Invocation {
        run: "rconformance".into(),
        id: invoke.id.clone(),
        member: invoke.member.clone(),
        step: invoke.step.clone(),
        attempt: 1,
        prompt: layout.prompt(&invoke, &[], role).into(),
        parts: parts.into(),
        role: role.into(),
        schema: Arc::new(invoke.schema.json()),
        deadline: tokio::time::Instant::now() + timeout,
    }
}

/// An executor that works answers in time, and again in the same way.
///
/// # Panics
/// When it does not.
pub async fn answers(executor: &dyn Executor) {
    for _ in 0..2 {
        let reply = executor.invoke(question(Duration::from_secs(20))).await.expect("an answer");
        answer::extract(Schema::FirstAnswer, &reply.text).expect("an answer that fits the schema");
    }
    assert!(!executor.about().kind.is_empty());
}

/// An executor whose other side hangs ends by its deadline, as timed out.
///
/// # Panics
/// When it does not.
pub async fn ends_by_its_deadline(executor: &dyn Executor) {
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
pub async fn says_that_it_failed(executor: &dyn Executor) {
    match executor.invoke(question(Duration::from_secs(20))).await {
        Err(Failure::Failed { message }) => assert!(!message.trim().is_empty(), "a failure has a message"),
        other => panic!("expected a failure, got {other:?}"),
    }
}
