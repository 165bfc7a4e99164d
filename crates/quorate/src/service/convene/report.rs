//! The report of an assembly's run, from its records alone: the members with their questions, and the share of yes
//! votes that the rules ask for.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_kernel::attempts::Cost;
use quorate_kernel::history::{History, replay as derive};
use quorate_kernel::ports::executor::Usage;
use quorate_kernel::ports::ledger::Kind;
use quorate_kernel::record::{self, Outcome, Status};
use quorate_manifest::assembly::{Grouping, Mode};
use quorate_protocol::Json;
use quorate_protocol::assembly::{self, AssemblyRequest, Rule, Setup};
use quorate_protocol::rules::{class_warnings, votes};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use super::super::error::Error;
use super::super::finalize::drops_answers_at_end;
use super::super::member_usage::{Failure, MemberUsage, RecordedAnswers, with_usage};
use super::super::report::QUEUED_NOTE;
use super::super::run_opened;
use super::super::session::LedgerSession;
use super::{budget, spec};

pub use quorate_kernel::record::{
    AppliedRule, Contribution, CountedVote, ExactRatio, Fragment, Message, Node, Objection, Risk, Rollup,
    Violation, VoteCount,
};

/// The version of the JSON that `convene` prints.
pub const SCHEMA: &str = "quorate.convene/v1";

/// The outcome of an assembly's run in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AssemblyVerdict {
    /// A vote passed.
    Pass,
    /// A vote failed.
    Fail,
    /// Guidance, a discussion or an assessment was completed.
    Done,
    /// The outcome touches a locked trait.
    Refused,
    /// Answers are missing; the run can be resumed.
    Incomplete,
}

impl AssemblyVerdict {
    /// The word in lower case, as records have it.
    pub fn as_str(self) -> &'static str {
        match self {
            AssemblyVerdict::Pass => "pass",
            AssemblyVerdict::Fail => "fail",
            AssemblyVerdict::Done => "done",
            AssemblyVerdict::Refused => "refused",
            AssemblyVerdict::Incomplete => "incomplete",
        }
    }
}

/// The report of an assembly's run, finished or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The run's id in the ledger.
    pub run: String,
    /// The time of opening, in milliseconds since the Unix epoch.
    pub opened_ms: i64,
    /// The assembly's name.
    pub assembly: String,
    /// The assembly's title.
    pub title: String,
    /// The mode.
    pub mode: Mode,
    /// The request to the mode.
    pub request: AssemblyRequest,
    /// The subject: a path, or `-`.
    pub subject: String,
    /// `None` while the run is undecided.
    pub verdict: Option<AssemblyVerdict>,
    /// A stable word for the reason, if there is one: `no_voters`, `locked`, `budget_exhausted`, …
    pub code: Option<String>,
    /// The reason in a sentence, where the verdict alone does not explain itself.
    pub because: Option<String>,
    /// The members that were asked and gave no output.
    pub missing: Vec<String>,
    /// Advisory and voting: whether a rule ended the synthesis.
    pub terminal: bool,
    /// Advisory and hierarchy: the severity.
    pub risk: Option<Risk>,
    /// Advisory and hierarchy: whether to call a human.
    pub should_escalate: Option<bool>,
    /// Advisory: the operators whose prompts the guidance goes into; one empty name if none is configured.
    pub operators: Vec<String>,
    /// Advisory: the guidance.
    pub fragments: Vec<Fragment>,
    /// Voting: the decision.
    pub decision: Option<VoteCount>,
    /// Peer: the delivered messages, in order.
    pub messages: Vec<Message>,
    /// Peer: the number of rounds, and what ended the exchange.
    pub rounds: Option<(u64, String)>,
    /// Peer: the topology: `fully-connected`, `ring`, `star` or `peers`.
    pub topology: Option<String>,
    /// Peer: members whose objection stands.
    pub objecting: Vec<String>,
    /// Peer: each member's last objection.
    pub objections: Vec<Objection>,
    /// Peer: outputs of custom rules on the log.
    pub synthesis: Map<String, Json>,
    /// Hierarchy: the root's report.
    pub rollup: Option<Rollup>,
    /// Hierarchy: every node, in roster order.
    pub nodes: Vec<Node>,
    /// All members with all their questions, in the manifest's display order.
    pub members: Vec<Member>,
    /// The declared rules, in order.
    pub declared_rules: Vec<assembly::Rule>,
    /// The applied rules, in order.
    pub rules: Vec<AppliedRule>,
    /// Refused guidance, in order.
    pub violations: Vec<Violation>,
    /// Whether outcomes are stored; otherwise the record has only the hash (D8).
    pub kept: bool,
    /// The arguments that commands about this run need besides its id, relative to the caller's directory:
    /// ` --ledger FILE`, or nothing.
    pub ledger_flag: String,
    /// Whether it comes from another ledger, the only one that can resume it.
    pub imported: bool,
    /// Whether it is a task of the queue, which its workers continue.
    pub queued: bool,
    /// The names of the executors.
    pub executor: String,
    /// Whether a model was asked.
    pub model_asked: bool,
    /// The note if no model was asked: the answers were recorded before, or recordings are missing.
    pub recorded: Option<String>,
    /// The number of calls.
    pub calls: u32,
    /// The cost of these calls, as far as known.
    pub usage: Usage,
    /// The executor of each member, and the cost of its answers.
    pub member_usage: Vec<MemberUsage>,
    /// Working time.
    pub took: Duration,
    /// Notes, besides whether a model was asked.
    pub notes: Vec<String>,
}

/// The report of a run.
///
/// # Errors
/// If texts that it is derived from were erased, or another version of the mode wrote it.
#[crate::boxed]
pub async fn load(session: &LedgerSession, history: &History) -> Result<Decision, Error> {
    let setup = run_opened::assembly_setup(history).ok_or_else(|| run_opened::unknown_version(history))?;
    // If only the hash of an outcome is stored, the outcome is derived again from the answers.
    let kept = setup.overlays.enabled || history.outcome().is_none() || history.erased.records > 0;
    let artifact = match kept {
        true => None,
        false => {
            let mut protocol = spec::assembly(&setup)?;
            derive(history, session.load_inputs(history).await?, &mut protocol);
            protocol.artifact().and_then(Json::as_object).cloned()
        }
    };
    let mut report = Decision::read(history, &setup, artifact);
    report.ledger_flag = session.ledger_flag().to_owned();
    report.imported = session.store.is_imported(&history.run).await?;
    let open = report.verdict.is_none_or(|verdict| verdict == AssemblyVerdict::Incomplete);
    if open && report.queued {
        report.notes.push(QUEUED_NOTE.to_owned());
    } else if open && !report.imported && history.erased.records == 0 {
        let resume = format!("quorate resume {}{}", report.run, report.ledger_flag);
        report.notes.push(match drops_answers_at_end(history) && report.verdict.is_some() {
            true => {
                "This assembly keeps no answers, so the run cannot be resumed: convene it again.".to_owned()
            }
            false => budget::resume_note(session.workspace.config.budget.wall, history, &resume),
        });
    }
    report.add_counts(history);
    Ok(report)
}

/// A7: members in the order of the manifest's `display.defaultGrouping`, ties in roster order.
fn group_members(history: &History, mut members: Vec<Member>) -> Vec<Member> {
    let grouping = history.opened.grouping.clone().and_then(|word| serde_json::from_value(word).ok());
    match grouping {
        Some(Grouping::Phase) => members.sort_by(|a, b| a.phase.cmp(&b.phase)),
        Some(Grouping::Role) => members.sort_by(|a, b| a.role.cmp(&b.role)),
        Some(Grouping::Severity) => {
            let severity =
                |member: &Member| member.answer().and_then(|answer| answer.get("severity")?.as_u64());
            members.sort_by_key(|member| std::cmp::Reverse(severity(member)));
        }
        None => {}
    }
    members
}

impl Decision {
    /// The report of a run from its records alone; `None` if another version of the mode wrote it.
    pub fn of(history: &History) -> Option<Decision> {
        let mut report = Decision::read(history, &run_opened::assembly_setup(history)?, None);
        report.add_counts(history);
        Some(report)
    }

    /// Adds the notes on recorded and erased answers.
    fn add_counts(&mut self, history: &History) {
        if let found @ 1.. = history.opened.redactions {
            let places = if found == 1 { "place" } else { "places" };
            self.notes.push(format!(
                "Not judged: what looks like a secret, in {found} {places}; members do not see it."
            ));
        }
        self.notes.extend(RecordedAnswers::count(history).note());
        self.notes.extend(crate::service::report::erased_note(history));
    }

    fn read(history: &History, setup: &Setup, artifact: Option<Map<String, Json>>) -> Decision {
        let mut outcome = history.outcome_data().cloned().unwrap_or_default();
        outcome.extend(artifact.into_iter().flatten());
        let outcome: Outcome = record::read(&outcome).unwrap_or_default();
        let opened = &history.opened;
        let recorded = RecordedAnswers::count(history);
        let model_asked = opened.asks_a_model() && !recorded.all();
        let violations = history.facts.iter().filter(|(kind, _)| kind == Kind::Violation.as_str());
        Decision {
            run: history.run.to_string(),
            opened_ms: history.opened_ms,
            assembly: setup.assembly.to_string(),
            title: opened.title.clone().unwrap_or_default(),
            mode: setup.mode,
            request: setup.request.clone(),
            subject: opened.subject.clone().unwrap_or_default(),
            // A word of another version counts as no verdict.
            verdict: outcome.verdict.and_then(|word| serde_json::from_value(Json::String(word)).ok()),
            code: outcome.code,
            because: outcome.because,
            missing: outcome.missing,
            terminal: outcome.terminal.unwrap_or_default(),
            risk: outcome.risk,
            should_escalate: outcome.should_escalate,
            operators: setup.operators.clone(),
            fragments: outcome.fragments,
            decision: outcome.decision,
            messages: outcome.messages,
            rounds: outcome.rounds.map(|rounds| (rounds, outcome.ended_by.unwrap_or_default())),
            topology: outcome.topology,
            objecting: outcome.objecting,
            objections: outcome.objections,
            synthesis: outcome.synthesis,
            rollup: outcome.rollup,
            nodes: outcome.nodes,
            members: group_members(history, Member::all(&setup.members, history)),
            declared_rules: setup.rules.clone(),
            rules: outcome.rules,
            violations: violations.map(|(_, data)| record::read(data).unwrap_or_default()).collect(),
            kept: setup.overlays.enabled,
            ledger_flag: String::new(),
            imported: false,
            queued: history.opened.queued.is_some(),
            executor: opened.executor_names(),
            model_asked,
            recorded: recorded.headline().filter(|_| !model_asked),
            calls: history.calls,
            usage: history.usage,
            member_usage: MemberUsage::all(history, setup.members.iter().map(|member| &*member.id)),
            took: history.wall,
            notes: outcome.notes,
        }
    }

    /// Whether an asked member gave no output (X12).
    pub fn partial(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Rules without the effect that their author might expect.
    pub fn class_warnings(&self) -> Vec<String> {
        let members = self.members.iter().map(|one| (&*one.id, one.classes.as_deref()));
        class_warnings(&self.request, &self.declared_rules, members)
    }

    /// All notes; first the ones about a missing model and missing members.
    pub fn all_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.model_asked {
            notes.push(match &self.recorded {
                Some(recorded) => format!("{recorded}."),
                None => {
                    format!("No model was asked: the answers come from the `{}` executor.", self.executor)
                }
            });
        }
        notes.extend(self.class_warnings());
        if self.partial() {
            notes.push(format!("Partial: no output from {}.", self.missing.join(", ")));
        }
        if !self.kept {
            notes.push("Outcomes of this assembly are not kept; the ledger has only their hash.".to_owned());
        }
        notes.extend(self.notes.iter().cloned());
        notes
    }

    /// The exit code: a vote 0 pass, 1 fail; other modes 0 done; 2 refused, 3 incomplete.
    pub fn exit_code(&self) -> u8 {
        match self.verdict {
            Some(AssemblyVerdict::Pass | AssemblyVerdict::Done) => 0,
            Some(AssemblyVerdict::Fail) => 1,
            Some(AssemblyVerdict::Refused) => 2,
            Some(AssemblyVerdict::Incomplete) | None => 3,
        }
    }

    /// Verdict and reason as plain text.
    pub fn brief(&self) -> String {
        let because = self.because.as_ref().map_or_else(String::new, |because| format!(": {because}"));
        format!("{}{because}\n", self.verdict.map_or("undecided", AssemblyVerdict::as_str))
    }

    /// The report as `quorate convene --format json` prints it; `quorate schema convene` prints its schema.
    pub fn to_json(&self) -> Json {
        let spent = Cost { calls: self.calls, usage: self.usage, took: self.took };
        let member = |member: &Member| with_usage(member.json(), &member.id, &self.member_usage);
        let mut json = json!({
            "schema": SCHEMA,
            "run": self.run,
            "assembly": self.assembly,
            "mode": self.mode,
            "request": self.request,
            "subject": self.subject,
            "outcome": self.outcome(),
            "violations": self.violations.iter().map(violation_json).collect::<Vec<_>>(),
            "members": self.members.iter().map(member).collect::<Vec<_>>(),
            "rules": self.rules.iter().map(rule_json).collect::<Vec<_>>(),
            "partial": self.partial(),
            "missing": self.missing,
            "executor": self.executor,
            "model_asked": self.model_asked,
            "spent": spent,
            "notes": self.all_notes(),
            "exit": self.exit_code(),
        });
        let mut put = |key: &str, value: Option<Json>| {
            if let Some(value) = value {
                json[key] = value;
            }
        };
        put("risk", self.risk.as_ref().map(|risk| json!(risk)));
        put("shouldEscalate", self.should_escalate.map(Json::from));
        match self.mode {
            Mode::Advisory => {
                put("fragments", Some(json!(self.fragments)));
                put("terminal", Some(json!(self.terminal)));
                let named = self.operators.iter().filter(|operator| !operator.is_empty());
                put("operators", Some(named.cloned().collect()));
            }
            Mode::Voting => {
                put("decision", self.decision.as_ref().map(|decision| json!(decision)));
                put("terminal", Some(json!(self.terminal)));
            }
            Mode::Peer => {
                put("messages", Some(json!(self.messages)));
                put("objecting", Some(json!(self.objecting)));
                put("objections", Some(json!(self.objections)));
                put("synthesis", (!self.synthesis.is_empty()).then(|| json!(self.synthesis)));
            }
            Mode::Hierarchy => {
                put("rollup", self.rollup.as_ref().map(|rollup| json!(rollup)));
                put("nodes", Some(json!(self.nodes)));
            }
        }
        json
    }

    fn outcome(&self) -> Json {
        let kind = match self.mode {
            Mode::Advisory => "guidance",
            Mode::Voting => "decision",
            Mode::Peer => "log",
            Mode::Hierarchy => "rollup",
        };
        let mut outcome = json!({"kind": kind, "result": self.verdict});
        if let Some(code) = &self.code {
            outcome["code"] = json!(code);
        }
        if let Some(because) = &self.because {
            outcome["because"] = json!(because);
        }
        if let Some((rounds, ended_by)) = &self.rounds {
            outcome["rounds"] = json!(rounds);
            outcome["endedBy"] = json!(ended_by);
        }
        outcome
    }
}

fn rule_json(rule: &AppliedRule) -> Json {
    let mut json = json!({"id": rule.id, "kind": rule.kind, "fired": rule.fired, "members": rule.members});
    if let Some(node) = &rule.node {
        json["node"] = json!(node);
    }
    json
}

fn violation_json(violation: &Violation) -> Json {
    json!({
        "code": violation.code, "candidate": violation.candidate, "member": violation.member, "what": violation.what,
        "trait": violation.locked, "layer": violation.layer, "excerpt": violation.excerpt, "to": violation.to,
    })
}

/// A member and all its questions.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its id in the manifest.
    pub id: String,
    /// The title of the role.
    pub role: String,
    /// Advisory: the phase that it is asked in.
    pub phase: Option<String>,
    /// Voting: the classes that it votes on; `None` is all.
    pub classes: Option<Vec<String>>,
    /// Hierarchy: the node that it reports to.
    pub parent: Option<String>,
    /// Its questions, in order.
    pub consultations: Vec<Consultation>,
}

/// A question to a member, and its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Consultation {
    /// Its id in the run's records.
    pub invocation: String,
    /// How it ended.
    pub status: Status,
    /// The answer, as given.
    pub answer: Option<Map<String, Json>>,
    /// The reason for a missing answer, if the record has more than the status.
    #[serde(skip)]
    pub message: Option<String>,
    /// The reason for a missing answer, in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The name of the executor.
    pub executor: String,
    /// The duration, in milliseconds.
    pub ms: u64,
}

impl Member {
    /// All members of a roster, with their consultations.
    fn all(roster: &[assembly::Member], history: &History) -> Vec<Member> {
        let mut by_member: BTreeMap<&str, Vec<Consultation>> = BTreeMap::new();
        for data in history.consultations() {
            by_member.entry(&data.member).or_default().push(Consultation::of(history, data));
        }
        let of = |one: &assembly::Member| Member::of(one, by_member.remove(&*one.id).unwrap_or_default());
        roster.iter().map(of).collect()
    }

    fn of(member: &assembly::Member, consulted: Vec<Consultation>) -> Member {
        Member {
            id: member.id.to_string(),
            role: member.role.clone(),
            phase: member.phase.clone(),
            classes: member.vote_class.clone(),
            parent: member.parent.as_ref().map(ToString::to_string),
            consultations: consulted,
        }
    }

    /// The status of its last question; `not_asked` without one.
    pub fn status(&self) -> &str {
        self.consultations.last().map_or("not_asked", |last| last.status.as_str())
    }

    /// Its last answer.
    pub fn answer(&self) -> Option<&Map<String, Json>> {
        self.consultations.iter().rev().find_map(|one| one.answer.as_ref())
    }

    fn json(&self) -> Json {
        let mut json =
            json!({"id": self.id, "role": self.role, "status": self.status(), "answer": self.answer()});
        if let Some(message) = self.consultations.last().and_then(|one| one.message.as_ref()) {
            json["message"] = json!(message);
        }
        if let Some(failure) = self.consultations.last().and_then(|one| one.failure.as_ref()) {
            json["failure"] = json!(failure);
        }
        if self.consultations.len() > 1 {
            json["consultations"] = json!(self.consultations);
        }
        json
    }
}

impl Consultation {
    fn of(history: &History, ended: &record::Consultation) -> Consultation {
        Consultation {
            invocation: ended.invocation.to_string(),
            status: ended.status.clone(),
            answer: ended.answer.as_ref().and_then(Json::as_object).cloned(),
            message: ended.text.clone(),
            failure: Failure::of(history, ended),
            executor: ended.executor.clone(),
            ms: ended.spent.ms.unwrap_or_default(),
        }
    }
}

/// A share that the yes side needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Needed {
    /// A fraction of the rule's base: 0 to 1.
    pub part: f64,
    /// The manifest's notation, or words.
    pub text: String,
    /// The rule that asks for it.
    pub rule: String,
    /// The position of the threshold on a line of all weights that starts with the yes side: 0 to 1.
    pub place: f64,
}

impl Decision {
    /// The recorded rule that decided.
    pub fn deciding_rule(&self) -> Option<&AppliedRule> {
        let rule = self.decision.as_ref()?.rule.as_ref()?;
        self.rules.iter().find(|candidate| candidate.fired && candidate.id == *rule)
    }

    /// A rule as declared in the manifest.
    pub fn declared_rule(&self, id: &str) -> Option<&Rule> {
        self.declared_rules.iter().find(|declared| *declared.id == *id)
    }

    /// The share that the deciding rule asks for; `None` for rules without one.
    pub fn threshold(&self) -> Option<Needed> {
        let rule = self.deciding_rule()?;
        needed(self.decision.as_ref()?, &rule.id, &rule.kind, self.declared_rule(&rule.id))
    }

    /// The shares that declared quorums over all voters ask for, in order, besides that of the deciding rule.
    pub fn quorums(&self) -> Vec<Needed> {
        let Some(decision) = &self.decision else { return Vec::new() };
        let deciding = self.deciding_rule().map(|rule| &*rule.id);
        let others = self.declared_rules.iter().filter(|rule| {
            *rule.kind == *votes::QUORUM && rule.applies_to.is_none() && deciding != Some(&*rule.id)
        });
        others.filter_map(|rule| needed(decision, &rule.id, &rule.kind, Some(rule))).collect()
    }
}

fn needed(decision: &VoteCount, id: &str, kind: &str, declared: Option<&Rule>) -> Option<Needed> {
    let param = |key: &str| declared?.params.get(key);
    let (part, text) = match kind {
        votes::QUORUM => {
            let threshold = param("threshold")?;
            let text = threshold.as_str().map_or_else(|| threshold.to_string(), str::to_owned);
            (text.parse().ok()?, text)
        }
        votes::MAJORITY => (0.5, "more than half".to_owned()),
        votes::UNANIMITY => (1.0, "everybody".to_owned()),
        _ => return None,
    };
    let all = decision.yes + decision.no + decision.abstain + decision.missing;
    let is_cast = param("denominator").and_then(Json::as_str) == Some("cast");
    let counted = if is_cast { all - decision.abstain } else { all };
    let place = if all > 0.0 { part * counted / all } else { part };
    Some(Needed { part, text, rule: id.to_owned(), place })
}
