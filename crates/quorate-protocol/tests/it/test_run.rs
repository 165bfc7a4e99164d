//! A sitting: an assembly's protocol with everything that it has asked for, for tests that play world.

#![allow(dead_code, reason = "each of the tests that share it needs its own part")]

use std::collections::BTreeMap;
use std::sync::Arc;

use quorate_manifest::assembly::RiskLabel;
use quorate_manifest::assembly::{MatchMode, Mode};
use quorate_protocol::assembly::{AssemblyRequest, Member, Overlays, RiskLevel, Rule, Setup, subject_kind};
use quorate_protocol::locks::LockedTrait;
use quorate_protocol::modes::assembly::Assembly;
use quorate_protocol::{
    AbsenceReason, ApplyRule, Command, ConsultationResult, Event, Fact, FactKind, Gather, Invoke, Json, Name,
    Part, PartKind, Protocol, SemanticMatch, TimedEvent,
};
use serde_json::json;

/// When every sitting is opened.
pub(crate) const OPENED_MS: i64 = 1_800_000_000_000;

/// A protocol, and its commands that have no event yet.
pub(crate) struct TestRun {
    protocol: Assembly,
    /// Questions that are out, by id.
    pub(crate) out: BTreeMap<Name, Invoke>,
    /// All questions, in the order in which they were asked.
    pub(crate) asked: Vec<Invoke>,
    pub(crate) gathers: Vec<Gather>,
    pub(crate) applies: Vec<ApplyRule>,
    pub(crate) matches: Vec<SemanticMatch>,
    pub(crate) cancelled: Vec<Name>,
    pub(crate) facts: Vec<Fact>,
    pub(crate) finished: bool,
    /// The time of the next event.
    pub(crate) at_ms: i64,
}

impl TestRun {
    /// Opens a run with a text to deliberate on.
    pub(crate) fn open(setup: &Setup, run: &str, text: &str) -> Self {
        let mut sitting = TestRun {
            protocol: Assembly::new(setup.clone()).expect("the traits of a test can be matched"),
            out: BTreeMap::new(),
            asked: Vec::new(),
            gathers: Vec::new(),
            applies: Vec::new(),
            matches: Vec::new(),
            cancelled: Vec::new(),
            facts: Vec::new(),
            finished: false,
            at_ms: OPENED_MS,
        };
        let part = Part::new(subject_kind(setup.mode), "subject.md", text);
        sitting.feed(Event::Opened {
            run: run.into(),
            inputs: vec![part],
            priors: Vec::new(),
            overlays: Vec::new(),
        });
        sitting
    }

    /// Feeds an event and takes what follows.
    pub(crate) fn feed(&mut self, event: Event) {
        let finished = self.finished;
        for command in self.protocol.advance(&TimedEvent { at_ms: self.at_ms, event }) {
            assert!(!finished, "nothing follows once it is over: {command:?}");
            assert!(!self.finished, "Finish is the last command, and {command:?} comes after it");
            match command {
                Command::Gather(gather) => self.gathers.push(gather),
                Command::Invoke(invoke) => {
                    let before = self.out.insert(invoke.id.clone(), invoke.clone());
                    assert!(before.is_none(), "{} is asked while it is out", invoke.id);
                    self.asked.push(invoke);
                }
                Command::Cancel(id) => {
                    self.out.remove(&id);
                    self.cancelled.push(id);
                }
                Command::SemanticMatch(one) => self.matches.push(one),
                Command::ApplyRule(apply) => self.applies.push(apply),
                Command::Record(fact) => self.facts.push(fact),
                Command::Finish => self.finished = true,
            }
        }
    }

    /// Ends an invocation. An answer to one that is not pending is fed all the same: it must change nothing.
    pub(crate) fn consulted(&mut self, id: &str, result: ConsultationResult) {
        self.out.remove(id);
        self.feed(Event::Consulted { id: id.into(), result });
    }

    /// Feeds an answer.
    pub(crate) fn answer(&mut self, id: &str, answer: Json) {
        self.consulted(id, ConsultationResult::Answered(answer));
    }

    /// Ends an invocation without output.
    pub(crate) fn give_no_answer(&mut self, id: &str) {
        self.consulted(id, ConsultationResult::Absent(AbsenceReason::TimedOut));
    }

    /// A custom rule was applied.
    pub(crate) fn rule_applied(&mut self, ticket: &str, result: Result<Json, &str>) {
        self.applies.retain(|apply| *apply.ticket != *ticket);
        self.feed(Event::RuleApplied { ticket: ticket.into(), result: result.map_err(Arc::from) });
    }

    /// The outcome's body. It has to be there.
    pub(crate) fn outcome(&self) -> &Json {
        let outcome = self.facts.iter().find(|fact| fact.kind == FactKind::Outcome);
        let outcome = &outcome.expect("there is an outcome").data;
        assert!(self.finished, "an outcome comes with Finish");
        outcome
    }

    /// What the run came to, whole.
    pub(crate) fn artifact(&self) -> Option<&Json> {
        self.protocol.artifact()
    }

    pub(crate) fn version(&self) -> &'static str {
        self.protocol.version()
    }

    /// A text of the outcome.
    pub(crate) fn word(&self, key: &str) -> &str {
        self.outcome()[key].as_str().unwrap_or_default()
    }

    /// The bodies of the facts of a kind.
    pub(crate) fn recorded(&self, kind: FactKind) -> Vec<&Json> {
        self.facts.iter().filter(|fact| fact.kind == kind).map(|fact| &fact.data).collect()
    }

    /// The ids that were asked, in order.
    pub(crate) fn asked_ids(&self) -> Vec<&str> {
        self.asked.iter().map(|invoke| &*invoke.id).collect()
    }
}

/// The text of a part that a question carries.
pub(crate) fn part(invoke: &Invoke, kind: PartKind) -> Option<Json> {
    let part = invoke.parts.iter().find(|part| part.kind == kind)?;
    Some(serde_json::from_str(&part.text).expect("typed parts are JSON"))
}

/// A setup of no members and no rules.
pub(crate) fn setup(mode: Mode, request: AssemblyRequest) -> Setup {
    Setup {
        assembly: "board".into(),
        mode,
        members: Vec::new(),
        rules: Vec::new(),
        risk_levels: levels(&[
            (0, 2, RiskLabel::Ok),
            (3, 4, RiskLabel::Watch),
            (5, 8, RiskLabel::Intervene),
            (9, 10, RiskLabel::Escalate),
        ]),
        locked_traits: Vec::new(),
        match_mode: MatchMode::Substring,
        embeds: false,
        overlays: Overlays { enabled: true, max_active: 10, default_ttl: "P14D".to_owned() },
        operators: vec![String::new()],
        refs: serde_json::Map::new(),
        request,
        early_decision: false,
    }
}

/// A map of risk.
pub(crate) fn levels(levels: &[(u8, u8, RiskLabel)]) -> Vec<RiskLevel> {
    levels
        .iter()
        .map(|(lowest, highest, label)| RiskLevel { lowest: *lowest, highest: *highest, label: *label })
        .collect()
}

/// A member without anything particular.
pub(crate) fn member(id: &str) -> Member {
    Member {
        id: id.into(),
        role: id.to_owned(),
        phase: None,
        triggers: None,
        weight: None,
        vote_class: None,
        parent: None,
        strategy: "working-memory".into(),
        params: serde_json::Map::new(),
        layer: 0,
    }
}

/// A rule; `applies_to` of `None` is everybody.
pub(crate) fn rule(id: &str, kind: &str, applies_to: Option<&[&str]>, params: Json) -> Rule {
    Rule {
        id: id.into(),
        kind: kind.into(),
        applies_to: applies_to.map(|ids| ids.iter().map(|id| Name::from(*id)).collect()),
        params: params.as_object().cloned().unwrap_or_default(),
    }
}

/// A trait that no outcome may have.
pub(crate) fn locked(text: &str) -> LockedTrait {
    LockedTrait::plain(text)
}

/// An assessment.
pub(crate) fn advice(severity: u8, concern: &str, evidence: &[&str], suggestion: &str) -> Json {
    json!({"severity": severity, "concern": concern, "evidence": evidence, "suggestion": suggestion})
}

/// All orders of so many things.
pub(crate) fn orders(many: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    for next in 0..many {
        let with = |order: &Vec<usize>| {
            let order = order.clone();
            (0..=order.len()).map(move |at| {
                let mut longer = order.clone();
                longer.insert(at, next);
                longer
            })
        };
        orders = orders.iter().flat_map(with).collect();
    }
    orders
}
