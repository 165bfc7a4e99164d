//! Assembly runs: 5 and 500 members whose answers are there at once, in memory and durable, 100 boards side by side, and a
//! hierarchy of uneven branches. Beside the durable board stands a floor: the same number of syncs of the same engine,
//! written by hand.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use quorate_kernel::attempts::MemberConfig;
use quorate_kernel::attempts::object;
use quorate_kernel::budget::Caps;
use quorate_kernel::clock::System;
use quorate_kernel::driver::{Opening, RunConfig};
use quorate_kernel::entropy;
use quorate_kernel::extensions::Extensions;
use quorate_kernel::observer::NoopObserver;
use quorate_kernel::ports::executor::{About, Executor, Failure, Invocation, Reply};
use quorate_kernel::ports::ledger::{Append, Durability, Entry, Kind, Ledger};
use quorate_kernel::record::RunOpened;
use quorate_kernel::redact::Redactor;
use quorate_ledger::Store;
use quorate_protocol::assembly::{AssemblyRequest, Member, Overlays, Rule, Setup};
use quorate_protocol::modes::assembly::Assembly;
use quorate_protocol::{Json, Name, Part, PartKind};
use quorate_testkit::memory::Memory;
use serde_json::{Map, json};

use crate::process::middle;
use crate::table::Measure;
use crate::{Bench, Failure as Broken};

const TEXT: &str = "# A second region\n\nResolution: open it.\n";
const LEAF: Duration = Duration::from_millis(60);

/// Answers at once, or after as long as the member's id says.
struct Ready {
    answer: String,
}

#[async_trait]
impl Executor for Ready {
    fn about(&self) -> About {
        About { kind: "ready", asks_a_model: false, model: None }
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let waits = invocation.member.split('-').nth(1).and_then(|units| units.parse::<u32>().ok());
        if let Some(units) = waits {
            tokio::time::sleep(LEAF * units).await;
        }
        Ok(Reply { text: self.answer.clone(), ..Reply::default() })
    }
}

pub(super) fn measure(bench: &mut Bench) -> Result<(), Broken> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let micros = |us: u64| Measure::Time(Duration::from_micros(us));
    let in_memory = |members: usize, times: usize| -> Result<Duration, Broken> {
        let mut all = Vec::new();
        for _ in 0..times {
            all.push(runtime.block_on(hold(board(members), Arc::new(Memory::new())))?);
        }
        Ok(middle(all))
    };
    let (five, many) = (in_memory(5, 301)?, in_memory(500, 31)?);
    bench.table.limited("vote of 5 members and synthesis, in memory", Measure::Time(five), micros(60));
    bench.table.limited("vote of 500 members and synthesis, in memory", Measure::Time(many), micros(3_000));
    let mut hundreds = Vec::new();
    for _ in 0..21 {
        let ledger: Arc<dyn Ledger> = Arc::new(Memory::new());
        let all = (0..100).map(|_| run_setup(board(5), ledger.clone())).collect::<Result<Vec<_>, _>>()?;
        let start = Instant::now();
        let all = all.into_iter().map(|(config, opening)| config.open(opening));
        runtime.block_on(futures::future::try_join_all(all))?;
        hundreds.push(start.elapsed() / 100);
    }
    let each = middle(hundreds);
    bench.table.limited("100 boards of 5 at once, in memory, each", Measure::Time(each), micros(100));
    let dir = bench.place.dir("assemblies")?;
    let (durable, syncs, floor) = runtime.block_on(durable(&dir, 5, 61))?;
    bench.table.limited("vote of 5 members, durable: syncs", Measure::Count(syncs), Measure::Count(3));
    let limit = Measure::Time(floor.mul_f64(1.3));
    bench.table.limited(
        "  its time, against 1.3 x the floor of as many syncs",
        Measure::Time(durable),
        limit,
    );
    let (durable, ..) = runtime.block_on(durable_of(&dir, 500, 21))?;
    bench.table.limited("vote of 500 members, durable", Measure::Time(durable), micros(25_000));
    let (took, path) = runtime.block_on(uneven())?;
    let limit = Measure::Time(path.mul_f64(1.02));
    bench.table.limited(
        "hierarchy of uneven branches, against 1.02 x its critical path",
        Measure::Time(took),
        limit,
    );
    Ok(())
}

/// One durable board after the other, and the floor: appends by hand with as many syncs.
async fn durable(dir: &Path, members: usize, times: usize) -> Result<(Duration, u64, Duration), Broken> {
    let (took, syncs) = durable_of(dir, members, times).await?;
    let store = Arc::new(Store::open(&dir.join(format!("floor-{members}.db"))).await?.store);
    let mut floor = Vec::new();
    for _ in 0..times {
        let run = entropy::run_id();
        let start = Instant::now();
        let mut next = 0;
        for at in 0..syncs {
            let kind = if at == 0 { Kind::RunOpened } else { Kind::Consultation };
            let data =
                object(json!({"invocation": "ask/m", "status": "answered", "answer": {"vote": "yes"}}));
            let entries = vec![Entry { kind, at_ms: 0, data }];
            let append = Append {
                run: run.clone(),
                from: next,
                entries,
                bodies: Vec::new(),
                durability: Durability::Synced,
            };
            next = store.append(append).await?;
        }
        floor.push(start.elapsed());
    }
    Ok((took, syncs, middle(floor)))
}

async fn durable_of(dir: &Path, members: usize, times: usize) -> Result<(Duration, u64), Broken> {
    let store = Arc::new(Store::open(&dir.join(format!("board-{members}.db"))).await?.store);
    let counted = Arc::new(Memory::new());
    hold(board(members), counted.clone()).await?;
    let mut all = Vec::new();
    for _ in 0..times {
        all.push(hold(board(members), store.clone()).await?);
    }
    Ok((middle(all), u64::from(counted.syncs())))
}

/// A root over two branches: one deep and quick, one shallow and slow. Members named `x-<n>` take n units.
async fn uneven() -> Result<(Duration, Duration), Broken> {
    let tree = [
        ("root-1", ""),
        ("deep-1", "root-1"),
        ("deeper-1", "deep-1"),
        ("leaf-1", "deeper-1"),
        ("slow-2", "root-1"),
        ("quick-1", "root-1"),
    ];
    let members = tree.iter().map(|(id, parent)| Member {
        parent: (!parent.is_empty()).then(|| Name::from(*parent)),
        ..member(id)
    });
    let mut setup = board(0);
    setup.mode = quorate_manifest::assembly::Mode::Hierarchy;
    setup.request = AssemblyRequest::Hierarchy;
    setup.members = members.collect();
    setup.rules = vec![rule("escalate-on-severity", Map::new())];
    Ok((hold(setup, Arc::new(Memory::new())).await?, LEAF * 4))
}

fn member(id: &str) -> Member {
    Member {
        id: id.into(),
        role: "Member".to_owned(),
        phase: None,
        triggers: None,
        weight: Some("1".to_owned()),
        vote_class: None,
        parent: None,
        strategy: "working-memory".into(),
        params: Map::new(),
        layer: 0,
    }
}

fn rule(kind: &str, params: Map<String, Json>) -> Rule {
    Rule { id: "rule".into(), kind: kind.into(), applies_to: None, params }
}

fn board(members: usize) -> Setup {
    Setup {
        assembly: "bench".into(),
        mode: quorate_manifest::assembly::Mode::Voting,
        members: (0..members).map(|at| member(&format!("m{at}"))).collect(),
        rules: vec![rule("majority", Map::new())],
        risk_levels: Vec::new(),
        locked_traits: Vec::new(),
        match_mode: quorate_manifest::assembly::MatchMode::Substring,
        embeds: false,
        overlays: Overlays { enabled: true, max_active: 10, default_ttl: "P14D".to_owned() },
        operators: vec![String::new()],
        refs: Map::new(),
        request: AssemblyRequest::Voting { class: None },
        early_decision: false,
    }
}

/// Holds a run and says how long it took, from its opening to its outcome.
async fn hold(setup: Setup, ledger: Arc<dyn Ledger>) -> Result<Duration, Broken> {
    let (config, opening) = run_setup(setup, ledger)?;
    let start = Instant::now();
    config.open(opening).await?;
    Ok(start.elapsed())
}

/// Everything that a run starts from.
fn run_setup(setup: Setup, ledger: Arc<dyn Ledger>) -> Result<(RunConfig, Opening), Broken> {
    let advice = json!({"severity": 3, "concern": "c", "evidence": ["e"], "suggestion": "s"});
    let vote = json!({"vote": "yes", "rationale": "It is fine."});
    let answer = if setup.request == AssemblyRequest::Hierarchy { advice } else { vote };
    let executor: Arc<dyn Executor> = Arc::new(Ready { answer: answer.to_string() });
    let member_config = MemberConfig {
        executor,
        executor_name: "ready".into(),
        timeout: Duration::from_secs(30),
        retries: 0,
        stand_ins: Arc::default(),
        samples: 1,
        role: "You are a member.".into(),
        persona: None,
        context: Vec::new(),
        weight: None,
        extra_fields: serde_json::Map::new(),
        conversation: None,
        shared: None,
    };
    let members: BTreeMap<Name, MemberConfig> =
        setup.members.iter().map(|member| (member.id.clone(), member_config.clone())).collect();
    let part = Part::new(quorate_protocol::assembly::subject_kind(setup.mode), "p.md", TEXT);
    debug_assert!(PartKind::SUBJECTS.contains(&part.kind));
    let opened = RunOpened { setup: json!(setup), ..RunOpened::default() };
    let config = RunConfig {
        run: entropy::run_id(),
        seed: [7; 32],
        protocol: Box::new(Assembly::new(setup)?),
        members,
        caps: Caps::default(),
        wall: None,
        redactor: Redactor::default(),
        extensions: Extensions::default(),
        ledger,
        clock: Arc::new(System),
        observer: Arc::new(NoopObserver),
    };
    Ok((config, Opening { opened, inputs: vec![part] }))
}
