//! Voting: the voters on the proposal's class vote in parallel; the first rule that decides, decides, in exact arithmetic;
//! a pass that a missing vote could still turn does not count (V1 to V8).

mod proposal;

use std::collections::BTreeMap;

use serde_json::json;

use super::assembly::{
    AskMember, Candidate, Completion, Effect, LockResult, Mode, OnHit, Run, RunStatus, Text, ask_id,
};
use crate::answers::advice::{Ballot, Vote};
use crate::assembly::{AssemblyRequest, Rule, Setup};
use crate::rules::custom::{MemberVote, RuleRequest};
use crate::rules::votes::{CountedVote, Poll, Ruling};
use crate::rules::{self, votes};
use crate::tally::{Tally, Weight};
use crate::{Json, Name};
use proposal::{resolution, title};

const TASK: &str = "You vote on the proposal, by your own judgement alone: yes, no, or abstain, with a rationale. \
                    Abstain where it is not yours to judge.";

/// The state of a voter.
struct VoterState {
    index: usize,
    weight: Weight,
    ballot: Option<Ballot>,
    state: VoteStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VoteStatus {
    Pending,
    Ended,
    /// Taken back, since it could not change anything any more (V7).
    Cancelled,
}

pub(super) struct Voting {
    class: Option<String>,
    /// In the order of the roster.
    voters: Vec<VoterState>,
    count: CountProgress,
    /// The result of the votes as cast, and the rule that decided; `None` is the majority of V5.
    decided: Option<(Ruling, Option<usize>)>,
    pass_stands: Option<bool>,
    /// The last rule that was asked when missing votes counted as no; it may come after the one that decided.
    last_rule_asked: Option<usize>,
    /// The decision's text that was checked against the locks.
    checked_text: String,
    /// The results of the lock checks that did not pass, by candidate.
    locked: BTreeMap<Name, LockResult>,
}

/// A count in progress: the rules evaluated so far, and whether missing voters count as no (V8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CountProgress {
    at: usize,
    missing_as_no: bool,
}

impl Voting {
    pub(super) fn new(setup: &Setup) -> Self {
        let class = match &setup.request {
            AssemblyRequest::Voting { class } => class.clone(),
            _ => None,
        };
        let voters = setup.members.iter().enumerate().filter(|(_, one)| one.votes_on(class.as_deref()));
        let voter_state = |(index, member): (usize, &crate::assembly::Member)| VoterState {
            index,
            weight: member.vote_weight().into(),
            ballot: None,
            state: VoteStatus::Pending,
        };
        Voting {
            voters: voters.map(voter_state).collect(),
            class,
            count: CountProgress { at: 0, missing_as_no: false },
            decided: None,
            pass_stands: None,
            last_rule_asked: None,
            checked_text: String::new(),
            locked: BTreeMap::new(),
        }
    }

    fn poll<'a>(&'a self, run: &'a Run, missing: Option<Vote>) -> Poll<'a> {
        let counted = |voter: &VoterState| CountedVote {
            member: run.member(voter.index).id.clone(),
            weight: voter.weight.clone(),
            vote: voter.ballot.as_ref().map(|ballot| ballot.vote).or(missing),
        };
        Poll { votes: self.voters.iter().map(counted).collect(), class: self.class.as_deref(), run: &run.id }
    }

    /// Continues the count until a rule decides or the host has to apply one.
    fn continue_count(&mut self, run: &mut Run) -> Vec<Effect> {
        let rules = &run.setup.rules;
        while let Some(rule) = rules.get(self.count.at) {
            self.last_rule_asked =
                self.last_rule_asked.max(self.count.missing_as_no.then_some(self.count.at));
            let poll = self.poll(run, self.count.missing_as_no.then_some(Vote::No));
            match rules::built_in(&rule.kind) {
                Some(logic) => match logic.decide.and_then(|decide| decide(rule, &poll)) {
                    Some(ruling) => return self.on_counted(run, ruling, Some(self.count.at)),
                    None => self.count.at += 1,
                },
                None => {
                    let prefix = if self.count.missing_as_no { "missing-as-no/" } else { "" };
                    let input = host_rule_input(rule, &poll, self.count.missing_as_no);
                    return Effect::apply(format!("{prefix}{}", rule.id), &rule.kind, input);
                }
            }
        }
        // V5
        let poll = self.poll(run, self.count.missing_as_no.then_some(Vote::No));
        let ruling = votes::decide_by_majority(&default_rule(), &poll).unwrap_or(Ruling::new(false));
        self.on_counted(run, ruling, None)
    }

    /// A count ended.
    fn on_counted(&mut self, run: &mut Run, ruling: Ruling, rule: Option<usize>) -> Vec<Effect> {
        if self.count.missing_as_no {
            self.pass_stands = Some(ruling.pass);
            return self.check_decision(run);
        }
        let pass = ruling.pass;
        self.decided = Some((ruling, rule));
        let missing = self.voters.iter().any(|voter| voter.ballot.is_none());
        if pass && missing {
            self.count = CountProgress { at: 0, missing_as_no: true };
            return self.continue_count(run);
        }
        self.pass_stands = Some(true);
        self.check_decision(run)
    }

    /// V7: whether what is out can still change the result. More yes never hurts under the built-in kinds of rules (V4); a
    /// kind of the host's is not trusted with that.
    fn is_settled(&self, run: &Run) -> bool {
        let rules = &run.setup.rules;
        let monotone = rules.iter().all(|rule| rules::built_in(&rule.kind).is_some());
        let result = |as_vote: Vote| {
            let mut poll = self.poll(run, None);
            for (vote, voter) in poll.votes.iter_mut().zip(&self.voters) {
                if voter.state == VoteStatus::Pending {
                    vote.vote = Some(as_vote);
                }
            }
            let decide =
                |rule: &Rule| rules::built_in(&rule.kind)?.decide.and_then(|decide| decide(rule, &poll));
            let decided = rules.iter().find_map(decide);
            decided.or_else(|| votes::decide_by_majority(&default_rule(), &poll)).map(|ruling| ruling.pass)
        };
        // A member that is missing already may still turn a pass (V8), so only a count without missing members settles it.
        let lacking = self.voters.iter().any(|one| one.state == VoteStatus::Ended && one.ballot.is_none());
        // Without a single vote it is still open whether there is a result at all.
        let voted = self.voters.iter().any(|one| one.ballot.is_some());
        monotone
            && voted
            && result(Vote::Yes) == result(Vote::No)
            && !(lacking && result(Vote::No) == Some(true))
    }

    fn cancel_rest(&mut self, run: &mut Run) -> Vec<Effect> {
        let mut effects = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        for voter in self.voters.iter_mut().filter(|voter| voter.state == VoteStatus::Pending) {
            voter.state = VoteStatus::Cancelled;
            let member = &run.member(voter.index).id;
            names.push(member);
            effects.push(Effect::Cancel(ask_id(member)));
        }
        run.state
            .note(format!("decided before {} had voted: nothing could change the result", names.join(", ")));
        effects
    }
}

/// A member's weight, as records have it.
fn weight_text(run: &Run, index: usize) -> &str {
    run.member(index).weight.as_deref().unwrap_or("1")
}

impl Mode for Voting {
    fn on_opened(&mut self, run: &mut Run) -> Vec<Effect> {
        if let Some(class) = self.class.as_deref().filter(|class| !run.setup.classes().contains(class)) {
            run.state.note(format!("no member's voteClass and no rule's scope names the class `{class}`"));
        }
        if self.voters.is_empty() {
            let class = self.class.as_deref().map_or_else(
                || "no member votes on a proposal without a class".to_owned(),
                |class| format!("no member votes on proposals of the class `{class}`"),
            );
            return vec![without_decision(self, run, RunStatus::Refused, "no_voters", class)];
        }
        let ask = |voter: &VoterState| {
            let member = run.member(voter.index);
            let mut marks = vec![("weight", json!(weight_text(run, voter.index)))];
            marks.extend(self.class.as_ref().map(|class| ("class", json!(class))));
            Effect::Ask(AskMember::once(member, voter.index, TASK, marks))
        };
        self.voters.iter().map(ask).collect()
    }

    fn store_answer(&mut self, index: usize, answer: Option<&Json>) {
        let Ok(at) = self.voters.binary_search_by_key(&index, |voter| voter.index) else { return };
        let voter = &mut self.voters[at];
        if voter.state == VoteStatus::Pending {
            voter.ballot = answer.and_then(Ballot::read);
            voter.state = VoteStatus::Ended;
        }
    }

    fn on_answer(&mut self, run: &mut Run, _: usize) -> Vec<Effect> {
        let mut effects = Vec::new();
        if !run.all_ended() {
            if !run.setup.early_decision || !self.is_settled(run) {
                return effects;
            }
            effects.extend(self.cancel_rest(run));
        }
        if self.voters.iter().all(|one| one.ballot.is_none()) {
            let because = "no member has cast a valid vote".to_owned();
            effects.push(without_decision(self, run, RunStatus::Incomplete, "no_votes", because));
        } else {
            effects.extend(self.continue_count(run));
        }
        effects
    }

    fn on_rule_result(&mut self, run: &mut Run, _: &str, result: Result<&Json, &str>) -> Vec<Effect> {
        let rule = &run.setup.rules[self.count.at];
        match result.map_err(str::to_owned).and_then(read_host_decision) {
            Ok(Some(pass)) => self.on_counted(run, Ruling::new(pass), Some(self.count.at)),
            Ok(None) => {
                self.count.at += 1;
                self.continue_count(run)
            }
            Err(why) => {
                run.state.note_failed_rule(&rule.id, &why);
                // A rule that has its turn and cannot be applied leaves nothing decided.
                let because = format!("the rule `{}` could not be applied", rule.id);
                vec![without_decision(self, run, RunStatus::Incomplete, "rule_failed", because)]
            }
        }
    }

    fn on_checked(&mut self, run: &mut Run, candidate: &Name, result: &LockResult) -> Vec<Effect> {
        if !result.is_clean() {
            self.locked.insert(candidate.clone(), result.clone());
        }
        if run.all_checked() { self.conclude(run) } else { Vec::new() }
    }

    fn on_budget_exhausted(&mut self, run: &mut Run, ending: Completion) -> Completion {
        undecided(self, run, ending)
    }
}

/// A custom rule's `decision`; `None` leaves it to the next rule. A rule that is passed over by
/// mistake could be a veto, so only null, an absent `decision` and a null one leave it.
///
/// # Errors
/// A description of the value in its place.
fn read_host_decision(output: &Json) -> Result<Option<bool>, String> {
    let said = match output {
        Json::Null => None,
        Json::Object(object) => object.get("decision").filter(|decision| !decision.is_null()),
        other => return Err(format!("it says {other}, which has no `decision`")),
    };
    match said {
        None => Ok(None),
        Some(decision) if decision == "pass" => Ok(Some(true)),
        Some(decision) if decision == "fail" => Ok(Some(false)),
        Some(other) => Err(format!("it says {other}, which is neither pass nor fail")),
    }
}

/// The name of the decision in records.
const DECISION: &str = "decision";
/// The index of a rationale in its candidate; the evidence follows.
const RATIONALE: usize = 0;

/// The implicit rule of V5.
fn default_rule() -> Rule {
    Rule::implicit("majority", votes::MAJORITY)
}

/// The input of a custom rule.
fn host_rule_input(rule: &Rule, poll: &Poll<'_>, missing_as_no: bool) -> RuleRequest {
    let vote = |vote: &CountedVote| MemberVote {
        member: vote.member.clone(),
        weight: vote.weight.text(),
        vote: vote.vote,
    };
    RuleRequest::Voting {
        rule: rule.clone(),
        class: poll.class.map(str::to_owned),
        votes: poll.votes_of(rule).map(vote).collect(),
        missing_as_no,
    }
}

/// The end without a decision.
fn without_decision(
    voting: &Voting,
    run: &Run,
    stand: RunStatus,
    code: &'static str,
    because: String,
) -> Effect {
    Effect::End(undecided(voting, run, Completion::without_artifact(stand, code, because)))
}

/// An undecided outcome, with the votes cast.
fn undecided(voting: &Voting, run: &Run, mut ending: Completion) -> Completion {
    let tally = voting.poll(run, None).tally(&default_rule());
    ending.artifact.insert(DECISION.into(), decision_json(voting, run, ending.result, &tally, None));
    ending.extra.insert("class".into(), json!(voting.class));
    ending
}

impl Voting {
    /// The result is known: checks the decision's text, and each member's rationale and evidence, against the locks. Only
    /// the decision's text can refuse the decision: a member cannot block a vote by quoting a trait (V6).
    fn check_decision(&mut self, run: &Run) -> Vec<Effect> {
        self.checked_text = self.decision_text(run);
        let decision = Text::of_program(DECISION, &self.checked_text);
        let ballots = self.voters.iter().filter_map(|voter| ballot_candidate(run, voter));
        let mut candidates: Vec<Candidate> = ballots.collect();
        candidates.push(Candidate { name: DECISION.into(), texts: vec![decision], on_hit: OnHit::Drop });
        candidates.into_iter().map(Effect::Check).collect()
    }

    /// A text of a member's ballot in the outcome.
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
    fn decision_text(&self, run: &Run) -> String {
        let proposal = run.subject_text();
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
    fn conclude(&mut self, run: &mut Run) -> Vec<Effect> {
        let Some((ruling, at)) = self.decided.clone() else { return Vec::new() };
        let rule = at.map_or_else(default_rule, |at| run.setup.rules[at].clone());
        let tally = ruling.tally.clone().unwrap_or_else(|| self.poll(run, None).tally(&default_rule()));
        // The rules before the one that decided, which did not.
        let before = &run.setup.rules[..at.unwrap_or(run.setup.rules.len())];
        let mut effects: Vec<Effect> =
            before.iter().map(|rule| run.state.record_rule(rule, false, &[], Json::Null)).collect();
        let also = json!({"decides": if ruling.pass { "pass" } else { "fail" }, "ratio": tally.ratio_json()});
        let members: Vec<Name> = match ruling.members.is_empty() {
            true => self.poll(run, None).votes_of(&rule).map(|one| one.member.clone()).collect(),
            false => ruling.members.clone(),
        };
        effects.push(run.state.record_rule(&rule, true, &members, also));
        // The rules after it that were asked only when missing votes counted as no (V8).
        let until = self.last_rule_asked.map_or(0, |furthest| furthest + 1);
        for rule in at.and_then(|at| run.setup.rules.get(at + 1..until)).unwrap_or_default() {
            effects.push(run.state.record_rule(rule, false, &[], json!({"missingAsNo": true})));
        }
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
            run.state.note("the decision was refused");
        }
        let text = (word != "refused").then(|| std::mem::take(&mut self.checked_text));
        let mut decision = decision_json(self, run, word, &tally, text);
        decision["rule"] = json!(&*rule.id);
        // V4
        let is_terminal = matches!(word, "pass" | "fail") && rules::is_terminal(&rule);
        if is_terminal {
            decision["contribution"] = self.contribution(run, &ruling.members);
        }
        ending.extra.insert("terminal".into(), json!(is_terminal));
        if let Some(tie) = &ruling.tie {
            decision["tie"] = json!(tie);
            run.state.note(tie.clone());
        }
        ending.artifact.insert(DECISION.into(), decision);
        ending.extra.insert("class".into(), json!(self.class));
        effects.push(Effect::End(ending));
        effects
    }

    /// The answers of the members that decided alone.
    fn contribution(&self, run: &Run, members: &[Name]) -> Json {
        let said = |voter: &VoterState| {
            let member = &run.member(voter.index).id;
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
}

/// A ballot's texts, which are withheld one by one.
fn ballot_candidate(run: &Run, voter: &VoterState) -> Option<Candidate> {
    let ballot = voter.ballot.as_ref()?;
    let member = &run.member(voter.index).id;
    let text = |kind, text: &str| Text::of_member(member, ask_id(member), kind, text);
    let mut texts = vec![text("rationale", &ballot.rationale)];
    texts.extend(ballot.evidence.iter().map(|quote| text("evidence", quote)));
    Some(Candidate { name: rationale_name(member), texts, on_hit: OnHit::Withhold })
}

/// The name of a member's rationale and evidence in records.
fn rationale_name(member: &str) -> Name {
    format!("rationale/{member}").into()
}

/// The decision in the outcome.
fn decision_json(voting: &Voting, run: &Run, word: &str, tally: &Tally, text: Option<String>) -> Json {
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
            let member = &*run.member(voter.index).id;
            let mut entry = json!({"member": member, "weight": weight_text(run, voter.index), "vote": vote});
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
