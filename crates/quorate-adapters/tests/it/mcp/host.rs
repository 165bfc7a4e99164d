//! Adapters, built as a host builds them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorate_adapters::default_registry;
use quorate_kernel::attempts::MemberConfig;
use quorate_kernel::conversation::{NewTurn, Participant, Stamp, turn_key};
use quorate_kernel::ports::executor::{ConfigError, Executor, Servers, Settings};
use quorate_kernel::ports::state::State;
use quorate_kernel::ports::substrate::Substrate;
use quorate_kernel::registry::{BuildContext, ExecutorResolver};
use serde_json::{Map, Value, json};

use crate::mcp::fake_server::FakeServer;
use crate::mcp::proxy;

/// A host with one MCP server.
pub(crate) struct TestHost {
    pub(crate) servers: Servers,
    pub(crate) participants: Vec<Participant>,
}

struct NoExecutors;

impl ExecutorResolver for NoExecutors {
    fn resolve(&self, _: Option<&str>, _: Map<String, Value>) -> Result<MemberConfig, ConfigError> {
        Err(ConfigError::for_block("no executor is available here"))
    }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

impl TestHost {
    /// A host whose server `guilde` has this table, with two participants: `reviewer`, who is `op_r` there, and
    /// `scribe`, which has no operator.
    pub(crate) fn from_table(table: Value) -> Self {
        let reviewer = Participant {
            id: "reviewer".into(),
            meta: object(json!({"operatorId": "op_r"})),
            ..Participant::default()
        };
        let scribe = Participant { id: "scribe".into(), ..Participant::default() };
        TestHost {
            servers: Servers::new(BTreeMap::from([("guilde".to_owned(), object(table))])),
            participants: vec![reviewer, scribe],
        }
    }

    /// A host that reaches a server over a line that can be cut.
    pub(crate) async fn connected_to(fake: &FakeServer) -> Self {
        TestHost::with_timeout(fake, "20s").await
    }

    /// The same, with a timeout.
    pub(crate) async fn with_timeout(fake: &FakeServer, timeout: &str) -> Self {
        let address = proxy::in_front_of(fake.serve().await, Arc::clone(&fake.cut)).await;
        TestHost::from_table(json!({"url": format!("http://{address}/mcp"), "timeout": timeout}))
    }

    pub(crate) fn build<'a>(&'a self, block: &'a Map<String, Value>) -> BuildContext<'a> {
        BuildContext {
            block,
            dir: Path::new("/"),
            runtime: "swarm",
            conversation: "",
            participants: &self.participants,
            servers: &self.servers,
            executors: &NoExecutors,
        }
    }

    pub(crate) fn try_substrate(&self, block: Value) -> Result<Arc<dyn Substrate>, ConfigError> {
        let mut block = object(block);
        block.insert("kind".into(), json!("guilde-mcp"));
        default_registry().unwrap().substrates["guilde-mcp"](&self.build(&block))
    }

    pub(crate) fn substrate(&self) -> Arc<dyn Substrate> {
        self.substrate_with(json!({}))
    }

    pub(crate) fn substrate_with(&self, more: Value) -> Arc<dyn Substrate> {
        let mut block = object(json!({"conversationId": "c1", "asOperatorId": "op_bot", "pollMs": 20}));
        block.extend(object(more));
        self.try_substrate(Value::Object(block)).unwrap()
    }

    pub(crate) fn state(&self, block: Value) -> Arc<dyn State> {
        let mut block = object(block);
        block.insert("kind".into(), json!("mcp-kv"));
        default_registry().unwrap().states["mcp-kv"](&self.build(&block)).unwrap()
    }

    pub(crate) fn executor(&self, block: Value) -> Arc<dyn Executor> {
        let settings = Settings {
            name: "db-operator".into(),
            timeout: Duration::from_secs(60),
            retries: 0,
            dir: "/".into(),
            block: object(block),
            servers: self.servers.clone(),
            prices: None,
        };
        default_registry().unwrap().executor_kind("db-operator").unwrap()(&settings).unwrap()
    }
}

/// A turn of the reviewer.
pub(crate) fn turn(content: &str) -> NewTurn {
    NewTurn {
        participant: "reviewer".into(),
        content: content.into(),
        timestamp: "2026-05-18T18:23:11.504Z".into(),
        meta: object(json!({"mood": "calm"})),
        stamp: None,
    }
}

/// A turn of the reviewer that answers another.
pub(crate) fn answer(content: &str, trigger: &str) -> NewTurn {
    let stamp = json!({"key": &*turn_key(trigger, "reviewer"), "runtime": "swarm", "trigger": trigger,
        "state": {"count": 1}});
    let stamp: Stamp = serde_json::from_value(stamp).unwrap();
    NewTurn { stamp: Some(stamp), ..turn(content) }
}

/// Everything that a substrate gives, page by page.
pub(crate) async fn all(substrate: &dyn Substrate, page: usize) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    let mut since = None;
    loop {
        let read = substrate.read(since.as_ref(), page).await.unwrap();
        assert!(read.known && read.turns.len() <= page);
        let Some(last) = read.turns.last() else { return said };
        since = Some(last.id.clone());
        said.extend(read.turns.iter().map(|turn| turn.content.to_string()));
    }
}
