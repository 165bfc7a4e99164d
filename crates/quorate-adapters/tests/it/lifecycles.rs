//! Lifecycles, checked against the port's contract, with real commands as hooks.
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use quorate_adapters::lifecycle;
use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::telemetry::{HookError, Lifecycle};
use quorate_protocol::Name;
use quorate_testkit::conformance::dispatcher::turn;
use quorate_testkit::conformance::{
    call_lifecycle_hooks, lifecycle_accepts_every_event, lifecycle_reports_failure,
};
use serde_json::{Value, json};

fn hooks(dir: &Path, hooks: Value) -> Result<Option<Arc<dyn Lifecycle>>, ConfigError> {
    lifecycle::new(hooks.as_object().unwrap(), dir, "night-watch")
}

/// The same script for every hook.
fn all(dir: &Path, script: &str, timeout_ms: u64) -> Arc<dyn Lifecycle> {
    std::fs::write(dir.join("hook.sh"), format!("#!/bin/sh\n{script}\n")).unwrap();
    let hook = json!({"command": "/bin/sh", "args": [dir.join("hook.sh")], "timeout_ms": timeout_ms});
    hooks(dir, json!({"onTurnEnd": hook, "onMention": hook, "onIdle": hook})).unwrap().unwrap()
}

#[tokio::test]
async fn a_command_receives_every_event() {
    let dir = tempfile::tempdir().unwrap();
    let lifecycle = all(dir.path(), "cat >> events.jsonl; echo ignored", 5_000);
    lifecycle_accepts_every_event(&*lifecycle).await;
    let events = std::fs::read_to_string(dir.path().join("events.jsonl")).unwrap();
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let turn = json!({"id": "t1", "participant": "someone", "at": "2026-01-01T00:00:00.000Z",
                      "content": "said\nin \"two\" lines", "meta": {}});
    assert_eq!(events[0], json!({"hook": "onTurnEnd", "runtime": "night-watch", "turn": turn}));
    let mention = json!({"hook": "onMention", "runtime": "night-watch", "target": "reviewer", "by": turn});
    assert_eq!(events[1], mention);
    assert_eq!(events[2], json!({"hook": "onIdle", "runtime": "night-watch"}));
    assert_eq!(events.len(), 6);
}

#[tokio::test]
async fn a_command_that_fails_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let lifecycle = all(dir.path(), "echo no network >&2; exit 3", 5_000);
    lifecycle_reports_failure(&*lifecycle).await;
    let [turn_end, ..] = call_lifecycle_hooks(&*lifecycle).await;
    assert_eq!(turn_end, Err("`/bin/sh` ended with exit code 3: no network".to_owned()));
    let missing = hooks(dir.path(), json!({"onIdle": {"command": "no-such-command-anywhere"}})).unwrap();
    let error = missing.unwrap().on_idle().await.unwrap_err();
    assert!(error.contains("was not found on PATH"), "{error}");
}

#[tokio::test]
async fn a_command_that_hangs_is_ended_with_what_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let lifecycle = all(dir.path(), "sleep 61.25 & echo $! > child; wait", 2_000);
    let started = Instant::now();
    let error = lifecycle.on_idle().await.unwrap_err();
    assert_eq!(error, "`/bin/sh` did not end within 2000 ms");
    assert!(started.elapsed() < Duration::from_secs(7), "{:?}", started.elapsed());
    let child = std::fs::read_to_string(dir.path().join("child")).unwrap();
    // The system reaps the process; a dead process has no command line.
    let running = std::fs::read(Path::new("/proc").join(child.trim()).join("cmdline")).unwrap_or_default();
    assert_eq!(String::from_utf8_lossy(&running), "", "its child is left");
}

#[tokio::test]
async fn a_hook_sees_only_the_variables_that_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let names = async |env: Value| {
        let hook = json!({"command": "/bin/sh", "args": ["-c", "env | cut -d= -f1 > seen"], "env": env});
        let lifecycle = hooks(dir.path(), json!({"onIdle": hook})).unwrap().unwrap();
        lifecycle.on_idle().await.unwrap();
        std::fs::read_to_string(dir.path().join("seen")).unwrap()
    };
    assert!(!names(json!([])).await.contains("CARGO_PKG_NAME"));
    let seen = names(json!(["CARGO_PKG_NAME"])).await;
    assert!(seen.contains("CARGO_PKG_NAME") && !seen.contains("CARGO_MANIFEST_DIR"), "{seen}");
}

#[tokio::test]
async fn an_event_without_a_hook_is_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    let idle =
        hooks(dir.path(), json!({"onIdle": {"command": "/bin/false"}, "onMention": null})).unwrap().unwrap();
    let [turn_end, mention, idle] = call_lifecycle_hooks(&*idle).await;
    assert_eq!((turn_end, mention), (Ok(()), Ok(())));
    assert!(idle.is_err());
    assert!(hooks(dir.path(), json!({})).unwrap().is_none());
    assert!(hooks(dir.path(), json!({"onIdle": null})).unwrap().is_none());
}

#[test]
fn what_cannot_work_is_refused_by_key() {
    let refused = |block: Value| hooks(Path::new("/"), block).err().unwrap();
    for (block, key, help) in [
        (json!({"onTurnEnds": {"command": "x"}}), "onTurnEnds", "did you mean `onTurnEnd`?"),
        (json!({"onIdle": {}}), "onIdle.command", "the program"),
        (json!({"onIdle": {"command": "x", "arg": []}}), "onIdle.arg", "did you mean `args`?"),
        (json!({"onIdle": {"command": "x", "timeout_ms": 10_001}}), "onIdle.timeout_ms", "hand over"),
        (json!({"onIdle": {"command": "x", "env": ["A=b"]}}), "onIdle.env", "names alone"),
    ] {
        let refused = refused(block);
        assert_eq!(refused.key.as_deref(), Some(key));
        assert!(refused.help.as_deref().unwrap_or_default().contains(help), "{refused:?}");
    }
    assert_eq!(refused(json!({"onIdle": "notify"})).key.as_deref(), Some("onIdle"));
    assert_eq!(
        refused(json!({"onIdle": {"command": "x", "timeout_ms": 0}})).key.as_deref(),
        Some("onIdle.timeout_ms")
    );
}

#[derive(Debug, Clone, PartialEq)]
enum LifecycleEvent {
    TurnEnd(Turn),
    /// A participant was chosen to answer the turn `by`.
    Mention {
        target: Name,
        by: Turn,
    },
    Idle,
}

/// Keeps all events, in order.
#[derive(Debug, Default)]
struct Recorder {
    events: Mutex<Vec<LifecycleEvent>>,
}

impl Recorder {
    fn events(&self) -> Vec<LifecycleEvent> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn push(&self, happened: LifecycleEvent) -> Result<(), HookError> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(happened);
        Ok(())
    }
}

#[async_trait]
impl Lifecycle for Recorder {
    fn kind(&self) -> &'static str {
        "recorder"
    }

    async fn on_turn_end(&self, turn: &Turn) -> Result<(), HookError> {
        self.push(LifecycleEvent::TurnEnd(turn.clone()))
    }

    async fn on_mention(&self, target: &str, by: &Turn) -> Result<(), HookError> {
        self.push(LifecycleEvent::Mention { target: target.into(), by: by.clone() })
    }

    async fn on_idle(&self) -> Result<(), HookError> {
        self.push(LifecycleEvent::Idle)
    }
}

#[tokio::test]
async fn a_recorder_remembers_in_order() {
    let recorder = Recorder::default();
    lifecycle_accepts_every_event(&recorder).await;
    let by = turn(1, "someone", "said\nin \"two\" lines");
    let once = [
        LifecycleEvent::TurnEnd(by.clone()),
        LifecycleEvent::Mention { target: "reviewer".into(), by },
        LifecycleEvent::Idle,
    ];
    assert_eq!(recorder.events(), [once.clone(), once].concat());
}
