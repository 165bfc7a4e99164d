//! The world of a simulated assembly: its setup, its extensions and its members, all from one seed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorate_kernel::budget::Caps;
use quorate_kernel::driver::{Error, Opening, RunConfig};
use quorate_kernel::history::History;
use quorate_kernel::member_config::MemberConfig;
use quorate_kernel::observer::NoopObserver;
use quorate_kernel::record::RunOpened;
use quorate_kernel::redact::Redactor;
use quorate_manifest::assembly::synthesis::RiskLabel;
use quorate_manifest::assembly::{MatchMode, Mode};
use quorate_protocol::assembly::{
    AssemblyRequest, Member, Overlays, RiskLevel, SENTINEL, Setup, subject_kind,
};
use quorate_protocol::locks::Trait;
use quorate_protocol::modes::assembly::Assembly;
use quorate_protocol::{Name, Part};
use serde_json::{Map, json};

use super::script::Infection;
use super::{CLASS, LOCKED, extensions, pick, rules, script};
use crate::clock::JumpingClock;
use crate::faults::CrashingLedger;
use crate::rng::Rng;
use crate::scripted::ScriptedExecutor;

/// Everything that a seed determines before the first step.
pub(super) struct World {
    pub(super) seed: u64,
    pub(super) setup: Setup,
    pub(super) cap: Option<u32>,
    pub(super) wall: Option<Duration>,
    pub(super) run: Name,
    pub(super) infection: Option<Infection>,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::from_seed_and_name(seed, "world");
        let rng = &mut rng;
        let mode = [Mode::Advisory, Mode::Voting, Mode::Peer, Mode::Hierarchy][pick(rng, 4)];
        let many = pick(rng, 8) + 1;
        let ids: Vec<Name> = (0..many).map(|number| format!("m{number}").into()).collect();
        let members: Vec<Member> = (0..many).map(|number| member(rng, mode, number)).collect();
        let locks = rng.percent(60);
        let semantic = locks && rng.percent(30);
        let trait_of = |text: &str| Trait { text: text.to_owned(), declared: MatchMode::Substring };
        let setup = Setup {
            assembly: "simulated".into(),
            mode,
            rules: rules::random_rules(rng, mode, &ids),
            members,
            risk_levels: risk_levels(),
            locked_traits: if locks { LOCKED.map(trait_of).to_vec() } else { Vec::new() },
            match_mode: if semantic { MatchMode::Semantic } else { MatchMode::Substring },
            embeds: semantic && rng.percent(80),
            overlays: Overlays {
                enabled: rng.percent(90),
                max_active: 3,
                default_ttl: ["P14D", "P1Y", "PT1H", "P1M"][pick(rng, 4)].to_owned(),
            },
            operators: vec!["one".to_owned(), "two".to_owned()],
            refs: Map::new(),
            request: request(rng, mode),
            early_decision: rng.percent(40),
        };
        let cap = rng.percent(20).then(|| u32::try_from(rng.below(20)).unwrap_or(0) + 1);
        let wall = rng.percent(10).then(|| Duration::from_millis(rng.below(8_000)));
        let run = format!("rsimulated{:02}", seed % 100).into();
        World { seed, setup, cap, wall, run, infection: None }
    }

    /// The same world with only what the votes depend on: no budgets, no early end, and no embedder, which might fail at one
    /// text and not at another.
    pub(super) fn patient(seed: u64) -> Self {
        let mut world = World::new(seed);
        world.cap = None;
        world.wall = None;
        world.setup.early_decision = false;
        world.setup.embeds = false;
        world
    }

    pub(super) fn mode_word(&self) -> &'static str {
        match self.setup.mode {
            Mode::Advisory => "advisory",
            Mode::Voting => "voting",
            Mode::Peer => "peer",
            Mode::Hierarchy => "hierarchy",
        }
    }

    /// The subject of the assembly.
    pub(super) fn inputs(&self) -> Vec<Part> {
        let (name, text) = match self.setup.mode {
            Mode::Advisory => ("talk.md", "user: Am I right?\nassistant: You are always right.\n"),
            Mode::Voting => ("p.md", "# Spend it\n\nResolution: we spend it.\n"),
            Mode::Peer => ("t.md", "Which style?\n"),
            Mode::Hierarchy => ("r.md", "How is it going?\n"),
        };
        vec![Part::new(subject_kind(self.setup.mode), name, text)]
    }

    /// One process's work: opens the run, or resumes it. Each process has a clock of its own.
    pub(super) async fn session(
        &self,
        ledger: &Arc<CrashingLedger>,
        history: Option<History>,
        calls: &Arc<Mutex<Vec<(String, u32)>>>,
        life: usize,
    ) -> Result<(), Error> {
        let config = RunConfig {
            run: self.run.clone(),
            seed: [7; 32],
            protocol: Box::new(Assembly::new(self.setup.clone()).expect("the traits are plain texts")),
            members: self.member_configs(calls),
            caps: Caps { calls: self.cap, ..Caps::default() },
            wall: self.wall,
            redactor: Redactor::default(),
            extensions: extensions::flaky_extensions(self.seed, self.setup.embeds),
            ledger: ledger.clone(),
            clock: Arc::new(JumpingClock::new(self.seed ^ (life as u64) << 32)),
            observer: Arc::new(NoopObserver),
        };
        match history {
            None => {
                let opened = RunOpened { setup: json!(self.setup), ..RunOpened::default() };
                let opening = Opening { opened, inputs: self.inputs() };
                config.open(opening).await.map(|_| ())
            }
            Some(history) => config.resume(&history, self.inputs(), Vec::new()).await.map(|_| ()),
        }
    }

    fn member_configs(&self, calls: &Arc<Mutex<Vec<(String, u32)>>>) -> BTreeMap<Name, MemberConfig> {
        let (seed, infection) = (self.seed, self.infection.clone());
        let action = move |invocation: &_| script::action(seed, infection.as_ref(), invocation);
        let executor = Arc::new(ScriptedExecutor::new(action).with_call_log(calls.clone()));
        self.setup
            .members
            .iter()
            .map(|member| (member.id.clone(), executor.clone().into_member_config()))
            .collect()
    }
}

fn member(rng: &mut Rng, mode: Mode, number: usize) -> Member {
    let mut member = Member {
        id: format!("m{number}").into(),
        role: "role".to_owned(),
        phase: None,
        triggers: None,
        weight: None,
        vote_class: None,
        parent: None,
        strategy: if rng.percent(20) { extensions::GATHER } else { "working-memory" }.into(),
        params: Map::new(),
        layer: 0,
    };
    match mode {
        Mode::Advisory => {
            let phases = [Some("session"), Some("session"), Some(SENTINEL), None];
            member.phase = phases[pick(rng, 4)].map(str::to_owned);
            let triggers = [None, None, Some(vec!["manual"]), Some(vec!["sample", "sentinel-match"])];
            let triggers = triggers[pick(rng, 4)].clone();
            member.triggers = triggers.map(|all| all.into_iter().map(str::to_owned).collect());
        }
        Mode::Voting => {
            let weights = [None, Some("1"), Some("0.1"), Some("0.2"), Some("0.3"), Some("1.5")];
            member.weight = weights[pick(rng, 6)].map(str::to_owned);
            let classes = [None, None, None, Some(vec![CLASS]), Some(vec!["another"]), Some(Vec::new())];
            let classes = classes[pick(rng, 6)].clone();
            member.vote_class = classes.map(|all| all.into_iter().map(str::to_owned).collect());
        }
        Mode::Peer => {}
        // A tree: every member but the first reports to an earlier one.
        Mode::Hierarchy => member.parent = (number > 0).then(|| format!("m{}", pick(rng, number)).into()),
    }
    member
}

fn request(rng: &mut Rng, mode: Mode) -> AssemblyRequest {
    match mode {
        Mode::Advisory => AssemblyRequest::Advisory {
            phase: ["session", "session", SENTINEL, "standing"][pick(rng, 4)].to_owned(),
            trigger: ["manual", "sample"][pick(rng, 2)].to_owned(),
            sentinel_first: rng.percent(50),
        },
        Mode::Voting => AssemblyRequest::Voting { class: rng.percent(80).then(|| CLASS.to_owned()) },
        Mode::Peer => AssemblyRequest::Peer { rounds: rng.percent(20).then_some(2) },
        Mode::Hierarchy => AssemblyRequest::Hierarchy,
    }
}

/// A map of levels with a gap.
fn risk_levels() -> Vec<RiskLevel> {
    let level = |(lowest, highest, label)| RiskLevel { lowest, highest, label };
    [
        (0, 2, RiskLabel::Ok),
        (3, 4, RiskLabel::Watch),
        (6, 8, RiskLabel::Intervene),
        (9, 10, RiskLabel::Escalate),
    ]
    .map(level)
    .to_vec()
}
