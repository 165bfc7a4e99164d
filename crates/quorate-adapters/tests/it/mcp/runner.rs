//! Runners over a conversation on a server: a manifest comes to the same there as over a journal.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use quorate_adapters::default_registry;
use quorate_kernel::attempts::MemberConfig;
use quorate_kernel::budget::Caps;
use quorate_kernel::clock::System;
use quorate_kernel::conversation::{NewTurn, Participant};
use quorate_kernel::ports::executor::{About, Executor, Failure, Invocation, Reply};
use quorate_kernel::ports::substrate::Substrate;
use quorate_kernel::ports::telemetry::{Event, Telemetry};
use quorate_kernel::redact::Redactor;
use quorate_kernel::turn::{
    Begin, CycleResult, HookFlags, Policy, Prompt, Runner, Speaker, Swarm, TurnError,
};
use quorate_protocol::answers;
use quorate_testkit::faults::CrashingLedger;
use serde_json::json;

use crate::mcp::fake_server::{Clocks, FakeServer, Fault, Style};
use crate::mcp::host::{TestHost, object};

/// Who said what, as the participants were shown it.
type Windows = Arc<Mutex<Vec<Vec<String>>>>;

/// Says what it is called.
struct SaysItsName(Windows);

#[async_trait]
impl Executor for SaysItsName {
    fn about(&self) -> About {
        About { kind: "test", asks_a_model: false, model: None }
    }

    fn turn_schema(&self) -> answers::Schema {
        answers::Schema::Turn
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let context = invocation.conversation.expect("a conversation");
        let shown = context.recent.iter().map(|turn| format!("{}: {}", turn.participant, turn.content));
        self.0.lock().unwrap().push(shown.collect());
        // The same text of all participants: it does not tell who spoke.
        let text = json!({"content": "Here. @Bo, too?"}).to_string();
        Ok(Reply { text, ..Reply::default() })
    }
}

struct Silent;

impl Telemetry for Silent {
    fn emit(&self, _: &Event) {}
}

/// Two participants that share the operator of the block.
fn participants() -> Vec<Participant> {
    let participant = |id: &str, name: &str| Participant {
        id: id.into(),
        display_name: name.to_owned(),
        ..Participant::default()
    };
    vec![participant("ada", "Ada"), participant("bo", "Bo")]
}

fn swarm(
    host: &TestHost,
    substrate: Arc<dyn Substrate>,
    ledger: &Arc<CrashingLedger>,
    seen: &Windows,
) -> Arc<Swarm> {
    let registry = default_registry().unwrap();
    let block = object(json!({"kind": "mention"}));
    let dispatcher = registry.dispatchers["mention"](&host.build(&block)).unwrap();
    let block = object(json!({"kind": "memory"}));
    let state = registry.states["memory"](&host.build(&block)).unwrap();
    let speaker = |participant: &Participant| Speaker {
        participant: participant.clone(),
        member: MemberConfig {
            executor: Arc::new(SaysItsName(seen.clone())),
            executor_name: "test".into(),
            timeout: Duration::from_secs(20),
            retries: 0,
            stand_ins: Arc::default(),
            samples: 1,
            role: "".into(),
            persona: None,
            context: Vec::new(),
            weight: None,
            extra_fields: serde_json::Map::new(),
            conversation: None,
            shared: None,
        },
        prompts: Arc::new(Prompt::default()),
    };
    Arc::new(Swarm {
        runtime: "talk".into(),
        substrate,
        dispatcher,
        state,
        lifecycles: Vec::new(),
        flags: HookFlags::default(),
        telemetry: Arc::new(Silent),
        speakers: host.participants.iter().map(speaker).collect(),
        policy: Policy::default(),
        caps: Caps::default(),
        redactor: Redactor::default(),
        ledger: ledger.clone(),
        clock: Arc::new(System),
    })
}

/// One process: answers what is open.
async fn run(swarm: Arc<Swarm>) {
    let mut runner = Runner::open(swarm, Begin::First).await.unwrap();
    while runner.cycle().await.unwrap() != CycleResult::NoNewTurn {}
    runner.close(Duration::from_secs(5)).await.unwrap();
}

/// The windows of the participants of a conversation, each question in a process of its own.
async fn windows(
    host: &TestHost,
    open: impl Fn() -> Arc<dyn Substrate>,
    say: impl AsyncFn(&str),
) -> Vec<Vec<String>> {
    let seen = Windows::default();
    let mut ledger = Arc::new(CrashingLedger::new(None));
    for text in ["@Ada and @Bo, who is here?", "@Ada, again?", "And @Bo?"] {
        say(text).await;
        run(swarm(host, open(), &ledger, &seen)).await;
        ledger = Arc::new(ledger.after_kill(None).await);
    }
    seen.lock().unwrap().clone()
}

#[tokio::test]
async fn participants_that_share_an_operator_keep_their_names() {
    // K17
    let mut host = TestHost::from_table(json!({"url": "http://127.0.0.1:1/mcp"}));
    host.participants = participants();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("talk.md");
    let block = object(json!({"kind": "file", "path": path.to_str().unwrap()}));
    let open = || default_registry().unwrap().substrates["file"](&host.build(&block)).unwrap();
    let journal = windows(&host, open, async |text: &str| {
        let timestamp = quorate_kernel::clock::rfc3339(1_779_128_000_000);
        let (participant, content) = ("u_1".into(), text.into());
        let turn = NewTurn { participant, content, timestamp, meta: serde_json::Map::new(), stamp: None };
        open().append(turn).await.unwrap();
    })
    .await;
    assert!(journal.iter().flatten().any(|turn| turn.starts_with("ada: Here")), "{journal:#?}");
    let styles = [Style::public(), Style { newest_first: false, ..Style::public() }, Style::full()];
    for style in
        styles.into_iter().flat_map(|style| Clocks::ALL.map(|clocks| Style { clocks, ..style.clone() }))
    {
        let fake = FakeServer::new(style.clone());
        let mut host = TestHost::connected_to(&fake).await;
        host.participants = participants();
        let say = async |text: &str| drop(fake.say("u_1", text));
        let there = windows(&host, || host.substrate(), say).await;
        assert_eq!(there, journal, "{style:?}");
    }
}

#[tokio::test]
async fn a_failed_first_read_does_not_end_the_runner() {
    // K17
    let fake = FakeServer::new(Style::public());
    fake.say("u_1", "@Ada?");
    let mut host = TestHost::connected_to(&fake).await;
    host.participants = participants();
    for _ in 0..3 {
        fake.fault("get_messages", Fault::Refuses("busy"));
    }
    let seen = Windows::default();
    let swarm = swarm(&host, host.substrate(), &Arc::new(CrashingLedger::new(None)), &seen);
    let mut runner = Runner::open(swarm, Begin::First).await.unwrap();
    assert!(matches!(runner.cycle().await, Err(TurnError::Substrate(_))), "it is reported once");
    assert!(matches!(runner.cycle().await.unwrap(), CycleResult::Asked { .. }));
    assert_eq!(fake.contents(), ["@Ada?", "Here. @Bo, too?"]);
}
