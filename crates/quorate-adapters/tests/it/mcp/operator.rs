//! Operators that live on the server.

use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::conversation::{ConversationContext, Participant};
use quorate_kernel::ports::executor::{Executor, Failure, Invocation};
use quorate_kernel::single_call::probe_question;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::mcp::fake_server::{FakeServer, Fault, Style};
use crate::mcp::host::{TestHost, object};

fn invocation(meta: Value, timeout: Duration) -> Invocation {
    let participant = Participant { id: "reviewer".into(), meta: object(meta), ..Participant::default() };
    let conversation = Some("c1".to_owned());
    let speaking = ConversationContext {
        participant,
        recent: Vec::new(),
        state: serde_json::Map::new(),
        external_id: conversation,
    };
    Invocation {
        id: "turn/m1/reviewer".into(),
        conversation: Some(Arc::new(speaking)),
        ..probe_question(timeout)
    }
}

pub(crate) fn asked() -> Invocation {
    invocation(json!({"operatorId": "op_r"}), Duration::from_secs(20))
}

async fn reply_text(executor: &dyn Executor, invocation: Invocation) -> String {
    match executor.invoke(invocation).await {
        Err(Failure::Failed { message, .. }) => message,
        other => panic!("expected a failure, got {other:?}"),
    }
}

#[tokio::test]
async fn an_operator_answers_and_posts_where_it_is_told_to() {
    let fake = FakeServer::new(Style::full());
    let host = TestHost::connected_to(&fake).await;
    let reply = host.executor(json!({})).invoke(asked()).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.posted), ("op_r has seen it", None));
    assert!(fake.contents().is_empty());
    let reply = host.executor(json!({"postReply": true})).invoke(asked()).await.unwrap();
    assert_eq!(reply.posted.as_deref(), Some("m1"));
    let call = fake.calls("run_operator").pop().unwrap();
    assert_eq!(call["idempotencyKey"], "turn/m1/reviewer");
    assert_eq!((&call["conversationId"], &call["postReply"]), (&json!("c1"), &json!(true)));
}

#[tokio::test]
async fn a_cut_line_runs_an_operator_once_where_the_server_can_tell() {
    let fake = FakeServer::new(Style::full());
    let executor = TestHost::connected_to(&fake).await.executor(json!({"postReply": true}));
    fake.fault("run_operator", Fault::CutAfter);
    let reply = executor.invoke(asked()).await.unwrap();
    assert_eq!((reply.posted.as_deref(), fake.contents().len()), (Some("m1"), 1));

    let fake = FakeServer::new(Style::full().without("idempotencyKey"));
    let executor = TestHost::connected_to(&fake).await.executor(json!({"postReply": true}));
    fake.fault("run_operator", Fault::CutAfter);
    assert!(reply_text(&*executor, asked()).await.contains("the connection broke"));
    let again = Invocation { attempt: 2, ..asked() };
    assert!(reply_text(&*executor, again).await.contains("not asked again"));
    assert_eq!(fake.contents().len(), 1);
}

#[tokio::test]
async fn no_stand_in_is_asked_once_a_reply_may_be_posted() {
    for (posts, timeout, fault, rules_out) in [
        (true, 20_000, Some(Fault::CutAfter), true),
        (true, 20_000, Some(Fault::Fails("over quota")), true),
        (true, 2_000, Some(Fault::Slow(Duration::from_secs(60))), true),
        (true, 20_000, Some(Fault::Replace(json!({"text": "said"}))), true),
        (false, 20_000, Some(Fault::Fails("over quota")), false),
        // The question has no operator, so nothing is sent.
        (true, 20_000, None, false),
    ] {
        let fake = FakeServer::new(Style::full().without("idempotencyKey"));
        let executor = TestHost::connected_to(&fake).await.executor(json!({"postReply": posts}));
        let meta = if fault.is_some() { json!({"operatorId": "op_r"}) } else { json!({}) };
        let case = format!("{posts} {fault:?}");
        if let Some(fault) = fault {
            fake.fault("run_operator", fault);
        }
        let asked = invocation(meta, Duration::from_millis(timeout));
        let notes = asked.notes.clone();
        assert!(executor.invoke(asked).await.is_err(), "{case}");
        assert_eq!(notes.read().no_stand_in, rules_out, "{case}");
    }
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let fake = FakeServer::new(Style::full());
    let host = TestHost::connected_to(&fake).await;
    let executor = host.executor(json!({}));
    let unnamed = invocation(json!({}), Duration::from_secs(20));
    assert!(reply_text(&*executor, unnamed).await.contains("`reviewer` has no `meta.operatorId`"));
    assert!(
        reply_text(&*executor, probe_question(Duration::from_secs(20)))
            .await
            .contains("in a conversation alone")
    );
    for (instead, named) in [
        (json!({"text": "  "}), "is an empty text"),
        (json!({"answer": "x"}), "has no `text`"),
        (json!("plain words"), "is not JSON"),
    ] {
        fake.fault("run_operator", Fault::Replace(instead));
        let why = reply_text(&*executor, asked()).await;
        assert!(why.contains(named), "{why}");
    }
    fake.fault("run_operator", Fault::Fails("over quota"));
    assert!(reply_text(&*executor, asked()).await.contains("over quota"));
    fake.fault("run_operator", Fault::Replace(json!({"text": "said"})));
    let posting = host.executor(json!({"postReply": true}));
    assert!(reply_text(&*posting, asked()).await.contains("no `messageId`"));
    let mut elsewhere = asked();
    let mut speaking = ConversationContext::clone(elsewhere.conversation.as_deref().unwrap());
    speaking.external_id = None;
    elsewhere.conversation = Some(Arc::new(speaking));
    assert!(reply_text(&*executor, elsewhere.clone()).await.contains("set `conversationId`"));
    host.executor(json!({"conversationId": "c9"})).invoke(elsewhere).await.unwrap();
    assert_eq!(fake.calls("run_operator").pop().unwrap()["conversationId"], "c9");
}

#[tokio::test]
async fn a_participant_that_could_never_answer_is_refused_before_it_is_asked() {
    let host = TestHost::from_table(json!({"url": "http://127.0.0.1:1/mcp"}));
    let executor = host.executor(json!({}));
    let named = |meta| Participant { id: "reviewer".into(), meta: object(meta), ..Participant::default() };
    let key =
        |refused: Result<(), quorate_kernel::ports::executor::ConfigError>| refused.unwrap_err().key.unwrap();
    assert_eq!(key(executor.check_participant(&named(json!({})), Some("c1"))), "meta.operatorId");
    let known = named(json!({"operatorId": "op_r"}));
    assert_eq!(key(executor.check_participant(&known, None)), "config");
    assert!(executor.check_participant(&known, Some("c1")).is_ok());
    assert!(host.executor(json!({"conversationId": "c1"})).check_participant(&known, None).is_ok());
    assert!(
        executor.returns_answer_only() && !host.executor(json!({"postReply": true})).returns_answer_only()
    );
}

#[tokio::test]
async fn it_ends_by_its_deadline_and_takes_its_request_back() {
    let fake = FakeServer::new(Style::full());
    let executor = TestHost::connected_to(&fake).await.executor(json!({}));
    executor.invoke(asked()).await.unwrap();
    fake.fault("run_operator", Fault::Slow(Duration::from_secs(60)));
    let started = Instant::now();
    let short = invocation(json!({"operatorId": "op_r"}), Duration::from_millis(300));
    assert_eq!(executor.invoke(short).await, Err(Failure::TimedOut));
    assert!(started.elapsed() < Duration::from_millis(2_800));
    fake.cancelled(1).await;

    fake.fault("run_operator", Fault::Slow(Duration::from_secs(60)));
    let dropped = tokio::time::timeout(Duration::from_millis(300), executor.invoke(asked())).await;
    assert!(dropped.is_err());
    fake.cancelled(2).await;
    executor.invoke(asked()).await.unwrap();
}

#[tokio::test]
async fn a_job_in_place_of_an_answer_is_waited_for_and_taken_back() {
    let fake = FakeServer::new(Style::full());
    let executor = TestHost::connected_to(&fake).await.executor(json!({}));
    let job = json!({"job": "j1", "done": false});
    fake.fault("run_operator", Fault::Replace(job.clone()));
    fake.fault("job_poll", Fault::Replace(job.clone()));
    assert_eq!(executor.invoke(asked()).await.unwrap().text, "after a while");
    assert_eq!(fake.calls("job_poll").len(), 2);
    assert!(fake.calls("job_poll")[0]["waitMs"].as_u64().unwrap() <= 20_000);
    assert!(fake.calls("job_cancel").is_empty());

    fake.fault("run_operator", Fault::Replace(job));
    fake.fault("job_poll", Fault::Slow(Duration::from_secs(60)));
    let short = invocation(json!({"operatorId": "op_r"}), Duration::from_millis(300));
    assert_eq!(executor.invoke(short).await, Err(Failure::TimedOut));
    let taken_back = async {
        while fake.calls("job_cancel").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), taken_back).await.unwrap();
}
