//! A ledger that takes its time, or says nothing any more: nothing is recorded twice, and a run whose time is spent does
//! not wait for it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::budget::Caps;
use quorate_kernel::conversation::{Capabilities, NewTurn, Participant, Tools, Turn};
use quorate_kernel::driver::{self, Opening, RunConfig};
use quorate_kernel::extensions::Extensions;
use quorate_kernel::observer::NoopObserver;
use quorate_kernel::ports::dispatcher::{self, Dispatcher, Input};
use quorate_kernel::ports::ledger::{Append, Durability, Kind, Ledger, LedgerError, Record};
use quorate_kernel::ports::state::{State, StateError};
use quorate_kernel::ports::substrate::{self, About, Appended, Keeps, Lifetime, Page, Substrate};
use quorate_kernel::ports::telemetry::{Event, Telemetry};
use quorate_kernel::record::RunOpened;
use quorate_kernel::redact::Redactor;
use quorate_kernel::turn::{Begin, HookFlags, Policy, Prompt, Runner, Speaker, Swarm};
use quorate_manifest::council::{CrossRead, OnFailure, Rounds, VerdictPolicy};
use quorate_protocol::modes::council::{ADJUDICATOR, Council, Setup};
use quorate_protocol::{Json, Name, Part, PartKind};
use quorate_testkit::memory::Memory;
use quorate_testkit::scripted::TickingClock;
use quorate_testkit::scripted::{Action, ScriptedExecutor};
use serde_json::{Map, json};
use tokio::time::{Instant, sleep};

/// A ledger with a delay for synced appends, once it is enabled.
struct SlowLedger {
    memory: Memory,
    takes: Duration,
    is_slow: AtomicBool,
}

impl SlowLedger {
    fn new(takes: Duration, is_slow: bool) -> Arc<SlowLedger> {
        Arc::new(SlowLedger { memory: Memory::new(), takes, is_slow: AtomicBool::new(is_slow) })
    }
}

#[async_trait]
impl Ledger for SlowLedger {
    async fn append(&self, append: Append) -> Result<u64, LedgerError> {
        if self.is_slow.load(Ordering::SeqCst) && append.durability == Durability::Synced {
            sleep(self.takes).await;
        }
        self.memory.append(append).await
    }

    async fn records(&self, run: &Name) -> Result<Vec<Record>, LedgerError> {
        self.memory.records(run).await
    }

    async fn tail(&self, run: &Name, count: u32) -> Result<Vec<Record>, LedgerError> {
        self.memory.tail(run, count).await
    }

    async fn body(&self, sha256: &str) -> Result<Option<Arc<str>>, LedgerError> {
        self.memory.body(sha256).await
    }
}

/// A conversation that keeps who said what, and no stamps: a restart depends on the ledger.
#[derive(Default)]
struct StamplessSubstrate(Mutex<Vec<Turn>>);

#[async_trait]
impl Substrate for StamplessSubstrate {
    fn about(&self) -> About {
        About {
            kind: "talk",
            capabilities: Capabilities::default(),
            keeps: Keeps::Turns,
            lifetime: Lifetime::Process,
            place: "talk".into(),
            conversation: None,
        }
    }

    async fn append(&self, new: NewTurn) -> Result<Appended, substrate::SubstrateError> {
        let mut turns = self.0.lock().expect("not poisoned");
        let id = format!("t{}", turns.len()).as_str().into();
        let NewTurn { participant, content, timestamp, meta, .. } = new;
        let turn = Turn { id, participant, timestamp: timestamp.into(), content, meta, stamp: None };
        turns.push(turn.clone());
        Ok(Appended { turn, fresh: true })
    }

    async fn read(&self, since: Option<&Name>, limit: usize) -> Result<Page, substrate::SubstrateError> {
        let turns = self.0.lock().expect("not poisoned");
        let from =
            since.and_then(|since| turns.iter().position(|turn| turn.id == *since)).map_or(0, |at| at + 1);
        Ok(Page { turns: turns[from..].iter().take(limit).cloned().collect(), known: true })
    }

    async fn window(&self, at: &Name, count: usize) -> Result<Vec<Turn>, substrate::SubstrateError> {
        let turns = self.0.lock().expect("not poisoned");
        let end = turns.iter().position(|turn| turn.id == *at).map_or(0, |at| at + 1);
        Ok(turns[end.saturating_sub(count)..end].to_vec())
    }

    async fn changed(&self) -> Result<(), substrate::SubstrateError> {
        std::future::pending().await
    }
}

/// Ada answers everybody but herself.
struct AlwaysAda;

#[async_trait]
impl Dispatcher for AlwaysAda {
    fn kind(&self) -> &'static str {
        "ada"
    }

    async fn select(&self, input: Input<'_>) -> Result<Vec<Name>, dispatcher::DispatchError> {
        let by_ada = input.trigger().is_some_and(|turn| &*turn.participant == "ada");
        Ok(if by_ada { Vec::new() } else { vec!["ada".into()] })
    }
}

#[async_trait]
impl State for AlwaysAda {
    fn kind(&self) -> &'static str {
        "none"
    }

    async fn read(&self, _: &str) -> Result<Map<String, Json>, StateError> {
        Ok(Map::new())
    }

    async fn write(&self, _: &str, _: &Map<String, Json>) -> Result<(), StateError> {
        Ok(())
    }
}

impl Telemetry for AlwaysAda {
    fn emit(&self, _: &Event) {}
}

fn swarm(talk: &Arc<StamplessSubstrate>, ledger: &Arc<SlowLedger>) -> Arc<Swarm> {
    let participant = Participant {
        id: "ada".into(),
        executor: "scripted".into(),
        display_name: "Ada".into(),
        meta: Map::new(),
        role: "".into(),
        tools: Tools::default(),
    };
    let member =
        Arc::new(ScriptedExecutor::new(|_| Action::Say("I am here.".into(), 5))).into_member_config();
    Arc::new(Swarm {
        runtime: "one".into(),
        substrate: talk.clone(),
        dispatcher: Arc::new(AlwaysAda),
        state: Arc::new(AlwaysAda),
        lifecycles: Vec::new(),
        flags: HookFlags::default(),
        telemetry: Arc::new(AlwaysAda),
        speakers: vec![Speaker { participant, member, prompts: Arc::new(Prompt::default()) }],
        policy: Policy::default(),
        caps: Caps::default(),
        redactor: Redactor::default(),
        ledger: ledger.clone(),
        clock: Arc::new(TickingClock::default()),
    })
}

#[tokio::test(start_paused = true)]
async fn what_is_interrupted_while_it_is_recorded_is_recorded_once() {
    // K5
    for takes in [1, 3, 10] {
        let (talk, ledger) =
            (Arc::new(StamplessSubstrate::default()), SlowLedger::new(Duration::from_secs(takes), true));
        let says = NewTurn {
            participant: "eve".into(),
            content: "Ada?".into(),
            timestamp: "2026-01-01T00:00:00.000Z".into(),
            meta: Map::new(),
            stamp: None,
        };
        talk.append(says).await.expect("appended");
        let mut runner = Runner::open(swarm(&talk, &ledger), Begin::First).await.expect("it opens");
        // Interrupted as by Ctrl-C, while its records wait for the disk.
        tokio::time::timeout(Duration::from_millis(500), runner.cycle()).await.expect_err("it is slow");
        assert_eq!(talk.0.lock().expect("not poisoned").len(), 2);
        runner.close(Duration::from_secs(2)).await.expect("it closes");
        let stream = Runner::stream("one", "talk");
        let records = ledger.records(&stream).await.expect("records");
        for kind in [Kind::Turn, Kind::Consultation] {
            assert_eq!(records.iter().filter(|one| one.is(kind)).count(), 1, "{takes} s: {records:#?}");
        }
        // The next start finds it answered.
        ledger.is_slow.store(false, Ordering::SeqCst);
        let mut next = Runner::open(swarm(&talk, &ledger), Begin::First).await.expect("it opens");
        while next.cycle().await.expect("it goes on") != quorate_kernel::turn::CycleResult::NoNewTurn {}
        next.close(Duration::from_secs(2)).await.expect("it closes");
        assert_eq!(talk.0.lock().expect("not poisoned").len(), 2, "no member is asked again");
    }
}

/// Answers each member's invocation, after this many milliseconds.
fn answering(after_ms: fn(&str) -> u64) -> ScriptedExecutor {
    ScriptedExecutor::new(move |invocation| {
        let answer = match &*invocation.step {
            "adjudicate" => json!({"verdict": "SHIP", "reasoning": "fine"}),
            _ => json!({"would_block": false, "irreducible": false, "score": 4, "findings": []}),
        };
        Action::Say(answer.to_string(), after_ms(&invocation.member))
    })
}

fn council(ledger: &Arc<SlowLedger>, wall: Option<Duration>, executor: ScriptedExecutor) -> RunConfig {
    let setup = Setup {
        deliberators: ["a", "b", "c"].map(Name::from).to_vec(),
        rounds: Rounds::One,
        cross_read: CrossRead::None,
        fail_fast: OnFailure::Continue,
        min_deliberators: 3,
        policy: VerdictPolicy::Seed.into(),
    };
    let executor = Arc::new(executor);
    let members = setup.deliberators.iter().cloned().chain([Name::from(ADJUDICATOR)]);
    let members: BTreeMap<_, _> =
        members.map(|member| (member, executor.clone().into_member_config())).collect();
    RunConfig {
        run: "rslow".into(),
        seed: [7; 32],
        protocol: Box::new(Council::new(setup)),
        members,
        caps: Caps::default(),
        wall,
        redactor: Redactor::default(),
        extensions: Extensions::default(),
        ledger: ledger.clone(),
        clock: Arc::new(TickingClock::default()),
        observer: Arc::new(NoopObserver),
    }
}

fn opening() -> Opening {
    let inputs = vec![Part::new(PartKind::Artifact, "a.md", "Always the fastest.")];
    Opening { opened: RunOpened::default(), inputs }
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_time_is_spent_does_not_wait_for_a_silent_ledger() {
    // X8
    for hangs_after_ms in [0, 1_000] {
        let ledger = SlowLedger::new(Duration::from_secs(100_000), hangs_after_ms == 0);
        let silent = ledger.clone();
        tokio::spawn(async move {
            sleep(Duration::from_millis(hangs_after_ms)).await;
            silent.is_slow.store(true, Ordering::SeqCst);
        });
        let began = Instant::now();
        let stopped = council(&ledger, Some(Duration::from_secs(30)), answering(|_| 2_000))
            .open(opening())
            .await
            .expect_err("no ledger");
        assert!(
            matches!(&stopped, driver::DriverError::Ledger(LedgerError::InDoubt { run, what })
                if &**run == "rslow" && what.contains("`budget.wall`")),
            "{stopped:?}"
        );
        assert!(began.elapsed() < Duration::from_secs(45), "{:?}", began.elapsed());
    }
    // One that is slow and answers is waited for: what the run came to is recorded after its time.
    let ledger = SlowLedger::new(Duration::from_secs(4), true);
    let records = council(&ledger, Some(Duration::from_secs(5)), answering(|_| 2_000))
        .open(opening())
        .await
        .expect("recorded");
    let outcome = records.into_iter().rfind(|record| record.is(Kind::Outcome));
    assert_eq!(outcome.and_then(|record| record.data).expect("decided")["verdict"], "INCOMPLETE");
}

#[tokio::test(start_paused = true)]
async fn the_answer_of_a_model_is_synced_and_another_with_what_follows_from_it() {
    // X7: of three members that answer one after another, two have no consequence yet.
    let one_by_one = |member: &str| {
        if member == "a" {
            1_000
        } else if member == "b" {
            2_000
        } else {
            3_000
        }
    };
    let mut syncs = Vec::new();
    for executor in [answering(one_by_one), answering(one_by_one).as_model()] {
        let ledger = SlowLedger::new(Duration::ZERO, false);
        council(&ledger, None, executor).open(opening()).await.expect("recorded");
        syncs.push(ledger.memory.syncs());
    }
    assert_eq!(syncs[1], syncs[0] + 2);
}
