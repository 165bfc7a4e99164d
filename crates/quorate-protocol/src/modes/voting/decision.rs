//! The decision: its text, its lock check, and its part of the outcome (V6, V8).

use serde_json::{Map, json};

use super::super::assembly::{Candidate, Completion, Effect, ModeContext, RunState, RunStatus, Text};
use super::proposal::{resolution, title};
use super::{Poll, VoteStatus, Voting, invocation_id, weight_text};
use crate::answers::vote::Vote;
use crate::assembly::Rule;
use crate::rules::{self, majority};
use crate::tally::Tally;
use crate::{Fact, Json};

/// How the decision is called in records.
const DECISION: &str = "decision";

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

/// The outcome of a proposal without a resolution when traits are locked: there is no text to check against the locks, so
/// no member is asked (V6).
pub(super) fn unresolved(voting: &Voting, context: &ModeContext) -> Option<Completion> {
    if !context.has_locks() || resolution(context.subject_text()).is_some() {
        return None;
    }
    let because = "traits are locked, and the proposal has no resolution that could be held against them: say what is \
                   to be decided in a line that begins with `Resolution:`";
    Some(without_decision(voting, context, RunStatus::Refused, "no_resolution", because.to_owned()))
}

/// An undecided outcome, with the votes cast.
pub(super) fn undecided(voting: &Voting, context: &ModeContext, mut ending: Completion) -> Completion {
    let tally = voting.poll(context, &[], None).tally(&default_rule());
    ending.artifact.insert(DECISION.into(), decision_json(voting, context, ending.result, &tally, None));
    ending.extra.insert("class".into(), json!(voting.class));
    ending
}

impl Voting {
    /// Whether a member is one of those who decided alone, whose answers the outcome has in full (V4).
    fn is_contribution_of(&self, context: &ModeContext, member: &crate::Name) -> bool {
        let Some((ruling, Some(at))) = &self.decided else { return false };
        rules::is_terminal(&context.setup.rules[*at]) && ruling.members.contains(member)
    }

    /// The result is known: checks the decision's text, every rationale, and the evidence that the outcome has against the
    /// locks.
    pub(super) fn check_decision(&mut self, context: &ModeContext, _: &mut RunState) -> Vec<Effect> {
        let text = |member: Option<&crate::Name>, what, text: &str| Text {
            member: member.cloned(),
            invocation: member.map(|member| invocation_id(member)),
            kind: what,
            text: text.into(),
        };
        self.checked_text = self.decision_text(context);
        let mut texts = vec![text(None, "decision", &self.checked_text)];
        for voter in &self.voters {
            let Some(ballot) = &voter.ballot else { continue };
            let member = &context.member(voter.index).id;
            texts.push(text(Some(member), "rationale", &ballot.rationale));
            if self.is_contribution_of(context, member) {
                texts.extend(ballot.evidence.iter().map(|quote| text(Some(member), "evidence", quote)));
            }
        }
        vec![Effect::Check(Candidate { name: DECISION.into(), texts })]
    }

    /// The word of the result: a pass that does not stand is incomplete.
    fn result_word(&self) -> &'static str {
        match (&self.decided, self.pass_stands) {
            (Some((ruling, _)), _) if !ruling.pass => "fail",
            (Some(_), Some(true)) => "pass",
            _ => "incomplete",
        }
    }

    /// V6: title, resolution, result, summary.
    fn decision_text(&self, context: &ModeContext) -> String {
        let proposal = context.subject_text();
        let mut lines = vec![title(proposal).to_owned()];
        lines.extend(resolution(proposal));
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
    pub(super) fn conclude(
        &mut self,
        context: &ModeContext,
        run_state: &mut RunState,
        clean: bool,
    ) -> Vec<Effect> {
        let Some((ruling, at)) = self.decided.take().filter(|_| !self.concluded) else { return Vec::new() };
        self.concluded = true;
        self.decided = Some((ruling.clone(), at));
        let unwritten = default_rule();
        let rule = at.map_or(&unwritten, |at| &context.setup.rules[at]);
        let tally = ruling.tally.clone().unwrap_or_else(|| self.poll(context, &[], None).tally(&unwritten));
        let mut effects: Vec<Effect> = self.rules_without_decision(context, run_state, at);
        let also = json!({"decides": if ruling.pass { "pass" } else { "fail" }, "ratio": tally.ratio_json()});
        let members: Vec<crate::Name> = match ruling.members.is_empty() {
            true => self.poll(context, &[], None).votes_of(rule).map(|one| one.member.clone()).collect(),
            false => ruling.members.clone(),
        };
        effects.push(Effect::Record(run_state.record_rule(rule, true, &members, also)));
        effects.extend(self.rules_asked_of_missing(context, run_state, at));
        let word = if clean { self.result_word() } else { "refused" };
        let mut ending = match word {
            "refused" => Completion::without_artifact(
                RunStatus::Refused,
                "locked",
                "the locked traits refuse it; no decision is written",
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
        // V4: who decides alone is who speaks.
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

    /// What members have said, who decide alone.
    fn contribution(&self, context: &ModeContext, members: &[crate::Name]) -> Json {
        let said = |voter: &super::VoterState| {
            let member = &context.member(voter.index).id;
            let ballot = voter.ballot.as_ref().filter(|_| members.contains(member))?;
            Some(json!({
                "member": &**member, "vote": ballot.vote.as_str(), "rationale": ballot.rationale,
                "evidence": ballot.evidence,
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
            json!({"member": &*context.member(voter.index).id, "weight": weight_text(context, voter.index), "vote": vote})
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
