//! What every executor must do (see the port's text).

use std::time::Duration;

use quorate_kernel::answer;
use quorate_kernel::ports::executor::{Executor, Failure};
use quorate_kernel::probe::{self, question};

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
