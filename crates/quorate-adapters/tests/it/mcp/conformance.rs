//! The conformance suites, against a server that can everything and, as far as they reach, against poorer ones.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::ports::executor::{About, Executor, Failure, Invocation, Reply};
use quorate_kernel::ports::substrate::Substrate;
use quorate_testkit::conformance::substrate::Open;
use quorate_testkit::conformance::{executor, state, substrate};
use serde_json::json;

use crate::mcp::fake_server::{FakeServer, Fault, Style};
use crate::mcp::host::TestHost;
use crate::mcp::operator::asked;

/// A way to open one conversation of a server of its own, which was connected before: what a server keeps is known only
/// then.
async fn conversation(style: &Style) -> Box<Open> {
    let host = TestHost::connected_to(&FakeServer::new(style.clone())).await;
    let connected = host.substrate();
    connected.read(None, 1).await.unwrap();
    let all = Arc::new((host, connected));
    Box::new(move || -> Arc<dyn Substrate> { all.0.substrate() })
}

#[tokio::test]
async fn a_substrate_behind_a_server_that_can_everything_conforms() {
    let mut conversations = Vec::new();
    for _ in 0..12 {
        conversations.push(conversation(&Style::full()).await);
    }
    let conversations = Mutex::new(conversations);
    substrate::all(|| {
        conversations.lock().unwrap().pop().expect("a conversation for each part of the suite")
    })
    .await;
}

#[tokio::test]
async fn a_substrate_behind_a_poorer_server_reads_and_waits_as_it_should() {
    let poorer = [
        Style::full().without("idempotencyKey"),
        Style::full().without("after"),
        Style::full().without("before"),
        Style::full().without("waitMs"),
        Style { max_messages: Some(9), newest_first: true, ..Style::full() },
        Style::public(),
    ];
    for style in poorer {
        substrate::describes_itself(&*conversation(&style).await).await;
        substrate::reads_since(&*conversation(&style).await).await;
        substrate::reads_windows(&*conversation(&style).await).await;
        substrate::notifies_of_changes(&*conversation(&style).await).await;
    }
}

#[tokio::test]
async fn a_state_behind_a_server_conforms() {
    for style in [Style::full(), Style { text: true, ..Style::full() }] {
        let host = Arc::new(TestHost::connected_to(&FakeServer::new(style)).await);
        state::all(&move || host.state(json!({}))).await;
    }
}

/// Asks in a conversation what the suite asks outside of one.
struct InConversation(Arc<dyn Executor>);

#[async_trait]
impl Executor for InConversation {
    fn about(&self) -> About {
        self.0.about()
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        self.0.invoke(Invocation { conversation: asked().conversation, ..invocation }).await
    }
}

#[tokio::test]
async fn an_operator_conforms_as_an_executor() {
    let fake = FakeServer::new(Style::full());
    let operator = InConversation(TestHost::connected_to(&fake).await.executor(json!({})));
    for _ in 0..2 {
        let answer = json!({"would_block": false, "verdict": "ship"}).to_string();
        fake.fault("run_operator", Fault::Replace(json!({"text": answer})));
    }
    executor::answers(&operator).await;
    fake.fault("run_operator", Fault::Slow(Duration::from_secs(60)));
    executor::respects_deadline(&operator).await;
    fake.fault("run_operator", Fault::Fails("no"));
    executor::reports_failure(&operator).await;
}
