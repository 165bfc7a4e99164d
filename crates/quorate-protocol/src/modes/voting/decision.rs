//! The decision: its text, its lock check, and its part of the outcome (V6, V8).

use serde_json::{Map, json};

use super::super::assembly::{
    Candidate, Completion, Effect, LockResult, ModeContext, OnHit, RunState, RunStatus, Text,
};
use super::proposal::{resolution, title};
use super::{Poll, VoteStatus, VoterState, Voting, invocation_id, weight_text};
use crate::answers::vote::Vote;
use crate::assembly::Rule;
use crate::rules::{self, majority};
use crate::tally::Tally;
use crate::{Fact, Json, Name};

/// The name of the decision in records.
const DECISION: &str = "decision";
/// The index of a rationale in its candidate; the evidence follows.
const RATIONALE: usize = 0;

/// The implicit rule of V5.
pub(super) fn default_rule() -> Rule {
    Rule { id: "majority".into(), kind: majority::KIND.into(), applies_to: None, params: Map::new() }
}

/// What a custom rule is shown.
pub(super) fn host_rule_input(rule: &Rule, poll: &Poll<'_>, as_no: bool) -> Json {
    let vote = |vote: &super::CountedVote| json!({"member": &*vote.member, "weight": vote.weight.text(), "vote": vote.vote.map(Vote::as_str)});
    let votes: Vec<Json> = poll.votes_of(rule).map(vote).collect();
    json!({"mode": "voting", "rule": rule, "class": poll.class, "votes": votes, "missingAsNo": as_no})
}

/// An outcome without a decision.
pub(super) fn without_decision(
    voting: &Voting,
    context: &ModeContext,
    stand: RunStatus,
    code: &'static str,
    because: String,
) -> Completion {
    undecided(voting, context, Completion::without_artifact(stand, code, because))
}

/// An undecided outcome, with the votes cast.
pub(super) fn undecided(voting: &Voting, context: &ModeContext, mut ending: Completion) -> Completion {
    let tally = voting.poll(context, None).tally(&default_rule());
    ending.artifact.insert(DECISION.into(), decision_json(voting, context, ending.result, &tally, None));
    ending.extra.insert("class".into(), json!(voting.class));
    ending
}

impl Voting {
    /// The result is known: checks the decision's text, and each member's rationale and evidence, against the locks. Only
    /// the decision's text can refuse the decision: a member cannot block a vote by quoting a trait (V6).
    pub(super) fn check_decision(&mut self, context: &ModeContext) -> Vec<Effect> {
        self.checked_text = self.decision_text(context);
        let decision =
            Text { member: None, invocation: None, kind: DECISION, text: self.checked_text.as_str().into() };
        let ballots = self.voters.iter().filter_map(|voter| ballot_candidate(context, voter));
        let mut candidates: Vec<Candidate> = ballots.collect();
        candidates.push(Candidate { name: DECISION.into(), texts: vec![decision], on_hit: OnHit::Drop });
        self.unchecked = candidates.iter().map(|candidate| candidate.name.clone()).collect();
        candidates.into_iter().map(Effect::Check).collect()
    }

    /// A text of a member's ballot as the outcome has it.
    fn visible_text(&self, member: &str, index: usize, text: &str) -> String {
        let result = self.locked.get(&*rationale_name(member));
        result.unwrap_or(&LockResult::Pass).visible_text(index, text)
    }

    /// The word of the result: a pass that does not stand is incomplete.
    fn result_word(&self) -> &'static str {
        match (&self.decided, self.pass_stands) {
            (Some((ruling, _)), _) if !ruling.pass => "fail",
            (Some(_), Some(true)) => "pass",
            _ => "incomplete",
        }
    }

    /// V6: title and resolution, or without a resolution the whole proposal; result and summary.
    fn decision_text(&self, context: &ModeContext) -> String {
        let proposal = context.subject_text();
        let mut lines = match resolution(proposal) {
            Some(resolution) => vec![title(proposal).to_owned(), resolution],
            None => vec![proposal.trim().to_owned()],
        };
        let votes = |wanted: Option<Vote>| {
            self.voters.iter().filter(|one| one.ballot.as_ref().map(|ballot| ballot.vote) == wanted).count()
        };
        lines.push(format!(
            "Result: {}. {} yes, {} no, {} abstain, {} without a vote.",
            self.result_word(),
            votes(Some(Vote::Yes)),
            votes(Some(Vote::No)),
            votes(Some(Vote::Abstain)),
            votes(None)
        ));
        lines.join("\n")
    }

    /// The end: the decision, or that a lock refuses it.
    pub(super) fn conclude(&mut self, context: &ModeContext, run_state: &mut RunState) -> Vec<Effect> {
        let Some((ruling, at)) = self.decided.clone() else { return Vec::new() };
        let unwritten = default_rule();
        let rule = at.map_or(&unwritten, |at| &context.setup.rules[at]);
        let tally = ruling.tally.clone().unwrap_or_else(|| self.poll(context, None).tally(&unwritten));
        let mut effects: Vec<Effect> = self.rules_without_decision(context, run_state, at);
        let also = json!({"decides": if ruling.pass { "pass" } else { "fail" }, "ratio": tally.ratio_json()});
        let members: Vec<Name> = match ruling.members.is_empty() {
            true => self.poll(context, None).votes_of(rule).map(|one| one.member.clone()).collect(),
            false => ruling.members.clone(),
        };
        effects.push(Effect::Record(run_state.record_rule(rule, true, &members, also)));
        effects.extend(self.rules_asked_of_missing(context, run_state, at));
        let word = if self.locked.contains_key(DECISION) { "refused" } else { self.result_word() };
        let mut ending = match word {
            "refused" => Completion::without_artifact(
                RunStatus::Refused,
                "locked",
                "its text did not pass the check of the locked traits, so no decision is written",
            ),
            "incomplete" => Completion::without_artifact(
                RunStatus::Incomplete,
                "missing_votes",
                "it would pass, but a missing vote could change that",
            ),
            word => Completion { result: word, ..Completion::done() },
        };
        if word == "refused" {
            run_state.note("the decision was refused");
        }
        let text = (word != "refused").then(|| std::mem::take(&mut self.checked_text));
        let mut decision = decision_json(self, context, word, &tally, text);
        decision["rule"] = json!(&*rule.id);
        // V4
        let is_terminal = matches!(word, "pass" | "fail") && rules::is_terminal(rule);
        if is_terminal {
            decision["contribution"] = self.contribution(context, &ruling.members);
        }
        ending.extra.insert("terminal".into(), json!(is_terminal));
        if let Some(tie) = &ruling.tie {
            decision["tie"] = json!(tie);
            run_state.note(tie.clone());
        }
        ending.artifact.insert(DECISION.into(), decision);
        ending.extra.insert("class".into(), json!(self.class));
        effects.push(Effect::End(ending));
        effects
    }

    /// The answers of the members that decided alone.
    fn contribution(&self, context: &ModeContext, members: &[Name]) -> Json {
        let said = |voter: &VoterState| {
            let member = &context.member(voter.index).id;
            let ballot = voter.ballot.as_ref().filter(|_| members.contains(member))?;
            let evidence = ballot.evidence.iter().enumerate();
            let evidence = evidence.map(|(at, quote)| self.visible_text(member, RATIONALE + 1 + at, quote));
            Some(json!({
                "member": &**member, "vote": ballot.vote.as_str(),
                "rationale": self.visible_text(member, RATIONALE, &ballot.rationale),
                "evidence": evidence.collect::<Vec<_>>(),
            }))
        };
        self.voters.iter().filter_map(said).collect()
    }

    /// The rules after the one that decided that were asked only when missing votes counted as no (V8).
    fn rules_asked_of_missing(
        &self,
        context: &ModeContext,
        run_state: &mut RunState,
        at: Option<usize>,
    ) -> Vec<Effect> {
        let until = self.last_rule_asked.map_or(0, |furthest| furthest + 1);
        let rules = at.and_then(|at| context.setup.rules.get(at + 1..until)).unwrap_or_default();
        let mut record = |rule: &Rule| run_state.record_rule(rule, false, &[], json!({"missingAsNo": true}));
        rules.iter().map(|rule| Effect::Record(record(rule))).collect()
    }

    /// The rules before the one that decided, which did not.
    fn rules_without_decision(
        &self,
        context: &ModeContext,
        run_state: &mut RunState,
        at: Option<usize>,
    ) -> Vec<Effect> {
        let rules = &context.setup.rules[..at.unwrap_or(context.setup.rules.len())];
        let record = |rule: &Rule| -> Fact { run_state.record_rule(rule, false, &[], Json::Null) };
        rules.iter().map(record).map(Effect::Record).collect()
    }
}

/// A ballot's texts, which are withheld one by one.
fn ballot_candidate(context: &ModeContext, voter: &VoterState) -> Option<Candidate> {
    let ballot = voter.ballot.as_ref()?;
    let member = &context.member(voter.index).id;
    let text = |kind, text: &str| Text {
        member: Some(member.clone()),
        invocation: Some(invocation_id(member)),
        kind,
        text: text.into(),
    };
    let mut texts = vec![text("rationale", &ballot.rationale)];
    texts.extend(ballot.evidence.iter().map(|quote| text("evidence", quote)));
    Some(Candidate { name: rationale_name(member), texts, on_hit: OnHit::Withhold })
}

/// The name of a member's rationale and evidence in records.
fn rationale_name(member: &str) -> Name {
    format!("rationale/{member}").into()
}

/// The decision, as the outcome has it.
fn decision_json(
    voting: &Voting,
    context: &ModeContext,
    word: &str,
    tally: &Tally,
    text: Option<String>,
) -> Json {
    let votes: Vec<Json> = voting
        .voters
        .iter()
        .map(|voter| {
            let ballot = voter.ballot.as_ref();
            let vote = match (ballot, voter.state) {
                (Some(ballot), _) => ballot.vote.as_str(),
                (None, VoteStatus::Cancelled) => "cancelled",
                (None, _) => "missing",
            };
            let member = &*context.member(voter.index).id;
            let mut entry =
                json!({"member": member, "weight": weight_text(context, voter.index), "vote": vote});
            if let Some(ballot) = ballot {
                let visible = voting.visible_text(member, RATIONALE, &ballot.rationale);
                if visible != ballot.rationale {
                    entry["withheld"] = json!(visible);
                }
            }
            entry
        })
        .collect();
    let mut decision = json!({
        "result": word,
        "ratio": tally.ratio_json(),
        "yes": tally.yes.json(),
        "no": tally.no.json(),
        "abstain": tally.abstain.json(),
        "missing": tally.missing.json(),
        "exact": {"yes": tally.yes.text(), "total": tally.total.text()},
        "votes": votes,
    });
    if let Some(text) = text {
        decision["text"] = json!(text);
    }
    decision
}
